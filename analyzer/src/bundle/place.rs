//! Where a bundle goes, and what is beside that.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tmrun_formats::bundle::MANIFEST;

use super::error::PublishFault;

/// What a staging directory, a trace that was kept and a recording are called behind the destination's name.
const STAGING: &str = ".tmp-";
const TRACE: &str = ".trace-";
const CAPTURE: &str = ".capture-";

/// So many bytes of a destination's name are in those of what is beside it, which have to be names too.
const LONGEST: usize = 160;

/// A destination.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// As it was named, without a slash behind it.
    pub(super) path: PathBuf,
    /// The directory that it is in.
    pub(super) parent: PathBuf,
    /// What names of what is beside it begin with: a dot, and its own name.
    stem: OsString,
}

impl Place {
    pub(super) fn of(path: &Path) -> Result<Self, PublishFault> {
        let no_name = || PublishFault::NoName { path: path.to_owned() };
        let name = path.file_name().ok_or_else(no_name)?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut stem = OsString::from(".");
        stem.push(OsStr::from_bytes(name.as_bytes().get(..LONGEST).unwrap_or(name.as_bytes())));
        // Not as it was given: with a slash behind it, a link would stand for what it leads to.
        let path = path.with_file_name(name);
        Ok(Self { path, parent: parent.to_owned(), stem })
    }

    /// Refuses a destination in another bundle.
    pub(super) fn refuse_nested(&self) -> Result<(), PublishFault> {
        self.refuse_in(&self.parent)
    }

    fn refuse_in(&self, folder: &Path) -> Result<(), PublishFault> {
        match around(folder) {
            Some(bundle) => Err(PublishFault::Inside { path: self.path.clone(), bundle }),
            None => Ok(()),
        }
    }

    /// Makes the directories around it that are not there, so that they stay; none of them in a bundle,
    /// which may have come there meanwhile.
    pub(super) fn make_parents(&self) -> Result<(), PublishFault> {
        let missing = self.parent.ancestors().take_while(|folder| !is_there(folder));
        let missing: Vec<&Path> = missing.collect();
        for folder in missing.into_iter().rev() {
            self.refuse_in(folder)?;
            match fs::create_dir(folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(PublishFault::io("made", folder))?,
            }
            let around = folder.parent().filter(|folder| !folder.as_os_str().is_empty());
            sync(around.unwrap_or(Path::new(".")))?;
        }
        self.refuse_nested()
    }

    /// Makes a new staging directory beside it, and [holds](hold) it.
    pub(super) fn stage(&self) -> Result<(PathBuf, File), PublishFault> {
        loop {
            let root = self.beside(STAGING, "");
            match fs::create_dir(&root) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(PublishFault::io("made", &root))?,
            }
            let held = hold(&root).map_err(PublishFault::io("opened", &root))?;
            return Ok((root, held));
        }
    }

    /// Where a capture is recorded before it is published.
    pub(super) fn captured(&self) -> PathBuf {
        self.beside(CAPTURE, ".tmrun")
    }

    /// Where a trace is kept when the bundle was not published.
    pub(super) fn kept_trace(&self) -> PathBuf {
        self.beside(TRACE, ".jsonl")
    }

    /// A name beside it that nobody else has.
    fn beside(&self, what: &str, suffix: &str) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let nonce = now.as_nanos().wrapping_add(count.into());
        let mut name = self.stem.clone();
        name.push(format!("{what}{}-{nonce}{suffix}", std::process::id()));
        self.parent.join(name)
    }

    /// Puts a directory there; an error if anything is there already.
    pub(super) fn take(&self, root: &Path) -> io::Result<()> {
        rename_new(root, &self.path)
    }
}

/// Renames without replacing.
pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

/// Synchronises a directory.
pub(super) fn sync(folder: &Path) -> Result<(), PublishFault> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(PublishFault::io("synchronised", folder))
}

fn is_there(folder: &Path) -> bool {
    folder.as_os_str().is_empty() || folder.exists()
}

/// The bundle that a path lies in, whatever links and `..` are on the way; itself, if it is one. What is
/// not there of the way is taken for directories that are yet to be made.
pub fn around(path: &Path) -> Option<PathBuf> {
    let way = real(path)?;
    let is_bundle = |folder: &&Path| {
        fs::symlink_metadata(folder.join(MANIFEST)).is_ok_and(|manifest| manifest.is_file())
    };
    way.ancestors().find(is_bundle).map(Path::to_owned)
}

/// Where a path leads, without links and `..`, once its directories are made.
fn real(path: &Path) -> Option<PathBuf> {
    let mut way =
        if path.is_absolute() { PathBuf::from("/") } else { fs::canonicalize(".").ok()? };
    for part in path.components() {
        match part {
            // The way has no link in it, so that is what is around its last directory.
            Component::ParentDir => {
                way.pop();
            }
            Component::Normal(name) => {
                way.push(name);
                way = fs::canonicalize(&way).unwrap_or(way);
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    Some(way)
}

/// Whether a directory is called as staging directories are: it was not published.
pub(crate) fn is_staging(root: &Path) -> bool {
    let root = fs::canonicalize(root);
    let name = root.as_deref().ok().and_then(Path::file_name);
    name.is_some_and(|name| has_form(name.as_bytes(), STAGING, ""))
}

/// Whether a name is `.…<what><number>-<number><suffix>`.
fn has_form(name: &[u8], what: &str, suffix: &str) -> bool {
    let behind = |name: &[u8]| {
        let at = name.windows(what.len()).rposition(|part| part == what.as_bytes())?;
        name.get(at.saturating_add(what.len())..).map(<[u8]>::to_vec)
    };
    let numbers = name.strip_suffix(suffix.as_bytes()).and_then(behind).unwrap_or_default();
    let mut numbers = numbers.split(|&byte| byte == b'-');
    let mut is_number =
        || numbers.next().is_some_and(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit));
    name.starts_with(b".") && is_number() && is_number() && numbers.next().is_none()
}

/// What publishers of this destination left beside it: staging directories and recordings of captures
/// that nobody works on any more, and traces that were kept. None of it is a bundle.
pub fn leftovers(destination: &Path) -> Vec<PathBuf> {
    let Ok(place) = Place::of(destination) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(&place.parent) else { return Vec::new() };
    let mut left: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default();
            let of_place = |what: &str, suffix| {
                let stem = place.stem.as_bytes();
                let behind = name.as_bytes().strip_prefix(stem);
                behind.is_some_and(|behind| behind.starts_with(what.as_bytes()))
                    && has_form(name.as_bytes(), what, suffix)
            };
            let is_held = of_place(STAGING, "") || of_place(CAPTURE, ".tmrun");
            of_place(TRACE, ".jsonl") || is_held && is_abandoned(path)
        })
        .collect();
    left.sort();
    left
}

/// Locks a file or a directory for as long as it is open here, so that others can tell that somebody
/// works on it. Where there are no locks, it may be said to be left over.
pub(crate) fn hold(path: &Path) -> io::Result<File> {
    let held = File::open(path)?;
    let _ = held.lock();
    Ok(held)
}

/// Whether nobody holds what is there.
fn is_abandoned(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return true };
    !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_leads_where_it_will_when_its_directories_are_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(folder.path()).expect("it is there");
        fs::create_dir_all(root.join("a/b")).expect("folders");
        std::os::unix::fs::symlink(root.join("a/b"), root.join("link")).expect("a link");
        for (path, leads) in [
            ("a/../link/../b", "a/b"),
            ("new/../link/x", "a/b/x"),
            ("new/x/../../link/..", "a"),
            ("link/new/../../../new", "new"),
            ("./new/./x", "new/x"),
        ] {
            let before = real(&folder.path().join(path));
            assert_eq!(before.as_ref(), Some(&root.join(leads)), "{path}");
        }
        assert_eq!(real(Path::new("new/..")), fs::canonicalize(".").ok());
        assert_eq!(real(Path::new("/../new")), Some("/new".into()));
    }

    #[test]
    fn a_staging_directory_is_told_by_its_name() {
        let is = |name: &str| has_form(name.as_bytes(), STAGING, "");
        assert!(is(".step-7.tmp-12-34") && is(".a.tmp-b.tmp-1-2"));
        for other in ["step-7.tmp-12-34", ".step-7.tmp-12", ".step-7.tmp-12-", ".step-7.tmp-1-2-3"]
        {
            assert!(!is(other), "{other}");
        }
        assert!(has_form(b".step-7.trace-12-34.jsonl", TRACE, ".jsonl"));
        assert!(has_form(b".step-7.capture-12-34.tmrun", CAPTURE, ".tmrun"));
    }
}
