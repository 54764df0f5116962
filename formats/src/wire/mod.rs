//! The `.tmrun` file: `File := FileHeader Chunk* [Trailer]`.
//!
//! | piece | module |
//! | --- | --- |
//! | file header | [`FileHeader`] |
//! | chunk header, walking and resynchronising | [`ChunkHeader`], [`Chunks`] |
//! | records, their header and payloads | [`Record`], [`RecordHeader`], [`Payload`] |
//! | groups of records | [`groups`] |
//! | metadata frames | [`Frame`], [`Frames`] |
//! | index and trailer | [`IndexEntry`], [`Trailer`] |
//! | assembling a file | [`Assembler`] |

mod assemble;
mod chunk;
mod field;
mod file;
pub mod flags;
mod frame;
mod group;
mod index;
mod kind;
mod payload;
mod record;
mod step;
mod walk;

pub use assemble::{Assembler, Place};
pub use chunk::{CHUNK_MAGIC, ChunkHeader, ChunkKind};
pub use file::{FILE_MAGIC, FileHeader, VERSION};
pub use frame::{
    CalibrationV1, ClockV1, ComparisonIdentityV1, ContractV1, ControlV1, DTypeV1, DeviceV1,
    EncodeError, Frame, FrameError, Frames, GradientEntryV1, GradientFamilyV1, HoleV1, ItemV1,
    LabelV1, LaneStartV1, LaneStepV1, LaneV1, NameV1, OpenSpanV1, PartV1, RawFrame, RecorderCostV1,
    RemovedV1, RunV1, SiteV1, TagV1, TerminalV1, TotalsV1,
};
pub use group::{GROUP_MAX, Groups, groups};
pub use index::{INDEX_EVERY, IndexEntry, IndexHead, TRAILER_MAGIC, Trailer};
pub use kind::Kind;
pub use payload::{
    Alloc, ClockSync, Control, DeviceInterval, DeviceMemory, Edge, Free, Gap, Gradient, Hit,
    LevelChange, Op, OpInput, Payload, Range, Scalar, Shape, Span, Stats, Step, Tensor,
};
pub use record::{RECORD_SIZE, Record, RecordHeader};
pub use step::{StepMark, StepState};
pub use walk::{Chunk, Chunks, Damage, Walked};

/// `a + b` for offsets, held at the end of the scale: a file never reaches it.
const fn offset_add(a: u64, b: usize) -> u64 {
    a.saturating_add(b as u64)
}
