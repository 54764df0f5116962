//! Where bytes come from: a mapped file, or standard input.
//!
//! Everything behind this module takes `&[u8]`, so that a test, a fuzzer and a pipe give the same
//! answers as a file.

mod cut;
mod mapped;

use std::io::{self, Read, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

pub use cut::exit_when_cut;

/// The bytes of one input, and what to call it in messages.
#[derive(Debug)]
pub struct Input {
    name: String,
    /// Before the bytes, so that it is dropped before they are unmapped.
    _watch: cut::Watch,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Mapped(memmap2::Mmap),
    Held(Vec<u8>),
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
    /// recording is no burden on memory. Only where no temporary file can be made (a read-only
    /// system) is it held in memory.
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

    fn of(bytes: Bytes, name: String) -> Self {
        let mapped: &[u8] = match &bytes {
            Bytes::Mapped(map) => map,
            Bytes::Held(_) => &[],
        };
        Self { _watch: cut::Watch::over(mapped, &name), name, bytes }
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
        let bytes = match tempfile::tempfile() {
            Ok(file) => {
                let mut out = io::BufWriter::new(&file);
                write(&mut out)?;
                out.flush()?;
                drop(out);
                mapped::map(&file)?
            }
            Err(_) => {
                let mut held = Vec::new();
                write(&mut held)?;
                Bytes::Held(held)
            }
        };
        Ok(Self::of(bytes, name.to_owned()))
    }

    /// What to call it in messages.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Reads to the end.
fn spool(from: &mut dyn Read) -> io::Result<Bytes> {
    if let Ok(mut file) = tempfile::tempfile() {
        io::copy(from, &mut file)?;
        return mapped::map(&file);
    }
    let mut held = Vec::new();
    from.read_to_end(&mut held)?;
    Ok(Bytes::Held(held))
}

impl Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Held(held) => held,
        }
    }
}
