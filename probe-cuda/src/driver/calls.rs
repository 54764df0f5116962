//! What is called, with Rust's types. Nothing here allocates, waits for a device, or touches the error
//! that an application's own binding keeps.

use std::ffi::CStr;

use cudarc::driver::sys::{CUcontext, CUevent, CUstream};

use super::{Code, Driver, Raw};

/// `CU_EVENT_DEFAULT`: with timing.
const WITH_TIMING: u32 = 0;
/// `CU_EVENT_RECORD_EXTERNAL`: a node of the graph that is being captured.
const EXTERNAL: u32 = 1;

/// Whether a stream is being captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capture {
    No,
    Yes,
    /// It is, and will come to nothing.
    Broken,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Query {
    Done,
    NotReady,
}

const fn check(raw: Raw) -> Result<(), Code> {
    if raw == 0 { Ok(()) } else { Err(Code(raw as u32)) }
}

/// The handles are numbers to the driver, which checks them; it may be called from any thread. So the
/// one thing that each call needs is that the places for its answers are there.
impl Driver {
    pub(crate) fn init(&self) -> Result<(), Code> {
        // SAFETY: takes no place.
        check(unsafe { (self.functions.init)(0) })
    }

    /// The version, as 1000 · major + 10 · minor.
    pub(crate) fn version(&self) -> Result<i32, Code> {
        let mut version = 0;
        // SAFETY: the place is there.
        check(unsafe { (self.functions.driver_version)(&raw mut version) }).map(|()| version)
    }

    pub(crate) fn device_count(&self) -> Result<i32, Code> {
        let mut count = 0;
        // SAFETY: the place is there.
        check(unsafe { (self.functions.device_count)(&raw mut count) }).map(|()| count)
    }

    pub(crate) fn device(&self, ordinal: i32) -> Result<i32, Code> {
        let mut device = 0;
        // SAFETY: the place is there.
        check(unsafe { (self.functions.device_get)(&raw mut device, ordinal) }).map(|()| device)
    }

    pub(crate) fn device_name(&self, device: i32) -> Result<String, Code> {
        let mut text = [0; 256];
        // SAFETY: the text has room for as much as is said.
        check(unsafe { (self.functions.device_name)(text.as_mut_ptr(), 255, device) })?;
        // SAFETY: the driver wrote at most 255 of the 256 bytes, which were zero.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        Ok(text.to_string_lossy().into_owned())
    }

    pub(crate) fn retain(&self, device: i32) -> Result<CUcontext, Code> {
        let mut context = core::ptr::null_mut();
        // SAFETY: the place is there.
        check(unsafe { (self.functions.context_retain)(&raw mut context, device) })
            .map(|()| context)
    }

    pub(crate) fn release(&self, device: i32) -> Result<(), Code> {
        // SAFETY: takes no place.
        check(unsafe { (self.functions.context_release)(device) })
    }

    pub(crate) fn current(&self) -> Result<CUcontext, Code> {
        let mut context = core::ptr::null_mut();
        // SAFETY: the place is there.
        check(unsafe { (self.functions.context_get)(&raw mut context) }).map(|()| context)
    }

    pub(crate) fn set_current(&self, context: CUcontext) -> Result<(), Code> {
        // SAFETY: takes no place.
        check(unsafe { (self.functions.context_set)(context) })
    }

    /// An event of the current context.
    pub(crate) fn create_event(&self) -> Result<CUevent, Code> {
        let mut event = core::ptr::null_mut();
        // SAFETY: the place is there.
        check(unsafe { (self.functions.event_create)(&raw mut event, WITH_TIMING) }).map(|()| event)
    }

    pub(crate) fn destroy_event(&self, event: CUevent) -> Result<(), Code> {
        // SAFETY: takes no place.
        check(unsafe { (self.functions.event_destroy)(event) })
    }

    #[inline]
    pub(crate) fn record(&self, event: CUevent, stream: CUstream) -> Result<(), Code> {
        // SAFETY: takes no place.
        check(unsafe { (self.functions.event_record)(event, stream) })
    }

    pub(crate) fn record_external(&self, event: CUevent, stream: CUstream) -> Result<(), Code> {
        // SAFETY: takes no place.
        check(unsafe { (self.functions.event_record_with)(event, stream, EXTERNAL) })
    }

    pub(crate) fn query(&self, event: CUevent) -> Result<Query, Code> {
        // SAFETY: takes no place.
        match check(unsafe { (self.functions.event_query)(event) }) {
            Ok(()) => Ok(Query::Done),
            Err(Code::NOT_READY) => Ok(Query::NotReady),
            Err(code) => Err(code),
        }
    }

    /// Milliseconds from one event to the other, both of which are done.
    pub(crate) fn elapsed_ms(&self, from: CUevent, to: CUevent) -> Result<f32, Code> {
        let mut ms = 0.0;
        // SAFETY: the place is there.
        check(unsafe { (self.elapsed)(&raw mut ms, from, to) }).map(|()| ms)
    }

    #[inline]
    pub(crate) fn capture(&self, stream: CUstream) -> Result<Capture, Code> {
        let mut status = 0;
        // SAFETY: the place is there.
        match check(unsafe { (self.functions.capture_status)(stream, &raw mut status) }) {
            Ok(()) => {}
            // The stream is the legacy one, and another is captured that it would have to wait for.
            Err(Code::CAPTURE_IMPLICIT) => return Ok(Capture::Yes),
            Err(code) => return Err(code),
        }
        Ok(match status {
            0 => Capture::No,
            1 => Capture::Yes,
            _ => Capture::Broken,
        })
    }

    /// Gives the calling thread this capture mode, and returns the one that it had.
    pub(crate) fn exchange_capture_mode(&self, mode: u32) -> Result<u32, Code> {
        let mut mode = mode;
        // SAFETY: the place is there.
        check(unsafe { (self.functions.capture_mode)(&raw mut mode) }).map(|()| mode)
    }

    /// Free bytes of the current context's device, and all there are.
    pub(crate) fn memory_info(&self) -> Result<(usize, usize), Code> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both places are there.
        check(unsafe { (self.functions.memory_info)(&raw mut free, &raw mut total) })
            .map(|()| (free, total))
    }

    /// A number that no other stream of the process has or had; `None` where the driver has none.
    pub(crate) fn stream_id(&self, stream: CUstream) -> Option<u64> {
        let stream_id = self.stream_id?;
        let mut id = 0;
        // SAFETY: the place is there.
        check(unsafe { stream_id(stream, &raw mut id) }).ok().map(|()| id)
    }
}
