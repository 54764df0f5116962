//! Where Nsight's files came from: `candle-graph/nsight-capture/1`, and how it fits the trace.

use crate::words::words;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Whether Nsight's files are of the trace's run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProvenance<'a> {
    /// The answer.
    pub binding: GpuBinding,
    /// The manifest, where there is one that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<GpuCapture<'a>>,
    /// What speaks against it.
    #[serde(default)]
    pub diagnostics: Vec<Cow<'a, str>>,
}

words! {
    /// Whether Nsight's files are of the trace's run.
    GpuBinding {
        /// Ids, labels, files and digests agree.
        Bound "bound",
        /// There is no manifest to say so.
        Partial "partial",
        /// Something does not agree.
        Mismatch "mismatch",
    }
}

/// `capture-manifest.json`, which whoever ran Nsight wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuCapture<'a> {
    /// The label; any string reads, another than [`SCHEMA`](GpuCapture::SCHEMA) is a mismatch.
    pub schema: Cow<'a, str>,
    /// Which run was captured.
    pub run: GpuCaptureRun<'a>,
    /// What the ranges' names hang under.
    pub correlation: GpuCaptureCorrelation<'a>,
    /// What captured it.
    pub tool: GpuCaptureTool<'a>,
    /// How.
    pub commands: Vec<Cow<'a, str>>,
    /// On what.
    pub hardware: GpuHardware<'a>,
    /// Of which sources.
    pub source_revisions: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// Labels that the trace must have once each.
    pub required_semantic_labels: Vec<Cow<'a, str>>,
    /// Those of them that must be projected on the GPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_expected_semantic_labels: Vec<Cow<'a, str>>,
    /// Those of them that must not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_only_semantic_labels: Vec<Cow<'a, str>>,
    /// The files.
    pub artifacts: Vec<GpuArtifact<'a>>,
}

impl GpuCapture<'_> {
    /// The label that binds.
    pub const SCHEMA: &'static str = "candle-graph/nsight-capture/1";
}

/// One of Nsight's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuArtifact<'a> {
    /// Relative to Nsight's directory.
    pub path: Cow<'a, str>,
    /// Its size.
    pub size_bytes: u64,
    /// Its SHA-256.
    pub sha256: Cow<'a, str>,
}

/// The run that was captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuCaptureRun<'a> {
    /// The trace's run id.
    pub id: Cow<'a, str>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Cow<'a, str>>,
}

/// What trace and ranges have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuCaptureCorrelation<'a> {
    /// The trace's correlation id.
    pub id: Cow<'a, str>,
}

/// The program that captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuCaptureTool<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its version.
    pub version: Cow<'a, str>,
}

/// The machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuHardware<'a> {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Cow<'a, str>>,
    /// Its devices.
    #[serde(default)]
    pub devices: Vec<Cow<'a, str>>,
}
