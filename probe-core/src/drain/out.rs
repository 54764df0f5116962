//! The file so far, and its one way to the sink.

use tmrun_formats::wire::{Assembler, FileHeader, Frame, Place, Record, Trailer};

use crate::meta::{FrameSource, write_meta};
use crate::sink::Sink;

/// The file so far. It is apart from the probe so that a chunk can be written while the probe is
/// looked at.
pub(super) struct Out<S> {
    file: Assembler,
    sink: S,
    begun: bool,
    /// The header, until it is written.
    due: Option<FileHeader>,
    ended: bool,
    failed: bool,
    /// And what is torn of it could not be cut off.
    torn: bool,
}

impl<S: Sink> Out<S> {
    pub(super) const fn new(sink: S) -> Self {
        let (begun, ended, failed, torn) = (false, false, false, false);
        Self { file: Assembler::new(), sink, begun, due: None, ended, failed, torn }
    }

    /// Whether a write has failed. Nothing more is written then.
    pub(super) const fn failed(&self) -> bool {
        self.failed
    }

    pub(super) const fn file(&self) -> &Assembler {
        &self.file
    }

    /// Bytes that are whole.
    pub(super) const fn whole(&self) -> u64 {
        let trailer = if self.ended { Trailer::SIZE as u64 } else { 0 };
        if self.begun { self.file.offset() + trailer } else { 0 }
    }

    /// Goes on in another sink, at the beginning of a file.
    pub(super) fn next(&mut self, sink: S) {
        *self = Self::new(sink);
    }

    /// Writes again after a failure, behind what is whole.
    pub(super) fn retry(&mut self) -> Result<(), S::Error> {
        if self.torn {
            self.sink.cut(self.whole())?;
        }
        (self.failed, self.torn) = (false, false);
        self.due.map_or(Ok(()), |header| self.header(&header))
    }

    pub(super) fn into_sink(self) -> S {
        self.sink
    }

    /// Runs one write. When it fails, what is not whole is cut off, and until a [retry](Self::retry)
    /// nothing more is written: later writes do nothing and succeed, so that a failure is reported
    /// once.
    fn guarded(
        &mut self,
        write: impl FnOnce(&mut Assembler, &mut S) -> Result<(), S::Error>,
    ) -> Result<(), S::Error> {
        if self.failed {
            return Ok(());
        }
        let result = write(&mut self.file, &mut self.sink);
        if result.is_err() {
            self.failed = true;
            self.torn = self.sink.cut(self.whole()).is_err();
        }
        result
    }

    pub(super) fn header(&mut self, header: &FileHeader) -> Result<(), S::Error> {
        self.due = Some(*header);
        self.guarded(|_, sink| sink.write(&[&header.encode()]))?;
        (self.begun, self.due) = (true, None);
        Ok(())
    }

    pub(super) fn records(
        &mut self,
        place: Place,
        records: [&[Record]; 2],
    ) -> Result<(), S::Error> {
        self.index_if_due()?;
        self.guarded(|file, sink| {
            let header = file.records_header(place, records);
            let [first, second] = records.map(zerocopy::IntoBytes::as_bytes);
            sink.write(&[&header.encode(), first, second])?;
            file.commit(&header);
            Ok(())
        })
    }

    /// Writes a chunk of frames. The source is run twice and must say the same both times.
    pub(super) fn meta(&mut self, source: &impl FrameSource) -> Result<(), S::Error> {
        self.index_if_due()?;
        self.guarded(|file, sink| write_meta(file, sink, source))
    }

    pub(super) fn frames(&mut self, frames: &[Frame<'_>]) -> Result<(), S::Error> {
        self.meta(&|each: &mut dyn FnMut(&Frame<'_>)| frames.iter().for_each(each))
    }

    /// Ends the file.
    pub(super) fn trailer(&mut self) -> Result<(), S::Error> {
        self.index_if_due()?;
        self.index()?;
        self.guarded(|file, sink| sink.write(&[&file.trailer().encode()]))?;
        self.ended = !self.failed;
        Ok(())
    }

    fn index_if_due(&mut self) -> Result<(), S::Error> {
        if self.file.index_due() { self.index() } else { Ok(()) }
    }

    fn index(&mut self) -> Result<(), S::Error> {
        self.guarded(|file, sink| {
            let (header, pieces) = file.index();
            sink.write(&[&header.encode()])?;
            for piece in pieces {
                sink.write(&[&piece])?;
            }
            file.commit(&header);
            Ok(())
        })
    }
}
