//! The recorded process that dies of `analyzer/tests/crash.rs`, as a program of its own: built with
//! `panic = "abort"`, which a test cannot be.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[path = "../../support/dying.rs"]
mod dying;

fn main() {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    if let Some(task) = dying::task() {
        dying::record_until_it_dies(&task);
    }
}
