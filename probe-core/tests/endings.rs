//! How a recording ends: well, badly, forgotten, by a panic; and the next one on the same probe.

mod support;

use std::error::Error;
use std::path::Path;

use support::read::{File, SCALAR, SPAN};
use tmrun_formats::wire::{CalibrationV1, Frame, RunV1, TerminalV1};
use tmrun_formats::{Level, LevelSource, Phase, Ticks};
use tmrun_probe_core::{ProfileRun, RecordError, Unavailable, probe, scalar, span};

fn read(path: &Path) -> File {
    File::finished(&std::fs::read(path).unwrap())
}

fn terminal(file: &File) -> TerminalV1<'_> {
    let terminals: Vec<_> = file
        .frames()
        .into_iter()
        .filter_map(|frame| match frame {
            Frame::Terminal(terminal) => Some(terminal),
            _ => None,
        })
        .collect();
    assert_eq!(terminals.len(), 1);
    assert!(matches!(file.frames().last(), Some(Frame::Terminal(_))), "the last word");
    terminals[0]
}

fn run() -> ProfileRun {
    ProfileRun::training("endings", 1, "cpu")
}

#[test]
fn the_file_says_how_the_run_ended() {
    probe!(static PROBE: lanes = 1, slots = 64);
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);

    let recording = PROBE.record(at("complete"), run()).unwrap();
    assert_eq!(recording.path(), at("complete"));
    scalar!(PROBE, "loss", 1.0);
    let summary = recording.finish().unwrap();
    let file = read(&at("complete"));
    assert_eq!((terminal(&file).complete, terminal(&file).reason), (true, None));
    assert_eq!(summary.records, file.records.len() as u64);
    assert_eq!(summary.bytes, std::fs::metadata(at("complete")).unwrap().len());

    let recording = PROBE.record(at("failed"), run()).unwrap();
    scalar!(PROBE, "loss", 2.0);
    recording.finish_failed("the loss is NaN").unwrap();
    let file = read(&at("failed"));
    assert_eq!(
        (terminal(&file).complete, terminal(&file).reason),
        (false, Some("the loss is NaN"))
    );
    assert_eq!(file.of(SCALAR).len(), 1);

    drop(PROBE.record(at("dropped"), run()).unwrap());
    let file = read(&at("dropped"));
    let reason = "the recording was dropped without being finished";
    assert_eq!((terminal(&file).complete, terminal(&file).reason), (false, Some(reason)));

    let path = at("panicked");
    let panicked = std::panic::catch_unwind(|| {
        let _recording = PROBE.record(&path, run()).unwrap();
        let _span = span!(PROBE, "inside");
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(panicked.is_err());
    let file = read(&path);
    let reason = "the thread that recorded panicked";
    assert_eq!((terminal(&file).complete, terminal(&file).reason), (false, Some(reason)));
    assert_eq!(file.of(SPAN).len(), 1, "the span that the panic ended");
}

#[test]
fn a_second_recording_names_its_lanes_and_goes_on_with_their_sequences() {
    probe!(static PROBE: lanes = 1, slots = 64);
    let dir = tempfile::tempdir().unwrap();
    let record = |name: &str, values: u32| {
        let path = dir.path().join(name);
        let recording = PROBE.record(&path, run()).unwrap();
        (0..values).for_each(|value| scalar!(PROBE, "value", f64::from(value)));
        recording.finish().unwrap();
        read(&path)
    };
    let (first, second) = (record("first", 10), record("second", 20));
    assert_eq!((first.stored(0)[0].position, second.stored(0)[0].position), (0, 10));
    for (file, sequence) in [(&first, 0), (&second, 10)] {
        let lanes = file.lanes();
        assert_eq!((lanes.len(), lanes[0].claim, lanes[0].sequence), (1, 0, sequence));
        let name = std::thread::current().name().unwrap().to_owned();
        assert_eq!(lanes[0].name, name);
        assert_eq!(file.name(&file.of(SCALAR)[0]), "value");
    }
    assert_eq!(second.of(SCALAR).len(), 20);
    assert_eq!(second.of(SCALAR)[0].f64_at(0), 0.0);
}

#[test]
fn a_file_that_exists_is_refused_and_left_alone_unless_it_may_be_replaced() {
    probe!(static PROBE: lanes = 1, slots = 64);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("precious");
    std::fs::write(&path, "precious").unwrap();
    let error = PROBE.record(&path, run()).unwrap_err();
    assert!(matches!(error, RecordError::Create { .. }));
    let text = error.to_string();
    assert!(text.contains("precious") && text.contains("ProfileRun::replace"), "{text}");
    assert!(error.source().is_some());
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    assert_eq!(PROBE.level(), None);
    PROBE.record(&path, run().replace(true)).unwrap().finish().unwrap();
    read(&path);
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    probe!(static PROBE: lanes = 1, slots = 64);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nowhere").join("run.tmrun");
    let text = PROBE.record(&path, run()).unwrap_err().to_string();
    assert!(text.contains("nowhere") && text.contains("could not be created"), "{text}");
    PROBE.record(dir.path().join("run.tmrun"), run()).unwrap().finish().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn rings_that_cannot_be_mapped_are_named_and_leave_no_file_behind() {
    use std::os::unix::fs::PermissionsExt;

    probe!(static PROBE: lanes = 1, slots = 64);
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("precious"), "precious").unwrap();
    std::fs::create_dir(at("shared")).unwrap();
    std::fs::set_permissions(at("shared"), std::fs::Permissions::from_mode(0o777)).unwrap();
    let refused = [
        at("precious"),
        at("precious").join("rings"),
        at("nowhere").join("rings"),
        // Others could write to it.
        at("shared"),
        // This user's, and nobody can write to it.
        format!("/proc/{}", std::process::id()).into(),
    ];
    let path = at("run.tmrun");
    for folder in &refused {
        for replace in [false, true] {
            let run = run().rings_in(folder).replace(replace);
            let error = PROBE.record(&path, run).unwrap_err();
            let RecordError::Rings { path: named, .. } = &error else { panic!("{error}") };
            assert!(named.starts_with(folder), "{error}");
            let text = error.to_string();
            assert!(text.contains(&*named.to_string_lossy()), "{text}");
            assert!(text.contains("ProfileRun::rings_in"), "{text}");
            assert!(error.source().is_some());
            assert!(!path.exists(), "with replace {replace}: {text}");
            assert_eq!(PROBE.level(), None);
        }
    }
    assert_eq!(std::fs::read(at("precious")).unwrap(), b"precious");
    let run_over = run().rings_in(at("precious")).replace(true);
    std::fs::write(&path, "an old one").unwrap();
    assert!(PROBE.record(&path, run_over).is_err());
    let there = std::fs::read(&path).unwrap();
    assert_eq!(there, b"an old one", "a file that was there before stays as it was");
    assert_eq!(std::fs::read_dir(at("shared")).unwrap().count(), 0);
    assert!(!at("nowhere").exists());
    for rings in [None, Some(at("rings"))] {
        let run = rings.iter().fold(run().replace(true), |run, rings| run.rings_in(rings));
        let recording = PROBE.record(&path, run).unwrap();
        assert_eq!(recording.rings().is_some(), rings.is_some());
        scalar!(PROBE, "loss", 1.0);
        recording.finish().unwrap();
        assert_eq!(read(&path).of(SCALAR).len(), 1);
    }
}

#[test]
fn a_second_recording_at_once_is_refused_and_harms_no_file() {
    probe!(static PROBE: lanes = 1, slots = 64);
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("run.tmrun"), dir.path().join("other.tmrun"));
    let recording = PROBE.record(&path, run()).unwrap();
    scalar!(PROBE, "loss", 1.0);
    for path in [&path, &other] {
        let error = PROBE.record(path, run().replace(true)).unwrap_err();
        assert!(matches!(error, RecordError::Unavailable(Unavailable::Busy)));
        let text = error.to_string();
        assert!(text.contains("being recorded already") && text.contains("finish"), "{text}");
    }
    assert!(!other.exists());
    recording.finish().unwrap();
    assert_eq!(read(&path).of(SCALAR).len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_names_the_file_and_what_is_whole() {
    probe!(static PROBE: lanes = 1, slots = 64);
    let error = PROBE.record("/dev/full", run().replace(true)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("/dev/full could not be created"), "{text}");
    assert!(Path::new("/dev/full").exists(), "what was there before is not removed");
    assert_eq!(PROBE.level(), None);
    let dir = tempfile::tempdir().unwrap();
    PROBE.record(dir.path().join("next"), run()).unwrap().finish().unwrap();
}

#[test]
fn the_file_describes_the_run_and_its_clock_at_both_ends() {
    probe!(static PROBE: lanes = 2, slots = 64);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tmrun");
    let run = ProfileRun::inference("serve::reply", 42, "cuda:1")
        .run_id("chosen")
        .correlation_id("with others")
        .warmup_steps(3)
        .profile("bench")
        .cargo_features(["cuda", "flash"])
        .cfg(["feature=\"x\""])
        .analysis_id("analysis")
        .build_id("build")
        .candle_version("0.11.1")
        .measured_region_device_synchronized()
        .tag("key \u{1}\"", "value \u{1f980}")
        .level(Level::PULSE);
    let recording = PROBE.record(&path, run).unwrap();
    PROBE.set_level(Level::NUMERICS);
    recording.finish().unwrap();
    let file = read(&path);
    let frames = file.frames();
    let Frame::Run(found) = frames[0] else { panic!("the run comes first") };
    let expected = RunV1 {
        run: found.run,
        run_id: "chosen",
        correlation_id: Some("with others"),
        entrypoint: "serve::reply",
        device: "cuda:1",
        phase: Phase::INFER,
        capture_step: 42,
        warmup_steps: 3,
        device_synchronized: false,
        measured_region_synchronized: true,
        candle_version: Some("0.11.1"),
        profile: "bench",
        analysis_id: Some("analysis"),
        build_id: Some("build"),
        pid: Some(std::process::id()),
        ring_slots: 64,
        ..found
    };
    assert_eq!(found, expected);
    assert!(!found.clock.is_empty());
    let texts = |wanted: fn(&Frame<'_>) -> Option<String>| -> Vec<String> {
        frames.iter().filter_map(wanted).collect()
    };
    let features = texts(|frame| match frame {
        Frame::CargoFeature(item) => Some(item.text.to_owned()),
        _ => None,
    });
    assert_eq!(features, ["cuda", "flash"]);
    let tags = texts(|frame| match frame {
        Frame::Tag(tag) => Some(format!("{}={}", tag.key, tag.value)),
        _ => None,
    });
    assert_eq!(tags, ["key \u{1}\"=value \u{1f980}"]);
    let samples: Vec<CalibrationV1> = frames
        .iter()
        .filter_map(|frame| match frame {
            Frame::Calibration(sample) => Some(*sample),
            _ => None,
        })
        .collect();
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    assert!(samples.len() >= 2 && !first.set_aside);
    assert!(first.ticks < last.ticks && first.ns < last.ns);
    assert!(last.ticks <= terminal(&file).ticks && first.ticks > Ticks(0));
    let costs = frames.iter().filter(|frame| matches!(frame, Frame::RecorderCost(_)));
    assert_eq!(costs.count(), 2);
    let sources: Vec<_> =
        file.of(support::read::LEVEL).iter().map(|r| LevelSource(r.payload[18])).collect();
    assert_eq!(sources, [LevelSource::START, LevelSource::APPLICATION]);
}

#[test]
fn two_recordings_have_two_identities_and_their_headers_say_so() {
    probe!(static PROBE: lanes = 1, slots = 64);
    let dir = tempfile::tempdir().unwrap();
    let ids = ["a", "b"].map(|name| {
        let path = dir.path().join(name);
        PROBE.record(&path, run()).unwrap().finish().unwrap();
        let file = read(&path);
        let Frame::Run(found) = file.frames()[0] else { panic!("the run comes first") };
        assert_eq!(std::fs::read(&path).unwrap()[16..32], found.run.0);
        assert_eq!(found.run_id, found.run.to_string());
        found.run
    });
    assert_ne!(ids[0], ids[1]);
}
