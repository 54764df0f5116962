//! A block of elements, added up in lanes.
//!
//! Element number `i` of a block is added in f64 to lane `i mod 16`; at the end of a block every lane is
//! added to that lane's total, and what rounding loses there is kept beside it (Knuth's two-sum). So a
//! sum's error is that of at most 64 additions, however many elements there are. Lanes, blocks and the
//! order are fixed here, and a processor's vectors are made to fit them: results do not depend on it.
//!
//! NaN and infinities are found without looking for them: the sum of a lane is not finite if an
//! element is not. Only such a block is looked at again, element by element. A block that reaches the
//! greatest value of its type, or the least, is looked at again for how often it does.

use super::element::{Element, Wide};

/// Sums side by side.
pub(super) const LANES: usize = 16;
/// Elements added before the lanes are added to the totals.
pub(super) const BLOCK: usize = 1024;

/// What the elements of a block come to; each lane of its own. Least and greatest are anywhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Block<W> {
    pub(super) sum: [f64; LANES],
    pub(super) squares: [f64; LANES],
    pub(super) min: [W; LANES],
    pub(super) max: [W; LANES],
    pub(super) zeros: u64,
}

/// A sum, lane by lane, in two parts: together they are what was added.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Total {
    high: [f64; LANES],
    low: [f64; LANES],
}

/// What the elements of a tensor come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sums<W> {
    sum: Total,
    squares: Total,
    min: [W; LANES],
    max: [W; LANES],
    pub(super) count: u64,
    pub(super) nan: u64,
    pub(super) positive_inf: u64,
    pub(super) negative_inf: u64,
    pub(super) zeros: u64,
    pub(super) saturated: u64,
}

impl<W: Wide> Block<W> {
    /// A block without a vector unit that we know of: loops that a compiler turns into vectors.
    #[inline(always)]
    pub(super) fn portable<E: Element<Wide = W>>(chunks: &[[E; LANES]]) -> Self {
        let mut block = Self {
            sum: [0.0; LANES],
            squares: [0.0; LANES],
            min: [W::INFINITY; LANES],
            max: [W::NEG_INFINITY; LANES],
            zeros: 0,
        };
        // One loop for each of them, or the compiler makes vectors of none. No fused multiply-add:
        // it would round once where this rounds twice.
        for chunk in chunks {
            for (sum, element) in block.sum.iter_mut().zip(chunk) {
                *sum += element.wide().to_f64();
            }
        }
        for chunk in chunks {
            for (squares, element) in block.squares.iter_mut().zip(chunk) {
                let value = element.wide().to_f64();
                *squares += value * value;
            }
        }
        for chunk in chunks {
            for (min, element) in block.min.iter_mut().zip(chunk) {
                *min = lesser(element.wide(), *min);
            }
        }
        for chunk in chunks {
            for (max, element) in block.max.iter_mut().zip(chunk) {
                *max = greater(element.wide(), *max);
            }
        }
        block.zeros = count(chunks.as_flattened(), |value| value == W::ZERO);
        block
    }
}

/// How many of at most a block's elements are such.
#[inline(always)]
fn count<E: Element>(elements: &[E], test: impl Fn(E::Wide) -> bool) -> u64 {
    // A narrow counter makes a wide vector.
    let found = elements
        .iter()
        .fold(0u32, |found, element| found.wrapping_add(u32::from(test(element.wide()))));
    found.into()
}

/// NaN is neither.
#[inline(always)]
fn lesser<W: Wide>(value: W, than: W) -> W {
    if value < than { value } else { than }
}

#[inline(always)]
fn greater<W: Wide>(value: W, than: W) -> W {
    if value > than { value } else { than }
}

impl<W: Wide> Sums<W> {
    pub(super) const EMPTY: Self = Self {
        sum: Total::ZERO,
        squares: Total::ZERO,
        min: [W::INFINITY; LANES],
        max: [W::NEG_INFINITY; LANES],
        count: 0,
        nan: 0,
        positive_inf: 0,
        negative_inf: 0,
        zeros: 0,
        saturated: 0,
    };

    /// Adds elements: whole blocks, and at the end of a tensor less than one. `kernel` is
    /// [`Block::portable`], or gives the same.
    #[inline(always)]
    pub(super) fn add<E: Element<Wide = W>>(
        &mut self,
        elements: &[E],
        kernel: impl Fn(&[[E; LANES]]) -> Block<W>,
    ) {
        self.count += elements.len() as u64;
        for elements in elements.chunks(BLOCK) {
            let (chunks, rest) = elements.as_chunks();
            let mut block = kernel(chunks);
            if !rest.is_empty() {
                block.add_rest(rest, &kernel);
            }
            self.add_block(elements, &block);
        }
    }

    #[inline(always)]
    fn add_block<E: Element<Wide = W>>(&mut self, elements: &[E], block: &Block<W>) {
        let finite = |sums: &[f64; LANES]| sums.iter().fold(true, |all, sum| all & sum.is_finite());
        if !finite(&block.sum) {
            return self.add_exactly(elements);
        }
        let (top, bottom) = (E::TOP.wide(), E::BOTTOM.map_or(W::NEG_INFINITY, E::wide));
        let mut at_end = false;
        for (&min, &max) in block.min.iter().zip(&block.max) {
            at_end |= (max >= top) | (min <= bottom);
        }
        if at_end {
            self.add_saturated(elements);
        }
        self.add_finite(block);
    }

    /// The numbers of a block of which all elements are finite.
    #[inline(always)]
    fn add_finite(&mut self, block: &Block<W>) {
        self.sum.add(&block.sum);
        self.squares.add(&block.squares);
        for (min, &block) in self.min.iter_mut().zip(&block.min) {
            *min = lesser(block, *min);
        }
        for (max, &block) in self.max.iter_mut().zip(&block.max) {
            *max = greater(block, *max);
        }
        self.zeros += block.zeros;
    }

    #[cold]
    #[inline(never)]
    fn add_saturated<E: Element<Wide = W>>(&mut self, elements: &[E]) {
        let found = elements
            .iter()
            .fold(0u32, |found, element| found.wrapping_add(u32::from(element.is_saturated())));
        self.saturated += u64::from(found);
    }

    /// A block in which something is not finite (or of which the sum is not): those are counted, and
    /// in their places nothing is added.
    #[cold]
    #[inline(never)]
    fn add_exactly<E: Element<Wide = W>>(&mut self, elements: &[E]) {
        self.add_saturated(elements);
        self.nan += count(elements, W::is_nan);
        self.positive_inf += count(elements, |value| value == W::INFINITY);
        self.negative_inf += count(elements, |value| value == W::NEG_INFINITY);

        let mut finite = [[W::ZERO; LANES]; BLOCK / LANES];
        let (mut min, mut max) = ([W::INFINITY; LANES], [W::NEG_INFINITY; LANES]);
        for (chunk, places) in elements.chunks(LANES).zip(&mut finite) {
            let lanes = places.iter_mut().zip(min.iter_mut().zip(&mut max));
            for (element, (place, (min, max))) in chunk.iter().zip(lanes) {
                let value = element.wide();
                let is_finite = value.is_finite();
                *place = if is_finite { value } else { W::ZERO };
                *min = lesser(if is_finite { value } else { W::INFINITY }, *min);
                *max = greater(if is_finite { value } else { W::NEG_INFINITY }, *max);
            }
        }
        let zeros = count(elements, |value| value == W::ZERO);
        let chunks = finite.get(..elements.len().div_ceil(LANES)).unwrap_or(&finite);
        self.add_finite(&Block { min, max, zeros, ..Block::portable(chunks) });
    }

    pub(super) fn min(&self) -> f64 {
        self.min.iter().fold(W::INFINITY, |min, &lane| lesser(lane, min)).to_f64()
    }

    pub(super) fn max(&self) -> f64 {
        self.max.iter().fold(W::NEG_INFINITY, |max, &lane| greater(lane, max)).to_f64()
    }

    /// The sum of the finite elements.
    pub(super) fn sum(&self) -> f64 {
        self.sum.value()
    }

    /// The sum of their squares.
    pub(super) fn squares(&self) -> f64 {
        self.squares.value()
    }
}

impl<W: Wide> Block<W> {
    /// Adds less than a chunk: zeros make it one, and are taken for none.
    #[inline(always)]
    fn add_rest<E: Element<Wide = W>>(
        &mut self,
        rest: &[E],
        kernel: impl Fn(&[[E; LANES]]) -> Block<W>,
    ) {
        let mut chunk = [E::ZERO; LANES];
        chunk.iter_mut().zip(rest).for_each(|(place, &element)| *place = element);
        let last = kernel(&[chunk]);
        for lane in 0..LANES {
            self.sum[lane] += last.sum[lane];
            self.squares[lane] += last.squares[lane];
        }
        for (lane, element) in rest.iter().enumerate() {
            self.min[lane] = lesser(element.wide(), self.min[lane]);
            self.max[lane] = greater(element.wide(), self.max[lane]);
        }
        self.zeros += last.zeros.wrapping_sub((LANES - rest.len()) as u64);
    }
}

impl Total {
    const ZERO: Self = Self { high: [0.0; LANES], low: [0.0; LANES] };

    #[inline(always)]
    fn add(&mut self, sums: &[f64; LANES]) {
        for ((high, low), &sum) in self.high.iter_mut().zip(&mut self.low).zip(sums) {
            let (sum, lost) = two_sum(*high, sum);
            *high = sum;
            *low += lost;
        }
    }

    /// All lanes, half of them to the other half until one is left.
    fn value(&self) -> f64 {
        let Self { mut high, mut low } = *self;
        let mut lanes = LANES;
        while lanes > 1 {
            lanes /= 2;
            for lane in 0..lanes {
                let (sum, lost) = two_sum(high[lane], high[lane + lanes]);
                high[lane] = sum;
                low[lane] += low[lane + lanes] + lost;
            }
        }
        high[0] + low[0]
    }
}

/// The sum of two, and what rounding took from it, exactly.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}
