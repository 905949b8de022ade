//! bjobs: what became of jobs (commands.md §bjobs, clients.md rules 2, 3, 8, 10, 12).
#![allow(dead_code)]

mod fields;
mod listing;
mod long;
mod opts;
mod reasons;
mod show;
mod table;

#[cfg(test)]
mod tests;
