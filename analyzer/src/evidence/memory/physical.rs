//! What devices report.

use std::collections::BTreeMap;
use tmrun_formats::evidence::{PhysicalDeviceMemory, PhysicalMemory, PhysicalMemoryPoint};
use tmrun_formats::trace::{DeviceMemory, TraceDocument};

/// What devices reported; nothing without a sample.
pub(super) fn of<'d>(trace: &'d TraceDocument<'_>) -> Option<PhysicalMemory<'d>> {
    if trace.device_memory.is_empty() {
        return None;
    }
    let mut samples: Vec<&DeviceMemory<'_>> = trace.device_memory.iter().collect();
    samples.sort_by(|left, right| {
        left.timestamp_ns.cmp(&right.timestamp_ns).then_with(|| left.device.cmp(&right.device))
    });
    let mut devices = BTreeMap::<&str, PhysicalDeviceMemory<'d>>::new();
    for sample in &samples {
        let device: &str = &sample.device;
        add(devices.entry(device).or_insert_with(|| none_of(device)), sample);
    }
    let point = |sample: &DeviceMemory<'_>, device: &'d str| PhysicalMemoryPoint {
        timestamp_ns: sample.timestamp_ns,
        device: device.into(),
        used_bytes: sample.used_bytes,
        free_bytes: sample.free_bytes,
        reserved_bytes: sample.reserved_bytes,
        capacity_bytes: sample.capacity_bytes,
    };
    let timeline = samples.into_iter().map(|sample| point(sample, &sample.device)).collect();
    Some(PhysicalMemory { timeline, by_device: devices.into_values().collect() })
}

fn none_of(device: &str) -> PhysicalDeviceMemory<'_> {
    PhysicalDeviceMemory {
        device: device.into(),
        sample_count: 0,
        used_sample_count: 0,
        free_sample_count: 0,
        reserved_sample_count: 0,
        capacity_sample_count: 0,
        peak_used_bytes: None,
        peak_used_timestamp_ns: None,
        peak_reserved_bytes: None,
        peak_reserved_timestamp_ns: None,
        minimum_free_bytes: None,
        minimum_free_timestamp_ns: None,
        maximum_observed_capacity_bytes: None,
    }
}

/// Samples come by their times, so that the first of several extremes stays.
fn add(device: &mut PhysicalDeviceMemory<'_>, sample: &DeviceMemory<'_>) {
    let more = |count: &mut u64, seen: bool| *count = count.saturating_add(u64::from(seen));
    more(&mut device.sample_count, true);
    more(&mut device.used_sample_count, sample.used_bytes.is_some());
    more(&mut device.free_sample_count, sample.free_bytes.is_some());
    more(&mut device.reserved_sample_count, sample.reserved_bytes.is_some());
    more(&mut device.capacity_sample_count, sample.capacity_bytes.is_some());
    let time = sample.timestamp_ns;
    let keep = |best: &mut Option<u64>,
                at: &mut Option<u64>,
                seen: Option<u64>,
                is_better: fn(u64, u64) -> bool| {
        if let Some(seen) = seen
            && best.is_none_or(|best| is_better(seen, best))
        {
            (*best, *at) = (Some(seen), Some(time));
        }
    };
    let (used, used_at) = (&mut device.peak_used_bytes, &mut device.peak_used_timestamp_ns);
    keep(used, used_at, sample.used_bytes, |seen, best| seen > best);
    let (reserved, reserved_at) =
        (&mut device.peak_reserved_bytes, &mut device.peak_reserved_timestamp_ns);
    keep(reserved, reserved_at, sample.reserved_bytes, |seen, best| seen > best);
    let (free, free_at) = (&mut device.minimum_free_bytes, &mut device.minimum_free_timestamp_ns);
    keep(free, free_at, sample.free_bytes, |seen, best| seen < best);
    device.maximum_observed_capacity_bytes =
        device.maximum_observed_capacity_bytes.max(sample.capacity_bytes);
}
