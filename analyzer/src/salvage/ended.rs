//! How a salvaged recording says that its run ended, and what a reader takes from it.

use super::Process;

/// The file has its end, which does not hold.
pub(super) const DAMAGED: &str = "salvaged: what the file said of the run's end is damaged";
/// The file has no end.
pub(super) const BREAKS_OFF: &str = "salvaged: the file breaks off before the run's end";

const FROM_RINGS: &str = "salvaged: process ";
const GONE: &str = " ended without finishing the recording";

/// What the rings of a process tell of its end.
pub(super) fn of_process(process: Process, pid: u64) -> String {
    match process {
        Process::Gone => format!("{FROM_RINGS}{pid}{GONE}"),
        Process::There => {
            format!("salvaged: a snapshot; process {pid} was there, and may go on")
        }
    }
}

/// What a salvaged recording has of the end of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Salvaged {
    /// Up to the last record of every lane: the process has gone, and its rings were there.
    Whole,
    /// Nobody knows what came behind the last records that there are.
    Torn,
}

/// What a terminal's reason tells of that; `None` where the recording was not salvaged.
pub(crate) fn salvaged(reason: &str) -> Option<Salvaged> {
    match reason {
        _ if reason.starts_with(FROM_RINGS) && reason.ends_with(GONE) => Some(Salvaged::Whole),
        _ if reason.starts_with("salvaged: ") => Some(Salvaged::Torn),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_salvage_writes_it_reads() {
        let of = |process| salvaged(&of_process(process, 7));
        assert_eq!(of(Process::Gone), Some(Salvaged::Whole));
        assert_eq!(of(Process::There), Some(Salvaged::Torn));
        assert_eq!([DAMAGED, BREAKS_OFF].map(salvaged), [Some(Salvaged::Torn); 2]);
        assert_eq!(salvaged("out of memory"), None);
    }
}
