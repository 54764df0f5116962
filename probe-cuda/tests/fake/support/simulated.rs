//! The simulated driver, as an application uses CUDA and as a test has it do what it wants.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};

use libloading::Library;

use super::clock::HOST_NOW;

type Pointer = *mut c_void;

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: c_uint = 1;

/// A stream of the application's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppStream(pub usize);

impl AppStream {
    /// Every thread's own.
    pub const PER_THREAD: Self = Self(2);

    /// As the probe takes it.
    pub fn raw(self) -> cudarc::driver::sys::CUstream {
        self.0 as cudarc::driver::sys::CUstream
    }
}

/// A graph that can be launched.
#[derive(Debug, Clone, Copy)]
pub struct Graph(usize);

pub struct Simulated {
    library: Library,
}

macro_rules! call {
    ($self:ident, $name:literal, ($($type:ty),*) -> $answer:ty, $($argument:expr),*) => {{
        // SAFETY: the function is the driver's own, and has this type.
        let function = unsafe { $self.get::<unsafe extern "C" fn($($type),*) -> $answer>($name) };
        // SAFETY: the places that it is given are there.
        unsafe { function($($argument),*) }
    }};
}

impl Simulated {
    /// A function of the driver's.
    ///
    /// # Safety
    ///
    /// `F` is the type of a pointer to the function of this name.
    unsafe fn get<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the caller's contract.
        *unsafe { self.library.get(name) }.expect(name)
    }

    pub fn load() -> Self {
        // SAFETY: the library is our own, and runs nothing when it is loaded.
        let library = unsafe { Library::new("libcuda.so.1") }.expect("the simulated driver");
        let fake = Self { library };
        // SAFETY: the function has this type.
        let _ = HOST_NOW.set(unsafe { fake.get("fakecu_host_now") });
        fake
    }

    /// What an application does first: the device's primary context is current on this thread.
    pub fn start(&self, device: c_int) {
        let mut context: Pointer = std::ptr::null_mut();
        assert_eq!(call!(self, "cuInit", (c_uint) -> c_int, 0), 0);
        let retained = call!(self, "cuDevicePrimaryCtxRetain", (*mut Pointer, c_int) -> c_int, &mut context, device);
        assert_eq!(retained, 0);
        assert_eq!(call!(self, "cuCtxSetCurrent", (Pointer) -> c_int, context), 0);
    }

    pub fn current_context(&self) -> usize {
        let mut context: Pointer = std::ptr::null_mut();
        assert_eq!(call!(self, "cuCtxGetCurrent", (*mut Pointer) -> c_int, &mut context), 0);
        context as usize
    }

    pub fn leave_context(&self) {
        let none = std::ptr::null_mut();
        assert_eq!(call!(self, "cuCtxSetCurrent", (Pointer) -> c_int, none), 0);
    }

    pub fn stream(&self) -> AppStream {
        let mut stream: Pointer = std::ptr::null_mut();
        let made = call!(self, "cuStreamCreate", (*mut Pointer, c_uint) -> c_int, &mut stream, NON_BLOCKING);
        assert_eq!(made, 0);
        AppStream(stream as usize)
    }

    pub fn destroy(&self, stream: AppStream) {
        assert_eq!(call!(self, "cuStreamDestroy_v2", (Pointer) -> c_int, stream.0 as Pointer), 0);
    }

    /// So much work for a stream.
    pub fn submit(&self, stream: AppStream, ns: u64) {
        let submitted =
            call!(self, "fakecu_submit", (Pointer, u64) -> c_int, stream.0 as Pointer, ns);
        assert_eq!(submitted, 0);
    }

    /// Time goes on.
    pub fn advance(&self, ns: u64) {
        call!(self, "fakecu_advance", (u64) -> (), ns);
    }

    pub fn host_now(&self) -> u64 {
        call!(self, "fakecu_host_now", () -> u64,)
    }

    /// What the clock of the first device shows.
    pub fn device_now(&self) -> u64 {
        call!(self, "fakecu_device_now", (c_int) -> u64, 0)
    }

    /// When the stream's last work ends, on its device's clock.
    pub fn end_of(&self, stream: AppStream) -> u64 {
        call!(self, "fakecu_stream_end", (Pointer) -> u64, stream.0 as Pointer)
    }

    /// How often a function was called.
    pub fn calls(&self, function: &CStr) -> u64 {
        call!(self, "fakecu_calls", (*const c_char) -> u64, function.as_ptr())
    }

    /// How often any function was called.
    pub fn all_calls(&self) -> u64 {
        call!(self, "fakecu_all_calls", () -> u64,)
    }

    /// The `nth` call of a function from now on fails; 0 stands for every one.
    pub fn fail(&self, function: &CStr, nth: u64, code: c_int) {
        let inject = (function.as_ptr(), nth, code, 0);
        call!(self, "fakecu_inject", (*const c_char, u64, c_int, c_int) -> (), inject.0, inject.1, inject.2, inject.3);
    }

    /// The same, and from then on everything fails.
    pub fn break_for_good(&self, function: &CStr, nth: u64, code: c_int) {
        let inject = (function.as_ptr(), nth, code, 1);
        call!(self, "fakecu_inject", (*const c_char, u64, c_int, c_int) -> (), inject.0, inject.1, inject.2, inject.3);
    }

    /// The `nth` call of a function from now on takes so much longer.
    pub fn slow_down(&self, function: &CStr, nth: u64, ns: u64) {
        let function = function.as_ptr();
        call!(self, "fakecu_slow_down", (*const c_char, u64, u64) -> (), function, nth, ns);
    }

    /// The calling thread's capture mode, which is the default one from now on.
    pub fn capture_mode(&self) -> c_uint {
        let mut mode = 0;
        let exchanged =
            call!(self, "cuThreadExchangeStreamCaptureMode", (*mut c_uint) -> c_int, &mut mode);
        assert_eq!(exchanged, 0);
        mode
    }

    pub fn mend(&self) {
        call!(self, "fakecu_clear_faults", () -> (),);
    }

    /// How many events there are.
    pub fn events(&self) -> u64 {
        call!(self, "fakecu_events", () -> u64,)
    }

    pub fn begin_capture(&self, stream: AppStream, mode: c_uint) {
        let begun = call!(self, "cuStreamBeginCapture_v2", (Pointer, c_uint) -> c_int, stream.0 as Pointer, mode);
        assert_eq!(begun, 0);
    }

    /// What the capture came to.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn end_capture(&self, stream: AppStream) -> Result<Graph, c_int> {
        let mut graph: Pointer = std::ptr::null_mut();
        let ended = call!(self, "cuStreamEndCapture", (Pointer, *mut Pointer) -> c_int, stream.0 as Pointer, &mut graph);
        if ended != 0 {
            return Err(ended);
        }
        let mut launchable: Pointer = std::ptr::null_mut();
        let made = call!(self, "cuGraphInstantiateWithFlags", (*mut Pointer, Pointer, c_ulonglong) -> c_int, &mut launchable, graph, 0);
        assert_eq!(made, 0);
        Ok(Graph(launchable as usize))
    }

    /// What the driver says of an event that there is not.
    pub fn query_nothing(&self) -> c_int {
        call!(self, "cuEventQuery", (Pointer) -> c_int, std::ptr::null_mut())
    }

    pub fn launch(&self, graph: Graph, stream: AppStream) {
        let launched = call!(self, "cuGraphLaunch", (Pointer, Pointer) -> c_int, graph.0 as Pointer, stream.0 as Pointer);
        assert_eq!(launched, 0);
    }
}
