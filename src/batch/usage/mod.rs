//! What follows from the state and is kept current as it changes: reservations, dependency
//! conditions. It is never logged, and can be counted anew at any time.

pub mod dependencies;
pub mod group_watch;
pub mod reserve;
pub mod windows;
