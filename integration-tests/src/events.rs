//! What a sidecar can have done, told from its log.
//!
//! A test that waits for a message notices when the message is worded anew; one that asks whether something has *not* happened
//! would pass from then on. So such messages are named here, and each is held against the source that writes it.

/// Something that a sidecar does and writes into its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It waits because another node has the job.
    StandsBy,
    /// It became the holder of the job.
    TookOver,
    /// The job runs on from a checkpoint.
    Resumed,
    /// The job ended by itself with an error or a signal, and is brought back or given up.
    Crashed,
    /// The job was begun anew for want of a checkpoint.
    StartedAfresh,
}

impl Event {
    /// What the log says of it.
    pub const fn message(self) -> &'static str {
        match self {
            Event::StandsBy => "another node has the job: standing by",
            Event::TookOver => "took the job over",
            // With the field that follows it.
            Event::Resumed => "resumed checkpoint=",
            Event::Crashed => "the job crashed",
            Event::StartedAfresh => "there is no checkpoint yet: the job is started afresh",
        }
    }

    /// How often a log says that it happened.
    pub fn times_in(self, log: &str) -> usize {
        log.matches(self.message()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::Event;

    #[test]
    fn each_message_is_in_the_source_that_writes_it() {
        for (event, source) in [
            (
                Event::StandsBy,
                include_str!("../../sidecar/src/engine/ownership/stand_by.rs"),
            ),
            (
                Event::TookOver,
                include_str!("../../sidecar/src/engine/ownership/take_over.rs"),
            ),
            (
                Event::Resumed,
                include_str!("../../sidecar/src/engine/restore/mod.rs"),
            ),
            (
                Event::Crashed,
                include_str!("../../sidecar/src/engine/lifecycle/end.rs"),
            ),
            (
                Event::StartedAfresh,
                include_str!("../../sidecar/src/engine/lifecycle/end.rs"),
            ),
        ] {
            let message = event.message();
            // A field follows the message: the log has both, the source has them apart.
            let written = match message.strip_suffix(" checkpoint=") {
                Some(word) => {
                    let written = format!("\"{word}\"");
                    let end = source.find(&written).unwrap_or_default();
                    let call = source[..end].rfind("tracing::info!(").unwrap_or_default();
                    let fields = source[call..end]
                        .trim_start_matches("tracing::info!(")
                        .trim_start();
                    assert!(
                        fields.starts_with("checkpoint = %id,"),
                        "{event:?}: {fields}"
                    );
                    written
                }
                None => format!("\"{message}"),
            };
            assert!(source.contains(&written), "{event:?}: {message:?}");
        }
    }
}
