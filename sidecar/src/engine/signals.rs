//! Signals that ask the sidecar to end.

use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long this process continues after it was asked to end: so that a last checkpoint that the agent asks for at the same time
/// is not lost.
pub(super) const LINGER: Duration = Duration::from_secs(2);
/// How long it continues while a checkpoint is being stored, which a store that does not answer may never end. Below the time
/// that the supervisor waits before it kills (compose.yaml: 90 s).
pub(super) const LAST_STORE: Duration = Duration::from_secs(60);

/// SIGTERM and SIGINT.
pub(super) struct Signals {
    term: Signal,
    int: Signal,
    /// When the first of these signals came; `None`: none has.
    pub(super) asked: Option<Instant>,
}

impl Signals {
    /// Takes the signals from the default, which ends the process.
    pub(super) fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            asked: None,
        })
    }
}

/// Waits for a request to end. Once it came, it stays. Cancel safe.
pub(super) async fn asked_to_end(signals: &mut Signals) -> Instant {
    if let Some(asked) = signals.asked {
        return asked;
    }
    tokio::select! {
        _ = signals.term.recv() => {}
        _ = signals.int.recv() => {}
    }
    tracing::info!("asked to end");
    *signals.asked.insert(Instant::now())
}

/// Waits for a request to end, and then until so much time has passed since.
pub(super) async fn stop_wanted(signals: &mut Signals, linger: Duration) {
    let asked = asked_to_end(signals).await;
    tokio::time::sleep_until((asked + linger).into()).await;
}
