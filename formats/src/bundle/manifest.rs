//! `bundle.json`.

use crate::published::is_safe_path;
use crate::published::label::label;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashSet;
use thiserror::Error;

/// The manifest's file name. It is the one file that the manifest does not declare.
pub const MANIFEST: &str = "bundle.json";
/// The trace's file name.
pub const TRACE: &str = "trace.jsonl";
/// The evidence's file name.
pub const EVIDENCE: &str = "evidence.json";
/// The file name of the summary for people.
pub const REPORT: &str = "report.md";
/// The file name of the offline viewer.
pub const VIEWER: &str = "viewer.html";
/// The directory of Nsight's files.
pub const NSIGHT: &str = "nsight";

label! {
    /// The schema of a [`BundleManifest`].
    BundleSchema = "candle-graph/bundle/1"
}

/// What a bundle is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleManifest<'a> {
    /// The label.
    pub schema: BundleSchema,
    /// The run of the trace.
    pub run_id: Cow<'a, str>,
    /// Every file but the manifest; a writer sorts them by path.
    pub files: Vec<BundleFile<'a>>,
}

/// One file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleFile<'a> {
    /// Relative to the bundle, with forward slashes.
    pub path: Cow<'a, str>,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, 64 hexadecimal digits; lower case when written, any case when read.
    pub sha256: Cow<'a, str>,
}

/// Why a manifest cannot be followed, whatever lies in the directory.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ManifestFault {
    /// A path that leaves the bundle, or is not written as one is.
    #[error(
        "file {path:?}: expected a relative path inside the bundle, with forward slashes and without `.` and `..`"
    )]
    Path {
        /// The path.
        path: String,
    },
    /// The manifest's own name.
    #[error("file {MANIFEST:?}: a manifest does not declare itself")]
    Itself,
    /// A path that stands there before.
    #[error("file {path:?} is declared twice")]
    Twice {
        /// The path.
        path: String,
    },
    /// A digest that is none.
    #[error("file {path:?}: expected a sha256 of 64 hexadecimal digits, found {found:?}")]
    Digest {
        /// The path.
        path: String,
        /// What stands for its digest.
        found: String,
    },
}

impl BundleManifest<'_> {
    /// Whether the declarations can be followed.
    ///
    /// # Errors
    ///
    /// The first file that breaks a rule of [`ManifestFault`].
    pub fn check(&self) -> Result<(), ManifestFault> {
        self.faults().next().map_or(Ok(()), |(_, fault)| Err(fault))
    }

    /// The first rule of [`ManifestFault`] that each file breaks, with its place in the list.
    pub fn faults(&self) -> impl Iterator<Item = (usize, ManifestFault)> + '_ {
        let mut declared = HashSet::new();
        let files = self.files.iter().enumerate();
        files.filter_map(move |(at, file)| Some((at, file.fault(&mut declared)?)))
    }
}

impl BundleFile<'_> {
    fn fault<'f>(&'f self, declared: &mut HashSet<&'f str>) -> Option<ManifestFault> {
        let Self { path, sha256, .. } = self;
        if !is_safe_path(path) {
            return Some(ManifestFault::Path { path: path.to_string() });
        }
        if path == MANIFEST {
            return Some(ManifestFault::Itself);
        }
        if !declared.insert(path) {
            return Some(ManifestFault::Twice { path: path.to_string() });
        }
        let is_digest = sha256.len() == 64 && sha256.bytes().all(|digit| digit.is_ascii_hexdigit());
        (!is_digest)
            .then(|| ManifestFault::Digest { path: path.to_string(), found: sha256.to_string() })
    }
}
