//! The hosts at run time: links to their sbatchd, load and status, and which host may report on
//! which attempt.

pub mod hosts;
pub mod links;
pub mod nlb_lists;
pub mod unreached;
