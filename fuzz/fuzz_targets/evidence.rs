//! See the function of the same name in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tmrun_fuzz::evidence(data));
