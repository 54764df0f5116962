//! What is said of devices, in both forms.

use std::fmt::Write;

use tmrun::devices::{DeviceClock, Devices};
use tmrun::scan::Recording;
use tmrun_formats::json::{self, Object, push_array};
use tmrun_formats::{ClockCode, DeviceCode, DeviceFit, StampFault};

use super::super::text::{duration, number, plain, plural};

/// What every number of them means.
const MEANING: &str = "an interval is stream time between two points, not kernel busy time; host \
                       spans on CUDA are submit time";

type Known<'d> = (&'d (DeviceCode, ClockCode), &'d DeviceClock);

fn names<'r>(recording: &'r Recording<'_>, key: &(DeviceCode, ClockCode)) -> [&'r str; 3] {
    let clock = recording.meta().clocks.get(&key.1);
    [
        recording.meta().device(key.0).unwrap_or("unknown"),
        clock.map_or("unknown", |clock| clock.name),
        clock.map_or("unknown", |clock| clock.backend),
    ]
}

/// Lines, each under a name; the name of one that goes on is empty.
pub(super) fn lines(
    recording: &Recording<'_>,
    devices: &Devices<'_>,
) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    for (reason, said) in &devices.causes {
        let reason = reason.name().unwrap_or("unknown");
        lines.push(("missing", format!("{reason}: {}", plain(said))));
    }
    for known in &devices.clocks {
        lines.push(("device", timed(recording, known)));
        let invalid = known.1.invalid.iter().zip(StampFault::ALL);
        let invalid: Vec<String> = invalid
            .filter(|&(&count, _)| count > 0)
            .map(|(&count, fault)| format!("{} {}", number(count), fault.name()))
            .collect();
        if !invalid.is_empty() {
            lines.push(("", format!("stamps that say nothing: {}", invalid.join(", "))));
        }
        lines.push(("", mapped(known.1)));
    }
    if !devices.clocks.is_empty() {
        lines.push(("", MEANING.to_owned()));
    }
    lines
}

fn timed(recording: &Recording<'_>, (key, clock): Known<'_>) -> String {
    let [device, name, backend] = names(recording, key).map(plain);
    let mut line = format!("{device}, clock {name} ({backend}): ");
    let (intervals, streams) =
        (plural(clock.intervals, "interval"), plural(clock.streams, "stream"));
    let _ = write!(line, "{intervals} of {streams}");
    if let Some((first, last)) = clock.range {
        let _ = write!(line, " within {}", duration(last.saturating_sub(first) as f64));
    }
    line
}

fn mapped(clock: &DeviceClock) -> String {
    let Some(fit) = clock.fit else {
        return "device clock unmapped: nothing relates it to the host's".to_owned();
    };
    let mut line = format!(
        "mapped by {}: host = device − {}, ",
        plural(fit.readings, "reading"),
        signed(fit.offset_ns())
    );
    let _ = match fit.rate_ppm() {
        Some(rate) => write!(line, "{rate:+.3} ppm"),
        None => write!(line, "rate unknown"),
    };
    let (bound, residual) = (duration(clock.bound_ns), duration(fit.residual_ns));
    let _ = write!(line, ", to {bound}, residual {residual}; ");
    let violations = clock.too_early.saturating_add(clock.too_late);
    let _ = match violations {
        0 => write!(line, "no interval contradicts it"),
        _ => write!(
            line,
            "{} begin before their launch and {} end after they were seen",
            number(clock.too_early),
            number(clock.too_late)
        ),
    };
    line
}

fn signed(ns: f64) -> String {
    if ns < 0.0 { format!("−{}", duration(-ns)) } else { duration(ns) }
}

pub(super) fn push(out: &mut Vec<u8>, recording: &Recording<'_>, devices: &Devices<'_>) {
    let mut object = Object::begin(out);
    push_array(object.value("clocks"), &devices.clocks, |out, known| {
        push_clock(out, recording, known);
    });
    push_array(object.value("missing"), &devices.causes, |out, (reason, said)| {
        let mut cause = Object::begin(out);
        cause.string("reason", reason.name().unwrap_or("unknown"));
        cause.string("said", said);
        cause.end();
    });
    object.string("meaning", MEANING);
    object.end();
}

fn push_clock(out: &mut Vec<u8>, recording: &Recording<'_>, (key, clock): Known<'_>) {
    let [device, name, backend] = names(recording, key);
    let mut object = Object::begin(out);
    object.string("device", device);
    object.string("clock", name);
    object.string("backend", backend);
    object.u64("intervals", clock.intervals);
    object.u64("streams", clock.streams);
    let mut invalid = Object::begin(object.value("invalid"));
    for (fault, &count) in StampFault::ALL.into_iter().zip(&clock.invalid) {
        invalid.u64(fault.name(), count);
    }
    invalid.end();
    for (key, ns) in [
        ("first_device_ns", clock.range.map(|range| range.0)),
        ("last_device_ns", clock.range.map(|range| range.1)),
    ] {
        match ns {
            Some(ns) => object.u64(key, ns),
            None => object.null(key),
        }
    }
    match clock.fit {
        Some(fit) => push_fit(object.value("mapping"), clock, &fit),
        None => object.null("mapping"),
    }
    object.end();
}

fn push_fit(out: &mut Vec<u8>, clock: &DeviceClock, fit: &DeviceFit) {
    let mut object = Object::begin(out);
    object.u64("readings", fit.readings);
    for (key, value) in [
        ("offset_ns", Some(fit.offset_ns())),
        ("rate_ppm", fit.rate_ppm()),
        ("bound_ns", Some(clock.bound_ns)),
        ("residual_ns", Some(fit.residual_ns)),
    ] {
        match value.filter(|value| value.is_finite()) {
            Some(value) => _ = json::push_f64(object.value(key), value),
            None => object.null(key),
        }
    }
    object.u64("begin_before_launch", clock.too_early);
    object.u64("end_after_seen", clock.too_late);
    object.end();
}
