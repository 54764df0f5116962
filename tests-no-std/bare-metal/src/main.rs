//! The program on a Cortex-M4 without an operating system, under an emulator: semihosting writes the
//! recording to a file of the host's, `recording.tmrun` in the emulator's directory.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod board;

/// On a target with an operating system there is nothing to do: the program of `host` is for that.
#[cfg(not(target_os = "none"))]
fn main() {}
