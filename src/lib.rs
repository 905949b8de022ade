//! lsf: an open workload manager that speaks LSF.
//!
//! Everything but the applets lives in this library. Floors, top to bottom (imports run
//! downwards only; `tests/tidy` checks it):
//!
//! ```text
//! applets            one file per command and daemon entry (the binary crate)
//! cli                the option front, the client side of the wire, columns and times
//! daemon, faultsim   the two runners of the machines
//! net, sys, log, auth   loop, OS calls, event log, credentials
//! batch exec lim res pam   the machines, pure
//! proto              messages, frames, the machine contract
//! conf, lang         file parsers; resource, dependency and window expressions
//! model              the nouns
//! ```

pub mod auth;
pub mod batch;
pub mod cli;
pub mod conf;
pub mod daemon;
pub mod exec;
pub mod faultsim;
pub mod lang;
pub mod lim;
pub mod log;
pub mod model;
pub mod net;
pub mod nlb;
pub mod pam;
pub mod proto;
pub mod res;
pub mod sys;
