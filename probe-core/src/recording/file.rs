//! A file as a sink: vectored writes, no buffer, no copy.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::path::Path;

use crate::sink::Sink;

/// A file that is only appended to.
#[derive(Debug)]
pub(crate) struct FileSink(pub(crate) File);

/// Opens a file for a recording; one of that name is written over only if `replace` says so, and what
/// is in it stays until it is [emptied]. Also says whether there was none.
pub(crate) fn create(path: &Path, replace: bool) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true);
    match options.open(path) {
        Err(error) if replace && error.kind() == io::ErrorKind::AlreadyExists => {
            // One that was removed meanwhile is made again.
            let options = options.create_new(false).create(true).truncate(false);
            Ok((options.open(path)?, false))
        }
        made => Ok((made?, true)),
    }
}

/// A file without what it held. (A device or a pipe holds nothing, and refuses.)
pub(crate) fn emptied(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// The most pieces that one write is asked for; the drain never has more.
const PIECES: usize = 4;

impl Sink for FileSink {
    type Error = io::Error;

    fn write(&mut self, pieces: &[&[u8]]) -> io::Result<()> {
        for pieces in pieces.chunks(PIECES) {
            let mut slices = [IoSlice::new(&[]); PIECES];
            for (slice, piece) in slices.iter_mut().zip(pieces) {
                *slice = IoSlice::new(piece);
            }
            write_all(&mut self.0, &mut slices)?;
        }
        Ok(())
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)?;
        self.0.seek(SeekFrom::Start(len)).map(drop)
    }
}

fn write_all(file: &mut File, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
