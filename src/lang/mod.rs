//! The small languages: resource requirements, dependencies, job names, windows, limits,
//! policies of the load balancer.

pub mod bre;
pub mod civil;
pub mod command_words;
pub mod depend;
pub mod exitcodes;
pub mod interval;
pub mod jobname;
pub mod lsfhosts;
pub mod nlb;
pub mod nqshosts;
pub mod occurrences;
pub mod qmgr;
pub mod resreq;
mod scan;
pub mod timecond;
pub mod window;
