//! What is live at one time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use tmrun_formats::evidence::{LogicalMemoryPoint, Totals};
use tmrun_formats::trace::MemoryCategory;

/// The sums of what is live.
#[derive(Default)]
pub(super) struct Live<'d> {
    bytes: u128,
    devices: Sums<&'d str>,
    categories: Sums<&'static str>,
}

impl<'d> Live<'d> {
    pub fn add(&mut self, device: &'d str, category: MemoryCategory, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes.into());
        self.devices.add(device, bytes);
        self.categories.add(category.name(), bytes);
    }

    /// Takes away what was added.
    pub fn remove(&mut self, device: &'d str, category: MemoryCategory, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes.into());
        self.devices.remove(device, bytes);
        self.categories.remove(category.name(), bytes);
    }

    /// The bytes on one device.
    pub fn on_device(&self, device: &str) -> u64 {
        self.devices.0.get(device).map_or(0, |sum| at_most(sum.bytes))
    }

    pub fn point(&self, timestamp_ns: u64) -> LogicalMemoryPoint<'d> {
        LogicalMemoryPoint {
            timestamp_ns,
            live_bytes: at_most(self.bytes),
            live_bytes_by_device: self.devices.totals(),
            live_bytes_by_category: self.categories.totals(),
        }
    }
}

/// Bytes by name, of names that something is live of.
#[derive(Default)]
struct Sums<K>(BTreeMap<K, Sum>);

/// Exact, because what is over the range of 64 bits may come back into it.
#[derive(Default)]
struct Sum {
    storages: u64,
    bytes: u128,
}

impl<K: Ord + Copy> Sums<K> {
    fn add(&mut self, key: K, bytes: u64) {
        let sum = self.0.entry(key).or_default();
        sum.storages = sum.storages.saturating_add(1);
        sum.bytes = sum.bytes.saturating_add(bytes.into());
    }

    fn remove(&mut self, key: K, bytes: u64) {
        let Entry::Occupied(mut entry) = self.0.entry(key) else { return };
        let sum = entry.get_mut();
        sum.storages = sum.storages.saturating_sub(1);
        sum.bytes = sum.bytes.saturating_sub(bytes.into());
        if sum.storages == 0 {
            entry.remove();
        }
    }

    fn totals<'d>(&self) -> Totals<'d>
    where
        K: Into<Cow<'d, str>>,
    {
        self.0.iter().map(|(&key, sum)| (key, at_most(sum.bytes))).collect()
    }
}

/// A sum in 64 bits, at the end of the range when there is more.
fn at_most(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
