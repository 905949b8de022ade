//! Questions: what commands list, read or wait for. Nothing in here changes a job.

pub mod applications;
mod condensed_reasons;
pub mod dependencies;
pub mod guarantees;
pub mod job_columns;
pub mod job_exceptions;
pub mod job_groups;
pub mod job_info;
pub mod jobs;
pub mod limits;
pub mod params;
pub mod queues_hosts;
pub mod reservations;
pub mod selection;
pub mod shares;
pub mod slot_windows;
pub mod start_order;
mod started_options;
pub mod submission;
pub mod users_groups;
pub mod wait;
pub mod watch;
