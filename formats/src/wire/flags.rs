//! Flag bits of a record's header. Bits 0 to 13 mean something else for each kind.

/// Any kind: continues the record before it, as part of the same group.
pub const CONTINUES: u16 = 1 << 15;
/// Any head of a group: the fact was longer than a group holds, and the rest was left out.
pub const TRUNCATED: u16 = 1 << 14;

/// Span: the measured region.
pub const SPAN_MEASURED: u16 = 1;
/// Span: one lane's part of a detached span, which is its parent.
pub const SPAN_SEGMENT: u16 = 1 << 1;
/// Span: still open when the recording ended; its end is the last moment that is known.
pub const SPAN_OPEN: u16 = 1 << 2;
/// Span: reported after it had ended, from another clock.
pub const SPAN_COMPLETED: u16 = 1 << 3;
/// Span: detached: no stretch of a lane. Its time on lanes is in its segments.
pub const SPAN_DETACHED: u16 = 1 << 4;

/// Step: the end of the step; without it the beginning.
pub const STEP_END: u16 = 1;
/// Step: the micro-batch is given.
pub const STEP_MICRO_BATCH: u16 = 1 << 1;
/// Step: no new step begins; one that was interrupted by another goes on.
pub const STEP_RESUMED: u16 = 1 << 2;

/// Op: the output tensor is a name.
pub const OP_OUTPUT_NAMED: u16 = 1;
/// Op: the output storage is a name.
pub const OP_STORAGE_NAMED: u16 = 1 << 1;
/// Op: the dense bytes of the inputs are known.
pub const OP_INPUT_BYTES: u16 = 1 << 2;
/// OpInput: the i-th of its five tensors is a name (bits 0 to 4).
pub const OP_INPUT_NAMED: u16 = 1;

/// Tensor, Alloc, Free: the tensor is a name.
pub const TENSOR_NAMED: u16 = 1;
/// Tensor, Alloc, Free: the storage is a name.
pub const STORAGE_NAMED: u16 = 1 << 1;
/// Tensor: contiguous (only with [`TENSOR_LAYOUT`]).
pub const TENSOR_CONTIGUOUS: u16 = 1 << 2;
/// Tensor: whether it is contiguous is known.
pub const TENSOR_LAYOUT: u16 = 1 << 3;
/// Tensor: a variable, or on the way to one.
pub const TENSOR_REQUIRES_GRAD: u16 = 1 << 4;
/// Tensor: only describes the statistic that follows and is no observation of its own.
pub const TENSOR_CONTEXT: u16 = 1 << 5;

/// Shape: how many of its five dimensions are used (bits 0 to 2).
pub const SHAPE_DIMS: u16 = 0b111;

/// Gradient: the norm is given.
pub const GRADIENT_NORM: u16 = 1;

/// DeviceMemory: the bytes in use are given.
pub const MEMORY_USED: u16 = 1;
/// DeviceMemory: the free bytes are given.
pub const MEMORY_FREE: u16 = 1 << 1;
/// DeviceMemory: the reserved bytes are given.
pub const MEMORY_RESERVED: u16 = 1 << 2;
/// DeviceMemory: the capacity is given.
pub const MEMORY_CAPACITY: u16 = 1 << 3;

/// DeviceInterval: the stream is a name.
pub const STREAM_NAMED: u16 = 1;

/// Edge: the source is a name (always so for a static edge).
pub const EDGE_FROM_NAMED: u16 = 1;
/// Edge: the target is a name (always so for a static edge).
pub const EDGE_TO_NAMED: u16 = 1 << 1;
