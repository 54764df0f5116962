//! What the calls that record cost the loop that makes them.

use std::cell::RefCell;
use std::hint::black_box;

use tmrun_benches::{Callgrind, Case, Row, Table, measure, on_core};
use tmrun_formats::wire::FileHeader;
use tmrun_formats::{Level, NameId, RunId};
use tmrun_probe_core::{
    AutoClock, Clock, Drain, Flush, OpFact, Range, Sink, Stats, TensorFact, TensorId, install,
    measured, probe, scalar, span,
};

use crate::{Failure, floor};

probe!(static PROBE: lanes = 2, slots = 1 << 14);
probe!(static STOPPED: lanes = 2, slots = 1 << 10);
probe!(static IDLE: lanes = 1, slots = 64);
probe!(static CAPPED: lanes = 1, slots = 64, max_level = 0);

const ROUNDS: usize = 201;
const CALLS: u64 = 4000;
/// Twice so many, of three records each, fit the ring.
const COUNTED: u64 = 2000;

/// The argument by which this program, under callgrind, is told to repeat one function.
pub const COUNT: &str = "count";

/// Throws away what it is given.
pub struct Nowhere;

impl Sink for Nowhere {
    type Error = std::convert::Infallible;

    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), Self::Error> {
        black_box(pieces);
        Ok(())
    }

    fn cut(&mut self, _: u64) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// The header of a file that nobody keeps.
pub fn header() -> FileHeader {
    let ticks_per_second = AutoClock::ticks_per_second();
    FileHeader { run: RunId([0; 16]), created_ns: 0, ticks_per_second }
}

/// Defines functions that repeat something, under names that callgrind finds.
macro_rules! loops {
    ($($name:ident($i:ident) $body:block)*) => {
        $(
            #[inline(never)]
            #[unsafe(no_mangle)]
            fn $name(calls: u64) {
                for $i in 0..calls {
                    $body
                }
            }
        )*

        const FUNCTIONS: &[(&str, fn(u64))] = &[$((stringify!($name), $name)),*];

    };
}

loops! {
    loop_alone(i) {
        black_box(i);
    }
    clock_once(i) {
        black_box(AutoClock::quick_ticks());
        black_box(i);
    }
    clock_twice(i) {
        black_box(AutoClock::quick_ticks());
        black_box(i);
        black_box(AutoClock::quick_ticks());
    }
    span_loop(i) {
        let _span = span!(PROBE, "span");
        black_box(i);
    }
    stopped_loop(i) {
        let _span = span!(STOPPED, "span");
        black_box(i);
    }
    nested_loop(i) {
        let _outer = span!(PROBE, "outer");
        let _inner = span!(PROBE, "inner");
        black_box(i);
    }
    library_loop(i) {
        let _span = span!("of a library");
        black_box(i);
    }
    no_probe_loop(i) {
        let _span = span!("of a library");
        black_box(i);
    }
    scalar_loop(i) {
        scalar!(PROBE, "scalar", f64::from_bits(black_box(i)));
    }
    op_loop(i) {
        PROBE.at(Level::TIMING, |recorder| {
            let (start, end) = (recorder.now(), recorder.now());
            let inputs = [TensorId(1), TensorId(i)];
            let fact = OpFact {
                op: NameId(1),
                start,
                end,
                output: TENSOR.tensor,
                shape: Some(TENSOR.shape),
                inputs: black_box(&inputs),
                ..OpFact::default()
            };
            recorder.op(NameId(2), &fact);
        });
    }
    stats_loop(i) {
        PROBE.at(Level::NUMERICS, |recorder| {
            let stats = Stats { count: black_box(i), ..Stats::default() };
            recorder.stats(NameId(2), &TENSOR, true, &stats, Some(&Range::default()));
        });
    }
    bare_span_loop(i) {
        floor::span(i);
    }
    bare_stats_loop(i) {
        let stats = Stats { count: black_box(i), ..Stats::default() };
        floor::stats(i, black_box(&TENSOR), &stats, &Range::default());
    }
    disarmed_loop(i) {
        let _span = span!(IDLE, "idle");
        black_box(i);
    }
    compiled_out_loop(i) {
        let _span = span!(CAPPED, "capped");
        black_box(i);
    }
}

static TENSOR: TensorFact<'static> = TensorFact {
    tensor: TensorId(7),
    storage: tmrun_probe_core::StorageId(0),
    shape: &[16, 32, 64],
    dtype: tmrun_probe_core::DType(0),
    device: tmrun_probe_core::DeviceCode(0),
    category: tmrun_probe_core::Category(0),
    contiguous: None,
    requires_grad: false,
};

/// Repeats one function while everything is recorded, for callgrind.
pub fn repeat(function: &str, calls: u64) {
    let Ok(_drain) = Drain::start(*PROBE, Nowhere, &header(), &[], Level::MAX) else { return };
    if function != "no_probe_loop" && install(PROBE).is_err() {
        return;
    }
    if let Some((_, run)) = FUNCTIONS.iter().find(|(name, _)| *name == function) {
        run(calls);
    }
}

pub fn rows(table: &mut Table) -> Result<(), Failure> {
    on_core(0, || record(table))
}

fn record(table: &mut Table) -> Result<(), Failure> {
    let drain = Drain::start(*PROBE, Nowhere, &header(), &[], Level::MAX);
    let Ok(drain) = drain else { return Err("the probe is being recorded".into()) };
    let drain = RefCell::new(drain);
    let empty = || {
        let Ok(_) = drain.borrow_mut().poll(Flush::All);
    };
    drop(measured!(PROBE, "warm up"));
    // Its drain never comes: the ring is full, and stays so.
    let stopped = Drain::start(*STOPPED, Nowhere, &header(), &[], Level::MAX);
    let Ok(_stopped) = stopped else { return Err("the probe is being recorded".into()) };
    stopped_loop(1 << 11);
    // The site is there before its probe, as it may be in a library.
    library_loop(1);
    install(PROBE)?;

    let cases = [
        Case::new("two clock reads", clock_twice),
        Case::new("one clock read", clock_once),
        Case::new("loop", loop_alone),
        Case::new("span", span_loop).then(empty),
        Case::new("span, drain stopped", stopped_loop),
        Case::new("nested spans", nested_loop).then(empty),
        Case::new("span of a library", library_loop).then(empty),
        Case::new("scalar", scalar_loop).then(empty),
        Case::new("op", op_loop).then(empty),
        Case::new("stats", stats_loop).then(empty),
        Case::new("bare span", bare_span_loop),
        Case::new("bare stats", bare_stats_loop),
        Case::new("disarmed span", disarmed_loop),
        Case::new("compiled-out span", compiled_out_loop),
    ];
    let [
        two,
        one,
        alone,
        span,
        stopped,
        nested,
        library,
        scalar,
        op,
        stats,
        bare_span,
        bare_stats,
        disarmed,
        compiled_out,
    ] = measure(cases, ROUNDS, CALLS);

    let counts = Counts::default();
    let (twice, once) = ("two clock reads", "one clock read");
    table.push(Row::cost("the loop alone", alone, twice, two).counted(counts.of("loop_alone")));
    table.push(Row::cost("one clock read", one, twice, two).counted(counts.of("clock_once")));
    let instructions = counts.of("span_loop");
    table.push(Row::cost("span", span, twice, two).asked(1.20, 1.35).counted(instructions));
    let row = Row::cost("two clock reads and eight stores: a span's floor", bare_span, twice, two);
    table.push(row.counted(counts.of("bare_span_loop")));
    table.push(Row::cost("span, the drain stopped: it is dropped", stopped, twice, two));
    let row = Row::cost("a span in a span, both", nested, twice, two);
    table.push(row.counted(counts.of("nested_loop")));
    let row = Row::cost("span of a library", library, twice, two).asked(1.20, 1.35);
    table.push(row.counted(counts.of("library_loop")));
    let row = Row::cost("scalar", scalar, once, one).asked(1.25, 1.5);
    table.push(row.counted(counts.of("scalar_loop")));
    let row = Row::cost("operation, shape, two inputs: 3 records", op, twice, two);
    table.push(row.counted(counts.of("op_loop")));
    let row = Row::cost("tensor, statistics, range: 3 records", stats, once, one);
    table.push(row.asked(1.25 * 3.0, 1.5 * 3.0).counted(counts.of("stats_loop")));
    let name = "three bare stores of the same records: their floor";
    let row = Row::cost(name, bare_stats, once, one);
    table.push(row.counted(counts.of("bare_stats_loop")));
    let row = Row::cost("disarmed span, with the loop", disarmed, twice, two);
    table.push(row.counted(counts.of("disarmed_loop")));
    let row = Row::cost("compiled-out span, with the loop", compiled_out, twice, two);
    table.push(row.counted(counts.of("compiled_out_loop")));

    let added = [
        ("instructions a span", "span_loop", 45.0, 60.0),
        ("instructions a span of a library", "library_loop", 45.0, 60.0),
        ("instructions a span of a library before there is a probe", "no_probe_loop", 3.0, 5.0),
        ("instructions a disarmed span", "disarmed_loop", 3.0, 5.0),
        ("instructions a compiled-out span", "compiled_out_loop", 0.0, 0.0),
    ];
    for (name, function, reach, must) in added {
        match (counts.of(function), counts.of("loop_alone"), counts.error()) {
            (Some(count), Some(alone), _) => {
                let row = Row::new(name, "an instruction, the loop's apart", count - alone);
                table.push(row.asked(reach, must));
            }
            (.., why) => table.lack(name, why),
        }
    }
    Ok(())
}

/// Instructions of each function, counted once.
#[derive(Default)]
struct Counts(RefCell<std::collections::BTreeMap<&'static str, Result<f64, String>>>);

impl Counts {
    fn of(&self, function: &'static str) -> Option<f64> {
        let function = same_code(function);
        let mut counted = self.0.borrow_mut();
        let count = || {
            let callgrind = Callgrind::of(COUNTED);
            callgrind.count(function, &[COUNT, function]).map_err(|error| error.to_string())
        };
        counted.entry(function).or_insert_with(count).as_ref().ok().copied()
    }

    fn error(&self) -> String {
        let counted = self.0.borrow();
        counted.values().find_map(|count| count.clone().err()).unwrap_or_default()
    }
}

/// The first function that is the same code: the compiler keeps one of several that are, and then
/// callgrind knows only that one.
fn same_code(function: &'static str) -> &'static str {
    let address = |name| FUNCTIONS.iter().find(|(of, _)| *of == name).map(|(_, run)| *run as usize);
    let same = |(name, run): &&(&'static str, fn(u64))| {
        *name == function || Some(*run as usize) == address(function)
    };
    FUNCTIONS.iter().find(same).map_or(function, |(name, _)| name)
}
