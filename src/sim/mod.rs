//! The simulated runner: many machines in one process in virtual time.
