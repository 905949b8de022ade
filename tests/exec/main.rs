//! The real launcher and starter with real processes.

mod launcher;
mod rig;
mod starter;
