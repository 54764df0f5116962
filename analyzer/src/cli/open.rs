//! Opening a recording for a command.

use tmrun::scan::{OpenError, Recording, Status};

use super::progress::Progress;
use super::say;

/// Scans a whole recording, with a progress bar where someone may be waiting.
pub(super) fn recording<'a>(bytes: &'a [u8], name: &str) -> Result<Recording<'a>, OpenError> {
    let progress = Progress::new(bytes.len() as u64, "scanning");
    let recording = Recording::open_observed(bytes, name, &|more| progress.add(more));
    progress.finish();
    recording
}

/// Says that the file has no trailer, when that is all that is the matter with it.
pub(super) fn say_if_not_finished(recording: &Recording<'_>) {
    if recording.status() == Status::NotFinished {
        let name = recording.name();
        say(format_args!(
            "{name}: not finished: it has no trailer yet; all of its {} chunks are whole",
            recording.chunk_counts().all
        ));
    }
}
