//! Sessions: what their files say, and what they refuse.

#[path = "../support/mod.rs"]
mod support;

mod ends;
mod facts;
mod opens;
mod profile;
mod spans;

use std::path::{Path, PathBuf};

use support::read::{File, Rec};
use tmrun_formats::wire::Kind;
use tmrun_probe_core::session::{ProfileRun, TraceSession};

/// A folder for the files of one test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// What a session recorded that was given to `record`.
    fn recorded(&self, record: impl FnOnce(&TraceSession)) -> File {
        let session = TraceSession::open(self.path("run.tmrun"), run()).unwrap();
        record(&session);
        read(&session.finish().unwrap())
    }
}

fn run() -> ProfileRun {
    ProfileRun::training("trainer::update", 3, "cpu")
}

fn read(path: &Path) -> File {
    File::finished(&std::fs::read(path).unwrap())
}

/// The only record of this kind.
fn only(file: &File, kind: Kind) -> Rec {
    let [record] = file.of(kind as u8)[..] else { panic!("one {kind:?} record") };
    record
}

/// The text that an id of a record is, which its flag says to be a name.
fn named(file: &File, record: &Rec, flag: u16, at: usize) -> String {
    assert_eq!(record.flags & flag, flag, "a name");
    text(file, record.u64_at(at) as u32)
}

fn text(file: &File, id: u32) -> String {
    file.names().get(&id).map_or_else(String::new, |name| name.text.to_owned())
}
