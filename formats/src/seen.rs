//! Which ids a stream has, without the ids.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Ids as 128 bits of two keyed hashes: at a thousand million ids the chance that one is taken for
/// another is below 2⁻⁶⁸, and no input can aim for it.
#[derive(Debug, Default)]
pub(crate) struct SeenIds {
    seen: HashSet<IdKey>,
    high: RandomState,
    low: RandomState,
}

/// What is remembered of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct IdKey(u64, u64);

impl SeenIds {
    pub(crate) fn key(&self, id: &str) -> IdKey {
        IdKey(self.high.hash_one(id), self.low.hash_one(id))
    }

    /// Remembers an id; whether it is new.
    pub(crate) fn insert(&mut self, key: IdKey) -> bool {
        self.seen.insert(key)
    }

    pub(crate) fn contains(&self, key: IdKey) -> bool {
        self.seen.contains(&key)
    }
}
