//! The flight recorder: the image of a probe, mapped to a file that outlives the process.
//!
//! The file is mapped over the probe's own memory, where it lies. So no pointer changes, recording
//! costs what it did, and the death of the process, however it comes, leaves in the file all that
//! was stored. Blocks are reserved first: a full disk must not kill the program that is observed.
//!
//! The mapping stays when the recording ends: the file is removed, its pages live on as the probe's
//! memory, and the next recording maps another file over them.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tmrun_formats::RunId;
use tmrun_formats::rings::{ClockCell, RingsHeader, RunArea};
use tmrun_formats::wire::{CalibrationV1, FileHeader, Frame};

use super::RecordError;
use crate::clock::{Clock, Overrun};
use crate::image::{KEPT, PAGE};
use crate::names::BYTES_PER_NAME;
use crate::probe::ProbeRef;
use crate::sync::Ordering;

/// Where in the header's page the clock cells are.
const CLOCK: u64 = 512;

/// A mapped file of a recording that runs.
#[derive(Debug)]
pub(crate) struct Flight {
    file: File,
    path: PathBuf,
    readings: u64,
}

impl Flight {
    /// Makes the file and maps it over the probe's image. Nothing is recording yet.
    pub(crate) fn map<C: Clock>(
        probe: ProbeRef<'static, C>,
        path: PathBuf,
        header: &FileHeader,
        frames: &[Frame<'_>],
        first: CalibrationV1,
    ) -> Result<Self, RecordError> {
        let failed = |source| RecordError::Rings { path: path.clone(), source };
        if cfg!(not(target_pointer_width = "64")) || !page_divides(PAGE) {
            return Err(failed(io::ErrorKind::Unsupported.into()));
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.custom_flags(libc::O_NOFOLLOW).open(&path).map_err(failed)?;
        let mut flight = Self { file, path: path.clone(), readings: 0 };
        flight
            .fill(probe, header, frames, first)
            .inspect_err(|_| flight.remove())
            .map_err(failed)?;
        Ok(flight)
    }

    fn fill<C: Clock>(
        &mut self,
        probe: ProbeRef<'static, C>,
        header: &FileHeader,
        frames: &[Frame<'_>],
        first: CalibrationV1,
    ) -> io::Result<()> {
        let length = probe.image.length as u64;
        reserve(&self.file, length, fallocate)?;
        let header = rings_header(probe, header);
        self.file.write_all_at(&run_area(frames), header.run_area)?;
        self.reading(first)?;
        self.copy_shown(probe, &header)?;
        map_over(&self.file, probe)?;
        // What was interned, claimed or defined while the copy was made.
        probe.shared.mapped.store(true, Ordering::SeqCst);
        probe.show_all();
        // Last: a file without a header is no rings file.
        self.file.write_all_at(&header.encode(), 0)
    }

    /// Copies what the image shows now, but for the rings: what they hold is of no recording.
    fn copy_shown<C>(&self, probe: ProbeRef<'static, C>, header: &RingsHeader) -> io::Result<()> {
        let base = probe.image.kept.as_ptr().cast::<u8>();
        let (mut at, end) = (KEPT, header.rings as usize);
        while at < end {
            // SAFETY: the bytes from `at` to `end` are of one image, of which the address is
            // `base`. The kernel reads them, whatever other threads store to them meanwhile.
            let written = unsafe {
                let from = base.wrapping_add(at).cast::<libc::c_void>();
                libc::pwrite(self.file.as_raw_fd(), from, end - at, at as libc::off_t)
            };
            match usize::try_from(written) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => at += written,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// Another reading of the clock.
    pub(crate) fn reading(&mut self, sample: CalibrationV1) -> io::Result<()> {
        self.readings += 1;
        let cell = ClockCell { number: self.readings, sample };
        let place = CLOCK + ClockCell::SIZE * ClockCell::place(self.readings);
        self.file.write_all_at(&cell.encode(), place)
    }

    /// Everything is in the recording's file: this one is not needed any more.
    pub(crate) fn finished(self) {
        // The mark is for whoever has the file open; when it cannot be removed, for salvage.
        let _ = self.file.write_all_at(&[RingsHeader::FINISHED], RingsHeader::STATE);
        self.remove();
    }

    fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Where the rings of a run lie: `$XDG_RUNTIME_DIR/tmrun`, else `/dev/shm/tmrun-<uid>`, unless the
/// application says where. The folder is made, for this user only. One that is there has to be this
/// user's, and nobody else's to write to: whoever writes to it could put another file in the place of
/// this one. That others may list it is no harm: all that they see is a process and the id of its run.
pub(crate) fn place(folder: Option<&Path>, run: RunId) -> Result<PathBuf, RecordError> {
    // SAFETY: asks for a number; has no preconditions.
    let user = unsafe { libc::geteuid() };
    let folder = folder.map(Path::to_owned).unwrap_or_else(|| {
        // It counts if it is what the XDG base directory specification says: absolute, and this
        // user's. (Who becomes another user may bring along that of the first.)
        let is_own = |found: std::fs::Metadata| found.is_dir() && found.uid() == user;
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|path| path.is_absolute());
        match runtime.filter(|path| path.metadata().is_ok_and(is_own)) {
            Some(runtime) => runtime.join("tmrun"),
            None => PathBuf::from(format!("/dev/shm/tmrun-{user}")),
        }
    });
    // The recording names the rings: whoever looks for them there may be anywhere.
    let folder = std::path::absolute(&folder)
        .map_err(|source| RecordError::Rings { path: folder.clone(), source })?;
    let failed = |source| RecordError::Rings { path: folder.clone(), source };
    match DirBuilder::new().mode(0o700).create(&folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = std::fs::symlink_metadata(&folder).map_err(failed)?;
            if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
                let text = "expected a folder that this user owns and no other can write to";
                return Err(failed(io::Error::new(io::ErrorKind::PermissionDenied, text)));
            }
        }
        Err(error) => return Err(failed(error)),
    }
    Ok(folder.join(format!("{}-{run}.rings", std::process::id())))
}

/// Whether a mapping can begin and end at every multiple of `page`.
fn page_divides(page: usize) -> bool {
    // SAFETY: asks for a number; has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).is_ok_and(|size| size > 0 && page.is_multiple_of(size))
}

/// Sizes of a probe, and where its parts lie in the file: where they lie in its image.
fn rings_header<C: Clock>(probe: ProbeRef<'static, C>, header: &FileHeader) -> RingsHeader {
    let image = probe.image;
    let base = image.kept.as_ptr() as usize;
    let at = |address: usize| (address - base) as u64;
    RingsHeader {
        run: header.run,
        created_ns: header.created_ns,
        ticks_per_second: header.ticks_per_second,
        pid: std::process::id().into(),
        overwrite: (C::OVERRUN == Overrun::Overwrite).into(),
        lanes: image.lanes.len() as u64,
        slots: image.ring_slots() as u64,
        recorder_slots: image.recorder_slots.len() as u64,
        names: image.entries.len() as u64,
        length: image.length as u64,
        control: PAGE as u64,
        run_area: 2 * PAGE as u64,
        clock: CLOCK,
        no_lane: at(core::ptr::from_ref(image.no_lane) as usize),
        unnamed: at(core::ptr::from_ref(image.unnamed) as usize),
        codes: at(core::ptr::from_ref(image.codes) as usize),
        entries: at(image.entries.as_ptr() as usize),
        arena: at(image.arena.as_ptr() as usize),
        arena_length: (image.arena.len() * BYTES_PER_NAME) as u64,
        recorder: at(core::ptr::from_ref(image.recorder) as usize),
        recorder_ring: at(image.recorder_slots.as_ptr() as usize),
        blocks: at(image.lanes.as_ptr() as usize),
        rings: at(image.slots.as_ptr() as usize),
        changes: at(core::ptr::from_ref(image.changes) as usize),
    }
}

/// What describes the run. Frames that find no room are left out, from the last on: the run itself
/// comes first.
fn run_area(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut area = vec![0; RunArea::SIZE as usize];
    let mut end = RunArea::FRAMES;
    for frame in frames {
        let Some(length) = area.get_mut(end..).and_then(|rest| frame.encode(rest).ok()) else {
            break;
        };
        end += length;
    }
    // A frame that did not fit may have been begun.
    area.truncate(end);
    let frames = area.get(RunArea::FRAMES..).unwrap_or_default();
    let (length, crc) = (frames.len() as u32, crc32fast::hash(frames));
    area[..4].copy_from_slice(&length.to_le_bytes());
    area[4..RunArea::FRAMES].copy_from_slice(&crc.to_le_bytes());
    area
}

/// Reserves blocks for the whole file. A sparse file would have them allocated by the first store to
/// each page, and on a full disk that store is a SIGBUS in the program that is observed.
fn reserve(
    file: &File,
    length: u64,
    allocate: impl Fn(&File, u64) -> io::Result<()>,
) -> io::Result<()> {
    match allocate(file, length) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) => {
            // This file system cannot reserve; what is written is there.
            let zeros = vec![0; 1 << 20];
            let mut at = 0;
            while at < length {
                let part = (length - at).min(zeros.len() as u64);
                file.write_all_at(zeros.get(..part as usize).unwrap_or_default(), at)?;
                at += part;
            }
            Ok(())
        }
        result => result,
    }
}

fn fallocate(file: &File, length: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(length).map_err(io::Error::other)?;
    loop {
        // SAFETY: the descriptor is open; nothing else is asked for.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Maps the file over the image.
fn map_over<C>(file: &File, probe: ProbeRef<'static, C>) -> io::Result<()> {
    let image = probe.image;
    let address = image.kept.as_ptr().cast_mut().cast::<libc::c_void>();
    let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the image is `length` bytes from `address` on, whole pages of a probe that lives for
    // ever; all of it is atomics, which may change at any moment. The file's bytes are
    // those that are there (but for rings that nobody reads), so nothing that anybody relies on
    // changes: what producers work with lies elsewhere.
    let mapped =
        unsafe { libc::mmap(address, image.length, protection, flags, file.as_raw_fd(), 0) };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives an image pages of its own again, all zeros: in a forked child, whose parent's they are not.
pub(crate) fn unmap_in_child(image: &crate::image::ImageRef<'static>) -> bool {
    let address = image.kept.as_ptr().cast_mut().cast::<libc::c_void>();
    let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_ANONYMOUS;
    // SAFETY: as in `map_over`; the child has one thread, which is in here.
    let mapped = unsafe {
        libc::mmap(address, image.length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    mapped != libc::MAP_FAILED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_blocks_cannot_be_reserved_they_are_written() {
        let file = tempfile::tempfile().unwrap();
        let refuse = |_: &File, _| Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        reserve(&file, (2 << 20) + 4096, refuse).unwrap();
        let found = file.metadata().unwrap();
        assert_eq!(found.len(), (2 << 20) + 4096);
        assert!(found.blocks() * 512 >= found.len(), "no holes");
    }

    #[test]
    fn a_full_disk_is_an_error_before_anything_is_mapped() {
        let file = tempfile::tempfile().unwrap();
        let refuse = |_: &File, _| Err(io::Error::from_raw_os_error(libc::ENOSPC));
        let error = reserve(&file, 4096, refuse).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }

    #[test]
    fn frames_that_do_not_fit_the_run_area_are_left_out_and_the_first_ones_stay() {
        let long = "x".repeat(20_000);
        let item = Frame::Cfg(tmrun_formats::wire::ItemV1 { text: &long });
        let area = run_area(&[item; 5]);
        let frames = RunArea::frames(&area).expect("the CRC holds");
        let read = tmrun_formats::wire::Frames::new(frames, 0).map_while(Result::ok);
        assert_eq!(read.filter(|raw| raw.decode() == Ok(item)).count(), 3);
    }
}
