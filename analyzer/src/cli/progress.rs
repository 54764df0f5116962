//! A progress bar, for those who wait.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// The progress of one piece of work. It is shown on standard error, when that is a terminal and
/// the work has taken a second.
pub(super) struct Progress {
    total: u64,
    what: &'static str,
    done: AtomicU64,
    start: Instant,
    wanted: bool,
    bar: OnceLock<ProgressBar>,
}

impl Progress {
    pub(super) fn new(total: u64, what: &'static str) -> Self {
        let wanted = io::stderr().is_terminal();
        let start = Instant::now();
        Self { total, what, done: AtomicU64::new(0), start, wanted, bar: OnceLock::new() }
    }

    /// So many more bytes are done.
    pub(super) fn add(&self, bytes: u64) {
        if !self.wanted {
            return;
        }
        let done = self.done.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if self.start.elapsed() >= PATIENCE {
            self.bar.get_or_init(|| self.show()).set_position(done);
        }
    }

    /// The work is done, and the bar goes away.
    pub(super) fn finish(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }

    fn show(&self) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(self.total), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.with_message(self.what)
    }
}
