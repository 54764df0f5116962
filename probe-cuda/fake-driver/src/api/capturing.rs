//! Capturing a stream into a graph, and launching that.

use std::ffi::{c_uint, c_ulonglong};

use super::{Pointer, api};
use crate::capture::Capture;
use crate::code::{
    CAPTURE_INVALIDATED, CAPTURE_UNSUPPORTED, INVALID_HANDLE, INVALID_VALUE, SUCCESS,
};
use crate::state::{MODE, put, thread};
use crate::timeline::{LEGACY, LEGACY_NAMED};

#[cfg(not(feature = "no-capture-query"))]
api! {
    fn cuStreamIsCapturing(state, stream: Pointer, status: *mut c_uint) {
        let Some(stream) = state.stream(stream as usize) else { return INVALID_HANDLE };
        put(status, match &stream.capture {
            None => 0,
            Some(capture) if capture.invalid => 2,
            Some(_) => 1,
        })
    }
}

api! {
    fn cuStreamBeginCapture_v2(state, stream: Pointer, mode: c_uint) {
        if matches!(stream as usize, LEGACY | LEGACY_NAMED) {
            return CAPTURE_UNSUPPORTED;
        }
        let number = state.handle();
        match state.stream(stream as usize) {
            Some(stream) if stream.capture.is_none() => {
                let (thread, nodes) = (thread(), Vec::new());
                stream.capture = Some(Capture { number, mode, thread, nodes, invalid: false });
                SUCCESS
            }
            Some(_) => INVALID_VALUE,
            None => INVALID_HANDLE,
        }
    }

    fn cuStreamEndCapture(state, stream: Pointer, graph: *mut Pointer) {
        let Some(stream) = state.stream(stream as usize) else { return INVALID_HANDLE };
        match stream.capture.take() {
            None => INVALID_VALUE,
            Some(capture) if capture.invalid => {
                put(graph, core::ptr::null_mut());
                CAPTURE_INVALIDATED
            }
            Some(capture) => {
                let handle = state.handle();
                state.graphs.insert(handle, capture.nodes);
                put(graph, handle as Pointer)
            }
        }
    }

    fn cuThreadExchangeStreamCaptureMode(_state, mode: *mut c_uint) {
        if mode.is_null() {
            return INVALID_VALUE;
        }
        // SAFETY: not null, and the caller's place for a mode.
        let new = unsafe { mode.read() };
        put(mode, MODE.replace(new))
    }

    fn cuGraphInstantiateWithFlags(_state, launchable: *mut Pointer, graph: Pointer, _flags: c_ulonglong) {
        put(launchable, graph)
    }

    fn cuGraphLaunch(state, graph: Pointer, stream: Pointer) {
        state.launch(graph as usize, stream as usize)
    }

    fn cuGraphExecDestroy(_state, _graph: Pointer) {
        SUCCESS
    }

    fn cuGraphDestroy(state, graph: Pointer) {
        state.graphs.remove(&(graph as usize));
        SUCCESS
    }
}
