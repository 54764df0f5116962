//! The driver's functions, looked up once. Whatever is missing is said before anything is called: a
//! binding that looks them up as they are called would panic in the middle of a run.

mod calls;
mod code;
mod load;

use std::ffi::{c_char, c_int, c_uint, c_ulonglong};

use cudarc::driver::sys::{CUcontext, CUevent, CUstream};

pub(crate) use calls::{Capture, Query};
pub use code::Code;
pub use load::LoadError;

/// What every function returns. (The binding's enumeration would be undefined behaviour for a code
/// that it does not have.)
type Raw = c_int;

macro_rules! functions {
    ($($(#[$doc:meta])* $field:ident = $symbol:literal: fn($($argument:ty),*);)*) => {
        /// The functions without which nothing can be timed.
        #[derive(Debug)]
        pub(crate) struct Functions {
            $($(#[$doc])* $field: unsafe extern "system" fn($($argument),*) -> Raw,)*
        }

        impl Functions {
            /// Looks up all of them.
            ///
            /// # Errors
            ///
            /// The names of those that are missing.
            fn look_up(library: &libloading::Library) -> Result<Self, Vec<&'static str>> {
                let mut missing = Vec::new();
                $(
                    // SAFETY: the field's type is the function's, as CUDA's driver API has it.
                    let $field = unsafe { load::symbol(library, $symbol) };
                    if $field.is_none() {
                        missing.push($symbol);
                    }
                )*
                match ($($field,)*) {
                    ($(Some($field),)*) => Ok(Self { $($field,)* }),
                    _ => Err(missing),
                }
            }
        }
    };
}

functions! {
    init = "cuInit": fn(c_uint);
    driver_version = "cuDriverGetVersion": fn(*mut c_int);
    device_count = "cuDeviceGetCount": fn(*mut c_int);
    device_get = "cuDeviceGet": fn(*mut c_int, c_int);
    device_name = "cuDeviceGetName": fn(*mut c_char, c_int, c_int);
    context_retain = "cuDevicePrimaryCtxRetain": fn(*mut CUcontext, c_int);
    context_release = "cuDevicePrimaryCtxRelease_v2": fn(c_int);
    context_get = "cuCtxGetCurrent": fn(*mut CUcontext);
    context_set = "cuCtxSetCurrent": fn(CUcontext);
    event_create = "cuEventCreate": fn(*mut CUevent, c_uint);
    event_destroy = "cuEventDestroy_v2": fn(CUevent);
    event_record = "cuEventRecord": fn(CUevent, CUstream);
    event_record_with = "cuEventRecordWithFlags": fn(CUevent, CUstream, c_uint);
    event_query = "cuEventQuery": fn(CUevent);
    capture_status = "cuStreamIsCapturing": fn(CUstream, *mut c_uint);
    capture_mode = "cuThreadExchangeStreamCaptureMode": fn(*mut c_uint);
    memory_info = "cuMemGetInfo_v2": fn(*mut usize, *mut usize);
}

type Elapsed = unsafe extern "system" fn(*mut f32, CUevent, CUevent) -> Raw;
type StreamId = unsafe extern "system" fn(CUstream, *mut c_ulonglong) -> Raw;

/// The loaded driver. It is never unloaded.
#[derive(Debug)]
pub(crate) struct Driver {
    functions: Functions,
    elapsed: Elapsed,
    /// What `elapsed` is called.
    pub(crate) elapsed_name: &'static str,
    /// Since CUDA 12.0.
    stream_id: Option<StreamId>,
    /// The file that was loaded.
    pub(crate) library: &'static str,
}
