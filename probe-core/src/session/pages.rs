//! Zeroed pages of their own.

use core::ptr::NonNull;
use std::io;

/// Pages that are all zeros at first and go when this does.
#[derive(Debug)]
pub(super) struct Pages {
    /// What was asked of the system, and how much.
    base: NonNull<u8>,
    length: usize,
    /// Within it.
    start: NonNull<u8>,
}

// SAFETY: it is memory, which belongs to no thread.
unsafe impl Send for Pages {}
// SAFETY: a shared reference gives an address away, and no access.
unsafe impl Sync for Pages {}

impl Pages {
    /// So many bytes, beginning on a multiple of `align`, which is a power of two.
    pub(super) fn new(bytes: usize, align: usize) -> io::Result<Self> {
        let too_many = || io::Error::from(io::ErrorKind::OutOfMemory);
        let length = bytes.checked_add(align).ok_or_else(too_many)?;
        let base = system::take(length)?;
        // SAFETY: the offset is less than `align`, so that `bytes` lie behind it.
        let start = unsafe { base.add(base.align_offset(align).min(align)) };
        Ok(Self { base, length, start })
    }

    /// The first of them.
    pub(super) const fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: they were taken as they are given back; whoever had them from `start` is done.
        unsafe { system::give_back(self.base, self.length) };
    }
}

/// A mapping: a file may be mapped over a part of it, and giving it back undoes that too.
#[cfg(unix)]
mod system {
    use core::ptr::{NonNull, null_mut};
    use std::io;

    pub(super) fn take(length: usize) -> io::Result<NonNull<u8>> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: a new mapping, where the system likes; nothing that is mapped already is touched.
        let base = unsafe { libc::mmap(null_mut(), length, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// # Safety
    ///
    /// `take` gave it, and nobody uses it any more.
    pub(super) unsafe fn give_back(base: NonNull<u8>, length: usize) {
        // SAFETY: as the caller promises. It does not fail on a mapping that is there.
        let _ = unsafe { libc::munmap(base.as_ptr().cast(), length) };
    }
}

#[cfg(not(unix))]
mod system {
    use core::alloc::Layout;
    use core::ptr::NonNull;
    use std::io;

    fn layout(length: usize) -> io::Result<Layout> {
        Layout::array::<u128>(length.div_ceil(size_of::<u128>())).map_err(io::Error::other)
    }

    pub(super) fn take(length: usize) -> io::Result<NonNull<u8>> {
        // SAFETY: the length is not zero: an alignment was added to it.
        let base = unsafe { std::alloc::alloc_zeroed(layout(length)?) };
        NonNull::new(base).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// # Safety
    ///
    /// `take` gave it, and nobody uses it any more.
    pub(super) unsafe fn give_back(base: NonNull<u8>, length: usize) {
        if let Ok(layout) = layout(length) {
            // SAFETY: as the caller promises; it is the layout that it was taken with.
            unsafe { std::alloc::dealloc(base.as_ptr(), layout) };
        }
    }
}
