//! The real launcher and starter with real processes.

#![allow(clippy::unwrap_used)]

mod launcher;
mod rig;
mod starter;
