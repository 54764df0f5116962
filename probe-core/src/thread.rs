//! A lane for each thread, claimed on first use and given back when the thread ends.

use std::cell::Cell;

use crate::clock::Clock;
use crate::lane::LaneBlock;
use crate::probe::ProbeRef;

/// The calling thread's lane of one probe. It has no destructor, so that reading it is one load; and
/// it always is a lane, so that who finds out anyway whether the lane can be used need not ask first.
#[doc(hidden)]
#[derive(Debug)]
pub struct ThreadLane(Cell<&'static LaneBlock>);

/// The lane of a thread that has none: nobody ever claims it.
static NOBODYS: LaneBlock = LaneBlock::new();

impl ThreadLane {
    /// No lane yet.
    #[allow(clippy::new_without_default, reason = "const, and only for the macro")]
    pub const fn new() -> Self {
        Self(Cell::new(&NOBODYS))
    }

    /// The lane, or one that nobody ever had.
    ///
    /// # Safety
    ///
    /// Only the calling thread uses the answer, while it has the lane.
    #[inline(always)]
    pub unsafe fn lane(&self) -> &'static LaneBlock {
        self.0.get()
    }

    /// The lane, if the thread has one.
    ///
    /// # Safety
    ///
    /// As for [`lane`](Self::lane).
    #[inline(always)]
    pub unsafe fn get(&self) -> Option<&'static LaneBlock> {
        Some(self.0.get()).filter(|block| block.was_claimed())
    }

    /// Claims a lane for the thread. `give_back` has a destructor and returns the lane; once it has
    /// run, a thread that is still ending gets no lane any more.
    ///
    /// # Safety
    ///
    /// As for [`lane`](Self::lane).
    #[cold]
    #[inline(never)]
    pub unsafe fn claim<C: Clock>(
        &self,
        probe: ProbeRef<'static, C>,
        give_back: &'static std::thread::LocalKey<GiveBack>,
        forget: fn(),
    ) -> Option<&'static LaneBlock> {
        if !probe.has_free_lane() {
            return None;
        }
        give_back
            .try_with(|give_back| {
                let current = std::thread::current();
                let thread = thread_number(current.id());
                let block =
                    probe.claim_block(current.name().unwrap_or("unnamed thread"), thread)?;
                give_back.0.set(Some((block, forget)));
                self.0.set(block);
                Some(block)
            })
            .ok()
            .flatten()
    }

    /// Keeps a lane that the thread has already.
    pub(crate) fn keep(&self, block: &'static LaneBlock) {
        self.0.set(block);
    }

    /// The thread has no lane any more.
    pub fn clear(&self) {
        self.0.set(&NOBODYS);
    }
}

/// Returns the thread's lane when the thread ends.
#[doc(hidden)]
#[derive(Debug)]
pub struct GiveBack(Cell<Option<Held>>);

/// A lane to return, and how to forget it first.
type Held = (&'static LaneBlock, fn());

impl GiveBack {
    /// Nothing to return yet.
    #[allow(clippy::new_without_default, reason = "const, and only for the macro")]
    pub const fn new() -> Self {
        Self(Cell::new(None))
    }
}

impl Drop for GiveBack {
    fn drop(&mut self) {
        if let Some((block, forget)) = self.0.take() {
            forget();
            crate::global::forget();
            block.release();
        }
    }
}

/// A number for a thread: the operating system's where it is cheap to ask, else the digits that the
/// standard library shows.
fn thread_number(id: std::thread::ThreadId) -> u64 {
    #[cfg(target_os = "linux")]
    {
        let _ = id;
        // SAFETY: asks for the calling thread's number; has no preconditions.
        u64::try_from(unsafe { libc::gettid() }).unwrap_or_default()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let digits: String = format!("{id:?}").chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_default()
    }
}
