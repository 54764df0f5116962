//! Room at the end of a buffer, made once for many pieces: the fast half of the writer.
//!
//! A record has some twenty pieces, most of them shorter than what it costs to append one to a `Vec`,
//! whose length and capacity are loaded and stored each time. A [`Room`] is a slice and a place in
//! it, and stays in registers.

mod number;
mod text;

pub(crate) use number::FloatText;

use std::mem::{self, MaybeUninit};

/// Room at the end of a buffer. Everything before it is written.
#[derive(Debug, Default)]
pub struct Room<'a> {
    rest: &'a mut [MaybeUninit<u8>],
}

/// What is written into a room.
pub(crate) trait Write {
    /// Writes it; `None` if there is no room for all of it.
    fn write(&self, room: &mut Room<'_>) -> Option<()>;
}

impl<F: Fn(&mut Room<'_>) -> Option<()>> Write for F {
    #[inline(always)]
    fn write(&self, room: &mut Room<'_>) -> Option<()> {
        self(room)
    }
}

/// Appends what `what` writes. `least` is the room that is enough as a rule.
#[inline(always)]
pub(crate) fn append(out: &mut Vec<u8>, least: usize, what: &impl Write) {
    out.reserve(least);
    if try_append(out, what).is_none() {
        append_long(out, what);
    }
}

/// The same for what was too long. (Not a loop around the usual case: whatever such a loop does is
/// computed before it, needed or not, because it could be needed twice.)
#[cold]
#[inline(never)]
fn append_long(out: &mut Vec<u8>, what: &impl Write) {
    let mut least = 64_usize;
    while try_append(out, what).is_none() {
        least = least.saturating_mul(2);
        out.reserve(least);
    }
}

#[inline(always)]
fn try_append(out: &mut Vec<u8>, what: &impl Write) -> Option<()> {
    let spare = out.spare_capacity_mut();
    let len = spare.len();
    let mut room = Room { rest: spare };
    what.write(&mut room)?;
    let written = len - room.rest.len();
    // SAFETY: `spare` was all that lies between length and capacity, a `Room` only becomes smaller,
    // and everything before it is written.
    unsafe { out.set_len(out.len() + written) };
    Some(())
}

impl Room<'_> {
    /// Writes `bytes`. Like everything here: `None` if there is no room for it.
    #[inline(always)]
    #[must_use]
    pub fn raw<const N: usize>(&mut self, bytes: &[u8; N]) -> Option<()> {
        self.first_of(bytes, N)
    }

    /// Writes the first `used` of `bytes`, with room for all of them.
    #[inline(always)]
    fn first_of<const N: usize>(&mut self, bytes: &[u8; N], used: usize) -> Option<()> {
        self.rest.first_chunk_mut::<N>()?.write_copy_of_slice(bytes);
        self.skip(used.min(N))
    }

    /// Leaves the first `written` bytes behind, all of which are.
    #[inline(always)]
    fn skip(&mut self, written: usize) -> Option<()> {
        self.rest = mem::take(&mut self.rest).get_mut(written..)?;
        Some(())
    }

    /// Writes `true` or `false`.
    #[inline(always)]
    #[must_use]
    pub fn bool(&mut self, value: bool) -> Option<()> {
        if value { self.raw(b"true") } else { self.raw(b"false") }
    }
}

#[cfg(test)]
mod tests {
    use super::{Room, append};

    #[test]
    fn what_does_not_fit_is_written_with_more_room_and_once() {
        for long in [0, 7, 40, 5_000] {
            let text = "\u{1}".repeat(long);
            let mut out = b"before".to_vec();
            append(&mut out, 0, &|room: &mut Room<'_>| {
                room.u64(12)?;
                room.raw(b",\"")?;
                room.string(&text)
            });
            let expected = format!("before12,\"{}\"", "\\u0001".repeat(long));
            assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
        }
    }
}
