//! The corpus: text that never changes, one token a character.

use candle_core::{Device, Result, Tensor};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

// The licences are in every copy of the repository and are never edited, so the losses of two
// checkouts can be compared.
const TEXT: &str =
    concat!(include_str!("../../../LICENSE-APACHE"), include_str!("../../../LICENSE-MIT"));

/// Tokenised text.
#[derive(Debug, Clone)]
pub struct Corpus {
    vocabulary: Vec<char>,
    tokens: Vec<u32>,
}

/// What one update trains on: `targets` is `inputs`, one character later.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Token ids, `(rows, columns)`.
    pub inputs: Tensor,
    /// Token ids, `(rows, columns)`.
    pub targets: Tensor,
}

impl Corpus {
    /// The text built into the demo.
    pub fn embedded() -> Self {
        Self::new(TEXT)
    }

    /// Tokenises `text`. The vocabulary is the characters that occur in it, sorted.
    pub fn new(text: &str) -> Self {
        let mut vocabulary: Vec<char> = text.chars().collect();
        vocabulary.sort_unstable();
        vocabulary.dedup();
        let token = |c| vocabulary.binary_search(&c).expect("drawn from the text itself") as u32;
        let tokens = text.chars().map(token).collect();
        Self { vocabulary, tokens }
    }

    /// How many different tokens there are.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary.len()
    }

    /// Windows of `columns` tokens at random places. Equal arguments give equal batches.
    ///
    /// # Errors
    ///
    /// The text is too short for one window and its next character.
    pub fn batch(&self, seed: u64, step: u64, (rows, columns): (usize, usize)) -> Result<Batch> {
        let Some(starts) = self.tokens.len().checked_sub(columns).filter(|&n| n > 0) else {
            candle_core::bail!("{} tokens cannot fill a window of {columns}", self.tokens.len());
        };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ step.rotate_left(32));
        let starts: Vec<usize> = (0..rows).map(|_| random.random_range(0..starts)).collect();
        let gather = |shift: usize| {
            let window = |&start: &usize| &self.tokens[start + shift..start + shift + columns];
            let ids: Vec<u32> = starts.iter().flat_map(window).copied().collect();
            Tensor::from_vec(ids, (rows, columns), &Device::Cpu)
        };
        Ok(Batch { inputs: gather(0)?, targets: gather(1)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(tensor: &Tensor) -> Vec<Vec<u32>> {
        tensor.to_vec2().unwrap()
    }

    #[test]
    fn targets_are_the_inputs_one_character_later() {
        let batch = Corpus::embedded().batch(7, 3, (4, 16)).unwrap();
        for (inputs, targets) in ids(&batch.inputs).iter().zip(ids(&batch.targets)) {
            assert_eq!(inputs.len(), 16);
            assert_eq!(inputs[1..], targets[..15]);
        }
    }

    #[test]
    fn batches_depend_on_seed_and_step_and_on_nothing_else() {
        let corpus = Corpus::embedded();
        let inputs = |seed, step| ids(&corpus.batch(seed, step, (8, 32)).unwrap().inputs);
        assert_eq!(inputs(1, 5), inputs(1, 5));
        assert_ne!(inputs(1, 5), inputs(1, 6));
        assert_ne!(inputs(1, 5), inputs(2, 5));
    }

    #[test]
    fn every_window_of_a_short_text_can_be_drawn() {
        let corpus = Corpus::new("abcd");
        let mut first: Vec<u32> = (0..100)
            .flat_map(|step| ids(&corpus.batch(0, step, (1, 2)).unwrap().inputs))
            .map(|row| row[0])
            .collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first, [0, 1]);
    }

    #[test]
    fn a_text_shorter_than_a_window_is_an_error() {
        let corpus = Corpus::new("abc");
        assert!(corpus.batch(0, 0, (1, 3)).is_err());
        assert!(corpus.batch(0, 0, (1, 4)).is_err());
        assert!(corpus.batch(0, 0, (1, 2)).is_ok());
    }

    #[test]
    fn tokens_index_a_sorted_vocabulary() {
        let corpus = Corpus::new("banana");
        assert_eq!(corpus.vocabulary, ['a', 'b', 'n']);
        assert_eq!(corpus.tokens, [1, 0, 2, 0, 2, 0]);
        assert_eq!(corpus.vocabulary_size(), 3);
    }
}
