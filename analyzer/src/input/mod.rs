//! Where bytes come from: a mapped file, or standard input.
//!
//! Everything behind this module takes `&[u8]`, so that a test, a fuzzer and a pipe give the same
//! answers as a file.

mod cut;
mod document;
mod mapped;

use std::env;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

pub use cut::exit_when_cut;
pub use document::DOCUMENT_BYTES;
pub(crate) use document::{document, regular, whole};

/// The bytes of one input, and what to call it in messages.
#[derive(Debug)]
pub struct Input {
    name: String,
    /// Before the bytes, so that it is dropped before they are unmapped.
    _watch: cut::Watch,
    /// `None` where there are none: nothing cannot be mapped.
    bytes: Option<Mmap>,
}

/// An input that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file could not be opened or mapped.
    #[error("{}: cannot be read: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A directory or a device, which cannot be mapped.
    #[error(
        "{}: is not a regular file; a recording that comes through a pipe is read with `-`",
        path.display()
    )]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Standard input could not be read.
    #[error("standard input: cannot be read: {0}")]
    Stdin(io::Error),
}

impl Input {
    /// Maps the file, or reads all of standard input when the path is `-`.
    ///
    /// Standard input goes into a temporary file without a name, which is mapped too, so that a long
    /// recording is no burden on memory. The file is made in `TMPDIR`, or where that cannot be in `/tmp`.
    ///
    /// **Hazard.** A mapped file must not be cut short, or written over, by anybody while it is read.
    /// Where it was cut the kernel kills this process (SIGBUS), unless the program has called
    /// [`exit_when_cut`] before: then it ends with a line that names the file. Bytes that change give
    /// a wrong answer or an error. Neither misreads memory. A file that only grows is fine, and is
    /// read up to the length it had here; a copy of the file is safe from all of it.
    ///
    /// # Errors
    ///
    /// When it cannot be opened, is no regular file, or cannot be mapped or read.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        if path.as_os_str() == "-" {
            let bytes = spool(&mut io::stdin().lock()).map_err(InputError::Stdin)?;
            return Ok(Self::of(bytes, "standard input".to_owned()));
        }
        Ok(Self::of(mapped::open(path)?, path.display().to_string()))
    }

    fn of(bytes: Option<Mmap>, name: String) -> Self {
        let watch = cut::Watch::over(bytes.as_deref().unwrap_or_default(), &name);
        Self { _watch: watch, name, bytes }
    }

    /// What `write` writes, as an input: it goes where standard input goes.
    ///
    /// # Errors
    ///
    /// When it cannot be written or mapped.
    pub fn made(
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Self> {
        let file = temporary(&temporary_folders())?;
        let mut out = io::BufWriter::new(&file);
        write(&mut out)?;
        out.flush()?;
        drop(out);
        Ok(Self::of(mapped::map(&file)?, name.to_owned()))
    }

    /// What to call it in messages.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Reads to the end.
fn spool(from: &mut dyn Read) -> io::Result<Option<Mmap>> {
    let mut file = temporary(&temporary_folders())?;
    io::copy(from, &mut file)?;
    mapped::map(&file)
}

/// Where temporary files go: `TMPDIR`, else `/tmp`.
fn temporary_folders() -> [PathBuf; 2] {
    [env::temp_dir(), "/tmp".into()]
}

/// A file without a name, in the first of these folders where one can be made.
fn temporary(folders: &[PathBuf]) -> io::Result<File> {
    let mut refused = Vec::new();
    let mut kind = io::ErrorKind::NotFound;
    for folder in folders {
        match tempfile::tempfile_in(folder) {
            Ok(file) => return Ok(file),
            Err(error) => {
                kind = error.kind();
                refused.push(format!("{}: {error}", folder.display()));
            }
        }
    }
    let refused = refused.join("; ");
    let words = format!("no temporary file can be made ({refused}); name a folder in TMPDIR");
    Err(io::Error::new(kind, words))
}

impl Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_file_is_made_where_it_can_be_or_every_refusal_is_named() {
        let there = tempfile::tempdir().expect("a folder");
        let [gone, there] = [there.path().join("gone"), there.path().to_owned()];
        assert!(temporary(&[gone.clone(), there]).is_ok());
        let refused =
            temporary(&[gone.clone(), gone.join("too")]).expect_err("refused").to_string();
        assert!(refused.contains("gone:") && refused.contains("gone/too:"), "{refused}");
        assert!(refused.contains("TMPDIR"), "{refused}");
    }
}
