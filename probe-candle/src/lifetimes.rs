//! Which lifetime of an address is in force: one table for the process, as its addresses are.
//!
//! A word of the table is a storage id that holds: the address in the low 48 bits, its epoch in the high
//! 16. An address may lie in either of two buckets of eight, which are a cache line each, so that looking
//! one up reads two lines at most whatever else is held. Nothing waits: every change is one
//! compare-and-swap, and what loses four of them in a row goes without an epoch.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use tmrun_probe_core::{StorageId, TensorId};

/// The bits of a storage id that hold the address.
const ADDRESS: u64 = (1 << 48) - 1;

/// How many epochs there are; 0 is none of them.
const EPOCHS: u64 = u16::MAX as u64;

const WAYS: usize = 8;

/// Buckets of the table that is there without set-up: 128 KiB.
const BUCKETS: usize = 1 << 10;

/// How often a change is tried that other threads get in the way of.
const ATTEMPTS: usize = 4;

#[derive(Debug)]
#[repr(C, align(64))]
struct Bucket {
    /// Ids that hold, 0 where there is none.
    ids: [AtomicU64; WAYS],
    /// The tensor that each was allocated for. Only an allocation looks at it.
    tensors: [AtomicU64; WAYS],
}

impl Bucket {
    const fn empty() -> Self {
        let (ids, tensors) =
            ([const { AtomicU64::new(0) }; WAYS], [const { AtomicU64::new(0) }; WAYS]);
        Self { ids, tensors }
    }

    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        self.ids.iter().zip(&self.tensors).map(|(id, tensor)| Place { id, tensor })
    }
}

#[derive(Clone, Copy)]
struct Place<'t> {
    id: &'t AtomicU64,
    tensor: &'t AtomicU64,
}

impl Place<'_> {
    /// Whether it held `old` and holds `new` from now on, which was allocated for this tensor.
    fn change(self, old: u64, new: u64, tensor: TensorId) -> bool {
        let changed =
            self.id.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if changed {
            self.tensor.store(tensor.0, Ordering::Relaxed);
        }
        changed
    }
}

/// A table of lifetimes. (Its loads are relaxed: who has a tensor from another thread has got it after
/// that thread recorded its allocation, and so sees it.)
#[derive(Debug)]
struct Table {
    /// A power of two of them.
    buckets: &'static [Bucket],
    held: AtomicUsize,
    begun: AtomicU64,
    refused: AtomicU64,
}

impl Table {
    const fn of(buckets: &'static [Bucket]) -> Self {
        let (held, begun, refused) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Self { buckets, held, begun, refused }
    }

    /// An empty one with room for so many storages and half as many: below that hardly any address
    /// finds both of its buckets full.
    fn with_room(storages: usize) -> Self {
        let places = storages.saturating_add(storages / 2).clamp(WAYS, 1 << 26);
        let count = places.div_ceil(WAYS).next_power_of_two();
        Self::of(Box::leak((0..count).map(|_| Bucket::empty()).collect()))
    }

    /// The two buckets of an address. (They may be the same.)
    fn buckets_of(&self, address: u64) -> impl Iterator<Item = &'static Bucket> + use<> {
        let (buckets, last) = (self.buckets, self.buckets.len().wrapping_sub(1));
        let factors = [0x9E37_79B9_7F4A_7C15_u64, 0xD6E8_FEB8_6659_FD93];
        factors.into_iter().filter_map(move |factor| {
            let mixed = (address ^ (address >> 21)).wrapping_mul(factor);
            buckets.get((mixed >> 36) as usize & last)
        })
    }

    /// The lifetime of this address that holds.
    fn find(&self, address: u64) -> Option<(Place<'static>, u64)> {
        let places = self.buckets_of(address).flat_map(Bucket::places);
        let mut held = places.map(|place| (place, place.id.load(Ordering::Relaxed)));
        held.find(|(_, id)| id & ADDRESS == address)
    }

    /// A place for this address, in the emptier of its buckets.
    fn room(&self, address: u64) -> Option<Place<'static>> {
        let is_free = |place: &Place<'_>| place.id.load(Ordering::Relaxed) == 0;
        let free = |bucket: &&Bucket| bucket.places().filter(is_free).count();
        let bucket = self.buckets_of(address).max_by_key(free)?;
        bucket.places().find(is_free)
    }

    fn in_force(&self, address: u64) -> StorageId {
        if self.held.load(Ordering::Relaxed) == 0 || address == 0 {
            return StorageId(address);
        }
        StorageId(self.find(address).map_or(address, |(_, id)| id))
    }

    fn begin(&self, address: u64, tensor: TensorId) -> StorageId {
        if address == 0 {
            return StorageId(0);
        }
        for _ in 0..ATTEMPTS {
            let (place, old) = match self.find(address) {
                // The same tensor is there still, so its storage is the same still.
                Some((place, id)) if place.tensor.load(Ordering::Relaxed) == tensor.0 => {
                    return StorageId(id);
                }
                Some(held) => held,
                None => match self.room(address) {
                    Some(place) => (place, 0),
                    None => break,
                },
            };
            let new = address | (self.epoch() << 48);
            if place.change(old, new, tensor) {
                self.held.fetch_add(usize::from(old == 0), Ordering::Relaxed);
                return StorageId(new);
            }
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        StorageId(address)
    }

    /// The next epoch, 1 to 65,535 and from the beginning again.
    fn epoch(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed) % EPOCHS + 1
    }

    fn end(&self, storage: StorageId) -> bool {
        let StorageId(id) = storage;
        if id & !ADDRESS == 0 {
            return false;
        }
        let places = self.buckets_of(id & ADDRESS).flat_map(Bucket::places);
        for place in places.filter(|place| place.id.load(Ordering::Relaxed) == id) {
            // First, so that nothing of this lifetime is left when the place is another's.
            place.tensor.store(0, Ordering::Relaxed);
            if place.change(id, 0, TensorId::NONE) {
                self.held.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
        }
        false
    }
}

// --- the process's own ----------------------------------------------------------------------------

static BUILT_IN: Table = {
    static PLACES: [Bucket; BUCKETS] = [const { Bucket::empty() }; BUCKETS];
    Table::of(&PLACES)
};

static SET_UP: OnceLock<Table> = OnceLock::new();

/// Which of the two is in use; it is decided once, by whoever comes first.
static CHOICE: AtomicU8 = AtomicU8::new(UNDECIDED);
const UNDECIDED: u8 = 0;
const IS_BUILT_IN: u8 = 1;
const IS_SET_UP: u8 = 2;

fn choose(table: u8) -> u8 {
    let chosen = CHOICE.compare_exchange(UNDECIDED, table, Ordering::AcqRel, Ordering::Acquire);
    chosen.map_or_else(|earlier| earlier, |_| table)
}

/// The table that is in use, or will be if nobody sets up another.
fn table() -> &'static Table {
    // Only who has set one up chooses it, so it is there; asking never waits.
    match CHOICE.load(Ordering::Acquire) {
        IS_SET_UP => SET_UP.get().unwrap_or(&BUILT_IN),
        _ => &BUILT_IN,
    }
}

/// Lifetimes are being recorded already, or room for them was made before: it stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifetimesInUse;

impl std::fmt::Display for LifetimesInUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "the table of storages has its size already: call hold_lifetimes once, before the first \
             allocation is recorded",
        )
    }
}

impl std::error::Error for LifetimesInUse {}

/// Makes room for the lifetimes of so many storages at once, for this process, which takes 24 to 48 bytes
/// each; without it there is room for some 5,400. This is set-up: it comes before the first allocation is
/// recorded.
///
/// # Errors
///
/// When it comes later, or a second time.
pub fn hold_lifetimes(storages: usize) -> Result<(), LifetimesInUse> {
    if CHOICE.load(Ordering::Acquire) != UNDECIDED {
        return Err(LifetimesInUse);
    }
    SET_UP.set(Table::with_room(storages)).map_err(|_| LifetimesInUse)?;
    if choose(IS_SET_UP) == IS_SET_UP { Ok(()) } else { Err(LifetimesInUse) }
}

/// How many allocations of this process were recorded without an epoch, because the table had no room
/// for them ([`hold_lifetimes`]). Their storages are as good as ones whose lifetime was not recorded.
pub fn lifetimes_without_epoch() -> u64 {
    table().refused.load(Ordering::Relaxed)
}

/// The storage at this address: with the epoch of its lifetime where that was recorded.
pub(crate) fn in_force(address: usize) -> StorageId {
    table().in_force(address as u64 & ADDRESS)
}

/// The storage at this address, which was allocated for this tensor: in a lifetime of its own, unless
/// it is that of this very tensor already.
pub(crate) fn begin(address: usize, tensor: TensorId) -> StorageId {
    choose(IS_BUILT_IN);
    table().begin(address as u64 & ADDRESS, tensor)
}

/// Ends a lifetime, if it holds: the address has no epoch from now on.
pub(crate) fn end(storage: StorageId) -> bool {
    table().end(storage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(StorageId(id): StorageId) -> u64 {
        id >> 48
    }

    #[test]
    fn an_address_has_an_epoch_from_its_allocation_to_its_free() {
        let table = Table::with_room(8);
        assert_eq!(table.in_force(0x5000), StorageId(0x5000), "nobody recorded it");
        let first = table.begin(0x5000, TensorId(1));
        assert_ne!(epoch(first), 0);
        assert_eq!((first.0 & ADDRESS, table.in_force(0x5000)), (0x5000, first));
        assert_eq!(table.begin(0x5000, TensorId(1)), first, "the same tensor is there still");
        assert!(table.end(first) && !table.end(first));
        assert_eq!(table.in_force(0x5000), StorageId(0x5000));
        let second = table.begin(0x5000, TensorId(2));
        assert!(epoch(second) != 0 && second != first);
        assert!(!table.end(first), "another lifetime's");
        assert_eq!(table.in_force(0x5000), second);
    }

    #[test]
    fn another_tensor_at_an_address_is_another_lifetime_whether_or_not_the_end_of_the_first_was_seen()
     {
        let table = Table::with_room(8);
        let (first, second) = (table.begin(64, TensorId(1)), table.begin(64, TensorId(2)));
        assert_ne!(first, second);
        assert_eq!((table.in_force(64), table.held.load(Ordering::Relaxed)), (second, 1));
        assert!(!table.end(first) && table.end(second));
        assert_eq!(table.held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_full_table_gives_no_epoch_and_counts() {
        let table = Table::with_room(1);
        let ids: Vec<_> = (1..=9).map(|n| table.begin(n << 4, TensorId(n))).collect();
        assert_eq!(ids.iter().filter(|id| epoch(**id) == 0).count(), 1);
        assert_eq!((ids[8], table.refused.load(Ordering::Relaxed)), (StorageId(9 << 4), 1));
        assert!(!table.end(ids[8]), "it has no lifetime");
        assert!(table.end(ids[3]));
        assert_ne!(epoch(table.begin(9 << 4, TensorId(9))), 0, "there is room again");
    }

    #[test]
    fn epochs_come_again_and_are_never_none() {
        let table = Table::with_room(8);
        for n in 1..=2 * EPOCHS + 2 {
            let id = table.begin(16, TensorId(n));
            assert_eq!(epoch(id), (n - 1) % EPOCHS + 1);
            assert!(table.end(id));
        }
    }

    /// As an allocator places them: close together, and far apart in some stretches.
    #[test]
    fn as_many_as_were_asked_for_find_room() {
        for room in [100, 5_000, 100_000] {
            let table = Table::with_room(room);
            for n in 0..room as u64 {
                let address = 0x7f00_0000_0000 + n * 0x90 + (n / 1_000) * 0x40_0000;
                assert_ne!(epoch(table.begin(address, TensorId(n + 1))), 0, "{n} of {room}");
            }
            assert_eq!(table.refused.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn threads_do_not_get_in_each_others_way() {
        let table = Table::with_room(1 << 12);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let table = &table;
                scope.spawn(move || {
                    for n in 0..20_000 {
                        let address = (((thread << 20) | (n % 256)) << 4) | (1 << 40);
                        let id = table.begin(address, TensorId(thread * 1_000_000 + n + 1));
                        assert_eq!(table.in_force(address), id);
                        assert!(epoch(id) == 0 || table.end(id));
                    }
                });
            }
        });
        assert_eq!(table.held.load(Ordering::Relaxed), 0);
    }
}
