//! The files that Nsight left, kept as they are.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use tmrun_formats::bundle::NSIGHT;
use tmrun_formats::published::is_safe_path;

use super::content::{digest, open_regular};
use super::error::PublishFault;
use super::moment::Observer;
use super::retry::Differing;
use super::staging::Staging;

/// A file that is to be kept.
struct Kept {
    source: PathBuf,
    /// Its path in the bundle.
    path: String,
}

/// What is to be kept of a flat directory, in order of names.
fn kept(from: &Path) -> Result<Vec<Kept>, PublishFault> {
    let entries = fs::read_dir(from).and_then(Iterator::collect);
    let mut entries: Vec<DirEntry> = entries.map_err(PublishFault::io("read", from))?;
    let refused = |path: &Path, why| Err(PublishFault::Nsight { path: path.to_owned(), why });
    if entries.is_empty() {
        return refused(from, "is empty; expected what Nsight left");
    }
    entries.sort_by_key(DirEntry::file_name);
    let mut kept = Vec::with_capacity(entries.len());
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
        kept.push(Kept { source, path });
    }
    Ok(kept)
}

/// Refuses a directory that cannot be kept, before anything is made for it.
pub(super) fn check(from: &Path) -> Result<(), PublishFault> {
    kept(from).map(drop)
}

/// Copies a flat directory, file by file.
pub(super) fn copy(
    from: &Path,
    staging: &mut Staging,
    observe: &mut Observer<'_>,
) -> Result<(), PublishFault> {
    let kept = kept(from)?;
    staging.folder()?;
    for Kept { source, path } in kept {
        let mut file = open_regular(&source).map_err(PublishFault::io("read", &source))?;
        staging.file(&path, observe, |out| io::copy(&mut file, out).map(drop))?;
    }
    Ok(())
}

/// In what a directory is another one than a bundle has.
pub(super) fn differing(from: &Path, bundle: &Path) -> Result<Option<Differing>, PublishFault> {
    let published = bundle.join(NSIGHT);
    let (given, there) = (
        digests(from)?,
        match published.is_dir() {
            true => digests(&published)?,
            false => BTreeMap::new(),
        },
    );
    let differ = |path: &&String| given.get(*path) != there.get(*path);
    let Some(first) = given.keys().chain(there.keys()).filter(differ).min() else {
        return Ok(None);
    };
    let is = |files: &BTreeMap<String, String>| match files.get(first) {
        Some(digest) => format!("{} files, {first} with sha256 {digest}", files.len()),
        None => format!("{} files, without {first}", files.len()),
    };
    Ok(Some(Differing { field: "nsight", published: is(&there), planned: is(&given) }))
}

fn digests(folder: &Path) -> Result<BTreeMap<String, String>, PublishFault> {
    let digest = |Kept { source, path }: Kept| {
        let read = open_regular(&source).and_then(|mut file| digest(&mut file));
        let (_, digest) = read.map_err(PublishFault::io("read", &source))?;
        Ok((path, digest))
    };
    kept(folder)?.into_iter().map(digest).collect()
}
