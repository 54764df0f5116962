//! Foci: what only they asked for is a gap of its own reason for everything else.

mod support;

use std::process::Command;

use support::record::{level, scalar};
use support::{Builder, name};
use tmrun::scan::{FocusChange, Recording};
use tmrun_formats::wire::{Frame, LevelChange, Record, RecordHeader};
use tmrun_formats::{GapClass, GapReason, Level, LevelSource, NameId, Planes, Ticks};
use tmrun_probe_core::{ProfileRun, probe, span};

/// A change of the focus with this pattern.
fn focus(asked: u64, armed: u64, pattern: u32, old: u8, new: u8) -> Record {
    let (asked, armed, old, new) = (Ticks(asked), Ticks(armed), Level(old), Level(new));
    let source = LevelSource::APPLICATION;
    let header = RecordHeader::of::<LevelChange>(Level::PULSE);
    let change = LevelChange { asked, armed, old, new, source };
    Record::new(RecordHeader { ticks: asked, name: NameId(pattern), ..header }, &change)
}

/// Level 1 all along; from 2,000 to 3,000 statistics of `layers.3.*`, and beside them, from 2,500
/// on, tensors of a pattern whose name is not in the file.
fn file() -> Vec<u8> {
    let changes = [
        level(1_000, 1_010, 1, 1),
        focus(2_000, 2_010, 9, 0, 3),
        focus(2_500, 2_510, 77, 0, 2),
        focus(3_000, 3_010, 9, 3, 0),
    ];
    Builder::started()
        .meta(&[Frame::Name(name(9, "layers.3.*"))])
        .records(u16::MAX, &changes)
        .records(0, &[scalar(4_000, 2, 1.0)])
        .finish()
}

#[test]
fn what_only_a_focus_asked_for_is_not_requested_of_the_rest() {
    let file = file();
    let recording = Recording::open(&file, "test").expect("a header");
    assert_eq!(recording.verify(), []);
    assert_eq!(recording.levels().changes().len(), 1, "a focus is no level of every node");
    assert_eq!(recording.levels().last(), Some(Level::TIMING));
    let gaps: Vec<_> = recording
        .gaps()
        .iter()
        .map(|gap| {
            assert_eq!((gap.class, gap.lane), (GapClass::NotRequested, None));
            let planes = [Planes::TENSORS, Planes::STATISTICS, Planes::PHYSICAL_MEMORY];
            let has = planes.map(|plane| gap.planes.contains(plane));
            (gap.first.0, gap.last.0, gap.reason, has)
        })
        .collect();
    let end = 5_000;
    assert_eq!(
        gaps,
        [
            (1_000, 2_010, GapReason::LEVEL, [true, true, false]),
            // It has no node: no focus asks for it.
            (1_000, end, GapReason::LEVEL, [false, false, true]),
            (2_010, 3_000, GapReason::FOCUS, [false, true, false]),
            (2_010, end, GapReason::FOCUS, [true, false, false]),
            (3_000, end, GapReason::LEVEL, [false, true, false]),
        ]
    );
}

#[test]
fn info_shows_foci_by_their_pattern() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.tmrun");
    std::fs::write(&path, file()).expect("written");
    let info = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tmrun"));
        let output = command.arg("info").args(arguments).arg(&path).output().expect("tmrun runs");
        assert_eq!(output.status.code(), Some(0), "nothing is lost");
        String::from_utf8(output.stdout).expect("text")
    };
    let text = info(&[]);
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with("focus ")).collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].contains("layers.3.* 3 numerics from"), "{}", lines[0]);
    assert!(lines[1].contains("unnamed:77 2 metadata from"), "{}", lines[1]);
    assert!(lines[2].contains("layers.3.* ends at"), "{}", lines[2]);
    assert_eq!(text.lines().filter(|line| line.starts_with("level ")).count(), 1);
    let json: serde_json::Value = serde_json::from_str(&info(&["--json"])).expect("JSON");
    assert_eq!(json["levels"].as_array().map(Vec::len), Some(1));
    let first = serde_json::json!({
        "pattern": "layers.3.*", "level": 3, "name": "numerics", "old": 0,
        "source": "application", "asked_ns": 1_000, "armed_ns": 1_010
    });
    assert_eq!(json["foci"][0], first);
    assert_eq!(
        (&json["foci"][1]["pattern"], &json["foci"][2]["level"]),
        (&"unnamed:77".into(), &0.into())
    );
}

#[test]
fn a_recorded_focus_reads_back() {
    probe!(static PROBE: lanes = 1, slots = 64);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.tmrun");
    let run = ProfileRun::training("example", 1, "cpu").level(Level::PULSE);
    let node = PROBE.name("layers.3");
    let recording = PROBE.record(&path, run.focus("layers.*", Level::TIMING)).expect("it starts");
    drop((span!(PROBE, node), span!(PROBE, "forward")));
    PROBE.clear_focus("layers.*");
    recording.finish().expect("it ends");

    let file = std::fs::read(&path).expect("the file");
    let recording = Recording::open(&file, "run").expect("a header");
    assert_eq!(recording.verify(), []);
    let foci = recording.levels().foci().iter();
    let foci: Vec<_> = foci
        .map(|FocusChange { pattern, change }| {
            (recording.names().text(*pattern), change.old.0, change.new.0, change.source)
        })
        .collect();
    let (pattern, start) = (Some("layers.*"), LevelSource::START);
    assert_eq!(foci, [(pattern, 0, 1, start), (pattern, 1, 0, LevelSource::APPLICATION)]);
    let reasons = recording.gaps().iter().filter(|gap| gap.planes.contains(Planes::HOST_TIME));
    let reasons: Vec<_> = reasons.map(|gap| gap.reason).collect();
    assert_eq!(reasons, [GapReason::LEVEL, GapReason::FOCUS, GapReason::LEVEL]);
    assert_eq!(recording.counts().of(tmrun_formats::wire::Kind::Span), 1);
}
