//! Why nothing can be said of a trace.

use thiserror::Error;

/// Why nothing can be said of a trace that could be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// More than a number of 32 bits counts.
    #[error("{found} {what}: expected at most 4294967294; cut the trace into several")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
    },
    /// Two nodes of the graph would have one id.
    #[error(
        "two nodes of the graph have the id {id:?}: operations are `<span>/op/<number>` and tensors \
         `tensor/<id>`, so expected no span to be called that; rename it"
    )]
    NodeTwice {
        /// The id.
        id: String,
    },
}
