//! What is intact, in file order.

use std::io;

use tmrun_formats::wire::ChunkKind;

use super::holes::Holes;
use crate::rewrite::{File, has_its_place};
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
            file.copy_frames(&chunk, has_its_place)?;
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
