//! What the command line can ask for.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::Parser;

/// Trains a small transformer on the text of this repository's licences, records it, and says what
/// the recording holds.
#[derive(Debug, Clone, Parser)]
#[command(name = "demo", version)]
pub struct Args {
    /// How much is captured: 0 pulse, 1 timing, 2 metadata, 3 numerics (TMRUN_LEVEL in the environment
    /// goes before it)
    #[arg(long, value_name = "0..3", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub level: u8,

    /// How many updates to train
    #[arg(long, value_name = "N", default_value = "50")]
    pub steps: NonZeroU64,

    /// Where the results go; files of an earlier demo there are replaced
    #[arg(long, value_name = "DIR", default_value = "demo-out")]
    pub out: PathBuf,

    /// Put a NaN into one layer's output, once, halfway through
    #[arg(long)]
    pub plant_nan: bool,

    /// Go about the heads of attention one after another: the same results, slower; something to
    /// compare with
    #[arg(long)]
    pub heads_in_turn: bool,

    /// Fixes the initial weights and the order of the text
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn defaults_are_a_short_run_at_the_metadata_level() {
        let args = Args::try_parse_from(["demo"]).unwrap();
        assert_eq!((args.level, args.steps.get(), args.seed), (2, 50, 1));
        assert_eq!(args.out, PathBuf::from("demo-out"));
        assert!(!args.plant_nan && !args.heads_in_turn);
    }

    #[test]
    fn levels_above_numerics_and_runs_without_steps_are_refused() {
        assert!(Args::try_parse_from(["demo", "--level", "4"]).is_err());
        assert!(Args::try_parse_from(["demo", "--steps", "0"]).is_err());
    }
}
