//! What Nsight Systems saw of a run: the directory that `nsys stats` filled, held against the trace.
//!
//! What a reader of the code can rely on:
//!
//! - Nothing here changes what is said of the trace: what is missing, broken or of another run lowers
//!   what can be claimed of the GPU, and nothing else.
//! - Times stay on Nsight's own clock, which is never aligned with the trace's.
//! - A table that cannot be read is a diagnostic, and the others are read.
//! - What a table holds is hashed as it was read.
//! - Values and orders are those of `candle-graph` 0.10.1. Ranges are joined with work in the time that
//!   sorting takes, where the neighbour holds each against each.
//!
//! ```
//! use tmrun::nsight::{TableError, summary};
//!
//! let rows = summary(b"Time (%),Total Time (ns),Instances,Name\n99.0,\"1,200\",3,gemm\n")?;
//! assert_eq!((&*rows[0].name, rows[0].total_ns, rows[0].count), ("gemm", 1200, Some(3)));
//! assert!(matches!(summary(b"Name\ngemm\n"), Err(TableError::NoColumn { .. })));
//! # Ok::<(), TableError>(())
//! ```

mod correlation;
mod files;
mod provenance;
mod read;
mod rows;
mod table;
mod work;

pub use correlation::{correlate, phases};
pub use read::read;
pub use rows::{summary, timeline};
pub use table::TableError;
