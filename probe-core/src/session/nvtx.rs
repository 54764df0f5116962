//! Ranges of NVTX around the spans of sessions, so that Nsight shows the same labels. The library is
//! looked for when the first span begins; where there is none, nothing happens.

use core::marker::PhantomData;

/// A range of the calling thread. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct Range {
    library: &'static Library,
    /// Ranges are a stack of the thread's.
    here: PhantomData<*const ()>,
}

impl Range {
    /// Begins a range, if there is a library to tell. (A label ends at its first NUL.)
    pub(super) fn push(label: &str) -> Option<Self> {
        let library = Library::get()?;
        let label = label.split('\0').next().unwrap_or_default();
        library.push(&std::ffi::CString::new(label).unwrap_or_default());
        Some(Self { library, here: PhantomData })
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        self.library.pop();
    }
}

#[cfg(unix)]
use unix::Library;

#[cfg(unix)]
mod unix {
    use core::ffi::{CStr, c_char, c_int, c_void};
    use core::ptr::NonNull;
    use std::sync::OnceLock;

    type Push = unsafe extern "C" fn(*const c_char) -> c_int;
    type Pop = unsafe extern "C" fn() -> c_int;

    /// What is called of the library.
    #[derive(Debug)]
    pub(super) struct Library {
        push: Push,
        pop: Pop,
    }

    impl Library {
        pub(super) fn get() -> Option<&'static Self> {
            static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
            LIBRARY.get_or_init(|| NAMES.iter().find_map(|name| Self::load(name))).as_ref()
        }

        pub(super) fn push(&self, label: &CStr) {
            // SAFETY: nvtxRangePushA takes a string that ends in NUL and copies it; the library stays
            // loaded. It returns the depth, which nobody needs.
            let _ = unsafe { (self.push)(label.as_ptr()) };
        }

        pub(super) fn pop(&self) {
            // SAFETY: nvtxRangePop may be called at any time.
            let _ = unsafe { (self.pop)() };
        }

        fn load(name: &CStr) -> Option<Self> {
            // SAFETY: the name ends in NUL. What the library does when it is loaded is what the user of
            // feature `nvtx` asked for. It is never unloaded.
            let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            let library = NonNull::new(library)?;
            let (push, pop) = (find(library, c"nvtxRangePushA")?, find(library, c"nvtxRangePop")?);
            // SAFETY: by the names, these are functions of NVTX with these signatures: in its header,
            // `int nvtxRangePushA(const char*)` and `int nvtxRangePop(void)`.
            unsafe {
                Some(Self {
                    push: core::mem::transmute::<*mut c_void, Push>(push.as_ptr()),
                    pop: core::mem::transmute::<*mut c_void, Pop>(pop.as_ptr()),
                })
            }
        }
    }

    const NAMES: [&CStr; 2] = [c"libnvToolsExt.so.1", c"libnvToolsExt.so"];

    fn find(library: NonNull<c_void>, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the library is loaded, and the name ends in NUL.
        NonNull::new(unsafe { libc::dlsym(library.as_ptr(), name.as_ptr()) })
    }
}

/// Nowhere to look for it.
#[cfg(not(unix))]
#[derive(Debug)]
enum Library {}

#[cfg(not(unix))]
impl Library {
    const fn get() -> Option<&'static Self> {
        None
    }

    fn push(&self, _: &std::ffi::CStr) {
        match *self {}
    }

    fn pop(&self) {
        match *self {}
    }
}
