//! The time between two events.

use super::{Pointer, api};
use crate::code::{CAPTURED_EVENT, Code, INVALID_HANDLE, NOT_READY};
use crate::state::{State, put};

fn elapsed(state: &mut State, ms: *mut f32, from: Pointer, to: Pointer) -> Code {
    state.conflicts_with(from as usize);
    state.conflicts_with(to as usize);
    let event = |handle: Pointer| state.events.get(&(handle as usize));
    let (Some(from), Some(to)) = (event(from), event(to)) else { return INVALID_HANDLE };
    if from.context != to.context || !from.has_timing || !to.has_timing {
        return INVALID_HANDLE;
    }
    if from.captured.is_some() || to.captured.is_some() {
        return CAPTURED_EVENT;
    }
    let now = state.now(from.context);
    match (from.at, to.at) {
        (Some(from), Some(to)) if from <= now && to <= now => {
            let ns = i128::from(to) - i128::from(from);
            put(ms, (ns as f64 / 1e6) as f32)
        }
        (Some(_), Some(_)) => NOT_READY,
        _ => INVALID_HANDLE,
    }
}

api! {
    fn cuEventElapsedTime(state, ms: *mut f32, from: Pointer, to: Pointer) {
        elapsed(state, ms, from, to)
    }
}

#[cfg(not(feature = "old-driver"))]
api! {
    fn cuEventElapsedTime_v2(state, ms: *mut f32, from: Pointer, to: Pointer) {
        elapsed(state, ms, from, to)
    }
}
