//! The recorder at full rate for as long as it is told, with levels that change at random, threads
//! that come and go, and a recorder that stands still now and then. The producers count what they
//! record; each recording is read back, and what was attempted has to be what was stored plus what
//! was dropped.
//!
//! `cargo run --release -p tmrun-benches --bin soak -- --minutes 60`

mod check;
mod clock;
mod produce;
mod random;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use tmrun_probe_core::{Clock, Level, ProbeRef, ProfileRun};

use check::Found;
use produce::{DROPS, KEEPS, Producer};
use random::Random;

/// Record at full rate, and hold what was stored and dropped against what was attempted
#[derive(Debug, Parser)]
struct Args {
    /// How long
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// What the random numbers begin with; the time without
    #[arg(long)]
    seed: Option<u64>,
}

/// Threads that record at once: more than there are lanes.
const THREADS: u64 = 5;
/// A recording is this long at most,
const ROUND: Duration = Duration::from_secs(3);
/// one that ends before its producers do is shorter than they take,
const LATE_ROUND: Duration = Duration::from_millis(100);
/// or until so many records were attempted: half a gibibyte.
const MOST: u64 = 8 << 20;

/// The recording goes on in another file after so many bytes.
const FILE: u64 = 32 << 20;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(random::seed);
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let until = Instant::now() + Duration::from_secs_f64(args.minutes * 60.0);
    let (mut rounds, mut attempted, mut all) = (0_u64, 0, Found::default());
    while rounds < 4 || Instant::now() < until {
        // Both policies, and for each a recording that ends before its producers do.
        let late = rounds & 2 != 0;
        let (made, found) = match rounds & 1 {
            0 => round(*DROPS, produce::dropping, late, &mut random)?,
            _ => round(*KEEPS, produce::keeping, late, &mut random)?,
        };
        if made != found.all() {
            return Err(format!("round {rounds}: {made} were attempted, {found:?}").into());
        }
        rounds += 1;
        attempted += made;
        all.add(&found);
    }
    println!("{rounds} recordings, {attempted} records attempted: {all:?}");
    if [all.stored, all.overrun, all.lapped, all.no_lane, all.late].contains(&0) {
        return Err("nothing was stored, or nothing was lost in one of the ways".into());
    }
    Ok(())
}

/// One recording: how many records were attempted, and what became of them.
fn round<C: Clock>(
    probe: ProbeRef<'static, C>,
    life: fn(&mut Producer<'_>),
    late: bool,
    random: &mut Random,
) -> Result<(u64, Found), Error> {
    let folder = tempfile::tempdir()?;
    let before = probe.after_finish();
    let run = ProfileRun::training("soak", 1, "cpu").level(Level::NUMERICS).max_file(FILE);
    let recording = probe.record(folder.path().join("run.tmrun"), run)?;
    let stop = AtomicBool::new(false);
    let (made, early) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let producer = Producer::new(&stop, late, random.next(), MOST / THREADS);
                scope.spawn(move || producer.live(scope, life))
            })
            .collect();
        let length = if late { LATE_ROUND } else { ROUND };
        disturb(random, length, |level| probe.set_level(level));
        let (ended, open) = match late {
            true => (Some(recording.finish()), None),
            false => (None, Some(recording)),
        };
        stop.store(true, Ordering::Relaxed);
        let made = threads.into_iter().map(|thread| thread.join().expect("it counts")).sum::<u64>();
        (made, ended.unwrap_or_else(|| open.expect("one of the two").finish()))
    });
    early?;
    let late = probe.after_finish() - before;
    Ok((made, Found { late, ..check::read(folder.path())? }))
}

/// Changes the level and stops the recorder's thread, at random moments.
fn disturb(random: &mut Random, length: Duration, set_level: impl Fn(Level)) {
    let until = Instant::now() + length;
    while Instant::now() < until {
        set_level(Level(random.below(4) as u8));
        if random.below(8) == 0 {
            clock::stall(Duration::from_micros(random.below(50_000)));
        }
        std::thread::sleep(Duration::from_micros(random.below(20_000)));
    }
    set_level(Level::NUMERICS);
}
