//! What the run frame says of the machine and the process.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use tmrun_formats::RunId;

/// The host's name.
pub(crate) fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok())?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// This process's rank and the number of processes, where a launcher says so: `torchrun` and its
/// like, Open MPI, Slurm.
pub(crate) fn rank() -> (Option<u32>, Option<u32>) {
    let first = |names: [&str; 3]| {
        names.into_iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
    };
    (
        first(["RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"]),
        first(["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"]),
    )
}

/// Nanoseconds since 1970-01-01 UTC.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A fresh run identity: the standard library's random hash keys, stirred with time and process.
pub(crate) fn new_run_id() -> RunId {
    let half = |salt: u8| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(unix_ns());
        hasher.write_u32(std::process::id());
        hasher.write_u8(salt);
        hasher.finish()
    };
    let id = u128::from(half(0)) << 64 | u128::from(half(1));
    RunId(id.to_be_bytes())
}
