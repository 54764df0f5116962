//! Files as memory.
//!
//! A map is only as good as the file's length: where the file is cut short, reading the map is a
//! signal and no error. [`exit_when_cut`](super::exit_when_cut) is what a program can do about it.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::Path;

use memmap2::Mmap;
use tmrun_formats::rings::RINGS_MAGIC;

use super::InputError;

/// Maps a regular file for reading. Of mapped rings, which their process may still be writing to, it is a
/// copy that is mapped.
pub(super) fn open(path: &Path) -> Result<Option<Mmap>, InputError> {
    let error = |source| InputError::File { path: path.to_owned(), source };
    // Asked before it is opened: opening a named pipe would wait for its writer.
    if !fs::metadata(path).map_err(error)?.is_file() {
        return Err(InputError::NotAFile { path: path.to_owned() });
    }
    let mut file = File::open(path).map_err(error)?;
    if are_rings(&file) {
        super::spool(&mut file).map_err(error)
    } else {
        map(&file).map_err(error)
    }
}

fn are_rings(mut file: &File) -> bool {
    let mut magic = RINGS_MAGIC;
    let read = file.read_exact(&mut magic).and_then(|()| file.rewind());
    read.is_ok() && magic == RINGS_MAGIC
}

/// Maps an open regular file from its start; an empty one cannot be mapped.
pub(super) fn map(file: &File) -> io::Result<Option<Mmap>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: The map is private to this value and read-only, and lives as long as its slices do.
    // What a mapping cannot rule out is another process changing the file meanwhile. A `.tmrun` is
    // append-only: its writer never changes a byte that is within the length mapped here, and every
    // value read from it is checked where it is used, so that even bytes that do change give a wrong
    // answer or an error and no undefined index. A file that is cut short while it is mapped makes
    // the kernel end this process with SIGBUS: no memory is misread, and `Input::open` says so.
    Ok(Some(unsafe { Mmap::map(file) }?))
}
