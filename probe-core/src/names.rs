//! The name table: strings that records refer to by number.
//!
//! Interning takes a few hundred nanoseconds and belongs off the hot path: a static site does it
//! once, a node at set-up. It is lock-free: a string is copied into the arena, then its entry is
//! published, then the hash index points at it. Two threads that intern the same new string at the
//! same moment may each copy it; one entry wins.

use core::cell::UnsafeCell;
use core::hash::Hasher;

use tmrun_formats::NameId;

use crate::levels::{Levels, ThresholdCell};
use crate::sync::{AtomicBool, AtomicU8, AtomicU32, Ordering, array, const_fn};

/// Bytes of arena for each entry of the table.
pub(crate) const BYTES_PER_NAME: usize = 64;

/// What a name stands for besides its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Node<'a> {
    /// The dotted address or label.
    pub name: &'a str,
    /// The type of the node, such as `attention`.
    pub node_type: Option<&'a str>,
    /// The node's id in a static analysis.
    pub static_id: Option<&'a str>,
    /// Where the node stands in the source.
    pub source: Option<&'a str>,
}

impl<'a> Node<'a> {
    /// A node of this name, and nothing else known.
    pub const fn named(name: &'a str) -> Self {
        Self { name, node_type: None, static_id: None, source: None }
    }
}

/// A string in the arena: its end and length + 1; length 0 stands for `None`.
struct Text {
    start: AtomicU32,
    length: AtomicU32,
}

/// One entry: the four texts of a [`Node`].
pub(crate) struct Entry {
    texts: [Text; 4],
    ready: AtomicU32,
}

impl Entry {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                texts: array![Text { start: AtomicU32::new(0), length: AtomicU32::new(0) }; 4],
                ready: AtomicU32::new(0),
            }
        }
    }
}

/// A piece of the arena. Bytes are written once, by who reserved them, before an entry that covers
/// them is published.
#[repr(transparent)]
pub(crate) struct ArenaBlock(UnsafeCell<[u8; BYTES_PER_NAME]>);

// SAFETY: a byte is written only by the thread that reserved it, and read only through an entry
// that was published (release) after the write and observed (acquire) before the read.
unsafe impl Sync for ArenaBlock {}

impl ArenaBlock {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new([0; BYTES_PER_NAME]))
    }
}

/// The counters of a name table.
pub(crate) struct NameCounters {
    /// Entries handed out.
    entries: AtomicU32,
    /// Bytes handed out.
    bytes: AtomicU32,
    /// Names that found no room.
    unnamed: AtomicU32,
}

impl NameCounters {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { entries: AtomicU32::new(0), bytes: AtomicU32::new(0), unnamed: AtomicU32::new(0) }
        }
    }
}

/// A piece of the arena as it is shown: two threads may store the same text to it at once.
pub(crate) type ShownBlock = [AtomicU8; BYTES_PER_NAME];

/// A view of a probe's name table.
#[derive(Clone, Copy)]
pub(crate) struct Names<'p> {
    pub(crate) counters: &'p NameCounters,
    pub(crate) entries: &'p [Entry],
    /// Open addressing by hash: entry number + 1, or 0. Twice as many places as entries.
    pub(crate) index: &'p [[AtomicU32; 2]],
    pub(crate) arena: &'p [ArenaBlock],
    /// What the foci ask for, entry by entry.
    pub(crate) focused: &'p [ThresholdCell],
    pub(crate) levels: &'p Levels,
    pub(crate) shown: Option<Shown<'p>>,
}

/// Where entries and text are copied to while they are mapped to a file. It is written and never
/// read.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'p> {
    pub(crate) mapped: &'p AtomicBool,
    pub(crate) entries: &'p [Entry],
    pub(crate) arena: &'p [ShownBlock],
    /// How many names found no room.
    pub(crate) unnamed: &'p AtomicU32,
}

impl<'p> Names<'p> {
    /// The id of this node, interned if it is new; none when the table or its arena is full, which
    /// is counted.
    pub(crate) fn intern(&self, node: &Node<'_>) -> NameId {
        let places = self.index.as_flattened();
        let start = hash(node) as usize;
        let mut own = None;
        for probe in 0..places.len() {
            let Some(place) = places.get(start.wrapping_add(probe) % places.len().max(1)) else {
                break;
            };
            let mut found = place.load(Ordering::Acquire);
            if found == 0 {
                // One copy is enough, also when other names take place after place from it.
                own = own.or_else(|| self.add(node));
                // Without one the table is full; another thread may have had its last entry for
                // this very name.
                found = match own {
                    Some(own) => place
                        .compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire)
                        .map_or_else(|found| found, |_| own),
                    None => place.load(Ordering::Acquire),
                };
            }
            if found == 0 {
                break;
            }
            if own == Some(found) || self.get(NameId(found)).as_ref() == Some(node) {
                return NameId(found);
            }
        }
        let before = self.counters.unnamed.fetch_add(1, Ordering::Relaxed);
        if let Some(shown) = &self.shown {
            shown.unnamed.fetch_max(before.saturating_add(1), Ordering::Relaxed);
        }
        NameId::NONE
    }

    /// Copies a node into the arena and publishes its entry.
    fn add(&self, node: &Node<'_>) -> Option<u32> {
        let texts = [Some(node.name), node.node_type, node.static_id, node.source];
        let length = texts
            .iter()
            .flatten()
            .try_fold(0_u32, |sum, text| sum.checked_add(u32::try_from(text.len()).ok()?))?;
        let capacity = u32::try_from(self.arena.len().checked_mul(BYTES_PER_NAME)?).ok()?;
        let mut start = reserve(&self.counters.bytes, length, capacity)?;
        let number = reserve(&self.counters.entries, 1, u32::try_from(self.entries.len()).ok()?)?;
        let entry = self.entries.get(number as usize)?;
        for (place, text) in entry.texts.iter().zip(texts) {
            let Some(text) = text else { continue };
            copy(self.arena, start, text);
            place.start.store(start, Ordering::Relaxed);
            place.length.store(text.len() as u32 + 1, Ordering::Relaxed);
            start += text.len() as u32;
        }
        entry.ready.store(1, Ordering::SeqCst);
        self.focus(NameId(number + 1));
        // Either the mapping is seen here, or whoever maps sees the entry.
        if let Some(shown) = self.shown.filter(|shown| shown.mapped.load(Ordering::SeqCst)) {
            self.show(NameId(number + 1), &shown);
        }
        Some(number + 1)
    }

    /// Stores what the foci ask for of every node.
    pub(crate) fn focus_all(&self) {
        (1..=self.count()).for_each(|id| self.focus(NameId(id)));
    }

    /// Stores what the foci ask for of a node, if it is ready. (Who makes it ready does this then.)
    fn focus(&self, id: NameId) {
        let at = (id.0 as usize).wrapping_sub(1);
        let (Some(node), Some(focused)) = (self.get(id), self.focused.get(at)) else { return };
        self.levels.settle(|| focused.set(self.levels.of_focus(node.name, self)));
    }

    /// Copies everything that is ready to where it is shown: for whoever has just mapped it.
    #[cfg(feature = "std")]
    pub(crate) fn show_all(&self) {
        let Some(shown) = self.shown else { return };
        shown.unnamed.fetch_max(self.unnamed(), Ordering::Relaxed);
        (1..=self.count()).for_each(|id| self.show(NameId(id), &shown));
    }

    /// Copies an entry to where it is shown. Two may do so at once, who interned it and who has just
    /// mapped it: they store the same, all of it to atomics.
    fn show(&self, id: NameId, shown: &Shown<'_>) {
        let at = (id.0 as usize).wrapping_sub(1);
        let (Some(from), Some(to)) = (self.entries.get(at), shown.entries.get(at)) else { return };
        if from.ready.load(Ordering::SeqCst) == 0 {
            return;
        }
        for (from, to) in from.texts.iter().zip(&to.texts) {
            if let Some(text) = self.text(from) {
                let start = from.start.load(Ordering::Relaxed);
                let places = shown.arena.as_flattened().iter().skip(start as usize);
                for (place, byte) in places.zip(text.bytes()) {
                    place.store(byte, Ordering::Relaxed);
                }
                to.start.store(start, Ordering::Relaxed);
            }
            to.length.store(from.length.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        to.ready.store(1, Ordering::Release);
    }

    fn text(&self, text: &Text) -> Option<&'p str> {
        let start = text.start.load(Ordering::Relaxed) as usize;
        let length = (text.length.load(Ordering::Relaxed) as usize).checked_sub(1)?;
        let base = self.arena.as_ptr().cast::<u8>();
        // SAFETY: the entry is published, so these bytes were reserved, written from a `str`, and
        // are never written again.
        Some(unsafe {
            core::str::from_utf8_unchecked(core::slice::from_raw_parts(base.add(start), length))
        })
    }

    /// The node with this id.
    pub(crate) fn get(&self, id: NameId) -> Option<Node<'p>> {
        let entry = self.entries.get((id.0 as usize).checked_sub(1)?)?;
        if entry.ready.load(Ordering::Acquire) == 0 {
            return None;
        }
        let [name, node_type, static_id, source] = &entry.texts;
        Some(Node {
            name: self.text(name)?,
            node_type: self.text(node_type),
            static_id: self.text(static_id),
            source: self.text(source),
        })
    }

    /// How many ids were handed out. An id may be handed out and not ready yet.
    pub(crate) fn count(&self) -> u32 {
        self.counters.entries.load(Ordering::Acquire)
    }

    /// How many names found no room.
    pub(crate) fn unnamed(&self) -> u32 {
        self.counters.unnamed.load(Ordering::Relaxed)
    }
}

/// Copies a text to the place in an arena that was reserved for it.
fn copy(arena: &[ArenaBlock], start: u32, text: &str) {
    let Some(end) = (start as usize).checked_add(text.len()) else { return };
    if end > arena.len() * BYTES_PER_NAME {
        return;
    }
    let base = arena.as_ptr().cast::<u8>().cast_mut();
    // SAFETY: the arena is one array of cells, so `base` may write to all of it, and the place lies
    // within it. `add`, which alone calls this, has just reserved the place for this text: no other
    // thread has it, and no entry that covers it is published.
    unsafe {
        core::ptr::copy_nonoverlapping(text.as_ptr(), base.add(start as usize), text.len());
    }
}

/// Takes `n` of a counter that ends at `capacity`, and returns where they start.
fn reserve(counter: &AtomicU32, n: u32, capacity: u32) -> Option<u32> {
    let fits = |used: u32| used.checked_add(n).filter(|end| *end <= capacity);
    counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).ok()
}

fn hash(node: &Node<'_>) -> u64 {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    core::hash::Hash::hash(node, &mut hasher);
    hasher.finish()
}

/// FNV-1a, 64 bits.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
