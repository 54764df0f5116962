//! Time on devices, each clock by itself.

use crate::trace::CoverageLevel;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How long devices were busy. Intervals that overlap or touch count as one; clocks are never added up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing<'a> {
    /// What was declared, or partial where more was seen.
    pub device_coverage: CoverageLevel,
    /// By span, then device, then clock.
    pub device_spans: Vec<TimingSpan<'a>>,
    /// By device, then clock.
    pub device_clocks: Vec<TimingClock<'a>>,
}

/// One span on one clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimingSpan<'a> {
    /// The span.
    pub span_id: Cow<'a, str>,
    /// The device.
    pub device: Cow<'a, str>,
    /// The clock.
    pub clock_id: Cow<'a, str>,
    /// What its intervals came from, sorted.
    pub backends: Vec<Cow<'a, str>>,
    /// The streams they were on, sorted.
    pub streams: Vec<Cow<'a, str>>,
    /// How many there are.
    pub interval_count: u64,
    /// How long their union is.
    pub busy_ns: u64,
}

/// One clock, over all spans and streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimingClock<'a> {
    /// The device.
    pub device: Cow<'a, str>,
    /// The clock.
    pub clock_id: Cow<'a, str>,
    /// How many intervals there are.
    pub interval_count: u64,
    /// How long their union is.
    pub busy_ns: u64,
}
