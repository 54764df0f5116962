//! Edge records: of those, the edges between nodes of a static analysis.

use tmrun_formats::runtime::{EdgeTimingRef, Section};
use tmrun_formats::wire::{Edge, Record};
use tmrun_formats::{EdgeKind, Ticks};

use super::encode::Put;
use super::source::{Name, Source};
use super::tally::{Absent, Tally};

/// An edge timing that can be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct EdgeFact<'r> {
    from: Name<'r>,
    to: Name<'r>,
    duration_ns: u64,
}

impl<'r> EdgeFact<'r> {
    /// Reads a record; `None`, counted, for an edge that the schema has no place for.
    pub(super) fn read(source: &Source<'r>, head: &'r Record, tally: &mut Tally) -> Option<Self> {
        let (header, edge) = (head.header(), head.payload::<Edge>()?);
        let elsewhere = match edge.kind {
            EdgeKind::STATIC if source.schema.has(Section::EdgeTimings) => None,
            EdgeKind::STATIC => Some(Absent::EdgeTiming),
            EdgeKind::CALL => Some(Absent::CallEdge),
            EdgeKind::DATA => Some(Absent::DataEdge),
            _ => Some(Absent::OtherEdge),
        };
        if let Some(what) = elsewhere {
            tally.leave_out(what);
            return None;
        }
        // It is recorded when it is over, so it lies before its record.
        let start = Ticks(header.ticks.0.saturating_sub(edge.duration));
        Some(Self {
            from: source.name_of(edge.from, tally),
            to: source.name_of(edge.to, tally),
            duration_ns: source.clock.span_ns(start, edge.duration),
        })
    }

    pub(super) fn write(&self, (event_id, step): (&str, Option<u64>), put: &mut Put<'_>) {
        put.record(&EdgeTimingRef {
            event_id,
            from_static_id: self.from.static_id_or_text().as_ref(),
            to_static_id: self.to.static_id_or_text().as_ref(),
            duration_ns: self.duration_ns,
            step,
        });
    }
}
