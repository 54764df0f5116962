//! Strings.

use super::Room;
use std::mem::{self, MaybeUninit};

impl Room<'_> {
    /// Writes the rest of a JSON string, whose opening quote is there already.
    #[inline(always)]
    #[must_use]
    pub fn string(&mut self, text: &str) -> Option<()> {
        let text = text.as_bytes();
        if copy(text, self.rest.get_mut(..text.len())?) {
            self.skip(text.len())?;
        } else {
            // Given away and taken back: a room that others had the address of would have to be
            // kept in memory.
            *self = escape(mem::take(self), text)?;
        }
        self.raw(b"\"")
    }

    /// Writes bytes as they are.
    #[inline(always)]
    #[must_use]
    pub(crate) fn plain(&mut self, bytes: &[u8]) -> Option<()> {
        copy(bytes, self.rest.get_mut(..bytes.len())?);
        self.skip(bytes.len())
    }
}

/// Writes `text` to all of `place`, which is as long; whether it is known that nothing in it needs
/// escaping. Most texts are short, and two copies that overlap cost less than a call.
#[inline(always)]
fn copy(text: &[u8], place: &mut [MaybeUninit<u8>]) -> bool {
    if let Some((first, last)) = ends::<16>(text) {
        let mut clean = is_clean(first) & is_clean(last);
        if text.len() > 32 {
            let places = place.as_chunks_mut::<16>().0.iter_mut();
            for (place, chunk) in places.zip(text.as_chunks::<16>().0) {
                place.write_copy_of_slice(chunk);
                clean &= is_clean(chunk);
            }
        }
        write_ends(place, first, last);
        clean
    } else if let Some((first, last)) = ends::<8>(text) {
        write_ends(place, first, last);
        is_clean(first) & is_clean(last)
    } else if let Some((first, last)) = ends::<4>(text) {
        write_ends(place, first, last);
        is_clean(first) & is_clean(last)
    } else if let Some((first, last)) = ends::<2>(text) {
        write_ends(place, first, last);
        is_clean(first) & is_clean(last)
    } else if let ([byte], [place]) = (text, place) {
        place.write(*byte);
        is_clean(&[*byte])
    } else {
        true
    }
}

/// The first and the last `N` bytes of at least that many; they may overlap.
#[inline(always)]
fn ends<const N: usize>(text: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
    Some((text.first_chunk()?, text.last_chunk()?))
}

#[inline(always)]
fn write_ends<const N: usize>(place: &mut [MaybeUninit<u8>], first: &[u8; N], last: &[u8; N]) {
    if let Some(place) = place.first_chunk_mut::<N>() {
        place.write_copy_of_slice(first);
    }
    write_last(place, last);
}

#[inline(always)]
fn write_last<const N: usize>(place: &mut [MaybeUninit<u8>], last: &[u8; N]) {
    if let Some(place) = place.last_chunk_mut::<N>() {
        place.write_copy_of_slice(last);
    }
}

/// Whether all bytes are ASCII that JSON holds as it is. (What is not ASCII mostly is too, but has to
/// be looked at more closely.) Written so that it becomes a few vector instructions.
#[inline(always)]
fn is_clean<const N: usize>(chunk: &[u8; N]) -> bool {
    let mut found = false;
    for &byte in chunk {
        // Exchanging 0x20 and 0x22 puts the quote beside the control characters; what is not ASCII
        // is negative.
        found |= (((byte ^ 0x02) as i8) < 0x21) | (byte == b'\\');
    }
    !found
}

/// Whether a byte can begin something to escape. 0xE2 opens U+2028 and U+2029, and much else.
const fn needs_look(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\') | (byte == 0xE2)
}

/// Writes a text that may need escaping: copies clean runs, replaces what lies between them.
#[cold]
#[inline(never)]
fn escape<'a>(mut room: Room<'a>, mut rest: &[u8]) -> Option<Room<'a>> {
    while let Some(at) = rest.iter().position(|&byte| needs_look(byte)) {
        let (clean, from) = rest.split_at(at);
        room.plain(clean)?;
        let taken = match from {
            [0xE2, 0x80, 0xA8, ..] => {
                room.raw(b"\\u2028")?;
                3
            }
            [0xE2, 0x80, 0xA9, ..] => {
                room.raw(b"\\u2029")?;
                3
            }
            [byte, ..] => {
                escape_byte(&mut room, *byte)?;
                1
            }
            [] => 0,
        };
        rest = from.get(taken..).unwrap_or_default();
    }
    room.plain(rest)?;
    Some(room)
}

fn escape_byte(room: &mut Room<'_>, byte: u8) -> Option<()> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' => room.raw(b"\\\""),
        b'\\' => room.raw(b"\\\\"),
        b'\n' => room.raw(b"\\n"),
        b'\r' => room.raw(b"\\r"),
        b'\t' => room.raw(b"\\t"),
        0xE2 => room.raw(&[byte]),
        _ => {
            let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
            room.raw(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_that_needs_a_look_is_seen_at_every_place_of_every_length() {
        for length in 0..70 {
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    for others in [b'a', b' ', b'!', 0x7F] {
                        let mut text = vec![others; length];
                        text[at] = byte;
                        let mut place = vec![MaybeUninit::new(0); length];
                        let clean = copy(&text, &mut place);
                        let expected = byte.is_ascii() && !needs_look(byte);
                        assert_eq!(clean, expected, "{byte:#x} at {at} of {length}");
                    }
                }
            }
        }
    }
}
