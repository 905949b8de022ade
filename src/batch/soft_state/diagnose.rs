//! Whether queries are noted in a file, as badmin diagnose asked last.

/// The last request of badmin; it stands above ENABLE_DIAGNOSE, and ends with this mbatchd.
#[derive(Debug, Default)]
pub struct Diagnose {
    pub(crate) asked: Option<QueryLogging>,
}

#[derive(Debug)]
pub(crate) struct QueryLogging {
    pub(crate) on: bool,
    /// The usual one where it is empty.
    pub(crate) file: String,
    /// The instant at which the diagnosis ends, microseconds of the monotonic clock.
    pub(crate) until: Option<u64>,
}
