//! What a contract still holds when something of the region is missing.

use tmrun_formats::trace::{CaptureContract, CoverageLevel, GradientContract};
use tmrun_formats::{GapClass, GapReason, LaneId, Planes};

use super::told::{LeftOut, Refuted, Told};
use crate::scan::{Gap, Recording};
use crate::slice::Region;
use crate::slice::kept::{Kept, edges};

/// A plane of a contract, and the evidence that it is made of.
struct Plane {
    name: &'static str,
    level: fn(&mut CaptureContract) -> &mut CoverageLevel,
    evidence: Planes,
}

/// The planes. An activation is known by its operation and by the tensor or the storage of its output:
/// where one of them is missing, so may be the activation.
const PLANES: [Plane; 7] = [
    Plane { name: "operations", level: |c| &mut c.operations, evidence: Planes::OPERATIONS },
    Plane {
        name: "activations",
        level: |c| &mut c.activations,
        evidence: Planes::OPERATIONS.union(Planes::TENSORS).union(Planes::LOGICAL_MEMORY),
    },
    Plane { name: "tensors", level: |c| &mut c.tensors, evidence: Planes::TENSORS },
    Plane { name: "gradients", level: |c| &mut c.gradients, evidence: Planes::GRADIENTS },
    Plane {
        name: "logical_memory",
        level: |c| &mut c.logical_memory,
        evidence: Planes::LOGICAL_MEMORY,
    },
    Plane {
        name: "physical_memory",
        level: |c| &mut c.physical_memory,
        evidence: Planes::PHYSICAL_MEMORY,
    },
    Plane {
        name: "device_timing",
        level: |c| &mut c.device_timing,
        evidence: Planes::DEVICE_TIMING,
    },
];

/// What is missing of a region, in order of time. What a slice leaves out is none of it: it lies
/// before or behind, or between spans that are around the region.
pub(super) fn gaps(recording: &Recording<'_>, region: &Region, kept: &Kept<'_>) -> Vec<Gap> {
    let (from, to) = region.extent;
    let touches = |gap: &&Gap| gap.first <= to && gap.last >= from;
    let is_missing = |gap: &&Gap| {
        gap.reason != GapReason::SLICED
            || gap.lane.is_none_or(|lane| is_cut_within(region, kept, lane))
    };
    recording.gaps().iter().filter(touches).filter(is_missing).copied().collect()
}

/// Whether positions of a lane are left out between two records that were published in the region:
/// somebody cut out another part than this one.
fn is_cut_within(region: &Region, kept: &Kept<'_>, lane: LaneId) -> bool {
    let Some(runs) = kept.get(&lane) else { return true };
    let (from, to) = region.extent;
    // Runs end where chunks do, and nothing need be missing there.
    let pairs = runs.iter().zip(runs.iter().skip(1));
    pairs.filter(|(before, behind)| before.end() < behind.first).any(|(before, behind)| {
        // A record is published when the last moment that it speaks of has come.
        let (_, before) = edges(before.records());
        let (_, behind) = edges(behind.records().get(..1).unwrap_or_default());
        before < to && behind > from
    })
}

/// Takes back what does not hold: `complete` becomes `partial`, and gradients that are not complete
/// have no contract.
pub(super) fn refute(contract: &mut CaptureContract, told: &mut Told) {
    for plane in &PLANES {
        let level = (plane.level)(contract);
        if *level != CoverageLevel::Complete {
            continue;
        }
        if let Some(because) = why(plane, told) {
            let (declared, instead) = (*level, CoverageLevel::Partial);
            *level = instead;
            told.refuted.push(Refuted { plane: plane.name, declared, instead, because });
        }
    }
    if contract.gradients != CoverageLevel::Complete {
        told.gradient_contract = contract.gradient_contract.take();
    }
}

/// What a run declared, from what its trace still does and what was taken back.
pub(crate) fn declared<'p>(
    held: &CaptureContract,
    refuted: impl IntoIterator<Item = (&'p str, CoverageLevel)>,
    gradients: Option<&GradientContract>,
) -> CaptureContract {
    let mut contract = held.clone();
    for (name, level) in refuted {
        if let Some(plane) = PLANES.iter().find(|plane| plane.name == name) {
            *(plane.level)(&mut contract) = level;
        }
    }
    contract.gradient_contract = contract.gradient_contract.or(gradients.cloned());
    contract
}

/// Why a plane is not complete.
fn why(plane: &Plane, told: &Told) -> Option<String> {
    let touches = |gap: &&Gap| gap.planes == Planes::NONE || gap.planes.0 & plane.evidence.0 != 0;
    let mut gaps = told.gaps.iter().filter(touches);
    if let Some(first) = gaps.next() {
        let more = gaps.count();
        let reason = first.reason.name().unwrap_or("unknown");
        let what = match first.class {
            GapClass::Lost => format!("{} records are lost ({reason})", first.records),
            GapClass::NotRequested => format!("not all of it was asked for ({reason})"),
        };
        return Some(match more {
            0 => what,
            more => format!("{what}, and {more} gaps more"),
        });
    }
    let left_out = |what| Some(told.count(what)).filter(|&count| count > 0);
    match plane.name {
        "gradients" => left_out(LeftOut::Gradient)
            .map(|count| format!("{count} gradients have no norm that goes with their state")),
        "tensors" => {
            left_out(LeftOut::TensorShape).map(|count| format!("{count} tensors lack dimensions"))
        }
        "logical_memory" => match left_out(LeftOut::Free) {
            Some(count) => Some(format!("{count} frees are of storage of unknown origin")),
            None => Some(told.renamed_storages.len())
                .filter(|&count| count > 0)
                .map(|count| format!("{count} storages came while one of their name was live")),
        },
        _ => None,
    }
}
