//! Whether a bundle is what its manifest says.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use sha2::{Digest, Sha256};
use tmrun_formats::bundle::{
    BundleFile, BundleManifest, BundleReceipt, BundleReceiptSchema, BundleSchema, MANIFEST,
    ManifestFault,
};

/// Why a directory is no bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentFault {
    /// Something cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// What, below the bundle.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The manifest is none.
    #[error("{MANIFEST}: {0}")]
    Manifest(serde_json::Error),
    /// The manifest cannot be followed.
    #[error("{MANIFEST}: {0}")]
    Declared(#[from] ManifestFault),
    /// A link, a pipe, a device: nothing of which the bytes are a bundle's.
    #[error("{path}: expected a regular file or a directory")]
    Special {
        /// What, below the bundle.
        path: String,
    },
    /// A file that the manifest does not declare.
    #[error("{path}: is not declared in {MANIFEST}")]
    Undeclared {
        /// Which.
        path: String,
    },
    /// A file that the manifest declares.
    #[error("{path}: is declared in {MANIFEST} and missing")]
    Missing {
        /// Which.
        path: String,
    },
    /// A file of another size.
    #[error("{path}: expected {expected} bytes, found {found}")]
    Size {
        /// Which.
        path: String,
        /// As declared.
        expected: u64,
        /// As it is.
        found: u64,
    },
    /// A file of other bytes.
    #[error("{path}: expected the sha256 {expected}, found {found}")]
    Digest {
        /// Which.
        path: String,
        /// As declared.
        expected: String,
        /// As it is.
        found: String,
    },
}

/// Holds every file below a directory against its manifest.
pub(super) fn check(
    root: &Path,
) -> Result<(BundleManifest<'static>, BundleReceipt<'static>), ContentFault> {
    let path = root.join(MANIFEST);
    let found = fs::symlink_metadata(&path).map_err(|source| unreadable(MANIFEST, source))?;
    if !found.is_file() {
        return Err(ContentFault::Special { path: MANIFEST.to_owned() });
    }
    let bytes = fs::read(&path).map_err(|source| unreadable(MANIFEST, source))?;
    let manifest: BundleManifest<'static> =
        serde_json::from_slice(&bytes).map_err(ContentFault::Manifest)?;
    manifest.check()?;
    let mut missing: BTreeMap<PathBuf, &BundleFile<'_>> =
        manifest.files.iter().map(|file| (PathBuf::from(&*file.path), file)).collect();
    let mut there = Vec::new();
    for path in walk(root)? {
        match missing.remove(&path) {
            Some(file) => there.push(file),
            None if path == Path::new(MANIFEST) => {}
            None => return Err(ContentFault::Undeclared { path: path.display().to_string() }),
        }
    }
    if let Some(path) = missing.into_keys().next() {
        return Err(ContentFault::Missing { path: path.display().to_string() });
    }
    let faults: Vec<_> = there.par_iter().filter_map(|file| check_file(root, file).err()).collect();
    if let Some(fault) = faults.into_iter().next() {
        return Err(fault);
    }
    let receipt = BundleReceipt {
        schema: BundleReceiptSchema,
        bundle_schema: BundleSchema,
        run_id: manifest.run_id.clone(),
        manifest_path: MANIFEST.into(),
        manifest_sha256: digest(&bytes).into(),
        files_verified: there.len() as u64,
        bytes_verified: there.iter().fold(0, |sum, file| sum.saturating_add(file.bytes)),
    };
    Ok((manifest, receipt))
}

/// The SHA-256, in lower case.
pub(super) fn digest(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

fn unreadable(path: impl Into<String>, source: io::Error) -> ContentFault {
    ContentFault::Io { path: path.into(), source }
}

/// Every regular file below a directory, relative to it.
fn walk(root: &Path) -> Result<Vec<PathBuf>, ContentFault> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let failed = |source| unreadable(folder.display().to_string(), source);
        for entry in fs::read_dir(root.join(&folder)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = folder.join(entry.file_name());
            match entry.file_type().map_err(failed)? {
                kind if kind.is_dir() => folders.push(path),
                kind if kind.is_file() => files.push(path),
                _ => return Err(ContentFault::Special { path: path.display().to_string() }),
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn check_file(root: &Path, declared: &BundleFile<'_>) -> Result<(), ContentFault> {
    let path = || declared.path.clone().into_owned();
    let failed = |source| unreadable(path(), source);
    let mut file = File::open(root.join(&*declared.path)).map_err(failed)?;
    let found = file.metadata().map_err(failed)?.len();
    if found != declared.bytes {
        return Err(ContentFault::Size { path: path(), expected: declared.bytes, found });
    }
    let mut hash = Sha256::new();
    io::copy(&mut file, &mut hash).map_err(failed)?;
    let found = format!("{:x}", hash.finalize());
    if !found.eq_ignore_ascii_case(&declared.sha256) {
        let expected = declared.sha256.clone().into_owned();
        return Err(ContentFault::Digest { path: path(), expected, found });
    }
    Ok(())
}
