//! What commands print, whatever is in their inputs: nothing that acts on a terminal, an error that names
//! what cannot be written, and no reading of what can be read once.

mod support;

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Command;
use std::ptr;

use serde_json::{Value, json};
use support::Builder;
use support::command::Folder;
use support::record::{scalar, span_in, step};
use tmrun::escape::acts;
use tmrun_formats::wire::{Frame, RunV1};

/// Of each kind of what acts on a terminal one.
const HOSTILE: &str = "a\u{1b}[31m\n\u{7f}\u{9b}2J\u{61c}\u{202e}\u{2028}\u{feff}y";

/// Two steps of spans and values that are called so, in `in.tmrun` and in a file that is called so.
fn hostile() -> Folder {
    let run = RunV1 { run_id: HOSTILE, entrypoint: HOSTILE, device: HOSTILE, ..support::run() };
    let mut builder = Builder::new().meta(&[
        Frame::Run(run),
        Frame::Calibration(support::calibration(1_000, 50_000)),
        Frame::Name(support::name(10, HOSTILE)),
        Frame::Lane(support::lane(0, HOSTILE)),
    ]);
    for number in 1..=2_u64 {
        let (at, id) = (number * 10_000, number as u32 * 100);
        let records = [
            step(at, number, false),
            span_in(0, (at + 10, at + 500 * number), id, 10),
            scalar(at + 1_500, 10, number as f64),
            step(at + 2_000, number, true),
        ];
        builder = builder.records(0, &records);
    }
    let folder = Folder::with(&builder.finish());
    fs::copy(folder.path("in.tmrun"), folder.path(HOSTILE)).unwrap();
    for (step, bundle) in [("1", "one"), ("2", "two")] {
        let (code, _, err) = folder.tmrun(&["bundle", HOSTILE, "--step", step, "-o", bundle]);
        assert_eq!(code, 0, "{err}");
    }
    let plan = json!({
        "schema": "candle-graph/campaign/1", "campaign_id": HOSTILE, "entrypoint": HOSTILE,
        "planned": [{ "capture_step": 1, "bundle": "one" }],
    });
    fs::write(folder.path("plan.json"), plan.to_string()).unwrap();
    folder
}

/// Nothing in it acts but line ends.
fn is_tame(text: &str) -> bool {
    !text.contains(|c| acts(c) && c != '\n')
}

#[test]
fn nothing_in_the_json_of_a_command_acts_on_a_terminal() {
    let folder = hostile();
    let named = format!("{HOSTILE}-bundle");
    let commands = [
        &["info", "--json", HOSTILE][..],
        &["verify", "--json", HOSTILE],
        &["salvage", "--json", HOSTILE, "-o", "whole.tmrun"],
        &["bundle", HOSTILE, "--step", "1", "-o", &named],
        &["verify", &named],
        &["summary", "--json", HOSTILE, "--step", "1"],
        &["overview", HOSTILE, "--step", "1"],
        &["query", HOSTILE, "--step", "1", "--kind", "labels"],
        &["query", "one", "--kind", "spans", "--all"],
        &["diff", HOSTILE, "--step", "1", "--step", "2"],
        &["compare", "--baseline", "one", "--candidate", "two"],
        &["series", "one", "two"],
        &["campaign-status", "plan.json"],
    ];
    for command in commands {
        let (code, out, err) = folder.tmrun(command);
        assert_eq!(code, 0, "{command:?}: {err}");
        assert!(is_tame(&out), "{command:?}: {out:?}");
        let escapes = ["\\u007f", "\\u009b", "\\u061c", "\\u202e", "\\u2028", "\\ufeff"];
        assert!(escapes.iter().all(|escape| out.contains(escape)), "{command:?}: {out:?}");
        let document: Value = serde_json::from_str(&out).unwrap();
        assert!(has(&document, HOSTILE), "{command:?}: it is the same text: {document}");
    }
    // A manifest may say anything.
    let manifest = fs::read_to_string(folder.path("one/bundle.json")).unwrap();
    let manifest = manifest.replace("report.md", "a\u{9b}2Jx\u{202e}y");
    fs::write(folder.path("one/bundle.json"), manifest).unwrap();
    let (code, out, err) = folder.tmrun(&["verify", "one"]);
    assert_eq!(code, 1);
    assert!(is_tame(&out) && out.contains("a\\u009b2Jx\\u202ey"), "{out:?}");
    assert!(is_tame(&err) && err.contains("a\\u{9b}2Jx\\u{202e}y"), "{err:?}");
}

/// Whether a text of a document begins or ends so.
fn has(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found.contains(text),
        Value::Array(all) => all.iter().any(|one| has(one, text)),
        Value::Object(fields) => fields.iter().any(|(key, one)| key == text || has(one, text)),
        _ => false,
    }
}

#[test]
fn documents_of_a_bundle_stay_as_their_formats_write_them() {
    let folder = hostile();
    let trace = fs::read_to_string(folder.path("one/trace.jsonl")).unwrap();
    assert!(trace.contains('\u{9b}') && trace.contains('\u{202e}'), "{trace:?}");
    let (code, out, err) = folder.tmrun(&["convert", "in.tmrun"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains('\u{9b}'), "{out:?}");
}

#[test]
fn nothing_on_a_page_or_in_a_message_acts_on_a_terminal() {
    let folder = hostile();
    for command in [
        &["info", HOSTILE][..],
        &["verify", HOSTILE],
        &["salvage", HOSTILE, "-o", "whole.tmrun"],
        &["summary", HOSTILE, "--step", "1"],
        &["summary", HOSTILE],
        &["audit", HOSTILE],
        &["query", HOSTILE, "--kind", "spans", "--step", "9"],
        &["info", &format!("{HOSTILE}-gone")],
        // What is typed wrong comes back in the message.
        &[HOSTILE],
        &["info", &format!("--{HOSTILE}")],
        &["query", "x", "--kind", HOSTILE],
        &["query", "x", "--kind", "spans", "--step", HOSTILE],
    ] {
        let (_, out, err) = folder.tmrun(command);
        assert!(is_tame(&out) && is_tame(&err), "{command:?}: {out:?} {err:?}");
        assert!(out.contains("\\u{9b}2J") || err.contains("\\u{9b}2J"), "{command:?}: {out}{err}");
    }
    let (code, _, err) = folder.tmrun(&["info", &format!("{HOSTILE}-gone")]);
    assert_eq!((code, err.lines().count()), (1, 1), "{err:?}");
    assert_eq!(folder.tmrun(&[HOSTILE]).0, 2);
}

/// What a command shows on a terminal, and its exit code.
fn shown(folder: &Folder, arguments: &[&str]) -> (i32, String) {
    let (mut screen, mut tty) = (-1, -1);
    // SAFETY: both places are live and writable, and name, settings and size may be null.
    let opened = unsafe {
        libc::openpty(&mut screen, &mut tty, ptr::null_mut(), ptr::null_mut(), ptr::null_mut())
    };
    assert_eq!(opened, 0, "{}", io::Error::last_os_error());
    // SAFETY: both were just opened, and nothing else owns them.
    let (screen, tty) = unsafe { (OwnedFd::from_raw_fd(screen), OwnedFd::from_raw_fd(tty)) };
    let mut child = folder.command(arguments).stdout(tty).spawn().unwrap();
    let (mut screen, mut seen, mut buffer) = (File::from(screen), Vec::new(), [0; 4096]);
    // It ends with an error when nobody has the other end any more.
    while let Ok(read @ 1..) = screen.read(&mut buffer) {
        seen.extend(&buffer[..read]);
    }
    let code = child.wait().unwrap().code().unwrap();
    // The terminal's own way to begin a line.
    (code, String::from_utf8(seen).unwrap().replace("\r\n", "\n"))
}

#[test]
fn nothing_that_is_shown_on_a_terminal_acts_on_it() {
    let folder = hostile();
    for command in [
        &["info", HOSTILE][..],
        &["info", "--json", HOSTILE],
        &["verify", HOSTILE],
        &["convert", HOSTILE],
        &["convert", "--format", "jsonl", HOSTILE],
        &["summary", HOSTILE, "--step", "1"],
        &["overview", HOSTILE, "--step", "1"],
        &["query", HOSTILE, "--step", "1", "--kind", "labels"],
        &["query", "one", "--kind", "spans", "--all"],
        &["query", "one", "--kind", "slowest-host"],
        &["diff", HOSTILE, "--step", "1", "--step", "2"],
        &["compare", "--baseline", "one", "--candidate", "two"],
        &["series", "one", "two"],
        &["campaign-status", "plan.json"],
    ] {
        let (code, screen) = shown(&folder, command);
        assert_eq!(code, 0, "{command:?}: {screen:?}");
        assert!(is_tame(&screen), "{command:?}: {screen:?}");
        let escaped = ["\\u{9b}2J", "\\u009b2J"].iter().any(|text| screen.contains(text));
        assert!(escaped, "{command:?}: {screen:?}");
    }
    // Elsewhere it is as its format writes it.
    assert!(!is_tame(&folder.tmrun(&["convert", HOSTILE]).1));
}

#[test]
fn a_long_message_keeps_its_reason_and_says_that_it_was_cut() {
    let folder = Folder::with(b"");
    let (code, _, err) = folder.tmrun(&["info", &"x".repeat(5_000)]);
    assert_eq!(code, 1);
    assert!(err.starts_with("tmrun: xxx") && err.contains("characters left out"), "{err}");
    assert!(err.contains("cannot be read") && err.contains("too long"), "{err}");
    assert!(err.len() < 2_500, "{} bytes", err.len());
}

#[test]
fn a_full_device_is_1_and_standard_output_is_named() {
    let folder = hostile();
    for command in [
        &["info", "in.tmrun"][..],
        &["info", "--json", "in.tmrun"],
        &["verify", "in.tmrun"],
        &["verify", "one"],
        &["salvage", "in.tmrun"],
        &["salvage", "in.tmrun", "-o", "whole.tmrun"],
        &["convert", "in.tmrun"],
        &["summary", "one"],
        &["query", "one", "--kind", "spans"],
        &["overview", "one"],
        &["diff", "one", "two"],
        &["protocol"],
        &["bundle", "in.tmrun", "--step", "1", "-o", "three"],
        &["compare", "--baseline", "one", "--candidate", "two"],
        &["series", "one", "two"],
        &["campaign-status", "plan.json"],
        &["--help"],
        &["--version"],
        &["query", "--help"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut tmrun = Command::new(env!("CARGO_BIN_EXE_tmrun"));
        tmrun.current_dir(folder.path("")).args(command).stdout(full);
        let output = tmrun.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command:?}: {err}");
        assert!(err.contains("standard output: cannot be written: No space"), "{command:?}: {err}");
    }
}

#[test]
fn a_file_on_a_full_device_is_named() {
    let folder = hostile();
    let (code, _, err) = folder.tmrun(&["info", "in.tmrun", "-o", "/dev/full"]);
    assert_eq!(code, 1);
    assert!(err.contains("/dev/full: cannot be written: No space"), "{err}");
}

#[test]
fn standard_input_is_read_once() {
    let folder = Folder::with(b"");
    for command in [
        &["diff", "-", "-"][..],
        &["compare", "--baseline", "-", "--candidate", "-"],
        &["compare", "--unverified-traces", "--baseline", "-", "-", "--candidate", "x"],
        &["series", "-", "-"],
    ] {
        let (code, out, err) = folder.tmrun(command);
        assert_eq!((code, &*out), (2, ""), "{command:?}: {err}");
        assert!(err.contains("- is standard input, which can be read once"), "{err}");
    }
}

#[test]
fn standard_output_is_no_place_for_a_bundle() {
    let folder = hostile();
    let (code, out, err) = folder.tmrun(&["bundle", "in.tmrun", "--step", "1", "-o", "-"]);
    assert_eq!((code, &*out), (2, ""));
    assert!(err.contains("-o - is standard output"), "{err}");
    assert!(!folder.path("-").exists());
    let (code, ..) = folder.tmrun(&["bundle", "in.tmrun", "--step", "1", "-o", "./-"]);
    assert!(code == 0 && folder.path("-/bundle.json").is_file());
}
