//! bhist: the history of jobs, read from the event log itself (commands.md §bhist).
#![allow(dead_code)]

mod history;
mod lines;
mod show;

#[cfg(test)]
mod tests;
