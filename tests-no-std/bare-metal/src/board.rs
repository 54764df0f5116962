//! Reset, vectors and semihosting: all that the board needs.

use core::arch::{asm, global_asm};
use core::panic::PanicInfo;

use tmrun_no_std_program::{MEMORY, check, record};

// Initialised data is copied and the rest is cleared before any Rust code runs.
global_asm!(
    ".section .vectors, \"a\"",
    ".word stack_top",
    ".word reset",
    ".rept 14",
    ".word trap",
    ".endr",
    ".text",
    ".global reset",
    ".thumb_func",
    "reset:",
    "ldr r0, =data_start",
    "ldr r1, =data_end",
    "ldr r2, =data_load",
    "1: cmp r0, r1",
    "beq 2f",
    "ldr r3, [r2], #4",
    "str r3, [r0], #4",
    "b 1b",
    "2: ldr r0, =bss_start",
    "ldr r1, =bss_end",
    "movs r2, #0",
    "3: cmp r0, r1",
    "beq 4f",
    "str r2, [r0], #4",
    "b 3b",
    "4: bl start",
    "b .",
    ".global trap",
    ".thumb_func",
    "trap: bl trapped",
    "b .",
);

const OPEN: usize = 0x01;
const CLOSE: usize = 0x02;
const WRITE0: usize = 0x04;
const WRITE: usize = 0x05;
const EXIT: usize = 0x18;
/// Open mode `wb`.
const MODE_WRITE: usize = 5;
const APPLICATION_EXIT: usize = 0x2_0026;
const RUN_TIME_ERROR: usize = 0x2_0023;

/// Asks the emulator.
///
/// # Safety
///
/// The argument is what the operation takes.
unsafe fn semihost(operation: usize, argument: usize) -> usize {
    let result;
    // SAFETY: the breakpoint is the semihosting call; the caller's promise covers the argument.
    unsafe {
        asm!("bkpt 0xab", inout("r0") operation => result, in("r1") argument, options(nostack));
    }
    result
}

fn say(text: &str) {
    let mut line = [0_u8; 80];
    for (place, byte) in line.iter_mut().take(78).zip(text.bytes().chain([b'\n'])) {
        *place = byte;
    }
    // SAFETY: the line ends with a zero byte, which the last one always is.
    unsafe { semihost(WRITE0, line.as_ptr() as usize) };
}

fn exit(how: usize) -> ! {
    // SAFETY: the argument is a reason to stop.
    unsafe { semihost(EXIT, how) };
    loop {
        core::hint::spin_loop();
    }
}

/// Writes the recording to the host.
fn save(bytes: &[u8]) -> Result<(), &'static str> {
    let name = b"recording.tmrun\0";
    let arguments = [name.as_ptr() as usize, MODE_WRITE, name.len() - 1];
    // SAFETY: the three words of an open call; the name ends with a zero byte.
    let file = unsafe { semihost(OPEN, arguments.as_ptr() as usize) };
    if file == usize::MAX {
        return Err("the host opened no file");
    }
    let arguments = [file, bytes.as_ptr() as usize, bytes.len()];
    // SAFETY: the three words of a write call; the bytes are as many as it says.
    let left = unsafe { semihost(WRITE, arguments.as_ptr() as usize) };
    let arguments = [file];
    // SAFETY: the one word of a close call.
    let closed = unsafe { semihost(CLOSE, arguments.as_ptr() as usize) };
    if left == 0 && closed == 0 { Ok(()) } else { Err("the host did not take all bytes") }
}

fn run() -> Result<(), &'static str> {
    let mut memory = [0_u8; MEMORY];
    let used = record(&mut memory)?;
    let bytes = memory.get(..used).ok_or("more bytes than there are")?;
    check(bytes)?;
    save(bytes)
}

#[unsafe(no_mangle)]
extern "C" fn start() -> ! {
    match run() {
        Ok(()) => {
            say("recorded and read back on bare metal");
            exit(APPLICATION_EXIT)
        }
        Err(what) => {
            say(what);
            exit(RUN_TIME_ERROR)
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn trapped() -> ! {
    say("the processor trapped");
    exit(RUN_TIME_ERROR)
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    say("it panicked");
    exit(RUN_TIME_ERROR)
}
