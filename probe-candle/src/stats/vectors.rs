//! Which vector unit adds up blocks, chosen when the program runs.

use float8::F8E4M3;
use half::{bf16, f16};

use super::block::{Block, Sums};
use super::element::Element;
#[cfg(target_arch = "x86_64")]
use super::x86;

/// A vector unit that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vectors(Unit);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Vectors {
    /// None that is asked for: what the compiler makes of plain loops.
    pub(super) const PORTABLE: Self = Self(Unit::Portable);

    /// The widest.
    pub(super) fn widest() -> Self {
        Self::avx512().or_else(Self::avx2).unwrap_or(Self::PORTABLE)
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn avx512() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Self(Unit::Avx512))
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn avx2() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Self(Unit::Avx2))
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn avx512() -> Option<Self> {
        None
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn avx2() -> Option<Self> {
        None
    }
}

/// An element type of which vector units add up blocks.
pub(super) trait Vectorised: Element {
    /// As [`Sums::add`]; the sums are the same, bit for bit, whatever the unit.
    fn add(vectors: Vectors, elements: &[Self], to: &mut Sums<Self::Wide>);
}

macro_rules! vectorised {
    ($($element:ty, $name:ident;)*) => {$(
        impl Vectorised for $element {
            fn add(vectors: Vectors, elements: &[Self], to: &mut Sums<Self::Wide>) {
                match vectors.0 {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: `Vectors::avx512` alone makes it, and found the features.
                    Unit::Avx512 => unsafe { x86::avx512::$name(elements, to) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: `Vectors::avx2` alone makes it, and found the features.
                    Unit::Avx2 => unsafe { x86::avx2::$name(elements, to) },
                    Unit::Portable => to.add(elements, Block::portable),
                }
            }
        }
    )*};
}

vectorised! {
    f64, of_f64;
    f32, of_f32;
    f16, of_f16;
    bf16, of_bf16;
    F8E4M3, of_f8e4m3;
    u8, of_u8;
    i16, of_i16;
    u32, of_u32;
    i32, of_i32;
    i64, of_i64;
}

#[cfg(test)]
mod tests {
    use super::super::block::BLOCK;
    use super::super::element::Wide;
    use super::*;

    /// All bits of the sums: what is NaN is not equal to itself, but reads the same.
    fn sums<E: Vectorised>(vectors: Vectors, elements: &[E]) -> String {
        let mut sums = Sums::EMPTY;
        E::add(vectors, elements, &mut sums);
        format!("{sums:?}")
    }

    /// Elements made of these bits, with every one of `others` planted somewhere now and then.
    fn agree<E: Vectorised>(of_bits: impl Fn(u64) -> E, others: &[E]) {
        let units = [Vectors::avx512(), Vectors::avx2()];
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            bits
        };
        for len in (0..70).chain([BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 17, 3 * BLOCK]) {
            for planted in [0, 1, 64, 2] {
                let element = |_| match next() {
                    // Finite ones, that blocks may be plain.
                    bits if planted == 0 || bits % planted != 0 => {
                        let element = of_bits(bits);
                        if element.wide().is_finite() { element } else { E::ZERO }
                    }
                    bits => others[(bits >> 32) as usize % others.len()],
                };
                let elements: Vec<E> = (0..len).map(element).collect();
                let expected = sums(Vectors::PORTABLE, &elements);
                for vectors in units.into_iter().flatten() {
                    assert_eq!(sums(vectors, &elements), expected, "{vectors:?}, {len} elements");
                }
            }
        }
    }

    #[test]
    fn every_vector_unit_gives_the_same_bits() {
        let mixed = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let wide = [f64::MAX, f64::MIN, 5e-324, -1e-310, 1e150];
        agree(f64::from_bits, &[&mixed[..], &wide].concat());
        agree(|bits| bits as i64 as f64 * 1e-9, &mixed);
        let narrow = [f32::MAX, f32::MIN, 1e-45, -1e-40];
        let as_f32 = mixed.map(|value| value as f32);
        agree(|bits| f32::from_bits(bits as u32), &[&as_f32[..], &narrow].concat());
        agree(|bits| bits as i32 as f32 * 1e-3, &as_f32);
        let halves = [f16::MAX, f16::MIN, f16::from_bits(1)];
        agree(
            |bits| f16::from_bits(bits as u16),
            &[&mixed.map(f16::from_f64)[..], &halves].concat(),
        );
        let brains = [bf16::MAX, bf16::MIN, bf16::from_bits(1)];
        agree(
            |bits| bf16::from_bits(bits as u16),
            &[&mixed.map(bf16::from_f64)[..], &brains].concat(),
        );
        agree(
            |bits| F8E4M3::from_bits(bits as u8),
            &[0, 0x80, 1, 0x7e, 0xfe, 0x7f, 0xff].map(F8E4M3::from_bits),
        );
        agree(|bits| bits as u8, &[0, u8::MAX]);
        agree(|bits| bits as i16, &[0, i16::MAX, i16::MIN]);
        agree(|bits| bits as u32, &[0, u32::MAX]);
        agree(|bits| bits as i32, &[0, i32::MAX, i32::MIN]);
        agree(|bits| bits as i64, &[0, i64::MAX, i64::MIN, i64::MAX - 1]);
    }

    #[test]
    fn the_widest_unit_that_is_found_is_taken() {
        let found = [Vectors::avx512(), Vectors::avx2(), Some(Vectors::PORTABLE)];
        assert_eq!(Some(Vectors::widest()), found.into_iter().flatten().next());
    }
}
