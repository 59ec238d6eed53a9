//! `make demo-compose`: the main job in containers. A trainer and its sidecar by docker compose, an S3 server, `docker kill`
//! of the trainer, the loss of the whole node, another node that goes on, and the proof that the loss trace is that of an
//! undisturbed run, bit for bit.

use std::time::Instant;

use anyhow::{Result, ensure};
use phos_integration_tests::docker::{FINISH_AT, Node, Services, Stack, docker, same, wait_for};

/// More steps than there is time for: the job is told to finish when all was done to it.
const STEPS: &str = "1000000";

fn main() -> Result<()> {
    let start = Instant::now();
    let say = |what: &str| println!("[{:6.1} s] {what}", start.elapsed().as_secs_f64());
    say("phos-ft in containers, on a simulated GPU (no figure below is a performance figure)");
    let services = Services {
        command: [
            "phos-trainer",
            "--steps",
            STEPS,
            "--step-ms",
            "20",
            "--batch",
            "16",
            "--ballast-mib",
            "32",
            "--workers",
            "2",
            "--scratch",
            "--log",
            "/work/loss.log",
            "--finish-at",
            FINISH_AT,
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Services::default()
    };
    let stack = Stack::new(services, "/work/loss.log")?;

    say("1. node A: docker compose up, a checkpoint into S3 every 2 s");
    stack.up(&["trainer-a"])?;
    let node_a = address(&stack, Node::A)?;
    let first = stack.wait_checkpoint(Node::A, 0)?;
    let second = stack.wait_checkpoint(Node::A, first)?;

    let killed_at = stack.wait_step(Node::A, 0)?;
    say(&format!(
        "2. docker kill of the trainer at step {killed_at}"
    ));
    docker(&["kill", &stack.container("trainer-a")?])?;
    stack.up(&["trainer-a"])?;
    stack.wait_said("phos-ft-a", "resumed")?;
    let resumed = stack.last_step(Node::A).unwrap_or(0);
    stack.wait_step(Node::A, killed_at + 1)?;
    say(&format!("   resumed at about step {resumed}"));
    let third = stack.wait_checkpoint(Node::A, second)?;

    let lost_at = stack.wait_step(Node::A, 0)?;
    let mut rows: Vec<_> = stack.checkpoints(Node::A)?;
    say(&format!(
        "3. node A is lost at step {lost_at}: both containers and their volumes"
    ));
    stack.destroy(Node::A)?;

    say("4. node B: another network, other names and addresses");
    stack.up(&["trainer-b"])?;
    let node_b = address(&stack, Node::B)?;
    ensure!(
        node_a != node_b,
        "node B has node A's address and name: {node_a:?}"
    );
    stack.wait_said("phos-ft-b", "resumed")?;
    let resumed_b = stack.wait_step(Node::B, 0)?;
    say(&format!("   resumed at about step {resumed_b}"));
    stack.wait_checkpoint(Node::B, third)?;
    let trace = stack.finish(Node::B)?;

    say("5. an undisturbed run of as many steps, for comparison");
    let reference = stack.reference_with(&["--steps", &trace.len().to_string()])?;
    let known = rows.last().map_or(0, |row| row.number);
    // The sidecar has ended with the job, and is started again.
    let list = || stack.checkpoints(Node::B).ok();
    rows.extend(
        wait_for("node B's sidecar to list checkpoints", list)?
            .into_iter()
            .filter(|row| row.number > known),
    );

    println!();
    println!("checkpoint    stop ms     image     changed      stored  node  trigger");
    for row in &rows {
        println!(
            "{:>10} {:>10.1} {:>9} {:>11} {:>11}  {:>4}  {}",
            row.number,
            row.stop_us as f64 / 1e3,
            mib(row.image_bytes),
            mib(row.new_bytes),
            mib(row.stored_bytes),
            if row.number <= known { "A" } else { "B" },
            row.trigger
        );
    }
    println!();
    println!("node A                {}", node_a.join(", "));
    println!("node B                {}", node_b.join(", "));
    println!("after docker kill     at step {killed_at}: resumed at about step {resumed}");
    println!("after the node loss   at step {lost_at}: resumed at about step {resumed_b}");
    same(&trace, &reference)?;
    println!(
        "loss trace            {} steps, bit-identical to the undisturbed run",
        trace.len()
    );
    say("done");
    Ok(())
}

/// A node's host names and addresses.
fn address(stack: &Stack, node: Node) -> Result<Vec<String>> {
    let template = "{{.Config.Hostname}} {{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    [node.trainer(), node.sidecar()]
        .into_iter()
        .map(|service| stack.inspect(service, template))
        .collect()
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
