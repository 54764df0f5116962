//! Where a tensor's elements lie in its storage.

use candle_core::Layout;

/// A run of elements: so many, from here on, so far apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) stride: usize,
    pub(super) len: usize,
}

/// How many dimensions are put in the order of memory. A tensor of more is read in its own order.
const SORTED: usize = 16;

/// Hands every run of a layout to `each`, and returns how often all of that is shown: a broadcast
/// repeats elements, and they are handed out once. Runs come in the order of memory, so that the
/// elements of a transposed tensor are one run as those of the tensor are; dimensions that continue
/// the stride of those within them are one run. It allocates nothing.
pub(super) fn runs(layout: &Layout, each: &mut impl FnMut(Run)) -> u64 {
    let (dims, strides) = (layout.dims(), layout.stride());
    if dims.contains(&0) {
        return 0;
    }
    let all = || dims.iter().copied().zip(strides.iter().copied());
    let repeats = all()
        .filter(|&(_, stride)| stride == 0)
        .fold(1, |repeats: u64, (dim, _)| repeats.saturating_mul(dim as u64));
    let mut steps = [(1, 0); SORTED];
    let mut rank = 0;
    for step in all().filter(|&(dim, stride)| dim != 1 && stride != 0) {
        let Some(place) = steps.get_mut(rank) else {
            within(all(), Run { start: layout.start_offset(), stride: 1, len: 1 }, each);
            return repeats;
        };
        *place = step;
        rank += 1;
    }
    let steps = steps.get_mut(..rank).unwrap_or(&mut []);
    steps.sort_unstable_by_key(|&(dim, stride)| std::cmp::Reverse((stride, dim)));

    let mut run = Run { start: layout.start_offset(), stride: 1, len: 1 };
    let mut outer = &*steps;
    while let Some((&(dim, stride), before)) = outer.split_last() {
        if run.len == 1 {
            run.stride = stride;
        } else if stride != run.len * run.stride {
            break;
        }
        run.len *= dim;
        outer = before;
    }
    within(outer.iter().copied(), run, each);
    repeats
}

/// Repeats a run over the dimensions around it, once over those of a broadcast; the recursion is as
/// deep as there are dimensions.
fn within(
    mut steps: impl Iterator<Item = (usize, usize)> + Clone,
    run: Run,
    each: &mut impl FnMut(Run),
) {
    let Some((dim, stride)) = steps.next() else { return each(run) };
    let places = 0..if stride == 0 { 1 } else { dim };
    let starts = places.map(|at| run.start + at * stride);
    if steps.clone().next().is_none() {
        // The innermost, by itself: runs may be short.
        return starts.for_each(|start| each(Run { start, ..run }));
    }
    starts.for_each(|start| within(steps.clone(), Run { start, ..run }, each));
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{DType, Device, Result, Tensor};

    fn runs_of(tensor: &Tensor) -> (Vec<Run>, u64) {
        let mut found = Vec::new();
        let repeats = runs(tensor.layout(), &mut |run| found.push(run));
        (found, repeats)
    }

    fn run(start: usize, stride: usize, len: usize) -> Run {
        Run { start, stride, len }
    }

    #[test]
    fn dense_dimensions_are_one_run() -> Result<()> {
        let tensor = Tensor::zeros((2, 3, 4), DType::U8, &Device::Cpu)?;
        assert_eq!(runs_of(&tensor).0, [run(0, 1, 24)]);
        assert_eq!(runs_of(&tensor.narrow(0, 1, 1)?).0, [run(12, 1, 12)]);
        assert_eq!(runs_of(&tensor.narrow(1, 1, 2)?).0, [run(4, 1, 8), run(16, 1, 8)]);
        assert_eq!(runs_of(&Tensor::zeros((), DType::U8, &Device::Cpu)?), (vec![run(0, 1, 1)], 1));
        assert_eq!(runs_of(&Tensor::zeros((2, 0, 3), DType::U8, &Device::Cpu)?), (vec![], 0));
        Ok(())
    }

    #[test]
    fn elements_come_in_the_order_of_memory() -> Result<()> {
        let tensor = Tensor::zeros((2, 3, 4), DType::U8, &Device::Cpu)?;
        assert_eq!(runs_of(&tensor.t()?).0, [run(0, 1, 24)]);
        assert_eq!(
            runs_of(&tensor.permute((2, 0, 1))?.narrow(2, 0, 2)?).0,
            [run(0, 1, 8), run(12, 1, 8)]
        );
        assert_eq!(runs_of(&tensor.narrow(2, 3, 1)?).0, [run(3, 4, 6)]);
        Ok(())
    }

    #[test]
    fn repeated_elements_are_found_once() -> Result<()> {
        let one = Tensor::zeros((1, 1), DType::U8, &Device::Cpu)?;
        assert_eq!(runs_of(&one.broadcast_as((2, 3))?), (vec![run(0, 1, 1)], 6));
        let row = Tensor::zeros((1, 3), DType::U8, &Device::Cpu)?;
        assert_eq!(runs_of(&row.broadcast_as((5, 3))?), (vec![run(0, 1, 3)], 5));
        Ok(())
    }

    #[test]
    fn more_dimensions_than_are_sorted_are_all_walked() -> Result<()> {
        let mut dims = vec![2; SORTED + 1];
        dims.push(1);
        let tensor = Tensor::zeros(dims, DType::U8, &Device::Cpu)?.t()?;
        let (found, repeats) = runs_of(&tensor);
        let mut places: Vec<_> = found.iter().map(|run| (run.start, run.len)).collect();
        places.sort_unstable();
        assert!(places.into_iter().eq((0..2 << SORTED).map(|place| (place, 1))));
        assert_eq!(repeats, 1);
        Ok(())
    }
}
