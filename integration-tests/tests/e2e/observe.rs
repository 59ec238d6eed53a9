//! What people and machines see of a running sidecar: metrics, events, who may see them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, kill_job_and_wait, last_step, sidecar, wait_step,
};
use phos_integration_tests::{
    JobSpec, World, bin_dir, kill_all, processes_with, stop_process, wait_for,
};
use prost::Message as _;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

/// A port that nobody has at present.
fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

fn spec() -> JobSpec {
    JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_trainer(&["--step-ms", "20"])
}

fn socket(world: &World) -> PathBuf {
    world.run_dir().join(&world.job).join("http.sock")
}

/// A request and all of its answer: status, and what follows the headers.
fn ask(mut stream: impl Read + Write, path: &str, host: &str) -> Result<(u16, String)> {
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    status
        .zip(body)
        .with_context(|| format!("no answer: {text}"))
}

fn get(address: SocketAddr, path: &str) -> Result<String> {
    let (status, body) = ask(TcpStream::connect(address)?, path, &address.to_string())?;
    ensure!(status == 200, "{path}: {status}: {body}");
    Ok(body)
}

/// The value of a figure, by its name and labels as they are written.
fn value(metrics: &str, name: &str) -> Result<f64> {
    metrics
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
        .with_context(|| format!("no {name} in\n{metrics}"))
}

/// The events that the sidecar knows, as `phos-ft events` prints them.
fn events(world: &World) -> Result<Vec<Value>> {
    let out = world.run(&["events", "--json"])?;
    ensure!(out.status.success(), "{out:?}");
    let lines = String::from_utf8(out.stdout)?;
    let parsed = lines.lines().map(serde_json::from_str);
    Ok(parsed.collect::<Result<_, _>>()?)
}

fn names(events: &[Value]) -> Vec<&str> {
    let names = events.iter().map(|event| event["event"].as_str());
    // How often it is held in vain is a matter of luck.
    let names = names.map(|name| name.unwrap_or("?"));
    names.filter(|name| *name != "quiesce-retried").collect()
}

/// SIGKILLs this sidecar, and waits until the next one has found the job.
fn replace(world: &World, sidecar: i32) -> Result<()> {
    kill_all(&[sidecar]);
    wait_for("the next sidecar to find the job", LIMIT, || {
        (names(&events(world).ok()?).last() == Some(&"job-found")).then_some(())
    })
}

/// What a job goes through is in its metrics and events; the next sidecar goes on with the events.
#[test]
fn a_checkpoint_a_crash_and_a_resume() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let address = free_port()?;
    let spec = spec().with_phos(&["--metrics", &address.to_string()]);
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        let before = get(address, "/metrics")?;
        ensure!(before.ends_with("# EOF\n"), "{before}");
        ensure!(value(&before, "phos_job_running")? == 1.0, "{before}");
        checkpoint(world, phos)?;
        let at = last_step(world).context("no step")?;
        wait_step(world, phos, at + 20)?;
        kill_job_and_wait(world, phos)?;
        checkpoint(world, phos)?;

        let stored = r#"phos_checkpoints_total{result="stored",reason="on-demand"}"#;
        // Who asked is answered before it is written down, and figures follow from that.
        let metrics = wait_for("the figures of both checkpoints", LIMIT, || {
            let metrics = get(address, "/metrics").ok()?;
            (value(&metrics, stored).ok()? == 2.0).then_some(metrics)
        })?;
        for (name, expected) in [
            (stored, 2.0),
            (r#"phos_restarts_total{reason="crash"}"#, 1.0),
            (r#"phos_unprotected{reason="none"}"#, 0.0),
            (r#"phos_checkpoint_stop_seconds_count{phase="total"}"#, 2.0),
            (r#"phos_checkpoint_stop_seconds_count{phase="criu"}"#, 2.0),
            ("phos_checkpoint_duration_seconds_count", 2.0),
            ("phos_job_running", 1.0),
            ("phos_upload_backlog_bytes", 0.0),
        ] {
            let found = value(&metrics, name)?;
            ensure!(found == expected, "{name}: {found}\n{metrics}");
        }
        // Twenty steps of 20 ms were lost, at least.
        let lost = value(&metrics, "phos_lost_seconds_total")?;
        ensure!((0.4..600.0).contains(&lost), "{lost}");
        let goodput = value(&metrics, "phos_goodput_ratio")?;
        ensure!(goodput > 0.0 && goodput < 1.0, "{goodput}");
        let image = world.checkpoints()?.last().context("none")?.image_bytes;
        let copied = value(&metrics, r#"phos_checkpoint_bytes_total{kind="copied"}"#)?;
        ensure!(copied > 0.0 && copied <= 2.0 * image as f64, "{copied}");

        let told = events(world)?;
        let expected = [
            "sidecar-started",
            "job-started",
            "checkpoint-started",
            "checkpoint-stored",
            "job-ended",
            "job-resumed",
            "checkpoint-started",
            "checkpoint-stored",
        ];
        ensure!(names(&told) == expected, "{told:?}");
        ensure!(told[4]["how"] == "crashed", "{told:?}");
        let waited = &told[5]["phases_ms"]["wait"];
        ensure!(waited.is_number(), "{told:?}");

        // The next sidecar goes on with the same numbers.
        replace(world, sidecar(world)?)?;
        let newer = events(world)?;
        let seqs: Vec<_> = newer.iter().map(|e| e["seq"].as_u64()).collect();
        ensure!(newer.starts_with(&told) && seqs.is_sorted(), "{newer:?}");
        // Counts begin with it; what is there, it knows.
        let after = wait_for("its metrics", LIMIT, || get(address, "/metrics").ok())?;
        ensure!(value(&after, stored)? == 0.0, "{after}");
        let newest = r#"phos_last_checkpoint_timestamp_seconds{place="store"}"#;
        ensure!(
            value(&after, newest)? == value(&metrics, newest)?,
            "{after}"
        );
        Ok(())
    })
}

/// The socket is for root alone, the port for this machine, and no page of somebody else's can read it.
#[test]
fn who_may_see_it() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let address = free_port()?;
    let spec = spec().with_phos(&["--metrics", &address.to_string()]);
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        let mode = std::fs::metadata(socket(world))?.permissions().mode() & 0o777;
        ensure!(mode == 0o600, "{mode:o}");
        let (status, text) = ask(UnixStream::connect(socket(world))?, "/metrics", "x")?;
        ensure!(status == 200 && text.contains("phos_build_info"), "{text}");
        for (host, expected) in [
            ("localhost:1", 200),
            ("127.0.0.1", 200),
            ("rebound.example", 403),
        ] {
            for path in ["/", "/metrics", "/api/status", "/page.js"] {
                let (status, _) = ask(TcpStream::connect(address)?, path, host)?;
                ensure!(status == expected, "{host} {path}: {status}");
            }
        }
        // Nothing can be done with it.
        let mut stream = TcpStream::connect(address)?;
        let length = "Content-Length: 0\r\nConnection: close";
        write!(
            stream,
            "POST /api/status HTTP/1.1\r\nHost: localhost\r\n{length}\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
        // Clients that ask for nothing do not keep others out of the other place, nor the job from anything.
        let idle: Vec<_> = (0..64).map(|_| TcpStream::connect(address)).collect();
        ensure!(ask(UnixStream::connect(socket(world))?, "/metrics", "x")?.0 == 200);
        checkpoint(world, phos)?;
        drop(idle);
        wait_for("a place to be free", LIMIT, || {
            get(address, "/metrics").ok()
        })?;
        Ok(())
    })
}

/// A port that another program has costs the job nothing, and is taken once it is free.
#[test]
fn a_port_that_is_taken() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let other = TcpListener::bind(("127.0.0.1", 0))?;
    let address = other.local_addr()?;
    let spec = spec().with_phos(&["--metrics", &address.to_string()]);
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        ensure!(
            phos.said()
                .contains("metrics and page cannot be served there")
        );
        drop(other);
        wait_for("the port", LIMIT, || get(address, "/metrics").ok())?;
        Ok(())
    })
}

/// Who follows events hears of them as they happen, from the page's address and on the command line, until the job is over.
#[test]
fn events_are_told_as_they_happen() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let address = free_port()?;
    let spec = spec().with_phos(&["--metrics", &address.to_string()]);
    let mut follower = None;
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        // Before there are others with its command line.
        let sidecar = sidecar(world)?;
        let follow = std::process::Command::new(bin_dir().join("phos-ft"))
            .args(["events", "--follow", "--json", "--job", &world.job])
            .arg("--run-dir")
            .arg(world.run_dir())
            .stdout(std::process::Stdio::piped())
            .spawn()?;
        follower = Some(follow);
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        write!(
            stream,
            "GET /api/events?after=2 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )?;
        checkpoint(world, phos)?;
        let mut text = String::new();
        let mut part = [0; 4096];
        while !text.contains("checkpoint-stored") {
            let read = stream.read(&mut part)?;
            ensure!(read > 0, "it ended: {text}");
            text.push_str(&String::from_utf8_lossy(&part[..read]));
        }
        ensure!(text.contains("content-type: text/event-stream"), "{text}");
        ensure!(
            !text.contains("job-started") && text.contains("checkpoint-started"),
            "{text}"
        );
        // Another sidecar in between is none of the follower's business.
        replace(world, sidecar)?;
        // It lives for longer than the follower takes to find it.
        checkpoint(world, phos).map(drop)
    })?;
    let followed = follower.context("nobody follows")?.wait_with_output()?;
    ensure!(followed.status.success(), "{followed:?}");
    let lines = String::from_utf8(followed.stdout)?;
    let parsed = lines.lines().map(serde_json::from_str);
    let told: Vec<Value> = parsed.collect::<Result<_, _>>()?;
    let seqs: Vec<_> = told.iter().filter_map(|e| e["seq"].as_u64()).collect();
    ensure!(
        seqs == (1..=seqs.len() as u64).collect::<Vec<_>>(),
        "{lines}"
    );
    ensure!(names(&told).last() == Some(&"job-ended"), "{lines}");
    Ok(())
}

/// Who follows events before there is a sidecar is told so, and hears of all that happens from the first on.
#[test]
fn events_are_waited_for() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let mut follower = std::process::Command::new(bin_dir().join("phos-ft"))
        .args(["events", "--follow", "--json", "--job", &world.job])
        .arg("--run-dir")
        .arg(world.run_dir())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()?;
    let mut said = String::new();
    let stderr = follower.stderr.take().context("no standard error")?;
    BufReader::new(stderr).read_line(&mut said)?;
    ensure!(said.contains("waiting for one"), "{said}");
    disturbed(&world, &spec(), |world, phos| {
        checkpoint(world, phos).map(drop)
    })?;
    let followed = follower.wait_with_output()?;
    ensure!(followed.status.success(), "{followed:?}");
    let lines = String::from_utf8(followed.stdout)?;
    let parsed = lines.lines().map(serde_json::from_str);
    let told: Vec<Value> = parsed.collect::<Result<_, _>>()?;
    let names = names(&told);
    ensure!(
        names.first() == Some(&"sidecar-started") && names.last() == Some(&"job-ended"),
        "{lines}"
    );
    Ok(())
}

/// A sidecar that takes the place of one whose checkpoints failed knows that the job is not protected, until it is.
#[test]
fn the_next_sidecar_knows_that_the_job_is_not_protected() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let address = free_port()?;
    let metrics = ["--metrics", &address.to_string(), "--quiesce-timeout", "1s"];
    disturbed(&world, &spec().with_phos(&metrics), |world, phos| {
        checkpoint(world, phos)?;
        let job = *world.tree().job.last().context("no job")?;
        let job = stop_process(job)?;
        let refused = world.run(&["checkpoint"]);
        // It is held back by nobody once its successor looks for it.
        let replaced = replace(world, sidecar(world)?);
        kill_process(job, Signal::CONT)?;
        ensure!(!refused?.status.success(), "{}", phos.tail());
        replaced?;
        let now = wait_for("its metrics", LIMIT, || get(address, "/metrics").ok())?;
        ensure!(
            value(&now, r#"phos_unprotected{reason="not-quiet"}"#)? == 1.0,
            "{now}"
        );
        ensure!(world.json(&["status"])?["unprotected"]["reason"] == "not-quiet");
        checkpoint(world, phos)?;
        wait_for("its protection", LIMIT, || {
            let now = get(address, "/metrics").ok()?;
            value(&now, r#"phos_unprotected{reason="none"}"#).ok()
        })?;
        wait_for("the event of that", LIMIT, || {
            (names(&events(world).ok()?).last() == Some(&"protected")).then_some(())
        })
    })
}

/// Whoever forgot terminals that follow events can still ask for a checkpoint.
#[test]
fn however_many_follow_a_checkpoint_can_be_asked_for() -> Result<()> {
    let world = World::simulated(1, 256)?;
    disturbed(&world, &spec(), |world, phos| {
        wait_step(world, phos, 5)?;
        let socket = world.run_dir().join(&world.job).join("sidecar.sock");
        let follow = || -> Result<UnixStream> {
            let mut stream = UnixStream::connect(&socket)?;
            stream.write_all(b"{\"events\":{\"after\":0}}\n")?;
            // It is one of them now.
            stream.read_exact(&mut [0])?;
            Ok(stream)
        };
        // One whose reader left (`| grep -m1`) ends, although nothing happens.
        let mut left = std::process::Command::new(bin_dir().join("phos-ft"))
            .args(["events", "--follow", "--job", &world.job, "--run-dir"])
            .arg(world.run_dir())
            .stdout(std::process::Stdio::piped())
            .spawn()?;
        let mut reader = left.stdout.take().context("no output")?;
        reader.read_exact(&mut [0])?;
        drop(reader);
        let ended = wait_for("it to end", LIMIT, || left.try_wait().ok().flatten());
        if ended.is_err() {
            left.kill()?;
        }
        ensure!(ended?.success());
        let followers = (0..32).map(|_| follow()).collect::<Result<Vec<_>>>()?;
        let one_more = world.run(&["events"])?;
        let said = String::from_utf8_lossy(&one_more.stderr).into_owned();
        ensure!(said.contains("others follow the events already"), "{said}");
        checkpoint(world, phos)?;
        drop(followers);
        wait_for("a place", LIMIT, || events(world).ok().map(drop))
    })
}

/// A program of the user's hears of each event, once and in order, the job's end included. One that hangs holds nobody up.
#[test]
fn a_program_that_hears_of_events() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let (program, heard) = (world.path("hears"), world.path("heard"));
    let script = format!(
        "#!/bin/sh\necho \"$1 $2 $(cat)\" >> {}\n[ \"$1\" != checkpoint-started ] || exit 3\n",
        heard.display()
    );
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    let spec = spec().with_phos(&["--on-event", &program.display().to_string()]);
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        wait_for("the failure to be said", LIMIT, || {
            let said = phos.said();
            (said.matches("the program of --on-event failed").count() == 1).then_some(())
        })
    })?;
    let heard = std::fs::read_to_string(&heard)?;
    let mut seqs = Vec::new();
    let mut names = Vec::new();
    for line in heard.lines() {
        let mut words = line.splitn(3, ' ');
        let (name, job) = (words.next().unwrap_or(""), words.next());
        ensure!(job == Some(&world.job), "{line}");
        let event: Value = serde_json::from_str(words.next().unwrap_or(""))?;
        ensure!(event["event"] == name, "{line}");
        seqs.extend(event["seq"].as_u64());
        names.push(name);
    }
    ensure!(
        seqs == (1..=seqs.len() as u64).collect::<Vec<_>>(),
        "{heard}"
    );
    ensure!(names.first() == Some(&"sidecar-started"), "{heard}");
    ensure!(names.last() == Some(&"job-ended"), "{heard}");
    Ok(())
}

#[test]
fn a_program_that_hangs_holds_nobody_up() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let program = world.path("hangs");
    std::fs::write(&program, "#!/bin/sh\nsleep 1000\n")?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    let spec = spec().with_phos(&["--on-event", &program.display().to_string()]);
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        checkpoint(world, phos).map(drop)
    })?;
    // What it started ends with it.
    let left = processes_with(&[&program.display().to_string()]);
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

/// A Prometheus that ends with this.
struct Prometheus {
    child: std::process::Child,
    address: SocketAddr,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The repository's files for those who look.
fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(path)
}

impl Prometheus {
    /// With the repository's configuration, but of this sidecar, and each second.
    fn start(world: &World, of: SocketAddr) -> Result<Self> {
        let dir = world.path("prometheus");
        std::fs::create_dir(&dir)?;
        let config = std::fs::read_to_string(repository("docker/prometheus/prometheus.yml"))?;
        ensure!(config.contains("127.0.0.1:9464") && config.contains("15s"));
        let config = config.replace("127.0.0.1:9464", &of.to_string());
        std::fs::write(dir.join("prometheus.yml"), config.replace("15s", "1s"))?;
        std::fs::copy(
            repository("docker/prometheus/alerts.yml"),
            dir.join("alerts.yml"),
        )?;
        let address = free_port()?;
        let child = std::process::Command::new("prometheus")
            .arg(format!(
                "--config.file={}",
                dir.join("prometheus.yml").display()
            ))
            .arg(format!(
                "--storage.tsdb.path={}",
                dir.join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .spawn()
            .context("prometheus, which scripts/setup.sh installs")?;
        Ok(Self { child, address })
    }

    /// What an expression is at present: one value for each series.
    fn query(&self, expression: &str) -> Result<Vec<Value>> {
        let encoded: String = (expression.bytes())
            .map(|b| match b {
                b if b.is_ascii_alphanumeric() => char::from(b).to_string(),
                b => format!("%{b:02x}"),
            })
            .collect();
        let path = format!("/api/v1/query?query={encoded}");
        let (_, body) = ask(TcpStream::connect(self.address)?, &path, "localhost")?;
        let answer: Value = serde_json::from_str(&body)?;
        ensure!(answer["status"] == "success", "{expression}: {answer}");
        let result = answer["data"]["result"].as_array();
        Ok(result.context("no result")?.clone())
    }
}

/// The expressions of the dashboard, with what Grafana would put in.
fn expressions() -> Result<Vec<String>> {
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(repository(
        "docker/grafana/phos-ft.json",
    ))?)?;
    let panels = dashboard["panels"].as_array().context("no panels")?;
    let of = |panel: &Value| panel["targets"].as_array().cloned().unwrap_or_default();
    let all = panels.iter().flat_map(of).filter_map(|target| {
        let expression = target["expr"].as_str()?;
        let expression = expression.replace("$job", ".*").replace("$instance", ".*");
        Some(expression.replace("$__rate_interval", "1m"))
    });
    Ok(all.collect())
}

/// A real Prometheus takes the figures as they are; each panel of the dashboard has something to show, and no rule fires.
#[test]
fn prometheus_and_the_dashboard() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let address = free_port()?;
    let spec = JobSpec {
        // Long enough that none is late on a slow machine: then a rule would fire.
        interval: "60s".into(),
        ..spec()
    }
    .with_phos(&["--metrics", &address.to_string()]);
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        let prometheus = Prometheus::start(world, address)?;
        let seen = |expression: &str| {
            wait_for(expression, LIMIT, || {
                let found = prometheus.query(expression).ok()?;
                (!found.is_empty()).then_some(found)
            })
            .with_context(|| phos.tail())
        };
        seen(r#"phos_job_running{job="phos-ft"} == 1"#)?;
        checkpoint(world, phos)?;
        seen(r#"increase(phos_checkpoints_total{result="stored"}[1m]) > 0"#)?;
        kill_job_and_wait(world, phos)?;
        seen(r#"phos_restarts_total{reason="crash"} == 1"#)?;
        let expressions = expressions()?;
        ensure!(expressions.len() > 15, "{expressions:?}");
        for expression in expressions {
            // Where the job fell quiet at once, there is none of these.
            if expression.contains("phos_quiesce_retries_total") {
                prometheus.query(&expression)?;
            } else {
                seen(&expression)?;
            }
        }
        let firing = prometheus.query(r#"ALERTS{alertstate="firing"}"#)?;
        ensure!(firing.is_empty(), "{firing:?}");
        Ok(())
    })
}

/// What wakes somebody and what does not, over hours that a test has not.
#[test]
fn rules_for_alerts() -> Result<()> {
    for (what, file) in [
        (["check", "rules"], "alerts.yml"),
        (["test", "rules"], "alerts.test.yml"),
        (["check", "config"], "prometheus.yml"),
    ] {
        let out = std::process::Command::new("promtool")
            .args(what)
            .arg(repository("docker/prometheus").join(file))
            .output()
            .context("promtool, which scripts/setup.sh installs")?;
        ensure!(out.status.success(), "{file}: {out:?}");
    }
    Ok(())
}

/// On a terminal it draws until somebody presses q, and puts the terminal back; elsewhere it says what prints instead.
#[test]
fn top_on_a_terminal() -> Result<()> {
    let world = World::simulated(1, 256)?;
    disturbed(&world, &spec(), |world, phos| {
        let picture = std::env::var_os("PHOS_SCREENSHOTS");
        let checkpoints = if picture.is_some() { 14 } else { 1 };
        for _ in 0..checkpoints {
            checkpoint(world, phos)?;
        }
        let elsewhere = world.run(&["top"])?;
        let said = String::from_utf8_lossy(&elsewhere.stderr).into_owned();
        ensure!(elsewhere.status.code() == Some(64), "{elsewhere:?}");
        ensure!(said.contains("phos-ft status"), "{said}");
        // A terminal of the size that `script` gives; its keys come when it has drawn.
        let run_dir = world.run_dir();
        let top = format!(
            "stty rows 40 cols 120; {} top --job {} --run-dir {}; echo ended $?",
            bin_dir().join("phos-ft").display(),
            world.job,
            run_dir.display()
        );
        let mut child = std::process::Command::new("script")
            .args(["-qfec", &top, "/dev/null"])
            .env("TERM", "xterm-256color")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()?;
        let mut out = child.stdout.take().context("no output")?;
        let mut keys = child.stdin.take().context("no input")?;
        let (mut text, mut part) = (String::new(), [0; 4096]);
        // Words, as spaces are not drawn where there was nothing.
        // In the table, and among the events, neither of which has room for all that the picture is made of.
        while text.matches("on-demand").count() < 2 * checkpoints.min(3)
            || !["protected:", "stops:"]
                .iter()
                .all(|word| text.contains(word))
        {
            let read = out.read(&mut part)?;
            ensure!(read > 0, "it ended: {text}");
            text.push_str(&String::from_utf8_lossy(&part[..read]));
        }
        // What stands on the terminal now, for `make screenshots`.
        if let Some(folder) = picture {
            std::fs::write(PathBuf::from(folder).join("top.ansi"), &text)?;
        }
        keys.write_all(b"q")?;
        out.read_to_string(&mut text)?;
        child.wait()?;
        // The alternate screen is left.
        ensure!(text.contains("\u{1b}[?1049l"), "{text:?}");
        ensure!(text.contains("ended 0"), "{text:?}");
        Ok(())
    })
}

/// A collector of traces: what it was sent so far.
struct Collector {
    address: SocketAddr,
    taken: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Collector {
    fn start() -> Result<Collector> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let taken = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&taken);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = Collector::take(stream, &into);
            }
        });
        Ok(Collector { address, taken })
    }

    /// Takes what comes over one connection.
    fn take(stream: TcpStream, into: &Mutex<Vec<ExportTraceServiceRequest>>) -> Result<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let (mut line, mut length) = (String::new(), 0);
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            ensure!(line.starts_with("POST /v1/traces "), "{line}");
            loop {
                line.clear();
                reader.read_line(&mut line)?;
                let header = line.trim().to_lowercase();
                if header.is_empty() {
                    break;
                }
                if let Some(said) = header.strip_prefix("content-length:") {
                    length = said.trim().parse()?;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            let request = ExportTraceServiceRequest::decode(body.as_slice())?;
            into.lock()
                .map_err(|_| anyhow::anyhow!("poisoned"))?
                .push(request);
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
            reader.get_mut().write_all(answer.as_bytes())?;
        }
    }

    fn spans(&self) -> Vec<Span> {
        let taken = self.taken.lock().map(|taken| taken.clone());
        let resources = taken.unwrap_or_default().into_iter();
        let resources = resources.flat_map(|request| request.resource_spans);
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }
}

/// Checkpoints and resumes are traces with their phases, for a collector that listens; one that does not costs nothing.
#[test]
fn checkpoints_and_resumes_are_traced() -> Result<()> {
    let collector = Collector::start()?;
    let world = World::simulated(1, 256)?;
    let endpoint = format!("http://{}", collector.address);
    let spec = spec().with_phos(&["--otlp-endpoint", &endpoint]);
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)?;
        checkpoint(world, phos).map(drop)
    })?;
    // The sidecar has ended, and sent what was left.
    let spans = collector.spans();
    let named = |name: &str| {
        spans
            .iter()
            .filter(|span| span.name == name)
            .collect::<Vec<_>>()
    };
    let checkpoints = named("checkpoint");
    ensure!(checkpoints.len() >= 2, "{spans:?}");
    ensure!(named("resume").len() == 1, "{spans:?}");
    for span in checkpoints {
        ensure!(span.parent_span_id.is_empty(), "{span:?}");
        let within = |parent: &Span| {
            let of_it = |span: &&Span| {
                span.trace_id == parent.trace_id && span.parent_span_id == parent.span_id
            };
            spans.iter().filter(of_it).collect::<Vec<_>>()
        };
        let stop = within(span).into_iter().find(|part| part.name == "stop");
        let stop = stop.with_context(|| format!("no stop in {spans:?}"))?;
        let phases = within(stop);
        for name in ["quiesce", "name", "criu", "control_checkpoint", "attach"] {
            ensure!(
                phases.iter().any(|phase| phase.name == name),
                "no {name} in {phases:?}"
            );
        }
        for phase in phases {
            ensure!(
                phase.start_time_unix_nano >= stop.start_time_unix_nano,
                "{phase:?}"
            );
            ensure!(
                phase.end_time_unix_nano >= phase.start_time_unix_nano,
                "{phase:?}"
            );
        }
    }
    Ok(())
}

/// Nobody takes the traces: the job and the end of phos-ft do not wait for that.
#[test]
fn a_collector_that_is_away() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let endpoint = format!("http://{}", free_port()?);
    let spec = spec().with_phos(&["--otlp-endpoint", &endpoint]);
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos).map(drop)
    })
}

/// What commands print as JSON is what `docs/schemas` says, and all of it.
#[test]
fn json_is_as_its_schemas_say() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec().with_trainer(&["--hints"]);
    disturbed(&world, &spec, |world, phos| {
        let into = world.path("printed");
        std::fs::create_dir(&into)?;
        let keep = |name: &str, args: &[&str]| -> Result<Value> {
            let out = world.run(&[args, &["--json"]].concat())?;
            ensure!(out.status.success(), "{args:?}: {out:?}");
            std::fs::write(into.join(format!("{name}.json")), &out.stdout)?;
            Ok(serde_json::from_slice(&out.stdout)?)
        };
        wait_step(world, phos, 5)?;
        let first = keep("checkpoint", &["checkpoint"])?["id"].to_string();
        let second = keep("checkpoint.2", &["checkpoint"])?["id"].to_string();
        kill_job_and_wait(world, phos)?;
        for name in ["status", "list", "verify", "doctor", "config"] {
            // Not all of a test's machine is fit for jobs: `doctor` then ends with 1, and says why.
            let out = world.run(&[name, "--json"])?;
            std::fs::write(into.join(format!("{name}.json")), &out.stdout)?;
        }
        keep("show", &["show", &second])?;
        keep("diff", &["diff", &first, &second])?;
        keep("prune", &["prune", "--keep-last", "1", "--dry-run"])?;
        let exported = world.path("exported").display().to_string();
        keep("export", &["export", &second, &exported])?;
        let mut init = std::process::Command::new(bin_dir().join("phos-ft"));
        let store = format!("file://{}", world.path("new").display());
        let out = init
            .args(["init", "--dry-run", "--json", &store])
            .output()?;
        std::fs::write(into.join("init.json"), out.stdout)?;
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let checked = std::process::Command::new(root.join(".build/venv/bin/python"))
            .arg(root.join("scripts/schemas.py"))
            .arg(&into)
            .output()
            .context("the tests' Python, which scripts/setup.sh makes")?;
        ensure!(
            checked.status.success(),
            "{}",
            String::from_utf8_lossy(&checked.stderr)
        );
        Ok(())
    })
}
