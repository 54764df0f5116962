//! Memory: storages as the program allocates them, and what devices report. Neither is derived from
//! the other.

mod lifetimes;
mod live;
mod logical;
mod physical;

pub use lifetimes::{Lifetime, Lifetimes, Named};

use super::Index;
use tmrun_formats::evidence::Memory;
use tmrun_formats::trace::TraceDocument;

/// Both planes; one without events is not there.
#[must_use]
pub fn of<'d>(
    trace: &'d TraceDocument<'_>,
    index: &Index<'d>,
    lifetimes: &Lifetimes,
) -> Memory<'d> {
    Memory { logical: logical::of(trace, index, lifetimes), physical: physical::of(trace) }
}
