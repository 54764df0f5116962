//! What a contract still holds when something of the region is missing.

use tmrun_formats::trace::{CaptureContract, CoverageLevel, GradientContract};
use tmrun_formats::{GapClass, Planes};

use super::Time;
use super::told::{LeftOut, Refuted, Told};
use crate::readable::{duration, number, plural};
use crate::scan::Gap;
use crate::slice::concern::Concern;

/// A plane of a contract, and the evidence that it is made of.
struct Plane {
    name: &'static str,
    level: fn(&mut CaptureContract) -> &mut CoverageLevel,
    evidence: Planes,
    /// What of that may be recorded and is missing in the trace all the same.
    lacks: &'static [Lack],
}

/// What a trace lacks: how much of it, and what is said of one and of several.
type Lack = (fn(&Told) -> u64, &'static str, &'static str);

/// Nobody knows which plane a record of a newer version is of.
const UNKNOWN: Lack = (
    |told| told.count(LeftOut::Unknown),
    "record is of a kind that this version does not know",
    "records are of kinds that this version does not know",
);
const SHAPES: Lack =
    (|told| told.count(LeftOut::TensorShape), "tensor lacks dimensions", "tensors lack dimensions");
const GRADIENTS: Lack = (
    |told| told.count(LeftOut::Gradient),
    "gradient has no norm that goes with its state",
    "gradients have no norm that goes with their state",
);
const FREES: Lack = (
    |told| told.count(LeftOut::Free),
    "free is of storage of unknown origin",
    "frees are of storage of unknown origin",
);
const IDENTITIES: Lack =
    (|told| told.unidentified_tensors, "tensor has no identity", "tensors have no identity");
const STORAGES: Lack = (
    |told| told.count(LeftOut::Storage),
    "allocation or free is of storage without an identity",
    "allocations and frees are of storage without an identity",
);
const RENAMED: Lack = (
    |told| told.renamed_storages.len() as u64,
    "storage came while one of its name was live",
    "storages came while one of their name was live",
);
const SAMPLES: Lack = (
    |told| told.count(LeftOut::OtherDevice),
    "sample is of a device that found no code",
    "samples are of devices that found no code",
);
const INTERVALS: Lack = (
    |told| told.count(LeftOut::OtherClock),
    "interval is of a device or a clock that found no code",
    "intervals are of devices or clocks that found no code",
);

/// The planes. An activation is known by its operation and by the tensor or the storage of its output:
/// where one of them is missing, so may be the activation.
const PLANES: [Plane; 7] = [
    Plane {
        name: "operations",
        level: |c| &mut c.operations,
        evidence: Planes::OPERATIONS,
        lacks: &[],
    },
    Plane {
        name: "activations",
        level: |c| &mut c.activations,
        evidence: Planes::OPERATIONS.union(Planes::TENSORS).union(Planes::LOGICAL_MEMORY),
        lacks: &[SHAPES, IDENTITIES, STORAGES, FREES, RENAMED],
    },
    Plane {
        name: "tensors",
        level: |c| &mut c.tensors,
        evidence: Planes::TENSORS,
        lacks: &[SHAPES, IDENTITIES],
    },
    Plane {
        name: "gradients",
        level: |c| &mut c.gradients,
        evidence: Planes::GRADIENTS,
        lacks: &[GRADIENTS],
    },
    Plane {
        name: "logical_memory",
        level: |c| &mut c.logical_memory,
        evidence: Planes::LOGICAL_MEMORY,
        lacks: &[STORAGES, FREES, RENAMED],
    },
    Plane {
        name: "physical_memory",
        level: |c| &mut c.physical_memory,
        evidence: Planes::PHYSICAL_MEMORY,
        lacks: &[SAMPLES],
    },
    Plane {
        name: "device_timing",
        level: |c| &mut c.device_timing,
        evidence: Planes::DEVICE_TIMING,
        lacks: &[INTERVALS],
    },
];

/// Takes back what does not hold: `complete` becomes `partial`, and gradients that are not complete
/// have no contract.
pub(super) fn refute(
    contract: &mut CaptureContract,
    told: &mut Told,
    concern: &Concern<'_>,
    time: &Time<'_>,
) {
    for plane in &PLANES {
        let level = (plane.level)(contract);
        if *level != CoverageLevel::Complete {
            continue;
        }
        if let Some(because) = why(plane, told, concern, time) {
            let (declared, instead) = (*level, CoverageLevel::Partial);
            *level = instead;
            told.refuted.push(Refuted { plane: plane.name, declared, instead, because });
        }
    }
    told.host_time = lost_host_time(told, concern, time);
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
fn why(plane: &Plane, told: &Told, concern: &Concern<'_>, time: &Time<'_>) -> Option<String> {
    let touches =
        |gap: &&Gap| concern.planes(gap).is_some_and(|planes| planes.0 & plane.evidence.0 != 0);
    let mut lacks = plane.lacks.iter().chain(&[UNKNOWN]);
    let of_lack = |&(count, one, many): &Lack| match count(told) {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{} {many}", number(count))),
    };
    let gaps = told.gaps.iter().filter(touches).collect();
    of_gaps(gaps, concern, time).or_else(|| lacks.find_map(of_lack))
}

/// What is lost of the region and may have been spans.
fn lost_host_time(told: &Told, concern: &Concern<'_>, time: &Time<'_>) -> Option<String> {
    let lost = told.gaps.iter().filter(|gap| gap.class == GapClass::Lost);
    let within = lost.filter(|gap| concern.is_within(gap));
    let is_host_time =
        |gap: &&Gap| concern.planes(gap).is_some_and(|planes| planes.contains(Planes::HOST_TIME));
    of_gaps(within.filter(is_host_time).collect(), concern, time)
}

/// What is missing, of several gaps the first of those within the region.
fn of_gaps(mut gaps: Vec<&Gap>, concern: &Concern<'_>, time: &Time<'_>) -> Option<String> {
    gaps.sort_by_key(|gap| !concern.is_within(gap));
    let (first, more) = gaps.split_first()?;
    let what = of_gap(first, concern, time);
    Some(match more.len() as u64 {
        0 => what,
        more => format!("{what}, and {} more", plural(more, "gap")),
    })
}

/// What is missing, where, and from when to when in the trace.
fn of_gap(gap: &Gap, concern: &Concern<'_>, time: &Time<'_>) -> String {
    let reason = gap.reason_name();
    let what = match (gap.class, gap.records) {
        (GapClass::Lost, 0) => format!("evidence that nobody counted is lost ({reason})"),
        (GapClass::Lost, 1) => format!("1 record is lost ({reason})"),
        (GapClass::Lost, many) => format!("{} records are lost ({reason})", number(many)),
        (GapClass::NotRequested, _) => format!("not all of it was asked for ({reason})"),
    };
    let lane = gap.lane.map_or_else(String::new, |lane| format!(" on lane {}", lane.0));
    if !concern.is_within(gap) {
        return format!("{what}{lane}, before it began");
    }
    let [from, to] = [gap.first, gap.last].map(|at| duration(time.at(at) as f64));
    format!("{what}{lane}, from {from} to {to}")
}
