//! The mapped rings of a recording that did not end, where nobody has them.

use tmrun_formats::GapReason;

use super::damage::Missing;
use super::gaps::Gap;
use super::recording::Recording;

impl<'a> Recording<'a> {
    /// Whether its recorder kept rings in a mapped file and did not come to the end: then they hold
    /// what the process stored last, and this file has not got all of it. Where they are.
    pub fn needs_rings(&self) -> Option<&'a str> {
        let has_end = self.trailer.is_some() || self.meta.terminal.is_some() || self.goes_on();
        self.meta.run.and_then(|run| run.rings).filter(|_| !has_end)
    }

    /// Counts what its [mapped rings](Self::needs_rings) held as lost, for nobody has them: behind the
    /// last records of the file, of any plane, and nobody knows how much.
    pub fn without_rings(mut self) -> Self {
        let chunks = self.record_chunks().filter(|chunk| !chunk.records().is_empty());
        let from = chunks.last().map(|chunk| chunk.info().header.greatest);
        let to = self.span.map(|span| span.1).max(from).unwrap_or_default();
        let range = (from.unwrap_or(to), to);
        let mut gap = Gap::lost(GapReason::TORN, None, range, 0);
        let (what, offset) = ("what the mapped rings held", self.bytes.len() as u64);
        self.missing.push(Missing { what, gap, position: None, offset, len: 0, declared: false });
        let clock = self.calibrations.clock();
        (gap.first_ns, gap.last_ns) = (clock.ns(gap.first), clock.ns(gap.last));
        self.gaps.push(gap);
        self.gaps.sort_by_key(|gap| (gap.first, gap.last, gap.class, gap.reason, gap.lane));
        self
    }
}
