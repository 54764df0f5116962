//! What is at the destination already: the same planned capture, or something in the way.

use std::fs;
use std::io;

use serde::Serialize;
use tmrun_formats::bundle::{PublicationReceipt, PublicationSchema, PublicationStatus};
use tmrun_formats::trace::{CaptureContract, TraceRun};

use super::ANNEX;
use super::annex::Annex;
use super::content::open_regular;
use super::error::PublishFault;
use super::invalid::Invalid;
use super::place::Place;
use super::verify::{Verified, verified};
use crate::slice::Region;
use crate::trace::{Told, declared};

/// A field in which a published capture is not the planned one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// The field of the trace's run, or of `tmrun.json`.
    pub field: &'static str,
    /// What was published.
    pub published: String,
    /// What is planned.
    pub planned: String,
}

impl Differing {
    pub(super) fn list(fields: &[Self]) -> String {
        let one = |Self { field, published, planned }: &Self| {
            format!("its {field} is {published}, not {planned}")
        };
        fields.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

/// A capture that is published already.
pub(super) struct Found {
    pub(super) receipt: PublicationReceipt,
    /// Fields that make it no other planned capture.
    pub(super) differing: Vec<Differing>,
    /// Why its trace is structurally invalid.
    pub(super) invalid: Option<Invalid>,
}

/// Looks at the destination; `None` where nothing is there.
pub(super) fn reconcile(place: &Place, planned: &TraceRun) -> Result<Option<Found>, PublishFault> {
    let path = || place.path.clone();
    match fs::symlink_metadata(&place.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(PublishFault::io("looked at", path())(error)),
        Ok(_) => {}
    }
    let found = verified(&place.path).map_err(|found| {
        let first = found.problems.first().map(ToString::to_string);
        PublishFault::Occupied { path: path(), why: first.unwrap_or_default() }
    })?;
    let Verified { receipt: verification, run: published, invalid, .. } = found;
    let fields = coordinates(&published, planned);
    if !fields.is_empty() {
        return Err(PublishFault::Conflict { path: path(), fields });
    }
    let differing = others(place, &published, planned);
    let receipt = PublicationReceipt {
        schema: PublicationSchema,
        status: PublicationStatus::AlreadyPublished,
        bundle_path: place.path.clone(),
        run_id: verification.run_id.clone().into_owned(),
        verification,
    };
    Ok(Some(Found { receipt, differing, invalid }))
}

/// The fields that say which planned capture it is.
fn coordinates(published: &TraceRun, planned: &TraceRun) -> Vec<Differing> {
    let of = |run: &TraceRun| {
        [
            ("entrypoint", text(&run.entrypoint)),
            ("correlation_id", text(&run.correlation_id)),
            ("phase", text(&run.phase)),
            ("capture_step", text(&run.capture_step)),
            ("device", text(&run.device)),
        ]
    };
    differing(of(published), of(planned))
}

fn annex(place: &Place) -> Option<Annex<'static>> {
    let file = open_regular(&place.path.join(ANNEX)).map(io::BufReader::new).ok()?;
    serde_json::from_reader(file).ok()
}

/// Where the evidence itself is more or less than what was published: the edges of the region that were
/// seen, and the planes that were taken back. A file that was not finished then may have more now.
pub(super) fn evidence(place: &Place, region: &Region, told: &Told) -> Vec<Differing> {
    let Some(annex) = annex(place) else { return Vec::new() };
    let published: Vec<&str> = annex.refuted.iter().map(|refuted| &*refuted.plane).collect();
    let planned: Vec<&str> = told.refuted.iter().map(|refuted| refuted.plane).collect();
    let of = |begun: bool, ended: bool, refuted: &[&str]| {
        [("begun", text(&begun)), ("ended", text(&ended)), ("refuted", text(&refuted))]
    };
    differing(
        of(annex.region.begun, annex.region.ended, &published),
        of(region.begun, region.ended, &planned),
    )
}

/// The other fields that somebody planned, and the run: a retry records anew.
fn others(place: &Place, published: &TraceRun, planned: &TraceRun) -> Vec<Differing> {
    let of = |run: &TraceRun, contract: &CaptureContract| {
        [
            ("run_id", text(&run.run_id)),
            ("warmup_steps", text(&run.warmup_steps)),
            ("timing_mode", text(&run.timing_mode)),
            ("measured_region_device_synchronized", text(&run.measured_region_device_synchronized)),
            ("capture_contract", text(contract)),
            ("comparison_identity", text(&run.comparison_identity)),
            ("tags", text(&run.tags)),
        ]
    };
    let held = &published.capture_contract;
    let promised = annex(place).map_or_else(
        || held.clone(),
        |annex| {
            let refuted = annex.refuted.iter();
            let refuted = refuted.map(|refuted| (&*refuted.plane, refuted.declared));
            declared(held, refuted, annex.gradient_contract.as_deref())
        },
    );
    differing(of(published, &promised), of(planned, &planned.capture_contract))
}

fn differing<const N: usize>(
    published: [(&'static str, String); N],
    planned: [(&'static str, String); N],
) -> Vec<Differing> {
    let pairs = published.into_iter().zip(planned);
    let differ = pairs.filter(|((_, published), (_, planned))| published != planned);
    differ
        .map(|((field, published), (_, planned))| Differing { field, published, planned })
        .collect()
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
