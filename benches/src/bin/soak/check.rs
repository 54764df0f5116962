//! What a recording holds, by the analyzer.

use std::path::Path;

use tmrun::input::Input;
use tmrun::scan::{Recording, Status};
use tmrun_formats::GapReason;
use tmrun_formats::LaneId;
use tmrun_formats::wire::Kind;

/// What became of the producers' records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Found {
    pub(crate) stored: u64,
    pub(crate) overrun: u64,
    pub(crate) lapped: u64,
    pub(crate) no_lane: u64,
    /// Made after the end of the recording.
    pub(crate) late: u64,
}

impl Found {
    pub(crate) fn all(&self) -> u64 {
        self.stored + self.overrun + self.lapped + self.no_lane + self.late
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.stored += other.stored;
        self.overrun += other.overrun;
        self.lapped += other.lapped;
        self.no_lane += other.no_lane;
        self.late += other.late;
    }
}

/// Reads the files of a recording back. Each has to be whole.
pub(crate) fn read(folder: &Path) -> Result<Found, crate::Error> {
    let mut found = Found::default();
    for entry in std::fs::read_dir(folder)? {
        let input = Input::open(&entry?.path())?;
        let recording = Recording::open(&input, input.name())?;
        let problems = recording.verify();
        if recording.status() != Status::Finished || !problems.is_empty() {
            return Err(format!("{}: {:?}, {problems:?}", input.name(), recording.status()).into());
        }
        let counts = recording.counts();
        // The producers made all but these.
        let own = counts.of(Kind::Gap) + counts.of(Kind::Level);
        found.stored += counts.total() - own;
        for gap in recording.lost().filter(|gap| gap.lane != Some(LaneId::RECORDER)) {
            let count = match gap.reason {
                GapReason::OVERRUN => &mut found.overrun,
                GapReason::LAPPED => &mut found.lapped,
                GapReason::NO_LANE => &mut found.no_lane,
                _ => return Err(format!("{}: {gap:?}", input.name()).into()),
            };
            *count += gap.records;
        }
    }
    Ok(found)
}
