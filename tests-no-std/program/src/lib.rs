//! A little training, recorded into an array and read back: no std, no alloc, a clock of its own.
#![no_std]

mod check;
mod record;

pub use check::check;
pub use record::{MEMORY, record};
