//! Messages, frames and the contract between machines and runners.
