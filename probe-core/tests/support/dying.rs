//! A process that is recorded and dies at a moment of nobody's choice: what it does until then, and
//! how its parent ends it. What it recorded it counts in a page that outlives it.
#![allow(dead_code, reason = "the parent uses a part of it, and the child another")]

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use tmrun_formats::{LaneId, Level, NameId, TensorId};
use tmrun_probe_core::{AutoClock, OpFact, Overwrite, ProfileRun, probe, scalar, span};

const TASK: &str = "TMRUN_TEST_CHILD";

/// The lanes that numbers are recorded on, each by a thread of its own. Spans are open on the first.
pub const LANES: [LaneId; 2] = [LaneId(0), LaneId(1)];
/// The lane that operations of three records each are recorded on, by one more thread.
pub const GROUPS: LaneId = LaneId(2);

probe!(static PROBE: lanes = 3, slots = 1 << 10);
probe!(static NEWEST: lanes = 3, slots = 1 << 8; clock = Overwrite<AutoClock>);

/// What this process is to do, if it is the child.
pub fn task() -> Option<String> {
    std::env::var(TASK).ok()
}

/// An ignored test of this binary, as a program of its own.
pub fn test(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test binary"));
    command.args(["--exact", name, "--ignored"]);
    command
}

/// Starts a child with this task.
pub fn child(mut program: Command, task: &str) -> Child {
    program.env(TASK, task).env_remove("TMRUN_LEVEL").stdin(Stdio::piped());
    program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a child")
}

/// The file of the mapped rings.
pub fn rings(folder: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(folder.join("rings")).expect("a folder");
    files.next().expect("a file").expect("its name").path()
}

/// Numbers and operations of each lane that a process says it stored or dropped.
pub struct Count(&'static [AtomicU64; LANES.len() + 1]);

impl Count {
    pub fn open(folder: &Path) -> Self {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file: File = options.open(folder.join("count")).expect("a file");
        file.set_len(4096).expect("a page");
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of a file of that length; it is never unmapped.
        let page = unsafe {
            libc::mmap(std::ptr::null_mut(), 4096, protection, flags, file.as_raw_fd(), 0)
        };
        assert_ne!(page, libc::MAP_FAILED);
        // SAFETY: the mapping is aligned, longer than that, and lives for ever.
        Self(unsafe { &*page.cast() })
    }

    pub fn of(&self, LaneId(lane): LaneId) -> &AtomicU64 {
        &self.0[usize::from(lane)]
    }

    pub fn all(&self) -> [u64; LANES.len()] {
        LANES.map(|lane| self.of(lane).load(Ordering::Relaxed))
    }
}

/// The child: records on all lanes at full rate until it is killed, or told to die by a byte.
pub fn record_until_it_dies(task: &str) {
    let [folder, policy, how] = task.split('|').collect::<Vec<_>>()[..] else { panic!("{task}") };
    let folder = Path::new(folder);
    let count = Count::open(folder);
    let run = ProfileRun::training("dies", 1, "cpu").rings_in(folder.join("rings"));
    let path = folder.join("run.tmrun");
    macro_rules! record {
        ($probe:ident) => {{
            let _recording = $probe.record(&path, run).expect("it starts");
            assert_ne!($probe.device("cpu").0, 0);
            // Open when it dies.
            let _open = (span!($probe, "outer"), span!($probe, "inner"));
            let numbers = |lane| {
                let count = &count;
                move || {
                    for i in 0.. {
                        scalar!($probe, "value", i as f64);
                        count.of(lane).store(i + 1, Ordering::Relaxed);
                        pace(i);
                    }
                }
            };
            let operations = || {
                // Lanes are given in the order in which they are first recorded on.
                while count.of(LANES[1]).load(Ordering::Relaxed) == 0 {
                    std::thread::yield_now();
                }
                for i in 0.. {
                    let (shape, inputs) = (&[i as usize][..], &[TensorId(i)][..]);
                    let (output, shape) = (TensorId(i), Some(shape));
                    let fact = OpFact { output, shape, inputs, ..OpFact::default() };
                    $probe.at(Level::TIMING, |recorder| recorder.op(NameId::NONE, &fact));
                    count.of(GROUPS).store(i + 1, Ordering::Relaxed);
                    pace(i);
                }
            };
            std::thread::scope(|scope| {
                scope.spawn(|| die_when_told(how));
                scope.spawn(numbers(LANES[1]));
                scope.spawn(operations);
                numbers(LANES[0])();
            });
        }};
    }
    if policy == "newest" { record!(NEWEST) } else { record!(PROBE) }
}

/// On few cores a thread that never waited would not die early; later nothing but the clock decides.
fn pace(i: u64) {
    if i < 20_000 && i.is_multiple_of(61) {
        std::thread::yield_now();
    }
}

/// Ends this process, whatever its other threads are doing, when a byte comes or the parent is gone.
fn die_when_told(how: &str) {
    let told = std::io::stdin().read(&mut [0]).expect("a pipe");
    match how {
        "abort" if told > 0 => std::process::abort(),
        "hook" if told > 0 => {
            std::panic::set_hook(Box::new(|_| std::process::abort()));
            panic!("and the hook aborts");
        }
        "panic" if told > 0 => {
            // Where a panic does not abort this catches it.
            let _ = std::panic::catch_unwind(|| panic!("on purpose"));
            std::process::exit(1);
        }
        _ => std::process::exit(7),
    }
}

/// Runs the child until it has recorded so much on its first lane, and ends it so. Returns what it
/// says that it recorded.
pub fn died(
    program: Command,
    folder: &Path,
    policy: &str,
    how: &str,
    moment: u64,
) -> [u64; LANES.len()] {
    let count = Count::open(folder);
    let mut child = child(program, &format!("{}|{policy}|{how}", folder.display()));
    let of = |lane| count.of(lane).load(Ordering::Relaxed);
    // A ring of operations, unless that is to come much later.
    while of(LANES[0]) < moment || of(LANES[1]) == 0 || of(GROUPS) < moment.min(200) {
        assert!(child.try_wait().expect("a child").is_none(), "it records for ever");
        std::hint::spin_loop();
    }
    if how == "kill" {
        child.kill().expect("it lives");
    } else {
        child.stdin.as_ref().expect("a pipe").write_all(b"!").expect("it reads");
    }
    let status = child.wait().expect("it is dead");
    let expected = match how {
        "kill" => (Some(libc::SIGKILL), None),
        "exit" => (None, Some(7)),
        _ => (Some(libc::SIGABRT), None),
    };
    assert_eq!((status.signal(), status.code()), expected, "{how}");
    count.all()
}

/// Moments at random, of all magnitudes up to some hundred thousand records in. The seed is printed;
/// TMRUN_TEST_SEED takes one.
pub fn moments() -> impl Iterator<Item = u64> {
    let seed = std::env::var("TMRUN_TEST_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let mut state: u64 = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    println!("TMRUN_TEST_SEED={state}");
    let mut next = move || {
        // SplitMix64.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = state;
        word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ word >> 31
    };
    std::iter::repeat_with(move || {
        let most = 64 << (next() % 12);
        1 + next() % most
    })
}
