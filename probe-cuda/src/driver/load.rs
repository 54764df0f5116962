//! Finding the library and the functions in it.

use std::error::Error;
use std::sync::OnceLock;

use libloading::Library;

use super::{Driver, Functions};

/// Where the driver is looked for, in this order. The name with the version first: the one without is
/// also what a toolkit calls its stub, which only links.
#[cfg(not(windows))]
const LIBRARIES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];
#[cfg(windows)]
const LIBRARIES: [&str; 1] = ["nvcuda.dll"];

/// Why there is no driver to call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// None of the files could be loaded.
    #[error(
        "no CUDA driver: looked for {} on the library path, and the loader said: {reason}; \
         install NVIDIA's driver, or run without device time",
        looked_for.join(", ")
    )]
    NoDriver {
        /// The files.
        looked_for: &'static [&'static str],
        /// What the loader said of the first.
        reason: String,
    },
    /// The driver is too old, or not NVIDIA's.
    #[error(
        "{library} has no {}: update the driver, or run without device time",
        missing.join(", ")
    )]
    MissingFunctions {
        /// The file that was loaded.
        library: &'static str,
        /// The functions that it lacks.
        missing: Vec<&'static str>,
    },
}

/// A function of the library.
///
/// # Safety
///
/// `F` is the type of a pointer to the function of that name.
pub(super) unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: the caller's contract. The function outlives the symbol: the library stays.
    unsafe { library.get::<F>(name) }.ok().map(|symbol| *symbol)
}

impl Driver {
    /// The driver, loaded at the first call.
    ///
    /// # Errors
    ///
    /// When there is none, or it lacks a function; later calls say the same.
    pub(crate) fn get() -> Result<&'static Self, LoadError> {
        static DRIVER: OnceLock<Result<Driver, LoadError>> = OnceLock::new();
        DRIVER.get_or_init(Self::load).as_ref().map_err(Clone::clone)
    }

    fn load() -> Result<Self, LoadError> {
        let (name, library) = open()?;
        // What is running may still call it as the process ends.
        let library: &'static Library = Box::leak(Box::new(library));
        let missing = |missing| LoadError::MissingFunctions { library: name, missing };
        let functions = Functions::look_up(library).map_err(missing)?;
        let elapsed =
            ["cuEventElapsedTime_v2", "cuEventElapsedTime"].into_iter().find_map(|name| {
                // SAFETY: both have the type of the field.
                Some((name, unsafe { symbol(library, name) }?))
            });
        let (elapsed_name, elapsed) =
            elapsed.ok_or_else(|| missing(vec!["cuEventElapsedTime_v2", "cuEventElapsedTime"]))?;
        // SAFETY: it has the type of the field.
        let stream_id = unsafe { symbol(library, "cuStreamGetId") };
        Ok(Self { functions, elapsed, elapsed_name, stream_id, library: name })
    }
}

fn open() -> Result<(&'static str, Library), LoadError> {
    let mut reason = None;
    for name in LIBRARIES {
        // SAFETY: loading NVIDIA's driver runs its initialisers, which have no preconditions; another
        // file of that name on the library path is the user's own choice.
        match unsafe { Library::new(name) } {
            Ok(library) => return Ok((name, library)),
            Err(error) => {
                // What the loader says is beneath the fact that it failed.
                let said = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                reason.get_or_insert(said);
            }
        }
    }
    let reason = reason.unwrap_or_default();
    Err(LoadError::NoDriver { looked_for: &LIBRARIES, reason })
}
