//! The files of the directory.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tmrun_formats::evidence::GpuArtifact;

/// Every regular file of a directory, by name.
pub(super) fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path());
    let mut files: Vec<_> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

/// Whether a file's name ends in `.extension`.
pub(super) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// The name that the directory has for a file of its own.
pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A file that was read.
pub(super) fn artifact(path: &Path, bytes: &[u8]) -> GpuArtifact<'static> {
    GpuArtifact {
        path: name(path).into(),
        size_bytes: bytes.len() as u64,
        sha256: format!("{:x}", Sha256::digest(bytes)).into(),
    }
}

/// A file that nobody reads.
pub(super) fn unread(path: &Path) -> io::Result<GpuArtifact<'static>> {
    let (mut file, mut hash) = (File::open(path)?, Sha256::new());
    let size_bytes = io::copy(&mut file, &mut hash)?;
    let sha256 = format!("{:x}", hash.finalize()).into();
    Ok(GpuArtifact { path: name(path).into(), size_bytes, sha256 })
}
