//! What happens when a mapped input is cut short while it is read: the kernel sends SIGBUS to the
//! thread that reads where nothing is any more. A program can make that an ordinary end.

use std::io::{self, Write as _};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::escape::escaped;

/// A mapped input. It is never freed, so that the handler can look at it at any moment: a program
/// opens few inputs, and a library that installed no handler makes none.
#[derive(Debug)]
struct Watched {
    start: usize,
    /// 0 once the input is closed.
    end: AtomicUsize,
    message: Box<[u8]>,
    /// Set before it is published, and never again.
    next: AtomicPtr<Self>,
}

/// All of them, the newest first.
static WATCHED: AtomicPtr<Watched> = AtomicPtr::new(ptr::null_mut());
/// What SIGBUS did before, and what the program is called; set before the handler can run.
static INSTALLED: OnceLock<(libc::sigaction, &'static str)> = OnceLock::new();
/// A thread is ending the process.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Lets this process end with one line on standard error, which names the input, and exit code 1,
/// when a mapped input is cut short while it is read. Without it the kernel kills the process.
///
/// This is for the `main` of a program: signals belong to the whole process. Only inputs that are
/// opened from here on are watched, and SIGBUS for any other reason does what it did before.
///
/// # Errors
///
/// When the operating system refuses.
pub fn exit_when_cut(program: &'static str) -> io::Result<()> {
    if INSTALLED.get().is_some() {
        return Ok(());
    }
    // SAFETY: All zeros is a value of this struct: numbers, an empty set, and no function. Both
    // pointers below are to such values, and reading the action in force changes nothing.
    let before = unsafe {
        let mut before = std::mem::zeroed::<libc::sigaction>();
        if libc::sigaction(libc::SIGBUS, ptr::null(), &mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        before
    };
    INSTALLED.get_or_init(|| (before, program));
    // SAFETY: As above; the handler has the signature that SA_SIGINFO asks for, and does only what
    // a handler may do. SA_ONSTACK uses the stack that the standard library set up, where it did.
    let done = unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        action.sa_sigaction = on_sigbus as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &action, ptr::null_mut())
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends the watch when it is dropped, which has to be before the map is.
#[derive(Debug)]
pub(super) struct Watch(Option<&'static Watched>);

impl Watch {
    /// Watches mapped bytes, if a handler is installed.
    pub(super) fn over(bytes: &[u8], name: &str) -> Self {
        let Some((_, program)) = INSTALLED.get().filter(|_| !bytes.is_empty()) else {
            return Self(None);
        };
        let mut message = Vec::new();
        let name = escaped(name);
        let _ = writeln!(
            message,
            "{program}: {name}: was cut short while it was read, or can be read no more"
        );
        let start = bytes.as_ptr() as usize;
        let watched = Box::leak(Box::new(Watched {
            start,
            end: AtomicUsize::new(start.saturating_add(bytes.len())),
            message: message.into(),
            next: AtomicPtr::new(ptr::null_mut()),
        }));
        let mut next = WATCHED.load(Ordering::Acquire);
        loop {
            *watched.next.get_mut() = next;
            let new: *mut Watched = watched;
            match WATCHED.compare_exchange_weak(next, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Self(Some(watched)),
                Err(found) => next = found,
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(watched) = self.0 {
            watched.end.store(0, Ordering::Release);
        }
    }
}

/// The handler. It calls `write`, `pause`, `_exit` and `sigaction`, which a handler may, reads atomics
/// and memory that is never freed, and allocates nothing.
extern "C" fn on_sigbus(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: The kernel hands a handler with SA_SIGINFO a valid `siginfo_t`, and for SIGBUS the
    // address is in it.
    let address = unsafe { (*info).si_addr() } as usize;
    let mut at: *const Watched = WATCHED.load(Ordering::Acquire);
    // SAFETY: What is in the list was leaked by `Watch::over` and published with release order; only
    // `end` changes after that, and it is atomic.
    while let Some(watched) = unsafe { at.as_ref() } {
        if (watched.start..watched.end.load(Ordering::Acquire)).contains(&address) {
            end(&watched.message);
        }
        at = watched.next.load(Ordering::Relaxed);
    }
    if let Some((before, _)) = INSTALLED.get() {
        // SAFETY: The action was in force before. When this handler returns, the instruction fails
        // again, and that action has it.
        unsafe { libc::sigaction(libc::SIGBUS, before, ptr::null_mut()) };
    }
}

/// Says it once, whichever thread comes first.
fn end(message: &[u8]) -> ! {
    if ENDING.swap(true, Ordering::AcqRel) {
        loop {
            // SAFETY: It takes nothing and only waits. The thread that came first ends the process.
            unsafe { libc::pause() };
        }
    }
    // SAFETY: The bytes are initialised and live for ever; a failing `write` is nobody's to hear of.
    // `_exit` ends the process without running anything of it.
    unsafe {
        libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len());
        libc::_exit(1)
    }
}
