//! Blocks with the vector units of x86-64: AVX-512 (two vectors of f64 hold the lanes) and AVX2 (four).
//!
//! Each gives, bit for bit, what [`Block::portable`] gives. The squares of values that fit f32 are exact
//! in f64, so that for them a fused multiply-add rounds as a multiplication and an addition do; for
//! wider values there is none.

use std::arch::x86_64::*;

use float8::F8E4M3;
use half::{bf16, f16};

use super::block::{Block, LANES, Sums};
use super::element::Element;

/// Functions that load or store a vector where an array is.
macro_rules! moves {
    ($features:literal: $($name:ident, $from:ty => $to:ty, |$at:ident| $load:expr;)*) => {$(
        #[target_feature(enable = $features)]
        #[inline]
        fn $name(from: &$from) -> $to {
            let $at = from.as_ptr();
            // SAFETY: it reads the bytes of the array, no more, and asks for no alignment.
            unsafe { $load }
        }
    )*};
}

/// A pass over elements, by the features, for every element type: `$kernel!` makes the block.
macro_rules! passes {
    ($features:literal, $kernel:ident: $($name:ident, $element:ty, $load:expr;)*) => {$(
        #[target_feature(enable = $features)]
        pub(in crate::stats) fn $name(elements: &[$element], to: &mut Sums<<$element as Element>::Wide>) {
            to.add(elements, |chunks: &[[$element; LANES]]| $kernel!(chunks, $load));
        }
    )*};
}

/// Asks for what lies so many bytes behind a chunk. While the lanes of a block are added up nobody
/// reads, and the processor by itself does not look as far ahead.
#[inline(always)]
fn ask_ahead<T>(chunk: &[T; LANES]) {
    const AHEAD: usize = 2048;
    let there = chunk.as_ptr().wrapping_byte_add(AHEAD);
    // SAFETY: a hint, which reads nothing and does not fail, wherever that is.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(there.cast()) };
}

/// The lanes that vectors hold.
macro_rules! lanes {
    ($vectors:expr, $from:ty => $lanes:ty) => {{
        let vectors = $vectors;
        // SAFETY: vectors are their numbers, in order, and any bits are a number.
        unsafe { std::mem::transmute::<$from, $lanes>(vectors) }
    }};
}

pub(super) mod avx512 {
    use super::*;

    moves! { "avx512f,avx512bw,avx512dq,avx512vl":
        f32s, [f32; 16] => __m512, |at| _mm512_loadu_ps(at);
        f16s, [f16; 16] => __m512, |at| _mm512_cvtph_ps(_mm256_loadu_si256(at.cast()));
        bf16s, [bf16; 16] => __m512, |at| {
            let halves = _mm512_cvtepu16_epi32(_mm256_loadu_si256(at.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(halves))
        };
        u8s, [u8; 16] => __m512, |at| {
            _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(at.cast())))
        };
        i16s, [i16; 16] => __m512, |at| {
            _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm256_loadu_si256(at.cast())))
        };
        f64s, [f64; 8] => __m512d, |at| _mm512_loadu_pd(at);
        i32s, [i32; 8] => __m512d, |at| _mm512_cvtepi32_pd(_mm256_loadu_si256(at.cast()));
        u32s, [u32; 8] => __m512d, |at| _mm512_cvtepu32_pd(_mm256_loadu_si256(at.cast()));
        i64s, [i64; 8] => __m512d, |at| _mm512_cvtepi64_pd(_mm512_loadu_si512(at.cast()));
    }

    macro_rules! narrow {
        ($chunks:expr, $load:expr) => {{
            let (mut sum, mut squares) = ([_mm512_setzero_pd(); 2], [_mm512_setzero_pd(); 2]);
            let mut min = _mm512_set1_ps(f32::INFINITY);
            let mut max = _mm512_set1_ps(f32::NEG_INFINITY);
            let mut zeros = 0;
            for chunk in $chunks {
                ask_ahead(chunk);
                let values = $load(chunk);
                let lower = _mm512_cvtps_pd(_mm512_castps512_ps256(values));
                let upper = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(values));
                sum = [_mm512_add_pd(sum[0], lower), _mm512_add_pd(sum[1], upper)];
                squares = [
                    _mm512_fmadd_pd(lower, lower, squares[0]),
                    _mm512_fmadd_pd(upper, upper, squares[1]),
                ];
                min = _mm512_min_ps(values, min);
                max = _mm512_max_ps(values, max);
                let zero = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(values, _mm512_setzero_ps());
                zeros += u64::from(zero.count_ones());
            }
            Block {
                sum: lanes!(sum, [__m512d; 2] => [f64; LANES]),
                squares: lanes!(squares, [__m512d; 2] => [f64; LANES]),
                min: lanes!(min, __m512 => [f32; LANES]),
                max: lanes!(max, __m512 => [f32; LANES]),
                zeros,
            }
        }};
    }

    macro_rules! wide {
        ($chunks:expr, $load:expr) => {{
            let (mut sum, mut squares) = ([_mm512_setzero_pd(); 2], [_mm512_setzero_pd(); 2]);
            let mut min = [_mm512_set1_pd(f64::INFINITY); 2];
            let mut max = [_mm512_set1_pd(f64::NEG_INFINITY); 2];
            let mut zeros = 0;
            for chunk in $chunks {
                ask_ahead(chunk);
                let (parts, _) = chunk.as_chunks();
                for (at, part) in parts.iter().enumerate() {
                    let values = $load(part);
                    sum[at] = _mm512_add_pd(sum[at], values);
                    squares[at] = _mm512_add_pd(squares[at], _mm512_mul_pd(values, values));
                    min[at] = _mm512_min_pd(values, min[at]);
                    max[at] = _mm512_max_pd(values, max[at]);
                    let zero = _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(values, _mm512_setzero_pd());
                    zeros += u64::from(zero.count_ones());
                }
            }
            Block {
                sum: lanes!(sum, [__m512d; 2] => [f64; LANES]),
                squares: lanes!(squares, [__m512d; 2] => [f64; LANES]),
                min: lanes!(min, [__m512d; 2] => [f64; LANES]),
                max: lanes!(max, [__m512d; 2] => [f64; LANES]),
                zeros,
            }
        }};
    }

    passes! { "avx512f,avx512bw,avx512dq,avx512vl,popcnt", narrow:
        of_f32, f32, f32s;
        of_f16, f16, f16s;
        of_bf16, bf16, bf16s;
        of_f8e4m3, F8E4M3, |chunk: &[F8E4M3; 16]| f32s(&chunk.map(Element::wide));
        of_u8, u8, u8s;
        of_i16, i16, i16s;
    }
    passes! { "avx512f,avx512bw,avx512dq,avx512vl,popcnt", wide:
        of_f64, f64, f64s;
        of_i32, i32, i32s;
        of_u32, u32, u32s;
        of_i64, i64, i64s;
    }
}

pub(super) mod avx2 {
    use super::*;

    moves! { "avx2,f16c":
        f32s, [f32; 8] => __m256, |at| _mm256_loadu_ps(at);
        f16s, [f16; 8] => __m256, |at| _mm256_cvtph_ps(_mm_loadu_si128(at.cast()));
        bf16s, [bf16; 8] => __m256, |at| {
            let halves = _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(halves))
        };
        u8s, [u8; 8] => __m256, |at| {
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(at.cast())))
        };
        i16s, [i16; 8] => __m256, |at| {
            _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm_loadu_si128(at.cast())))
        };
        f64s, [f64; 4] => __m256d, |at| _mm256_loadu_pd(at);
        i32s, [i32; 4] => __m256d, |at| _mm256_cvtepi32_pd(_mm_loadu_si128(at.cast()));
    }

    macro_rules! narrow {
        ($chunks:expr, $load:expr) => {{
            let (mut sum, mut squares) = ([_mm256_setzero_pd(); 4], [_mm256_setzero_pd(); 4]);
            let mut min = [_mm256_set1_ps(f32::INFINITY); 2];
            let mut max = [_mm256_set1_ps(f32::NEG_INFINITY); 2];
            let mut zeros = 0;
            for chunk in $chunks {
                ask_ahead(chunk);
                let (parts, _) = chunk.as_chunks();
                for (at, part) in parts.iter().enumerate() {
                    let values = $load(part);
                    let lower = _mm256_cvtps_pd(_mm256_castps256_ps128(values));
                    let upper = _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(values));
                    for (at, values) in [(2 * at, lower), (2 * at + 1, upper)] {
                        sum[at] = _mm256_add_pd(sum[at], values);
                        squares[at] = _mm256_fmadd_pd(values, values, squares[at]);
                    }
                    min[at] = _mm256_min_ps(values, min[at]);
                    max[at] = _mm256_max_ps(values, max[at]);
                    let zero = _mm256_cmp_ps::<_CMP_EQ_OQ>(values, _mm256_setzero_ps());
                    zeros += u64::from(_mm256_movemask_ps(zero).count_ones());
                }
            }
            Block {
                sum: lanes!(sum, [__m256d; 4] => [f64; LANES]),
                squares: lanes!(squares, [__m256d; 4] => [f64; LANES]),
                min: lanes!(min, [__m256; 2] => [f32; LANES]),
                max: lanes!(max, [__m256; 2] => [f32; LANES]),
                zeros,
            }
        }};
    }

    macro_rules! wide {
        ($chunks:expr, $load:expr) => {{
            let (mut sum, mut squares) = ([_mm256_setzero_pd(); 4], [_mm256_setzero_pd(); 4]);
            let mut min = [_mm256_set1_pd(f64::INFINITY); 4];
            let mut max = [_mm256_set1_pd(f64::NEG_INFINITY); 4];
            let mut zeros = 0;
            for chunk in $chunks {
                ask_ahead(chunk);
                let (parts, _) = chunk.as_chunks();
                for (at, part) in parts.iter().enumerate() {
                    let values = $load(part);
                    sum[at] = _mm256_add_pd(sum[at], values);
                    squares[at] = _mm256_add_pd(squares[at], _mm256_mul_pd(values, values));
                    min[at] = _mm256_min_pd(values, min[at]);
                    max[at] = _mm256_max_pd(values, max[at]);
                    let zero = _mm256_cmp_pd::<_CMP_EQ_OQ>(values, _mm256_setzero_pd());
                    zeros += u64::from(_mm256_movemask_pd(zero).count_ones());
                }
            }
            Block {
                sum: lanes!(sum, [__m256d; 4] => [f64; LANES]),
                squares: lanes!(squares, [__m256d; 4] => [f64; LANES]),
                min: lanes!(min, [__m256d; 4] => [f64; LANES]),
                max: lanes!(max, [__m256d; 4] => [f64; LANES]),
                zeros,
            }
        }};
    }

    passes! { "avx2,fma,f16c,popcnt", narrow:
        of_f32, f32, f32s;
        of_f16, f16, f16s;
        of_bf16, bf16, bf16s;
        of_f8e4m3, F8E4M3, |part: &[F8E4M3; 8]| f32s(&part.map(Element::wide));
        of_u8, u8, u8s;
        of_i16, i16, i16s;
    }
    // There is no instruction that converts these two.
    passes! { "avx2,fma,f16c,popcnt", wide:
        of_f64, f64, f64s;
        of_i32, i32, i32s;
        of_u32, u32, |part: &[u32; 4]| f64s(&part.map(Element::wide));
        of_i64, i64, |part: &[i64; 4]| f64s(&part.map(Element::wide));
    }
}
