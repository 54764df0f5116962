//! What is in a bundle, ready to be written: the same whoever derives it from the same region.

use std::io::{self, Write};

use tmrun_formats::evidence::{Evidence, Gpu};
use tmrun_formats::trace::WriteError;

use super::annex::Annex;
use super::{report, staging};
use crate::evidence::{EvidenceError, derive, graph_despite_gradients};
use crate::scan::Recording;
use crate::slice::Region;
use crate::trace::Derived;

/// The documents of a region.
#[derive(Debug)]
pub(super) struct Contents<'c> {
    derived: &'c Derived<'c>,
    pub(super) evidence: Evidence<'c>,
    pub(super) annex: Annex<'c>,
}

impl<'c> Contents<'c> {
    /// `gpu` is what the files of Nsight in the same bundle say.
    pub(super) fn of(
        recording: &'c Recording<'c>,
        region: &Region,
        derived: &'c Derived<'c>,
        gpu: Option<Gpu<'c>>,
    ) -> Result<Self, EvidenceError> {
        let evidence = derive(&derived.document, gpu, Some(&derived.told))?;
        let graph = graph_despite_gradients(&derived.document, &evidence.health)?;
        let annex = Annex::of(recording, region, derived, graph);
        Ok(Self { derived, evidence, annex })
    }

    pub(super) fn write_evidence(&self, out: &mut dyn Write) -> io::Result<()> {
        staging::write_json(out, &self.evidence)
    }

    pub(super) fn write_annex(&self, out: &mut dyn Write) -> io::Result<()> {
        staging::write_json(out, &self.annex)
    }

    pub(super) fn write_report(&self, out: &mut dyn Write) -> io::Result<()> {
        let Derived { document, told, .. } = self.derived;
        out.write_all(report::of(document, told, &self.evidence, &self.annex).as_bytes())
    }
}

/// Writes the trace.
pub(super) fn write_trace(derived: &Derived<'_>, out: &mut dyn Write) -> io::Result<()> {
    derived.document.write(out).map(drop).map_err(|error| match error {
        WriteError::Io(error) => error,
        refused => io::Error::new(io::ErrorKind::InvalidData, refused),
    })
}
