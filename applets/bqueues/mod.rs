//! bqueues: the queues (commands.md §bqueues).
#![allow(dead_code)]

mod long;
mod table;

#[cfg(test)]
mod tests;
