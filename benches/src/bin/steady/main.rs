//! A recording of a hundred million records: what it allocates once it has begun, and whether its
//! memory grows. The rows as JSON on standard output; the benchmark `ratios` runs it.

mod memory;

use std::io::{self, Write};
use std::time::Duration;

use memory::{allocations, anonymous, written};
use tmrun_benches::{Row, Table, pin, pin_others};
use tmrun_formats::wire::RECORD_SIZE;
use tmrun_probe_core::{Level, NameId, OpFact, ProfileRun, TensorId, probe, scalar, span};

type Failure = Box<dyn std::error::Error + Send + Sync>;

probe!(static PROBE: lanes = 1, slots = 1 << 14);

/// What one turn of the loop records: a span, a scalar, and an operation of three.
const RECORDS: u64 = 5;
/// Turns whose records fit the ring.
const BURST: u64 = 1_500;

fn main() -> Result<(), Failure> {
    pin(0);
    // The whole recorder with its thread, into a file that takes everything and keeps nothing.
    let run = ProfileRun::training("steady", 1, "cpu").level(Level::TIMING).replace(true);
    let recording = PROBE.record("/dev/null", run)?;
    pin_others(1)?;
    // Until the recorder has written some: the library's last allocation for a new thread is made on
    // the thread.
    record(1)?;

    let before = allocations();
    record(1_000_000)?;
    let few = anonymous()?;
    record(1_000_000 * (RECORDS - 1))?;
    let allocated = allocations() - before;
    record(95_000_000)?;
    let many = anonymous()?;

    recording.finish()?;
    let mut table = Table::default();
    let name = "heap allocations in 1,000,000 spans, scalars and operations, and their drain";
    table.push(Row::new(name, "an allocation", allocated as f64).asked(0.0, 0.0));
    let name = "anonymous memory after 100 M records";
    table.push(Row::new(name, "after 1 M records", many as f64 / few as f64).asked(1.0, 1.02));
    table.push(Row::new(name, "a KiB", many as f64));
    serde_json::to_writer(io::stdout(), &table)?;
    Ok(io::stdout().flush()?)
}

/// Records until so many more records have been written.
fn record(records: u64) -> io::Result<()> {
    let end = written()? + records * RECORD_SIZE as u64;
    while written()? < end {
        burst(BURST);
        std::thread::sleep(Duration::from_micros(50));
    }
    Ok(())
}

#[inline(never)]
fn burst(turns: u64) {
    for i in 0..turns {
        let _span = span!(PROBE, "span");
        scalar!(PROBE, "scalar", i as f64);
        PROBE.at(Level::TIMING, |recorder| {
            let (start, end) = (recorder.now(), recorder.now());
            let (shape, inputs) = (Some(&[16, 32, 64][..]), &[TensorId(1), TensorId(i)][..]);
            recorder.op(NameId(2), &OpFact { start, end, shape, inputs, ..OpFact::default() });
        });
    }
}
