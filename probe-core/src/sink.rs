//! Where drained bytes go.

/// Where a drain writes. Pieces come in file order, and nothing is written twice.
pub trait Sink {
    /// What can go wrong.
    type Error;

    /// Appends all bytes of all pieces.
    ///
    /// # Errors
    ///
    /// When any byte could not be written. The drain then writes nothing more, calls
    /// [`cut`](Self::cut) once, and counts what follows as lost.
    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), Self::Error>;

    /// After a failed write: everything up to `len` is whole, what lies behind it is not. A sink
    /// that can shorten what it wrote does so; the default leaves it to the reader.
    fn cut(&mut self, len: u64) {
        let _ = len;
    }
}

impl<S: Sink> Sink for &mut S {
    type Error = S::Error;

    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), Self::Error> {
        (**self).write(pieces)
    }

    fn cut(&mut self, len: u64) {
        (**self).cut(len);
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

    fn cut(&mut self, len: u64) {
        self.used = self.used.min(usize::try_from(len).unwrap_or(usize::MAX));
    }
}
