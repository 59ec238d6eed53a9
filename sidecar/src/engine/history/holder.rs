//! Who has the job, as the records of the log say it.
//!
//! ```text
//! HOST (pid PID, agent AGENT[, tier TIER])
//! ```
//!
//! It is written for people and read by [`Holder::parse`]: which agent the job runs under tells a sidecar that it follows one
//! of its own, and the tier which checkpoints on this machine belong to that holder.

use std::fmt;

use crate::engine::hostname;

/// A process that took the job over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Holder {
    /// The machine's name.
    host: String,
    pid: u32,
    /// The agent whose job it is: so that an epoch whose sidecar died before the agent heard of it is known to have been this
    /// agent's. Chosen by the agent when it started.
    pub(in crate::engine) agent: Option<u64>,
    /// The tier on its machine.
    pub(in crate::engine) tier: Option<String>,
}

impl Holder {
    /// This process.
    pub(in crate::engine) fn new(agent: u64, tier: Option<&str>) -> Holder {
        Holder {
            host: hostname(),
            pid: std::process::id(),
            agent: Some(agent),
            tier: tier.map(str::to_owned),
        }
    }

    /// `None`: it is not how this phos-ft writes holders.
    pub(in crate::engine) fn parse(text: &str) -> Option<Holder> {
        // Whatever the machine is called.
        let (host, fields) = text.strip_suffix(')')?.rsplit_once(" (")?;
        let mut fields = fields.split(", ");
        let pid = fields.next()?.strip_prefix("pid ")?.parse().ok()?;
        let mut holder = Holder {
            host: host.to_owned(),
            pid,
            agent: None,
            tier: None,
        };
        for field in fields {
            match field.split_once(' ')? {
                ("agent", agent) => holder.agent = Some(u64::from_str_radix(agent, 16).ok()?),
                ("tier", tier) => holder.tier = Some(tier.to_owned()),
                // Of a newer phos-ft.
                _ => {}
            }
        }
        Some(holder)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {}", self.host, self.pid)?;
        if let Some(agent) = self.agent {
            write!(f, ", agent {agent:016x}")?;
        }
        if let Some(tier) = &self.tier {
            write!(f, ", tier {tier}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            host in "[ -~]{0,40}", pid: u32, agent: Option<u64>, tier in proptest::option::of("[0-9a-f]{16}"),
        ) {
            let holder = Holder { host, pid, agent, tier };
            prop_assert_eq!(Holder::parse(&holder.to_string()), Some(holder));
        }

        #[test]
        fn anything_can_be_read(text in "\\PC{0,80}") {
            let _ = Holder::parse(&text);
        }
    }

    #[test]
    fn no_machine_has_another_one_s_name() {
        let holder =
            Holder::parse("a, agent 0000000000000007, tier 0123 (pid 1, agent 8)").unwrap();
        assert_eq!((holder.agent, holder.tier), (Some(8), None));
        for other in [
            "",
            "a",
            "a (agent 7)",
            "a (pid x, agent 7)",
            "a (pid 1, agent 7",
            "a (pid 1, tier)",
        ] {
            assert_eq!(Holder::parse(other), None, "{other}");
        }
        // A newer one may say more.
        let newer = Holder::parse("a (pid 1, agent 7, zone b, tier 0123)").unwrap();
        assert_eq!(newer.tier.as_deref(), Some("0123"));
    }
}
