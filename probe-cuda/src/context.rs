//! A device's primary context, retained by the probe itself: an application's binding never notices.

use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::sys::CUcontext;

use crate::driver::{Code, Driver};
use crate::error::CudaError;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`: calls of this thread break nobody's capture.
const RELAXED: u32 = 2;

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) driver: &'static Driver,
    handle: CUcontext,
    device: i32,
    pub(crate) ordinal: u32,
    /// The first error that is there to stay; 0 for none.
    dead: AtomicU32,
}

// SAFETY: the handle is a number to the driver, which may be called from any thread.
unsafe impl Send for Context {}
// SAFETY: as above; what changes is atomic.
unsafe impl Sync for Context {}

impl Context {
    /// Retains the device's primary context, which the application uses too.
    pub(crate) fn retain(ordinal: u32) -> Result<Self, CudaError> {
        let driver = Driver::get()?;
        let no_device = |code| CudaError::NoDevice { library: driver.library, code };
        driver.init().map_err(no_device)?;
        let found = driver.device_count().map_err(no_device)?;
        if found == 0 {
            return Err(no_device(Code::NO_DEVICE));
        }
        let wanted = i32::try_from(ordinal).ok().filter(|&wanted| wanted < found);
        let wanted = wanted.ok_or(CudaError::NoSuchDevice { ordinal, found })?;
        let device = driver.device(wanted).map_err(CudaError::driver("cuDeviceGet"))?;
        let handle =
            driver.retain(device).map_err(CudaError::driver("cuDevicePrimaryCtxRetain"))?;
        Ok(Self { driver, handle, device, ordinal, dead: AtomicU32::new(0) })
    }

    pub(crate) fn is(&self, other: CUcontext) -> bool {
        self.handle == other
    }

    pub(crate) fn device_name(&self) -> Result<String, CudaError> {
        self.driver.device_name(self.device).map_err(CudaError::driver("cuDeviceGetName"))
    }

    /// Makes the context the calling thread's, and the thread's calls harmless to captures, until the
    /// answer is dropped; then both are as they were.
    pub(crate) fn enter(&self) -> Result<Entered<'_>, CudaError> {
        let driver = self.driver;
        let before = driver.current().map_err(self.refused("cuCtxGetCurrent"))?;
        let mode = driver.exchange_capture_mode(RELAXED);
        let mode = mode.map_err(self.refused("cuThreadExchangeStreamCaptureMode"))?;
        let entered = Entered { context: self, before, mode };
        if before != self.handle {
            let set = driver.set_current(self.handle);
            set.map_err(self.refused("cuCtxSetCurrent"))?;
        }
        Ok(entered)
    }

    /// An error came. One that is there to stay is remembered.
    pub(crate) fn failed(&self, code: Code) {
        if code.is_sticky() {
            let _ = self.dead.compare_exchange(0, code.0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The same as an error of this function.
    pub(crate) fn refused(&self, call: &'static str) -> impl Fn(Code) -> CudaError {
        move |code| {
            self.failed(code);
            CudaError::Driver { call, code }
        }
    }

    /// The error that is there to stay.
    #[inline]
    pub(crate) fn dead(&self) -> Option<Code> {
        match self.dead.load(Ordering::Relaxed) {
            0 => None,
            code => Some(Code(code)),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.dead().is_none() {
            // Nothing can be done where even this fails.
            let _ = self.driver.release(self.device);
        }
    }
}

/// The calling thread is in the context.
#[derive(Debug)]
pub(crate) struct Entered<'c> {
    context: &'c Context,
    before: CUcontext,
    mode: u32,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let driver = self.context.driver;
        if self.before != self.context.handle {
            let _ = driver.set_current(self.before);
        }
        let _ = driver.exchange_capture_mode(self.mode);
    }
}
