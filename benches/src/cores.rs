//! Threads on cores of their own.

/// Runs `f` on a thread that stays on this core. Where that cannot be done the scheduler chooses, and
/// the numbers are only noisier.
///
/// # Panics
///
/// When `f` does.
pub fn on_core<R: Send>(core: usize, f: impl FnOnce() -> R + Send) -> R {
    let pinned = || {
        pin(core);
        f()
    };
    std::thread::scope(|scope| match scope.spawn(pinned).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Keeps the calling thread, and those that it will start, on this core.
pub fn pin(core: usize) {
    pin_thread(0, core);
}

/// Keeps every other thread of the process on this core.
///
/// # Errors
///
/// When the system does not tell which threads there are.
pub fn pin_others(core: usize) -> std::io::Result<()> {
    #[cfg(not(target_os = "linux"))]
    let _ = core;
    #[cfg(target_os = "linux")]
    {
        // SAFETY: asks for the calling thread's number; has no preconditions.
        let own = unsafe { libc::gettid() };
        for thread in std::fs::read_dir("/proc/self/task")? {
            let thread = thread?.file_name().to_string_lossy().parse().unwrap_or(own);
            if thread != own {
                pin_thread(thread, core);
            }
        }
    }
    Ok(())
}

/// 0 is the calling thread.
#[cfg(target_os = "linux")]
fn pin_thread(thread: i32, core: usize) {
    // SAFETY: a set of cores is an array of bits, for which zeros are a value.
    let mut cores: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if core < libc::CPU_SETSIZE as usize {
        // SAFETY: the core is one that the set has a bit for.
        unsafe { libc::CPU_SET(core, &mut cores) };
    }
    // SAFETY: the set is initialised and of the size that is said.
    unsafe { libc::sched_setaffinity(thread, size_of_val(&cores), &raw const cores) };
}

#[cfg(not(target_os = "linux"))]
fn pin_thread(_: i32, _: usize) {}
