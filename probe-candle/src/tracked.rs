//! A tensor whose allocation and free are recorded with it.

use std::fmt;
use std::ops::Deref;

use candle_core::Tensor;
use tmrun_probe_core::session::{MemoryCategory, SessionError, SpanGuard, TraceSession};
use tmrun_probe_core::{Category, Level, NameId, Target};

use crate::memory::{self, Held};
use crate::session;

/// A tensor whose storage is recorded as allocated when this is made, and as freed when it is dropped
/// (level 2). It is used as the tensor that it holds, and holds nothing else.
///
/// What it cannot see: candle tells nobody when a storage is dropped, so the free is recorded when
/// *this* is. A clone or a view that lives on, or a graph that keeps the tensor for its gradient, keeps
/// the memory too. So it is for a tensor that one owner has: parameters, caches, buffers, what an
/// optimizer keeps, an activation that is kept by name. It is not for a view: that is of a storage which
/// came into being for another tensor.
///
/// ```
/// use candle_core::{DType, Device, Tensor};
/// use tmrun_probe_candle::{Tracked, storage_id};
/// use tmrun_probe_core::{Category, ProfileRun, probe};
///
/// probe!(static PROBE: lanes = 1, slots = 1 << 10);
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("run.tmrun");
/// let run = ProfileRun::training("example", 1, "cpu").level(tmrun_probe_core::Level::METADATA);
/// let recording = PROBE.record(&path, run)?;
/// let cache = PROBE.name("cache");
/// {
///     let keys = Tensor::zeros((8, 64), DType::F32, &Device::Cpu)?;
///     let keys = Tracked::new(&PROBE, cache, keys, Category::OTHER); // allocated
///     assert_eq!(keys.dims(), [8, 64]);
///     assert_ne!(storage_id(&keys).0 >> 48, 0, "its lifetime is recorded");
/// } // freed
/// recording.finish()?;
/// # Ok(())
/// # }
/// ```
#[must_use = "the free is recorded when it is dropped"]
pub struct Tracked<L: Ledger> {
    ledger: L,
    held: Option<Held>,
    tensor: Tensor,
}

/// Where a [`Tracked`] records what becomes of its storage: a probe or a session.
pub trait Ledger: sealed::Ledger {}

pub(crate) mod sealed {
    use candle_core::Tensor;

    use crate::memory::Held;

    pub trait Ledger {
        #[doc(hidden)]
        fn free(&self, held: Held, tensor: &Tensor);
    }
}

/// The ledger of a probe: its node, and what the storage is for.
#[derive(Debug)]
pub struct OfProbe<'t, T: ?Sized> {
    target: &'t T,
    node: NameId,
    category: Category,
}

impl<T: Target + ?Sized> Ledger for OfProbe<'_, T> {}

impl<T: Target + ?Sized> sealed::Ledger for OfProbe<'_, T> {
    fn free(&self, held: Held, tensor: &Tensor) {
        // As a guard that was armed when it opened: what has a beginning gets its end, whatever the
        // level is by now.
        self.target.at(Level::PULSE, |to| {
            let storage = (held.storage, held.bytes);
            memory::free(
                &to,
                self.node,
                &memory::fact(&to, NameId::NONE, storage, tensor, self.category),
            );
        });
    }
}

impl<'t, T: Target> Tracked<OfProbe<'t, T>> {
    /// Records the allocation of the storage behind `tensor`, which came into being for it, and has its
    /// free recorded. Nothing is recorded, now or then, where level 2 is not asked for of the node, or
    /// the storage is on an accelerator, whose allocator does not tell sizes.
    ///
    /// Both allocate nothing, and wait for the storage's read lock alone. Where a recording ends between
    /// the two, the free is in none or in the next one, which leaves it out.
    pub fn new(target: &'t T, node: NameId, tensor: Tensor, category: Category) -> Self {
        let held = target
            .at(Level::METADATA, |to| memory::alloc(&to, (node, NameId::NONE), &tensor, category));
        Self { ledger: OfProbe { target, node, category }, held: held.flatten(), tensor }
    }
}

/// The ledger of a session: a span of it, which is open for as long as the tensor is tracked.
#[derive(Debug)]
pub struct OfSession<'s> {
    session: &'s TraceSession,
    span: &'s SpanGuard<'s>,
    category: MemoryCategory,
}

impl Ledger for OfSession<'_> {}

impl sealed::Ledger for OfSession<'_> {
    fn free(&self, held: Held, tensor: &Tensor) {
        // The span is one of the session's, so there is no error.
        let _ = session::free(self.session, self.span.id(), held, tensor, self.category);
    }
}

impl<'s> Tracked<OfSession<'s>> {
    /// The same in a session, as a part of this span of it.
    ///
    /// Both look the storage's and the tensor's identity up among the session's names, where they stay.
    ///
    /// # Errors
    ///
    /// When the span is none of this session's.
    pub fn in_session(
        session: &'s TraceSession,
        span: &'s SpanGuard<'s>,
        tensor: Tensor,
        category: MemoryCategory,
    ) -> Result<Self, SessionError> {
        let held = session::alloc(session, span.id(), &tensor, category, None)?;
        Ok(Self { ledger: OfSession { session, span, category }, held, tensor })
    }
}

impl<L: Ledger> Tracked<L> {
    /// Whether the allocation is recorded, and so the free will be.
    pub const fn is_recorded(&self) -> bool {
        self.held.is_some()
    }

    /// The tensor, for as long as somebody wants it: no free is recorded, and the storage counts as one
    /// that stays.
    pub fn retain(mut self) -> Tensor {
        self.held = None;
        self.tensor.clone()
    }
}

impl<L: Ledger> Deref for Tracked<L> {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.tensor
    }
}

impl<L: Ledger> AsRef<Tensor> for Tracked<L> {
    fn as_ref(&self) -> &Tensor {
        &self.tensor
    }
}

impl<L: Ledger> fmt::Debug for Tracked<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { held, tensor, .. } = self;
        f.debug_struct("Tracked")
            .field("held", held)
            .field("shape", tensor.shape())
            .finish_non_exhaustive()
    }
}

impl<L: Ledger> Drop for Tracked<L> {
    fn drop(&mut self) {
        // The tensor is dropped behind this.
        if let Some(held) = self.held.take() {
            self.ledger.free(held, &self.tensor);
        }
    }
}
