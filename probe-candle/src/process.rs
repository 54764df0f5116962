//! What this process has in memory: the physical plane of the processor.

use std::fs::File;
use std::io;

use tmrun_probe_core::session::DeviceMemoryRecord;
use tmrun_probe_core::{DeviceMemoryFact, DevicePlace, Level, NameId, Target};

/// Reads how much of this process is in memory. It keeps the system's file about it open, so that a
/// sample is one system call without an allocation. (Linux; elsewhere it does not open.)
///
/// It is what the *process* has, whoever in it uses it: code, stacks, what allocators keep and have not
/// given back. It says nothing of tensors, and lifetimes of storages say nothing of it.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use tmrun_probe_candle::ProcessMemory;
/// use tmrun_probe_core::{Level, ProfileRun, probe};
///
/// probe!(static PROBE: lanes = 1, slots = 1 << 10);
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("run.tmrun");
/// let memory = ProcessMemory::open()?; // at the start
/// let run = ProfileRun::training("example", 1, "cpu").level(Level::METADATA);
/// let recording = PROBE.record(&path, run)?;
/// let step = PROBE.step(1);
/// let sample = memory.sample_memory(&PROBE)?.expect("level 2 is asked for");
/// assert!(sample.resident_bytes > 0);
/// drop(step);
/// recording.finish()?;
/// # Ok(())
/// # }
/// # main().unwrap();
/// # }
/// ```
///
/// In a session:
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// # use tmrun_probe_candle::ProcessMemory;
/// # use tmrun_probe_core::session::{ProfileRun, TraceSession};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("run.tmrun");
/// # let session = TraceSession::open(path, ProfileRun::training("train", 1, "cpu"))?;
/// let memory = ProcessMemory::open()?;
/// session.record_device_memory(memory.read()?.as_record())?;
/// # session.finish()?;
/// # Ok(())
/// # }
/// # main().unwrap();
/// # }
/// ```
#[derive(Debug)]
pub struct ProcessMemory {
    status: File,
}

/// What the process had in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessSample {
    /// Bytes that are in memory now (`VmRSS`).
    pub resident_bytes: u64,
    /// The most that ever were (`VmHWM`), where the system tells. No record has a place for it: it is
    /// for the application.
    pub peak_bytes: Option<u64>,
}

/// More than the file's lines up to those that are read.
const ENOUGH: usize = 4096;

impl ProcessMemory {
    /// Opens the system's file about this process; a child that is forked later would read of its parent.
    ///
    /// # Errors
    ///
    /// When there is none, or it says nothing of memory.
    pub fn open() -> io::Result<Self> {
        let memory = Self { status: File::open("/proc/self/status")? };
        memory.read()?;
        Ok(memory)
    }

    /// Reads it: one system call, no allocation. The kernel counts in batches, so a sample may be some
    /// hundred KiB a thread behind.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or says nothing of memory.
    pub fn read(&self) -> io::Result<ProcessSample> {
        let mut text = [0; ENOUGH];
        let length = read_at_start(&self.status, &mut text)?;
        let text = text.get(..length).unwrap_or(&text);
        parse(text).ok_or_else(|| {
            let message = "/proc/self/status: expected a line `VmRSS: … kB` in its first 4096 bytes, \
                           found none";
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
    }

    /// Records a sample of the processor's memory in use, as this process has it (level 2), and returns
    /// it. It asks the system nothing where that is not wanted.
    ///
    /// It costs some microseconds in the system: once a step, not once a tensor.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); then there is no record.
    pub fn sample_memory<T: Target>(&self, target: &T) -> io::Result<Option<ProcessSample>> {
        let sample = target.at(Level::METADATA, |to| {
            if !to.wants(NameId::NONE) {
                return Ok(None);
            }
            let sample = self.read()?;
            let device = to.probe().device_at(DevicePlace::Cpu);
            let used = Some(sample.resident_bytes);
            to.device_memory(&DeviceMemoryFact { device, used, ..DeviceMemoryFact::default() });
            Ok(Some(sample))
        });
        sample.unwrap_or(Ok(None))
    }
}

impl ProcessSample {
    /// The sample for [`record_device_memory`](tmrun_probe_core::session::TraceSession::record_device_memory)
    /// of a session: bytes in use of the device `cpu`.
    pub const fn as_record(&self) -> DeviceMemoryRecord<'static> {
        DeviceMemoryRecord {
            device: "cpu",
            used_bytes: Some(self.resident_bytes),
            free_bytes: None,
            reserved_bytes: None,
            capacity_bytes: None,
            timestamp_ns: None,
        }
    }
}

#[cfg(unix)]
fn read_at_start(file: &File, into: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, 0)
}

#[cfg(not(unix))]
fn read_at_start(_: &File, _: &mut [u8]) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

fn parse(status: &[u8]) -> Option<ProcessSample> {
    let bytes = |name: &[u8]| {
        let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))?;
        let number = std::str::from_utf8(line.trim_ascii().strip_suffix(b" kB")?).ok()?;
        number.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(ProcessSample { resident_bytes: bytes(b"VmRSS:")?, peak_bytes: bytes(b"VmHWM:") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_read() {
        let status = b"Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t     100 kB\nRssAnon:\t 7 kB\n";
        let (resident_bytes, peak_bytes) = (102_400, Some(2 << 20));
        assert_eq!(parse(status), Some(ProcessSample { resident_bytes, peak_bytes }));
        let no_peak = ProcessSample { resident_bytes, peak_bytes: None };
        assert_eq!(parse(b"VmRSS: 100 kB"), Some(no_peak), "also without an end of the line");
    }

    #[test]
    fn what_says_nothing_of_memory_is_no_sample() {
        let hostile: [&[u8]; 6] = [
            b"",
            b"Name:\tVmRSS: 1 kB\n",
            b"VmRSS:\t kB\n",
            b"VmRSS:\t1 MB\n",
            b"VmRSS:\t-1 kB\n",
            b"VmRSS:\t99999999999999999999 kB\nVmHWM:\t1 kB\n",
        ];
        for status in hostile {
            assert_eq!(parse(status), None, "{:?}", String::from_utf8_lossy(status));
        }
        assert_eq!(parse(b"VmRSS:\t18446744073709551615 kB"), None, "more than can be counted");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_written_is_resident_and_was_once_it_is_gone() {
        const SIZE: usize = 64 << 20;
        let memory = ProcessMemory::open().unwrap();
        let before = memory.read().unwrap();
        let written = std::hint::black_box(vec![1_u8; SIZE]);
        let with = memory.read().unwrap();
        // Other tests come and go beside this one: half of it is sign enough.
        assert!(with.resident_bytes > before.resident_bytes + SIZE as u64 / 2);
        drop(written);
        let after = memory.read().unwrap();
        assert!(after.peak_bytes.unwrap() > before.resident_bytes + SIZE as u64 / 2);
    }
}
