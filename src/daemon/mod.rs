//! The real runner: drives one machine with sockets, clocks and files.

pub mod logging;
pub mod shell;
