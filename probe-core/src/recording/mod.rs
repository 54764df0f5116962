//! Recording to a file: a thread that drains, and what the file says of the run (feature `std`).

mod cost;
mod error;
mod file;
mod host;
mod run;
mod thread;

pub use error::RecordError;
pub use run::ProfileRun;
pub use thread::Recording;
