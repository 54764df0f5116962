//! A library cannot raise the level of the program that it is part of. (`two_crates_open.rs` has the
//! other direction: a process has one installed probe.)

mod support;

use support::read::{SCALAR, SPAN};
use support::{Memory, finish, start};
use tmrun_probe_core::{Level, install, probe, span};

probe!(static PROBE: lanes = 1, slots = 256, max_level = 0);

#[test]
fn a_library_records_nothing_above_the_programs_compiled_level() {
    install(PROBE).unwrap();
    let drain = start(*PROBE, Memory::default(), Level::NUMERICS);
    for _ in 0..3 {
        tmrun_test_library::own();
        assert_eq!(tmrun_test_library::layer(), [Level::PULSE]);
    }
    PROBE.set_level(Level::NUMERICS);
    assert_eq!(tmrun_test_library::layer(), [Level::PULSE]);
    drop(span!(PROBE, "of the program"));
    let (_, file) = finish(drain);
    assert_eq!((file.of(SCALAR).len(), file.stored(0).len()), (4, 4));
    assert!(file.of(SPAN).is_empty());
    assert!(file.names().values().all(|name| name.text != "library/layer"), "it is not even known");
}
