//! What is on disk and on the wire: the `.tmrun` file and what is exchanged with `candle-graph`.
//!
//! | module | what it is of | its errors |
//! | --- | --- | --- |
//! | [`wire`] | the `.tmrun` file: records, chunks, metadata | [`DecodeError`] |
//! | [`rings`] | the mapped rings of a flight recorder | [`DecodeError`] |
//! | `parts` | what the files of a recording are called that has several | none |
//! | `json` | JSON as all of it is written | `NonFinite` |
//! | `runtime` | `candle-graph/runtime/1` to `/3` | `ReadError`, `WriteError` |
//! | `trace` | `candle-graph/trace/9` and `/10`; a run and what it promises | `ReadError`, `WriteError`, `RunError` |
//! | `evidence` | `candle-graph/evidence/5` | those of `serde_json` |
//! | `bundle` | `candle-graph/bundle/1` and its receipts | those, and `ManifestFault` |
//! | `comparison` | `candle-graph/comparison/6`, campaigns, series | those, and `PlanFault` |
//! | `published` | what the last three have in common | none of its own |
//!
//! All but the first two need the feature `std` and have guarantees of their own. Those of the first two:
//!
//! - Every number in a `.tmrun` is little-endian; every chunk starts on a 64-byte boundary, and its
//!   records can be read in place, at any alignment, as a [`&[Record]`](wire::Record).
//! - Encoding and decoding allocate nothing and need no `std`.
//! - Decoding any bytes ends in a value or a [`DecodeError`] that names the offset, what was
//!   expected and what was found. No length is trusted: nothing is sized, sliced or skipped by a
//!   number that was not first held against the bytes that are there.
//! - [`Truncated`](DecodeError::Truncated) means that bytes are missing, [`Malformed`] that they
//!   contradict the format, [`Unsupported`] that a newer version wrote them.
//! - Unknown record kinds, codes, frame kinds and frame versions survive decoding; a reader can
//!   skip and count them.
//! - The byte layout is specified in `docs/FORMAT.md`; a test holds the two together.
//!
//! [`Malformed`]: DecodeError::Malformed
//! [`Unsupported`]: DecodeError::Unsupported
//!
//! ```
//! use tmrun_formats::wire::{Payload, Record, RecordHeader, Scalar};
//! use tmrun_formats::{Level, NameId, Ticks};
//!
//! let loss = Scalar { value: 0.25 };
//! let header = RecordHeader { ticks: Ticks(1_000), name: NameId(7), ..RecordHeader::of::<Scalar>(Level::PULSE) };
//! let record = Record::new(header, &loss);
//!
//! let bytes: &[u8; 64] = record.as_bytes();
//! assert_eq!(bytes[8], 7, "the name follows the ticks");
//! assert_eq!(record.header(), header);
//! assert_eq!(record.payload::<Scalar>(), Some(loss));
//! ```
#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "std")]
pub mod bundle;
mod clock;
mod codes;
#[cfg(feature = "std")]
pub mod comparison;
mod device_clock;
mod error;
#[cfg(feature = "std")]
pub mod evidence;
mod gap;
mod ids;
#[cfg(feature = "std")]
pub mod json;
mod level;
#[cfg(feature = "std")]
pub mod parts;
mod pattern;
mod plane;
#[cfg(feature = "std")]
pub mod published;
pub mod rings;
#[cfg(feature = "std")]
pub mod runtime;
#[cfg(feature = "std")]
mod seen;
mod time;
#[cfg(feature = "std")]
pub mod trace;
pub mod wire;
#[cfg(feature = "std")]
mod words;

pub use clock::{ClockMap, Knot};
pub use codes::{
    Category, ClockCode, DType, DeviceCode, EdgeKind, ExecutionStep, GradientState, LevelSource,
    Phase, SpanKind,
};
pub use device_clock::{DeviceFit, DeviceReading, StampFault};
pub use error::DecodeError;
pub use gap::{GapClass, GapReason};
pub use ids::{LaneId, NameId, RunId, SpanId, StorageId, StreamId, TensorId};
pub use level::Level;
pub use pattern::{Pattern, PatternError};
pub use plane::Planes;
pub use time::{HostNs, Ticks};
