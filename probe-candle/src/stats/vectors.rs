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
