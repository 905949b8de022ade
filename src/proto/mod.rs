//! Messages, frames and the contract between machines and runners.
//!
//! Every message of every connection is a variant of [`Msg`]; `client`, `sbd`, `launch`, `res`,
//! `nlb` and `lim` hold the bodies by who speaks to whom. A golden-bytes test pins their JSON.

mod admin_ops;
mod after_job;
mod application_rows;
pub mod binding;
pub mod caps;
pub mod client;
pub mod collect;
mod daemon;
pub mod dependency;
pub mod force;
pub mod frame;
pub mod held_replies;
mod hook;
pub mod host_command;
pub mod job_directory;
pub mod job_group;
pub mod job_message;
pub mod launch;
pub mod lim;
pub mod limit_rows;
mod logging;
pub mod machine;
pub mod member;
mod msg;
pub mod nlb;
pub mod pam;
mod queue_rows;
mod refusal;
pub mod res;
pub mod reservation;
pub mod sbd;
mod setup_stage;
pub mod share_rows;
mod slot_windows;
mod task_end;
mod task_group;
mod task_id;
pub mod user_rows;
pub mod validation;
mod version;

pub use daemon::Daemon;
pub use logging::Logging;
pub use machine::{Effect, Endpoint, Input, LockRecord, Machine, Peer};
pub use msg::Msg;
pub use refusal::Refusal;
pub use version::{PROTO_HIGH, PROTO_LOW, high};

#[cfg(test)]
#[path = "golden_tests.rs"]
mod golden;
#[cfg(test)]
#[path = "golden_fields_tests.rs"]
mod golden_fields;
#[cfg(test)]
mod golden_pam;
