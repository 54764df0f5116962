//! A file that is cut short while the command reads it.

mod support;

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use support::Builder;
use support::record::{scalar, step};

/// So many observations that their JSON fits no pipe and no buffer.
fn long() -> Vec<u8> {
    let mut builder = Builder::started().records(0, &[step(1_000, 1, false)]);
    let scalars: Vec<_> = (0..1_000).map(|i| scalar(1_100 + i, 2, 0.5)).collect();
    for _ in 0..300 {
        builder = builder.records(0, &scalars);
    }
    builder.finish()
}

const NAME: &str = "run\nning.tmrun";

/// Starts the command on a file of that name in this folder.
fn start(folder: &Path, arguments: &[&str]) -> Child {
    fs::write(folder.join(NAME), long()).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tmrun"));
    command.current_dir(folder).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("tmrun runs")
}

fn cut(folder: &Path) {
    let file = OpenOptions::new().write(true).open(folder.join(NAME));
    file.and_then(|file| file.set_len(4096)).expect("cut");
}

const LINE: &str =
    "tmrun: run\\nning.tmrun: was cut short while it was read, or can be read no more\n";

#[test]
fn a_file_that_is_cut_short_ends_the_command_with_a_line_that_names_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [&["convert", "--format", "jsonl", NAME][..], &["salvage", NAME]] {
        let mut child = start(folder.path(), arguments);
        // Something is written: the file is mapped, and the command waits for whoever reads.
        let mut output = child.stdout.take().expect("a pipe");
        output.read_exact(&mut [0; 100]).expect("output");
        cut(folder.path());
        output.read_to_end(&mut Vec::new()).expect("the rest of what there is");
        let ended = child.wait_with_output().expect("it ends");
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {:?}", ended.status);
        assert_eq!(String::from_utf8_lossy(&ended.stderr), LINE);
    }
}

/// Waits until this process has mapped the file; false when it ended before.
#[cfg(target_os = "linux")]
fn has_mapped(child: &mut Child) -> bool {
    let maps = format!("/proc/{}/maps", child.id());
    while child.try_wait().expect("a child").is_none() {
        // (A newline is octal there.)
        if fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("run\\012ning.tmrun")) {
            return true;
        }
    }
    false
}

#[cfg(target_os = "linux")]
#[test]
fn every_command_that_maps_its_file_ends_so() {
    let commands = [
        &["info", NAME][..],
        &["verify", NAME],
        &["query", NAME, "--kind", "slow-steps"],
        &["summary", NAME, "--step", "1"],
        &["bundle", NAME, "--step", "1", "-o", "bundle"],
        &["diff", NAME, "--step", "1", "--step", "1"],
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in commands {
        // It reads for a while once it has mapped; where it has read it all before the cut, again.
        let was_cut = (0..20).any(|_| {
            let mut child = start(folder.path(), arguments);
            let mapped = has_mapped(&mut child);
            cut(folder.path());
            let ended = child.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&ended.stderr);
            let code = ended.status.code();
            assert!(code.is_some(), "{arguments:?}: {:?} {said}", ended.status);
            let was_cut = mapped && said == LINE;
            assert!(!was_cut || (code == Some(1) && ended.stdout.is_empty()), "{arguments:?}");
            was_cut
        });
        assert!(was_cut, "{arguments:?}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "{arguments:?}");
    }
}
