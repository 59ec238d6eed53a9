//! The page about a job, in a real browser: Chromium, driven by its WebDriver.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use phos_integration_tests::scenario::{LIMIT, checkpoint, kill_job_and_wait, wait_step};
use phos_integration_tests::{
    COSTLY, JobSpec, World, kill_all, stop_process, wait_every, wait_for,
};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

/// Where `make screenshots` wants pictures.
const PICTURES: &str = "PHOS_SCREENSHOTS";

/// A browser with one window, which ends with this.
struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.ask("DELETE", &format!("/session/{}", self.session), &json!({}));
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

impl Browser {
    fn start(profile: &Path) -> Result<Self> {
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let driver = Command::new("chromedriver")
            .arg(format!("--port={}", address.port()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("chromedriver, which scripts/browser.sh fetches")?;
        let mut browser = Self {
            driver,
            address,
            session: String::new(),
        };
        wait_for("chromedriver", LIMIT, || TcpStream::connect(address).ok())?;
        let profile = format!("--user-data-dir={}", profile.display());
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            &profile,
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let made = browser.ask("POST", "/session", &wanted)?;
        let id = made["sessionId"].as_str().context("no session")?;
        id.clone_into(&mut browser.session);
        Ok(browser)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(LIMIT))?;
        let body = body.to_string();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        // The driver leaves the connection open.
        let mut answers = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            answers.read_line(&mut line)?;
            let Some((name, value)) = line.trim().split_once(':') else {
                if line.trim().is_empty() {
                    break;
                }
                continue;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        answers.read_exact(&mut body)?;
        let mut answer: Value = serde_json::from_slice(&body)?;
        let value = answer["value"].take();
        if let Some(error) = value["error"].as_str() {
            bail!("{path}: {error}: {}", value["message"]);
        }
        Ok(value)
    }

    fn of_session(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask("POST", &format!("/session/{}/{path}", self.session), body)
    }

    fn open(&self, url: &str) -> Result<()> {
        self.of_session("url", &json!({ "url": url })).map(drop)
    }

    /// What a script returns.
    fn run(&self, script: &str) -> Result<Value> {
        self.of_session("execute/sync", &json!({ "script": script, "args": [] }))
    }

    fn command(&self, name: &str, parameters: &Value) -> Result<Value> {
        let body = json!({ "cmd": name, "params": parameters });
        self.of_session("goog/cdp/execute", &body)
    }

    /// Waits until a script returns true.
    fn wait(&self, what: &str, script: &str) -> Result<()> {
        let script = format!("return {script}");
        wait_every(COSTLY, what, LIMIT, || {
            (self.run(&script).ok()? == Value::Bool(true)).then_some(())
        })
        .with_context(|| format!("{:?}", self.run("return document.body.innerText")))
    }

    fn wait_verdict(&self, state: &str) -> Result<()> {
        let script = format!("document.getElementById('verdict').dataset.state === '{state}'");
        self.wait(&format!("the verdict {state}"), &script)
    }

    fn look(&self, width: u32, scheme: &str) -> Result<()> {
        let metrics =
            json!({ "width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false });
        self.command("Emulation.setDeviceMetricsOverride", &metrics)?;
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.command("Emulation.setEmulatedMedia", &features)?;
        Ok(())
    }

    /// Saves a picture, where somebody wants pictures.
    fn picture(&self, name: &str) -> Result<()> {
        let Some(dir) = std::env::var_os(PICTURES) else {
            return Ok(());
        };
        let size = self.command("Page.getLayoutMetrics", &json!({}))?;
        let size = &size["cssContentSize"];
        let height = size["height"].as_f64().unwrap_or(0.0).min(1400.0);
        let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1 });
        let how = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let picture = self.command("Page.captureScreenshot", &how)?;
        let data = picture["data"].as_str().context("no picture")?;
        std::fs::write(
            Path::new(&dir).join(format!("{name}.png")),
            BASE64.decode(data)?,
        )?;
        Ok(())
    }

    /// Looks for what makes the page hard to use for some, in both schemes, on a telephone and on a desk.
    fn audit(&self, when: &str) -> Result<()> {
        for (width, scheme) in [
            (400, "light"),
            (400, "dark"),
            (1200, "dark"),
            (1200, "light"),
        ] {
            self.look(width, scheme)?;
            // It is drawn anew for another width, in its time.
            let fits = "document.documentElement.scrollWidth <= window.innerWidth";
            self.wait(&format!("the page to fit {width} px {when}"), fits)?;
            let wrong = self.run(include_str!("audit.js"))?;
            let wrong = wrong.as_array().context("no list")?;
            ensure!(wrong.is_empty(), "{when}, {width} px, {scheme}: {wrong:#?}");
        }
        Ok(())
    }

    /// What the page complained of: its own errors, and what its policy forbids.
    fn complaints(&self) -> Result<Vec<String>> {
        let log = self.of_session("se/log", &json!({ "type": "browser" }))?;
        let lines = log.as_array().cloned().unwrap_or_default();
        let message = |line: &Value| line["message"].as_str().unwrap_or("?").to_owned();
        Ok(lines.iter().map(message).collect())
    }
}

/// The life of a job as the page shows it, without ever being loaded again: a checkpoint, a crash, a time without protection, the loss of
/// the sidecar.
#[test]
fn a_life_as_the_page_shows_it() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let browser = Browser::start(&world.path("browser"))?;
    let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_trainer(&["--step-ms", "20"])
    .with_phos(&["--metrics", &address.to_string()])
    .with_phos(&["--quiesce-timeout", "5s"]);
    let phos = world.start(&spec)?;
    wait_step(&world, &phos, 5)?;
    browser.look(1200, "light")?;
    browser.open(&format!("http://{address}/"))?;
    browser.run("window.loadedOnce = true")?;
    browser.wait(
        "the job's name",
        &format!("document.title.includes('{}')", world.job),
    )?;
    browser.wait_verdict("waiting")?;
    let number = checkpoint(&world, &phos)?;
    browser.wait_verdict("protected")?;
    let row = format!("tr[data-checkpoint=\"{number}\"]");
    let row = format!("!!document.querySelector('#rows {row}')");
    browser.wait("its row", &row)?;
    // What comes from the metrics.
    let kept = "/Kept training\\s+[0-9.]+.%/.test(document.getElementById('figures').innerText)";
    browser.wait("the figures", kept)?;
    for _ in 0..5 {
        checkpoint(&world, &phos)?;
    }
    let rows = "document.querySelectorAll('#rows tr[data-checkpoint]').length === 6";
    browser.wait("six rows", rows)?;
    browser.picture("page-training")?;
    browser.audit("while it trains")?;

    kill_job_and_wait(&world, &phos)?;
    browser.wait(
        "the crash",
        "!!document.querySelector('#timeline .mark.crash')",
    )?;
    browser.wait(
        "the resume",
        "!!document.querySelector('#timeline .mark.resume')",
    )?;
    browser.wait_verdict("protected")?;
    browser.picture("page-after-a-crash")?;
    browser.audit("after a crash")?;
    checkpoint(&world, &phos)?;

    // A rank that stands still lets no checkpoint be taken.
    let job = *world.tree().job.last().context("no job")?;
    let job = stop_process(job)?;
    let refused = world.run(&["checkpoint"]);
    ensure!(!refused?.status.success(), "{}", phos.tail());
    browser.wait_verdict("unprotected")?;
    browser.audit("while nothing is protected")?;
    let problem = "!!document.querySelector('#problems > [data-problem=unprotected]')";
    browser.wait("what is wrong", problem)?;
    for (width, scheme) in [(400, "light"), (400, "dark"), (2000, "dark")] {
        browser.look(width, scheme)?;
        let fits = "document.documentElement.scrollWidth <= window.innerWidth";
        browser.wait(&format!("no sideways scroll at {width}"), fits)?;
        if (width, scheme) == (400, "dark") {
            browser.picture("page-unprotected-narrow-dark")?;
        }
    }
    kill_process(job, Signal::CONT)?;
    checkpoint(&world, &phos)?;
    browser.wait_verdict("protected")?;

    let complaints = browser.complaints()?;
    ensure!(complaints.is_empty(), "{complaints:?}");
    kill_all(&world.tree().sidecar);
    world.kill_everything()?;
    browser.wait_verdict("unreachable")?;
    browser.audit("without the sidecar")?;
    ensure!(browser.run("return window.loadedOnce")? == true);
    Ok(())
}
