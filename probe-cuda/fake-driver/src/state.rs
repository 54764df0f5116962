//! The one state of the driver, and how a call gets at it.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::code::{Code, INVALID_VALUE, NOT_INITIALIZED, SUCCESS};
use crate::config::Config;
use crate::device::Time;
use crate::faults::Faults;
use crate::graph::Node;
use crate::timeline::{Event, Stream};

pub(crate) struct State {
    pub(crate) config: Config,
    pub(crate) time: Time,
    pub(crate) faults: Faults,
    pub(crate) initialized: bool,
    last_handle: usize,
    /// How often each primary context is retained.
    pub(crate) retained: HashMap<usize, u32>,
    pub(crate) streams: HashMap<usize, Stream>,
    /// The streams that every context has: by context, handle and (the per-thread ones) thread.
    pub(crate) special: HashMap<(usize, usize, u64), Stream>,
    pub(crate) events: HashMap<usize, Event>,
    pub(crate) graphs: HashMap<usize, Vec<Node>>,
    /// Device memory, by its address.
    pub(crate) memory: HashMap<u64, Box<[u8]>>,
}

thread_local! {
    /// The calling thread's current context, 0 for none.
    pub(crate) static CURRENT: Cell<usize> = const { Cell::new(0) };
    /// Its capture mode.
    pub(crate) static MODE: Cell<u32> = const { Cell::new(0) };
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

/// A number for the calling thread.
pub(crate) fn thread() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    THREAD.with(|thread| {
        if thread.get() == 0 {
            thread.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
        }
        thread.get()
    })
}

pub(crate) fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    let state = STATE.get_or_init(|| Mutex::new(State::new()));
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One call of the driver: counts it, takes its time, and fails as was asked for.
pub(crate) fn call(function: &str, f: impl FnOnce(&mut State) -> Code) -> Code {
    let mut state = state();
    match state.enter(function) {
        SUCCESS => f(&mut state),
        failed => failed,
    }
}

/// Stores what a call answers.
pub(crate) fn put<T>(place: *mut T, value: T) -> Code {
    if place.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: as with CUDA's own functions, whoever calls one gives a place for its answer, or null.
    unsafe { place.write(value) };
    SUCCESS
}

impl State {
    fn new() -> Self {
        Self {
            config: Config::from_environment(),
            time: Time::new(),
            faults: Faults::from_environment(),
            initialized: false,
            last_handle: 0x1000,
            retained: HashMap::new(),
            streams: HashMap::new(),
            special: HashMap::new(),
            events: HashMap::new(),
            graphs: HashMap::new(),
            memory: HashMap::new(),
        }
    }

    pub(crate) fn enter(&mut self, function: &str) -> Code {
        self.time.advance(self.config.call_ns);
        let failed = self.faults.call(function);
        self.time.advance(self.faults.slowness(function));
        let needs_no_start = matches!(function, "cuInit" | "cuDriverGetVersion");
        match failed {
            SUCCESS if !self.initialized && !needs_no_start => NOT_INITIALIZED,
            failed => failed,
        }
    }

    /// A handle that nothing had before.
    pub(crate) const fn handle(&mut self) -> usize {
        self.last_handle += 0x10;
        self.last_handle
    }

    pub(crate) fn host_now(&self) -> u64 {
        self.time.host(&self.config)
    }

    /// What the clock of a context's device shows.
    pub(crate) fn now(&self, context: usize) -> u64 {
        self.time.device(&self.config, context)
    }
}
