//! How a field lies in the five words of a payload.

use crate::codes::*;
use crate::{GapReason, LaneId, NameId, Planes, SpanId, StorageId, StreamId, TensorId, Ticks};

/// A value with a fixed place in a payload: little-endian, at a byte offset that is a multiple of
/// its own (element's) size, so that it never crosses a word.
pub(crate) trait Field: Copy {
    /// Bytes that it takes.
    const SIZE: usize;
    /// What its offset is a multiple of.
    const ALIGN: usize = Self::SIZE;
    /// Writes it at byte `offset`; the place is zero before.
    fn put(self, words: &mut [u64; 5], offset: usize);
    /// Reads it at byte `offset`.
    fn get(words: &[u64; 5], offset: usize) -> Self;
}

macro_rules! scalar_fields {
    ($($type:ty : $size:literal, |$value:ident| $bits:expr, |$raw:ident| $make:expr;)*) => {$(
        impl Field for $type {
            const SIZE: usize = $size;
            #[inline(always)]
            fn put(self, words: &mut [u64; 5], offset: usize) {
                let $value = self;
                words[offset / 8] |= ($bits) << (offset % 8 * 8);
            }
            #[inline(always)]
            fn get(words: &[u64; 5], offset: usize) -> Self {
                let $raw = words[offset / 8] >> (offset % 8 * 8);
                $make
            }
        }
    )*};
}

scalar_fields! {
    u64: 8, |v| v, |b| b;
    u32: 4, |v| u64::from(v), |b| b as u32;
    u16: 2, |v| u64::from(v), |b| b as u16;
    u8: 1, |v| u64::from(v), |b| b as u8;
    f64: 8, |v| v.to_bits(), |b| f64::from_bits(b);
    Ticks: 8, |v| v.0, |b| Ticks(b);
    SpanId: 8, |v| v.0, |b| SpanId(b);
    TensorId: 8, |v| v.0, |b| TensorId(b);
    StorageId: 8, |v| v.0, |b| StorageId(b);
    StreamId: 8, |v| v.0, |b| StreamId(b);
    NameId: 4, |v| u64::from(v.0), |b| NameId(b as u32);
    Planes: 4, |v| u64::from(v.0), |b| Planes(b as u32);
    LaneId: 2, |v| u64::from(v.0), |b| LaneId(b as u16);
    Phase: 1, |v| u64::from(v.0), |b| Phase(b as u8);
    ExecutionStep: 1, |v| u64::from(v.0), |b| ExecutionStep(b as u8);
    SpanKind: 1, |v| u64::from(v.0), |b| SpanKind(b as u8);
    Category: 1, |v| u64::from(v.0), |b| Category(b as u8);
    GradientState: 1, |v| u64::from(v.0), |b| GradientState(b as u8);
    EdgeKind: 1, |v| u64::from(v.0), |b| EdgeKind(b as u8);
    LevelSource: 1, |v| u64::from(v.0), |b| LevelSource(b as u8);
    DType: 1, |v| u64::from(v.0), |b| DType(b as u8);
    DeviceCode: 1, |v| u64::from(v.0), |b| DeviceCode(b as u8);
    ClockCode: 1, |v| u64::from(v.0), |b| ClockCode(b as u8);
    GapReason: 1, |v| u64::from(v.0), |b| GapReason(b as u8);
    crate::Level: 1, |v| u64::from(v.0), |b| crate::Level(b as u8);
}

impl<T: Field, const N: usize> Field for [T; N] {
    const SIZE: usize = T::SIZE * N;
    const ALIGN: usize = T::ALIGN;
    #[inline(always)]
    fn put(self, words: &mut [u64; 5], offset: usize) {
        for (i, value) in self.into_iter().enumerate() {
            value.put(words, offset + i * T::SIZE);
        }
    }
    #[inline(always)]
    fn get(words: &[u64; 5], offset: usize) -> Self {
        core::array::from_fn(|i| T::get(words, offset + i * T::SIZE))
    }
}

/// The bytes that a field covers, as bits of a mask; fails to compile when it leaves the 40 bytes
/// or covers one in `taken`.
pub(crate) const fn claim_bytes<F: Field>(taken: u64, offset: usize) -> u64 {
    let size = F::SIZE;
    assert!(offset.is_multiple_of(F::ALIGN), "a field must not cross a word");
    assert!(offset + size <= 40, "a payload has 40 bytes");
    let mask = ((1 << size) - 1) << offset;
    assert!(taken & mask == 0, "two fields overlap");
    taken | mask
}
