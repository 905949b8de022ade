//! Operating system calls: raw.rs alone holds unsafe calls; the rest are safe helpers over rustix.
//! (heap.rs and mem.rs are what the static file has in place of the C library's.)

pub mod cgroup;
pub mod child;
pub mod collect;
pub mod equiv;
pub mod files;
#[cfg(any(target_env = "musl", test))]
pub mod heap;
pub mod load;
#[cfg(all(target_arch = "x86_64", any(target_env = "musl", test)))]
mod mem;
pub mod process_table;
pub mod procs;
pub mod raw;
pub mod site;
pub mod sudoers;
pub mod task_owner;
pub mod task_processes;
mod task_usage;
pub mod term;
pub mod topology;
pub mod users;
mod zone;

pub use zone::zone;

use crate::model::Now;
use rustix::time::{ClockId, clock_gettime};
use std::io;

/// Reads both clocks.
pub fn now() -> Now {
    let mono = clock_gettime(ClockId::Monotonic);
    let wall = clock_gettime(ClockId::Realtime);
    Now {
        mono_us: mono.tv_sec as u64 * 1_000_000 + mono.tv_nsec as u64 / 1000,
        wall_us: wall.tv_sec * 1_000_000 + wall.tv_nsec / 1000,
    }
}

/// Bytes from the system's random source.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut out = [0u8; N];
    let mut at = 0;
    while at < N {
        match rustix::rand::getrandom(&mut out[at..], rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => at += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(out)
}

/// The system's words for an error, without Rust's `(os error N)`.
pub fn words(e: &io::Error) -> String {
    let text = e.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

/// The caller's effective uid.
pub fn euid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
pub mod testing;
