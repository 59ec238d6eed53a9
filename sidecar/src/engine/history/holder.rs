//! Who has the job, as the records of the log say it.
//!
//! The agent that the job runs under tells a sidecar that it follows one of its own, and the tier tells which checkpoints on this
//! machine belong to that holder. Both are fields of the record of a take-over. Records of releases without these fields have
//! them in the name alone, which is made for people:
//!
//! ```text
//! HOST (pid PID, agent AGENT[, tier TIER])
//! ```

use phos_storage::Holder;

use crate::engine::hostname;

/// This process, for the agent whose job it is (a number that it chose when it started) and with a tier on this machine.
pub(in crate::engine) fn this_process(agent: u64, tier: Option<&str>) -> Holder {
    let kept = tier.map_or_else(String::new, |tier| format!(", tier {tier}"));
    Holder {
        name: format!(
            "{} (pid {}, agent {agent:016x}{kept})",
            hostname(),
            std::process::id()
        ),
        agent: Some(agent),
        tier: tier.map(str::to_owned),
    }
}

/// The random number of the agent under which a holder had the job; `None` if the record names none.
pub(in crate::engine) fn agent_of(holder: &Holder) -> Option<u64> {
    let text = || u64::from_str_radix(in_name(&holder.name, "agent")?, 16).ok();
    holder.agent.or_else(text)
}

/// The id of the tier on a holder's machine; `None` if it had none.
pub(in crate::engine) fn tier_of(holder: &Holder) -> Option<&str> {
    let text = || in_name(&holder.name, "tier");
    holder.tier.as_deref().or_else(text)
}

/// What a name says of that, as releases before the fields wrote it.
fn in_name<'a>(name: &'a str, key: &str) -> Option<&'a str> {
    // Whatever the machine is called.
    let (_, said) = name.strip_suffix(')')?.rsplit_once(" (pid ")?;
    let mut fields = said.split(", ").filter_map(|field| field.split_once(' '));
    fields
        .find(|(found, _)| *found == key)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn without_fields(name: &str) -> Holder {
        name.into()
    }

    proptest! {
        #[test]
        fn the_name_says_what_the_fields_say(agent: u64, tier in proptest::option::of("[0-9a-f]{16}")) {
            let holder = this_process(agent, tier.as_deref());
            prop_assert_eq!((agent_of(&holder), tier_of(&holder)), (Some(agent), tier.as_deref()));
            let older = without_fields(&holder.name);
            prop_assert_eq!((agent_of(&older), tier_of(&older)), (Some(agent), tier.as_deref()));
        }

        #[test]
        fn anything_can_be_read(name in "\\PC{0,80}") {
            let _ = (agent_of(&without_fields(&name)), tier_of(&without_fields(&name)));
        }
    }

    #[test]
    fn no_machine_has_another_one_s_name() {
        let holder = without_fields("a (pid 2, agent 7, tier 0123) (pid 1, agent 8)");
        assert_eq!((agent_of(&holder), tier_of(&holder)), (Some(8), None));
        for other in [
            "",
            "a",
            "a (agent 7)",
            "agent 7",
            "a (pid 1, agent 7",
            "a (pid 1, agent)",
        ] {
            assert_eq!(agent_of(&without_fields(other)), None, "{other}");
        }
        // The fields count, whatever the name is.
        let named = Holder {
            agent: Some(3),
            ..without_fields("a (pid 1, agent 8)")
        };
        assert_eq!(agent_of(&named), Some(3));
    }
}
