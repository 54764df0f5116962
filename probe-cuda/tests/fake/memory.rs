//! Samples of the device's memory.

use std::time::Duration;

use tmrun_formats::{GapReason, Planes};
use tmrun_probe_core::Level;
use tmrun_probe_cuda::{CudaProbe, TimerSettings};

use crate::support::{PROBE, Recording, Setup, fake_test};

fake_test! {
fn a_sample_says_what_is_free_and_what_there_is(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::METADATA);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    timer.sample_memory(&PROBE);
    device.finish(Duration::ZERO);
    let file = recording.finish();
    let [sample] = file.memory[..] else { panic!("{:?}", file.memory) };
    assert_eq!((sample.free, sample.capacity), (1 << 34, 1 << 34));
    assert_eq!((sample.used, sample.reserved), (0, 0), "what nobody was told is not made up");
}
}

fake_test! {
fn within_a_capture_no_sample_is_taken_and_the_capture_holds(fake) on Setup::manual(); {
    fake.start(0);
    let recording = Recording::start(Level::METADATA);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    fake.begin_capture(stream, 0);
    let before = fake.calls(c"cuMemGetInfo_v2");
    timer.sample_memory(&PROBE);
    assert_eq!(fake.calls(c"cuMemGetInfo_v2"), before);
    assert!(fake.end_capture(stream).is_ok());
    device.finish(Duration::ZERO);
    let file = recording.finish();
    assert!(file.memory.is_empty());
    let [(_, gap)] = file.gaps[..] else { panic!("{:?}", file.gaps) };
    assert_eq!((gap.reason, gap.planes, gap.records), (GapReason::GRAPH_CAPTURE, Planes::PHYSICAL_MEMORY, 1));
}
}

fake_test! {
fn a_level_that_asks_for_no_memory_asks_no_driver(fake) on Setup::manual(); {
    fake.start(0);
    let _recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), TimerSettings::default()) }.expect("a timer");
    let before = fake.all_calls();
    timer.sample_memory(&PROBE);
    assert_eq!(fake.all_calls(), before);
}
}
