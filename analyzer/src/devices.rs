//! What a recording says of devices, each clock of each by itself: how many intervals, whether their
//! stamps say anything, and what relates the clock to the host's.
//!
//! Guarantees:
//!
//! - Nothing is compared across clocks, or with the host's, unless the file has readings of both
//!   (ClockSync); what follows from those has a bound, and no time is moved by it.
//! - Memory does not grow with the file.

use std::collections::{BTreeMap, BTreeSet};

use rayon::iter::ParallelIterator;
use tmrun_formats::wire::{self, ClockSync, DeviceInterval, Kind};
use tmrun_formats::{
    ClockCode, DeviceCode, DeviceFit, DeviceReading, GapReason, NameId, StampFault, StreamId,
};

use crate::scan::{Clock, Gap, RecordChunk, Recording};

/// The most streams of a clock that are told apart.
const STREAMS: usize = 1024;
/// The most readings of a clock that are kept: beyond, every other one.
const READINGS: usize = 4096;
/// The most causes of gaps that are told in words.
const CAUSES: usize = 16;

/// What a recording says of one clock of one device.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceClock {
    /// Intervals whose stamps say something.
    pub intervals: u64,
    /// Those that say nothing, in the order of [`StampFault::ALL`].
    pub invalid: [u64; 3],
    /// How many streams they are of, counted up to 1,024.
    pub streams: u64,
    /// The first start and the last end, on this clock.
    pub range: Option<(u64, u64)>,
    /// What relates it to the host's clock, in nanoseconds since the first calibration; `None`: unmapped.
    pub fit: Option<DeviceFit>,
    /// The greatest bound of the fit over the range.
    pub bound_ns: f64,
    /// Intervals that the fit has begin before they were launched, by more than its bound.
    pub too_early: u64,
    /// Intervals that the fit has end after they were seen to be done, by more than its bound.
    pub too_late: u64,
}

/// A reason for which device evidence is missing, and what was said of it.
pub type Cause<'a> = (GapReason, &'a str);

/// What a recording says of devices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Devices<'a> {
    /// Each clock of each device.
    pub clocks: BTreeMap<(DeviceCode, ClockCode), DeviceClock>,
    /// What drivers said where something is missing, at most sixteen.
    pub causes: BTreeSet<Cause<'a>>,
}

impl<'a> Devices<'a> {
    /// Looks at every interval, and at every reading.
    pub fn of(recording: &Recording<'a>) -> Self {
        let counts = recording.counts();
        let says = [Kind::DeviceInterval, Kind::ClockSync].iter().any(|&kind| counts.of(kind) > 0);
        // (A reason that only devices have.)
        let lacks = |gap: &Gap| gap.reason >= GapReason::POOL_EXHAUSTED;
        if !says && !recording.gaps().iter().any(lacks) {
            return Self::default();
        }
        let clock = recording.clock();
        let (fits, causes) = fits(recording, &clock);
        let seen = recording.par_record_chunks().fold(Seen::default, |mut seen, chunk| {
            seen.chunk(&chunk, &clock, &fits);
            seen
        });
        let mut seen = seen.reduce(Seen::default, Seen::merge).0;
        // A clock that was read and timed nothing is one as well.
        for &code in fits.keys() {
            let device = recording.meta().clocks.get(&code).map(|clock| clock.device);
            let known = seen.keys().any(|&(_, clock)| clock == code);
            if let Some(device) = device.filter(|_| !known) {
                seen.insert((device, code), (DeviceClock::default(), BTreeSet::new()));
            }
        }
        let clocks = seen.into_iter().map(|(key, (mut clock, streams))| {
            clock.streams = streams.len() as u64;
            clock.fit = fits.get(&key.1).copied();
            let ends = clock.range.map_or([0; 2], |(first, last)| [first, last]);
            let bounds = clock.fit.iter().flat_map(|fit| ends.map(|at| fit.bound_ns(at)));
            clock.bound_ns = bounds.fold(0.0, f64::max);
            (key, clock)
        });
        Self { clocks: clocks.collect(), causes }
    }
}

/// The fit of each clock, and the causes.
fn fits<'a>(
    recording: &Recording<'a>,
    clock: &Clock<'_>,
) -> (BTreeMap<ClockCode, DeviceFit>, BTreeSet<Cause<'a>>) {
    let mut readings: BTreeMap<ClockCode, Vec<DeviceReading>> = BTreeMap::new();
    let mut causes = BTreeSet::new();
    let records = recording.record_chunks().flat_map(|chunk| chunk.records());
    for record in records {
        if let Some(ClockSync { device_ns, before, after, clock: of }) = record.payload() {
            let kept = readings.entry(of).or_default();
            if kept.len() >= READINGS {
                let mut at = 0_usize;
                kept.retain(|_| {
                    at = at.wrapping_add(1);
                    at % 2 == 1
                });
            }
            let (before, after) = (clock.ns(before), clock.ns(after));
            kept.push(DeviceReading { device_ns, before, after });
        } else if let Some(gap) = record.payload::<wire::Gap>()
            && record.header().name != NameId::NONE
            && causes.len() < CAUSES
        {
            causes.extend(recording.names().text(record.header().name).map(|it| (gap.reason, it)));
        }
    }
    let fits = readings.iter().filter_map(|(&of, readings)| Some((of, DeviceFit::of(readings)?)));
    (fits.collect(), causes)
}

type Timed = (DeviceClock, BTreeSet<StreamId>);

/// What some chunks have of each clock.
#[derive(Default)]
struct Seen(BTreeMap<(DeviceCode, ClockCode), Timed>);

impl Seen {
    fn chunk(
        &mut self,
        chunk: &RecordChunk<'_>,
        clock: &Clock<'_>,
        fits: &BTreeMap<ClockCode, DeviceFit>,
    ) {
        for record in chunk.iter() {
            let Some(interval) = record.payload::<DeviceInterval>() else { continue };
            let DeviceInterval { start, end, stream, seen, device, clock: of, .. } = interval;
            let (timed, streams) = self.0.entry((device, of)).or_default();
            if let Some(fault) = StampFault::of(start, end) {
                let faults = StampFault::ALL.into_iter().zip(&mut timed.invalid);
                let counts = faults.filter(|(known, _)| *known == fault);
                counts.for_each(|(_, count)| *count = count.saturating_add(1));
                continue;
            }
            add(&mut timed.intervals, 1);
            if streams.len() < STREAMS {
                streams.insert(stream);
            }
            timed.range = union(timed.range, Some((start, end)));
            if let Some(fit) = fits.get(&of) {
                let host = |at| clock.ns(at) as f64;
                let begins_at_most = fit.host_ns(start) + fit.bound_ns(start);
                let ends_at_least = fit.host_ns(end) - fit.bound_ns(end);
                add(&mut timed.too_early, (begins_at_most < host(record.header().ticks)).into());
                add(&mut timed.too_late, (ends_at_least > host(seen)).into());
            }
        }
    }

    fn merge(mut self, other: Self) -> Self {
        for (key, (more, streams)) in other.0 {
            let (timed, all) = self.0.entry(key).or_default();
            add(&mut timed.intervals, more.intervals);
            timed.invalid.iter_mut().zip(more.invalid).for_each(|(count, more)| add(count, more));
            timed.range = union(timed.range, more.range);
            add(&mut timed.too_early, more.too_early);
            add(&mut timed.too_late, more.too_late);
            all.extend(streams);
            while all.len() > STREAMS {
                all.pop_last();
            }
        }
        self
    }
}

const fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}

fn union(one: Option<(u64, u64)>, other: Option<(u64, u64)>) -> Option<(u64, u64)> {
    match (one, other) {
        (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
        (one, other) => one.or(other),
    }
}
