//! Where a tensor's elements lie in its storage.

use candle_core::Layout;

/// A run of elements: so many, from here on, so far apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) stride: usize,
    pub(super) len: usize,
}

/// Hands every run of a layout to `each`, in the order of the elements. Dimensions that continue the
/// stride of those within them are one run; an element that a broadcast shows twice comes twice. It
/// allocates nothing.
pub(super) fn runs(layout: &Layout, each: &mut impl FnMut(Run)) {
    let (dims, strides) = (layout.dims(), layout.stride());
    if dims.contains(&0) {
        return;
    }
    let mut run = Run { start: layout.start_offset(), stride: 1, len: 1 };
    let mut outer = dims.len();
    for (&dim, &stride) in dims.iter().zip(strides).rev() {
        if dim != 1 {
            if run.len == 1 {
                run.stride = stride;
            } else if stride != run.len * run.stride {
                break;
            }
            run.len *= dim;
        }
        outer -= 1;
    }
    within(&dims[..outer], &strides[..outer], run, each);
}

/// Repeats a run over the dimensions around it; the recursion is as deep as there are dimensions.
fn within(dims: &[usize], strides: &[usize], run: Run, each: &mut impl FnMut(Run)) {
    match (dims.split_first(), strides.split_first()) {
        (Some((&dim, dims)), Some((&stride, strides))) => {
            for at in 0..dim {
                within(dims, strides, Run { start: run.start + at * stride, ..run }, each);
            }
        }
        _ => each(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{DType, Device, Result, Tensor};

    fn runs_of(tensor: &Tensor) -> Vec<Run> {
        let mut found = Vec::new();
        runs(tensor.layout(), &mut |run| found.push(run));
        found
    }

    fn run(start: usize, stride: usize, len: usize) -> Run {
        Run { start, stride, len }
    }

    #[test]
    fn dense_dimensions_are_one_run() -> Result<()> {
        let tensor = Tensor::zeros((2, 3, 4), DType::U8, &Device::Cpu)?;
        assert_eq!(runs_of(&tensor), [run(0, 1, 24)]);
        assert_eq!(runs_of(&tensor.narrow(0, 1, 1)?), [run(12, 1, 12)]);
        assert_eq!(runs_of(&tensor.narrow(1, 1, 2)?), [run(4, 1, 8), run(16, 1, 8)]);
        assert_eq!(runs_of(&Tensor::zeros((), DType::U8, &Device::Cpu)?), [run(0, 1, 1)]);
        assert_eq!(runs_of(&Tensor::zeros((2, 0, 3), DType::U8, &Device::Cpu)?), []);
        Ok(())
    }

    #[test]
    fn strided_and_repeated_elements_are_found() -> Result<()> {
        let tensor = Tensor::zeros((2, 3), DType::U8, &Device::Cpu)?;
        assert_eq!(runs_of(&tensor.t()?), [run(0, 3, 2), run(1, 3, 2), run(2, 3, 2)]);
        assert_eq!(runs_of(&tensor.narrow(1, 2, 1)?), [run(2, 3, 2)]);
        let one = Tensor::zeros((1, 1), DType::U8, &Device::Cpu)?;
        assert_eq!(runs_of(&one.broadcast_as((2, 3))?), [run(0, 0, 6)]);
        Ok(())
    }
}
