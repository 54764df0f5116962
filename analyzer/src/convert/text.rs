//! Texts of the output: the file's own, or short ones made here. Neither allocates.

use super::event::EventId;

const MADE: usize = 48;

/// ASCII that was made here, and zeros behind it. It begins where a word does and is checked in whole
/// words: for texts as short as these that takes a fraction of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(8))]
pub(crate) struct Ascii<const N: usize>(pub(super) [u8; N]);

impl<const N: usize> Ascii<N> {
    /// The first `len` bytes.
    #[inline]
    pub(super) fn text(&self, len: usize) -> &str {
        let words = self.0.get(..len.next_multiple_of(16)).unwrap_or(&self.0);
        core::str::from_utf8(words).ok().and_then(|text| text.get(..len)).unwrap_or_default()
    }
}

/// A text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Text<'r> {
    /// It lies in the file.
    File(&'r str),
    /// It was made here.
    Made { bytes: Ascii<MADE>, len: u8 },
}

impl<'r> Text<'r> {
    /// A number that stands for a tensor or a storage: all 16 digits, so that equal length is equal
    /// meaning.
    pub(crate) fn hex(id: u64) -> Self {
        let mut made = Made::new();
        made.push(b"0x");
        made.push(&hex_digits((id >> 32) as u32));
        made.push(&hex_digits(id as u32));
        made.finish()
    }

    /// The placeholder of a name: of id 0, or one that no intact frame defines.
    pub(crate) fn unnamed(id: u64) -> Self {
        if id == 0 {
            return Self::File("unnamed");
        }
        let mut made = Made::new();
        made.push(b"unnamed:");
        made.push_decimal(id);
        made.finish()
    }

    /// The placeholder of a name that must not be taken for another one.
    pub(super) fn unnamed_at(event: &EventId) -> Self {
        let mut made = Made::new();
        made.push(b"unnamed@");
        made.push(event.text().as_bytes());
        made.finish()
    }
}

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        match self {
            Self::File(text) => text,
            Self::Made { bytes, len } => bytes.text(usize::from(*len)),
        }
    }
}

/// The eight hexadecimal digits of a number, all at once in the bytes of a word.
#[inline]
const fn hex_digits(number: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const SIXES: u64 = 0x0606_0606_0606_0606;
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    /// From behind the nine to the a.
    const LETTER: u64 = 39;
    let halves = number as u64;
    let halves = (halves | (halves << 16)) & 0x0000_FFFF_0000_FFFF;
    let bytes = (halves | (halves << 8)) & 0x00FF_00FF_00FF_00FF;
    let nibbles = (bytes | (bytes << 4)) & 0x0F0F_0F0F_0F0F_0F0F;
    // Adding 6 carries out of the low half of a byte where the digit is a letter.
    let letters = (nibbles.wrapping_add(SIXES) >> 4) & ONES;
    let digits = nibbles.wrapping_add(ZEROS).wrapping_add(letters.wrapping_mul(LETTER));
    digits.to_be_bytes()
}

struct Made {
    bytes: Ascii<MADE>,
    len: usize,
}

impl Made {
    const fn new() -> Self {
        Self { bytes: Ascii([0; MADE]), len: 0 }
    }

    /// Appends what fits.
    #[inline]
    fn push(&mut self, more: &[u8]) {
        let end = self.len.saturating_add(more.len()).min(MADE);
        let place = self.bytes.0.get_mut(self.len..end).unwrap_or_default();
        if let Some(more) = more.get(..place.len()) {
            place.copy_from_slice(more);
        }
        self.len = end;
    }

    fn push_decimal(&mut self, number: u64) {
        let mut digits = [0_u8; 20];
        let (mut rest, mut used) = (number, 0_usize);
        for digit in digits.iter_mut().rev() {
            *digit = b'0' | (rest % 10) as u8;
            used = used.saturating_add(1);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.push(digits.get(digits.len().saturating_sub(used)..).unwrap_or_default());
    }

    const fn finish<'r>(self) -> Text<'r> {
        Text::Made { bytes: self.bytes, len: self.len as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tmrun_formats::LaneId;

    #[test]
    fn numbers_have_sixteen_digits() {
        assert_eq!(Text::hex(0xab).as_ref(), "0x00000000000000ab");
        assert_eq!(Text::hex(u64::MAX).as_ref(), "0xffffffffffffffff");
        for id in (0..64).map(|bits| 0x0123_4567_89AB_CDEF_u64.rotate_left(bits)) {
            assert_eq!(Text::hex(id).as_ref(), format!("{id:#018x}"));
        }
    }

    #[test]
    fn placeholders_say_what_is_known() {
        assert_eq!(Text::unnamed(0).as_ref(), "unnamed");
        assert_eq!(Text::unnamed(17).as_ref(), "unnamed:17");
        assert_eq!(Text::unnamed(u64::MAX).as_ref(), "unnamed:18446744073709551615");
        let event = EventId::at(LaneId(1), 2);
        assert_eq!(Text::unnamed_at(&event).as_ref(), "unnamed@00001-00000000000000000002");
    }
}
