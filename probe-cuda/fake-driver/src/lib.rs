//! A CUDA driver without a device: what `tmrun-probe-cuda` asks of one, and what its tests need to
//! stand for an application that uses it. Nothing is executed.
//!
//! A stream is the moment at which its last work ends, on the clock of a simulated device; an event is
//! a moment on a stream. Captures, graphs, per-thread streams, sticky errors, stamps of a coarse
//! quantum and clocks that drift are as CUDA documents them, as far as its documentation goes: what
//! holds here is not thereby true of a device.
//!
//! How it is set up is in `config`, and what a test does with it beside CUDA's own functions in
//! `control`.

mod api;
mod capture;
mod code;
mod config;
mod control;
mod device;
mod faults;
mod graph;
mod state;
mod timeline;
