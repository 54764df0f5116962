//! A library cannot lower the level of the program that it is part of; the program's own features can
//! (`cargo test -p tmrun-probe-core --features max-level-1 --test two_crates_open`).

mod support;

use support::read::SPAN;
use support::{Memory, finish, start};
use tmrun_probe_core::{Global, Level, Target, install, probe, span};

probe!(static PROBE: lanes = 1, slots = 256);

#[test]
fn a_library_records_all_that_the_program_has_compiled_in_whatever_its_own_probe_has() {
    install(PROBE).unwrap();
    let drain = start(*PROBE, Memory::default(), Level::NUMERICS);
    let own = start(tmrun_test_library::own_probe(), Memory::default(), Level::NUMERICS);
    let evaluated = {
        let _program = span!(PROBE, "program");
        tmrun_test_library::own();
        tmrun_test_library::layer()
    };
    let (_, file) = finish(drain);
    let (_, own) = finish(own);

    let cap = if cfg!(feature = "max-level-0") {
        Level::PULSE
    } else if cfg!(feature = "max-level-1") {
        Level::TIMING
    } else if cfg!(feature = "max-level-2") {
        Level::METADATA
    } else {
        Level::NUMERICS
    };
    assert_eq!(Global::MAX_LEVEL, cap);
    let asked = [Level::PULSE, Level::METADATA, Level::NUMERICS];
    assert_eq!(evaluated, asked.into_iter().filter(|level| *level <= cap).collect::<Vec<_>>());
    let spans: Vec<String> = file.of(SPAN).iter().map(|span| file.name(span)).collect();
    let library = (cap >= Level::TIMING).then_some("library/layer");
    assert_eq!(spans, library.into_iter().chain(["program"]).collect::<Vec<_>>());

    let kept: Vec<String> = own.stored(0).iter().map(|record| own.name(record)).collect();
    assert_eq!(kept, ["own/loss"], "the library's own probe has its own level");
}
