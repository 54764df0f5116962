//! Readings of both clocks, as many as are worth keeping.

use tmrun_formats::{DeviceFit, DeviceReading};

/// What is kept: a fit takes the tightest of the early and of the late ones.
const KEPT: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Readings(Vec<DeviceReading>);

impl Readings {
    pub(crate) fn add(&mut self, reading: DeviceReading) {
        if self.0.len() >= KEPT {
            // Every other one goes: the first stays, and so does the spread.
            let mut at = 0_usize;
            self.0.retain(|_| {
                at = at.wrapping_add(1);
                at % 2 == 1
            });
        }
        self.0.push(reading);
    }

    pub(crate) fn fit(&self) -> Option<DeviceFit> {
        DeviceFit::of(&self.0)
    }
}
