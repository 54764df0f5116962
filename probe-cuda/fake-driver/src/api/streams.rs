//! Streams.

use std::ffi::{c_int, c_uint, c_ulonglong};

use super::{Pointer, api};
use crate::code::{Code, INVALID_CONTEXT, INVALID_HANDLE, NOT_READY, SUCCESS};
use crate::state::{CURRENT, State, put, thread};
use crate::timeline::{PER_THREAD, Stream};

const NON_BLOCKING: c_uint = 1;

fn create(state: &mut State, stream: *mut Pointer, flags: c_uint) -> Code {
    let context = CURRENT.get();
    if context == 0 {
        return INVALID_CONTEXT;
    }
    let handle = state.handle();
    state.streams.insert(handle, Stream::new(context, flags & NON_BLOCKING != 0));
    put(stream, handle as Pointer)
}

api! {
    fn cuStreamCreate(state, stream: *mut Pointer, flags: c_uint) {
        create(state, stream, flags)
    }

    fn cuStreamCreateWithPriority(state, stream: *mut Pointer, flags: c_uint, _priority: c_int) {
        create(state, stream, flags)
    }

    fn cuStreamDestroy_v2(state, stream: Pointer) {
        match state.streams.remove(&(stream as usize)) {
            Some(_) => SUCCESS,
            None => INVALID_HANDLE,
        }
    }

    fn cuStreamQuery(state, stream: Pointer) {
        match state.stream(stream as usize).map(|stream| (stream.context, stream.tail)) {
            Some((context, tail)) if tail <= state.now(context) => SUCCESS,
            Some(_) => NOT_READY,
            None => INVALID_HANDLE,
        }
    }

    fn cuStreamWaitEvent(state, stream: Pointer, event: Pointer, _flags: c_uint) {
        let Some(at) = state.events.get(&(event as usize)).map(|event| event.at) else {
            return INVALID_HANDLE;
        };
        match state.stream(stream as usize) {
            Some(stream) => {
                stream.tail = stream.tail.max(at.unwrap_or(0));
                SUCCESS
            }
            None => INVALID_HANDLE,
        }
    }

    fn cuStreamGetId(_state, stream: Pointer, id: *mut c_ulonglong) {
        let handle = stream as usize;
        put(id, if handle == PER_THREAD { 0x1_0000 + thread() } else { handle as u64 })
    }
}
