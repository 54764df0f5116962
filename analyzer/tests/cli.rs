//! What needs a process: exit codes, which stream says what, pipes and files.

mod support;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::record::{gap, level, scalar, span, step};
use support::{Builder, lane, run, small};
use tempfile::TempDir;
use tmrun_formats::GapReason;
use tmrun_formats::wire::{Frame, RunV1, TagV1};

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tmrun(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tmrun"));
        command.current_dir(self.folder.path()).args(arguments).output().expect("tmrun runs")
    }

    /// The exit code, standard output and standard error of a command over this file.
    fn over(&self, file: &[u8], arguments: &[&str]) -> (i32, String, String) {
        fs::write(self.path("run.tmrun"), file).expect("written");
        let mut all = arguments.to_vec();
        all.push("run.tmrun");
        said(&self.tmrun(&all))
    }
}

fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    (output.status.code().expect("an exit code"), text(&output.stdout), text(&output.stderr))
}

fn piped(arguments: &[&str]) -> std::process::Child {
    Command::new(env!("CARGO_BIN_EXE_tmrun"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tmrun runs")
}

fn with_overrun() -> Vec<u8> {
    Builder::started()
        .records(0, &[gap(1_500, 1_600, 12, 0, GapReason::OVERRUN), scalar(1_700, 2, 1.0)])
        .finish()
}

fn damaged() -> Vec<u8> {
    let mut file = small();
    let chunk = support::naive::chunks(&file)[2];
    file[chunk.offset + 100] ^= 1;
    file
}

/// Without its last chunk and what follows.
fn not_finished() -> Vec<u8> {
    let mut file = small();
    file.truncate(support::naive::chunks(&file)[5].end);
    file
}

#[test]
fn info_is_0_when_nothing_is_lost_and_3_when_something_is() {
    let bench = Bench::new();
    let (code, out, err) = bench.over(&small(), &["info"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("file"), "{out}");
    assert!(out.contains("run-7") && out.contains("finished"), "{out}");

    let (code, out, err) = bench.over(&with_overrun(), &["info"]);
    assert_eq!(code, 3);
    assert!(out.starts_with("LOST      12 records in 1 gap (overrun 1)"), "{out}");
    assert_eq!(err, "run.tmrun: lost 12 records in 1 gap (overrun 1)\n");

    let (code, _, err) = bench.over(&damaged(), &["info"]);
    assert_eq!(code, 3);
    assert!(err.contains("corrupt"), "{err}");
}

#[test]
fn verify_is_0_1_and_3() {
    let bench = Bench::new();
    let (code, out, err) = bench.over(&small(), &["verify"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, "run.tmrun: intact: 10 chunks and 11 records\n");

    let (code, out, _) = bench.over(&damaged(), &["verify"]);
    assert_eq!(code, 1);
    assert!(out.contains("CRC of the payload at offset"), "{out}");
    assert!(out.contains("expected 0x") && out.contains("found 0x"), "{out}");

    let (code, out, err) = bench.over(&with_overrun(), &["verify"]);
    assert_eq!(code, 3);
    assert!(out.contains("intact"), "{out}");
    assert_eq!(err, "run.tmrun: lost 12 records in 1 gap (overrun 1)\n");
}

#[test]
fn a_file_that_is_not_finished_is_0_and_said_so() {
    let bench = Bench::new();
    for command in ["info", "verify"] {
        let (code, _, err) = bench.over(&not_finished(), &[command]);
        assert_eq!(code, 0, "{command}");
        assert!(err.starts_with("run.tmrun: not finished: it has no trailer"), "{command}: {err}");
    }
}

#[test]
fn a_torn_tail_is_lost() {
    let bench = Bench::new();
    let mut file = small();
    file.truncate(support::naive::chunks(&file)[5].end - 1);
    let (code, out, err) = bench.over(&file, &["info", "--json"]);
    assert_eq!(code, 3);
    assert!(err.contains("torn"), "{err}");
    let info: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(info["file"]["status"], "torn");
    assert_eq!(bench.over(&file, &["verify"]).0, 1);
}

#[test]
fn empty_cases_have_answers() {
    let bench = Bench::new();
    for command in ["info", "verify"] {
        let (code, out, err) = bench.over(b"", &[command]);
        assert_eq!((code, out.as_str()), (1, ""));
        assert!(err.contains("run.tmrun: ") && err.contains("the file is empty"), "{err}");

        let (code, _, err) = bench.over(&Builder::new().unfinished(), &[command]);
        assert_eq!(code, 0, "a header and nothing else");
        assert!(err.contains("not finished") && err.contains("all of its 0 chunks"), "{err}");

        let (code, _, err) = bench.over(&Builder::started().finish(), &[command]);
        assert_eq!((code, err.as_str()), (0, ""), "a run without records");

        let one = Builder::started().records(0, &[scalar(2_000, 2, 0.5)]).finish();
        let (code, _, err) = bench.over(&one, &[command]);
        assert_eq!((code, err.as_str()), (0, ""), "one record");
    }
}

#[test]
fn what_is_no_recording_is_1_with_the_reason() {
    let bench = Bench::new();
    let (code, _, err) = bench.over(&[b'x'; 100], &["info"]);
    assert_eq!(code, 1);
    assert!(err.contains("is this a .tmrun recording?"), "{err}");

    let (code, _, err) = said(&bench.tmrun(&["info", "missing.tmrun"]));
    assert_eq!(code, 1);
    assert!(err.starts_with("tmrun: missing.tmrun: cannot be read"), "{err}");

    let (code, _, err) = said(&bench.tmrun(&["info", "."]));
    assert_eq!(code, 1);
    assert!(err.contains("not a regular file"), "{err}");

    let (code, _, err) = said(&bench.tmrun(&["verify", "."]));
    assert_eq!(code, 1);
    assert!(err.contains("bundle.json is no regular file, so this is no bundle"), "{err}");
}

#[test]
fn a_wrong_command_line_is_2() {
    let bench = Bench::new();
    for arguments in [&["info"][..], &["verify", "a", "b"], &["info", "--what", "a"], &["nothing"]]
    {
        assert_eq!(bench.tmrun(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn every_help_has_examples_and_the_exit_codes() {
    let bench = Bench::new();
    for command in ["info", "verify", "convert", "audit"] {
        let (code, out, _) = said(&bench.tmrun(&[command, "--help"]));
        assert_eq!(code, 0);
        assert!(out.matches(&format!("tmrun {command}")).count() >= 3, "{out}");
        assert!(out.contains("Exit codes:"), "{out}");
    }
    assert!(said(&bench.tmrun(&["--help"])).1.contains("Exit codes:"));
}

#[test]
fn standard_input_gives_the_same_answer_as_the_file() {
    let bench = Bench::new();
    let file = small();
    let (_, out, _) = bench.over(&file, &["info", "--json"]);
    let mut child = piped(&["info", "--json", "-"]);
    child.stdin.take().expect("stdin").write_all(&file).expect("written");
    let (code, through_pipe, _) = said(&child.wait_with_output().expect("it ends"));
    assert_eq!(code, 0);
    assert_eq!(out.replace("run.tmrun", "standard input"), through_pipe);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = piped(&["info", "-"]);
    drop(child.stdout.take());
    child.stdin.take().expect("stdin").write_all(&small()).expect("written");
    let (code, _, err) = said(&child.wait_with_output().expect("it ends"));
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn output_goes_to_a_file_that_only_force_replaces() {
    let bench = Bench::new();
    let arguments = ["info", "--json", "-o", "info.json"];
    let (code, out, _) = bench.over(&small(), &arguments);
    assert_eq!((code, out.as_str()), (0, ""));
    let written = fs::read(bench.path("info.json")).expect("written");
    serde_json::from_slice::<Value>(&written).expect("JSON");

    let (code, _, err) = bench.over(&with_overrun(), &arguments);
    assert_eq!(code, 1);
    assert!(err.contains("info.json: exists already; --force replaces it"), "{err}");
    assert_eq!(fs::read(bench.path("info.json")).expect("there"), written);

    let arguments = ["info", "--json", "--force", "-o", "info.json"];
    assert_eq!(bench.over(&with_overrun(), &arguments).0, 3);
    assert_ne!(fs::read(bench.path("info.json")).expect("there"), written);
    assert_eq!(fs::read_dir(bench.folder.path()).expect("a folder").count(), 2, "nothing else");
}

#[test]
fn info_json_says_what_is_in_the_file() {
    let bench = Bench::new();
    let (_, out, _) = bench.over(&small(), &["info", "--json"]);
    let info: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(info["schema"], "tmrun/info/1");
    let records = serde_json::json!({
        "span": 4, "step": 2, "tensor": 1, "stats": 1, "scalar": 1, "level": 1, "gap": 1
    });
    assert_eq!(info["records"], records);
    assert_eq!(info["levels"][0]["level"], 2);
    assert_eq!(info["levels"][0]["source"], "start");
    assert_eq!(info["lanes"][0]["records"], 7);
    assert_eq!(info["lanes"][0]["name"], "main");
    assert_eq!(info["lanes"][2]["recorder"], true);
    assert_eq!(info["steps"]["count"], 1);
    assert_eq!(info["clock"]["calibrations"], 2);
    assert_eq!(info["terminal"]["complete"], true);
    assert_eq!(info["file"]["chunks"]["records"], 6);
    assert_eq!(info["file"]["trailer"], true);
    let gap = serde_json::json!({
        "class": "not_requested", "reason": "focus", "lane": 0, "first_ns": 1400,
        "last_ns": 1500, "records": 1, "groups": 1, "planes": ["host_time"]
    });
    assert!(info["gaps"].as_array().expect("gaps").contains(&gap), "{}", info["gaps"]);
    let keys = [
        "\"schema\"",
        "\"file\"",
        "\"run\"",
        "\"records\":{\"span\"",
        "\"levels\"",
        "\"lanes\"",
        "\"gaps\"",
    ];
    let places: Vec<_> = keys.iter().map(|key| out.find(key)).collect();
    assert!(places.is_sorted() && places[0].is_some(), "keys keep their order");
}

#[test]
fn verify_json_lists_each_finding() {
    let bench = Bench::new();
    let (code, out, _) = bench.over(&damaged(), &["verify", "--json"]);
    assert_eq!(code, 1);
    let answer: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(answer["intact"], false);
    assert_eq!(answer["findings"].as_array().map(Vec::len), Some(1));
    let finding = &answer["findings"][0];
    assert_eq!(finding["what"], "CRC of the payload");
    assert!(finding["expected"].as_str().is_some_and(|text| text.starts_with("0x")));
    let (_, out, _) = bench.over(&small(), &["verify", "--json"]);
    let answer: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&answer["intact"], &answer["lost_gaps"]), (&true.into(), &0.into()));
}

#[test]
fn hostile_names_are_valid_json_and_cannot_reach_the_terminal() {
    let bench = Bench::new();
    let long = "n".repeat(64 << 10);
    let names = [
        "\u{0}\u{1}\u{7}\u{8}\u{1b}[2J\r\n\t\u{7f}\u{9b}",
        "quote \" backslash \\ slash / </script>",
        "\u{2028}\u{2029}\u{202e}\u{feff}",
        "emoji 🙂 é \u{10ffff}",
        "",
        &long,
    ];
    let mut frames: Vec<Frame<'_>> = Vec::new();
    for (i, name) in names.iter().enumerate() {
        frames.push(Frame::Tag(TagV1 { key: name, value: name }));
        frames.push(Frame::Lane(lane(i as u16 + 1, name)));
        frames.push(Frame::Name(support::name(i as u32 + 1, name)));
    }
    frames.push(Frame::Run(RunV1 { run_id: names[0], entrypoint: names[1], ..run() }));
    let file = Builder::new().meta(&frames).records(1, &[step(1_000, 1, false)]).finish();
    let (_, out, _) = bench.over(&file, &["info", "--json"]);
    let info: Value = serde_json::from_str(&out).expect("JSON");
    for (i, name) in names.iter().enumerate() {
        assert_eq!(info["run"]["tags"][i]["value"], *name);
        assert_eq!(info["lanes"][i]["name"], *name);
    }
    assert_eq!(info["run"]["run_id"], names[0]);
    assert!(!out.trim_end().contains(|c: char| c < ' ' || c == '\u{2028}' || c == '\u{2029}'));

    let (_, page, _) = bench.over(&file, &["info"]);
    let controls = |c: char| c.is_control() && c != '\n';
    assert!(!page.contains(controls) && !page.contains('\u{202e}'), "{page:?}");
    assert!(page.len() < 8_000, "{} bytes", page.len());
}

#[test]
fn audit_is_wired_in() {
    let bench = Bench::new();
    fs::write(bench.path("trace.json"), b"{}").expect("written");
    let (code, _, err) = said(&bench.tmrun(&["audit", "trace.json"]));
    assert_eq!(code, 1);
    assert!(err.contains("rejected"), "{err}");
}

#[test]
fn many_gaps_and_lanes_stay_a_short_page() {
    let bench = Bench::new();
    let mut builder = Builder::started().records(u16::MAX, &[level(1_000, 1_000, 1, 1)]);
    for i in 0..60 {
        let time = 1_000 + u64::from(i) * 10;
        let overrun = gap(time, time + 5, 1, i, GapReason::OVERRUN);
        builder = builder.records(i, &[overrun, span(time, time + 9, 1, 1)]);
    }
    let (code, page, _) = bench.over(&builder.finish(), &["info"]);
    assert_eq!(code, 3);
    assert!(page.lines().count() < 70, "{page}");
    assert!(page.contains("more; --json lists all"), "{page}");
}

#[test]
fn the_input_is_never_replaced_by_the_result_even_with_force() {
    let bench = Bench::new();
    let file = small();
    for command in ["info", "verify", "convert"] {
        let (code, _, stderr) = bench.over(&file, &[command, "-o", "run.tmrun", "--force"]);
        assert_eq!(code, 1, "{command}");
        assert!(stderr.contains("is the input itself"), "{stderr}");
        fs::hard_link(bench.path("run.tmrun"), bench.path("link.tmrun")).expect("linked");
        let (code, ..) = bench.over(&file, &[command, "-o", "link.tmrun", "--force"]);
        assert_eq!(code, 1, "{command} over a link");
        fs::remove_file(bench.path("link.tmrun")).expect("removed");
        assert_eq!(fs::read(bench.path("run.tmrun")).expect("it is there"), file);
    }
}

#[test]
fn a_folder_is_no_place_for_a_result() {
    let bench = Bench::new();
    let (code, _, stderr) = bench.over(&small(), &["convert", "-o", "."]);
    assert!(code == 1 && stderr.contains("is a folder"), "{stderr}");
    let (code, _, stderr) = bench.over(&small(), &["convert", "-o", "nowhere/out.json"]);
    assert!(code == 1 && stderr.contains("nowhere/out.json"), "{stderr}");
    assert!(!stderr.contains(".tmrun-"), "{stderr}");
}

#[test]
fn convert_has_an_answer_to_nothing_a_header_an_empty_run_and_one_record() {
    let bench = Bench::new();
    let header = &small()[..64];
    let (code, out, stderr) = bench.over(&[], &["convert"]);
    assert!(code == 1 && out.is_empty() && stderr.contains("run.tmrun"), "{stderr}");
    let one = Builder::started().records(0, &[scalar(2_000, 0, 0.5)]).finish();
    let empty = Builder::started().finish();
    for (file, values) in [(header, 0), (&empty[..], 0), (&one[..], 1)] {
        let (code, out, stderr) = bench.over(file, &["convert"]);
        assert_eq!(code, 0, "{stderr}");
        let document: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(document["values"].as_array().map(Vec::len), Some(values));
    }
}
