//! How the driver is set up: by the environment, read at the first call.
//!
//! | variable | default | what it says |
//! | --- | --- | --- |
//! | `FAKECU_DEVICES` | 1 | how many devices there are |
//! | `FAKECU_MANUAL` | 0 | 1: time goes on only when a test says so, and at `FAKECU_CALL_NS` a call |
//! | `FAKECU_CALL_NS` | 0 | nanoseconds that a call takes, where time is manual |
//! | `FAKECU_RES_NS` | 500 | the quantum of stamps |
//! | `FAKECU_LATENCY_NS` | 3000 | from a submission to its start |
//! | `FAKECU_KERNEL_NS` | 20000 | how long a kernel runs |
//! | `FAKECU_DRIFT_PPM` | 0 | how much faster the device's clock runs than the host's; one a device, with commas |
//! | `FAKECU_OFFSET_NS` | 7000000000 | what the first device's clock shows at the start; others a thousand seconds more each |
//! | `FAKECU_FAIL` | | `function:n:code[:sticky],…`: the n-th call fails (0: every one) |

use std::str::FromStr;

#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) devices: i32,
    pub(crate) manual: bool,
    pub(crate) call_ns: u64,
    pub(crate) quantum_ns: u64,
    pub(crate) latency_ns: u64,
    pub(crate) kernel_ns: u64,
    pub(crate) drift_ppm: Vec<f64>,
    pub(crate) offset_ns: u64,
}

impl Config {
    pub(crate) fn from_environment() -> Self {
        let drift = std::env::var("FAKECU_DRIFT_PPM").unwrap_or_default();
        Self {
            devices: number("FAKECU_DEVICES", 1),
            manual: number("FAKECU_MANUAL", 0) == 1,
            call_ns: number("FAKECU_CALL_NS", 0),
            quantum_ns: number("FAKECU_RES_NS", 500_u64).max(1),
            latency_ns: number("FAKECU_LATENCY_NS", 3000),
            kernel_ns: number("FAKECU_KERNEL_NS", 20_000),
            drift_ppm: drift.split(',').filter_map(|ppm| ppm.parse().ok()).collect(),
            offset_ns: number("FAKECU_OFFSET_NS", 7_000_000_000),
        }
    }
}

fn number<T: FromStr>(variable: &str, otherwise: T) -> T {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}
