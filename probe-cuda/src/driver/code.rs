//! The driver's result codes. They come as numbers: a newer driver may return one that an enumeration
//! of ours does not have.

use std::fmt;

/// A result of the driver that is not success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub u32);

impl Code {
    /// `CUDA_ERROR_NO_DEVICE`.
    pub const NO_DEVICE: Self = Self(100);
    /// `CUDA_ERROR_INVALID_DEVICE`.
    pub const INVALID_DEVICE: Self = Self(101);
    /// `CUDA_ERROR_NOT_READY`: what was asked about is still to come. No error.
    pub const NOT_READY: Self = Self(600);
    /// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT`: the legacy stream, while another is captured that it would
    /// have to wait for.
    pub const CAPTURE_IMPLICIT: Self = Self(906);
    /// `CUDA_ERROR_CAPTURED_EVENT`: the event was last recorded within a capture.
    pub const CAPTURED_EVENT: Self = Self(907);

    /// Whether every call from now on returns the same, and only the end of the process helps.
    ///
    /// `CUDA_ERROR_DEINITIALIZED`, `ECC_UNCORRECTABLE`, `NVLINK_UNCORRECTABLE`, `ILLEGAL_ADDRESS`,
    /// `LAUNCH_TIMEOUT`, `CONTEXT_IS_DESTROYED`, `ASSERT`, and the faults of kernels from
    /// `HARDWARE_STACK_ERROR` to `LAUNCH_FAILED`.
    pub const fn is_sticky(self) -> bool {
        matches!(self.0, 4 | 214 | 220 | 700 | 702 | 709 | 710 | 714..=719)
    }

    /// What the driver calls it, for the codes that come up here.
    const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            1 => "CUDA_ERROR_INVALID_VALUE",
            2 => "CUDA_ERROR_OUT_OF_MEMORY",
            3 => "CUDA_ERROR_NOT_INITIALIZED",
            4 => "CUDA_ERROR_DEINITIALIZED",
            34 => "CUDA_ERROR_STUB_LIBRARY",
            100 => "CUDA_ERROR_NO_DEVICE",
            101 => "CUDA_ERROR_INVALID_DEVICE",
            201 => "CUDA_ERROR_INVALID_CONTEXT",
            214 => "CUDA_ERROR_ECC_UNCORRECTABLE",
            220 => "CUDA_ERROR_NVLINK_UNCORRECTABLE",
            400 => "CUDA_ERROR_INVALID_HANDLE",
            600 => "CUDA_ERROR_NOT_READY",
            700 => "CUDA_ERROR_ILLEGAL_ADDRESS",
            702 => "CUDA_ERROR_LAUNCH_TIMEOUT",
            709 => "CUDA_ERROR_CONTEXT_IS_DESTROYED",
            710 => "CUDA_ERROR_ASSERT",
            714 => "CUDA_ERROR_HARDWARE_STACK_ERROR",
            715 => "CUDA_ERROR_ILLEGAL_INSTRUCTION",
            716 => "CUDA_ERROR_MISALIGNED_ADDRESS",
            717 => "CUDA_ERROR_INVALID_ADDRESS_SPACE",
            718 => "CUDA_ERROR_INVALID_PC",
            719 => "CUDA_ERROR_LAUNCH_FAILED",
            803 => "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
            900 => "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
            901 => "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
            906 => "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
            907 => "CUDA_ERROR_CAPTURED_EVENT",
            999 => "CUDA_ERROR_UNKNOWN",
            _ => return None,
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "CUDA error {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn a_busy_event_is_no_fault_and_a_broken_kernel_is_one_for_ever() {
        assert!(!Code::NOT_READY.is_sticky() && !Code::CAPTURED_EVENT.is_sticky());
        assert!(Code(700).is_sticky() && Code(719).is_sticky() && !Code(713).is_sticky());
        assert_eq!(Code(719).to_string(), "CUDA_ERROR_LAUNCH_FAILED (719)");
        assert_eq!(Code(12345).to_string(), "CUDA error 12345");
    }
}
