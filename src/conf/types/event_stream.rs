//! ENABLE_EVENT_STREAM and the parameters beside it (lsb.params(5)).

/// The file that repeats the records of lsb.events and lsb.acct for programs that follow them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventStreamParams {
    /// EVENT_STREAM_FILE; None: stream/lsb.stream beside lsb.events.
    pub path: Option<String>,
    /// MAX_EVENT_STREAM_SIZE, bytes of one file.
    pub max_bytes: u64,
    /// MAX_EVENT_STREAM_FILE_NUMBER: former files that are kept.
    pub files: u32,
    /// ALLOW_EVENT_TYPE: names of records; empty: all.
    pub types: Vec<String>,
}
