//! `tmrun salvage` as a process: exit codes, what is said, and what is never overwritten.

mod support;

use std::fs;

use serde_json::Value;
use support::command::Folder;
use support::record::{gap, scalar};
use support::{Builder, naive, small};
use tmrun_formats::GapReason;

fn damaged() -> Vec<u8> {
    let mut file = small();
    let hit = naive::chunks(&file)[2].offset;
    file[hit + 100] ^= 1;
    file
}

#[test]
fn a_whole_file_is_0_and_a_damaged_one_3_with_its_holes_listed() {
    let folder = Folder::with(&small());
    let (code, out, err) = folder.tmrun(&["salvage", "in.tmrun", "-o", "out.tmrun"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("out.tmrun: 11 records of in.tmrun"), "{out}");
    let (code, out, _) = folder.tmrun(&["verify", "out.tmrun"]);
    assert_eq!(code, 0, "{out}");

    let folder = Folder::with(&damaged());
    let (code, _, err) = folder.tmrun(&["salvage", "in.tmrun", "-o", "out.tmrun"]);
    assert_eq!(code, 3);
    let offset = naive::chunks(&small())[2].offset;
    let line = format!(
        "in.tmrun: missing: 3 records of lane 0 from position 0 (corrupt): offset {offset}, 256 bytes"
    );
    assert!(err.lines().any(|said| said == line), "{err}");
    // The file says itself what it lacks, and every command finds the same.
    for command in ["verify", "info"] {
        let (code, out, err) = folder.tmrun(&[command, "out.tmrun"]);
        assert_eq!(code, 3, "{out}{err}");
        assert!(err.contains("lost 3 records in 1 gap (corrupt 1)"), "{err}");
    }
}

#[test]
fn a_file_that_breaks_off_between_chunks_is_0_and_a_torn_one_3() {
    let whole = small();
    let end = naive::chunks(&whole)[5].end;
    let folder = Folder::with(&whole[..end]);
    let (code, _, err) = folder.tmrun(&["salvage", "in.tmrun", "-o", "out.tmrun"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("does not say how the run ended"), "{err}");
    let (code, out, _) = folder.tmrun(&["info", "out.tmrun"]);
    assert_eq!(code, 0);
    assert!(out.contains("failed: salvaged: the file breaks off before the run's end"), "{out}");

    let folder = Folder::with(&whole[..end + 70]);
    let (code, _, err) = folder.tmrun(&["salvage", "in.tmrun", "-o", "out.tmrun"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("(torn)"), "{err}");
    assert_eq!(folder.tmrun(&["verify", "out.tmrun"]).0, 3);
}

#[test]
fn what_the_recorder_dropped_is_lost_too() {
    let dropped = [gap(1_500, 1_600, 12, 0, GapReason::OVERRUN), scalar(1_700, 2, 1.0)];
    let folder = Folder::with(&Builder::started().records(0, &dropped).finish());
    let (code, _, err) = folder.tmrun(&["salvage", "in.tmrun", "-o", "out.tmrun"]);
    assert_eq!(code, 3);
    assert_eq!(err, "in.tmrun: lost 12 records in 1 gap (overrun 1)\n");
    assert_eq!(folder.tmrun(&["verify", "out.tmrun"]).0, 3);
}

#[test]
fn nothing_is_overwritten_unasked_and_the_input_never() {
    let folder = Folder::with(&damaged());
    fs::write(folder.path("out.tmrun"), "dear").expect("written");
    let (code, _, err) = folder.tmrun(&["salvage", "in.tmrun", "-o", "out.tmrun"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("--force"), "{err}");
    assert_eq!(fs::read(folder.path("out.tmrun")).expect("there"), b"dear");

    let (code, _, err) = folder.tmrun(&["salvage", "in.tmrun", "--force", "-o", "in.tmrun"]);
    assert_eq!(code, 1, "{err}");
    assert_eq!(fs::read(folder.path("in.tmrun")).expect("there"), damaged());

    let (code, ..) = folder.tmrun(&["salvage", "in.tmrun", "--force", "-o", "out.tmrun"]);
    assert_eq!(code, 3);
    assert_eq!(folder.tmrun(&["verify", "out.tmrun"]).0, 3);
}

#[test]
fn what_is_no_recording_is_1_and_leaves_no_file() {
    let folder = Folder::with(&[b'x'; 4096]);
    let (code, _, err) = folder.tmrun(&["salvage", "in.tmrun", "-o", "out.tmrun"]);
    assert_eq!(code, 1);
    assert!(err.starts_with("tmrun: in.tmrun: "), "{err}");
    assert!(!folder.path("out.tmrun").exists());
}

#[test]
fn a_damaged_header_is_said_and_not_fatal() {
    let mut file = small();
    file[20] ^= 1;
    let folder = Folder::with(&file);
    assert_eq!(folder.tmrun(&["info", "in.tmrun"]).0, 1);
    let (code, _, err) = folder.tmrun(&["salvage", "in.tmrun", "-o", "out.tmrun"]);
    assert_eq!(code, 3);
    assert!(err.contains("the run's identity is from the metadata"), "{err}");
    assert!(err.contains("missing: the file header (corrupt): offset 0, 64 bytes"), "{err}");
    let (code, out, _) = folder.tmrun(&["info", "out.tmrun"]);
    assert_eq!(code, 3);
    assert!(out.contains("run-7"), "{out}");
}

#[test]
fn json_lists_what_is_missing_with_its_place() {
    let folder = Folder::with(&damaged());
    let (code, out, _) = folder.tmrun(&["salvage", "--json", "in.tmrun", "-o", "out.tmrun"]);
    assert_eq!(code, 3);
    let answer: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(answer["schema"], "tmrun/salvage/1");
    assert_eq!((&answer["kept_records"], &answer["lost_records"]), (&8.into(), &3.into()));
    let missing = answer["missing"].as_array().expect("a list");
    assert_eq!(missing.len(), 1);
    assert_eq!((&missing[0]["records"], &missing[0]["position"]), (&3.into(), &"0".into()));
    assert_eq!(missing[0]["bytes"], 256);
    let size = fs::metadata(folder.path("out.tmrun")).expect("there").len();
    assert_eq!(answer["bytes"], size);

    let (code, out, err) = folder.tmrun(&["salvage", "--json", "in.tmrun"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("-o"), "{err}");
}

#[test]
fn without_a_name_the_recording_goes_to_standard_output() {
    let folder = Folder::with(&small());
    let output = folder.output(&["salvage", "in.tmrun"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.starts_with(b"\x89TMRUN"));
    fs::write(folder.path("out.tmrun"), &output.stdout).expect("written");
    assert_eq!(folder.tmrun(&["verify", "out.tmrun"]).0, 0);
}
