//! What a bundle was found to be when it was verified or published.

use super::BundleSchema;
use crate::published::label::label;
use crate::words::words;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

label! {
    /// The schema of a [`BundleReceipt`].
    BundleReceiptSchema = "candle-graph/bundle-verification/1"
}

label! {
    /// The schema of a [`VerifyReport`].
    VerifySchema = "candle-graph/verify/1"
}

label! {
    /// The schema of a [`PublicationReceipt`].
    PublicationSchema = "candle-graph/publication/1"
}

/// Every file of a bundle was there, of its size and digest, and no other was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleReceipt<'a> {
    /// The label.
    pub schema: BundleReceiptSchema,
    /// The manifest's label.
    pub bundle_schema: BundleSchema,
    /// The manifest's run.
    pub run_id: Cow<'a, str>,
    /// The manifest's file name in the bundle.
    pub manifest_path: Cow<'a, str>,
    /// The SHA-256 of the manifest's bytes, in lower case.
    pub manifest_sha256: Cow<'a, str>,
    /// How many files it declares.
    pub files_verified: u64,
    /// How many bytes they have together.
    pub bytes_verified: u64,
}

/// What the command `verify` prints. The neighbour sorts these keys, those of the receipt among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyReport<'a> {
    /// The bundle's receipt.
    #[serde(with = "SortedReceipt")]
    pub receipt: BundleReceipt<'a>,
    /// The label.
    pub schema: VerifySchema,
    /// The derived evidence; `null` where it was not asked for.
    pub semantic: Option<SemanticMatch>,
    /// What printed it.
    pub tool: Tool<'a>,
}

/// The fields of a [`BundleReceipt`] in the order of their names.
#[derive(Serialize, Deserialize)]
#[serde(remote = "BundleReceipt")]
struct SortedReceipt<'a> {
    bundle_schema: BundleSchema,
    bytes_verified: u64,
    files_verified: u64,
    manifest_path: Cow<'a, str>,
    manifest_sha256: Cow<'a, str>,
    run_id: Cow<'a, str>,
    schema: BundleReceiptSchema,
}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool<'a> {
    /// The package.
    pub package: Cow<'a, str>,
    /// Its version.
    pub version: Cow<'a, str>,
}

/// What deriving the evidence once more came to. What does not match is an error, not a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemanticMatch {
    /// How it compared.
    pub status: SemanticStatus,
}

words! {
    /// How evidence that was derived once more compared with what is published.
    SemanticStatus {
        /// Equal as JSON values.
        RederivedMatch "rederived_match",
    }
}

/// A planned capture is published, and was verified where it lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicationReceipt {
    /// The label.
    pub schema: PublicationSchema,
    /// Whether this call published it.
    pub status: PublicationStatus,
    /// The bundle's directory, as it was named. (JSON has what of it is text.)
    #[serde(serialize_with = "as_text")]
    pub bundle_path: PathBuf,
    /// The run that is published; another one than was captured, where a retry found it.
    pub run_id: String,
    /// The receipt of the bundle at its place.
    pub verification: BundleReceipt<'static>,
}

fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

words! {
    /// Whether a publication happened now.
    PublicationStatus {
        /// By this call.
        Published "published",
        /// Before: the same planned capture was found.
        AlreadyPublished "already_published",
    }
}
