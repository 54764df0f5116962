//! How the benchmarks measure: cases in turn, many rounds, the same process, and every number as a
//! ratio to a ruler that was measured in the same rounds. Absolute times on a shared machine mean
//! nothing; two bare clock reads are 1.0.

mod cores;
mod instructions;
mod measure;
mod table;

pub use cores::{on_core, pin, pin_others};
pub use instructions::{Callgrind, NoCallgrind};
pub use measure::{Case, Cost, measure};
pub use table::{Better, Missing, Row, Table};

/// Ends the process, and nothing else: no destructor of anybody's is run.
pub fn exit_at_once() -> ! {
    #[cfg(unix)]
    // SAFETY: ends the process.
    unsafe {
        libc::_exit(0)
    }
    #[cfg(not(unix))]
    std::process::exit(0)
}
