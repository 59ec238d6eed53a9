//! What the shims say of their ranks, in the words of the cut, and back.

use phos_policies::cut::{Meeting, Part, Position};
use phos_protocol::shim::{Count, Counted};

/// What a process has issued, as its shim says.
pub fn position(counts: &[Count]) -> Position {
    let part = |count: &Count| Part {
        communicator: count.communicator,
        rank: count.rank,
        meeting: match count.of {
            Counted::Collectives => Meeting::Collectives,
            Counted::Sent(to) => Meeting::Messages {
                from: count.rank,
                to,
            },
            Counted::Received(from) => Meeting::Messages {
                from,
                to: count.rank,
            },
        },
    };
    counts
        .iter()
        .map(|count| (part(count), count.times))
        .collect()
}

/// The goals of a process, for its shim.
pub fn counts(position: &Position) -> Vec<Count> {
    let count = |(part, times): (&Part, &u64)| Count {
        communicator: part.communicator,
        rank: part.rank,
        of: match part.meeting {
            Meeting::Collectives => Counted::Collectives,
            Meeting::Messages { from, to } if from == part.rank => Counted::Sent(to),
            Meeting::Messages { from, .. } => Counted::Received(from),
        },
        times: *times,
    };
    position.iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_say_what_positions_said() {
        let of = |of, times| Count {
            communicator: 7,
            rank: 2,
            of,
            times,
        };
        let all = [
            of(Counted::Collectives, 5),
            of(Counted::Received(0), 2),
            of(Counted::Sent(3), 1),
        ];
        assert_eq!(counts(&position(&all)), all);
        let [_, received, _] = [0, 1, 2].map(|i| position(&all).into_keys().nth(i).unwrap());
        assert_eq!(received.meeting, Meeting::Messages { from: 0, to: 2 });
    }
}
