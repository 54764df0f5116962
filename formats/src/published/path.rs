//! Paths inside documents.

use std::path::{Component, Path};

/// Whether a document may name this file or bundle: relative, below its base, with forward slashes.
///
/// ```
/// use tmrun_formats::published::is_safe_path;
///
/// assert!(is_safe_path("nsight/kernels.csv"));
/// assert!(!is_safe_path("../evidence.json") && !is_safe_path("/evidence.json"));
/// assert!(!is_safe_path("./evidence.json") && !is_safe_path("nsight\\kernels.csv"));
/// assert!(!is_safe_path(""));
/// ```
#[must_use]
pub fn is_safe_path(path: &str) -> bool {
    let components = Path::new(path).components();
    !path.is_empty()
        && !path.contains('\\')
        && components.into_iter().all(|part| matches!(part, Component::Normal(_)))
}
