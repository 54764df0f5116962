//! What tests call beside CUDA's own functions.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::code::{Code, SUCCESS};
use crate::state::state;

/// So much work for a stream.
#[unsafe(no_mangle)]
pub extern "C" fn fakecu_submit(stream: *mut c_void, ns: u64) -> Code {
    state().submit(stream as usize, ns).err().unwrap_or(SUCCESS)
}

/// Lets manual time go on.
#[unsafe(no_mangle)]
pub extern "C" fn fakecu_advance(ns: u64) {
    state().time.advance(ns);
}

/// Nanoseconds of the host.
#[unsafe(no_mangle)]
pub extern "C" fn fakecu_host_now() -> u64 {
    state().host_now()
}

/// What the clock of a device shows.
#[unsafe(no_mangle)]
pub extern "C" fn fakecu_device_now(device: c_int) -> u64 {
    state().now(crate::device::context_of(device))
}

/// When the last work of a stream ends, on its device's clock; 0 for a stream that there is not.
#[unsafe(no_mangle)]
pub extern "C" fn fakecu_stream_end(stream: *mut c_void) -> u64 {
    state().stream(stream as usize).map_or(0, |stream| stream.tail)
}

/// How often a function was called.
#[unsafe(no_mangle)]
pub extern "C" fn fakecu_calls(function: *const c_char) -> u64 {
    state().faults.calls(text(function))
}

/// How often any function was called.
#[unsafe(no_mangle)]
pub extern "C" fn fakecu_all_calls() -> u64 {
    state().faults.all_calls()
}

/// The `nth` call of a function from now on fails (0: every one).
#[unsafe(no_mangle)]
pub extern "C" fn fakecu_inject(function: *const c_char, nth: u64, code: Code, sticky: c_int) {
    state().faults.inject(text(function), nth, code, sticky != 0);
}

/// The `nth` call of a function from now on takes so much longer, where time is manual.
#[unsafe(no_mangle)]
pub extern "C" fn fakecu_slow_down(function: *const c_char, nth: u64, ns: u64) {
    state().faults.slow_down(text(function), nth, ns);
}

/// Nothing fails any more.
#[unsafe(no_mangle)]
pub extern "C" fn fakecu_clear_faults() {
    state().faults.clear();
}

/// How many events there are.
#[unsafe(no_mangle)]
pub extern "C" fn fakecu_events() -> u64 {
    state().events.len() as u64
}

fn text<'a>(text: *const c_char) -> &'a str {
    // SAFETY: the tests give a text that ends in zero, and keep it for as long as the call lasts.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or_default()
}
