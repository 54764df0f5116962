//! `cargo bench -p tmrun-benches --bench ratios`: what the public API costs, as a ratio to bare
//! clock reads of the same rounds. `-- span` runs one case only, for a profiler.

use std::hint::black_box;

use tmrun_benches::{Case, measure};
use tmrun_formats::wire::FileHeader;
use tmrun_formats::{Level, RunId};
use tmrun_probe_core::{
    AutoClock, Clock, Drain, Flush, OpFact, Range, Sink, Stats, TensorFact, TensorId, measured,
    probe, scalar, span,
};

probe!(static PROBE: lanes = 2, slots = 1 << 14);
probe!(static IDLE: lanes = 1, slots = 64);
probe!(static CAPPED: lanes = 1, slots = 64, max_level = 0);

const ROUNDS: usize = 201;
const CALLS: u64 = 4000;

/// Throws away what it is given: the producer's side is measured here.
struct Nowhere;

impl Sink for Nowhere {
    type Error = std::convert::Infallible;

    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), Self::Error> {
        black_box(pieces);
        Ok(())
    }
}

#[inline(never)]
fn loop_only(calls: u64) {
    for i in 0..calls {
        black_box(i);
    }
}

#[inline(never)]
fn clock_once(calls: u64) {
    for i in 0..calls {
        black_box(AutoClock::ticks());
        black_box(i);
    }
}

#[inline(never)]
fn clock_twice(calls: u64) {
    for i in 0..calls {
        black_box(AutoClock::ticks());
        black_box(i);
        black_box(AutoClock::ticks());
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn span_loop(calls: u64) {
    for i in 0..calls {
        let _span = span!(PROBE, "span");
        black_box(i);
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn scalar_loop(calls: u64) {
    for i in 0..calls {
        scalar!(PROBE, "scalar", black_box(i) as f64);
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn disarmed_loop(calls: u64) {
    for i in 0..calls {
        let _span = span!(IDLE, "idle");
        black_box(i);
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn compiled_out_loop(calls: u64) {
    for i in 0..calls {
        let _span = span!(CAPPED, "capped");
        black_box(i);
    }
}

fn main() {
    let header = FileHeader {
        run: RunId([0; 16]),
        created_ns: 0,
        ticks_per_second: AutoClock::ticks_per_second(),
    };
    let drain = Drain::start(*PROBE, Nowhere, &header, &[], Level::MAX);
    let Ok(drain) = drain else { panic!("nothing else records this probe") };
    let drain = std::cell::RefCell::new(drain);
    let empty = || {
        let Ok(_) = drain.borrow_mut().poll(Flush::All);
    };
    drop(measured!(PROBE, "warm up"));
    empty();

    let (node, op) = (PROBE.name("blocks.0.attn"), PROBE.name("matmul"));
    let tensor = TensorFact { tensor: TensorId(7), shape: &[16, 32, 64], ..TensorFact::default() };
    let inputs = [TensorId(1), TensorId(2)];
    let ops = |calls: u64| {
        for _ in 0..calls {
            PROBE.at(Level::TIMING, |recorder| {
                let (start, end) = (recorder.now(), recorder.now());
                let fact = OpFact {
                    op,
                    start,
                    end,
                    output: tensor.tensor,
                    shape: Some(tensor.shape),
                    inputs: black_box(&inputs),
                    ..OpFact::default()
                };
                recorder.op(node, &fact);
            });
        }
    };
    let stats = |calls: u64| {
        for i in 0..calls {
            PROBE.at(Level::NUMERICS, |recorder| {
                let stats = Stats { count: black_box(i), ..Stats::default() };
                recorder.stats(node, &tensor, true, &stats, Some(&Range::default()));
            });
        }
    };

    if let Some(name) = std::env::args().skip(1).find(|arg| !arg.starts_with('-')) {
        match name.as_str() {
            "span" => span_loop(CALLS),
            "scalar" => scalar_loop(CALLS),
            "disarmed" => disarmed_loop(CALLS),
            _ => compiled_out_loop(CALLS),
        }
        return;
    }

    let mut cases = [
        Case::new("two clock reads", clock_twice),
        Case::new("one clock read", clock_once),
        Case::new("the loop alone", loop_only),
        Case::new("span", span_loop).between(empty),
        Case::new("scalar", scalar_loop).between(empty),
        Case::new("op, shape and 2 inputs (3 records)", ops).between(empty),
        Case::new("tensor, stats, range (3 records)", stats).between(empty),
        Case::new("disarmed span", disarmed_loop),
        Case::new("compiled-out span", compiled_out_loop),
    ];
    let costs = measure(&mut cases, ROUNDS, CALLS);
    println!(
        "{:38} {:>9} {:>9} {:>14} {:>14}",
        "case", "median ns", "least ns", "/ two reads", "/ one read"
    );
    for (case, cost) in cases.iter().zip(&costs) {
        println!(
            "{:38} {:9.2} {:9.2} {:7.3} {:6.3} {:7.3} {:6.3}",
            case.name,
            cost.median,
            cost.least,
            cost.median / costs[0].median,
            cost.least / costs[0].least,
            cost.median / costs[1].median,
            cost.least / costs[1].least,
        );
    }
}
