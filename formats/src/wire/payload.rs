//! Payloads: the 40 bytes of a record that depend on its kind.

use super::Kind;
use super::field::{Field, claim_bytes};
use crate::{
    Category, ClockCode, DType, DeviceCode, EdgeKind, ExecutionStep, GapReason, GradientState,
    LaneId, Level, LevelSource, NameId, Phase, Planes, SpanId, SpanKind, StorageId, StreamId,
    TensorId, Ticks,
};

/// The payload of one kind of record: five 64-bit words, little-endian, unused bytes zero.
pub trait Payload: Copy {
    /// The kind of record that carries it.
    const KIND: Kind;
    /// The five words. Meant to be inlined into the store of a record: it builds nothing in memory.
    fn words(&self) -> [u64; 5];
    /// The payload that these words hold. Every value of the words is some payload.
    fn from_words(words: &[u64; 5]) -> Self;
}

macro_rules! payloads {
    ($($(#[$doc:meta])* $name:ident: $kind:ident {
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $offset:literal,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        const _: () = {
            let taken = 0;
            $(let taken = claim_bytes::<$type>(taken, $offset);)*
            let _ = taken;
        };

        impl Payload for $name {
            const KIND: Kind = Kind::$kind;
            #[inline(always)]
            fn words(&self) -> [u64; 5] {
                let mut words = [0; 5];
                $(self.$field.put(&mut words, $offset);)*
                words
            }
            #[inline(always)]
            fn from_words(words: &[u64; 5]) -> Self {
                Self { $($field: Field::get(words, $offset),)* }
            }
        }
    )*};
}

payloads! {
    /// A host interval. The header has its start, name and the low half of its own id, see
    /// [`Span::id`].
    Span: Span {
        /// Its end.
        end: Ticks = 0,
        /// The span around it, [`SpanId::NONE`] for none.
        parent: SpanId = 8,
        /// The high half of its own id.
        own_high: u32 = 16,
        /// The lane of the parent.
        parent_lane: LaneId = 20,
        /// The lane that its own id counts on.
        own_lane: LaneId = 22,
        /// How many spans are around it.
        depth: u16 = 24,
        /// The part of the training step that it covers.
        step: ExecutionStep = 26,
        /// What it stands for.
        kind: SpanKind = 27,
    }

    /// A step begins or ends on its lane.
    Step: Step {
        /// The step's number, from 1.
        number: u64 = 0,
        /// The micro-batch within the step, when the flag says so.
        micro_batch: u32 = 8,
        /// What the step does.
        phase: Phase = 12,
    }

    /// An operation. The header has its start and the node.
    Op: Op {
        /// Its end.
        end: Ticks = 0,
        /// The output tensor.
        output: TensorId = 8,
        /// The storage of the output.
        storage: StorageId = 16,
        /// Dense bytes of the inputs together, when the flag says so.
        input_bytes: u64 = 24,
        /// The operation's own name, such as `matmul`.
        op: NameId = 32,
        /// How many inputs follow in OpInput records.
        inputs: u8 = 36,
        /// What the output is for.
        category: Category = 37,
        /// Element type of the output.
        dtype: DType = 38,
        /// Device of the output.
        device: DeviceCode = 39,
    }

    /// Five inputs of the operation before it; the operation says how many of them count.
    OpInput: OpInput {
        /// The tensors.
        tensors: [TensorId; 5] = 0,
    }

    /// A tensor's metadata. The header has the node.
    Tensor: Tensor {
        /// Its identity.
        tensor: TensorId = 0,
        /// Its storage.
        storage: StorageId = 8,
        /// How many dimensions it has.
        rank: u8 = 16,
        /// Element type.
        dtype: DType = 17,
        /// Device.
        device: DeviceCode = 18,
        /// What it is for.
        category: Category = 19,
        /// The dimensions, where they fit: at most five, each below 2^32. Else Shape records follow.
        dims: [u32; 5] = 20,
    }

    /// Dimensions of the group's head, five a record.
    Shape: Shape {
        /// The dimensions; the flags say how many count, see [`Shape::used`].
        dims: [u64; 5] = 0,
    }

    /// Statistics of the tensor before it. Mean, RMS and absolute maximum are over the finite
    /// elements, and 0 when there are none.
    Stats: Stats {
        /// How many elements there are, finite or not.
        count: u64 = 0,
        /// NaN elements, saturating.
        nan: u32 = 8,
        /// Infinite elements, saturating.
        inf: u32 = 12,
        /// Root of the mean square.
        rms: f64 = 16,
        /// Greatest absolute value.
        abs_max: f64 = 24,
        /// Arithmetic mean.
        mean: f64 = 32,
    }

    /// A range of values: after Stats its second half, alone an observation of the node.
    Range: Range {
        /// Least finite value.
        min: f64 = 0,
        /// Greatest finite value.
        max: f64 = 8,
        /// Elements that are zero.
        zeros: u64 = 16,
        /// Elements at the limit of their type.
        saturated: u64 = 24,
        /// Positive infinities, saturating.
        positive_inf: u32 = 32,
        /// Elements that are not finite, saturating.
        non_finite: u32 = 36,
    }

    /// One number that the application computed. The header has the label.
    Scalar: Scalar {
        /// The number; any f64, NaN and infinities included.
        value: f64 = 0,
    }

    /// What became of a parameter's gradient. The header has the parameter's key.
    Gradient: Gradient {
        /// The norm, when the flag says so.
        norm: f64 = 0,
        /// The name of the parameter's root.
        root: NameId = 8,
        /// What became of it.
        state: GradientState = 12,
    }

    /// A storage was allocated. The header has the node.
    Alloc: Alloc {
        /// The storage.
        storage: StorageId = 0,
        /// The tensor that it was allocated for.
        tensor: TensorId = 8,
        /// The bytes that the backend allocated (not the tensor's dense footprint).
        bytes: u64 = 16,
        /// The operation that allocated it.
        op: NameId = 24,
        /// Element type.
        dtype: DType = 28,
        /// Device.
        device: DeviceCode = 29,
        /// What it is for.
        category: Category = 30,
    }

    /// A storage was freed. The same fields as [`Alloc`].
    Free: Free {
        /// The storage.
        storage: StorageId = 0,
        /// The tensor that it was allocated for.
        tensor: TensorId = 8,
        /// The bytes that the backend freed.
        bytes: u64 = 16,
        /// The operation that freed it.
        op: NameId = 24,
        /// Element type.
        dtype: DType = 28,
        /// Device.
        device: DeviceCode = 29,
        /// What it was for.
        category: Category = 30,
    }

    /// A sample of a device's memory, in bytes; the flags say which of the four are given.
    DeviceMemory: DeviceMemory {
        /// In use.
        used: u64 = 0,
        /// Free.
        free: u64 = 8,
        /// Reserved.
        reserved: u64 = 16,
        /// Capacity.
        capacity: u64 = 24,
        /// The device.
        device: DeviceCode = 32,
    }

    /// An interval on a device's own clock, which is not the host's. The header has the host tick
    /// just before the work was recorded.
    DeviceInterval: DeviceInterval {
        /// Start, in nanoseconds of the device clock.
        start: u64 = 0,
        /// End, in nanoseconds of the device clock.
        end: u64 = 8,
        /// The stream.
        stream: StreamId = 16,
        /// The host tick at which its completion was seen.
        seen: Ticks = 24,
        /// Low half of the id of the span that launched it.
        span: u32 = 32,
        /// The lane of that span.
        lane: LaneId = 36,
        /// The device.
        device: DeviceCode = 38,
        /// Which of the device's clocks.
        clock: ClockCode = 39,
    }

    /// An edge between two spans, two tensors or two named nodes.
    Edge: Edge {
        /// Where it starts: span, tensor or name, as the kind says.
        from: u64 = 0,
        /// Where it ends.
        to: u64 = 8,
        /// How long it took, in ticks.
        duration: u64 = 16,
        /// The lane of a source span.
        from_lane: LaneId = 24,
        /// The lane of a target span.
        to_lane: LaneId = 26,
        /// What it connects.
        kind: EdgeKind = 28,
    }

    /// The level changed: raised coverage begins at `armed`, lowered coverage ends at `asked`.
    LevelChange: Level {
        /// The tick before the sites were armed.
        asked: Ticks = 0,
        /// The tick after.
        armed: Ticks = 8,
        /// The level before.
        old: Level = 16,
        /// The level after.
        new: Level = 17,
        /// Who asked.
        source: LevelSource = 18,
    }

    /// A configuration takes effect on its lane. A Meta frame defines it.
    Control: Control {
        /// The configuration.
        configuration: u64 = 0,
        /// The first position of the lane that it governs.
        sequence: u64 = 8,
    }

    /// Records are missing.
    Gap: Gap {
        /// The tick of the first.
        first: Ticks = 0,
        /// The tick of the last.
        last: Ticks = 8,
        /// How many records.
        records: u64 = 16,
        /// How many groups.
        groups: u64 = 24,
        /// Evidence of which planes.
        planes: Planes = 32,
        /// The lane they are missing from.
        lane: LaneId = 36,
        /// Why.
        reason: GapReason = 38,
    }

    /// A breakpoint was hit. The header has the node.
    Hit: Hit {
        /// The value that it saw.
        value: f64 = 0,
        /// The breakpoint.
        breakpoint: u64 = 8,
    }

    /// A device clock and the host clock, read together.
    ClockSync: ClockSync {
        /// The device's nanosecond.
        device_ns: u64 = 0,
        /// The host tick before.
        before: Ticks = 8,
        /// The host tick after.
        after: Ticks = 16,
        /// The clock.
        clock: ClockCode = 24,
    }
}

impl Span {
    /// Its own id in full, from the record header's `span`.
    #[inline(always)]
    pub const fn id(&self, low: u32) -> SpanId {
        SpanId((self.own_high as u64) << 32 | low as u64)
    }
}

impl Shape {
    /// The dimensions that count, as the record's flags say; at most all five.
    pub fn used(&self, flags: u16) -> &[u64] {
        let count = usize::from(flags & super::flags::SHAPE_DIMS);
        self.dims.get(..count).unwrap_or(&self.dims)
    }
}
