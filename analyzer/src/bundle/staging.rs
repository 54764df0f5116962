//! A bundle in the making.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use tmrun_formats::bundle::{BundleFile, BundleManifest, BundleSchema, MANIFEST, NSIGHT, TRACE};

use super::content::hex;
use super::error::PublishFault;
use super::moment::{Moment, Observer};
use super::place::{Place, rename_new, sync};

/// A directory beside the destination, and what is in it.
#[derive(Debug)]
pub(super) struct Staging {
    pub(super) root: PathBuf,
    files: Vec<BundleFile<'static>>,
    /// Holds the lock.
    _lock: File,
}

impl Staging {
    pub(super) fn begin(place: &Place) -> Result<Self, PublishFault> {
        let (root, lock) = place.stage()?;
        Ok(Self { root, files: Vec::new(), _lock: lock })
    }

    /// A new file, written and synchronised.
    pub(super) fn file(
        &mut self,
        path: &str,
        observe: &mut Observer<'_>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), PublishFault> {
        let full = self.root.join(path);
        let failed = || PublishFault::io("written", &full);
        let file = OpenOptions::new().write(true).create_new(true).open(&full).map_err(failed())?;
        observe(Moment::Begun(path)).map_err(PublishFault::Stopped)?;
        let digesting = Digesting { file, digest: Sha256::new(), bytes: 0 };
        let mut out = BufWriter::with_capacity(256 << 10, digesting);
        write(&mut out).map_err(failed())?;
        let written = out.into_inner().map_err(io::IntoInnerError::into_error);
        let Digesting { file, digest, bytes } = written.map_err(failed())?;
        file.sync_all().map_err(failed())?;
        if path != MANIFEST {
            let sha256 = hex(&digest.finalize());
            let path = path.to_owned().into();
            self.files.push(BundleFile { path, bytes, sha256: sha256.into() });
        }
        observe(Moment::Written(path)).map_err(PublishFault::Stopped)
    }

    /// The directory of Nsight's files.
    pub(super) fn folder(&self) -> Result<PathBuf, PublishFault> {
        let folder = self.root.join(NSIGHT);
        fs::create_dir(&folder).map_err(PublishFault::io("made", &folder))?;
        Ok(folder)
    }

    /// The manifest, which is the last.
    pub(super) fn manifest(
        &mut self,
        run_id: &str,
        observe: &mut Observer<'_>,
    ) -> Result<(), PublishFault> {
        let mut files = self.files.clone();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let manifest = BundleManifest { schema: BundleSchema, run_id: run_id.into(), files };
        self.file(MANIFEST, observe, |out| write_json(out, &manifest))
    }

    /// Synchronises its directories: the files in them are already.
    pub(super) fn sync(&self) -> Result<(), PublishFault> {
        let nsight = self.root.join(NSIGHT);
        if nsight.exists() {
            sync(&nsight)?;
        }
        sync(&self.root)
    }

    /// Takes it away. Its trace, if that is whole, is kept beside the destination: returns where.
    pub(super) fn abandon(self, place: &Place) -> Option<PathBuf> {
        let is_whole = self.files.iter().any(|file| file.path == TRACE);
        let kept = place.kept_trace();
        let is_kept = is_whole && rename_new(&self.root.join(TRACE), &kept).is_ok();
        self.discard();
        is_kept.then_some(kept)
    }

    /// Takes it away. Where that fails, it is left over, and called so.
    pub(super) fn discard(self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Pretty, with a newline behind it, as the neighbour writes its documents.
pub(super) fn write_json(out: &mut dyn Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}

/// A file that is digested while it is written.
struct Digesting {
    file: File,
    digest: Sha256,
    bytes: u64,
}

impl Write for Digesting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(bytes.get(..written).unwrap_or(bytes));
        self.bytes = self.bytes.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
