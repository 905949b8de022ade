//! Readers of the classic configuration files: one lexer, one parser per file.
//!
//! Pure: text in, typed value and diagnostics out. Files come through the trait [`Files`]; the one
//! that reads real ones is `sys::files`. Every diagnostic carries file, line and column. A running
//! cluster takes a new value only when there is no error.

mod acct_archive;
pub mod address_range;
pub mod aps;
mod brackets;
pub mod check;
mod check_aps;
mod check_guarantees;
mod check_requirements;
mod check_shares;
mod check_slot_pools;
pub mod diag;
mod directives;
pub mod equiv;
mod event_stream;
mod exceptions;
pub mod expressions;
mod extendable_run_limit;
pub mod external_groups;
pub mod files;
pub mod generate;
mod guaranteed_pools;
pub mod hosts;
pub mod install_config;
pub mod lexer;
mod limit_names;
mod line;
pub mod load;
mod lsb_applications;
pub mod lsb_hosts;
pub mod lsb_params;
pub mod lsb_queues;
pub mod lsb_resources;
mod lsb_serviceclasses;
pub mod lsb_users;
pub mod lsf_cluster;
pub mod lsf_conf;
pub mod lsf_shared;
pub mod lsf_sudoers;
pub mod members;
pub mod membership;
pub mod names;
pub mod nlb_config;
pub mod nlb_map;
pub mod nlb_objects;
mod nlb_reader;
#[cfg(test)]
mod nlb_tests;
pub mod nqeinfo;
pub mod nqs;
pub mod preemption;
pub mod section;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
pub mod types;
pub mod units;
pub mod unix;
mod user_shares;
pub mod warning;

pub use diag::{Diag, Diags, Pos, Severity, has_errors, has_warnings, summary_not_acted_on};
pub use files::{Files, Moment};
pub use generate::{SitePlan, generate};
pub use hosts::{HostEntry, HostTable};
pub use load::{
    check_batch, check_lsf, load, load_base, load_base_lenient, load_lenient, load_lsf_conf,
};
pub use lsf_conf::settings;
pub use types::*;
pub use units::{SizeUnit, size_kb, time_limit};
