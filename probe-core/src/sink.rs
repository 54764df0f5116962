//! Where drained bytes go.

/// Where a drain writes. Pieces come in file order, and nothing is written twice.
pub trait Sink {
    /// What can go wrong.
    type Error;

    /// Appends all bytes of all pieces.
    ///
    /// # Errors
    ///
    /// When any byte could not be written. The drain then calls [`cut`](Self::cut), and counts what
    /// follows as lost until a [retry](crate::Drain::retry).
    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), Self::Error>;

    /// After a failed write: everything up to `len` is whole, what lies behind it is torn and has to
    /// go. What is written next then lies at `len`.
    ///
    /// # Errors
    ///
    /// When the sink does not end at `len` now: nothing is ever written behind torn bytes, where no
    /// offset in the file would be true. Each retry asks again first, so that the failure of a sink
    /// that cannot take back what it wrote (a pipe, say) is final; the reader finds what is torn.
    fn cut(&mut self, len: u64) -> Result<(), Self::Error>;
}

impl<S: Sink> Sink for &mut S {
    type Error = S::Error;

    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), Self::Error> {
        (**self).write(pieces)
    }

    fn cut(&mut self, len: u64) -> Result<(), Self::Error> {
        (**self).cut(len)
    }
}

/// A sink into memory that is there already: a static array, say, of a target without files.
#[derive(Debug)]
pub struct SliceSink<'a> {
    memory: &'a mut [u8],
    used: usize,
}

impl<'a> SliceSink<'a> {
    /// An empty sink over this memory.
    pub const fn new(memory: &'a mut [u8]) -> Self {
        Self { memory, used: 0 }
    }

    /// What was written so far.
    pub fn written(&self) -> &[u8] {
        self.memory.get(..self.used).unwrap_or_default()
    }
}

/// The memory of a [`SliceSink`] is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryFull;

impl core::fmt::Display for MemoryFull {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the memory that the recording is drained into is full")
    }
}

impl core::error::Error for MemoryFull {}

impl Sink for SliceSink<'_> {
    type Error = MemoryFull;

    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), MemoryFull> {
        for piece in pieces {
            let free = self.memory.get_mut(self.used..).unwrap_or_default();
            free.get_mut(..piece.len()).ok_or(MemoryFull)?.copy_from_slice(piece);
            self.used += piece.len();
        }
        Ok(())
    }

    fn cut(&mut self, len: u64) -> Result<(), MemoryFull> {
        self.used = self.used.min(usize::try_from(len).unwrap_or(usize::MAX));
        Ok(())
    }
}
