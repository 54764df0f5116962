//! What several runs say together: `candle-graph/comparison/6`, `series/1` and `campaign-status/1`.
//!
//! What a reader of the code can rely on:
//!
//! - Codes, numbers and orders are those of `candle-graph` 0.10.1, floats to the bit, but for what
//!   `docs/COMPATIBILITY.md` lists. What is said in words is ours, and names the run and the field.
//! - A comparison is eligible when nothing speaks against it, and its numbers are there in any case.
//! - A run is reduced to a [`Run`] as soon as it is read: of many traces no more are in memory than are
//!   being read at a time.
//! - Nothing is drawn but from the one generator of the format, in its order: the same runs give the
//!   same interval, however many cores there are.
//!
//! ```
//! use tmrun::comparison::{Run, compare, unverified};
//! use tmrun::evidence::read;
//! use tmrun_formats::comparison::{ComparisonCode, ComparisonVerdict};
//!
//! let run = |id: &str, ns: u64| {
//!     let text = format!(r#"
//! {{"kind":"meta","schema":"candle-graph/trace/10","run_id":"{id}","correlation_id":"c","entrypoint":"e","phase":"infer","timestamp":"t","capture_step":1,"warmup_steps":0,"device":"cpu","timing_mode":"host","capture_contract":{{"measurement_scope":"production_equivalent","operations":"none","logical_memory":"none","physical_memory":"none","device_timing":"none"}},"tags":{{}}}}
//! {{"kind":"span_start","id":"s1","name":"step","start_ns":0,"span_kind":"function","measured":true}}
//! {{"kind":"span_end","id":"s1","duration_ns":{ns}}}
//! {{"kind":"terminal","outcome":"complete","timestamp_ns":{ns}}}
//! "#);
//!     Run::of(&read(text.as_bytes()).unwrap()).unwrap()
//! };
//! let (before, after) = ([run("a", 100), run("b", 104)], [run("c", 90), run("d", 92)]);
//! let comparison = compare(&before, &after, unverified());
//! assert_eq!(comparison.baseline.median_ns, 102.0);
//! assert_eq!(comparison.median_delta_ns, -11.0);
//! assert_eq!(comparison.verdict, ComparisonVerdict::Ineligible);
//! assert_eq!(comparison.reasons[1].code, ComparisonCode::InsufficientRuns);
//! ```

mod bootstrap;
mod campaign;
mod compare;
mod differences;
mod identity;
mod inputs;
mod load;
mod pairs;
mod reasons;
mod run;
mod runs;
mod series;
mod statistics;
mod tensors;

pub use campaign::{CampaignError, campaign_status, published, word};
pub use compare::{MINIMUM_RUNS, compare};
pub use inputs::{unverified, verified};
pub use load::{LoadError, bundles, traces};
pub use run::Run;
pub use series::{SeriesError, series};
