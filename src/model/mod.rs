//! The nouns: plain data that every floor above shares. No logic beyond conversions, no I/O.

pub mod action;
pub mod affinity;
pub mod aps;
pub mod array_move;
pub mod bytes;
pub mod checkpoint;
pub mod event;
pub mod exception;
pub mod further;
mod host_usage;
pub mod idmap;
pub mod ids;
pub mod idtable;
pub mod job;
pub mod job_control;
pub mod job_group;
pub mod job_state;
pub mod limits;
pub mod nlb;
pub mod nqs;
pub mod reason;
pub mod reservation;
pub mod resize;
pub mod signals;
pub mod sort;
pub mod specfield;
pub mod take;
pub mod task_gone;
pub mod time;
pub mod topology;

pub use bytes::{ByteStr, cut};
pub use ids::{JobKey, JobRef};
pub use time::Now;
