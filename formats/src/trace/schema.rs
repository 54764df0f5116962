//! The versions of the format.

use crate::words::words;

words! {
    /// A version of the format, as its label.
    TraceSchema {
        /// The one before, without statistics of tensors.
        V9 "candle-graph/trace/9",
        /// The one that is written.
        V10 "candle-graph/trace/10",
    }
}

/// The label of what is written.
pub const SCHEMA: &str = TraceSchema::V10.name();
