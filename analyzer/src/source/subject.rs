//! One invocation, as analysis sees it.

use serde::Serialize;
use tmrun_formats::GapClass;
use tmrun_formats::evidence::Gpu;
use tmrun_formats::trace::TraceDocument;

use super::{Held, Source, SourceKind};
use crate::scan::{Gap, Recording};
use crate::slice::{Measured, Region};
use crate::trace::{Derived, Told, Trace};

/// One invocation of a source: a trace in the making, or one that is there.
#[derive(Debug)]
pub struct Part<'o> {
    source: &'o Source,
    of: Of<'o>,
}

#[derive(Debug)]
enum Of<'o> {
    Recording(Made<'o>),
    Trace(&'o TraceDocument<'o>, Option<Made<'o>>),
}

/// What is made of a region.
#[derive(Debug)]
struct Made<'o> {
    trace: Trace<'o>,
    region: &'static str,
    several_steps: Option<(u64, u64)>,
}

impl<'o> Made<'o> {
    fn of(recording: &'o Recording<'o>, region: &Region) -> Self {
        let trace = Trace::of(recording, region);
        let several_steps = region.several_steps();
        let region = match region.measured {
            Measured::Step(_) => "step",
            Measured::Span(..) => "measured_span",
            Measured::Run => "run",
        };
        Self { trace, region, several_steps }
    }
}

impl<'o> Part<'o> {
    pub(super) fn of_recording(
        source: &'o Source,
        recording: &'o Recording<'o>,
        region: &Region,
    ) -> Self {
        Self { source, of: Of::Recording(Made::of(recording, region)) }
    }

    pub(super) fn of_trace(
        source: &'o Source,
        trace: &'o TraceDocument<'o>,
        slice: Option<(&'o Recording<'o>, Region)>,
    ) -> Self {
        let made = slice.map(|(slice, region)| Made::of(slice, &region));
        Self { source, of: Of::Trace(trace, made) }
    }

    /// The trace, and what is known beside it.
    pub fn subject(&self) -> Subject<'_> {
        let (content, made, derived) = match &self.of {
            Of::Recording(made) => {
                let Derived { document, told, zero_ns, .. } = made.trace.derive();
                (Content::Made(document), Some(made), Some((told, zero_ns)))
            }
            Of::Trace(trace, made) => {
                let derived = made.as_ref().map(|made| made.trace.derive());
                let derived = derived.map(|derived| (derived.told, derived.zero_ns));
                (Content::Read(trace), made.as_ref(), derived)
            }
        };
        let region = made.map(|made| made.region);
        let (told, zero_ns) = derived.unzip();
        let gpu = match &self.source.held {
            Held::Bundle(bundle) => bundle.gpu.clone(),
            Held::Recording(_) | Held::Trace(_) => None,
        };
        let (kind, path) = (self.source.kind(), self.source.name());
        let several_steps = made.and_then(|made| made.several_steps);
        let step = several_steps.is_none().then(|| content.trace().run.capture_step);
        let input = SubjectInput { kind, path, step, region };
        let argument = self.source.argument();
        Subject { input, argument, several_steps, content, told, zero_ns, gpu }
    }
}

/// One invocation.
#[derive(Debug)]
pub struct Subject<'p> {
    /// Where it is from.
    pub input: SubjectInput<'p>,
    /// What names that on a command line; `None` where nothing does.
    pub argument: Option<&'p str>,
    /// The least and the greatest of the steps that the measured region covers, where those are several.
    pub several_steps: Option<(u64, u64)>,
    content: Content<'p>,
    /// What the trace has no place for; `None` where nobody has the recording.
    pub told: Option<Told>,
    /// When the trace begins, in nanoseconds of the recording; `None` with `told`.
    pub zero_ns: Option<u64>,
    /// What Nsight saw.
    pub gpu: Option<Gpu<'p>>,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are two of them at most")]
enum Content<'p> {
    Made(TraceDocument<'p>),
    Read(&'p TraceDocument<'p>),
}

impl<'p> Content<'p> {
    const fn trace(&self) -> &TraceDocument<'p> {
        match self {
            Self::Made(trace) => trace,
            Self::Read(trace) => trace,
        }
    }
}

impl<'p> Subject<'p> {
    /// What was seen.
    pub const fn trace(&self) -> &TraceDocument<'p> {
        self.content.trace()
    }

    /// What is missing of it, as far as the recording is there to say.
    pub fn gaps(&self) -> &[Gap] {
        self.told.as_ref().map_or(&[] as &[Gap], |told| &told.gaps)
    }

    /// What of that is lost.
    pub fn lost(&self) -> impl Iterator<Item = &Gap> {
        self.gaps().iter().filter(|gap| gap.class == GapClass::Lost)
    }

    /// What the trace does not say, as far as the recording is there to say so.
    pub const fn told(&self) -> Option<&Told> {
        self.told.as_ref()
    }
}

/// Where an answer is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SubjectInput<'p> {
    /// What it is.
    pub kind: SourceKind,
    /// What messages call it.
    pub path: &'p str,
    /// The step; `None` where the answer is about all of them, or about several.
    pub step: Option<u64>,
    /// What of the recording is measured: a `step`, a `measured_span`, or the `run` that broke off;
    /// `None` where nobody has the recording, or all of it is asked.
    pub region: Option<&'static str>,
}
