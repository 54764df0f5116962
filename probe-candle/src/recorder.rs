//! Recording tensors: what a lane's recording end can do with them.

use std::borrow::Borrow;
use std::ops::Range;

use candle_core::{Result, Tensor, Var};
use tmrun_probe_core::{
    Category, Clock, NameId, OpFact, ProbeRef, Recorder, TensorFact, TensorId, Ticks,
};

use crate::identity::{device_code, dtype_code, storage_bytes, storage_id, tensor_id};
use crate::memory::{self, MemoryCounts};
use crate::stats::TensorStats;

/// The most inputs that a group holds beside the operation and a shape of up to five dimensions.
const INPUTS: usize = 70;

/// A tensor's metadata as a record has it; the dimensions are the tensor's own.
///
/// It allocates nothing and takes the storage's read lock: it waits while another thread writes the
/// storage (`Var::set`, an in-place operation), and must not be called while the calling thread
/// itself writes it.
pub fn tensor_fact<'t, C>(
    probe: &ProbeRef<'_, C>,
    tensor: &'t Tensor,
    category: Category,
) -> TensorFact<'t> {
    TensorFact {
        tensor: tensor_id(tensor),
        storage: storage_id(tensor),
        shape: tensor.dims(),
        dtype: dtype_code(tensor.dtype()),
        device: device_code(probe, tensor),
        category,
        contiguous: Some(tensor.is_contiguous()),
        requires_grad: tensor.track_op(),
    }
}

/// Bytes of the elements that a tensor shows, each counted once for every place it shows in. This is
/// a footprint, not an allocation.
pub fn dense_bytes(tensor: &Tensor) -> u64 {
    (tensor.elem_count() as u64).saturating_mul(tensor.dtype().size_in_bytes() as u64)
}

/// Records candle tensors on a lane.
///
/// None of it keeps a tensor alive. Call it within [`Target::at`](tmrun_probe_core::Target::at):
/// what that level does not ask for of the node is not looked at either.
pub trait CandleRecorder {
    /// A tensor's metadata (level 2): identity, storage, shape, type, device, whether it is dense
    /// and whether it is on the way to a gradient.
    ///
    /// It allocates nothing, and waits only for the storage's read lock, see [`tensor_fact`].
    fn candle_tensor(&self, node: NameId, tensor: &Tensor, category: Category);

    /// A tensor's statistics (level 3). With `observed` its metadata counts as an observation too,
    /// as if [`candle_tensor`](Self::candle_tensor) had recorded it; without, it only describes the
    /// statistics.
    ///
    /// It waits as [`TensorStats::of`] does: a pass over the elements on the processor, reductions and
    /// a read-back on an accelerator, with all the work before it. `None` when they are not wanted of this node:
    /// then nothing is computed.
    ///
    /// # Errors
    ///
    /// As [`TensorStats::of`]; then nothing is recorded.
    fn candle_stats(
        &self,
        node: NameId,
        tensor: &Tensor,
        category: Category,
        observed: bool,
    ) -> Result<Option<TensorStats>>;

    /// An operation (level 1) with its output, which counts as an activation, and its inputs; more
    /// than 70 (fewer with an output of more than five dimensions) are cut off, flagged and counted.
    /// `time` is taken with [`Recorder::now`] before and
    /// after. On an accelerator it is the time of the launch: the work itself may not have begun.
    ///
    /// It allocates nothing, and waits only for the read lock of the output's storage, see
    /// [`tensor_fact`].
    fn candle_op(
        &self,
        node: NameId,
        op: NameId,
        time: Range<Ticks>,
        output: &Tensor,
        inputs: &[&Tensor],
    );

    /// An allocation (level 2): the whole storage behind a tensor, which came into being for it. From
    /// here to its free the storage's id has an epoch, which tells it from what was at its address
    /// before; so do the ids of all tensors that are seen in it meanwhile. (The same tensor again, in
    /// another recording or by another probe, goes on with its epoch. Views need no allocation: their
    /// storage id says where they are.)
    ///
    /// Returns whether it is recorded: an accelerator's allocator does not tell its sizes, and the
    /// node may be one of which it is not wanted.
    ///
    /// candle tells nobody when a storage is dropped. Without its free an allocation counts to the end,
    /// and its address keeps the epoch: a later tensor there is taken for the same storage until an
    /// allocation is recorded of it. So record it for what stays, such as parameters, or with
    /// [`candle_free`](Self::candle_free), or leave both to a [`Tracked`](crate::Tracked).
    ///
    /// It allocates nothing, and waits only for the storage's read lock, see [`tensor_fact`].
    fn candle_alloc(&self, node: NameId, op: NameId, tensor: &Tensor, category: Category) -> bool;

    /// The free of a storage whose allocation was recorded (level 2): the caller is about to drop the
    /// last that holds it. Nobody else knows: what else holds the storage (clones, views, a graph for
    /// the gradients) keeps it in memory, and is not seen. The address has no epoch from then on.
    ///
    /// Returns whether it is recorded, as [`candle_alloc`](Self::candle_alloc) does; it waits for the
    /// same, and allocates nothing.
    fn candle_free(&self, node: NameId, op: NameId, tensor: &Tensor, category: Category) -> bool;

    /// The allocations of all parameters (level 2), each under its name, sorted; those that share a
    /// storage are recorded once, under the first name. With a `candle_nn::VarMap`:
    /// `to.candle_parameters(init, varmap.data().lock().unwrap().iter())`.
    ///
    /// This is set-up: it interns the names, and allocates. It waits for each storage's read lock.
    fn candle_parameters<N: AsRef<str>, V: Borrow<Var>>(
        &self,
        op: NameId,
        parameters: impl IntoIterator<Item = (N, V)>,
    ) -> MemoryCounts;
}

impl<C: Clock> CandleRecorder for Recorder<'_, C> {
    fn candle_tensor(&self, node: NameId, tensor: &Tensor, category: Category) {
        if !self.wants(node) {
            return;
        }
        self.tensor(node, &tensor_fact(&self.probe(), tensor, category));
    }

    fn candle_stats(
        &self,
        node: NameId,
        tensor: &Tensor,
        category: Category,
        observed: bool,
    ) -> Result<Option<TensorStats>> {
        if !self.wants(node) {
            return Ok(None);
        }
        let stats = TensorStats::of(tensor)?;
        let fact = tensor_fact(&self.probe(), tensor, category);
        self.stats(node, &fact, observed, &stats.to_stats(), Some(&stats.to_range()));
        Ok(Some(stats))
    }

    fn candle_op(
        &self,
        node: NameId,
        op: NameId,
        time: Range<Ticks>,
        output: &Tensor,
        inputs: &[&Tensor],
    ) {
        if !self.wants(node) {
            return;
        }
        // One more than a record takes, so that it sees that there were more.
        let mut ids = [TensorId::NONE; INPUTS + 1];
        let places = ids.iter_mut().zip(inputs);
        let recorded = places.map(|(id, input)| *id = tensor_id(input)).count();
        let bytes = inputs.iter().fold(0, |sum: u64, input| sum.saturating_add(dense_bytes(input)));
        let output = tensor_fact(&self.probe(), output, Category::ACTIVATION);
        self.op(
            node,
            &OpFact {
                op,
                start: time.start,
                end: time.end,
                output: output.tensor,
                storage: output.storage,
                shape: Some(output.shape),
                dtype: output.dtype,
                device: output.device,
                category: output.category,
                inputs: ids.get(..recorded).unwrap_or(&ids),
                input_bytes: Some(bytes),
            },
        );
    }

    fn candle_alloc(&self, node: NameId, op: NameId, tensor: &Tensor, category: Category) -> bool {
        memory::alloc(self, (node, op), tensor, category).is_some()
    }

    fn candle_free(&self, node: NameId, op: NameId, tensor: &Tensor, category: Category) -> bool {
        if !self.wants(node) {
            return false;
        }
        let Some(bytes) = storage_bytes(tensor) else { return false };
        let storage = storage_id(tensor);
        memory::free(self, node, &memory::fact(self, op, (storage, bytes), tensor, category));
        true
    }

    fn candle_parameters<N: AsRef<str>, V: Borrow<Var>>(
        &self,
        op: NameId,
        parameters: impl IntoIterator<Item = (N, V)>,
    ) -> MemoryCounts {
        memory::each_storage(parameters, |name, tensor| {
            let place = (self.probe().name(name), op);
            Ok::<_, std::convert::Infallible>(
                memory::alloc(self, place, tensor, Category::PARAMETER).map(|held| held.bytes),
            )
        })
        .unwrap_or_else(|never| match never {})
    }
}
