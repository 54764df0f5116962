//! From a trace to what it says: `candle-graph/evidence/5`.
//!
//! What a reader of the code can rely on:
//!
//! - Every part is `of(&TraceDocument, &Index)`; ids are resolved once, in [`Index`], and no part
//!   hashes a span's id again.
//! - Time and memory grow with the trace, or with its logarithm where something is sorted; nothing
//!   recurses, so that depth costs no stack.
//! - Texts are borrowed from the trace.
#![deny(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

pub mod activations;
pub mod capabilities;
mod error;
pub mod facts;
pub mod findings;
pub mod gaps;
pub mod gpu;
pub mod graph;
pub mod health;
mod index;
mod intervals;
mod link;
pub mod memory;
mod ranks;
mod read;
pub mod timing;

pub use error::EvidenceError;
pub use index::{Index, Storages, Tensors, Tree};
pub use link::{Groups, Link};
pub use read::read;
