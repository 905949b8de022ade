//! The real runner: drives one machine with sockets, clocks and files.

pub mod shell;
