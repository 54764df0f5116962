//! `testdata/v1/` is read and written by today's code as it was when version 1 was published.
//!
//! `BLESS=1 cargo test -p tmrun-formats --test fixtures` writes them anew. A published fixture is
//! never blessed again: a change that needs it is a new version with fixtures of its own.

mod wire_support;

use std::fs;
use std::path::PathBuf;

use tmrun_formats::wire::{ChunkKind, Chunks, Kind, Walked};
use wire_support::{every, listing::listing, tiny};

fn holds(name: &str, written: &[u8]) {
    let path = |extension| {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/v1");
        folder.join(name).with_extension(extension)
    };
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path("txt").parent().expect("a folder")).expect("can be made");
        fs::write(path("tmrun"), written).expect("can be written");
        fs::write(path("txt"), listing(written)).expect("can be written");
    }
    let fixture = fs::read(path("tmrun")).expect("the fixture is checked in");
    let listed = fs::read_to_string(path("txt")).expect("its listing is checked in");
    for (ours, theirs) in listing(&fixture).lines().zip(listed.lines()) {
        assert_eq!(ours, theirs, "{name} reads as it always did");
    }
    assert_eq!(listing(&fixture).lines().count(), listed.lines().count());
    let differ = fixture.iter().zip(written).position(|(a, b)| a != b);
    assert_eq!(differ, None, "{name} is written as it always was, from this offset on");
    assert_eq!(fixture.len(), written.len());
}

#[test]
fn the_tiny_file_reads_and_writes_as_it_always_did() {
    holds("tiny", &tiny());
}

#[test]
fn the_file_of_everything_reads_and_writes_as_it_always_did() {
    holds("every", &every::file());
}

#[test]
fn the_file_of_everything_has_every_kind_of_record_and_every_frame() {
    let file = every::file();
    let (mut kinds, mut frames) = (Vec::new(), Vec::new());
    for walked in Chunks::new(&file) {
        let Walked::Chunk(chunk) = walked else { continue };
        kinds.extend(chunk.records().iter().filter_map(|record| record.kind()));
        frames.extend(chunk.frames().map(|raw| raw.expect("valid").kind));
    }
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, Kind::ALL);
    // A frame that this version knows decodes to something else than "unknown".
    let known = |&kind: &u16| {
        use tmrun_formats::wire::{FrameError, RawFrame};
        let raw = RawFrame { kind, version: 1, body: &[], offset: 0 };
        !matches!(raw.decode(), Err(FrameError::Unknown { .. }))
    };
    assert_eq!(frames, (0..=u16::MAX).filter(known).collect::<Vec<_>>());
    assert!(Chunks::new(&file).any(
        |walked| matches!(walked, Walked::Chunk(chunk) if chunk.header.kind == ChunkKind::INDEX)
    ));
}
