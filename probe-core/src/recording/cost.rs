//! What recording costs here and now, measured on a scratch lane before the recording starts.

use tmrun_formats::NameId;
use tmrun_formats::wire::RecorderCostV1;

use crate::clock::Clock;
use crate::probe::Probe;
use crate::record::Recorder;
use crate::span::{SpanGuard, SpanShape};

const ROUND: u64 = 512;
const ROUNDS: usize = 24;

/// Measures a scalar record and a span; the least of some rounds, in thousandths of a tick.
pub(crate) fn measure<C: Clock>() -> RecorderCostV1 {
    let probe = Box::new(Probe::<C, 1, { 2 * ROUND as usize }, 1>::new());
    let view = probe.view();
    let Ok(lane) = view.claim("cost") else { return RecorderCostV1::default() };
    let recorder = lane.recorder();
    let round = |push: &dyn Fn()| {
        let start = C::ticks();
        push();
        let ticks = C::ticks().since(start);
        recorder.block().take_until(recorder.block().observe_head());
        ticks.saturating_mul(1000) / ROUND
    };
    let least = |push: &dyn Fn()| (0..ROUNDS).map(|_| round(push)).min().unwrap_or_default();
    RecorderCostV1 {
        record: least(&|| scalars(recorder)),
        span: least(&|| spans(recorder)),
        unnamed: 0,
    }
}

fn scalars<C: Clock>(recorder: Recorder<'_, C>) {
    for i in 0..ROUND {
        recorder.scalar(NameId(1), core::hint::black_box(i) as f64);
    }
}

fn spans<C: Clock>(recorder: Recorder<'_, C>) {
    for _ in 0..ROUND {
        let _span = SpanGuard::<C>::open(recorder.block(), NameId(1), SpanShape::FUNCTION);
        core::hint::black_box(());
    }
}
