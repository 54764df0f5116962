//! A process that died, and whose mapped rings are not where the recording says, or cannot be read:
//! `tmrun salvage` finds them wherever it is called, or says that what they held is lost.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::dying::{self, rings};
use support::naive::crc32;
use tempfile::TempDir;
use tmrun::scan::{Gap, Recording};
use tmrun_formats::rings::{RINGS_VERSION, RingsHeader};
use tmrun_formats::wire::Kind;
use tmrun_formats::{GapReason, LaneId};
use tmrun_probe_core::{ProfileRun, probe, scalar};

probe!(static PROBE: lanes = 1, slots = 64);

const VALUES: u64 = 21;

#[test]
#[ignore = "the child of the other tests"]
fn records_some_values_and_ends() {
    let Some(task) = dying::task() else { return };
    // Both paths are relative to the folder that it was started in.
    let run = ProfileRun::training("dies", 1, "cpu").rings_in("rings");
    let recording = PROBE.record("run.tmrun", run).expect("it starts");
    (0..VALUES).for_each(|i| scalar!(PROBE, "value", i as f64));
    match &*task {
        "dies" => std::process::abort(),
        _ => recording.finish().map(drop).expect("it ends"),
    }
}

/// What a process left that ended so: `run.tmrun`, and its rings in `rings`.
fn left(task: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = dying::test("records_some_values_and_ends");
    program.current_dir(folder.path());
    dying::child(program, task).wait().expect("it has ended");
    folder
}

/// Salvages in the root of the file system.
fn salvaged(folder: &Path) -> (Output, Vec<u8>) {
    let out = folder.join("whole.tmrun");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tmrun"));
    command.current_dir("/").arg("salvage").arg(folder.join("run.tmrun"));
    let output = command.arg("--force").arg("-o").arg(&out).output().expect("it runs");
    (output, std::fs::read(&out).expect("the result"))
}

fn values(recording: &Recording<'_>) -> u64 {
    recording.counts().of(Kind::Scalar)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn rings_in_a_relative_folder_are_found_from_everywhere() {
    let folder = left("dies");
    let (output, whole) = salvaged(folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let whole = Recording::open(&whole, "whole").expect("a header");
    assert_eq!((whole.verify(), values(&whole)), (vec![], VALUES));
    let named = whole.meta().run.and_then(|run| run.rings).expect("it names them");
    assert!(Path::new(named).is_absolute(), "{named}");
}

#[test]
fn rings_that_cannot_be_had_are_told_and_what_they_held_is_lost() {
    let gone = |rings: &PathBuf| std::fs::remove_file(rings);
    let no_file = |rings: &PathBuf| gone(rings).and_then(|()| std::fs::create_dir(rings));
    let cut = |rings: &PathBuf| std::fs::write(rings, &std::fs::read(rings)?[..1000]);
    let patched = |rings: &PathBuf, at: usize, by: u8| {
        let mut bytes = std::fs::read(rings)?;
        bytes[at] = bytes[at].wrapping_add(by);
        let crc = crc32(&bytes[..RingsHeader::SIZE - 4]);
        bytes[RingsHeader::SIZE - 4..RingsHeader::SIZE].copy_from_slice(&crc.to_le_bytes());
        std::fs::write(rings, bytes)
    };
    let of_another_run = |rings: &PathBuf| patched(rings, 16, 1);
    let newer = |rings: &PathBuf| patched(rings, 8, 1);
    let newer_version = format!("found {}", RINGS_VERSION + 1);
    type Spoil<'s> = &'s dyn Fn(&PathBuf) -> std::io::Result<()>;
    let spoilt: [(Spoil<'_>, &str); 5] = [
        (&gone, "No such file"),
        (&no_file, "not a regular file"),
        (&cut, "truncated"),
        (&of_another_run, "expected rings of run"),
        (&newer, &newer_version),
    ];
    for (spoil, why) in spoilt {
        let folder = left("dies");
        let path = rings(folder.path());
        spoil(&path).expect("the rings are this user's");
        let (output, whole) = salvaged(folder.path());
        let said = text(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(&*path.to_string_lossy()) && said.contains(why), "{why}: {said}");
        assert!(said.contains("what the mapped rings held"), "{said}");

        let whole = Recording::open(&whole, "whole").expect("a header");
        assert_eq!(whole.verify(), []);
        let lost: Vec<&Gap> = whole.lost().collect();
        let [gap] = lost[..] else { panic!("{lost:?}") };
        assert_eq!((gap.reason, gap.lane, gap.records), (GapReason::TORN, None, 0));
        for kind in Kind::ALL {
            assert!(gap.planes.contains(kind.plane()), "{kind:?}");
        }
        let last = whole.record_chunks().filter(|chunk| chunk.lane() != LaneId::RECORDER);
        let last = last.flat_map(|chunk| chunk.records().to_vec()).map(|record| record.edges().1);
        assert!(last.max().is_none_or(|last| gap.last >= last), "behind what is there");

        // Whoever looks at the result sees it too, and it salvages to itself.
        let out = folder.path().join("whole.tmrun");
        for command in ["info", "verify"] {
            let looked = Command::new(env!("CARGO_BIN_EXE_tmrun")).arg(command).arg(&out).output();
            assert_eq!(looked.expect("it runs").status.code(), Some(3), "{command}");
        }
        let again = folder.path().join("again.tmrun");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tmrun"));
        command.arg("salvage").arg(&out).arg("-o").arg(&again).output().expect("it runs");
        assert!(std::fs::read(&again).expect("it") == std::fs::read(&out).expect("it"));
    }
}

#[test]
fn rings_that_were_removed_when_the_run_ended_are_not_missed() {
    let folder = left("ends");
    let (output, whole) = salvaged(folder.path());
    assert_eq!((output.status.code(), text(&output)), (Some(0), String::new()));
    let whole = Recording::open(&whole, "whole").expect("a header");
    assert_eq!((values(&whole), whole.lost().count()), (VALUES, 0));
}
