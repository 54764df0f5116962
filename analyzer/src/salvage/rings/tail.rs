//! Chunks behind those that are there.

use std::io::{self, Write};

use tmrun_formats::wire::{Assembler, ChunkHeader, Frame, HoleV1, Place, Record};
use tmrun_formats::{LaneId, SpanId};

use super::closing::Closing;
use crate::rewrite::write_mapped;

/// Frames of one chunk take about so many bytes at most.
const FRAMES: usize = 64 << 10;

pub(super) struct Tail<'o> {
    out: &'o mut dyn Write,
    assembler: Box<Assembler>,
    /// The number of the next chunk.
    pub(super) number: u64,
}

impl<'o> Tail<'o> {
    pub(super) fn new(out: &'o mut dyn Write, number: u64) -> Self {
        Self { out, assembler: Box::new(Assembler::new()), number }
    }

    /// Chunks as they stand in a mapped file.
    pub(super) fn copy(&mut self, bytes: &[u8]) -> io::Result<()> {
        write_mapped(self.out, bytes)
    }

    fn chunk(&mut self, header: ChunkHeader, payload: &[u8]) -> io::Result<()> {
        let header = ChunkHeader { number: self.number, ..header };
        self.number = self.number.saturating_add(1);
        self.out.write_all(&header.encode())?;
        self.out.write_all(payload)
    }

    /// Chunks of these frames; none when there are none.
    pub(super) fn frames<'f>(
        &mut self,
        frames: impl IntoIterator<Item = Frame<'f>>,
    ) -> io::Result<()> {
        let mut payload = Vec::new();
        for frame in frames {
            frame
                .emit(|piece| payload.extend_from_slice(piece))
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if payload.len() >= FRAMES {
                self.meta(&mut payload)?;
            }
        }
        self.meta(&mut payload)
    }

    fn meta(&mut self, payload: &mut Vec<u8>) -> io::Result<()> {
        if payload.is_empty() {
            return Ok(());
        }
        payload.resize(payload.len().next_multiple_of(ChunkHeader::SIZE), 0);
        self.chunk(self.assembler.meta_header(payload), payload)?;
        payload.clear();
        Ok(())
    }

    /// Declares these positions, when there are any.
    pub(super) fn hole(&mut self, hole: HoleV1) -> io::Result<()> {
        self.frames((hole.records > 0).then_some(Frame::Hole(hole)))
    }

    /// A chunk of these records.
    pub(super) fn records(&mut self, place: Place, records: &[Record]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let header = self.assembler.records_header(place, [records, &[]]);
        let payload: Vec<u8> = records.iter().flat_map(|record| *record.as_bytes()).collect();
        self.chunk(header, &payload)
    }

    /// Records on this lane, which has room for them from this position on. Returns the one behind
    /// them.
    pub(super) fn closing(
        &mut self,
        lane: LaneId,
        sequence: u64,
        closing: &[Closing],
    ) -> io::Result<u64> {
        let records = closing.iter().zip(sequence..).map(|(closing, at)| closing.record(at));
        let records: Vec<Record> = records.collect();
        let place = Place { lane, sequence, span: SpanId::NONE };
        self.records(place, &records)?;
        Ok(sequence.saturating_add(records.len() as u64))
    }
}
