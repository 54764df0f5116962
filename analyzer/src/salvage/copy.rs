//! What is intact, in file order.

use std::io;

use tmrun_formats::wire::{ChunkKind, Frame, FrameError};

use super::holes::Holes;
use crate::rewrite::File;
use crate::scan::{ChunkState, Recording};

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
            file.copy_frames(&chunk, has_its_place_here)?;
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

/// Definitions stand at the beginning and at the end, what is said of the end stands there, and a
/// frame that cannot be read has no place.
fn has_its_place_here(frame: &Result<Frame<'_>, FrameError>) -> bool {
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
