//! CUDA's own functions, by subject.

mod capturing;
mod context;
mod devices;
mod elapsed;
mod events;
mod kernels;
mod memory;
mod streams;
mod waiting;

use std::ffi::c_void;

/// A handle, or device memory's contents.
pub(crate) type Pointer = *mut c_void;

/// Defines functions: each is counted, takes its time and may fail before its body is run.
macro_rules! api {
    ($(fn $name:ident($state:ident $(, $argument:ident: $type:ty)* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $crate::code::Code {
            $crate::state::call(stringify!($name), |$state| $body)
        }
    )*};
}
pub(crate) use api;
