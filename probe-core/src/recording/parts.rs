//! The files of a recording that has several: what they are called, and which of them are removed.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use tmrun_formats::wire::{PartV1, RemovedV1};
use tmrun_formats::{Ticks, parts};

use super::retain::{Retain, ticks_of};
use crate::clock::Clock;

/// More stretches of removed files than this are told of as one.
const STRETCHES: usize = 64;

/// The files so far. Its size does not grow with their number, but for those of the last seconds where
/// these are kept.
#[derive(Debug)]
pub(super) struct Parts {
    retain: Retain,
    /// What ended longer ago than so many ticks is not needed; without, age says nothing.
    seconds: Option<u64>,
    /// The first file, which has the name that was asked for.
    first: PathBuf,
    /// The number of the file that is written.
    pub(super) number: u64,
    began: Ticks,
    /// The same by the host's clock: one of the application's own that jumps must not make files
    /// without end.
    since: Instant,
    /// The file that is written stays, whatever comes.
    pinned: bool,
    /// Files before it that may still be removed.
    waiting: VecDeque<Part>,
    removed: Vec<RemovedV1>,
    /// A removal that failed: the file is there, and is not counted as removed.
    pub(super) error: Option<io::Error>,
}

/// Which file one is, and the name of the one before it.
pub(super) struct Which {
    number: u64,
    previous: Option<String>,
}

impl Which {
    /// How it says so.
    pub(super) fn part<'w>(&'w self, next: Option<&'w str>) -> PartV1<'w> {
        let (number, previous) = (self.number, self.previous.as_deref());
        PartV1 { number, previous, next, no_lane_records: 0, no_lane_groups: 0 }
    }
}

/// A file that has ended.
#[derive(Debug, Clone, Copy)]
struct Part {
    number: u64,
    records: u64,
    from: Ticks,
    to: Ticks,
    pinned: bool,
}

impl Parts {
    pub(super) fn new<C: Clock>(retain: Retain, first: PathBuf) -> Self {
        Self {
            seconds: retain.seconds().map(ticks_of::<C>),
            retain,
            first,
            number: 1,
            began: C::ticks(),
            since: Instant::now(),
            pinned: false,
            waiting: VecDeque::new(),
            removed: Vec::with_capacity(STRETCHES),
            error: None,
        }
    }

    /// The file of this number.
    pub(super) fn path(&self, number: u64) -> PathBuf {
        parts::path(&self.first, number)
    }

    /// The same without its folder.
    pub(super) fn name(&self, number: u64) -> String {
        let path = self.path(number);
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// Which file that is.
    pub(super) fn which(&self, number: u64) -> Which {
        let previous = number.checked_sub(1).filter(|previous| *previous > 0);
        Which { number, previous: previous.map(|previous| self.name(previous)) }
    }

    /// Whether the file that is written, of so many bytes, has to end.
    pub(super) fn is_due(&self, bytes: u64) -> bool {
        self.retain.max_file.is_some_and(|most| bytes >= most)
            || self.retain.seconds().is_some_and(|seconds| self.since.elapsed() >= seconds / 2)
    }

    /// The next file began at `now`, and the one before it had so many records, none of them behind
    /// `to`.
    pub(super) fn ended(&mut self, records: u64, now: Ticks, to: Ticks) {
        let (number, from, pinned) = (self.number, self.began, self.pinned);
        if self.retain.last().is_some() {
            self.waiting.push_back(Part { number, records, from, to, pinned });
        }
        self.number = number.saturating_add(1);
        (self.began, self.since, self.pinned) = (now, Instant::now(), false);
    }

    /// What was waited for has happened: the newest files stay.
    pub(super) fn pin(&mut self) {
        self.pinned = true;
        self.waiting.iter_mut().for_each(|part| part.pinned = true);
    }

    /// Removes the files that are not to stay. Returns how many records they had. The one before a
    /// file that has not `begun` stays too: what comes behind it is not elsewhere yet.
    pub(super) fn remove(&mut self, begun: bool, now: Ticks) -> u64 {
        let Some(last) = self.retain.last() else { return 0 };
        let last = if begun { last } else { last.max(2) };
        let seconds = self.seconds;
        let is_old = |part: &mut Part| seconds.is_none_or(|seconds| now.since(part.to) > seconds);
        let mut records = 0_u64;
        // The one that is written is one of the last.
        while self.waiting.len() as u64 >= last {
            let Some(part) = self.waiting.pop_front_if(is_old) else { break };
            if part.pinned || part.number <= self.retain.keep_first.unwrap_or(0) {
                continue;
            }
            match std::fs::remove_file(self.path(part.number)) {
                Ok(()) => {
                    records = records.saturating_add(part.records);
                    self.tell(part);
                }
                Err(error) => _ = self.error.get_or_insert(error),
            }
        }
        records
    }

    fn tell(&mut self, part: Part) {
        let full = self.removed.len() >= STRETCHES;
        let last = self.removed.last_mut();
        if let Some(stretch) =
            last.filter(|last| full || last.last.saturating_add(1) == part.number)
        {
            stretch.last = part.number;
            stretch.files = stretch.files.saturating_add(1);
            stretch.records = stretch.records.saturating_add(part.records);
            stretch.to = part.to;
            return;
        }
        self.removed.push(RemovedV1 {
            first: part.number,
            last: part.number,
            files: 1,
            records: part.records,
            from: part.from,
            to: part.to,
        });
    }

    /// The stretches of files that were removed.
    pub(super) fn removed(&self) -> &[RemovedV1] {
        &self.removed
    }
}
