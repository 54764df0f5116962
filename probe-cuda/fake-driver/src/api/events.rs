//! Events.

use std::ffi::c_uint;

use super::{Pointer, api};
use crate::code::{CAPTURED_EVENT, INVALID_CONTEXT, INVALID_HANDLE, NOT_READY, SUCCESS};
use crate::state::{CURRENT, put};
use crate::timeline::Event;

const DISABLE_TIMING: c_uint = 2;
const EXTERNAL: c_uint = 1;

api! {
    fn cuEventCreate(state, event: *mut Pointer, flags: c_uint) {
        let context = CURRENT.get();
        if context == 0 {
            return INVALID_CONTEXT;
        }
        let handle = state.handle();
        let has_timing = flags & DISABLE_TIMING == 0;
        state.events.insert(handle, Event { context, has_timing, at: None, captured: None });
        put(event, handle as Pointer)
    }

    fn cuEventDestroy_v2(state, event: Pointer) {
        match state.events.remove(&(event as usize)) {
            Some(_) => SUCCESS,
            None => INVALID_HANDLE,
        }
    }

    fn cuEventRecord(state, event: Pointer, stream: Pointer) {
        state.record(event as usize, stream as usize, false)
    }

    fn cuEventRecordWithFlags(state, event: Pointer, stream: Pointer, flags: c_uint) {
        state.record(event as usize, stream as usize, flags & EXTERNAL != 0)
    }

    fn cuEventQuery(state, event: Pointer) {
        let broken = state.unsafe_call();
        if broken != SUCCESS {
            return broken;
        }
        state.conflicts_with(event as usize);
        match state.events.get(&(event as usize)) {
            None => INVALID_HANDLE,
            Some(event) if event.captured.is_some() => CAPTURED_EVENT,
            // One that was never recorded is complete.
            Some(event) if event.at.is_some_and(|at| at > state.now(event.context)) => NOT_READY,
            Some(_) => SUCCESS,
        }
    }
}
