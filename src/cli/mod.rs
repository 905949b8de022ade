//! What every command shares: the option front, the client side of the wire, columns and times.

pub mod client;
pub mod clock;
pub mod columns;
pub mod ctx;
pub mod daemons;
pub mod fields;
pub mod front;
pub mod help;
pub mod hostcheck;
pub mod install;
pub mod lim;
pub mod links;
pub mod load;
pub mod long;
pub mod personal;
pub mod place;
pub mod privport;
pub mod prove;
pub mod remote;
pub mod rows;
pub mod select;
pub mod site;
pub mod startup;
pub mod submission;
pub mod version;
pub mod waiting;
