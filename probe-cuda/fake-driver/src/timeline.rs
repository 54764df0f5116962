//! Streams and events: work that is submitted, and the moments at which it is done.

use crate::capture::Capture;
use crate::code::{Code, INVALID_HANDLE, INVALID_VALUE, SUCCESS};
use crate::graph::Node;
use crate::state::{CURRENT, State, thread};

/// The stream that all threads share.
pub(crate) const LEGACY: usize = 0;
/// The same by its other name.
pub(crate) const LEGACY_NAMED: usize = 1;
/// The calling thread's own stream.
pub(crate) const PER_THREAD: usize = 2;

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) context: usize,
    /// It does not wait for the legacy stream, nor that for it.
    pub(crate) non_blocking: bool,
    /// When its last work ends.
    pub(crate) tail: u64,
    pub(crate) capture: Option<Capture>,
}

impl Stream {
    pub(crate) const fn new(context: usize, non_blocking: bool) -> Self {
        Self { context, non_blocking, tail: 0, capture: None }
    }
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) context: usize,
    pub(crate) has_timing: bool,
    /// The moment that it stands for, once it was recorded.
    pub(crate) at: Option<u64>,
    /// The capture that it was last recorded in: it stands for nothing.
    pub(crate) captured: Option<usize>,
}

impl State {
    pub(crate) fn stream(&mut self, handle: usize) -> Option<&mut Stream> {
        let key = match handle {
            LEGACY | LEGACY_NAMED => (LEGACY, 0),
            PER_THREAD => (PER_THREAD, thread()),
            other => return self.streams.get_mut(&other),
        };
        let context = CURRENT.get();
        if context == 0 {
            return None;
        }
        let key = (context, key.0, key.1);
        Some(self.special.entry(key).or_insert_with(|| Stream::new(context, false)))
    }

    /// Submits so much work.
    ///
    /// # Errors
    ///
    /// When there is no such stream.
    pub(crate) fn submit(&mut self, handle: usize, ns: u64) -> Result<u64, Code> {
        let stream = self.stream(handle).ok_or(INVALID_HANDLE)?;
        if let Some(capture) = &mut stream.capture {
            capture.nodes.push(Node::Work(ns));
            return Ok(0);
        }
        let (context, non_blocking, tail) = (stream.context, stream.non_blocking, stream.tail);
        let now = self.now(context).saturating_add(self.config.latency_ns);
        let all = || self.streams.values().chain(self.special.values());
        let waits_for = match (handle, non_blocking) {
            (LEGACY | LEGACY_NAMED, _) => {
                let blocking =
                    all().filter(|other| other.context == context && !other.non_blocking);
                blocking.map(|other| other.tail).max().unwrap_or(0)
            }
            (_, true) => 0,
            (_, false) => self.special.get(&(context, LEGACY, 0)).map_or(0, |legacy| legacy.tail),
        };
        let end = now.max(tail).max(waits_for).saturating_add(ns);
        if let Some(stream) = self.stream(handle) {
            stream.tail = end;
        }
        Ok(end)
    }

    /// Records an event: at the end of the stream's work, or as a node of the graph that is captured.
    pub(crate) fn record(&mut self, event: usize, handle: usize, external: bool) -> Code {
        let Some(context) = self.events.get(&event).map(|event| event.context) else {
            return INVALID_HANDLE;
        };
        let Some(stream) = self.stream(handle).filter(|stream| stream.context == context) else {
            return INVALID_HANDLE;
        };
        if let Some(capture) = &mut stream.capture {
            let number = capture.number;
            if external {
                capture.nodes.push(Node::Record(event));
            } else if let Some(event) = self.events.get_mut(&event) {
                event.captured = Some(number);
            }
            return SUCCESS;
        }
        if external {
            return INVALID_VALUE; // the flag is only for a capture
        }
        self.stamp(event, handle)
    }

    /// Gives an event the moment at which all work of the stream is done.
    pub(crate) fn stamp(&mut self, event: usize, handle: usize) -> Code {
        let (quantum, end) = (self.config.quantum_ns, self.submit(handle, 0));
        match (end, self.events.get_mut(&event)) {
            (Ok(end), Some(event)) => {
                event.at = Some(end.div_ceil(quantum).saturating_mul(quantum));
                event.captured = None;
                SUCCESS
            }
            (Err(code), _) => code,
            (_, None) => INVALID_HANDLE,
        }
    }
}
