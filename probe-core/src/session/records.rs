//! What a session is told of, as the application holds it. Identities are texts of the application's;
//! they are names of the session, and compared only.

use tmrun_formats::trace::MemoryCategory;
use tmrun_formats::wire::{Range, Stats};

/// An operation that has ended.
#[derive(Debug, Clone, Copy)]
pub struct OpRecord<'a> {
    /// Its name, such as `matmul`.
    pub op_name: &'a str,
    /// Ids of the tensors that went in; more than 75 are cut off, which the file says.
    pub inputs: &'a [String],
    /// Id of the tensor that came out.
    pub output: Option<&'a str>,
    /// The output's dimensions.
    pub shape: &'a [usize],
    /// The output's element type.
    pub dtype: &'a str,
    /// Where it ran.
    pub device: &'a str,
    /// How long it took.
    pub duration_ns: u64,
    /// When it began, in the session's time; 0: that it ends now.
    pub timestamp_ns: u64,
    /// Dense bytes of the output. They are not stored: whoever reads the file has them from shape and
    /// element type.
    pub output_dense_bytes: Option<u64>,
    /// Dense bytes of the inputs together.
    pub input_dense_bytes: u64,
}

/// A tensor, as it is seen once.
#[derive(Debug, Clone, Copy)]
pub struct TensorRecord<'a> {
    /// Which tensor.
    pub tensor_id: &'a str,
    /// What the application calls the observation.
    pub label: Option<&'a str>,
    /// Its dimensions.
    pub shape: &'a [usize],
    /// Its element type.
    pub dtype: &'a str,
    /// Where it lies.
    pub device: &'a str,
    /// Whether a gradient is tracked.
    pub requires_grad: bool,
    /// Its dense bytes; not stored, as those of [`OpRecord`].
    pub dense_bytes: Option<u64>,
    /// What it is for.
    pub category: MemoryCategory,
}

/// Statistics of a tensor that somebody else computed.
#[derive(Debug, Clone, Copy)]
pub struct StatsRecord<'a> {
    /// What the application calls it, in this run and others.
    pub label: &'a str,
    /// The tensor's dimensions.
    pub shape: &'a [usize],
    /// Its element type.
    pub dtype: &'a str,
    /// The statistics; over the elements that are finite, if some are not.
    pub stats: Stats,
    /// The range of the values, when it is known.
    pub range: Option<Range>,
}

/// A storage that comes or goes.
#[derive(Debug, Clone, Copy)]
pub struct MemoryRecord<'a> {
    /// Which storage.
    pub storage_id: &'a str,
    /// The tensor that lies in it; several may.
    pub tensor_id: &'a str,
    /// Where it lies.
    pub device: &'a str,
    /// The bytes that the backend allocated: not the tensor's dense footprint.
    pub bytes: u64,
    /// The tensor's element type.
    pub dtype: &'a str,
    /// What it is for.
    pub category: MemoryCategory,
    /// When, in the session's time; now without.
    pub timestamp_ns: Option<u64>,
    /// The operation that it happened in.
    pub op_name: Option<&'a str>,
    /// The tensor's dimensions.
    pub shape: &'a [usize],
}

/// A stretch of time on a device's own clock, which a timing adapter has found out.
#[derive(Debug, Clone, Copy)]
pub struct DeviceIntervalRecord<'a> {
    /// The device.
    pub device: &'a str,
    /// Which of its streams.
    pub stream_id: &'a str,
    /// The clock of both numbers.
    pub clock_id: &'a str,
    /// What measured it.
    pub backend: &'a str,
    /// When, on that clock.
    pub start_ns: u64,
    /// How long, on that clock.
    pub duration_ns: u64,
}

/// The memory of a device, as it is seen once. At least one of the four is given, and none is made of
/// the others.
#[derive(Debug, Clone, Copy)]
pub struct DeviceMemoryRecord<'a> {
    /// The device.
    pub device: &'a str,
    /// Bytes in use.
    pub used_bytes: Option<u64>,
    /// Bytes not in use.
    pub free_bytes: Option<u64>,
    /// Bytes that an allocator holds.
    pub reserved_bytes: Option<u64>,
    /// All there are.
    pub capacity_bytes: Option<u64>,
    /// When, in the session's time; now without.
    pub timestamp_ns: Option<u64>,
}
