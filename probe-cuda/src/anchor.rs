//! Where events lie on the device's clock: told from an anchor that rolls along.

use std::sync::Arc;

use crate::distance::{Distance, Quantum};
use crate::driver::Code;
use crate::pool::{Event, Pool};

/// Where a context's first interval begins, in nanoseconds of its clock. Not 0, which is what a stamp
/// that nobody made looks like; and an event of another stream may be before it.
pub(crate) const ORIGIN_NS: i64 = 60_000_000_000;

/// How far an event is from the anchor before it is the next one. Up to twice as far the driver's floats
/// tell every nanosecond, so that a chain of such distances is exact where events are no farther apart.
const NEXT_NS: u64 = 4_000_000;

/// An event whose position is known. Its pair is out of use for as long.
#[derive(Debug)]
struct Anchor {
    pool: Arc<Pool>,
    pair: u32,
    event: Event,
    at: i64,
}

/// The clock of one context: all its streams have one.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    anchor: Option<Anchor>,
    quantum: Quantum,
    /// The most by which a position may be wrong, as summed up along the anchors.
    error_ns: f64,
}

/// What became of an event that was placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) at: i64,
    /// Its pair is the anchor now, and not free.
    pub(crate) is_anchor: bool,
}

/// Why an event could not be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unplaced {
    /// The driver refused.
    Refused(Code),
    /// It said no number.
    NoNumber,
}

impl From<Code> for Unplaced {
    fn from(code: Code) -> Self {
        Self::Refused(code)
    }
}

impl Positions {
    pub(crate) const fn error_ns(&self) -> f64 {
        self.error_ns
    }

    pub(crate) fn quantum_ns(&self) -> Option<u16> {
        self.quantum.ns()
    }

    /// How long it is from one event to the other, both of which are done.
    pub(crate) fn between(
        &mut self,
        pool: &Pool,
        from: Event,
        to: Event,
    ) -> Result<Distance, Unplaced> {
        let ms = pool.context.driver.elapsed_ms(from.0, to.0)?;
        self.quantum.distance(ms).ok_or(Unplaced::NoNumber)
    }

    /// Places an event of a pair, which is done. The first of all lies `behind` the origin.
    pub(crate) fn place(
        &mut self,
        pool: &Arc<Pool>,
        pair: u32,
        event: Event,
        behind: i64,
    ) -> Result<Placed, Unplaced> {
        let Some(anchor) = &self.anchor else {
            let at = ORIGIN_NS.saturating_add(behind);
            self.set(pool, pair, event, at);
            return Ok(Placed { at, is_anchor: true });
        };
        let (from, of) = (anchor.event, anchor.at);
        let distance = self.between(pool, from, event)?;
        let at = of.saturating_add(distance.ns);
        // One that lies before the anchor, on another stream, is told from it as well.
        let is_anchor = distance.ns >= 0 && distance.ns.unsigned_abs() >= NEXT_NS;
        if is_anchor {
            self.error_ns += distance.error_ns;
            self.set(pool, pair, event, at);
        }
        Ok(Placed { at, is_anchor })
    }

    /// Places an event that cannot be the anchor (a later launch of its graph stamps it again) from one
    /// that was just placed.
    pub(crate) fn near(
        &mut self,
        pool: &Pool,
        event: Event,
        (from, at): (Event, i64),
    ) -> Result<i64, Unplaced> {
        let behind = self.between(pool, event, from)?;
        Ok(at.saturating_sub(behind.ns))
    }

    fn set(&mut self, pool: &Arc<Pool>, pair: u32, event: Event, at: i64) {
        let anchor = Anchor { pool: Arc::clone(pool), pair, event, at };
        if let Some(old) = self.anchor.replace(anchor) {
            old.pool.release(old.pair);
        }
    }

    /// Gives the anchor up: nothing is placed any more.
    pub(crate) fn end(&mut self) {
        self.anchor = None;
    }
}
