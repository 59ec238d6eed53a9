//! Machines that are taken away with notice: what a cloud's metadata service or a file says is enough for two checkpoints, one at
//! once and one as late as it is stored in time, and the job resumes from the second elsewhere.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use phos_integration_tests::scenario::{
    LIMIT, disturbed, kill_job_and_wait, last_step, wait_said, wait_step,
};
use phos_integration_tests::{JobSpec, PhosFt, World, wait_for};

/// How long before its end the machine learns of it: enough for both checkpoints on a slow machine.
const GRACE: Duration = Duration::from_secs(45);

/// A metadata service as the clouds have it: what it answers for a path, if the request has the header that guards it.
#[derive(Clone)]
struct Metadata {
    address: String,
    answers: Arc<Mutex<Vec<(&'static str, String)>>>,
}

impl Metadata {
    /// Answers requests that have this line in their head.
    fn new(guard: &'static str) -> Result<Metadata> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let metadata = Metadata {
            address: listener.local_addr()?.to_string(),
            answers: Arc::default(),
        };
        let here = metadata.clone();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let here = here.clone();
                std::thread::spawn(move || here.serve(client, guard));
            }
        });
        Ok(metadata)
    }

    fn say(&self, path: &'static str, answer: impl Into<String>) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|(p, _)| *p != path);
        answers.push((path, answer.into()));
    }

    fn answer(&self, head: &[String], guard: &str) -> (&'static str, String) {
        let request = head.first().map_or("", String::as_str);
        if request.starts_with("PUT /latest/api/token ") {
            return ("200 OK", "a-token".into());
        }
        if !head.iter().any(|line| line.eq_ignore_ascii_case(guard)) {
            return ("401 Unauthorized", String::new());
        }
        let path = request.split(' ').nth(1).unwrap_or_default();
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        match answers.iter().find(|(p, _)| *p == path) {
            Some((_, answer)) => ("200 OK", answer.clone()),
            None => ("404 Not Found", "not here".into()),
        }
    }

    fn serve(&self, client: TcpStream, guard: &str) -> Option<()> {
        let mut lines = BufReader::new(client.try_clone().ok()?).lines();
        loop {
            let mut head = Vec::new();
            loop {
                let line = lines.next()?.ok()?;
                if line.is_empty() {
                    break;
                }
                head.push(line);
            }
            let (status, body) = self.answer(&head, guard);
            let length = body.len();
            write!(
                &client,
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}"
            )
            .ok()?;
        }
    }
}

fn spec() -> JobSpec {
    JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_trainer(&["--step-ms", "10"])
}

fn triggers(world: &World) -> Result<Vec<(u64, String)>> {
    let checkpoints = world.checkpoints()?;
    Ok(checkpoints
        .into_iter()
        .map(|c| (c.number, c.trigger))
        .collect())
}

/// Runs the job under `spec`, lets `announce` say that the machine ends at a time, waits for two checkpoints before that, takes the
/// machine away, and resumes the job on another.
fn survives(
    world: &World,
    spec: &JobSpec,
    source: &str,
    announce: impl FnOnce(SystemTime) -> Result<()>,
) -> Result<()> {
    disturbed(world, spec, |world, phos| {
        wait_step(world, phos, 5)?;
        ensure!(world.json(&["status"])?["preemption"].is_null());
        let end = SystemTime::now() + GRACE;
        announce(end)?;
        let (first, _) = stored(world, phos, 1)?;
        let status = world.json(&["status"])?;
        let said = &status["preemption"];
        let at = said["at_ms"].as_u64().context("no time")?;
        let expected = end.duration_since(SystemTime::UNIX_EPOCH)?.as_millis() as u64;
        // Services say whole seconds; Google's says none, and means 30 s.
        let tolerance = if source == "gcp" { 30_000 } else { 1_000 };
        ensure!(
            said["source"] == source && at.abs_diff(expected) <= tolerance,
            "{status}"
        );
        let between = last_step(world).context("no step")?;
        let (second, taken_ms) = stored(world, phos, 2)?;
        let late = (taken_ms - at as f64) / 1e3;
        // It is begun with room for half as much again as the first took and three seconds (`policies::preemption`); a machine on
        // which the second took longer than that is a busy one. A second of either was spent on asking.
        ensure!(
            late <= 0.0 || second > first.mul_add(1.5, 3.0) - 1.0,
            "the second, of {second} s, came {late} s too late after one of {first} s"
        );
        let found = triggers(world)?;
        ensure!(
            found.len() == 2 && found.iter().all(|(_, trigger)| trigger == "preemption"),
            "{found:?}"
        );
        // It trained on meanwhile, and does.
        wait_step(world, phos, between + 1)?;
        world.lose_node()?;
        *phos = world.start_elsewhere(&spec.with_env("PHOS_PREEMPTION_NOTICES", "none"))?;
        wait_said(phos, &[&format!("resumed checkpoint={} ", found[1].0)])
    })
}

/// Waits until there are so many checkpoints. What the last took until it was stored, in seconds, and when that was, in milliseconds since 1970: who looks
/// hears of it later on a busy machine.
fn stored(world: &World, phos: &PhosFt, number: usize) -> Result<(f64, f64)> {
    // A machine that stood still meanwhile may have both at once.
    let what = format!("checkpoint {number} for the notice");
    wait_for(&what, LIMIT, || {
        let found = triggers(world).ok()?;
        let status = world.json(&["status"]).ok()?;
        let last = &status["last"];
        // It is listed a moment before the sidecar says so.
        (found.len() >= number && last["id"] == found.last()?.0)
            .then(|| Some((last["seconds"].as_f64()?, last["taken_ms"].as_f64()?)))?
    })
    .with_context(|| phos.tail())
}

#[test]
fn of_a_spot_instance_of_aws() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let service = Metadata::new("x-aws-ec2-metadata-token: a-token")?;
    let spec = spec().with_phos(&["--preemption-notices", "aws"]).with_env(
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        &format!("http://{}", service.address),
    );
    survives(&world, &spec, "aws", |end| {
        let time = DateTime::<Utc>::from(end).format("%Y-%m-%dT%H:%M:%SZ");
        let answer = format!(r#"{{"action": "terminate", "time": "{time}"}}"#);
        service.say("/latest/meta-data/spot/instance-action", answer);
        Ok(())
    })
}

#[test]
fn of_a_preemptible_instance_of_google() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let service = Metadata::new("metadata-flavor: Google")?;
    service.say("/computeMetadata/v1/instance/preempted", "FALSE");
    service.say("/computeMetadata/v1/instance/maintenance-event", "NONE");
    let spec = spec()
        .with_phos(&["--preemption-notices", "gcp"])
        .with_env("GCE_METADATA_HOST", &service.address);
    survives(&world, &spec, "gcp", |_| {
        service.say("/computeMetadata/v1/instance/preempted", "TRUE");
        Ok(())
    })
}

#[test]
fn of_a_spot_machine_of_azure() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let service = Metadata::new("metadata: true")?;
    const EVENTS: &str = "/metadata/scheduledevents?api-version=2020-07-01";
    let events = |of: &str, end: SystemTime| {
        let time = DateTime::<Utc>::from(end).format("%a, %d %b %Y %H:%M:%S GMT");
        format!(
            r#"{{"DocumentIncarnation": 2, "Events": [{{"EventId": "A", "EventType": "Preempt", "ResourceType": "VirtualMachine", "Resources": ["{of}"], "EventStatus": "Scheduled", "NotBefore": "{time}"}}]}}"#
        )
    };
    service.say(
        "/metadata/instance/compute/name?api-version=2021-02-01&format=text",
        "trainer-1",
    );
    // Another machine of the same group is nobody's business here.
    service.say(EVENTS, events("trainer-2", SystemTime::now()));
    let spec = spec()
        .with_phos(&["--preemption-notices", "azure"])
        .with_env(
            "PHOS_AZURE_METADATA_ENDPOINT",
            &format!("http://{}", service.address),
        );
    survives(&world, &spec, "azure", |end| {
        service.say(EVENTS, events("trainer-1", end));
        Ok(())
    })
}

/// As a scheduler's prologue creates it. It is withdrawn first, and the job runs on as if nothing had been said.
#[test]
fn of_a_file() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let file = world.path("tmp/preempted");
    let path = file.display().to_string();
    let spec = spec().with_phos(&["--preemption-file", &path]);
    survives(&world, &spec, "file", |end| {
        let time = DateTime::<Utc>::from(end).to_rfc3339();
        // Whole, or not at all.
        let new = world.path("tmp/new");
        std::fs::write(&new, time)?;
        std::fs::rename(&new, &file)?;
        Ok(())
    })
}

#[test]
fn one_that_is_withdrawn_or_has_no_time_costs_one_checkpoint() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let file = world.path("tmp/preempted");
    let path = file.display().to_string();
    let spec = spec().with_phos(&["--preemption-file", &path]);
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        std::fs::write(&file, "")?;
        stored(world, phos, 1)?;
        let said = || Some(world.json(&["status"]).ok()?["preemption"].clone());
        ensure!(said().is_some_and(|s| s["source"] == "file" && s["at_ms"].is_null()));
        std::fs::remove_file(&file)?;
        wait_for("the notice to be withdrawn", LIMIT, || {
            said().filter(|s| s.is_null())
        })?;
        ensure!(triggers(world)?.len() == 1);
        Ok(())
    })
}

/// A metadata service that does not answer costs the job nothing.
#[test]
fn of_nobody_who_answers() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let closed = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
    let spec = spec().with_phos(&["--preemption-notices", "aws"]).with_env(
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        &format!("http://{closed}"),
    );
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        ensure!(world.json(&["status"])?["preemption"].is_null());
        let taken = world.json(&["checkpoint"]).with_context(|| phos.tail())?;
        ensure!(taken["trigger"] == "on-demand", "{taken}");
        kill_job_and_wait(world, phos)
    })
}
