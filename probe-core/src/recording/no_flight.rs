//! Where rings cannot be mapped over a probe's memory, and forks are not noticed.

use std::io;
use std::path::{Path, PathBuf};

use tmrun_formats::RunId;
use tmrun_formats::wire::{CalibrationV1, FileHeader, Frame};

use super::RecordError;
use crate::clock::Clock;
use crate::probe::ProbeRef;

/// A mapped file: there is none.
#[derive(Debug)]
pub(crate) enum Flight {}

impl Flight {
    pub(crate) fn map<C: Clock>(
        _: ProbeRef<'static, C>,
        path: PathBuf,
        _: &FileHeader,
        _: &[Frame<'_>],
        _: CalibrationV1,
    ) -> Result<Self, RecordError> {
        Err(RecordError::Rings { path, source: io::ErrorKind::Unsupported.into() })
    }

    pub(crate) fn reading(&mut self, _: CalibrationV1) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn finished(self) {
        match self {}
    }
}

pub(crate) fn place(folder: Option<&Path>, _: RunId) -> Result<PathBuf, RecordError> {
    Ok(folder.unwrap_or(Path::new("")).to_owned())
}
