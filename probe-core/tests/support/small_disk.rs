//! A child of its own file system, which is small: a tmpfs that nobody else sees.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The program with a tmpfs of so many bytes over this folder, for itself alone. Starting it fails
/// where the kernel gives a process no namespaces of its own.
pub fn over(folder: &Path, bytes: u64, mut program: Command) -> Command {
    // SAFETY: both ask for a number and have no preconditions.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let users = format!("0 {user} 1");
    let groups = format!("0 {group} 1");
    let folder = CString::new(folder.as_os_str().as_bytes()).expect("a path");
    let options = CString::new(format!("size={bytes},mode=700")).expect("options");
    let set_up = move || {
        // SAFETY: asks for namespaces; this is a child that has just been forked, of one thread.
        done(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) })?;
        put(c"/proc/self/setgroups", b"deny")?;
        put(c"/proc/self/uid_map", users.as_bytes())?;
        put(c"/proc/self/gid_map", groups.as_bytes())?;
        let (kind, options) = (c"tmpfs".as_ptr(), options.as_ptr().cast());
        // SAFETY: all are strings that end, and live until the call returns.
        done(unsafe { libc::mount(kind, folder.as_ptr(), kind, 0, options) })
    };
    // SAFETY: between fork and exec it makes system calls and nothing else: what it needs was
    // allocated before.
    unsafe { program.pre_exec(set_up) };
    program
}

fn put(path: &CStr, text: &[u8]) -> io::Result<()> {
    // SAFETY: the path is a string that ends.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    done(file)?;
    // SAFETY: the descriptor is open, and the bytes are there.
    let written = unsafe { libc::write(file, text.as_ptr().cast(), text.len()) };
    done(if written < 0 { -1 } else { 0 })
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
