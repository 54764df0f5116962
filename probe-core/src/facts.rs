//! Facts: what can be recorded besides spans and steps. Each is one group: stored whole, or dropped
//! whole and counted.

use tmrun_formats::wire::{
    Alloc, DeviceMemory, Edge, Free, GROUP_MAX, Gradient, Op, OpInput, Payload, Range,
    RecordHeader, Scalar, Shape, Stats, Tensor, flags,
};
use tmrun_formats::{
    Category, DType, DeviceCode, EdgeKind, GradientState, LaneId, Level, NameId, Planes, SpanId,
    StorageId, TensorId, Ticks,
};

use crate::clock::Clock;
use crate::lane::Store;
use crate::record::{Recorder, Target};
use crate::site::Site;

/// A tensor's metadata, as the caller holds it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TensorFact<'a> {
    /// The tensor's identity.
    pub tensor: TensorId,
    /// Its storage.
    pub storage: StorageId,
    /// Its dimensions; more than 75 are cut off, flagged and counted.
    pub shape: &'a [usize],
    /// Element type.
    pub dtype: DType,
    /// Device.
    pub device: DeviceCode,
    /// What it is for.
    pub category: Category,
    /// Whether it is contiguous, when known.
    pub contiguous: Option<bool>,
    /// Whether it is a variable or on the way to one.
    pub requires_grad: bool,
}

/// An operation, as the caller holds it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OpFact<'a> {
    /// The operation's own name, such as `matmul`.
    pub op: NameId,
    /// When it began.
    pub start: Ticks,
    /// When it ended.
    pub end: Ticks,
    /// Its output. Without a shape (`None`) the output's dimensions are unknown.
    pub output: TensorId,
    /// The storage of the output.
    pub storage: StorageId,
    /// The output's dimensions.
    pub shape: Option<&'a [usize]>,
    /// Element type of the output.
    pub dtype: DType,
    /// Device of the output.
    pub device: DeviceCode,
    /// What the output is for.
    pub category: Category,
    /// Its inputs; more than 75 (five fewer for every five dimensions of the shape) are cut off,
    /// flagged and counted.
    pub inputs: &'a [TensorId],
    /// Dense bytes of the inputs together, when known.
    pub input_bytes: Option<u64>,
}

/// An allocation or a free, as the caller holds it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MemoryFact<'a> {
    /// The storage.
    pub storage: StorageId,
    /// The tensor that it is for.
    pub tensor: TensorId,
    /// The bytes that the backend allocated: not the tensor's dense footprint.
    pub bytes: u64,
    /// The operation.
    pub op: NameId,
    /// The tensor's dimensions, when known.
    pub shape: Option<&'a [usize]>,
    /// Element type.
    pub dtype: DType,
    /// Device.
    pub device: DeviceCode,
    /// What it is for.
    pub category: Category,
}

/// A sample of a device's memory. At least one of the four is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceMemoryFact {
    /// The device.
    pub device: DeviceCode,
    /// Bytes in use.
    pub used: Option<u64>,
    /// Free bytes.
    pub free: Option<u64>,
    /// Reserved bytes.
    pub reserved: Option<u64>,
    /// Capacity in bytes.
    pub capacity: Option<u64>,
}

/// Dimensions in one Shape record.
const DIMS: usize = 5;

/// Records that a shape takes.
fn shape_records(shape: Option<&[usize]>) -> usize {
    shape.map_or(0, |shape| shape.len().div_ceil(DIMS).max(1))
}

impl<C: Clock> Recorder<'_, C> {
    /// One number that the application computed; any f64.
    #[inline]
    pub fn scalar(&self, label: NameId, value: f64) {
        if !self.wants(label) {
            return;
        }
        self.store(self.header::<Scalar>(C::ticks(), label, Level::PULSE), &Scalar { value });
    }

    /// An operation of a node, with its output's shape and its inputs.
    pub fn op(&self, node: NameId, fact: &OpFact<'_>) {
        if self.wants(node) {
            self.store_op(self.header::<Op>(fact.start, node, Level::TIMING), fact, false);
        }
    }

    /// Stores an operation. The header says where it belongs and which of its identities are names;
    /// of the inputs all are, or none.
    pub(crate) fn store_op(&self, mut header: RecordHeader, fact: &OpFact<'_>, named: bool) {
        let wanted = shape_records(fact.shape);
        let shapes = wanted.min(GROUP_MAX - 1);
        let room = (GROUP_MAX - 1 - shapes) * DIMS;
        let inputs = fact.inputs.get(..room).unwrap_or(fact.inputs);
        header.flags |= if fact.input_bytes.is_some() { flags::OP_INPUT_BYTES } else { 0 };
        self.flag_truncated(&mut header, wanted > shapes || inputs.len() < fact.inputs.len());
        let records = 1 + shapes + inputs.len().div_ceil(DIMS);
        self.group(records, (fact.start, fact.end), Planes::OPERATIONS, |store| {
            let op = Op {
                end: fact.end,
                output: fact.output,
                storage: fact.storage,
                input_bytes: fact.input_bytes.unwrap_or_default(),
                op: fact.op,
                inputs: inputs.len() as u8,
                category: fact.category,
                dtype: fact.dtype,
                device: fact.device,
            };
            store.put(header, &op);
            put_shape(store, header, fact.shape, shapes);
            for five in inputs.chunks(DIMS) {
                let tensors = core::array::from_fn(|i| five.get(i).copied().unwrap_or_default());
                store.put_continued(header, named_inputs(named, five), &OpInput { tensors });
            }
        });
    }

    /// A tensor's metadata.
    pub fn tensor(&self, node: NameId, fact: &TensorFact<'_>) {
        if self.wants(node) {
            let header = self.header::<Tensor>(C::ticks(), node, Level::METADATA);
            self.store_tensor(header, fact, None);
        }
    }

    /// Statistics of a tensor, and the range of its values when known. With `observed` the tensor's
    /// metadata is an observation of its own; else it only describes the statistics.
    pub fn stats(
        &self,
        node: NameId,
        fact: &TensorFact<'_>,
        observed: bool,
        stats: &Stats,
        range: Option<&Range>,
    ) {
        if self.wants(node) {
            let mut header = self.header::<Tensor>(C::ticks(), node, Level::NUMERICS);
            header.flags |= if observed { 0 } else { flags::TENSOR_CONTEXT };
            self.store_tensor(header, fact, Some((stats, range)));
        }
    }

    /// Stores a tensor's metadata, and statistics of it when there are any. The header says where it
    /// belongs, which of its identities are names, and whether it is only context.
    pub(crate) fn store_tensor(
        &self,
        mut header: RecordHeader,
        fact: &TensorFact<'_>,
        stats: Option<(&Stats, Option<&Range>)>,
    ) {
        let is_context = header.flags & flags::TENSOR_CONTEXT != 0;
        let of_tensor = if is_context { Planes::NONE } else { Planes::TENSORS };
        let of_stats = if stats.is_some() { Planes::STATISTICS } else { Planes::NONE };
        let planes = of_tensor.union(of_stats);
        let fits =
            fact.shape.len() <= DIMS && fact.shape.iter().all(|&dim| u32::try_from(dim).is_ok());
        let own = 1 + stats.map_or(0, |(_, range)| 1 + usize::from(range.is_some()));
        let wanted = shape_records((!fits).then_some(fact.shape));
        let shapes = wanted.min(GROUP_MAX - own);
        header.flags |= fact.contiguous.map_or(0, |contiguous| {
            flags::TENSOR_LAYOUT | if contiguous { flags::TENSOR_CONTIGUOUS } else { 0 }
        });
        header.flags |= if fact.requires_grad { flags::TENSOR_REQUIRES_GRAD } else { 0 };
        self.flag_truncated(&mut header, wanted > shapes);
        self.group(own + shapes, (header.ticks, header.ticks), planes, |store| {
            let dim = |i| if fits { fact.shape.get(i).map_or(0, |&dim| dim as u32) } else { 0 };
            let tensor = Tensor {
                tensor: fact.tensor,
                storage: fact.storage,
                rank: u8::try_from(fact.shape.len()).unwrap_or(u8::MAX),
                dtype: fact.dtype,
                device: fact.device,
                category: fact.category,
                dims: core::array::from_fn(dim),
            };
            store.put(header, &tensor);
            put_shape(store, header, (!fits).then_some(fact.shape), shapes);
            if let Some((stats, range)) = stats {
                store.put_continued(header, 0, stats);
                if let Some(range) = range {
                    store.put_continued(header, 0, range);
                }
            }
        });
    }

    /// A range of values of a node, without statistics.
    pub fn range(&self, node: NameId, range: &Range) {
        if !self.wants(node) {
            return;
        }
        self.store(self.header::<Range>(C::ticks(), node, Level::NUMERICS), range);
    }

    /// What became of a parameter's gradient; the norm, when there is one.
    pub fn gradient(&self, root: NameId, key: NameId, state: GradientState, norm: Option<f64>) {
        if self.wants(key) {
            let header = self.header::<Gradient>(C::ticks(), key, Level::METADATA);
            self.store_gradient(header, root, state, norm);
        }
    }

    /// Stores what became of a gradient.
    pub(crate) fn store_gradient(
        &self,
        mut header: RecordHeader,
        root: NameId,
        state: GradientState,
        norm: Option<f64>,
    ) {
        header.flags |= if norm.is_some() { flags::GRADIENT_NORM } else { 0 };
        self.store(header, &Gradient { norm: norm.unwrap_or_default(), root, state });
    }

    /// A storage was allocated.
    pub fn alloc(&self, node: NameId, fact: &MemoryFact<'_>) {
        if self.wants(node) {
            self.store_alloc(self.header::<Alloc>(C::ticks(), node, Level::METADATA), fact);
        }
    }

    /// Stores an allocation. The header says where it belongs and which of its identities are names.
    pub(crate) fn store_alloc(&self, header: RecordHeader, fact: &MemoryFact<'_>) {
        let MemoryFact { storage, tensor, bytes, op, dtype, device, category, .. } = *fact;
        let alloc = Alloc { storage, tensor, bytes, op, dtype, device, category };
        self.store_memory(header, fact, &alloc);
    }

    /// A storage was freed.
    pub fn free(&self, node: NameId, fact: &MemoryFact<'_>) {
        if self.wants(node) {
            self.store_free(self.header::<Free>(C::ticks(), node, Level::METADATA), fact);
        }
    }

    /// The same of a free.
    pub(crate) fn store_free(&self, header: RecordHeader, fact: &MemoryFact<'_>) {
        let MemoryFact { storage, tensor, bytes, op, dtype, device, category, .. } = *fact;
        let free = Free { storage, tensor, bytes, op, dtype, device, category };
        self.store_memory(header, fact, &free);
    }

    fn store_memory<P: Payload>(
        &self,
        mut header: RecordHeader,
        fact: &MemoryFact<'_>,
        payload: &P,
    ) {
        let wanted = shape_records(fact.shape);
        let shapes = wanted.min(GROUP_MAX - 1);
        self.flag_truncated(&mut header, wanted > shapes);
        self.group(1 + shapes, (header.ticks, header.ticks), Planes::LOGICAL_MEMORY, |store| {
            store.put(header, payload);
            put_shape(store, header, fact.shape, shapes);
        });
    }

    /// A sample of a device's memory.
    pub fn device_memory(&self, fact: &DeviceMemoryFact) {
        if self.wants(NameId::NONE) {
            let header = self.header::<DeviceMemory>(C::ticks(), NameId::NONE, Level::METADATA);
            self.store_device_memory(header, fact);
        }
    }

    /// Stores a sample of a device's memory.
    pub(crate) fn store_device_memory(&self, mut header: RecordHeader, fact: &DeviceMemoryFact) {
        let mut take = |value: Option<u64>, flag| {
            header.flags |= if value.is_some() { flag } else { 0 };
            value.unwrap_or_default()
        };
        let payload = DeviceMemory {
            used: take(fact.used, flags::MEMORY_USED),
            free: take(fact.free, flags::MEMORY_FREE),
            reserved: take(fact.reserved, flags::MEMORY_RESERVED),
            capacity: take(fact.capacity, flags::MEMORY_CAPACITY),
            device: fact.device,
        };
        self.store(header, &payload);
    }

    /// An edge between two nodes, which took `duration` ticks. (It is wanted where either node is.)
    pub fn static_edge(&self, from: NameId, to: NameId, duration: u64) {
        let edge = Edge {
            from: from.0.into(),
            to: to.0.into(),
            duration,
            kind: EdgeKind::STATIC,
            ..Edge::default()
        };
        self.edge([from, to], flags::EDGE_FROM_NAMED | flags::EDGE_TO_NAMED, edge);
    }

    /// An edge between two tensors.
    pub fn data_edge(&self, from: TensorId, to: TensorId) {
        let (from, to) = (from.0, to.0);
        let edge = Edge { from, to, kind: EdgeKind::DATA, ..Edge::default() };
        self.edge([NameId::NONE; 2], 0, edge);
    }

    /// A call between two spans, each named by its lane and its id there, which took `duration`
    /// ticks. (A span within another of its own lane needs none: its record names the parent.)
    pub fn call_edge(&self, from: (LaneId, SpanId), to: (LaneId, SpanId), duration: u64) {
        let edge = Edge {
            from: from.1.0,
            to: to.1.0,
            duration,
            from_lane: from.0,
            to_lane: to.0,
            kind: EdgeKind::CALL,
        };
        self.edge([NameId::NONE; 2], 0, edge);
    }

    fn edge(&self, nodes: [NameId; 2], bits: u16, edge: Edge) {
        if !nodes.iter().any(|node| self.wants(*node)) {
            return;
        }
        let mut header = self.header::<Edge>(C::ticks(), NameId::NONE, Level::TIMING);
        header.flags |= bits;
        self.store(header, &edge);
    }

    /// Stores a group of `records`, at most [`GROUP_MAX`], or counts it as dropped.
    #[inline]
    fn group(
        &self,
        records: usize,
        edges: (Ticks, Ticks),
        planes: Planes,
        fill: impl FnOnce(&mut Store<'_>),
    ) {
        if let Some(mut store) = self.block().reserve::<C>(records as u64, edges, planes) {
            fill(&mut store);
            store.publish();
        }
    }

    fn flag_truncated(&self, header: &mut RecordHeader, truncated: bool) {
        if truncated {
            header.flags |= flags::TRUNCATED;
            self.block().truncated();
        }
    }
}

/// The flags of these inputs, at most five, where they are names.
fn named_inputs(named: bool, inputs: &[TensorId]) -> u16 {
    let flag =
        |(i, id): (usize, &TensorId)| if id.is_none() { 0 } else { flags::OP_INPUT_NAMED << i };
    if named { inputs.iter().enumerate().map(flag).fold(0, |all, flag| all | flag) } else { 0 }
}

/// Stores a shape as `records` continuations.
fn put_shape(store: &mut Store<'_>, header: RecordHeader, shape: Option<&[usize]>, records: usize) {
    let shape = shape.unwrap_or_default();
    for record in 0..records {
        let five = shape.get(record * DIMS..).unwrap_or_default();
        let five = five.get(..DIMS).unwrap_or(five);
        let dims = core::array::from_fn(|i| five.get(i).map_or(0, |&dim| dim as u64));
        store.put_continued(header, five.len() as u16, &Shape { dims });
    }
}

/// What [`scalar!`](crate::scalar) expands to.
#[doc(hidden)]
#[inline(always)]
pub fn record_scalar<T: Target>(target: &T, site: &'static Site, value: impl FnOnce() -> f64) {
    if let Some(name) = target.armed(site) {
        let value = value();
        target.on_lane(Planes::SCALARS, |recorder| recorder.scalar(name, value));
    }
}
