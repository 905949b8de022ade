//! What every command shares: the option front, the client side of the wire, columns and times.

pub mod ctx;
pub mod links;
pub mod version;
