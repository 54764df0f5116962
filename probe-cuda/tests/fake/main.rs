//! The probe on a driver without a device (`fake-driver/`). Each test runs in a process of its own, with
//! that driver on its library path.

mod calibrating;
mod captures;
mod draining;
mod faults;
mod loading;
mod memory;
mod positions;
mod recording;
mod soak;
mod support;
mod threads;
