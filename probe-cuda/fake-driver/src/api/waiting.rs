//! Calls that wait. No one else is held up meanwhile; where time is manual, waiting lets it go on.

use std::time::Duration;

use super::Pointer;
use crate::code::{CAPTURED_EVENT, Code, INVALID_HANDLE, SUCCESS};
use crate::state::{CURRENT, State, state};

/// What is waited for: a moment of a context's device.
type Moment = (usize, u64);

fn wait(function: &str, until: impl FnOnce(&mut State) -> Result<Moment, Code>) -> Code {
    let entered = {
        let mut state = state();
        match state.enter(function) {
            SUCCESS => match state.unsafe_call() {
                SUCCESS => until(&mut state),
                broken => Err(broken),
            },
            failed => Err(failed),
        }
    };
    let (context, until) = match entered {
        Ok(moment) => moment,
        Err(code) => return code,
    };
    loop {
        let mut state = state();
        let left = until.saturating_sub(state.now(context));
        if state.faults.sticky != SUCCESS || left == 0 {
            return state.faults.sticky;
        }
        if state.config.manual {
            state.time.advance(left);
        } else {
            drop(state);
            std::thread::sleep(Duration::from_nanos(left.min(1_000_000)));
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: Pointer) -> Code {
    let event = event as usize;
    wait("cuEventSynchronize", |state| match state.events.get(&event) {
        None => Err(INVALID_HANDLE),
        Some(event) if event.captured.is_some() => Err(CAPTURED_EVENT),
        Some(event) => Ok((event.context, event.at.unwrap_or(0))),
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: Pointer) -> Code {
    let stream = stream as usize;
    wait("cuStreamSynchronize", |state| {
        state.stream(stream).map(|stream| (stream.context, stream.tail)).ok_or(INVALID_HANDLE)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> Code {
    wait("cuCtxSynchronize", |state| {
        let context = CURRENT.get();
        let streams = state.streams.values().chain(state.special.values());
        let tails = streams.filter(|stream| stream.context == context).map(|stream| stream.tail);
        Ok((context, tails.max().unwrap_or(0)))
    })
}
