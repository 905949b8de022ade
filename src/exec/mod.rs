//! Launcher, starter and sbatchd.

pub mod attempt;
mod bind_job;
mod binding;
pub mod blobs;
pub mod checkpoint;
pub mod clock_steps;
pub mod env_script;
pub mod host_commands;
mod host_limits;
pub mod job_starter;
pub mod launcher;
pub mod launcher_state;
mod launcher_supervision;
pub mod life;
pub mod members;
pub mod others_usage;
pub mod plan;
pub mod post;
pub mod report;
pub mod resize;
pub mod sbatchd;
pub mod task_env;
