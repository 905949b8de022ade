//! State that mbatchd keeps in memory alone: requests under way, open listings and waits, timers,
//! metrics. A restart begins without it, and rebuilds from the state what is due. Here are the
//! values and what they can do by themselves; the rooms above act on them.

pub mod control_work;
pub mod cursor;
pub mod diagnose;
pub mod eligible;
pub mod exception_round;
pub mod exit_rates;
pub mod extendable_limits;
pub mod fanout;
pub mod idle_groups;
pub mod job_viewer;
pub mod listings;
pub mod load_checks;
pub mod lost_controls;
pub mod missing_attempts;
pub mod modify_work;
pub mod named_elements;
pub mod nlb_servers;
pub mod perfmon;
pub mod periodic_look;
pub mod place_scan;
pub mod retention;
pub mod routing;
pub mod spool;
pub mod started_walk;
pub mod status;
pub mod validations;
pub mod waits;
pub mod watches;
pub mod works;
