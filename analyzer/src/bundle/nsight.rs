//! The files that Nsight left, kept as they are.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use tmrun_formats::bundle::NSIGHT;
use tmrun_formats::published::is_safe_path;

use super::content::open_regular;
use super::error::PublishFault;
use super::moment::Observer;
use super::staging::Staging;

/// Copies a flat directory, file by file in order of names.
pub(super) fn copy(
    from: &Path,
    staging: &mut Staging,
    observe: &mut Observer<'_>,
) -> Result<(), PublishFault> {
    let entries = fs::read_dir(from).and_then(Iterator::collect);
    let mut entries: Vec<DirEntry> = entries.map_err(PublishFault::io("read", from))?;
    let refused = |path: &Path, why| Err(PublishFault::Nsight { path: path.to_owned(), why });
    if entries.is_empty() {
        return refused(from, "is empty; expected what Nsight left");
    }
    entries.sort_by_key(DirEntry::file_name);
    staging.folder()?;
    for entry in entries {
        let source = entry.path();
        let kind = entry.file_type().map_err(PublishFault::io("looked at", &source))?;
        if !kind.is_file() {
            return refused(&source, "is no regular file; a bundle takes nothing else of Nsight");
        }
        let name = entry.file_name();
        let path = name.to_str().map(|name| format!("{NSIGHT}/{name}"));
        let Some(path) = path.filter(|path| is_safe_path(path)) else {
            return refused(&source, "has a name that no manifest can hold");
        };
        let mut file = open_regular(&source).map_err(PublishFault::io("read", &source))?;
        staging.file(&path, observe, |out| io::copy(&mut file, out).map(drop))?;
    }
    Ok(())
}
