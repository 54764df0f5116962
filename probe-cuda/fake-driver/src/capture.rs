//! Stream capture, and which calls of other threads break one.

use crate::code::{CAPTURE_UNSUPPORTED, Code, SUCCESS};
use crate::graph::Node;
use crate::state::{MODE, State, thread};

pub(crate) const GLOBAL: u32 = 0;
pub(crate) const THREAD_LOCAL: u32 = 1;

#[derive(Debug)]
pub(crate) struct Capture {
    /// No other capture has or had it.
    pub(crate) number: usize,
    pub(crate) mode: u32,
    /// The thread that began it.
    pub(crate) thread: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) invalid: bool,
}

impl Capture {
    /// Whether a potentially unsafe call of this thread in this mode breaks it.
    const fn is_broken_by(&self, mode: u32, thread: u64) -> bool {
        let is_own = self.thread == thread;
        match mode {
            GLOBAL => self.mode == GLOBAL || (self.mode == THREAD_LOCAL && is_own),
            THREAD_LOCAL => is_own && (self.mode == GLOBAL || self.mode == THREAD_LOCAL),
            _ => false,
        }
    }
}

impl State {
    /// A call that necessarily conflicts with the capture that an event was recorded in, whatever the
    /// mode: if that capture still runs it comes to nothing.
    pub(crate) fn conflicts_with(&mut self, event: usize) {
        let Some(number) = self.events.get(&event).and_then(|event| event.captured) else { return };
        let streams = self.streams.values_mut().chain(self.special.values_mut());
        for capture in streams.filter_map(|stream| stream.capture.as_mut()) {
            capture.invalid |= number == capture.number;
        }
    }

    /// A call that CUDA counts among the potentially unsafe ones: it breaks captures, and fails.
    pub(crate) fn unsafe_call(&mut self) -> Code {
        let (mode, thread) = (MODE.get(), thread());
        let streams = self.streams.values_mut().chain(self.special.values_mut());
        let mut broken = SUCCESS;
        for capture in streams.filter_map(|stream| stream.capture.as_mut()) {
            if capture.is_broken_by(mode, thread) {
                capture.invalid = true;
                broken = CAPTURE_UNSUPPORTED;
            }
        }
        broken
    }
}
