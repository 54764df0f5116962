//! What it takes to end a recording that has a million records pending, beside a plain write.

use std::path::Path;
use std::time::{Duration, Instant};

use tmrun_benches::{Case, Row, Table, measure, on_core};
use tmrun_formats::Level;
use tmrun_formats::wire::RECORD_SIZE;
use tmrun_probe_core::{Drain, probe, scalar};

use crate::Failure;
use crate::recording::header;
use crate::transfer::{Rewound, memory_folder};

const PENDING: u64 = 1_000_000;
const ROUNDS: usize = 21;
/// Longer than what is written in a round, which always begins at the start.
const FILE: u64 = 96 << 20;
/// Records of a chunk.
const CHUNK: usize = 4096;

probe!(static PROBE: lanes = 1, slots = 1 << 20);

pub fn rows(table: &mut Table) -> Result<(), Failure> {
    let dir = tempfile::tempdir_in(memory_folder())?;
    on_core(0, || finish(table, dir.path()))
}

fn finish(table: &mut Table, dir: &Path) -> Result<(), Failure> {
    let mut finished = Rewound::create(&dir.join("finished"), FILE)?;
    let mut plain = Rewound::create(&dir.join("plain"), FILE)?;
    let mut buffer = vec![0; PENDING as usize * RECORD_SIZE];
    let mut failed = None;
    let cases = [
        Case::timed("plain write", |_| {
            buffer.fill(7);
            plain.rewind().expect("the file can be rewound");
            let start = Instant::now();
            for chunk in buffer.chunks(CHUNK * RECORD_SIZE) {
                plain.append(&[&[0; 64], chunk]).expect("the file can be written to");
            }
            start.elapsed()
        }),
        Case::timed("finish", |pending| match record_and_finish(&mut finished, pending) {
            Ok(took) => took,
            Err(failure) => {
                failed = Some(failure);
                Duration::ZERO
            }
        }),
    ];
    let [plain, finish] = measure(cases, ROUNDS, PENDING);
    if let Some(failure) = failed {
        return Err(failure);
    }
    let ruler = "a plain write of the same bytes";
    table.push(Row::speed("finish with 1,000,000 records pending", finish, ruler, plain));
    Ok(())
}

/// How long it takes to end a recording of which nothing has been drained.
fn record_and_finish(file: &mut Rewound, pending: u64) -> Result<Duration, Failure> {
    file.rewind()?;
    let Ok(drain) = Drain::start(*PROBE, file, &header(), &[], Level::MAX) else {
        return Err("the drain did not start".into());
    };
    for i in 0..pending {
        scalar!(PROBE, "scalar", f64::from_bits(i));
    }
    let start = Instant::now();
    let (summary, finished) = drain.finish(&[]);
    let took = start.elapsed();
    finished?;
    match summary.dropped {
        0 if summary.records >= pending => Ok(took),
        dropped => Err(format!("{} were stored, {dropped} dropped", summary.records).into()),
    }
}
