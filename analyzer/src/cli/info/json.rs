//! The answer as one JSON document, schema `tmrun/info/1`.
//!
//! 64-bit ids are strings, moments are nanoseconds since the first calibration, keys keep their
//! order, and `null` is what the file does not say.

use tmrun::scan::{Clock, ClockFault, FocusChange, Gap, Lane, Names, Recording};
use tmrun_formats::LaneId;
use tmrun_formats::json::{self, Object, push_array};
use tmrun_formats::wire::{LevelChange, RunV1, VERSION};

use super::super::loss::Loss;
use super::super::schemas;
use super::devices;
use super::facts::{Facts, pattern_of};

pub(super) fn document(recording: &Recording<'_>, facts: &Facts<'_>, loss: &Loss) -> Vec<u8> {
    let mut out = Vec::new();
    let mut object = Object::begin(&mut out);
    object.string("schema", schemas::INFO);
    push_file(object.value("file"), recording, facts);
    push_part(object.value("part"), recording);
    push_run(object.value("run"), recording);
    let mut records = Object::begin(object.value("records"));
    recording.counts().occurring().for_each(|(kind, n)| records.u64(kind, n));
    records.end();
    let (changes, clock) = (recording.levels().changes(), recording.clock());
    push_array(object.value("levels"), changes, |out, change| push_level(out, &clock, change));
    let (foci, names) = (recording.levels().foci(), recording.names());
    push_array(object.value("foci"), foci, |out, focus| push_focus(out, &clock, names, focus));
    push_steps(object.value("steps"), facts);
    let lanes = recording.lanes().iter();
    push_array(object.value("lanes"), lanes, |out, (id, lane)| push_lane(out, id, lane, facts));
    let mut lost = Object::begin(object.value("lost"));
    lost.u64("gaps", loss.gaps);
    lost.u64("records", loss.records);
    lost.u64("uncounted_gaps", loss.uncounted);
    lost.u64("findings", recording.findings().len() as u64);
    lost.end();
    push_array(object.value("gaps"), recording.gaps(), |out, gap: &Gap| gap.write_json(out));
    object.u64("merged_gaps", recording.merged_gaps());
    push_clock(object.value("clock"), recording, facts);
    push_cost(object.value("recorder_cost"), recording, facts);
    push_rings(object.value("rings"), facts);
    devices::push(object.value("devices"), recording, &facts.devices);
    push_terminal(object.value("terminal"), recording);
    object.u64("open_spans", recording.meta().open_spans.len() as u64);
    object.end();
    out.push(b'\n');
    out
}

fn push_file(out: &mut Vec<u8>, recording: &Recording<'_>, facts: &Facts<'_>) {
    let mut file = Object::begin(out);
    file.string("name", recording.name());
    file.u64("bytes", recording.bytes().len() as u64);
    file.u64("version", VERSION.into());
    file.string("status", recording.status().name());
    file.u64("created_ns", recording.header().created_ns);
    let chunks = &facts.chunks;
    let mut counts = Object::begin(file.value("chunks"));
    counts.u64("records", chunks.records);
    counts.u64("meta", chunks.meta);
    counts.u64("index", chunks.index);
    counts.u64("blob", chunks.blob);
    counts.u64("unknown", chunks.unknown);
    counts.u64("damaged", chunks.damaged);
    counts.end();
    file.bool("trailer", recording.trailer().is_some());
    file.u64("unknown_frames", recording.meta().unknown_frames);
    file.u64("names", recording.names().len() as u64);
    file.end();
}

/// Which of several files of its recording it is, and which of them were removed.
fn push_part(out: &mut Vec<u8>, recording: &Recording<'_>) {
    let Some(part) = recording.meta().part else { return out.extend_from_slice(b"null") };
    let mut object = Object::begin(out);
    object.u64("number", part.number);
    optional(&mut object, "previous", part.previous);
    optional(&mut object, "next", part.next);
    let removed = recording.meta().removed.values();
    push_array(object.value("removed"), removed, |out, removed| {
        let mut object = Object::begin(out);
        object.u64("first", removed.first);
        object.u64("last", removed.last);
        object.u64("files", removed.files);
        object.u64("records", removed.records);
        object.end();
    });
    object.end();
}

fn push_run(out: &mut Vec<u8>, recording: &Recording<'_>) {
    let meta = recording.meta();
    let mut run = Object::begin(out);
    run.string("run", &recording.header().run.to_string());
    match &meta.run {
        Some(known) => push_known_run(&mut run, known),
        None => run.null("run_id"),
    }
    push_array(run.value("tags"), &meta.tags, |out, tag| {
        let mut pair = Object::begin(out);
        pair.string("key", tag.key);
        pair.string("value", tag.value);
        pair.end();
    });
    run.strings("cargo_features", &meta.cargo_features);
    run.strings("cfg", &meta.cfg);
    run.end();
}

fn push_known_run(object: &mut Object<'_>, run: &RunV1<'_>) {
    object.string("run_id", run.run_id);
    optional(object, "correlation_id", run.correlation_id);
    object.string("entrypoint", run.entrypoint);
    object.string("device", run.device);
    optional(object, "phase", run.phase.name());
    object.u64("capture_step", run.capture_step);
    object.u64("warmup_steps", run.warmup_steps);
    object.bool("device_synchronized", run.device_synchronized);
    object.bool("measured_region_synchronized", run.measured_region_synchronized);
    optional(object, "candle_version", run.candle_version);
    object.string("profile", run.profile);
    optional(object, "analysis_id", run.analysis_id);
    optional(object, "build_id", run.build_id);
    optional(object, "host", run.host);
    optional_u64(object, "pid", run.pid.map(u64::from));
    optional_u64(object, "rank", run.rank.map(u64::from));
    optional_u64(object, "world_size", run.world_size.map(u64::from));
    optional(object, "rings", run.rings);
    object.u64("ring_slots", run.ring_slots);
}

fn push_level(out: &mut Vec<u8>, clock: &Clock<'_>, change: &LevelChange) {
    push_change(Object::begin(out), clock, change);
}

fn push_focus(out: &mut Vec<u8>, clock: &Clock<'_>, names: &Names<'_>, focus: &FocusChange) {
    let mut object = Object::begin(out);
    object.string("pattern", &pattern_of(names, focus.pattern));
    push_change(object, clock, &focus.change);
}

fn push_change(mut level: Object<'_>, clock: &Clock<'_>, change: &LevelChange) {
    level.u64("level", change.new.0.into());
    optional(&mut level, "name", change.new.name());
    level.u64("old", change.old.0.into());
    optional(&mut level, "source", change.source.name());
    level.u64("asked_ns", clock.ns(change.asked));
    level.u64("armed_ns", clock.ns(change.armed));
    level.end();
}

fn push_steps(out: &mut Vec<u8>, facts: &Facts<'_>) {
    let steps = &facts.steps;
    let mut object = Object::begin(out);
    object.u64("count", steps.counts.steps);
    object.u64("train", steps.counts.train);
    object.u64("infer", steps.counts.infer);
    optional_u64(&mut object, "first", steps.first);
    optional_u64(&mut object, "last", steps.last);
    object.end();
}

fn push_lane(out: &mut Vec<u8>, id: LaneId, lane: &Lane<'_>, facts: &Facts<'_>) {
    let mut object = Object::begin(out);
    object.u64("lane", id.0.into());
    object.bool("recorder", id == LaneId::RECORDER);
    optional(&mut object, "name", lane.claim.map(|claim| claim.name));
    match lane.claim.filter(|claim| claim.thread != 0) {
        Some(claim) => object.string("thread", &claim.thread.to_string()),
        None => object.null("thread"),
    }
    object.u64("claims", lane.claims);
    object.u64("chunks", lane.chunks);
    object.u64("records", lane.records);
    object.u64("spans", lane.spans);
    object.u64("steps", lane.steps.counts.steps);
    object.u64("lost_records", facts.lost.get(&id).copied().unwrap_or_default());
    let totals = lane.totals;
    optional_u64(&mut object, "dropped_records", totals.map(|totals| totals.dropped_records));
    optional_u64(&mut object, "dropped_groups", totals.map(|totals| totals.dropped_groups));
    optional_u64(&mut object, "truncated", totals.map(|totals| totals.truncated));
    optional_u64(&mut object, "out_of_order", totals.map(|totals| totals.out_of_order));
    optional_u64(&mut object, "high_water", totals.map(|totals| totals.high_water));
    object.end();
}

fn push_clock(out: &mut Vec<u8>, recording: &Recording<'_>, facts: &Facts<'_>) {
    let run = recording.meta().run;
    let calibrations = recording.calibrations();
    let mut clock = Object::begin(out);
    optional(&mut clock, "name", run.map(|run| run.clock));
    match run {
        Some(run) => clock.bool("invariant", run.clock_invariant),
        None => clock.null("invariant"),
    }
    clock.u64("nominal_ticks_per_second", recording.header().ticks_per_second);
    optional_f64(&mut clock, "measured_ticks_per_second", calibrations.measured_rate());
    optional_f64(&mut clock, "rate_spread_ppm", calibrations.rate_spread_ppm());
    clock.u64("calibrations", calibrations.used);
    clock.u64("set_aside", calibrations.set_aside);
    clock.u64("uncertainty_ns", facts.uncertainty_ns);
    optional(&mut clock, "fault", calibrations.fault.map(ClockFault::name));
    optional_u64(&mut clock, "first_ns", facts.span_ns.map(|span| span.0));
    optional_u64(&mut clock, "last_ns", facts.span_ns.map(|span| span.1));
    clock.end();
}

fn push_cost(out: &mut Vec<u8>, recording: &Recording<'_>, facts: &Facts<'_>) {
    let (Some(frame), Some(cost)) = (recording.meta().cost, facts.cost) else {
        return out.extend_from_slice(b"null");
    };
    let mut object = Object::begin(out);
    optional_f64(&mut object, "record_ns", Some(cost.record_ns));
    optional_f64(&mut object, "span_ns", Some(cost.span_ns));
    optional_f64(&mut object, "estimated_ns", Some(cost.total_ns));
    optional_f64(&mut object, "estimated_ns_per_step", cost.step.map(|step| step.ns));
    let by_level = cost.step.map(|step| step.by_level);
    match by_level.filter(|levels| levels.iter().all(|ns| ns.is_finite())) {
        Some(levels) => {
            push_array(object.value("estimated_ns_per_step_by_level"), levels, |out, ns| {
                _ = json::push_f64(out, ns);
            })
        }
        None => object.null("estimated_ns_per_step_by_level"),
    }
    optional_f64(&mut object, "estimated_share_of_step", cost.step.and_then(|step| step.share));
    object.u64("unnamed", frame.unnamed);
    object.end();
}

fn push_rings(out: &mut Vec<u8>, facts: &Facts<'_>) {
    let Some(rings) = facts.rings else { return out.extend_from_slice(b"null") };
    let mut object = Object::begin(out);
    object.u64("slots", rings.slots);
    optional_u64(&mut object, "fullest_lane", rings.fullest.map(|(lane, _)| lane.0.into()));
    optional_u64(&mut object, "high_water", rings.fullest.map(|(_, waited)| waited));
    optional_f64(&mut object, "headroom", rings.headroom());
    let dropped = rings.dropped;
    optional_u64(&mut object, "dropped_lane", dropped.map(|dropped| dropped.lane.0.into()));
    optional_u64(&mut object, "worst_burst", dropped.map(|dropped| dropped.burst));
    optional_u64(&mut object, "slots_needed", dropped.and_then(|dropped| dropped.slots));
    object.end();
}

fn push_terminal(out: &mut Vec<u8>, recording: &Recording<'_>) {
    let Some(terminal) = recording.meta().terminal else {
        return out.extend_from_slice(b"null");
    };
    let mut object = Object::begin(out);
    object.bool("complete", terminal.complete);
    optional(&mut object, "reason", terminal.reason);
    object.u64("at_ns", recording.clock().ns(terminal.ticks));
    object.end();
}

fn optional(object: &mut Object<'_>, key: &'static str, value: Option<&str>) {
    match value {
        Some(value) => object.string(key, value),
        None => object.null(key),
    }
}

fn optional_u64(object: &mut Object<'_>, key: &'static str, value: Option<u64>) {
    match value {
        Some(value) => object.u64(key, value),
        None => object.null(key),
    }
}

/// A number that is not finite is none.
fn optional_f64(object: &mut Object<'_>, key: &'static str, value: Option<f64>) {
    match value.filter(|value| value.is_finite()) {
        Some(value) => _ = json::push_f64(object.value(key), value),
        None => object.null(key),
    }
}
