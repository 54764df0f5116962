//! How fast a recording is read, beside a copy of the same bytes.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use rayon::ThreadPool;
use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;
use tmrun::input::Input;
use tmrun::scan::{RecordChunk, Recording};
use tmrun_benches::{Case, Row, Table, measure};
use tmrun_formats::Level;
use tmrun_formats::wire::Record;
use tmrun_probe_core::{
    Drain, Flush, OpFact, Range, Sink, Stats, Target, TensorFact, TensorId, probe, scalar, span,
};

use crate::Failure;
use crate::recording::header;
use crate::transfer::memory_folder;

/// Larger than any cache of one core.
const BYTES: u64 = 512 << 20;
const ROUNDS: usize = 9;
/// What a thread takes at once: a chunk.
const PIECE: usize = 256 << 10;

probe!(static PROBE: lanes = 2, slots = 1 << 14);

pub fn rows(table: &mut Table) -> Result<(), Failure> {
    let dir = tempfile::tempdir_in(memory_folder())?;
    let path = dir.path().join("run.tmrun");
    write_recording(&path)?;
    let input = Input::open(&path)?;
    let recording = Recording::open(&input, input.name())?;
    let records = recording.counts().total();
    if !recording.verify().is_empty() {
        return Err("the recording does not hold".into());
    }

    let (one, two) = (threads(1)?, threads(2)?);
    let (bytes, recording) = (&*input, &recording);
    let copied = |pool: &ThreadPool| pool.install(|| copy(bytes));
    let scanned = |pool: &ThreadPool| {
        black_box(pool.install(|| group_by(recording)));
    };
    let verified = |pool: &ThreadPool| {
        pool.install(|| {
            let recording = Recording::open(bytes, "run").expect("it was opened before");
            black_box(recording.verify());
            black_box(group_by(&recording));
        });
    };
    let cases = [
        Case::new("copy, 2", |_| copied(&two)),
        Case::new("copy, 1", |_| copied(&one)),
        Case::new("CRC, 2", |_| two.install(|| crc(bytes))),
        Case::new("scan, 2", |_| scanned(&two)),
        Case::new("scan, 1", |_| scanned(&one)),
        Case::new("verify and scan, 2", |_| verified(&two)),
        Case::new("verify and scan, 1", |_| verified(&one)),
    ];
    let [copy2, copy1, crc2, scan2, scan1, verify2, verify1] = measure(cases, ROUNDS, records);
    let ruler = "a memory copy's read rate, 2 threads";
    table.push(Row::speed("group-by scan, 2 threads", scan2, ruler, copy2).asked(0.65, 0.5));
    table.push(Row::speed("verify + scan, 2 threads", verify2, ruler, copy2).asked(0.5, 0.35));
    let name = "CRC alone over the file, 2 threads: the floor of verify + scan";
    table.push(Row::speed(name, crc2, ruler, copy2));
    let ruler = "the same, 1 thread";
    table.push(Row::speed("group-by scan, 2 threads", scan2, ruler, scan1).asked(1.8, 1.6));
    table.push(Row::speed("verify + scan, 2 threads", verify2, ruler, verify1));
    table.push(Row::speed("memory copy, 2 threads", copy2, ruler, copy1));
    Ok(())
}

fn threads(count: usize) -> Result<ThreadPool, rayon::ThreadPoolBuildError> {
    rayon::ThreadPoolBuilder::new().num_threads(count).build()
}

/// Reads every byte into a buffer that stays in the cache.
fn copy(bytes: &[u8]) {
    bytes.par_chunks(PIECE).for_each_init(
        || vec![0; PIECE],
        |buffer, piece| {
            let buffer = &mut buffer[..piece.len()];
            buffer.copy_from_slice(piece);
            black_box(buffer);
        },
    );
}

/// The sums of the chunks, and nothing else.
fn crc(bytes: &[u8]) {
    bytes.par_chunks(PIECE).for_each(|piece| {
        black_box(crc32fast::hash(piece));
    });
}

/// Durations of one kind of record: how many, sum, least, greatest, and how many of each power of 2.
#[derive(Clone, Copy)]
struct Group {
    count: u64,
    sum: u64,
    least: u64,
    greatest: u64,
    powers: [u32; 65],
}

const KINDS: usize = 32;

type Groups = Box<[Group; KINDS]>;

fn no_groups() -> Groups {
    let group = Group { count: 0, sum: 0, least: u64::MAX, greatest: 0, powers: [0; 65] };
    Box::new([group; KINDS])
}

/// What a query does to every record.
fn group_by(recording: &Recording<'_>) -> Groups {
    let add = |mut groups: Groups, chunk: RecordChunk<'_>| {
        chunk.iter().for_each(|record| add(&mut groups, record));
        groups
    };
    let chunks = recording.par_record_chunks();
    chunks.fold(no_groups, add).reduce(no_groups, |mut a, b| {
        for (a, b) in a.iter_mut().zip(b.iter()) {
            a.count += b.count;
            a.sum = a.sum.wrapping_add(b.sum);
            a.least = a.least.min(b.least);
            a.greatest = a.greatest.max(b.greatest);
            a.powers.iter_mut().zip(b.powers).for_each(|(a, b)| *a += b);
        }
        a
    })
}

#[inline(always)]
fn add(groups: &mut Groups, record: &Record) {
    let [start, _, _, end, ..] = record.words();
    let took = end.wrapping_sub(start);
    let group = &mut groups[usize::from(record.header().kind) % KINDS];
    group.count += 1;
    group.sum = group.sum.wrapping_add(took);
    group.least = group.least.min(took);
    group.greatest = group.greatest.max(took);
    group.powers[(64 - took.leading_zeros()) as usize] += 1;
}

/// A file in the making.
struct Plain<'a>(&'a mut BufWriter<File>);

impl Sink for Plain<'_> {
    type Error = io::Error;

    fn write(&mut self, pieces: &[&[u8]]) -> io::Result<()> {
        pieces.iter().try_for_each(|piece| self.0.write_all(piece))
    }

    fn cut(&mut self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Records a training step over and over, on two lanes.
fn write_recording(path: &Path) -> Result<(), Failure> {
    let mut file = BufWriter::new(File::create_new(path)?);
    let Ok(mut drain) = Drain::start(*PROBE, Plain(&mut file), &header(), &[], Level::MAX) else {
        return Err("the drain did not start".into());
    };
    let lanes = [PROBE.claim("trainer")?, PROBE.claim("loader")?];
    let node = PROBE.name("encoder.layers.3.attn");
    let (mut written, mut number) = (0, 0);
    while written < BYTES {
        for lane in &lanes {
            number += 1;
            let _step = lane.step(number);
            for i in 0..400 {
                let _forward = span!(*lane, "forward");
                let tensor = TensorId(i);
                let shape = [16, 32, 64];
                lane.at(Level::NUMERICS, |recorder| {
                    let start = recorder.now();
                    let inputs = [tensor, TensorId(i / 2)];
                    let shape = Some(&shape[..]);
                    let end = recorder.now();
                    let op = OpFact { start, end, shape, inputs: &inputs, ..OpFact::default() };
                    recorder.op(node, &op);
                    let fact = TensorFact { tensor, shape: &[16, 32, 64], ..TensorFact::default() };
                    let stats = Stats { count: i, ..Stats::default() };
                    recorder.stats(node, &fact, true, &stats, Some(&Range::default()));
                });
                scalar!(*lane, "loss", i as f64);
            }
        }
        written += drain.poll(Flush::Full)?.records * 64;
    }
    drop(lanes);
    let (summary, finished) = drain.finish(&[]);
    finished?;
    if summary.dropped > 0 {
        return Err("the recording has gaps".into());
    }
    file.flush()?;
    Ok(())
}
