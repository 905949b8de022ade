//! The small languages: resource requirements, dependencies, job names, windows, limits.

pub mod depend;
pub mod jobname;
pub mod resreq;
mod scan;
