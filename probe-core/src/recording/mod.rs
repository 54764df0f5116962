//! Recording to a file: a thread that drains, and what the file says of the run (feature `std`).

mod asked;
mod cost;
mod error;
mod file;
#[cfg(target_os = "linux")]
mod flight;
#[cfg(not(target_os = "linux"))]
#[path = "no_flight.rs"]
mod flight;
#[cfg(target_os = "linux")]
mod fork;
mod host;
mod parts;
mod promise;
mod retain;
mod rotate;
mod run;
mod thread;
mod worker;

pub use error::RecordError;
#[cfg(all(target_os = "linux", not(all(loom, test))))]
pub(crate) use fork::forget;
pub use retain::DumpOn;
pub use run::ProfileRun;
pub use thread::Recording;
