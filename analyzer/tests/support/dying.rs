//! A process that is recorded and dies: a test of the same binary, run as a child.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::AtomicU64;

const CHILD: &str = "TMRUN_TEST_CHILD";

/// What this process is to do, if it is the child.
pub fn task() -> Option<String> {
    std::env::var(CHILD).ok()
}

/// Starts the child: that ignored test, with this task.
pub fn child(test: &str, task: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("the test binary"));
    command.args(["--exact", test, "--ignored"]).env(CHILD, task).env_remove("TMRUN_LEVEL");
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a child")
}

pub fn tmrun(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tmrun")).args(args).output().expect("it runs")
}

/// The file of the mapped rings.
pub fn rings(folder: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(folder.join("rings")).expect("a folder");
    files.next().expect("a file").expect("its name").path()
}

/// A counter that outlives the process: what the child says that it recorded.
pub struct Count(*const AtomicU64);

impl Count {
    pub fn open(folder: &Path) -> Self {
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(folder.join("count")).expect("a file");
        file.set_len(4096).expect("a page");
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of a file of that length; it is never unmapped.
        let page = unsafe {
            libc::mmap(std::ptr::null_mut(), 4096, protection, flags, file.as_raw_fd(), 0)
        };
        assert_ne!(page, libc::MAP_FAILED);
        Self(page.cast())
    }

    pub fn get(&self) -> &AtomicU64 {
        // SAFETY: the mapping is aligned, zeroed, and lives for ever.
        unsafe { &*self.0 }
    }
}
