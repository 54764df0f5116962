//! Numbers.

use super::Room;

/// 10⁸: as many digits as are made at once.
const EIGHT: u64 = 100_000_000;

impl Room<'_> {
    /// Writes an unsigned integer.
    #[inline(always)]
    #[must_use]
    pub fn u64(&mut self, value: u64) -> Option<()> {
        if value < 10 {
            return self.raw(&[b'0' | value as u8]);
        }
        if value < EIGHT {
            return self.short(value);
        }
        let (upper, lower) = (value / EIGHT, value % EIGHT);
        if upper < EIGHT {
            self.short(upper)?;
        } else {
            self.short(upper / EIGHT)?;
            self.raw(&eight_digits(upper % EIGHT).to_le_bytes())?;
        }
        self.raw(&eight_digits(lower).to_le_bytes())
    }

    /// Writes a number of one to eight digits.
    #[inline(always)]
    fn short(&mut self, value: u64) -> Option<()> {
        let digits = eight_digits(value);
        // The last digit stays in any case.
        let zeros = ((digits & 0x0f0f_0f0f_0f0f_0f0f) | (1 << 63)).trailing_zeros() / 8;
        self.first_of(&(digits >> (8 * zeros)).to_le_bytes(), 8 - zeros as usize)
    }
}

/// Eight ASCII digits of a number below 10⁸, the first in the lowest byte. All are made together:
/// first two numbers of four digits in one word, then four of two, then eight of one. The
/// multiplications with a shift divide, exactly for as many digits as there are.
#[inline(always)]
const fn eight_digits(value: u64) -> u64 {
    // 10_486 / 2^20 is 1 / 100, and 103 / 2^10 is 1 / 10.
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | ((twos - tens * 10) << 8);
    ones | 0x3030_3030_3030_3030
}

/// The text of a finite float: the shortest decimal that reads back to the same bits.
pub(crate) struct FloatText(zmij::Buffer);

impl FloatText {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self(zmij::Buffer::new())
    }

    /// The text; `-0.0` is `0.0`. Of a NaN or an infinity it is a text without meaning.
    #[inline(always)]
    pub(crate) fn of(&mut self, value: f64) -> &[u8] {
        // Adding positive zero changes -0.0 and nothing else.
        self.0.format_finite(value + 0.0).as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use crate::json::push_u64;

    #[test]
    fn numbers_of_every_length_have_the_digits_that_they_should() {
        let powers = (0..20).map(|n| 10_u64.pow(n));
        let around =
            powers.flat_map(|power| [power - 1, power, power + 1, power.saturating_mul(9)]);
        let strides = (0..100_000).chain((0..100_000_000).step_by(997));
        for value in around.chain(strides).chain([u64::MAX, u64::MAX - 1]) {
            let mut out = Vec::new();
            push_u64(&mut out, value);
            assert_eq!(out, value.to_string().as_bytes());
        }
    }
}
