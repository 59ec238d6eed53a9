//! Keeps a reader's hold in the store alive while a restore, an export or a verification reads.

use phos_storage::{Hold, RENEW_EVERY};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{hostname, unix_millis};

/// A hold that is renewed until it is released. Dropped, it is left to the next collection.
pub struct Reading {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Hold>,
}

/// The reader's name in its hold, for people: what it does and where it runs.
#[must_use]
pub fn reader(what: &str) -> String {
    format!("{what} on {} (pid {})", hostname(), std::process::id())
}

impl Reading {
    /// Renews it from now on.
    #[must_use]
    pub fn keep(mut hold: Hold) -> Reading {
        let (stop, mut stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = &mut stopped => return hold,
                    () = tokio::time::sleep(RENEW_EVERY) => {}
                }
                // It counts for an hour: one renewal that fails does no harm.
                if let Err(fault) = hold.renew(unix_millis()).await {
                    tracing::warn!(%fault, "what is being read could not be held again yet");
                }
            }
        });
        Reading {
            stop: Some(stop),
            task,
        }
    }

    /// Gives the hold back, so that collections may delete what it protected.
    pub async fn release(mut self) {
        drop(self.stop.take());
        if let Ok(hold) = (&mut self.task).await {
            hold.release().await;
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.task.abort();
    }
}
