//! Chunks on all cores, results in file order, in bounded memory.

use rayon::iter::{
    IndexedParallelIterator, IntoParallelRefIterator, IntoParallelRefMutIterator, ParallelIterator,
};

use crate::scan::RecordChunk;

/// Enough chunks a core that one slow chunk does not leave the others idle.
const CHUNKS_A_CORE: usize = 4;

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
    /// Runs `work` for every chunk on all cores and `take` for each result here, in order, while
    /// the next batch is already being worked on.
    pub(super) fn in_order<'r, E>(
        &mut self,
        chunks: &mut dyn Iterator<Item = RecordChunk<'r>>,
        work: impl Fn(&RecordChunk<'r>, &mut S) + Sync,
        mut take: impl FnMut(&RecordChunk<'r>, &mut S) -> Result<(), E>,
    ) -> Result<(), E> {
        let size = rayon::current_num_threads().saturating_mul(CHUNKS_A_CORE).max(1);
        let mut ready = Vec::new();
        let mut next: Vec<RecordChunk<'r>> = chunks.take(size).collect();
        run(&next, &mut self.next, &work);
        while !next.is_empty() {
            core::mem::swap(&mut ready, &mut next);
            core::mem::swap(&mut self.ready, &mut self.next);
            next.clear();
            next.extend(chunks.take(size));
            rayon::in_place_scope(|scope| {
                let (next, slots, work) = (&next, &mut self.next, &work);
                scope.spawn(move |_| run(next, slots, work));
                ready.iter().zip(&mut self.ready).try_for_each(|(chunk, slot)| take(chunk, slot))
            })?;
        }
        Ok(())
    }
}

fn run<'r, S: Send + Default>(
    chunks: &[RecordChunk<'r>],
    slots: &mut Vec<S>,
    work: &(impl Fn(&RecordChunk<'r>, &mut S) + Sync),
) {
    if slots.len() < chunks.len() {
        slots.resize_with(chunks.len(), S::default);
    }
    let pairs = chunks.par_iter().zip(slots.par_iter_mut());
    pairs.with_max_len(1).for_each(|(chunk, slot)| work(chunk, slot));
}
