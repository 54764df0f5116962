//! What recording costs, by the recorder's own measure.

use super::Recording;

/// What a record and a span cost the thread that records them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordCost {
    /// A record, in nanoseconds.
    pub record_ns: f64,
    /// A span.
    pub span_ns: f64,
    /// Names that did not fit the recorder's table.
    pub unnamed: u64,
}

impl Recording<'_> {
    /// What recording cost; `None` where the file does not say.
    pub fn cost(&self) -> Option<RecordCost> {
        let cost = self.meta().cost?;
        let nominal = match self.header().ticks_per_second {
            0 => 1e9,
            nominal => nominal as f64,
        };
        let rate = self.calibrations().measured_rate().unwrap_or(nominal);
        let ns =
            |thousandths: u64| Some(thousandths as f64 * 1e6 / rate).filter(|ns| ns.is_finite());
        let (record_ns, span_ns) = (ns(cost.record)?, ns(cost.span)?);
        Some(RecordCost { record_ns, span_ns, unnamed: cost.unnamed })
    }
}
