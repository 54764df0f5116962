//! What the tests share.

pub mod allocations;
pub mod clock;
pub mod file;
pub mod harness;
pub mod simulated;

pub use clock::SimulatedClock;
pub use file::Recording;
pub use harness::{Setup, on_fake};
pub use simulated::Simulated;

use std::sync::atomic::{AtomicBool, Ordering};

use tmrun_probe_core::probe;

probe!(pub static PROBE: lanes = 12, slots = 1 << 12; clock = SimulatedClock);

/// Says that it is over when it is dropped, also where a test fails: others wait for it.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A test that runs in a process of its own, on a driver that is set up like this.
macro_rules! on_fake {
    ($(#[$meta:meta])* fn $name:ident($fake:ident) on $setup:expr; $body:block) => {
        $(#[$meta])*
        #[test]
        fn $name() {
            let path = concat!(module_path!(), "::", stringify!($name));
            $crate::support::on_fake(path, &$setup, |$fake| $body);
        }
    };
}
pub(crate) use on_fake as fake_test;
