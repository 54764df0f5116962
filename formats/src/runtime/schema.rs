//! The three schema labels, and the collections a document is made of.

/// The label of version 1.
pub const SCHEMA_V1: &str = "candle-graph/runtime/1";
/// The label of version 2, which introduced steps and value ranges.
pub const SCHEMA_V2: &str = "candle-graph/runtime/2";
/// The label of version 3, which introduced durations, edge timings and the phase.
pub const SCHEMA_V3: &str = "candle-graph/runtime/3";
/// What [`RuntimeTraceWriter::new`](super::RuntimeTraceWriter::new) writes: version 1, as the
/// neighbour does.
pub const SCHEMA: &str = SCHEMA_V1;
/// Every label that a reader accepts. A label gates nothing: a `/1` document may carry steps.
pub const SCHEMAS: [&str; 3] = [SCHEMA_V1, SCHEMA_V2, SCHEMA_V3];

/// Whether `label` is one of [`SCHEMAS`].
#[must_use]
pub fn is_known_schema(label: &str) -> bool {
    SCHEMAS.contains(&label)
}

/// One collection of a document, in the order in which a document holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// Tensor observations.
    Tensors,
    /// Operation observations.
    Operations,
    /// Gradient facts.
    Gradients,
    /// Value ranges.
    Values,
    /// Edge timings.
    EdgeTimings,
}

impl Section {
    /// All of them, in document order.
    pub const ALL: [Section; 5] = [
        Section::Tensors,
        Section::Operations,
        Section::Gradients,
        Section::Values,
        Section::EdgeTimings,
    ];

    /// The key of the collection in the document form.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Section::Tensors => "tensors",
            Section::Operations => "operations",
            Section::Gradients => "gradients",
            Section::Values => "values",
            Section::EdgeTimings => "edge_timings",
        }
    }

    /// The `kind` of one of its records in the JSONL form.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Section::Tensors => "tensor",
            Section::Operations => "operation",
            Section::Gradients => "gradient",
            Section::Values => "value",
            Section::EdgeTimings => "edge_timing",
        }
    }

    /// The first schema that names this collection; documents of an older label leave it out when
    /// it is empty.
    #[must_use]
    pub const fn since(self) -> &'static str {
        match self {
            Section::Tensors | Section::Operations | Section::Gradients => SCHEMA_V1,
            Section::Values => SCHEMA_V2,
            Section::EdgeTimings => SCHEMA_V3,
        }
    }
}
