//! The text of lsb.events and lsb.acct (lsb.events(5), lsb.acct(5)): one record a line, written in
//! the layout of LSF 9.1.3/10.1, read back exactly; files of other versions and of the openlava
//! family are read as far as their fields go.
//!
//! Data without a field in LSF's records goes into a key-value tail at the very end,
//! `<n> "lsf.key" "value" ...`, so that readers by field number are undisturbed, or into records
//! named `LSF_*`. Text fields cannot forge a record ([`text`]); where they lose something the
//! machine spools the exact submission and names the place in `JobNew::exact`
//! (`JobSpec::text_loses`).

mod brief;
mod checkpoint;
mod chunk;
mod finish;
mod force;
mod job_group;
mod message;
mod migrate;
mod modify;
mod new;
mod options;
mod read;
mod record;
mod record_error;
mod reservation;
mod reserve;
mod resize;
mod run_limit;
mod signal;
mod similar_submissions;
mod task;
#[cfg(test)]
mod tests;
pub mod text;
mod usage;
mod write;

pub use brief::{Brief, Late, read_brief};
pub use finish::{read_finish, write_finish};
pub use new::NO_GID;
pub use read::{name_and_time, read_record};
pub use record::{MAX_RECORD, VERSION, job_of, name_of, read_exact_spec, spooled_of};
pub use record_error::RecordError;
pub use reservation::{read_reservation_finish, write_reservation_finish};
pub use resize::write_resize;
pub use similar_submissions::SimilarSubmissions;
pub use task::{put_task, read_task};
pub use write::write_record;
