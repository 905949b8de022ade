//! Derived values that are kept current as the state changes: reservations, slots under each limit,
//! dependency conditions, closed time windows. Derived values are never logged, and can be counted
//! anew at any time.

pub mod advance_reservations;
pub mod application_counts;
pub mod dependencies;
pub mod exclusive_units;
pub mod fairshare;
pub mod group_watch;
pub mod guarantees;
pub mod job_group_counts;
pub mod job_group_watch;
pub mod limits_ledger;
pub mod named_jobs;
mod package_use;
mod pool_holdings;
pub mod pool_now;
pub mod pool_room;
pub mod preemption_claim;
pub mod preemptions;
pub mod processor_units;
pub mod reserve;
pub mod service_class_jobs;
pub mod service_goals;
pub mod slot_pools;
pub mod timeline;
mod vain_preemptions;
pub mod windows;
