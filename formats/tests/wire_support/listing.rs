//! A file as text, line by line.

use std::fmt::Write;

use tmrun_formats::wire::{
    self, Chunk, ChunkKind, Chunks, FileHeader, Frames, IndexHead, Kind, Payload, Record, Walked,
};

/// Everything that can be decoded from a file.
pub fn listing(file: &[u8]) -> String {
    let mut out = String::new();
    writeln!(out, "{:#06x} {:?}", 0, FileHeader::decode(file)).expect("a string takes it");
    for walked in Chunks::new(file) {
        match walked {
            Walked::Chunk(chunk) => list_chunk(&mut out, &chunk),
            other => writeln!(out, "{:#06x} {other:?}", super::place(&other).0).expect("as above"),
        }
    }
    out
}

fn list_chunk(out: &mut String, chunk: &Chunk<'_>) {
    let mut line = |text: String| writeln!(out, "{text}").expect("a string takes it");
    line(format!("{:#06x} {:?}", chunk.offset, chunk.header));
    if let Err(error) = chunk.check() {
        line(format!("  {error}"));
    }
    match chunk.header.kind {
        ChunkKind::RECORDS => {
            for record in chunk.records() {
                line(format!("  {:?}", record.header()));
                line(format!("    {}", payload(record)));
            }
        }
        ChunkKind::META => {
            for raw in Frames::new(chunk.payload, chunk.payload_offset()) {
                match raw {
                    Ok(raw) => {
                        let (offset, kind, version) = (raw.offset, raw.kind, raw.version);
                        line(format!("  {offset:#06x} kind {kind} version {version}"));
                        line(format!("    {:?}", raw.decode()));
                    }
                    Err(error) => line(format!("  {error}")),
                }
            }
        }
        ChunkKind::INDEX => match IndexHead::decode(chunk.payload, chunk.payload_offset()) {
            Ok((head, entries)) => {
                line(format!("  {head:?}"));
                entries.for_each(|entry| line(format!("  {entry:?}")));
            }
            Err(error) => line(format!("  {error}")),
        },
        _ => line("  unknown".into()),
    }
}

/// A payload in full. A new kind does not compile until it is here.
pub fn payload(record: &Record) -> String {
    fn text<P: Payload + std::fmt::Debug>(record: &Record) -> String {
        format!("{:?}", record.payload::<P>())
    }
    match record.kind() {
        None => "unknown".into(),
        Some(Kind::Span) => text::<wire::Span>(record),
        Some(Kind::Step) => text::<wire::Step>(record),
        Some(Kind::Op) => text::<wire::Op>(record),
        Some(Kind::OpInput) => text::<wire::OpInput>(record),
        Some(Kind::Tensor) => text::<wire::Tensor>(record),
        Some(Kind::Shape) => text::<wire::Shape>(record),
        Some(Kind::Stats) => text::<wire::Stats>(record),
        Some(Kind::Range) => text::<wire::Range>(record),
        Some(Kind::Scalar) => text::<wire::Scalar>(record),
        Some(Kind::Gradient) => text::<wire::Gradient>(record),
        Some(Kind::Alloc) => text::<wire::Alloc>(record),
        Some(Kind::Free) => text::<wire::Free>(record),
        Some(Kind::DeviceMemory) => text::<wire::DeviceMemory>(record),
        Some(Kind::DeviceInterval) => text::<wire::DeviceInterval>(record),
        Some(Kind::Edge) => text::<wire::Edge>(record),
        Some(Kind::Level) => text::<wire::LevelChange>(record),
        Some(Kind::Control) => text::<wire::Control>(record),
        Some(Kind::Gap) => text::<wire::Gap>(record),
        Some(Kind::Hit) => text::<wire::Hit>(record),
        Some(Kind::ClockSync) => text::<wire::ClockSync>(record),
    }
}
