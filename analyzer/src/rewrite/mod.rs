//! A recording that is made of another: chunks one after the other, an index where one is due, and
//! the end.

mod gaps;

use std::io::{self, Write};

use tmrun_formats::wire::{
    Assembler, Chunk, ChunkHeader, FileHeader, Frame, FrameError, Place, RawFrame, Record, Trailer,
};

use crate::scan::Recording;
pub(crate) use gaps::{Gaps, record as gap_record};

/// A chunk of metadata ends with the frame that brings it to so many bytes.
const FRAMES: usize = 64 << 10;

/// A file in the making.
pub(crate) struct File<'o> {
    out: &'o mut dyn Write,
    assembler: Box<Assembler>,
    /// Frames that are not written yet.
    frames: Vec<u8>,
}

impl<'o> File<'o> {
    pub(crate) fn begin(out: &'o mut dyn Write, header: &FileHeader) -> io::Result<Self> {
        out.write_all(&header.encode())?;
        Ok(Self { out, assembler: Box::new(Assembler::new()), frames: Vec::new() })
    }

    /// A chunk as another file has it.
    pub(crate) fn copy(&mut self, header: &ChunkHeader, payload: &[u8]) -> io::Result<()> {
        self.flush()?;
        let header = self.assembler.copied_header(header);
        self.chunk(&header, payload)
    }

    pub(crate) fn records(&mut self, place: Place, records: &[Record]) -> io::Result<()> {
        self.flush()?;
        let header = self.assembler.records_header(place, [records, &[]]);
        let payload: Vec<u8> = records.iter().flat_map(|record| *record.as_bytes()).collect();
        self.chunk(&header, &payload)
    }

    /// A chunk of these frames, or several.
    pub(crate) fn frames<'f>(
        &mut self,
        frames: impl IntoIterator<Item = Frame<'f>>,
    ) -> io::Result<()> {
        self.flush()?;
        for frame in frames {
            let pieces = &mut self.frames;
            frame
                .emit(|piece| pieces.extend_from_slice(piece))
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            self.flush_if_full()?;
        }
        self.flush()
    }

    /// The frames of a chunk of another file that have a place here.
    pub(crate) fn copy_frames(
        &mut self,
        chunk: &Chunk<'_>,
        has_its_place: impl Fn(&Result<Frame<'_>, FrameError>) -> bool,
    ) -> io::Result<()> {
        for raw in chunk.frames().map_while(Result::ok) {
            if has_its_place(&raw.decode()) {
                self.copy_frame(&raw)?;
            }
        }
        self.flush()
    }

    /// A frame as another file has it. It is in a chunk with the frames that follow at once.
    fn copy_frame(&mut self, frame: &RawFrame<'_>) -> io::Result<()> {
        frame.emit(|piece| self.frames.extend_from_slice(piece));
        self.flush_if_full()
    }

    /// The index and the trailer.
    pub(crate) fn end(mut self) -> io::Result<Trailer> {
        self.flush()?;
        if self.assembler.index_due() {
            self.index()?;
        }
        self.index()?;
        let trailer = self.assembler.trailer();
        self.out.write_all(&trailer.encode())?;
        Ok(trailer)
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.frames.len() >= FRAMES { self.flush() } else { Ok(()) }
    }

    /// Ends the chunk of frames, if there is one.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.frames.is_empty() {
            return Ok(());
        }
        let mut frames = core::mem::take(&mut self.frames);
        frames.resize(frames.len().next_multiple_of(ChunkHeader::SIZE), 0);
        let header = self.assembler.meta_header(&frames);
        self.chunk(&header, &frames)?;
        frames.clear();
        self.frames = frames;
        Ok(())
    }

    fn chunk(&mut self, header: &ChunkHeader, payload: &[u8]) -> io::Result<()> {
        let mut header = *header;
        if self.assembler.index_due() {
            self.index()?;
            header = self.assembler.copied_header(&header);
        }
        self.out.write_all(&header.encode())?;
        write_mapped(self.out, payload)?;
        self.assembler.commit(&header);
        Ok(())
    }

    fn index(&mut self) -> io::Result<()> {
        let (header, pieces) = self.assembler.index();
        self.out.write_all(&header.encode())?;
        for piece in pieces {
            self.out.write_all(&piece)?;
        }
        self.assembler.commit(&header);
        Ok(())
    }
}

/// What other frames and records refer to. It stands before all of them, whatever became of the
/// chunk that once did, and again at the end: one damaged chunk cannot unname a file.
pub(crate) fn definitions<'r>(recording: &'r Recording<'_>) -> impl Iterator<Item = Frame<'r>> {
    let meta = recording.meta();
    let run = meta.run.into_iter().map(Frame::Run);
    let names = recording.names().iter().copied().map(Frame::Name);
    let dtypes = meta.dtypes.values().copied().map(Frame::DType);
    let devices = meta.devices.values().copied().map(Frame::Device);
    let clocks = meta.clocks.values().copied().map(Frame::Clock);
    run.chain(names).chain(dtypes).chain(devices).chain(clocks)
}

/// Whether a frame of the other file stands where it stood there. [`definitions`] stand at the beginning
/// and at the end, what is said of the end stands there, and a frame that cannot be read has no place.
pub(crate) fn has_its_place(frame: &Result<Frame<'_>, FrameError>) -> bool {
    match frame {
        Ok(
            Frame::Run(_) | Frame::Name(_) | Frame::DType(_) | Frame::Device(_) | Frame::Clock(_),
        ) => false,
        Ok(
            Frame::OpenSpan(_)
            | Frame::Totals(_)
            | Frame::RecorderCost(_)
            | Frame::Terminal(_)
            | Frame::Hole(_)
            | Frame::RecordingFile(_),
        ) => false,
        Ok(_) | Err(FrameError::Unknown { .. }) => true,
        Err(FrameError::Decode(_)) => false,
    }
}

/// Writes bytes of a mapped file through a buffer. Where the file was cut short meanwhile, copying
/// them is the signal that it is for whoever reads them; a system call would only say that it got a
/// bad address.
pub(crate) fn write_mapped(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    for piece in bytes.chunks(buffer.len()) {
        if let Some(copy) = buffer.get_mut(..piece.len()) {
            copy.copy_from_slice(piece);
            out.write_all(copy)?;
        }
    }
    Ok(())
}
