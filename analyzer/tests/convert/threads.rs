//! The output does not depend on the number of cores.

use rayon::ThreadPoolBuilder;
use tmrun_formats::GradientState;
use tmrun_formats::wire::Record;

use tmrun::convert::Options;

use crate::make::{BARE, FULL, convert, gradient, in_step, lanes, lines, op, range, rec, tensor};

#[test]
fn one_thread_and_many_write_the_same_bytes() {
    let chunk = |n: u64| -> Vec<Record> {
        in_step(
            n,
            &[
                rec(FULL, 0, &tensor()),
                rec(BARE, 0, &op(2_100, 0)),
                gradient(BARE, GradientState::PRESENT, Some(n as f64)),
                rec(BARE, 0, &range(0.0, n as f64)),
            ],
        )
    };
    let chunks: Vec<_> = (1..=200).map(|n| ((n % 5) as u16, chunk(n))).collect();
    let chunks: Vec<_> = chunks.iter().map(|(lane, records)| (*lane, &records[..])).collect();
    let file = lanes(&chunks);
    for options in [Options::default(), lines()] {
        let with = |threads| {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| convert(&file, options).expect("converted"))
        };
        let one = with(1);
        for threads in [2, 3, 8] {
            assert!(with(threads) == one, "{threads} threads");
        }
        // And from a thread that is in no pool.
        assert!(convert(&file, options).expect("converted") == one);
    }
}
