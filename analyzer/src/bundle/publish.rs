//! The protocol: staged beside, synchronised, checked, renamed without replacing.

use std::io;
use std::path::Path;

use tmrun_formats::GapClass;
use tmrun_formats::bundle::{
    EVIDENCE, MANIFEST, NSIGHT, PublicationReceipt, PublicationSchema, PublicationStatus, REPORT,
    TRACE,
};
use tmrun_formats::evidence::Gpu;
use tmrun_formats::trace::TraceRun;

use super::content::{Content, content};
use super::contents::{Contents, write_trace};
use super::error::{PublishError, PublishFault};
use super::invalid::Invalid;
use super::moment::{Moment, Observer};
use super::place::{Place, sync};
use super::retry::{Differing, Found, evidence, reconcile};
use super::staging::Staging;
use super::verify::{Verified, verified};
use super::{ANNEX, Problem, ProblemKind, RECORDING, nsight};
use crate::input::Input;
use crate::nsight::read as read_nsight;
use crate::scan::{Gap, Recording, Status};
use crate::slice::{Region, slice};
use crate::trace::{Derived, Trace, planned};

/// What is to be published, and where.
#[derive(Debug, Clone, Copy)]
pub struct Request<'q> {
    /// The recording.
    pub recording: &'q Recording<'q>,
    /// The region of it that is evidence.
    pub region: &'q Region,
    /// The bundle's directory.
    pub destination: &'q Path,
    /// A flat directory of what Nsight left, to be kept in the bundle.
    pub nsight: Option<&'q Path>,
}

/// A planned capture that is published.
#[derive(Debug, Clone)]
pub struct Publication {
    /// The receipt.
    pub receipt: PublicationReceipt,
    /// Where it was published before: in what that differs from this one, and is the same planned
    /// capture all the same.
    pub differing: Vec<Differing>,
    /// What is lost of the region.
    pub lost: Vec<Gap>,
    /// Why its trace is structurally invalid, where it is.
    pub invalid: Option<Invalid>,
}

impl Publication {
    pub(super) fn found(found: Found, lost: Vec<Gap>) -> Self {
        let Found { receipt, differing, invalid } = found;
        Self { receipt, differing, lost, invalid }
    }
}

/// Publishes a region's evidence, or finds it published. `observe` is told of every [`Moment`].
///
/// # Errors
///
/// When something else is at the destination, or something cannot be read or written: then nothing is
/// there that was not there before. Only when the directory around the destination cannot be
/// synchronised, or the bundle does not hold where it lies, is it there all the same.
pub fn publish(
    request: &Request<'_>,
    observe: &mut Observer<'_>,
) -> Result<Publication, PublishError> {
    let place = Place::of(request.destination)?;
    let planned = planned(request.recording, request.region);
    tell(observe, Moment::Planned)?;
    place.refuse_nested()?;
    if let Some(folder) = request.nsight {
        nsight::check(folder)?;
    }
    if let Some(found) = reconcile(&place, &planned)? {
        return Ok(already(&place, found, request)?);
    }
    tell(observe, Moment::Free)?;
    place.make_parents()?;
    tell(observe, Moment::Parents)?;
    let mut staging = Staging::begin(&place)?;
    let staged = stage(request, &mut staging, observe);
    let taken = staged.and_then(|lost| Ok((lost, take(&place, &staging, &planned)?)));
    match taken {
        Ok((lost, None)) => settle(&place, lost, observe).map_err(PublishError::from),
        // Another publisher of the same capture was faster.
        Ok((_, Some(found))) => {
            staging.discard();
            Ok(already(&place, found, request)?)
        }
        Err(fault) => Err(PublishError { fault, trace: staging.abandon(&place) }),
    }
}

fn tell(observe: &mut Observer<'_>, moment: Moment<'_>) -> Result<(), PublishFault> {
    observe(moment).map_err(PublishFault::Stopped)
}

fn already(
    place: &Place,
    mut found: Found,
    request: &Request<'_>,
) -> Result<Publication, PublishFault> {
    if let Some(folder) = request.nsight {
        found.differing.extend(nsight::differing(folder, &place.path)?);
    }
    let trace = Trace::of(request.recording, request.region);
    let derived = trace.derive();
    found.differing.extend(evidence(place, request.region, &derived.told));
    Ok(Publication::found(found, lost(&derived)))
}

fn lost(derived: &Derived<'_>) -> Vec<Gap> {
    let gaps = derived.told.gaps.iter();
    gaps.filter(|gap| gap.class == GapClass::Lost).copied().collect()
}

/// Puts it together, and checks it. Everything is derived from the part of the recording that is in it:
/// nobody needs more to derive it again. No document is written before all of them are derived. Returns
/// what is lost of the region.
fn stage(
    request: &Request<'_>,
    staging: &mut Staging,
    observe: &mut Observer<'_>,
) -> Result<Vec<Gap>, PublishFault> {
    tell(observe, Moment::Staged)?;
    staging.file(RECORDING, observe, |out| slice(request.recording, request.region, out))?;
    let failed = |why: &dyn ToString| PublishFault::Slice { why: why.to_string() };
    let input = Input::open(&staging.root.join(RECORDING)).map_err(|error| failed(&error))?;
    let recording = Recording::open(&input, RECORDING).map_err(|error| failed(&error))?;
    // Whoever derives it again has to find what was found here.
    if recording.status() != Status::Finished {
        let first = recording.findings().first().map(ToString::to_string);
        return Err(failed(&first.unwrap_or_else(|| "it has no end".to_owned())));
    }
    let region = Region::of(&recording, request.region.step()).map_err(|error| failed(&error))?;
    let trace = Trace::of(&recording, &region);
    let derived = trace.derive();
    let mut gpu: Option<Gpu<'_>> = None;
    if let Some(folder) = request.nsight {
        nsight::copy(folder, staging, observe)?;
        gpu = Some(read_nsight(&staging.root.join(NSIGHT), &derived.document.run));
    }
    let contents = Contents::of(&recording, &region, &derived, gpu)?;
    staging.file(TRACE, observe, |out| write_trace(&derived, out))?;
    staging.file(EVIDENCE, observe, |out| contents.write_evidence(out))?;
    staging.file(REPORT, observe, |out| contents.write_report(out))?;
    staging.file(ANNEX, observe, |out| contents.write_annex(out))?;
    staging.manifest(&derived.document.run.run_id, observe)?;
    let Content { problems, .. } = content(&staging.root);
    if let Some(problem) = problems.into_iter().next() {
        let (path, problem) = (staging.root.clone(), Box::new(problem));
        return Err(PublishFault::NotWhole { path, problem });
    }
    tell(observe, Moment::Verified)?;
    staging.sync()?;
    tell(observe, Moment::Synced)?;
    Ok(lost(&derived))
}

/// Moves it to its place. Something may have come there meanwhile, and may be the same capture.
fn take(
    place: &Place,
    staging: &Staging,
    planned: &TraceRun,
) -> Result<Option<Found>, PublishFault> {
    loop {
        match place.take(&staging.root) {
            Ok(()) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if let Some(found) = reconcile(place, planned)? {
                    return Ok(Some(found));
                }
                // It has gone again.
            }
            Err(error) => return Err(PublishFault::io("renamed to", &place.path)(error)),
        }
    }
}

/// It is there: makes that last, and looks at it once more.
fn settle(
    place: &Place,
    lost: Vec<Gap>,
    observe: &mut Observer<'_>,
) -> Result<Publication, PublishFault> {
    tell(observe, Moment::Renamed)?;
    sync(&place.parent)?;
    tell(observe, Moment::Durable)?;
    let not_whole = |found: Box<Content>| {
        let problem = found.problems.into_iter().next();
        let problem = problem.unwrap_or_else(|| Problem::of(ProblemKind::Missing, MANIFEST));
        PublishFault::NotWhole { path: place.path.clone(), problem: Box::new(problem) }
    };
    let Verified { receipt: verification, invalid, .. } =
        verified(&place.path).map_err(not_whole)?;
    tell(observe, Moment::Checked)?;
    let receipt = PublicationReceipt {
        schema: PublicationSchema,
        status: PublicationStatus::Published,
        bundle_path: place.path.clone(),
        run_id: verification.run_id.clone().into_owned(),
        verification,
    };
    Ok(Publication { receipt, differing: Vec::new(), lost, invalid })
}
