//! What the storages of a region are called.

use std::borrow::Cow;
use std::collections::HashMap;

use tmrun_formats::wire::Alloc;

use crate::convert::Id;

/// The storages that are live, and those whose name another one had before.
#[derive(Default)]
pub(super) struct Storages<'d> {
    live: HashMap<Key, Held<'d>>,
    /// How many storages had this name, where there were several at once.
    lives: HashMap<Key, u64>,
}

/// A device, a number, and whether that is a name's.
type Key = (u8, u64, bool);

struct Held<'d> {
    bytes: u64,
    /// It has ended, and the trace does not have when: something else was of its name since.
    is_over: bool,
    /// The tensors that lie in it.
    tensors: Vec<(u64, bool)>,
    name: Cow<'d, str>,
}

impl<'d> Storages<'d> {
    /// The name of the storage that is freed; `None` when it is not known to be live. A free of another
    /// size is of another storage of that name, whose allocation was not seen, and neither was the end of
    /// the one that is known.
    pub(super) fn free(&mut self, event: &Alloc, id: Id) -> Option<Cow<'d, str>> {
        let key = key(event, id);
        let held = self.live.get_mut(&key)?;
        held.is_over |= held.bytes != event.bytes;
        if held.is_over {
            return None;
        }
        self.live.remove(&key).map(|held| held.name)
    }

    /// The name of the storage that a tensor gets, `given` being its id's; and whether it had to take
    /// another one.
    ///
    /// A storage that comes while one of its name is live, for a tensor that is in it or with another
    /// size, is another one: the free of the first was not seen. It gets a name of its own, so that
    /// the first stays without an end instead of getting an invented one.
    pub(super) fn allocate(
        &mut self,
        event: &Alloc,
        id: Id,
        tensor: Id,
        given: Cow<'d, str>,
    ) -> (Cow<'d, str>, bool) {
        let (key, tensor) = (key(event, id), (tensor.value, tensor.named));
        let is_taken = match self.live.get_mut(&key) {
            Some(held)
                if !held.is_over
                    && held.bytes == event.bytes
                    && !held.tensors.contains(&tensor) =>
            {
                held.tensors.push(tensor);
                return (held.name.clone(), false);
            }
            held => held.is_some(),
        };
        let name = if is_taken {
            let lives = self.lives.entry(key).or_insert(1);
            *lives = lives.saturating_add(1);
            Cow::Owned(format!("{given}#{lives}"))
        } else {
            given
        };
        let (bytes, tensors) = (event.bytes, vec![tensor]);
        let held = Held { bytes, is_over: false, tensors, name: name.clone() };
        self.live.insert(key, held);
        (name, is_taken)
    }
}

fn key(event: &Alloc, id: Id) -> Key {
    (event.device.0, id.value, id.named)
}
