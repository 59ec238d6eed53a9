//! What is served under which path: all of it by GET, none of it changes anything.
//!
//! | path | what |
//! |---|---|
//! | `/` | the page, with `/page.css` and `/page.js` |
//! | `/metrics` | figures, as OpenMetrics text |
//! | `/api/status` | what is the case now: [`crate::report::status::Report`] as JSON |
//! | `/api/events` | what happened and happens, as server-sent events, each a [`crate::report::event::Record`]; `?after=SEQ`, or the header `Last-Event-ID` by which browsers continue |

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::Stream;
use serde::Deserialize;

use super::metrics::Metrics;
use crate::report::journal::Follower;
use crate::report::shared::Shared;

/// The time, in ms since 1970.
pub(crate) type Clock = fn() -> u64;

/// The media type of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Events that are read at a time.
const AT_A_TIME: usize = 64;
/// How often a client hears something, at least.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// What the page may do: nothing but show what this server says.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Debug, Clone)]
struct Seen {
    status: Shared,
    metrics: Arc<Metrics>,
    now: Clock,
}

/// Everything.
pub(super) fn all(status: Shared, metrics: Arc<Metrics>, now: Clock) -> Router {
    let file = |kind: &'static str, text: &'static str| get(async move || asset(kind, text));
    Router::new()
        .route(
            "/",
            file("text/html; charset=utf-8", include_str!("page/page.html")),
        )
        .route(
            "/page.css",
            file("text/css; charset=utf-8", include_str!("page/page.css")),
        )
        .route(
            "/page.js",
            file(
                "text/javascript; charset=utf-8",
                include_str!("page/page.js"),
            ),
        )
        .route("/metrics", get(metrics_text))
        .route("/api/status", get(status_json))
        .route("/api/events", get(events))
        .layer(middleware::map_response(careful))
        .with_state(Seen {
            status,
            metrics,
            now,
        })
}

/// The same for a port of this machine alone: a page of somebody else's that a browser here has open cannot read it by a name of its own
/// that leads here.
pub(super) fn for_loopback(routes: Router) -> Router {
    routes.layer(middleware::from_fn(
        async |request: Request, next: Next| -> Response {
            let host = (request.headers().get(header::HOST)).and_then(|host| host.to_str().ok());
            match host.is_some_and(is_this_machine) {
                true => next.run(request).await,
                false => (
                    StatusCode::FORBIDDEN,
                    "ask for this by an address, or as localhost\n",
                )
                    .into_response(),
            }
        },
    ))
}

/// Whether a Host header names this machine without asking anybody what the name stands for.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

async fn careful(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

fn failed(error: impl std::fmt::Display) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
}

async fn metrics_text(State(seen): State<Seen>) -> Response {
    match seen.metrics.encode(&seen.status, (seen.now)()) {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(e) => failed(e),
    }
}

async fn status_json(State(seen): State<Seen>) -> Response {
    let report = seen.status.report();
    match serde_json::to_string(&report) {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(e) => failed(e),
    }
}

#[derive(Debug, Deserialize)]
struct After {
    #[serde(default)]
    after: u64,
}

async fn events(
    State(seen): State<Seen>,
    Query(After { after }): Query<After>,
    headers: HeaderMap,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let continued = (headers.get("last-event-id"))
        .and_then(|id| id.to_str().ok())
        .and_then(|id| id.parse().ok());
    let stream = stream_of(seen.status.follow(continued.unwrap_or(after)));
    Sse::new(stream).keep_alive(KeepAlive::new().interval(HEARTBEAT))
}

/// What it hears of, and will hear of.
fn stream_of(follower: Follower) -> impl Stream<Item = Result<Event, Infallible>> {
    use futures::{StreamExt as _, stream};
    stream::unfold(follower, async |mut follower| {
        let records = follower.next(AT_A_TIME).await?;
        Some((stream::iter(records), follower))
    })
    .flatten()
    .map(|record| {
        let event = Event::default().id(record.seq.to_string());
        let text = serde_json::to_string(&record).unwrap_or_default();
        Ok(event.data(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_this_machine() {
        for host in [
            "localhost",
            "LOCALHOST:9464",
            "127.0.0.1:9464",
            "[::1]:9464",
            "[::1]",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:9464",
            "localhost.evil.example",
            "1.2.3.4.evil",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
