//! Tensor records: metadata of one tensor, as it was seen once.

use tmrun_formats::runtime::TensorRef;
use tmrun_formats::wire::{Record, Shape, Tensor, flags};

use super::encode::Put;
use super::source::{Id, Name, Source};
use super::tally::{Absent, Tally};
use super::text::Text;

/// A tensor that can be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct TensorFact<'r> {
    node: Name<'r>,
    tensor: Tensor,
    flags: u16,
    group: &'r [Record],
}

impl<'r> TensorFact<'r> {
    /// Reads the head of a group and its shape. `None`, counted, when dimensions are missing: a
    /// shape that is not the tensor's is worse than none.
    pub(super) fn read(
        source: &Source<'r>,
        group: &'r [Record],
        tally: &mut Tally,
    ) -> Option<Self> {
        let head = group.first()?;
        let (header, tensor) = (head.header(), head.payload::<Tensor>()?);
        if dims_in(group, &tensor) != usize::from(tensor.rank) {
            tally.leave_out(Absent::Tensor);
            return None;
        }
        let node = source.name(header.name, tally);
        let storage = Id::storage(tensor.storage, header.flags, flags::STORAGE_NAMED);
        if let Some(storage) = storage.given() {
            source.note_id(storage, tally);
        }
        Some(Self { node, tensor, flags: header.flags, group })
    }

    pub(super) fn write(
        &self,
        source: &Source<'r>,
        (event_id, step): (&str, Option<u64>),
        dims: &mut Vec<u64>,
        put: &mut Put<'_>,
    ) {
        let Self { node, tensor, flags, .. } = self;
        dims.clear();
        push_dims(self.group, tensor, dims);
        let given = |flag| flags & flag != 0;
        let storage = Id::storage(tensor.storage, *flags, flags::STORAGE_NAMED).given();
        let storage: Option<Text<'_>> = storage.map(|id| source.id(id));
        put.record(&TensorRef {
            event_id,
            static_id: node.static_id(),
            source: Some(node.source().as_ref()),
            step,
            shape: dims.as_slice(),
            dtype: source.dtype(tensor.dtype),
            device: source.device(tensor.device),
            // The schema demands an answer, and an unknown layout is none that a reader may rely on.
            contiguous: given(flags::TENSOR_LAYOUT) && given(flags::TENSOR_CONTIGUOUS),
            requires_grad: given(flags::TENSOR_REQUIRES_GRAD),
            storage_id: storage.as_ref().map(AsRef::as_ref),
        });
    }
}

/// The dimensions of a tensor; `None` when not all of them are there.
pub(crate) fn dims_of(group: &[Record], tensor: &Tensor) -> Option<Vec<u64>> {
    let mut dims = Vec::new();
    push_dims(group, tensor, &mut dims);
    (dims.len() == usize::from(tensor.rank)).then_some(dims)
}

/// How many dimensions the group holds.
fn dims_in(group: &[Record], tensor: &Tensor) -> usize {
    let mut shapes = shapes(group).peekable();
    match shapes.peek() {
        None => tensor.dims.len().min(tensor.rank.into()),
        Some(_) => shapes.map(|(shape, flags)| shape.used(flags).len()).sum(),
    }
}

fn push_dims(group: &[Record], tensor: &Tensor, dims: &mut Vec<u64>) {
    for (shape, flags) in shapes(group) {
        dims.extend_from_slice(shape.used(flags));
    }
    if dims.is_empty() {
        dims.extend(tensor.dims.iter().take(tensor.rank.into()).map(|&dim| u64::from(dim)));
    }
}

/// The Shape records of a group: they stand right behind its head.
fn shapes(group: &[Record]) -> impl Iterator<Item = (Shape, u16)> {
    let behind = group.iter().skip(1);
    behind.map_while(|record| Some((record.payload::<Shape>()?, record.header().flags)))
}
