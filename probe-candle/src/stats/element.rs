//! What an element type is to the pass.

use float8::F8E4M3;
use half::{bf16, f16};

/// A type in which the pass looks at elements: the narrower of the two that holds every value of the
/// element's type (64-bit integers alone are rounded).
pub(super) trait Wide: Element<Wide = Self> + PartialOrd + std::fmt::Debug {
    const INFINITY: Self;
    const NEG_INFINITY: Self;

    fn to_f64(self) -> f64;
    fn is_finite(self) -> bool;
    fn is_nan(self) -> bool;
}

macro_rules! wide {
    ($($wide:ident),*) => {$(
        impl Wide for $wide {
            const INFINITY: Self = $wide::INFINITY;
            const NEG_INFINITY: Self = $wide::NEG_INFINITY;

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }

            #[inline(always)]
            fn is_finite(self) -> bool {
                self.abs() < $wide::INFINITY
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
        }
    )*};
}
wide!(f32, f64);

/// A type of elements.
pub(super) trait Element: Copy + PartialEq {
    type Wide: Wide;

    /// What fills a place where there is no element; it counts as zero.
    const ZERO: Self;
    /// The greatest finite value. One that equals it is saturated.
    const TOP: Self;
    /// The least, where the type is signed: the least of an unsigned type counts as zero alone.
    const BOTTOM: Option<Self>;

    fn wide(self) -> Self::Wide;

    #[inline(always)]
    fn is_saturated(self) -> bool {
        self == Self::TOP || Self::BOTTOM.is_some_and(|bottom| self == bottom)
    }
}

macro_rules! element {
    ($($element:ty as $wide:ty: $zero:expr, $top:expr, $bottom:expr, |$value:ident| $widened:expr;)*) => {$(
        impl Element for $element {
            type Wide = $wide;
            const ZERO: Self = $zero;
            const TOP: Self = $top;
            const BOTTOM: Option<Self> = $bottom;

            #[inline(always)]
            fn wide(self) -> $wide {
                let $value = self;
                $widened
            }
        }
    )*};
}

element! {
    f64 as f64: 0.0, f64::MAX, Some(f64::MIN), |value| value;
    f32 as f32: 0.0, f32::MAX, Some(f32::MIN), |value| value;
    // Not by its own method, which asks for every element what the processor can do.
    f16 as f32: f16::ZERO, f16::MAX, Some(f16::MIN), |value| f16_value(value.to_bits());
    // The leading half of an f32.
    bf16 as f32: bf16::ZERO, bf16::MAX, Some(bf16::MIN),
        |value| f32::from_bits(u32::from(value.to_bits()) << 16);
    // Nor this: 256 values are looked up sooner than computed.
    F8E4M3 as f32: F8E4M3::from_bits(0), F8E4M3::from_bits(0x7e), Some(F8E4M3::from_bits(0xfe)),
        |value| F8E4M3_VALUES[usize::from(value.to_bits())];
    u8 as f32: 0, u8::MAX, None, |value| value.into();
    i16 as f32: 0, i16::MAX, Some(i16::MIN), |value| value.into();
    u32 as f64: 0, u32::MAX, None, |value| value.into();
    i32 as f64: 0, i32::MAX, Some(i32::MIN), |value| value.into();
    i64 as f64: 0, i64::MAX, Some(i64::MIN), |value| value as f64;
}

/// What a float of 16 bits is, without a branch.
#[inline(always)]
fn f16_value(bits: u16) -> f32 {
    let (sign, magnitude) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff));
    let normal = (magnitude << 13) + (112 << 23);
    // In units of 2^-24.
    let subnormal = (magnitude as f32 / 16_777_216.0).to_bits();
    let finite = if magnitude < 0x400 { subnormal } else { normal };
    let other = 0x7f80_0000 | (magnitude << 13);
    f32::from_bits(sign | if magnitude < 0x7c00 { finite } else { other })
}

/// What each float of four bits of exponent, three of mantissa and no infinity is, by its bits.
static F8E4M3_VALUES: [f32; 256] = {
    let mut values = [0.0; 256];
    let mut bits = 0;
    while bits < 256 {
        let (exponent, mantissa) = ((bits as u32 >> 3) & 15, bits as u32 & 7);
        let magnitude = match (exponent, mantissa) {
            (15, 7) => f32::NAN,
            // In units of 2^-9.
            (0, _) => mantissa as f32 / 512.0,
            _ => f32::from_bits(((exponent + 120) << 23) | (mantissa << 20)),
        };
        values[bits] = if bits < 128 { magnitude } else { -magnitude };
        bits += 1;
    }
    values
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_float_of_8_bits_is_what_its_crate_says() {
        for bits in 0..=u8::MAX {
            let value = F8E4M3::from_bits(bits);
            let (found, expected) = (value.wide(), value.to_f32());
            assert!(found == expected || (found.is_nan() && expected.is_nan()), "{bits:#x}");
        }
    }

    #[test]
    fn every_float_of_16_bits_is_what_its_crate_says() {
        for bits in 0..=u16::MAX {
            let (short, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
            for (found, expected) in
                [(short.wide(), short.to_f32()), (brain.wide(), brain.to_f32())]
            {
                assert!(found == expected || (found.is_nan() && expected.is_nan()), "{bits:#x}");
            }
        }
    }
}
