//! How much memory the device has left.

use tmrun_probe_core::{
    Clock, DeviceGap, DeviceMemoryFact, GapReason, Level, NameId, Planes, Recorder, Target,
};

use crate::driver::{Capture, Code};
use crate::timer::Timer;

impl<C: Clock> Timer<C> {
    /// Records a sample of the device's memory: free, and all there is. It is what the *device* has,
    /// whoever uses it, and says nothing of this program's tensors. It does nothing while level 2 is not
    /// asked for; during a capture of this timer's stream it is a gap of reason `graph-capture`, because
    /// asking would break the capture.
    ///
    /// The driver is called some six times, and may take its time: sample between steps.
    pub fn sample_memory<T: Target<Clock = C>>(&self, target: &T) {
        target.at(Level::METADATA, |recorder| {
            if !self.shared.is_finished() && recorder.wants(NameId::NONE) {
                self.sample(&recorder);
            }
        });
    }

    fn sample(&self, recorder: &Recorder<'_, C>) {
        let shared = &*self.shared;
        let context = &shared.context;
        let miss = |reason, code: Option<Code>| {
            let now = C::ticks();
            recorder.device_gap(&DeviceGap {
                reason,
                lane: recorder.lane(),
                first: now,
                last: now,
                records: 1,
                planes: Planes::PHYSICAL_MEMORY,
                why: code.map_or(NameId::NONE, |code| shared.probe.name(&code.to_string())),
            });
        };
        let failed = |code: Code| {
            context.failed(code);
            miss(GapReason::DRIVER_ERROR, Some(code));
        };
        if let Some(reason) = self.cannot_record() {
            return miss(reason, context.dead());
        }
        match context.driver.capture(self.pool.stream.0) {
            Ok(Capture::No) => {}
            Ok(Capture::Yes | Capture::Broken) => return miss(GapReason::GRAPH_CAPTURE, None),
            Err(code) => return failed(code),
        }
        let Ok(_entered) = context.enter() else {
            return miss(GapReason::DRIVER_ERROR, context.dead());
        };
        match context.driver.memory_info() {
            Ok((free, capacity)) => recorder.device_memory(&DeviceMemoryFact {
                device: shared.device,
                free: u64::try_from(free).ok(),
                capacity: u64::try_from(capacity).ok(),
                ..DeviceMemoryFact::default()
            }),
            Err(code) => failed(code),
        }
    }
}
