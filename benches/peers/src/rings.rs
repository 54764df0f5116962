//! Rings of 64-byte items: one thread that fills and empties by turns, and two, the consumer at work
//! while the producer is.
//!
//! Ours is the probe as a whole with a clock that costs nothing: a producer stores a record, and the
//! drain takes it, which makes chunks of what it takes: it reads every record for its ticks and
//! computes a CRC. The others hand out one item after the other.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use heapless::spsc::Queue;
use tmrun_benches::{Cost, Row, Table, pin};
use tmrun_formats::{Level, NameId, Ticks};
use tmrun_probe_core::{Clock, Drain, Flush, Lane, Probe};

use crate::spans::{Nowhere, header};

const SLOTS: usize = 1 << 14;
/// Fits an empty ring.
const BURST: u64 = 12_000;
const ROUNDS: usize = 31;

type Item = [u64; 8];

/// What the loop makes of a number, whatever the ring.
#[inline(always)]
fn item(i: u64) -> Item {
    [i, i, i, black_box(i), 0, 0, 0, 0]
}

/// A producing end. The ring has room: nothing waits.
trait Push: Send {
    fn push(&mut self, i: u64);
}

/// A consuming end: takes what is there, and says how much that was.
trait Take: Send {
    fn take(&mut self) -> u64;
}

/// No time at all.
enum NoClock {}

impl Clock for NoClock {
    const NAME: &'static str = "none";

    #[inline(always)]
    fn ticks() -> Ticks {
        Ticks(0)
    }

    fn ticks_per_second() -> u64 {
        1
    }
}

static PROBE: Probe<NoClock, 1, SLOTS, 64> = Probe::new();

struct OurLane(Lane<'static, NoClock>);
struct OurDrain(Drain<'static, NoClock, Nowhere>);

impl Push for OurLane {
    #[inline(always)]
    fn push(&mut self, i: u64) {
        self.0.recorder().scalar(NameId::NONE, f64::from_bits(black_box(i)));
    }
}

impl Take for OurDrain {
    fn take(&mut self) -> u64 {
        let Ok(polled) = self.0.poll(Flush::All);
        polled.records
    }
}

impl Push for rtrb::Producer<Item> {
    #[inline(always)]
    fn push(&mut self, i: u64) {
        let _ = black_box(rtrb::Producer::push(self, item(i)).is_ok());
    }
}

/// Takes what is there at once, and copies it, as one who hands it on does.
struct InChunks(rtrb::Consumer<Item>, Vec<Item>);

impl Take for InChunks {
    fn take(&mut self) -> u64 {
        let Ok(chunk) = self.0.read_chunk(self.0.slots()) else { return 0 };
        let (first, second) = chunk.as_slices();
        let taken = first.len() + second.len();
        self.1.clear();
        self.1.extend_from_slice(first);
        self.1.extend_from_slice(second);
        black_box(&self.1);
        chunk.commit_all();
        taken as u64
    }
}

/// The same ring, one item after the other.
struct OneByOne(rtrb::Consumer<Item>);

impl Take for OneByOne {
    fn take(&mut self) -> u64 {
        std::iter::from_fn(|| self.0.pop().ok()).map(black_box).count() as u64
    }
}

impl Push for heapless::spsc::Producer<'static, Item> {
    #[inline(always)]
    fn push(&mut self, i: u64) {
        let _ = black_box(self.enqueue(item(i)).is_ok());
    }
}

impl Take for heapless::spsc::Consumer<'static, Item> {
    fn take(&mut self) -> u64 {
        std::iter::from_fn(|| self.dequeue()).map(black_box).count() as u64
    }
}

impl Push for &'static ArrayQueue<Item> {
    #[inline(always)]
    fn push(&mut self, i: u64) {
        let _ = black_box(ArrayQueue::push(self, item(i)).is_ok());
    }
}

impl Take for &'static ArrayQueue<Item> {
    fn take(&mut self) -> u64 {
        std::iter::from_fn(|| self.pop()).map(black_box).count() as u64
    }
}

#[inline(never)]
fn fill(push: &mut impl Push, calls: u64) {
    for i in 0..calls {
        push.push(i);
    }
}

/// Both ends of a ring.
struct Ring<P, T> {
    push: P,
    take: T,
}

/// How long it took to push everything, and then, or all in all, until everything was taken.
struct Took {
    push: Duration,
    take: Duration,
}

impl<P: Push, T: Take> Ring<P, T> {
    /// Fills the ring and empties it.
    fn one_thread(&mut self, calls: u64) -> Took {
        let start = Instant::now();
        fill(&mut self.push, calls);
        let push = start.elapsed();
        let start = Instant::now();
        let mut taken = 0;
        while taken < calls {
            taken += self.take.take();
        }
        Took { push, take: start.elapsed() }
    }

    /// Fills the ring while another core empties it, as fast as it can.
    fn two_threads(&mut self, calls: u64) -> Took {
        let ready = AtomicBool::new(false);
        let Self { push, take } = self;
        std::thread::scope(|scope| {
            let consumer = scope.spawn(|| {
                pin(1);
                ready.store(true, Ordering::Release);
                let mut taken = 0;
                while taken < calls {
                    taken += take.take();
                    std::hint::spin_loop();
                }
                Instant::now()
            });
            while !ready.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            let start = Instant::now();
            fill(push, calls);
            let pushed = start.elapsed();
            let taken = consumer.join().expect("no ring panics");
            Took { push: pushed, take: taken.duration_since(start) }
        })
    }
}

/// A ring, whatever its type.
trait AnyRing {
    fn one_thread(&mut self, calls: u64) -> Took;
    fn two_threads(&mut self, calls: u64) -> Took;
}

impl<P: Push, T: Take> AnyRing for Ring<P, T> {
    fn one_thread(&mut self, calls: u64) -> Took {
        self.one_thread(calls)
    }

    fn two_threads(&mut self, calls: u64) -> Took {
        self.two_threads(calls)
    }
}

pub fn rows(table: &mut Table) -> Result<(), crate::Failure> {
    let lane = PROBE.view().claim("producer")?;
    let Ok(mut drain) = Drain::start(PROBE.view(), Nowhere, &header(), &[], Level::MAX) else {
        return Err("the probe is being recorded".into());
    };
    // The recorder's own records, which are none of the producer's.
    let Ok(_) = drain.poll(Flush::All);
    // Not on the stack, which it would not fit.
    let queue: Box<Queue<Item, { SLOTS + 1 }>> = Box::new(Queue::new());
    let (heapless_in, heapless_out) = Box::leak(queue).split();
    let array: &'static ArrayQueue<Item> = Box::leak(Box::new(ArrayQueue::new(SLOTS)));
    let (chunks_in, chunks_out) = rtrb::RingBuffer::new(SLOTS);
    let (single_in, single_out) = rtrb::RingBuffer::new(SLOTS);
    let (push, take) = (OurLane(lane), OurDrain(drain));
    let ours = &mut Ring { push, take };
    let names = ["rtrb, chunks copied", "rtrb", "heapless spsc", "ArrayQueue"];
    let (mut chunks, mut single, mut heapless, mut array) = (
        Ring { push: chunks_in, take: InChunks(chunks_out, Vec::with_capacity(SLOTS)) },
        Ring { push: single_in, take: OneByOne(single_out) },
        Ring { push: heapless_in, take: heapless_out },
        Ring { push: array, take: array },
    );
    let peers: [&mut dyn AnyRing; 4] = [&mut chunks, &mut single, &mut heapless, &mut array];
    for (name, peer) in names.into_iter().zip(peers) {
        beside(table, name, ours, peer);
    }
    Ok(())
}

/// The rows of one peer.
fn beside(table: &mut Table, name: &str, ours: &mut dyn AnyRing, peer: &mut dyn AnyRing) {
    let mut times: [Vec<(f64, f64)>; 4] = Default::default();
    let per = |took: Duration| took.as_nanos() as f64 / BURST as f64;
    for _ in 0..=ROUNDS {
        let (ours_one, peer_one) = (ours.one_thread(BURST), peer.one_thread(BURST));
        let (ours_two, peer_two) = (ours.two_threads(BURST), peer.two_threads(BURST));
        times[0].push((per(ours_one.push), per(peer_one.push)));
        times[1].push((per(ours_one.take), per(peer_one.take)));
        times[2].push((per(ours_two.push), per(peer_two.push)));
        times[3].push((per(ours_two.take), per(peer_two.take)));
    }
    let what = [
        "ring, one thread: a store of 64 bytes",
        "ring, one thread: the drain takes 64 bytes",
        "ring, live consumer: a store of 64 bytes",
        "ring, live consumer: through it, 64 bytes",
    ];
    for (what, times) in what.into_iter().zip(times) {
        // The first round warms up.
        let rounds = times.get(1..).unwrap_or_default();
        let ours = Cost::of(rounds.iter().map(|round| round.0));
        let peer = Cost::of(rounds.iter().map(|round| round.1));
        table.push(Row::cost(what, ours, name, peer));
    }
}
