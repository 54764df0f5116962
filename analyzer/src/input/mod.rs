//! Where bytes come from: a mapped file, or standard input.
//!
//! Everything behind this module takes `&[u8]`, so that a test, a fuzzer and a pipe give the same
//! answers as a file.

mod mapped;

use std::io::{self, Read, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The bytes of one input, and what to call it in messages.
#[derive(Debug)]
pub struct Input {
    name: String,
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
    /// A mapped file must not be cut short while it is read: the kernel then kills this process
    /// (SIGBUS). A file that only grows is fine, and is read up to the length it had here.
    ///
    /// # Errors
    ///
    /// When it cannot be opened, is no regular file, or cannot be mapped or read.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        if path.as_os_str() == "-" {
            let bytes = spool(&mut io::stdin().lock()).map_err(InputError::Stdin)?;
            return Ok(Self { name: "standard input".to_owned(), bytes });
        }
        Ok(Self { name: path.display().to_string(), bytes: mapped::open(path)? })
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
        Ok(Self { name: name.to_owned(), bytes })
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
