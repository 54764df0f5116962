//! Where the mapped rings lie when the application does not say, and whom they let in. Each case is a
//! process of its own, because the environment says where.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod support;

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use support::dying;
use tmrun_formats::rings::RingsHeader;
use tmrun_probe_core::{ProfileRun, probe, scalar};

probe!(static PROBE: lanes = 1, slots = 64);

const SAID: &str = "TMRUN_TEST_SAID";

/// Records, and ends without finishing; says where the rings are, or why there are none.
#[test]
#[ignore = "the child of the other tests"]
fn leaves_its_rings() {
    let (Some(task), Some(said)) = (dying::task(), std::env::var_os(SAID)) else { return };
    // SAFETY: has no preconditions; the process has no other thread that makes a file.
    unsafe { libc::umask(0) };
    let run = ProfileRun::training("placed", 1, "cpu").flight_recorder().replace(true);
    let run = if task.is_empty() { run } else { run.rings_in(task) };
    let said = PathBuf::from(said);
    match PROBE.record(said.with_extension("tmrun"), run) {
        Err(error) => fs::write(said, error.to_string()).expect("written"),
        Ok(recording) => {
            scalar!(PROBE, "value", 1.0);
            let rings = recording.rings().expect("a flight recorder has rings");
            fs::write(said, rings.to_str().expect("text")).expect("written");
            // Without its end.
            std::process::exit(0);
        }
    }
}

/// What such a process says, with this value of the variable, and the process.
fn said(folder: &Path, runtime: Option<&Path>, rings_in: &str) -> (u32, String) {
    let said = folder.join("said");
    let mut program = dying::test("leaves_its_rings");
    program.env(SAID, &said).env_remove("XDG_RUNTIME_DIR").current_dir(folder);
    program.envs(runtime.map(|runtime| ("XDG_RUNTIME_DIR", runtime)));
    let mut child = dying::child(program, rings_in);
    let process = child.id();
    assert!(child.wait().expect("a child").success());
    (process, fs::read_to_string(said).expect("it says where"))
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
}

/// Holds that a process with this value of the variable leaves its rings in this folder, and nobody
/// else may look into them.
fn lie_in(expected: &Path, folder: &Path, runtime: Option<&Path>) {
    let (process, said) = said(folder, runtime, "");
    let rings = PathBuf::from(&said);
    assert_eq!(rings.parent(), Some(expected), "{said}");
    let header = RingsHeader::decode(&fs::read(&rings).expect("they are there"));
    let header = header.expect("a whole header");
    let modes = (mode(expected), mode(&rings));
    fs::remove_file(&rings).expect("they are this user's");
    assert_eq!(header.pid, u64::from(process));
    let name = format!("{process}-{}.rings", header.run);
    assert_eq!(rings.file_name(), Some(name.as_ref()));
    assert_eq!(modes, (0o700, 0o600), "whatever the umask");
}

/// Where they lie without the variable.
fn shared_memory() -> PathBuf {
    // SAFETY: asks for a number; has no preconditions.
    let user = unsafe { libc::geteuid() };
    format!("/dev/shm/tmrun-{user}").into()
}

#[test]
fn they_lie_in_the_runtime_folder_of_the_user() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = dir.path().join("runtime");
    fs::create_dir(&runtime).unwrap();
    // Made by the first, and there for the second.
    for _ in 0..2 {
        lie_in(&runtime.join("tmrun"), dir.path(), Some(&runtime));
        assert_eq!(fs::read_dir(runtime.join("tmrun")).unwrap().count(), 0);
    }
}

#[test]
fn they_lie_in_shared_memory_where_no_runtime_folder_is_the_users_own() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    fs::create_dir(dir.path().join("relative")).unwrap();
    let others = of_another(dir.path());
    let gone = dir.path().join("gone");
    let no_folders = ["".as_ref(), "relative".as_ref(), &*file, &*gone, &*others];
    for runtime in no_folders.into_iter().map(Some).chain([None]) {
        lie_in(&shared_memory(), dir.path(), runtime);
    }
    assert!(!gone.exists() && !others.join("tmrun").exists());
}

/// A folder of another user.
fn of_another(folder: &Path) -> PathBuf {
    let path = folder.join("others");
    DirBuilder::new().mode(0o755).create(&path).unwrap();
    // Who may not give one away is not root, whose this one is.
    match std::os::unix::fs::chown(&path, Some(12345), None) {
        Ok(()) => path,
        Err(_) => PathBuf::from("/"),
    }
}

#[test]
fn a_folder_that_others_own_or_can_write_to_is_refused_and_one_that_they_can_list_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let own = |mode: u32| {
        let path = dir.path().join(format!("{mode:o}"));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    };
    let linked = dir.path().join("linked");
    std::os::unix::fs::symlink(own(0o711), &linked).unwrap();
    for folder in [own(0o770), own(0o777), own(0o1777), own(0o702), linked, of_another(dir.path())]
    {
        let name = folder.to_str().unwrap();
        let (_, error) = said(dir.path(), None, name);
        assert!(error.contains(name), "{error}");
        assert!(error.contains("that this user owns and no other can write to"), "{error}");
        assert!(error.contains("ProfileRun::rings_in"), "{error}");
        assert!(!dir.path().join("said.tmrun").exists(), "nothing is recorded");
    }
    for mode in [0o755, 0o700] {
        let folder = own(mode);
        let (_, said) = said(dir.path(), None, folder.to_str().unwrap());
        let rings = PathBuf::from(said);
        assert_eq!(rings.parent(), Some(&*folder));
        assert_eq!(self::mode(&rings), 0o600);
        assert_eq!(self::mode(&folder), mode, "it is left as it is");
    }
}

#[test]
fn the_users_own_folder_with_the_wrong_rights_is_refused_and_no_other_is_taken_instead() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("tmrun");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    let (_, error) = said(dir.path(), Some(dir.path()), "");
    assert!(error.contains(folder.to_str().unwrap()), "{error}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}
