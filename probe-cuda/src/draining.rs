//! A thread that reads the device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tmrun_probe_core::Clock;

use crate::error::CudaError;
use crate::probe::CudaProbe;

/// A thread that reads a device until this is dropped.
#[derive(Debug)]
#[must_use = "the thread ends when this is dropped"]
pub struct Draining {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<C: Clock> CudaProbe<C> {
    /// Starts a thread that [polls](Self::poll) this often: often enough that a timer's pool does not run
    /// out, a millisecond say. It breaks no capture, and changes no context but its own.
    ///
    /// # Errors
    ///
    /// When no thread can be had.
    pub fn drain_every(&self, period: Duration) -> Result<Draining, CudaError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (device, stops) = (self.clone(), Arc::clone(&stop));
        let thread =
            std::thread::Builder::new().name("tmrun device time".to_owned()).spawn(move || {
                while !stops.load(Ordering::Acquire) {
                    device.poll();
                    std::thread::park_timeout(period);
                }
            });
        let thread = thread.map_err(|error| CudaError::Thread { reason: error.to_string() })?;
        Ok(Draining { stop, thread: Some(thread) })
    }
}

impl Drop for Draining {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // What it panicked of, if it did, it has said.
            let _ = thread.join();
        }
    }
}
