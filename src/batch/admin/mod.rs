//! Requests of administrators, who may ask for what, and what mbatchd says about itself.

pub mod diagnose;
pub mod dynamic_hosts;
pub mod perfmon;
pub mod permissions;
pub mod requests;
pub mod status;
