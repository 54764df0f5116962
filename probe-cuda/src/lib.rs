//! Device intervals from CUDA events.
//!
//! There is nothing here yet: the crate holds its place in the workspace, and device time is not
//! recorded today. A run's DeviceInterval and ClockSync records are specified in `docs/FORMAT.md`,
//! and the analyzer reads them.
