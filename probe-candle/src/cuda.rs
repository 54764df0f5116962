//! Device time of candle's CUDA devices.
//!
//! candle launches its work on the stream that is each thread's own, unless a device was made with
//! another: so a thread that runs candle has a timer of its own, which stays there.
//!
//! ```ignore
//! let device = candle_core::Device::new_cuda(0)?;
//! let timed = open_device(*PROBE, &device)?;
//! let draining = timed.drain_every(Duration::from_millis(1))?;
//! let timer = device_timer(&timed, &device, TimerSettings::default())?;
//! let forward = PROBE.name("forward");
//! for step in 1..=steps {
//!     let _step = PROBE.step(step);
//!     let _interval = timer.interval(&PROBE, forward);
//!     let loss = model.forward(&batch)?; // submit time to the host, stream time to the interval
//! }
//! ```

use std::sync::Arc;

use candle_core::cuda_backend::cudarc::driver::CudaStream;
use candle_core::{Device, DeviceLocation};
use tmrun_probe_core::{Clock, ProbeRef};
use tmrun_probe_cuda::{CudaError, CudaProbe, LocalTimer, TimerSettings};

/// Why a device of candle's is not timed.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeviceTimeError {
    /// It is no CUDA device: its work is done when the call returns, and host spans tell its time.
    NotCuda {
        /// Where it is.
        location: DeviceLocation,
    },
    /// The driver or the device refused.
    Cuda(CudaError),
}

impl std::fmt::Display for DeviceTimeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotCuda { location } => {
                write!(f, "{location:?} is no CUDA device: time it with host spans")
            }
            Self::Cuda(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DeviceTimeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotCuda { .. } => None,
            Self::Cuda(error) => error.source(),
        }
    }
}

impl From<CudaError> for DeviceTimeError {
    fn from(error: CudaError) -> Self {
        Self::Cuda(error)
    }
}

fn stream(device: &Device) -> Result<Arc<CudaStream>, DeviceTimeError> {
    let not_cuda = |_| DeviceTimeError::NotCuda { location: device.location() };
    device.as_cuda_device().map(|device| device.cuda_stream()).map_err(not_cuda)
}

/// Opens this device for timing, see [`CudaProbe::open`].
///
/// # Errors
///
/// When it is no CUDA device, or cannot be opened.
pub fn open_device<C: Clock>(
    probe: ProbeRef<'static, C>,
    device: &Device,
) -> Result<CudaProbe<C>, DeviceTimeError> {
    let ordinal = stream(device)?.context().ordinal();
    let ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX);
    Ok(CudaProbe::open(probe, ordinal)?)
}

/// A timer of the stream that the device launches the calling thread's work on.
///
/// # Errors
///
/// When it is no CUDA device, it is another one than `timed`, or the driver refuses.
pub fn device_timer<C: Clock>(
    timed: &CudaProbe<C>,
    device: &Device,
    settings: TimerSettings,
) -> Result<LocalTimer<C>, DeviceTimeError> {
    Ok(timed.local_timer(&stream(device)?, settings)?)
}
