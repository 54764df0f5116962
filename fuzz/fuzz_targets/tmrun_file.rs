//! See the function of the same name in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: tmrun_fuzz::stay_on_this_thread(),
    |data: &[u8]| tmrun_fuzz::tmrun_file(data)
);
