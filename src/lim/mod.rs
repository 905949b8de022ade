//! The load information manager as a pure state machine.
//!
//! Each host's LIM measures its host (the runner reads the counters, `meter` makes the load
//! indices of them) and tells the master LIM by datagram; the master keeps what it heard and
//! answers everybody. Documents implemented: semantics.md sections 5, 6 and 27, config.md
//! section 3.

pub mod copies;
pub mod election;
mod elims;
pub mod facts;
mod join;
pub mod machine;
pub mod melim;
pub mod meter;
mod orders;

pub use election::Election;
pub use machine::Lim;
