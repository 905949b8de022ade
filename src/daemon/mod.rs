//! The real runner: drives one machine with sockets, clocks and files.

pub mod attach;
pub mod authd;
pub mod boot;
pub mod delegate;
pub mod eauthd;
pub mod eexecd;
pub mod groups;
pub mod guard;
pub mod heartbeat;
pub mod hooks;
pub mod hostfile;
pub mod launcher;
pub mod lim;
pub mod logging;
pub mod mail;
pub mod mbatchd;
pub mod melim;
pub mod members;
pub mod output;
pub mod ports;
pub mod res;
pub mod sbatchd;
pub mod shell;
pub mod starter;
pub mod task;
