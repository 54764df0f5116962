//! Starting, devices, and what errors are called.

use std::ffi::{c_char, c_int, c_uint};

use super::api;
use crate::code::{Code, INVALID_DEVICE, INVALID_VALUE, NO_DEVICE, SUCCESS, name};
use crate::state::put;

const NAME: &[u8] = b"Simulated device\0";

api! {
    fn cuInit(state, _flags: c_uint) {
        if state.config.devices == 0 {
            return NO_DEVICE;
        }
        state.initialized = true;
        SUCCESS
    }

    fn cuDriverGetVersion(_state, version: *mut c_int) {
        put(version, if cfg!(feature = "old-driver") { 12_040 } else { 13_000 })
    }

    fn cuDeviceGetCount(state, count: *mut c_int) {
        put(count, state.config.devices)
    }

    fn cuDeviceGet(state, device: *mut c_int, ordinal: c_int) {
        if (0..state.config.devices).contains(&ordinal) {
            put(device, ordinal)
        } else {
            INVALID_DEVICE
        }
    }

    fn cuDeviceGetAttribute(_state, value: *mut c_int, attribute: c_uint, _device: c_int) {
        // Compute capability 9.0, with memory pools.
        put(value, match attribute { 75 => 9, 115 => 1, _ => 0 })
    }

    fn cuDeviceGetName(_state, text: *mut c_char, length: c_int, _device: c_int) {
        if text.is_null() || usize::try_from(length).is_ok_and(|length| length < NAME.len()) {
            return INVALID_VALUE;
        }
        // SAFETY: the caller's text has room for `length`, which is no less than what is stored.
        unsafe { core::ptr::copy_nonoverlapping(NAME.as_ptr().cast(), text, NAME.len()) };
        SUCCESS
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorName(code: Code, text: *mut *const c_char) -> Code {
    match name(code) {
        Some(name) => put(text, name.as_ptr()),
        None => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorString(code: Code, text: *mut *const c_char) -> Code {
    cuGetErrorName(code, text)
}
