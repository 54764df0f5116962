//! Why there is no answer.

use super::{Choice, Kind, Needs};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// Rows cannot be chosen so.
    #[error("{} has no rows to choose {what}; these have: {}", kind.name(), with(*choice))]
    NoChoice {
        /// The question.
        kind: Kind,
        /// What was chosen by.
        what: &'static str,
        /// What the kinds that can have.
        choice: Choice,
    },
    /// It is asked of a recording.
    #[error("{name}: is one trace, and {} is asked of a recording (.tmrun)", kind.name())]
    NoRecording {
        /// The input.
        name: String,
        /// The question.
        kind: Kind,
    },
    /// It is asked of a recording as a whole.
    #[error("{} is about all steps: leave out --step", kind.name())]
    NoStep {
        /// The question.
        kind: Kind,
    },
    /// There is no graph.
    #[error(
        "{name}: {} needs a complete capture whose trace holds together, and {why}; these can be \
         answered all the same: {}",
        kind.name(),
        answered()
    )]
    NoGraph {
        /// The input.
        name: String,
        /// The question.
        kind: Kind,
        /// What is the matter.
        why: String,
    },
}

impl QueryError {
    /// Whether another command line would do.
    pub const fn is_usage(&self) -> bool {
        !matches!(self, Self::NoGraph { .. })
    }
}

fn names(is_one: impl Fn(Kind) -> bool) -> String {
    let names = Kind::ALL.iter().filter(|&&kind| is_one(kind)).map(|kind| kind.name());
    names.collect::<Vec<_>>().join(", ")
}

fn with(choice: Choice) -> String {
    names(|kind| kind.choice() == choice || kind.choice() == Choice::Labels)
}

fn answered() -> String {
    names(|kind| matches!(kind.needs(), Needs::Trace | Needs::Either))
}
