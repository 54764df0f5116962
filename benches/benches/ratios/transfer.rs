//! From the rings into a file: what it costs the producer, and how fast it is.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, IoSlice, Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tmrun_benches::{Case, Row, Table, measure, on_core, pin};
use tmrun_formats::Level;
use tmrun_formats::wire::RECORD_SIZE;
use tmrun_probe_core::{Drain, Flush, Sink, probe, scalar, span};

use crate::Failure;
use crate::recording::{Nowhere, header};

const SLOTS: u64 = 1 << 14;
/// Fits the ring, which is empty before: nothing is dropped, however late the drain comes.
const BURST: u64 = 12_000;
const ROUNDS: usize = 101;
/// A file is written over from its start when it is so long: the first write of a page costs twice
/// as much, and is not what is measured.
const FILE: u64 = 32 << 20;

probe!(static LIVE: lanes = 1, slots = 1 << 14);
probe!(static FILLED: lanes = 1, slots = 1 << 14);
probe!(static EMPTIED: lanes = 1, slots = 1 << 14);

pub fn rows(table: &mut Table) -> Result<(), Failure> {
    let dir = tempfile::tempdir_in(memory_folder())?;
    on_core(0, || {
        live(table, dir.path())?;
        to_file(table, dir.path())
    })
}

/// A folder in memory where there is one: a disk's speed is not ours.
pub fn memory_folder() -> std::path::PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// A file that is written over and over.
pub struct Rewound {
    file: File,
    len: u64,
    at: u64,
}

impl Rewound {
    pub fn create(path: &Path, len: u64) -> io::Result<Self> {
        let mut file = File::create_new(path)?;
        let zeros = vec![0; 1 << 20];
        for _ in 0..=len >> 20 {
            file.write_all(&zeros)?;
        }
        file.rewind()?;
        Ok(Self { file, len, at: 0 })
    }

    pub fn rewind(&mut self) -> io::Result<()> {
        self.at = 0;
        self.file.rewind()
    }

    pub fn append(&mut self, pieces: &[&[u8]]) -> io::Result<()> {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        if self.at + len as u64 > self.len {
            self.rewind()?;
        }
        self.at += len as u64;
        let mut slices = [IoSlice::new(&[]); 4];
        for (slice, piece) in slices.iter_mut().zip(pieces) {
            *slice = IoSlice::new(piece);
        }
        match self.file.write_vectored(&slices)? {
            written if written == len => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}

impl Sink for Rewound {
    type Error = io::Error;

    fn write(&mut self, pieces: &[&[u8]]) -> io::Result<()> {
        self.append(pieces)
    }

    fn cut(&mut self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// What the drain's thread is to do.
const REST: u8 = 0;
/// What the recorder's thread does: a look, and a chunk when there is one.
const LOOK: u8 = 1;
const EMPTY: u8 = 2;
const END: u8 = 3;

/// A producer while its drain rests, and while it works on the other core.
fn live(table: &mut Table, dir: &Path) -> Result<(), Failure> {
    let file = Rewound::create(&dir.join("live"), FILE)?;
    let drain = Drain::start(*LIVE, file, &header(), &[], Level::MAX);
    let Ok(mut drain) = drain else { return Err("the drain did not start".into()) };
    // The recorder's own records, so that only the producer's are counted below.
    drain.poll(Flush::All)?;
    let (mode, taken) = (AtomicU8::new(EMPTY), AtomicU64::new(0));
    let mut made = 0;
    std::thread::scope(|scope| {
        let consumer = scope.spawn(|| -> io::Result<u64> {
            pin(1);
            loop {
                let polled = match mode.load(Ordering::Acquire) {
                    LOOK => drain.poll(Flush::Full)?,
                    EMPTY => drain.poll(Flush::All)?,
                    END => return Ok(drain.finish(&[]).0.dropped),
                    _ => Default::default(),
                };
                taken.fetch_add(polled.records, Ordering::Release);
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let burst = |while_it: u8, run: fn(u64)| {
            mode.store(while_it, Ordering::Release);
            let start = Instant::now();
            run(BURST);
            let took = start.elapsed();
            made += BURST;
            mode.store(EMPTY, Ordering::Release);
            while taken.load(Ordering::Acquire) < made && !consumer.is_finished() {
                std::thread::sleep(Duration::from_micros(50));
            }
            took
        };
        let burst = RefCell::new(burst);
        let case = |name, while_it, run| {
            let burst = &burst;
            Case::timed(name, move |_| burst.borrow_mut()(while_it, run))
        };
        let cases = [
            case("scalar alone", REST, scalars as fn(u64)),
            case("scalar, live", LOOK, scalars),
            case("span alone", REST, spans),
            case("span, live", LOOK, spans),
        ];
        let [scalar, scalar_live, span, span_live] = measure(cases, ROUNDS, BURST);
        mode.store(END, Ordering::Release);
        match consumer.join() {
            Ok(Ok(0)) => {}
            Ok(Ok(dropped)) => return Err(format!("{dropped} records were dropped").into()),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err("the drain's thread panicked".into()),
        }
        let row = Row::cost("scalar while a drain writes a file", scalar_live, "no drain", scalar);
        table.push(row.asked(1.15, 1.4));
        let row = Row::cost("span while a drain writes a file", span_live, "no drain", span);
        table.push(row.asked(1.15, 1.4));
        Ok(())
    })
}

#[inline(never)]
fn scalars(calls: u64) {
    for i in 0..calls {
        scalar!(LIVE, "scalar", f64::from_bits(std::hint::black_box(i)));
    }
}

#[inline(never)]
fn spans(calls: u64) {
    for i in 0..calls {
        let _span = span!(LIVE, "span");
        std::hint::black_box(i);
    }
}

/// A full ring into a file, beside a write of the same bytes that lie in a buffer.
fn to_file(table: &mut Table, dir: &Path) -> Result<(), Failure> {
    let file = Rewound::create(&dir.join("drained"), FILE)?;
    let Ok(mut drain) = Drain::start(*FILLED, file, &header(), &[], Level::MAX) else {
        return Err("the drain did not start".into());
    };
    let Ok(mut nowhere) = Drain::start(*EMPTIED, Nowhere, &header(), &[], Level::MAX) else {
        return Err("the drain did not start".into());
    };
    let mut plain = Rewound::create(&dir.join("plain"), FILE)?;
    let mut buffer = vec![0; SLOTS as usize * RECORD_SIZE];
    // A chunk's records, as the drain writes them, and its header.
    let chunk = buffer.len() / 4;
    let timed = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    let cases = [
        Case::timed("plain write", |_| {
            buffer.fill(7);
            timed(&mut || {
                for piece in buffer.chunks(chunk) {
                    plain.append(&[&[0; 64], piece]).expect("the file can be written to");
                }
            })
        }),
        Case::timed("drain to a file", |calls| {
            for i in 0..calls {
                scalar!(FILLED, "scalar", f64::from_bits(i));
            }
            timed(&mut || {
                drain.poll(Flush::All).expect("the file can be written to");
            })
        }),
        Case::timed("drain to nowhere", |calls| {
            for i in 0..calls {
                scalar!(EMPTIED, "scalar", f64::from_bits(i));
            }
            timed(&mut || {
                let Ok(_) = nowhere.poll(Flush::All);
            })
        }),
    ];
    let [plain, drained, nowhere] = measure(cases, 201, SLOTS);
    let ruler = "a plain write of the same bytes";
    table.push(Row::speed("drain to a file", drained, ruler, plain).asked(0.85, 0.7));
    table.push(Row::speed("drain without the write: CRC and ticks", nowhere, ruler, plain));
    Ok(())
}
