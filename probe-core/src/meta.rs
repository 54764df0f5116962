//! Chunks of metadata frames, written without a place to keep one: the frames are produced twice,
//! once for length and CRC, once for the bytes.

use tmrun_formats::wire::{Assembler, ChunkHeader, ChunkKind, Frame};

use crate::sink::Sink;

/// Hands each frame of a chunk to the closure. It is called twice and must do the same both times.
pub(crate) trait FrameSource {
    fn frames(&self, each: &mut dyn FnMut(&Frame<'_>));
}

impl<F: Fn(&mut dyn FnMut(&Frame<'_>))> FrameSource for F {
    fn frames(&self, each: &mut dyn FnMut(&Frame<'_>)) {
        self(each);
    }
}

/// Writes one chunk of these frames; nothing when there are none.
pub(crate) fn write_meta<S: Sink>(
    file: &mut Assembler,
    sink: &mut S,
    source: &impl FrameSource,
) -> Result<(), S::Error> {
    let mut crc = crc32fast::Hasher::new();
    let mut len = 0_usize;
    emit_all(source, &mut |piece| {
        crc.update(piece);
        len += piece.len();
    });
    if len == 0 {
        return Ok(());
    }
    let padding = [0_u8; ChunkHeader::SIZE];
    let padding = padding.get(len % ChunkHeader::SIZE..).filter(|p| p.len() < ChunkHeader::SIZE);
    let padding = padding.unwrap_or_default();
    crc.update(padding);
    let header = file.meta_header_of(len + padding.len(), crc.finalize());
    let mut staging = Staging { sink, bytes: [0; 1024], used: 0, error: None };
    staging.push(&header.encode());
    emit_all(source, &mut |piece| staging.push(piece));
    staging.push(padding);
    staging.flush();
    match staging.error {
        Some(error) => Err(error),
        None => {
            debug_assert_eq!(header.kind, ChunkKind::META);
            file.commit(&header);
            Ok(())
        }
    }
}

fn emit_all(source: &impl FrameSource, out: &mut dyn FnMut(&[u8])) {
    source.frames(&mut |frame| {
        // Only a body over 4 GiB fails, and then both passes leave the frame out.
        let _ = frame.emit(&mut *out);
    });
}

/// Joins small pieces, so that a frame is not a write for every field.
struct Staging<'s, S: Sink> {
    sink: &'s mut S,
    bytes: [u8; 1024],
    used: usize,
    error: Option<S::Error>,
}

impl<S: Sink> Staging<'_, S> {
    fn push(&mut self, piece: &[u8]) {
        if self.used + piece.len() > self.bytes.len() {
            self.flush();
        }
        match self.bytes.get_mut(self.used..self.used + piece.len()) {
            Some(place) => {
                place.copy_from_slice(piece);
                self.used += piece.len();
            }
            None if self.error.is_none() => self.error = self.sink.write(&[piece]).err(),
            None => {}
        }
    }

    fn flush(&mut self) {
        let used = core::mem::take(&mut self.used);
        if self.error.is_none() && used > 0 {
            self.error = self.sink.write(&[self.bytes.get(..used).unwrap_or_default()]).err();
        }
    }
}
