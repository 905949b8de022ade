//! Requests of administrators, and what mbatchd says about itself.

pub mod comment;
pub mod define_queues;
pub mod diagnose;
pub mod dynamic_hosts;
pub mod perfmon;
pub mod requests;
pub mod status;
