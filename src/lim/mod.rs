//! The load information manager as a pure state machine.
//!
//! Each host's LIM measures its host (the runner reads the counters, `meter` makes the load indices
//! of them) and tells the master LIM by datagram; the master keeps what it heard and answers
//! everybody. See lim(8) and lsf.cluster(5).

pub mod copies;
pub mod election;
mod elims;
mod external;
pub mod facts;
mod join;
mod local;
pub mod machine;
pub mod melim;
pub mod meter;
mod orders;
mod readings;
mod state;

pub use election::Election;
pub use state::Lim;
