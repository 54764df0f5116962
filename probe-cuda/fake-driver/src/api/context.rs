//! Primary contexts, and which of them is current.

use std::ffi::c_int;

use super::{Pointer, api};
use crate::code::{INVALID_CONTEXT, SUCCESS};
use crate::device::context_of;
use crate::state::{CURRENT, put};

api! {
    fn cuDevicePrimaryCtxRetain(state, context: *mut Pointer, device: c_int) {
        let handle = context_of(device);
        *state.retained.entry(handle).or_insert(0) += 1;
        put(context, handle as Pointer)
    }

    fn cuDevicePrimaryCtxRelease_v2(state, device: c_int) {
        match state.retained.get_mut(&context_of(device)) {
            Some(times) if *times > 0 => {
                *times -= 1;
                SUCCESS
            }
            _ => INVALID_CONTEXT,
        }
    }

    fn cuCtxGetCurrent(_state, context: *mut Pointer) {
        put(context, CURRENT.get() as Pointer)
    }

    fn cuCtxSetCurrent(_state, context: Pointer) {
        CURRENT.set(context as usize);
        SUCCESS
    }
}
