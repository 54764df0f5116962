//! Blocks on all cores, results in file order, in bounded memory.

use rayon::iter::{
    IndexedParallelIterator, IntoParallelRefIterator, IntoParallelRefMutIterator, ParallelIterator,
};

use crate::scan::Block;

/// Enough blocks a core that one slow block does not leave the others idle, and so few that their
/// results fit in memory whatever the number of cores.
const BLOCKS_A_CORE: usize = 2;

/// Where results live: two sets of slots, used again and again, so that whatever a slot holds on to
/// is allocated once.
#[derive(Debug)]
pub(super) struct Slots<S> {
    ready: Vec<S>,
    next: Vec<S>,
}

impl<S> Default for Slots<S> {
    fn default() -> Self {
        Self { ready: Vec::new(), next: Vec::new() }
    }
}

impl<S: Send + Default> Slots<S> {
    /// Runs `work` for every block on all cores and `take` for each result here, in order, while
    /// the next batch is already being worked on.
    pub(super) fn in_order<'r, E>(
        &mut self,
        blocks: &mut dyn Iterator<Item = &'r Block>,
        work: impl Fn(&'r Block, &mut S) + Sync,
        mut take: impl FnMut(&'r Block, &mut S) -> Result<(), E>,
    ) -> Result<(), E> {
        let size = rayon::current_num_threads().saturating_mul(BLOCKS_A_CORE).max(1);
        let mut ready = Vec::new();
        let mut next: Vec<&'r Block> = blocks.take(size).collect();
        run(&next, &mut self.next, &work);
        while !next.is_empty() {
            core::mem::swap(&mut ready, &mut next);
            core::mem::swap(&mut self.ready, &mut self.next);
            next.clear();
            next.extend(blocks.take(size));
            rayon::in_place_scope(|scope| {
                let (next, slots, work) = (&next, &mut self.next, &work);
                scope.spawn(move |_| run(next, slots, work));
                ready.iter().zip(&mut self.ready).try_for_each(|(block, slot)| take(block, slot))
            })?;
        }
        Ok(())
    }
}

fn run<'r, S: Send + Default>(
    blocks: &[&'r Block],
    slots: &mut Vec<S>,
    work: &(impl Fn(&'r Block, &mut S) + Sync),
) {
    if slots.len() < blocks.len() {
        slots.resize_with(blocks.len(), S::default);
    }
    let pairs = blocks.par_iter().zip(slots.par_iter_mut());
    pairs.with_max_len(1).for_each(|(block, slot)| work(block, slot));
}
