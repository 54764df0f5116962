//! The program on the host: `main` is called by the C runtime. There is no allocator, so that a
//! crate that wants `alloc` does not link. Exit status: 0 right, 1 wrong, 2 a panic.
#![no_std]
#![no_main]

use core::ffi::{c_char, c_int};
use core::panic::PanicInfo;

use tmrun_no_std_program::{MEMORY, check, record};

#[link(name = "c")]
unsafe extern "C" {
    fn puts(text: *const c_char) -> c_int;
    fn _exit(status: c_int) -> !;
}

fn say(text: &str) {
    let mut line = [0_u8; 80];
    for (place, byte) in line.iter_mut().take(79).zip(text.bytes()) {
        *place = byte;
    }
    // SAFETY: the line ends with a zero byte, which the last one always is.
    unsafe { puts(line.as_ptr().cast()) };
}

/// Where the program begins.
#[unsafe(no_mangle)]
pub extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    let mut memory = [0_u8; MEMORY];
    let done = record(&mut memory)
        .and_then(|used| check(memory.get(..used).ok_or("more bytes than there are")?));
    match done {
        Ok(()) => {
            say("recorded and read back without std and without alloc");
            0
        }
        Err(what) => {
            say(what);
            1
        }
    }
}

/// The `core` that is installed was compiled to unwind and names this; nothing here unwinds.
#[unsafe(no_mangle)]
pub extern "C" fn rust_eh_personality() {}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    say("it panicked");
    // SAFETY: ends the process; nothing of it is needed any more.
    unsafe { _exit(2) }
}
