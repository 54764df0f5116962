//! Metadata frames: kind u16, version u16, length u32, then a postcard body. Kind 0 ends a payload;
//! everything behind it is zero. A published body never changes: a new version is a new struct, and
//! readers keep all. A list is as many frames as it has entries, so that reading needs no memory.

mod body;
mod walk;

pub use body::*;
pub use walk::{EncodeError, FrameError, Frames, RawFrame};

macro_rules! frames {
    ($($(#[$doc:meta])* $variant:ident = $kind:literal, $version:literal: $body:ty;)*) => {
        /// One fact about the run, its names or its recorder.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Frame<'a> {
            $($(#[$doc])* $variant($body),)*
        }

        impl<'a> Frame<'a> {
            /// The kind and version that its head carries.
            pub const fn kind(&self) -> (u16, u16) {
                match self {
                    $(Self::$variant(_) => ($kind, $version),)*
                }
            }

            /// Hands the body to `flavor`, which keeps it, counts it or passes it on.
            fn serialize_body<F: postcard::ser_flavors::Flavor>(
                &self,
                flavor: F,
            ) -> Result<F::Output, postcard::Error> {
                match self {
                    $(Self::$variant(body) => postcard::serialize_with_flavor(body, flavor),)*
                }
            }

            /// Writes the body into `out` and returns its length.
            fn encode_body(&self, out: &mut [u8]) -> Result<usize, postcard::Error> {
                match self {
                    $(Self::$variant(body) => postcard::to_slice(body, out).map(|used| used.len()),)*
                }
            }

            /// The frame of this kind and version, and what is left of the body; `None` for a kind
            /// or version that is not known.
            fn decode_body(kind: u16, version: u16, body: &'a [u8]) -> Option<Result<(Self, &'a [u8]), postcard::Error>> {
                match (kind, version) {
                    $(($kind, $version) => Some(
                        postcard::take_from_bytes(body).map(|(body, rest)| (Self::$variant(body), rest))
                    ),)*
                    _ => None,
                }
            }
        }
    };
}

frames! {
    /// The run.
    Run = 1, 1: RunV1<'a>;
    /// A tag of the run.
    Tag = 2, 1: TagV1<'a>;
    /// One entry of `cargo_features`.
    CargoFeature = 3, 1: ItemV1<'a>;
    /// One entry of `cfg`.
    Cfg = 4, 1: ItemV1<'a>;
    /// What the producer says that it covered.
    Contract = 5, 1: ContractV1;
    /// A semantic label of the contract.
    Label = 6, 1: LabelV1<'a>;
    /// One expected gradient of the contract, in manifest order.
    GradientEntry = 7, 1: GradientEntryV1<'a>;
    /// One family of the gradient contract.
    GradientFamily = 8, 1: GradientFamilyV1<'a>;
    /// What makes runs comparable.
    ComparisonIdentity = 9, 1: ComparisonIdentityV1<'a>;
    /// Who claimed a lane.
    Lane = 10, 1: LaneV1<'a>;
    /// An entry of the name table.
    Name = 11, 1: NameV1<'a>;
    /// A static call site.
    Site = 12, 1: SiteV1<'a>;
    /// A dtype code from 128.
    DType = 13, 1: DTypeV1<'a>;
    /// A device code.
    Device = 14, 1: DeviceV1<'a>;
    /// A clock code.
    Clock = 15, 1: ClockV1<'a>;
    /// A reading of the recording clock and the host's together.
    Calibration = 16, 1: CalibrationV1;
    /// A configuration that Control records refer to.
    Control = 17, 1: ControlV1<'a>;
    /// A span that was open when the recording ended.
    OpenSpan = 18, 1: OpenSpanV1;
    /// How the run ended.
    Terminal = 19, 1: TerminalV1<'a>;
    /// The counters of a lane.
    Totals = 20, 1: TotalsV1;
    /// What recording costs, as calibrated.
    RecorderCost = 21, 1: RecorderCostV1;
    /// Positions that hold no records, and why.
    Hole = 22, 1: HoleV1;
    /// In a rings file: the file that the rings are drained into.
    RecordingFile = 23, 1: ItemV1<'a>;
    /// Which of several files of a recording this one is.
    Part = 24, 1: PartV1<'a>;
    /// Files of the recording that were removed.
    Removed = 25, 1: RemovedV1;
    /// The step that a lane is in.
    LaneStep = 26, 1: LaneStepV1;
    /// Where a file takes up a lane of an earlier one.
    LaneStart = 27, 1: LaneStartV1;
}
