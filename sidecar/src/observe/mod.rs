//! What people and machines see of a running sidecar: metrics and a page over HTTP, and a program of the user's that hears of events.
//!
//! | module | its reason to change |
//! |---|---|
//! | [`figures`] | which figures there are |
//! | [`metrics`] | how they follow from what happened |
//! | [`hook`] | when a program of the user's is called |
//! | [`traces`] | what a collector of traces hears |
//! | [`listen`] | where it is served, and to whom |
//! | [`routes`] | what is served under which path |
//!
//! # Rules
//!
//! * It reads `report` and nothing else, and changes nothing: there is no request that does anything to the job.
//! * By default it is a socket in the run directory that only the sidecar's user and root may open; on a TCP port it is served where
//!   that was asked for.
//! * Whatever goes wrong here is said once and costs the sidecar nothing: a port that is taken is tried again, a client that does
//!   not read is let go, and no more than [`listen::MAX_CLIENTS`] are served at a time.

mod figures;
mod hook;
pub mod listen;
pub mod metrics;
mod routes;
pub mod traces;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::{JoinHandle, JoinSet};

use self::listen::Endpoint;
use self::metrics::Metrics;
use self::routes::Clock;
use crate::report::shared::Shared;

/// Whom to tell beside those who ask at the socket in the run directory.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Another place at which metrics and the page are served.
    pub metrics: Option<Endpoint>,
    /// A program that is called for each event.
    pub on_event: Option<PathBuf>,
    /// The address at which a collector takes traces.
    pub otlp_endpoint: Option<String>,
}

/// Serves until it is dropped.
#[derive(Debug)]
pub(crate) struct Observers {
    _served: JoinSet<()>,
    hook: Option<JoinHandle<()>>,
    traces: Option<JoinHandle<()>>,
}

impl Observers {
    /// The journal is at its end: waits a moment for the program that is still to hear of what happened.
    pub(crate) async fn settle(mut self) {
        if let Some(traces) = self.traces.take() {
            // It says itself what it could not send.
            let _ = tokio::time::timeout(2 * traces::LAST_SPANS, traces).await;
        }
        let Some(hook) = &mut self.hook else { return };
        let told = tokio::time::timeout(hook::LAST_CALLS, &mut *hook).await;
        if told.is_err() {
            tracing::warn!("the program of --on-event has not heard of the last events");
            // Until what it started is gone.
            hook.abort();
            let _ = hook.await;
        }
    }
}

impl Drop for Observers {
    fn drop(&mut self) {
        for task in [&self.hook, &self.traces].into_iter().flatten() {
            task.abort();
        }
    }
}

/// Serves in the job's run directory, and tells others of what happens after this number.
pub(crate) fn serve(
    directory: &Path,
    config: Config,
    status: &Shared,
    after: u64,
    now: Clock,
) -> Observers {
    let metrics = Arc::new(Metrics::new(after));
    let mut tasks = JoinSet::new();
    tasks.spawn(metrics::follow(Arc::clone(&metrics), status.clone()));
    let routes = routes::all(status.clone(), metrics, now);
    let here = Endpoint::Unix(directory.join(listen::SOCKET_FILE));
    for place in [Some(here), config.metrics].into_iter().flatten() {
        tasks.spawn(listen::serve(place, routes.clone()));
    }
    let hook = config
        .on_event
        .map(|program| tokio::spawn(hook::follow(program, status.clone(), after)));
    let traces = config
        .otlp_endpoint
        .map(|endpoint| tokio::spawn(traces::follow(endpoint, status.clone(), after)));
    Observers {
        _served: tasks,
        hook,
        traces,
    }
}
