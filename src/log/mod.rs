//! The event log: classic text records, checksums, spool, accounting.
//!
//! | file | what |
//! |---|---|
//! | codec | events as text and back |
//! | disk, simdisk | what the rest sees of a file system, real or simulated |
//! | checksums, record_walk | the checksum file; walking over lsb.events with it |
//! | owner, fence | the lock and the owner file; taking over from a run that may still write |
//! | acct_copy | the same for a large lsb.acct, between commits |
//! | acct_archive | lsb.acct becomes lsb.acct.1 |
//! | spool | exact bytes beside the log |
//! | duplicate, extent | the copy in LSB_SHAREDIR of a log in LSB_LOCALDIR; how long the log is |
//! | recover, acct | what is read at start |
//! | store, batch, fail | what is written, batch by batch; how it fails |
//! | element_ends | the accounting of many elements that one record ended |
//! | log_files, opening | the open files, and whose they are; what is mended at the start |
//! | mend | putting a log in order whose records were moved |
//! | switch, switch_names | beginning a new log without stopping; the files' names then |
//! | writer | what is done in which order, and told |
//! | replace | a small file of another directory is replaced as a whole |
//! | commit_queue | the loop's side: what is gathered, sealed, read again |
//! | stream_file | lsb.stream: the records once more, switched by size |
//! | thread | the thread that does it for the real mbatchd |

pub mod acct;
mod acct_archive;
pub mod acct_copy;
pub mod batch;
pub mod checksums;
pub mod codec;
pub mod commit_queue;
pub mod disk;
pub mod duplicate;
mod element_ends;
pub mod extent;
pub mod fail;
mod fence;
mod log_files;
pub mod mend;
mod opening;
pub mod owner;
pub mod record_walk;
pub mod recover;
pub mod replace;
pub mod simdisk;
pub mod spool;
pub mod store;
pub mod stream_file;
pub mod switch;
mod switch_names;
#[cfg(test)]
mod tests;
pub mod thread;
pub mod writer;

/// The event log.
pub const EVENTS: &str = "lsb.events";
/// The checksums of the event log.
pub const EVENTS_SUM: &str = "lsb.events.sum";
/// The accounting file.
pub const ACCT: &str = "lsb.acct";
/// The newest accounting file that was put aside.
pub const ACCT_OLD: &str = "lsb.acct.1";
