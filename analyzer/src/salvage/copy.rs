//! What is intact, in file order.

use std::io;

use tmrun_formats::wire::{Chunk, ChunkKind, Frame, FrameError, RawFrame};

use super::file::File;
use super::holes::Holes;
use crate::scan::{ChunkState, Recording};

/// What other frames and records refer to. It stands before all of them, whatever became of the
/// chunk that once did, and again at the end: one damaged chunk cannot unname a file.
pub(super) fn definitions<'r>(recording: &'r Recording<'_>) -> impl Iterator<Item = Frame<'r>> {
    let meta = recording.meta();
    let run = meta.run.into_iter().map(Frame::Run);
    let names = recording.names().iter().copied().map(Frame::Name);
    let dtypes = meta.dtypes.values().copied().map(Frame::DType);
    let devices = meta.devices.values().copied().map(Frame::Device);
    let clocks = meta.clocks.values().copied().map(Frame::Clock);
    run.chain(names).chain(dtypes).chain(devices).chain(clocks)
}

/// Copies every chunk that is intact, and every frame that can be read and has its place here; the
/// holes of a lane are declared before its next chunk. Returns how many records it copied of those
/// that this version reads.
pub(super) fn chunks(
    recording: &Recording<'_>,
    holes: &mut Holes,
    file: &mut File<'_>,
    progress: &dyn Fn(u64),
) -> io::Result<u64> {
    let mut kept = 0_u64;
    for info in recording.chunks() {
        progress(info.header.payload_len.into());
        let Some(chunk) = info.chunk(recording.bytes()) else { continue };
        let is_wanted = matches!(info.state, ChunkState::Intact | ChunkState::Unknown);
        // An index lists the chunks of the other file. What is held against its CRC here too is what
        // is written, whoever changes the file meanwhile.
        if !is_wanted || info.header.kind == ChunkKind::INDEX || chunk.check().is_err() {
            continue;
        }
        if info.state == ChunkState::Intact && info.header.kind == ChunkKind::META {
            frames(&chunk, file)?;
            continue;
        }
        file.frames(holes.before_chunk(&chunk.header))?;
        file.copy(&chunk.header, chunk.payload)?;
        if info.has_records() {
            kept = kept.saturating_add(chunk.records().len() as u64);
        }
    }
    Ok(kept)
}

fn frames(chunk: &Chunk<'_>, file: &mut File<'_>) -> io::Result<()> {
    for raw in chunk.frames().map_while(Result::ok) {
        if has_its_place_here(&raw) {
            file.copy_frame(&raw)?;
        }
    }
    file.flush()
}

/// Definitions stand at the beginning and at the end, what is said of the end stands there, and a
/// frame that cannot be read has no place.
fn has_its_place_here(raw: &RawFrame<'_>) -> bool {
    match raw.decode() {
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
