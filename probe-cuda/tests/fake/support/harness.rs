//! Building the driver, putting it where the loader looks, and running a test again there.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::Simulated;

/// Says to a process that the driver is on its library path.
const THERE: &str = "TMRUN_FAKE_DRIVER";

/// A driver, and how it is set up.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    feature: Option<&'static str>,
    environment: Vec<(&'static str, String)>,
}

impl Setup {
    /// Time goes on only when the test says so; work begins when it is submitted, and stamps are exact.
    pub fn manual() -> Self {
        Self::default()
            .with("FAKECU_MANUAL", 1)
            .with("FAKECU_RES_NS", 1)
            .with("FAKECU_LATENCY_NS", 0)
    }

    /// A variable of the driver's, see its `config`.
    pub fn with(mut self, variable: &'static str, value: impl ToString) -> Self {
        self.environment.push((variable, value.to_string()));
        self
    }

    /// A driver that is built with this feature.
    pub fn feature(mut self, feature: &'static str) -> Self {
        self.feature = Some(feature);
        self
    }
}

/// Runs `body` on the driver: `test` once more in a process of its own, and the body there.
pub fn on_fake(test: &str, setup: &Setup, body: impl FnOnce(&Simulated)) {
    if std::env::var_os(THERE).is_some() {
        return body(&Simulated::load());
    }
    run_again(test, &folder_of(setup.feature), &setup.environment);
}

/// Runs `body` in a process whose library path has this folder.
pub fn in_process_with(test: &str, folder: &Path, body: impl FnOnce()) {
    if std::env::var_os(THERE).is_some() {
        return body();
    }
    run_again(test, folder, &[]);
}

fn run_again(test: &str, folder: &Path, environment: &[(&str, String)]) {
    let (_, name) = test.split_once("::").expect("a path within the crate");
    let here = std::env::current_exe().expect("the test has a file");
    let output = Command::new(here)
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(THERE, "1")
        .env("LD_LIBRARY_PATH", folder)
        .envs(environment.iter().map(|(variable, value)| (variable, value)))
        .output()
        .expect("the test runs again");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{text}\n{errors}", output.status);
    assert!(text.contains("1 passed"), "{name} was not found:\n{text}");
}

/// The folder with the driver of this feature, as `libcuda.so` and `libcuda.so.1`.
fn folder_of(feature: Option<&'static str>) -> PathBuf {
    static BUILT: Mutex<Option<HashMap<Option<&'static str>, PathBuf>>> = Mutex::new(None);
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let built = built.get_or_insert_default();
    built.entry(feature).or_insert_with(|| build(feature)).clone()
}

fn build(feature: Option<&str>) -> PathBuf {
    let variant = feature.unwrap_or("whole");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fake-driver").join(variant);
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/fake-driver/Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--offline", "--manifest-path", manifest, "--target-dir"]);
    command.arg(&target).env_remove("LD_LIBRARY_PATH").env_remove("CARGO_BUILD_TARGET");
    if let Some(feature) = feature {
        command.args(["--features", feature]);
    }
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let library = target.join("debug").join("libtmrun_fake_driver.so");
    let folder = target.join("lib");
    fs::create_dir_all(&folder).expect("the folder is made");
    // One file under both names, so that it is loaded once, whichever name is asked for. It takes their
    // place at once: another process may have loaded the old one.
    let new = folder.join(format!("new.{}", std::process::id()));
    fs::copy(&library, &new).expect("the driver is copied");
    let linked = folder.join(format!("link.{}", std::process::id()));
    fs::hard_link(&new, &linked).expect("the driver is linked");
    fs::rename(&new, folder.join("libcuda.so.1")).expect("it gets its name");
    fs::rename(&linked, folder.join("libcuda.so")).expect("it gets its other name");
    folder
}
