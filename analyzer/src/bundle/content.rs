//! Whether a directory is the bundle that its manifest declares: the neighbour's rules, and ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use sha2::{Digest, Sha256};
use tmrun_formats::bundle::{
    BundleFile, BundleManifest, BundleReceipt, BundleReceiptSchema, MANIFEST, ManifestFault,
};

use super::place::is_staging;
use super::problem::{Problem, ProblemKind};
use crate::input;

/// So many problems are listed, and the others counted.
const LISTED: usize = 1_000;

/// What a directory was found to be.
#[derive(Debug, Clone, Default)]
pub struct Content {
    /// Its manifest, where it has one.
    pub manifest: Option<BundleManifest<'static>>,
    /// The receipt, of a bundle without problems.
    pub receipt: Option<BundleReceipt<'static>>,
    /// What is wrong, up to a thousand.
    pub problems: Vec<Problem>,
    /// How much more is wrong.
    pub more: u64,
}

impl Content {
    pub(super) fn problem(&mut self, problem: Problem) {
        self.receipt = None;
        if self.problems.len() < LISTED {
            self.problems.push(problem);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// What is declared of a file.
    pub(super) fn declared(&self, path: &str) -> Option<&BundleFile<'static>> {
        let files = self.manifest.iter().flat_map(|manifest| &manifest.files);
        files.into_iter().find(|file| file.path == path)
    }
}

/// Holds a directory against its manifest, by the neighbour's rules: regular files alone, each of them
/// declared, each declared one there with its size and content. Which files there are is no matter.
pub fn content(root: &Path) -> Content {
    look(root, Content::default())
}

/// [`content`], of a directory that was published: one that its publisher did not come to rename is no
/// bundle, however whole it is.
pub(super) fn published(root: &Path) -> Content {
    let mut found = Content::default();
    if is_staging(root) {
        found.problem(Problem::of(ProblemKind::Unpublished, root.display().to_string()));
    }
    look(root, found)
}

fn look(root: &Path, mut found: Content) -> Content {
    if !root.is_dir() {
        found.problem(Problem::of(ProblemKind::NotADirectory, root.display().to_string()));
        return found;
    }
    let bytes = match read_regular(&root.join(MANIFEST)) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            found.problem(Problem::of(ProblemKind::NoManifest, MANIFEST));
            return found;
        }
        Err(error) => {
            let kind = match error.kind() {
                io::ErrorKind::NotFound => ProblemKind::NoManifest,
                _ => ProblemKind::Unreadable,
            };
            found.problem(Problem::of(kind, MANIFEST).found(error));
            return found;
        }
    };
    let manifest: BundleManifest<'static> = match serde_json::from_slice(&bytes) {
        Ok(manifest) => manifest,
        Err(error) => {
            found.problem(Problem::of(ProblemKind::BadManifest, MANIFEST).found(error));
            return found;
        }
    };
    let mut declared: BTreeMap<&str, &BundleFile<'_>> = BTreeMap::new();
    let mut faults = manifest.faults().peekable();
    for (at, file) in manifest.files.iter().enumerate() {
        match faults.next_if(|(of, _)| *of == at) {
            Some((_, fault)) => found.problem(of_fault(fault)),
            None => _ = declared.insert(&file.path, file),
        }
    }
    drop(faults);
    let there = walk(root, &declared, &mut found);
    for (&path, _) in declared.iter().filter(|(path, _)| !there.names.contains(**path)) {
        found.problem(Problem::of(ProblemKind::Missing, path));
    }
    let checked: Vec<Result<u64, Problem>> = there
        .files
        .par_iter()
        .filter_map(|path| Some((path, declared.get(path.as_str())?)))
        .map(|(path, file)| check(root, path, file))
        .collect();
    let mut bytes_verified = 0_u64;
    for checked in checked {
        match checked {
            Ok(bytes) => bytes_verified = bytes_verified.saturating_add(bytes),
            Err(problem) => found.problem(problem),
        }
    }
    if found.problems.is_empty() {
        found.receipt = Some(BundleReceipt {
            schema: BundleReceiptSchema,
            bundle_schema: manifest.schema,
            run_id: manifest.run_id.clone(),
            manifest_path: MANIFEST.into(),
            manifest_sha256: hex(&Sha256::digest(&bytes)).into(),
            files_verified: manifest.files.len() as u64,
            bytes_verified,
        });
    }
    found.manifest = Some(manifest);
    found
}

fn of_fault(fault: ManifestFault) -> Problem {
    match fault {
        ManifestFault::Path { path } => Problem::of(ProblemKind::UnsafePath, path),
        ManifestFault::Itself => Problem::of(ProblemKind::DeclaresItself, MANIFEST),
        ManifestFault::Twice { path } => Problem::of(ProblemKind::DeclaredTwice, path),
        ManifestFault::Digest { path, found } => {
            let problem = Problem::of(ProblemKind::BadDigest, path);
            problem.expected("64 hexadecimal digits").found(format!("{found:?}"))
        }
        _ => Problem::of(ProblemKind::BadManifest, MANIFEST).found(fault),
    }
}

/// What is in a directory.
#[derive(Default)]
struct There {
    /// Everything that has a name that is one.
    names: BTreeSet<String>,
    /// The declared regular files.
    files: Vec<String>,
}

/// Looks at everything in a directory, in order of names.
fn walk(root: &Path, declared: &BTreeMap<&str, &BundleFile<'_>>, found: &mut Content) -> There {
    let mut there = There::default();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder)).and_then(Iterator::collect);
        let mut entries: Vec<fs::DirEntry> = match entries {
            Ok(entries) => entries,
            Err(error) => {
                let name = folder.display().to_string();
                found.problem(Problem::of(ProblemKind::Unreadable, name).found(error));
                continue;
            }
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = folder.join(entry.file_name());
            let shown = || path.display().to_string();
            let name = path.to_str().map(str::to_owned);
            there.names.extend(name.clone());
            let is_declared = name.as_deref().is_some_and(|name| declared.contains_key(name));
            let problem = match entry.file_type() {
                Err(error) => Problem::of(ProblemKind::Unreadable, shown()).found(error),
                Ok(kind) if kind.is_symlink() => Problem::of(ProblemKind::SymbolicLink, shown()),
                Ok(kind) if kind.is_dir() && is_declared => {
                    Problem::of(ProblemKind::NotAFile, shown())
                }
                Ok(kind) if kind.is_dir() => {
                    folders.push(path);
                    continue;
                }
                Ok(kind) if !kind.is_file() => Problem::of(ProblemKind::SpecialFile, shown()),
                Ok(_) if path == Path::new(MANIFEST) => continue,
                Ok(_) => match name.filter(|_| is_declared) {
                    Some(name) => {
                        there.files.push(name);
                        continue;
                    }
                    None => Problem::of(ProblemKind::Undeclared, shown()),
                },
            };
            found.problem(problem);
        }
    }
    there
}

/// Holds a file against what is declared of it. Returns its size.
fn check(root: &Path, path: &str, declared: &BundleFile<'_>) -> Result<u64, Problem> {
    let problem = |kind| Problem::of(kind, path);
    let unreadable = |error: io::Error| problem(ProblemKind::Unreadable).found(error);
    let mut file = open_regular(&root.join(path)).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    let differs = |size: u64| {
        let of = |bytes: u64| format!("{bytes} bytes");
        problem(ProblemKind::Size).expected(of(declared.bytes)).found(of(size))
    };
    if size != declared.bytes {
        return Err(differs(size));
    }
    let (bytes, digest) = digest(&mut file).map_err(unreadable)?;
    if bytes != declared.bytes {
        return Err(differs(bytes));
    }
    if !digest.eq_ignore_ascii_case(&declared.sha256) {
        return Err(problem(ProblemKind::Sha256).expected(&declared.sha256).found(digest));
    }
    Ok(bytes)
}

/// How many bytes a file has, and their SHA-256.
pub(super) fn digest(file: &mut File) -> io::Result<(u64, String)> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0_u64;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((bytes, hex(&digest.finalize()))),
            Ok(read) => {
                digest.update(buffer.get(..read).unwrap_or_default());
                bytes = bytes.saturating_add(read as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

pub(super) fn hex(digest: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or('0');
    digest.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Opens a regular file, and nothing else: no link, and no pipe that would never answer.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    input::regular(path, libc::O_NOFOLLOW)
}

/// A regular file's bytes; `None` if it is something else.
fn read_regular(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(None);
    }
    input::whole(&open_regular(path)?).map(Some)
}
