//! Everything that is wrong with a file, also what costs no record.

use tmrun_formats::{DecodeError, RunId};

use super::error::Finding;
use super::recording::Recording;

impl Recording<'_> {
    /// Everything in the file that breaks the format: the [findings](Self::findings), and also
    /// where index, trailer, run, and what single records say of themselves, is something else than
    /// it can be. None of the latter keeps a record from being used.
    pub fn verify(&self) -> Vec<Finding> {
        let mut findings = self.findings().to_vec();
        findings.extend(self.odd());
        findings.extend(self.check_run());
        self.check_indexes(&mut findings);
        self.check_trailer(&mut findings);
        findings.sort_by_key(|finding| finding.error.offset());
        findings
    }

    /// The run is the same in the file header and in its frame.
    fn check_run(&self) -> Option<Finding> {
        let (header, frame) = (self.header().run, self.meta().run?.run);
        let halves = |RunId(run)| {
            let run = u128::from_be_bytes(run);
            [(run >> 64) as u64, run as u64]
        };
        let mut pairs = halves(header).into_iter().zip(halves(frame));
        let (expected, found) = pairs.find(|(header, frame)| header != frame)?;
        let (what, offset) =
            ("run of the Run frame, as in the file header", self.meta().run_offset);
        Some(Finding::new(DecodeError::Malformed { what, offset, expected, found }))
    }
}
