//! A file that is cut short while the command reads it.

mod support;

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::process::{Command, Stdio};

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

#[test]
fn a_file_that_is_cut_short_ends_the_command_with_a_line_that_names_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run\nning.tmrun");
    for command in [&["convert", "--format", "jsonl"][..], &["salvage"]] {
        fs::write(&path, long()).expect("written");
        let mut child = Command::new(env!("CARGO_BIN_EXE_tmrun"))
            .current_dir(folder.path())
            .args(command)
            .arg("run\nning.tmrun")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tmrun runs");
        // Something is written: the file is mapped, and the command waits for whoever reads.
        let mut output = child.stdout.take().expect("a pipe");
        output.read_exact(&mut [0; 100]).expect("output");
        OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_len(4096))
            .expect("cut");
        output.read_to_end(&mut Vec::new()).expect("the rest of what there is");
        let ended = child.wait_with_output().expect("it ends");
        assert_eq!(ended.status.code(), Some(1), "{command:?}: {:?}", ended.status);
        assert_eq!(
            String::from_utf8_lossy(&ended.stderr),
            "tmrun: run\\u{a}ning.tmrun: was cut short while it was read, or can be read no more\n"
        );
    }
}
