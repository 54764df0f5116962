//! Which events may be asked for: none that was recorded within a capture that still runs. CUDA counts
//! that among the calls that conflict with the capture, whatever the thread's mode, and the capture would
//! come to nothing.

use std::sync::{Mutex, PoisonError};

use crate::driver::{Capture, Code};
use crate::pool::{Ended, Pool, Stream};

/// What is known of the captures of one stream. Events that were recorded without a look at the stream are
/// looked after here, by the drain: where it finds the stream in no capture, what was given to it before
/// the look is in none that runs.
#[derive(Debug)]
pub(crate) struct Looked {
    /// Events are recorded without a look.
    pub(crate) blind: bool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// What was given up to here may be asked for.
    clear: u32,
    /// The timer is gone, and the stream may be.
    gone: bool,
}

/// Whether an event may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Clear,
    /// Its stream is in a capture: later.
    Later,
    /// Its stream was in a capture when the timer went, and nobody can tell any more.
    Never,
    Refused(Code),
}

impl Looked {
    pub(crate) const fn new(blind: bool) -> Self {
        Self { blind, known: Mutex::new(Known { clear: 0, gone: false }) }
    }
}

impl Stream {
    /// Whether the handle is that of the calling thread's own stream, which no other thread can look at.
    pub(crate) fn is_own_of_thread(self) -> bool {
        self.0.addr() == 2
    }

    /// Whether it is the legacy stream, which cannot be captured.
    fn is_legacy(self) -> bool {
        self.0.addr() < 2
    }
}

impl Pool {
    /// Whether the event that was given first may be asked for. Of the drain.
    pub(crate) fn look(&self, given: Ended) -> Look {
        let is_blind = self.looked.blind || matches!(given, Ended::Replay(_));
        // Of a stream that only its own thread sees that thread has looked.
        if !is_blind || self.stream.is_legacy() || self.stream.is_own_of_thread() {
            return Look::Clear;
        }
        let mut known = self.looked.known.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_before(known.clear) {
            return Look::Clear;
        }
        if known.gone {
            return Look::Never;
        }
        // What is given after this may be in a capture that begins after the look.
        let given = self.all_given();
        match self.context.driver.capture(self.stream.0) {
            Ok(Capture::No) => {
                known.clear = given;
                Look::Clear
            }
            Ok(Capture::Yes | Capture::Broken) => Look::Later,
            Err(code) => Look::Refused(code),
        }
    }

    /// The timer goes, and nobody may use its stream from now on: the last look, where the drain may have
    /// to ask for what it left.
    pub(crate) fn look_last(&self) {
        let mut known = self.looked.known.lock().unwrap_or_else(PoisonError::into_inner);
        let given = self.all_given();
        let is_needed = self.waiting() > 0 && known.clear != given;
        let is_asked = is_needed && !self.stream.is_of_thread() && self.context.dead().is_none();
        if is_asked && self.context.driver.capture(self.stream.0) == Ok(Capture::No) {
            known.clear = given;
        }
        known.gone = true;
    }
}
