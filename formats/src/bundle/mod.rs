//! `candle-graph/bundle/1`: what a published directory of evidence declares, and the receipts that
//! say it was held against that.
//!
//! Guarantees:
//!
//! - A [`BundleManifest`] that passes [`check`](BundleManifest::check) names every file once, by a path
//!   that stays inside the directory, with a digest that is one. It says nothing of the files themselves.
//! - Labels, keys and their order are those of `candle-graph` 0.10.1; see [`published`](crate::published).
//!
//! ```
//! use tmrun_formats::bundle::{BundleManifest, ManifestFault};
//!
//! let text = r#"{"schema":"candle-graph/bundle/1","run_id":"r","files":[
//!     {"path":"../trace.jsonl","bytes":0,"sha256":""}]}"#;
//! let manifest: BundleManifest<'_> = serde_json::from_str(text)?;
//! assert_eq!(manifest.check(), Err(ManifestFault::Path { path: "../trace.jsonl".into() }));
//!
//! let other = text.replace("bundle/1", "bundle/2");
//! assert!(serde_json::from_str::<BundleManifest<'_>>(&other).is_err());
//! # Ok::<(), serde_json::Error>(())
//! ```

mod manifest;
mod receipt;

pub use manifest::{
    BundleFile, BundleManifest, BundleSchema, EVIDENCE, MANIFEST, ManifestFault, NSIGHT, REPORT,
    TRACE, VIEWER,
};
pub use receipt::{
    BundleReceipt, BundleReceiptSchema, PublicationReceipt, PublicationSchema, PublicationStatus,
    SemanticMatch, SemanticStatus, Tool, VerifyReport, VerifySchema,
};
