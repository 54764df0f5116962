//! The command, run in a folder of its own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The command, run where this process is.
pub fn tmrun(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tmrun")).args(args).output().expect("it runs")
}

/// A folder with a recording in it, `in.tmrun`.
pub struct Folder {
    folder: TempDir,
}

impl Folder {
    pub fn with(file: &[u8]) -> Self {
        let folder = Self { folder: tempfile::tempdir().expect("a folder") };
        fs::write(folder.path("in.tmrun"), file).expect("written");
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command, to be run in the folder; what it prints is kept.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tmrun"));
        command.current_dir(self.folder.path()).args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("tmrun runs")
    }

    /// The exit code, standard output and standard error.
    pub fn tmrun(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.output(arguments);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        (output.status.code().expect("an exit code"), text(&output.stdout), text(&output.stderr))
    }
}
