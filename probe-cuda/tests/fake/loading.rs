//! What there is to say where something is missing.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};
use tmrun_formats::{GapReason, Level};
use tmrun_probe_cuda::{CudaError, CudaProbe, LoadError, unavailable};

use crate::support::harness::in_process_with;
use crate::support::{PROBE, Recording, Setup, fake_test};

#[test]
fn without_a_driver_the_error_says_what_was_looked_for_and_so_does_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    // It stands before a driver that the machine may have.
    for name in ["libcuda.so", "libcuda.so.1"] {
        std::fs::write(folder.path().join(name), "no library").expect("the file is written");
    }
    let test = concat!(
        module_path!(),
        "::without_a_driver_the_error_says_what_was_looked_for_and_so_does_the_file"
    );
    in_process_with(test, folder.path(), || {
        let recording = Recording::start(Level::TIMING);
        let error = CudaProbe::open(*PROBE, 0).expect_err("there is no driver");
        let CudaError::Load(LoadError::NoDriver { looked_for, .. }) = &error else {
            panic!("{error:?}")
        };
        assert_eq!(*looked_for, ["libcuda.so.1", "libcuda.so"]);
        assert!(error.to_string().contains("libcuda.so.1"), "{error}");
        unavailable(*PROBE, &error);
        let file = recording.finish();
        let [(why, gap)] = file.gaps[..] else { panic!("{:?}", file.gaps) };
        assert_eq!((gap.reason, gap.records), (GapReason::DRIVER_UNAVAILABLE, 0));
        assert_eq!(file.name(why), error.to_string());
    });
}

fake_test! {
fn a_function_that_the_driver_lacks_is_named(_fake) on Setup::manual().feature("no-capture-query"); {
    let error = CudaProbe::open(*PROBE, 0).expect_err("a function is missing");
    let expected = LoadError::MissingFunctions {
        library: "libcuda.so.1",
        missing: vec!["cuStreamIsCapturing"],
    };
    assert_eq!(error, CudaError::Load(expected));
}
}

fake_test! {
fn a_machine_without_a_device_says_so(_fake) on Setup::manual().with("FAKECU_DEVICES", 0); {
    let error = CudaProbe::open(*PROBE, 0).expect_err("there is no device");
    assert!(matches!(error, CudaError::NoDevice { .. }), "{error:?}");
    assert!(error.to_string().contains("CUDA_ERROR_NO_DEVICE"), "{error}");
}
}

fake_test! {
fn a_device_that_is_not_there_is_counted(_fake) on Setup::manual().with("FAKECU_DEVICES", 2); {
    assert!(CudaProbe::open(*PROBE, 1).is_ok());
    let error = CudaProbe::open(*PROBE, 2).expect_err("there are two");
    assert_eq!(error, CudaError::NoSuchDevice { ordinal: 2, found: 2 });
}
}

fake_test! {
fn an_old_driver_is_asked_by_the_old_name(fake) on Setup::manual().feature("old-driver"); {
    fake.start(0);
    let recording = Recording::start(Level::TIMING);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let stream = fake.stream();
    // SAFETY: the stream lives as long as the process.
    let timer = unsafe { device.timer_of(stream.raw(), Default::default()) }.expect("a timer");
    let interval = timer.interval(&PROBE, PROBE.name("work"));
    fake.submit(stream, 777);
    drop(interval);
    fake.advance(777);
    device.finish(std::time::Duration::ZERO);
    assert!(fake.calls(c"cuEventElapsedTime") > 0);
    let file = recording.finish();
    assert_eq!(file.intervals[0].is.end - file.intervals[0].is.start, 777);
}
}

fake_test! {
fn no_lane_left_is_an_error_and_the_context_is_given_back(_fake) on Setup::manual(); {
    let lanes: Vec<_> = (0..PROBE.lanes()).map_while(|_| PROBE.claim("taken").ok()).collect();
    let error = CudaProbe::open(*PROBE, 0).expect_err("there is no lane");
    assert_eq!(error, CudaError::NoLane);
    drop(lanes);
    assert!(CudaProbe::open(*PROBE, 0).is_ok());
}
}

fake_test! {
fn a_stream_of_another_context_is_refused(fake) on Setup::manual().with("FAKECU_DEVICES", 2); {
    fake.start(0);
    let device = CudaProbe::open(*PROBE, 0).expect("a device");
    let other = cudarc_stream(1);
    let error = device.timer(&other, Default::default()).expect_err("it is of another device");
    assert_eq!(error, CudaError::ContextMismatch { stream: 1, probe: 0 });
    assert!(device.timer(&cudarc_stream(0), Default::default()).is_ok());
}
}

/// A stream as an application that uses the binding has it.
fn cudarc_stream(ordinal: usize) -> Arc<CudaStream> {
    let context = CudaContext::new(ordinal).expect("a context");
    context.new_stream().expect("a stream")
}
