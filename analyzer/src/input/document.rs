//! Documents that are read whole, because they say what else to read: plans and manifests.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::readable::number;

/// The longest document that is read whole: 64 MiB. An entry of a manifest, or of a plan, takes some two
/// hundred bytes, so that there is room for hundreds of thousands.
pub const DOCUMENT_BYTES: u64 = 64 << 20;

/// A document's bytes. It is a regular file, of [`DOCUMENT_BYTES`] at most.
pub(crate) fn document(path: &Path) -> io::Result<Vec<u8>> {
    whole(&regular(path, 0)?)
}

/// Opens a regular file, and nothing else: no pipe that would never answer.
pub(crate) fn regular(path: &Path, flags: libc::c_int) -> io::Result<File> {
    let flags = flags | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "no regular file")),
    }
}

/// An open document's bytes.
pub(crate) fn whole(file: &File) -> io::Result<Vec<u8>> {
    let fits = |bytes: u64| match bytes <= DOCUMENT_BYTES {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has {} bytes: expected {} at most", number(bytes), number(DOCUMENT_BYTES)),
        )),
    };
    fits(file.metadata()?.len())?;
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    let read = file.take(DOCUMENT_BYTES.saturating_add(1)).read_to_end(&mut bytes)?;
    fits(read as u64)?;
    Ok(bytes)
}
