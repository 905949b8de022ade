//! The process and its peaks, for badmin showstatus.

/// Soft state for showstatus.
#[derive(Debug, Default)]
pub struct Status {
    pub pid: u32,
    /// Seconds since the epoch; 0 never.
    pub started: i64,
    pub reconfigured: i64,
    /// Most clients, servers, CPUs, cores and slots seen.
    pub(crate) peak: [u64; 5],
}
