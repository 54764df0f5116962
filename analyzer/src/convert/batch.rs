//! Chunks on all cores, results in file order, in bounded memory.

use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};

use crate::scan::RecordChunk;

/// Enough chunks a core that one slow chunk does not leave the others idle.
const CHUNKS_A_CORE: usize = 4;

/// Runs `work` for every chunk on all cores and `take` for each result here, in order, while the
/// next batch is already being worked on. Results live in two sets of slots, which are used again
/// and again, so that whatever a slot holds on to is allocated once.
pub(super) fn in_order<'r, S: Send, E>(
    chunks: &mut dyn Iterator<Item = RecordChunk<'r>>,
    slot: impl Fn() -> S,
    work: impl Fn(&RecordChunk<'r>, &mut S) + Sync,
    mut take: impl FnMut(&RecordChunk<'r>, &mut S) -> Result<(), E>,
) -> Result<(), E> {
    let size = rayon::current_num_threads().saturating_mul(CHUNKS_A_CORE).max(1);
    let new = || Batch { chunks: Vec::with_capacity(size), slots: Vec::with_capacity(size) };
    let (mut ready, mut next): (Batch<'r, S>, Batch<'r, S>) = (new(), new());
    next.load(chunks, size, &slot);
    next.run(&work);
    loop {
        core::mem::swap(&mut ready, &mut next);
        if ready.chunks.is_empty() {
            return Ok(());
        }
        next.load(chunks, size, &slot);
        rayon::in_place_scope(|scope| {
            let (next, work) = (&mut next, &work);
            scope.spawn(move |_| next.run(work));
            ready
                .chunks
                .iter()
                .zip(&mut ready.slots)
                .try_for_each(|(chunk, slot)| take(chunk, slot))
        })?;
    }
}

struct Batch<'r, S> {
    chunks: Vec<RecordChunk<'r>>,
    /// As many as there ever were chunks.
    slots: Vec<S>,
}

impl<'r, S: Send> Batch<'r, S> {
    fn load(
        &mut self,
        chunks: &mut dyn Iterator<Item = RecordChunk<'r>>,
        size: usize,
        slot: &impl Fn() -> S,
    ) {
        self.chunks.clear();
        self.chunks.extend(chunks.take(size));
        while self.slots.len() < self.chunks.len() {
            self.slots.push(slot());
        }
    }

    fn run(&mut self, work: &(impl Fn(&RecordChunk<'r>, &mut S) + Sync)) {
        let pairs = self.chunks.par_iter_mut().zip(self.slots.par_iter_mut());
        pairs.with_max_len(1).for_each(|(chunk, slot)| work(chunk, slot));
    }
}
