//! bsub: submits a job (commands.md bsub; clients.md rules 1, 4 to 7, 19).

#[allow(dead_code)]
mod command;
#[allow(dead_code)]
mod env;
#[allow(dead_code)]
mod opts;
#[allow(dead_code)]
mod resreq;
#[allow(dead_code)]
mod script;
#[allow(dead_code)]
mod spec;
#[allow(dead_code)]
mod when;
