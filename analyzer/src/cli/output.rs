//! Where results go: standard output, or a file that appears whole or not at all.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tmrun::bundle::around;
use tmrun::escape::JsonWriter;

use super::Failure;

/// Where the result goes.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct OutputArgs {
    /// Write the result to this file instead of standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    pub(super) output: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub(super) force: bool,
}

/// An output that could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputError {
    /// A file is there already.
    #[error("{}: exists already; --force replaces it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file could not be written.
    #[error("{}: cannot be written: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A folder is there.
    #[error("{}: is a folder; name a file in it", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// It is in a bundle.
    #[error(
        "{}: lies in the bundle {}, which nobody may write into; choose another place",
        path.display(),
        bundle.display()
    )]
    Bundle {
        /// The file.
        path: PathBuf,
        /// The bundle.
        bundle: PathBuf,
    },
    /// It is the input.
    #[error(
        "{}: is the input itself, which the result would replace; choose another name",
        path.display()
    )]
    Input {
        /// The file.
        path: PathBuf,
    },
    /// Standard output could not be written.
    #[error("standard output: cannot be written: {0}")]
    Stdout(io::Error),
}

impl OutputError {
    pub(super) fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Stdout(source) | Self::File { source, .. } => {
                source.kind() == io::ErrorKind::BrokenPipe
            }
            Self::Exists { .. }
            | Self::Folder { .. }
            | Self::Bundle { .. }
            | Self::Input { .. } => false,
        }
    }
}

impl OutputArgs {
    /// Standard output, of a command whose result always goes there.
    pub(super) fn stdout() -> Self {
        Self { output: "-".into(), force: false }
    }

    /// [`check`](Self::check), of each of several inputs; of standard input there is one.
    pub(super) fn check_all<'i>(
        &self,
        inputs: impl IntoIterator<Item = &'i PathBuf>,
    ) -> Result<(), Failure> {
        let mut has_stdin = false;
        for input in inputs {
            self.check(input)?;
            if is_stdio(input) && std::mem::replace(&mut has_stdin, true) {
                return Err(Failure::Usage(
                    "- is standard input, which can be read once: name a file for the others",
                ));
            }
        }
        Ok(())
    }

    /// Refuses at once what would be refused in the end: to replace a file without `--force`, and to
    /// replace the input at all. What is not a regular file (a pipe, `/dev/null`) is written to and
    /// never replaced.
    pub(super) fn check(&self, input: &Path) -> Result<(), OutputError> {
        self.check_place()?;
        let identity = |path: &Path| {
            fs::metadata(path)
                .ok()
                .filter(fs::Metadata::is_file)
                .map(|file| (file.dev(), file.ino()))
        };
        let same = identity(input).is_some_and(|input| identity(&self.output) == Some(input));
        if same && !self.is_stdout() && !is_stdio(input) {
            return Err(OutputError::Input { path: self.output.clone() });
        }
        Ok(())
    }

    fn check_place(&self) -> Result<(), OutputError> {
        if self.is_stdout() {
            return Ok(());
        }
        let path = || self.output.clone();
        // Where the name is, and where it leads to.
        if let Some(bundle) = around(folder_of(&self.output)).or_else(|| around(&self.output)) {
            return Err(OutputError::Bundle { path: path(), bundle });
        }
        match fs::metadata(&self.output) {
            Ok(found) if found.is_dir() => Err(OutputError::Folder { path: path() }),
            Ok(found) if found.is_file() && !self.force => {
                Err(OutputError::Exists { path: path() })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn is_stdout(&self) -> bool {
        is_stdio(&self.output)
    }

    /// Whether the result shows on a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.is_stdout() && io::stdout().is_terminal()
    }

    /// Writes a document: as JSON, or as a page where that was not asked for and people look.
    pub(super) fn write_document<D: Serialize>(
        &self,
        json: bool,
        document: &D,
        page: impl FnOnce(&D) -> String,
    ) -> Result<(), Failure> {
        match !json && self.is_terminal() {
            true => self.write_text(&page(document)),
            false => self.write_json(document),
        }
    }

    /// Writes a document as JSON.
    pub(super) fn write_json(&self, document: &impl Serialize) -> Result<(), Failure> {
        self.write(|out| {
            let mut out = JsonWriter(out);
            serde_json::to_writer_pretty(&mut out, document).map_err(io::Error::from)?;
            Ok(out.write_all(b"\n")?)
        })
    }

    /// Writes a document that is JSON already.
    pub(super) fn write_json_text(&self, document: &[u8]) -> Result<(), Failure> {
        self.write(|out| Ok(JsonWriter(out).write_all(document)?))
    }

    /// Writes a page for people.
    pub(super) fn write_text(&self, page: &str) -> Result<(), Failure> {
        self.write(|out| Ok(out.write_all(page.as_bytes())?))
    }

    /// Lets `write` write the result. A file is written beside its place, synchronised, and renamed
    /// into it: whatever happens, the place holds all of the result or what it held before.
    pub(super) fn write(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.check_place()?;
        if self.is_stdout() {
            // Whoever read it has seen enough. That changes nothing about the answer.
            return match fill(io::stdout().lock(), OutputError::Stdout, write) {
                Err(failure) if !failure.is_broken_pipe() => Err(failure),
                _ => Ok(()),
            };
        }
        let path = &self.output;
        let failed = |source| OutputError::File { path: path.clone(), source };
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            return fill(file, failed, write).map(drop);
        }
        let folder = folder_of(path);
        let beside = tempfile::Builder::new()
            .prefix(".tmrun-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            // Of the names in it, only the one that was asked for says something.
            .map_err(|error| failed(error.kind().into()))?;
        let beside = fill(beside, failed, write)?;
        beside.as_file().sync_all().map_err(failed)?;
        self.place(beside)?;
        Ok(File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?)
    }

    fn place(&self, beside: tempfile::NamedTempFile) -> Result<(), OutputError> {
        let path = self.output.clone();
        let placed = match self.force {
            true => beside.persist(&path),
            false => beside.persist_noclobber(&path),
        };
        match placed {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(OutputError::Exists { path })
            }
            Err(error) => Err(OutputError::File { path, source: error.error }),
        }
    }
}

/// Lets `write` write all of a result. What fails of the output itself is `failed`, whatever `write`
/// makes of it.
fn fill<W: Write>(
    out: W,
    failed: impl Fn(io::Error) -> OutputError,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<W, Failure> {
    let mut sink = Sink { out: BufWriter::new(out), failed: None };
    let written = write(&mut sink).and_then(|()| Ok(sink.flush()?));
    if let Some(error) = sink.failed {
        return Err(failed(error).into());
    }
    written?;
    Ok(sink.out.into_inner().map_err(|error| failed(error.into_error()))?)
}

/// A writer that remembers what went wrong with it.
struct Sink<W: Write> {
    out: BufWriter<W>,
    failed: Option<io::Error>,
}

impl<W: Write> Sink<W> {
    fn keep<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            // That one is tried again.
            if kind != io::ErrorKind::Interrupted {
                self.failed = Some(error);
            }
            kind.into()
        })
    }
}

impl<W: Write> Write for Sink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.keep(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.keep(flushed)
    }
}

/// Whether a path stands for standard input or output.
pub(super) fn is_stdio(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(path: PathBuf, force: bool) -> OutputArgs {
        OutputArgs { output: path, force }
    }

    fn write(output: &OutputArgs, text: &str) -> Result<(), Failure> {
        output.write(|out| Ok(out.write_all(text.as_bytes())?))
    }

    #[test]
    fn a_file_is_replaced_by_force_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        write(&to(path.clone(), false), "one").expect("a new file");
        let refused = write(&to(path.clone(), false), "two").expect_err("refused");
        assert!(refused.to_string().contains("--force"));
        assert_eq!(fs::read_to_string(&path).expect("text"), "one");
        write(&to(path.clone(), true), "three").expect("replaced");
        assert_eq!(fs::read_to_string(&path).expect("text"), "three");
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        let failed = to(path, false).write(|out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more").into())
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("entries").count(), 0);
    }

    #[test]
    fn nothing_is_written_into_a_bundle_on_whatever_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let bundle = folder.path().join("bundle");
        fs::create_dir_all(bundle.join("nsight")).expect("a folder");
        fs::write(bundle.join("bundle.json"), "{}").expect("a manifest");
        fs::create_dir(folder.path().join("beside")).expect("a folder");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(bundle.join("nsight"), &link).expect("a link");
        std::os::unix::fs::symlink(bundle.join("bundle.json"), folder.path().join("to"))
            .expect("a link");
        for path in ["bundle/out", "bundle/nsight/out", "beside/../bundle/out", "link/out", "to"] {
            let refused = to(folder.path().join(path), true);
            let refused = write(&refused, "text").expect_err(path).to_string();
            assert!(refused.contains("lies in the bundle"), "{refused}");
        }
        assert_eq!(fs::read_to_string(bundle.join("bundle.json")).expect("text"), "{}");
        write(&to(bundle.join("../out"), false), "text").expect("that is outside");
        assert!(folder.path().join("out").is_file());
    }

    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        write(&to("/dev/null".into(), false), "text").expect("written");
        assert!(!fs::metadata("/dev/null").expect("there").is_file());
    }
}
