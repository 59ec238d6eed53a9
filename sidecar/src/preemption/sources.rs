//! The sources of notices: what each is asked, and how its answer reads.
//!
//! | source | asked | says |
//! |---|---|---|
//! | AWS | `PUT /latest/api/token`, `GET /latest/meta-data/spot/instance-action` (IMDSv2) | 404, or `{"action": "terminate", "time": "2026-01-01T08:22:00Z"}` two minutes ahead |
//! | Google Cloud | `GET /computeMetadata/v1/instance/preempted` and `…/maintenance-event` | `TRUE` 30 s ahead; `TERMINATE_ON_HOST_MAINTENANCE` |
//! | Azure | `GET /metadata/scheduledevents?api-version=2020-07-01` | `Events` with `EventType`, `Resources`, `NotBefore`; `Preempt` 30 s ahead |
//! | file | whether it is there | nothing, or a time (RFC 3339) |
//!
//! Documented by the vendors as "Spot Instance interruption notices", "Instance metadata: preempted" and "Scheduled Events for Linux VMs".

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use chrono::DateTime;
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::StatusCode;
use serde::Deserialize;

use super::Notice;

/// The address of the metadata services of all three.
const LINK_LOCAL: &str = "http://169.254.169.254";
/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(1);
/// How long the first answer of Azure's service may take: it begins to watch the machine then, which it says takes up to two minutes.
const FIRST_PATIENCE: Duration = Duration::from_secs(130);
/// The most bytes of an answer.
const MAX_ANSWER: usize = 256 << 10;
/// The most bytes of a file, or of a word of an answer that is shown.
const MAX_WORD: usize = 200;
/// How long after its notice Google takes a machine away.
const GCP_GRACE: Duration = Duration::from_secs(30);

/// Why a source could not be asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookError {
    #[error(
        "the metadata service does not answer: {0}. A container reaches it with the host's network or, on EC2, a hop limit of 2; \
         --preemption-notices none switches this off"
    )]
    Http(#[from] reqwest::Error),
    #[error(
        "the metadata service answers {url} with {status}: enable it for this machine, or switch this off with --preemption-notices none"
    )]
    Status { url: String, status: StatusCode },
    #[error(
        "the metadata service answers {url} with something unexpected ({what}): give the cloud that this is with --preemption-notices, \
         or none"
    )]
    Answer { url: String, what: String },
    #[error(
        "{path} cannot be read: {source}. Let the sidecar's user read it, or give another --preemption-file"
    )]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
}

/// Someone who knows when this machine will be taken away.
pub(super) trait Source: Send {
    /// Its name in logs.
    fn name(&self) -> &'static str;
    /// The notice in force, if there is one.
    fn look(&mut self) -> BoxFuture<'_, Result<Option<Notice>, LookError>>;
}

/// The metadata service at one address.
struct Service {
    client: reqwest::Client,
    base: String,
}

impl Service {
    /// `given` replaces the usual address: the vendors' tools read the same variables.
    fn new(given: Option<String>) -> Result<Service, reqwest::Error> {
        Ok(Service {
            client: reqwest::Client::builder()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(CONNECT)
                .build()?,
            base: given.map_or_else(
                || LINK_LOCAL.to_owned(),
                |base| base.trim_end_matches('/').to_owned(),
            ),
        })
    }

    /// Status and body, which is bounded.
    async fn ask(
        &self,
        request: reqwest::RequestBuilder,
        url: &str,
    ) -> Result<(StatusCode, String), LookError> {
        let mut response = request.send().await?;
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await? {
            body.extend_from_slice(&part);
            if body.len() > MAX_ANSWER {
                return Err(LookError::Answer {
                    url: url.to_owned(),
                    what: format!("more than {MAX_ANSWER} bytes"),
                });
            }
        }
        Ok((
            response.status(),
            String::from_utf8_lossy(&body).into_owned(),
        ))
    }

    /// The body of what is there.
    async fn get(&self, path: &str, header: (&str, &str)) -> Result<Option<String>, LookError> {
        self.get_within(PATIENCE, path, header).await
    }

    async fn get_within(
        &self,
        patience: Duration,
        path: &str,
        header: (&str, &str),
    ) -> Result<Option<String>, LookError> {
        let url = format!("{}{path}", self.base);
        let request = self.client.get(&url).timeout(patience);
        let request = request.header(header.0, header.1);
        match self.ask(request, &url).await? {
            (StatusCode::NOT_FOUND, _) => Ok(None),
            (status, body) if status.is_success() => Ok(Some(body)),
            (status, _) => Err(LookError::Status { url, status }),
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A word of an answer as it may be shown and logged.
fn word(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(MAX_WORD)
        .collect()
}

/// The year 10000, which no four digits can say, in seconds since 1970.
const TOO_LATE: i64 = 253_402_300_800;

/// A time as RFC 3339 has it, or RFC 2822; none before 1970 or after 9999.
fn time(text: &str) -> Option<SystemTime> {
    let text = text.trim();
    let parsed = DateTime::parse_from_rfc3339(text).or_else(|_| DateTime::parse_from_rfc2822(text));
    let seconds = parsed.ok()?.timestamp();
    let since = u64::try_from(seconds).ok().filter(|_| seconds < TOO_LATE)?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(since))
}

/// Amazon EC2: the interruption of a spot instance.
pub(super) struct Aws {
    service: Service,
    token: Option<String>,
}

#[derive(Deserialize)]
struct InstanceAction {
    action: String,
    time: Option<String>,
}

impl Aws {
    pub(super) fn new() -> Result<Aws, reqwest::Error> {
        Ok(Aws {
            service: Service::new(variable("AWS_EC2_METADATA_SERVICE_ENDPOINT"))?,
            token: None,
        })
    }

    /// The token without which version 2 of the service answers nothing.
    async fn token(&mut self) -> Result<String, LookError> {
        if let Some(token) = &self.token {
            return Ok(token.clone());
        }
        let url = format!("{}/latest/api/token", self.service.base);
        let request = self.service.client.put(&url).timeout(PATIENCE);
        let request = request.header("x-aws-ec2-metadata-token-ttl-seconds", "21600");
        let (status, token) = self.service.ask(request, &url).await?;
        if !status.is_success() {
            return Err(LookError::Status { url, status });
        }
        Ok(self.token.insert(token).clone())
    }

    async fn ask(&mut self) -> Result<Option<Notice>, LookError> {
        const PATH: &str = "/latest/meta-data/spot/instance-action";
        let token = self.token().await?;
        let answer = self
            .service
            .get(PATH, ("x-aws-ec2-metadata-token", &token))
            .await;
        // It has its time, after which the next look asks for another one.
        let answer = answer.inspect_err(|_| self.token = None)?;
        let Some(body) = answer else { return Ok(None) };
        let parsed: InstanceAction =
            serde_json::from_str(&body).map_err(|e| LookError::Answer {
                url: PATH.into(),
                what: e.to_string(),
            })?;
        Ok(Some(Notice {
            source: "aws",
            what: format!("spot instance: {}", word(&parsed.action)),
            at: parsed.time.as_deref().and_then(time),
        }))
    }
}

impl Source for Aws {
    fn name(&self) -> &'static str {
        "aws"
    }

    fn look(&mut self) -> BoxFuture<'_, Result<Option<Notice>, LookError>> {
        self.ask().boxed()
    }
}

/// Google Compute Engine: preemption, and the maintenance that ends machines with GPUs.
pub(super) struct Gcp {
    service: Service,
    /// When it was first said: the service names no time.
    since: Option<SystemTime>,
}

impl Gcp {
    pub(super) fn new() -> Result<Gcp, reqwest::Error> {
        let given = variable("GCE_METADATA_HOST").map(|host| format!("http://{host}"));
        Ok(Gcp {
            service: Service::new(given)?,
            since: None,
        })
    }

    async fn ask(&mut self) -> Result<Option<Notice>, LookError> {
        let flavor = ("metadata-flavor", "Google");
        let of = async |name: &str| {
            let path = format!("/computeMetadata/v1/instance/{name}");
            let said = self.service.get(&path, flavor).await?;
            Ok::<_, LookError>(said.unwrap_or_default().trim().to_owned())
        };
        let preempted = of("preempted").await?;
        if preempted.eq_ignore_ascii_case("true") {
            let since = *self.since.get_or_insert_with(SystemTime::now);
            return Ok(Some(Notice {
                source: "gcp",
                what: "the instance is preempted".into(),
                at: Some(since + GCP_GRACE),
            }));
        }
        let maintenance = of("maintenance-event").await?;
        self.since = None;
        // Up to an hour ahead, at a time that nobody names.
        Ok(
            (maintenance == "TERMINATE_ON_HOST_MAINTENANCE").then(|| Notice {
                source: "gcp",
                what: "the host is maintained, and the instance ends for that".into(),
                at: None,
            }),
        )
    }
}

impl Source for Gcp {
    fn name(&self) -> &'static str {
        "gcp"
    }

    fn look(&mut self) -> BoxFuture<'_, Result<Option<Notice>, LookError>> {
        self.ask().boxed()
    }
}

/// Azure: scheduled events of this machine.
pub(super) struct Azure {
    service: Service,
    /// Its name in the events of a group of machines; `None`: not asked yet.
    name: Option<String>,
    answered: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ScheduledEvents {
    #[serde(default)]
    events: Vec<ScheduledEvent>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ScheduledEvent {
    event_type: String,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    not_before: String,
}

impl Azure {
    pub(super) fn new() -> Result<Azure, reqwest::Error> {
        Ok(Azure {
            service: Service::new(variable("PHOS_AZURE_METADATA_ENDPOINT"))?,
            name: None,
            answered: false,
        })
    }

    async fn ask(&mut self) -> Result<Option<Notice>, LookError> {
        const NAME: &str = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";
        const EVENTS: &str = "/metadata/scheduledevents?api-version=2020-07-01";
        let header = ("metadata", "true");
        let own = match &self.name {
            Some(name) => name.clone(),
            None => {
                let name = self.service.get(NAME, header).await?.unwrap_or_default();
                self.name.insert(name.trim().to_owned()).clone()
            }
        };
        let patience = if self.answered {
            PATIENCE
        } else {
            FIRST_PATIENCE
        };
        let body = self.service.get_within(patience, EVENTS, header).await?;
        self.answered = true;
        let body = body.unwrap_or_default();
        scheduled(&body, &own).map_err(|what| LookError::Answer {
            url: EVENTS.into(),
            what,
        })
    }
}

/// The soonest event that ends the machine called `own`.
fn scheduled(body: &str, own: &str) -> Result<Option<Notice>, String> {
    if body.trim().is_empty() {
        return Ok(None);
    }
    let parsed: ScheduledEvents = serde_json::from_str(body).map_err(|e| e.to_string())?;
    let ends = |event: &&ScheduledEvent| {
        let here = own.is_empty() || event.resources.iter().any(|r| r == own);
        // A freeze of seconds is none.
        here && ["Preempt", "Terminate", "Reboot", "Redeploy"].contains(&event.event_type.as_str())
    };
    // What has begun already has no time, and counts as soonest.
    let notices = parsed.events.iter().filter(ends).map(|event| Notice {
        source: "azure",
        what: format!("scheduled event: {}", word(&event.event_type)),
        at: time(&event.not_before),
    });
    Ok(notices.min_by_key(|notice| notice.at))
}

impl Source for Azure {
    fn name(&self) -> &'static str {
        "azure"
    }

    fn look(&mut self) -> BoxFuture<'_, Result<Option<Notice>, LookError>> {
        self.ask().boxed()
    }
}

/// A file that a scheduler or an operator creates.
pub(super) struct File {
    path: PathBuf,
}

impl File {
    pub(super) fn new(path: PathBuf) -> File {
        File { path }
    }

    fn read(&self) -> Result<Option<Notice>, LookError> {
        let failed = |source| LookError::File {
            path: self.path.clone(),
            source,
        };
        // Not held up by a pipe without a writer.
        let mut options = std::fs::OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let file = match options.open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(e)),
        };
        let mut text = String::new();
        if file.metadata().map_err(failed)?.is_file() {
            let mut bytes = Vec::new();
            let mut bounded = file.take(MAX_WORD as u64);
            bounded.read_to_end(&mut bytes).map_err(failed)?;
            text = String::from_utf8_lossy(&bytes).into_owned();
        }
        let at = time(&text);
        if at.is_none() && !text.trim().is_empty() {
            tracing::debug!(
                text = word(&text),
                "the preemption file names no time in RFC 3339"
            );
        }
        Ok(Some(Notice {
            source: "file",
            what: format!("{} is there", self.path.display()),
            at,
        }))
    }
}

impl Source for File {
    fn name(&self) -> &'static str {
        "file"
    }

    fn look(&mut self) -> BoxFuture<'_, Result<Option<Notice>, LookError>> {
        // A file system may hang.
        let path = self.path.clone();
        async move {
            let failed = |source| LookError::File {
                path: path.clone(),
                source,
            };
            let file = File::new(path.clone());
            let read = tokio::task::spawn_blocking(move || file.read()).await;
            read.map_err(|e| failed(std::io::Error::other(e)))?
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn at(seconds: u64) -> Option<SystemTime> {
        Some(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn times_of_all_three() {
        assert_eq!(time("2026-01-01T00:00:05Z\n"), at(1_767_225_605));
        assert_eq!(time("2026-01-01T01:00:05+01:00"), at(1_767_225_605));
        assert_eq!(time("Thu, 01 Jan 2026 00:00:05 GMT"), at(1_767_225_605));
        assert_eq!(time("9999-12-31T23:59:59-01:00"), None);
        assert_eq!(time("1969-12-31T23:59:59Z"), None);
        assert_eq!(time("soon"), None);
        assert_eq!(time(""), None);
    }

    #[test]
    fn azure_events_of_this_machine_that_end_it() {
        let event = |kind: &str, resource: &str, before: &str| {
            format!(
                r#"{{"EventId":"1","EventType":"{kind}","ResourceType":"VirtualMachine","Resources":["{resource}"],"EventStatus":"Scheduled","NotBefore":"{before}"}}"#
            )
        };
        let all = |events: &[String]| {
            format!(
                r#"{{"DocumentIncarnation":1,"Events":[{}]}}"#,
                events.join(",")
            )
        };
        let (soon, late) = (
            "Thu, 01 Jan 2026 00:00:05 GMT",
            "Thu, 01 Jan 2026 00:00:35 GMT",
        );
        for (events, expected) in [
            (vec![], None),
            (vec![event("Freeze", "own", soon)], None),
            (vec![event("Preempt", "another", soon)], None),
            (
                vec![
                    event("Redeploy", "own", late),
                    event("Preempt", "own", soon),
                ],
                Some(("Preempt", at(1_767_225_605))),
            ),
            // It has begun.
            (
                vec![event("Preempt", "own", soon), event("Terminate", "own", "")],
                Some(("Terminate", None)),
            ),
        ] {
            let found = scheduled(&all(&events), "own").unwrap();
            let found = found.map(|n| (n.what, n.at));
            assert_eq!(
                found,
                expected.map(|(kind, at)| (format!("scheduled event: {kind}"), at))
            );
        }
        assert_eq!(scheduled("", "own"), Ok(None));
        assert!(scheduled("<html>", "own").is_err());
        assert!(
            scheduled(&all(&[event("Preempt", "another", soon)]), "")
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn a_file_with_and_without_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notice");
        let file = File::new(path.clone());
        assert_eq!(file.read().unwrap(), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(file.read().unwrap().unwrap().at, None);
        std::fs::write(&path, "2026-01-01T00:00:05Z").unwrap();
        assert_eq!(file.read().unwrap().unwrap().at, at(1_767_225_605));
        std::fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
        assert_eq!(file.read().unwrap().unwrap().at, None);
    }

    #[test]
    fn words_are_short_and_one_line() {
        assert_eq!(word("term\ninate\u{1b}[31m"), "terminate[31m");
        assert_eq!(word(&"x".repeat(1000)).len(), MAX_WORD);
    }
}
