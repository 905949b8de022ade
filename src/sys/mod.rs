//! Operating system calls: raw.rs alone holds unsafe; the rest are safe helpers over rustix.

pub mod equiv;
pub mod files;
pub mod load;
pub mod procs;
pub mod raw;
pub mod session;
pub mod site;
pub mod sudoers;
pub mod term;
pub mod users;

use crate::model::Now;
use rustix::time::{ClockId, clock_gettime};
use std::io;

/// Both clocks.
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
