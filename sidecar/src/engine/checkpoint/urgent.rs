//! Threads for the work that a stop waits for.

use tokio::sync::oneshot;

use super::outcome::Cause;

/// The result of a thread that [`urgent`] started.
pub(super) type Urgent<T> = oneshot::Receiver<T>;

/// Runs what a stop waits for in a thread of its own. To be called from the main thread: unlike those of the
/// runtime it has the priority that the user gave the process, and a new thread has its maker's.
pub(super) fn urgent<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Urgent<T>, Cause> {
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new()
        .name(name.into())
        .spawn(move || {
            // Nobody may be waiting any more.
            let _ = sender.send(work());
        })
        .map_err(|e| Cause::Task(format!("cannot start a thread: {e}")))?;
    Ok(receiver)
}
