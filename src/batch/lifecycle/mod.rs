//! The life of a job: requests that change it, reports of hosts, time windows, load, requeue and
//! cleaning. Each file decides, and changes the state by events alone.

pub mod clean;
pub mod control;
pub mod control_work;
pub mod dependencies;
pub mod dispatch;
pub mod element_works;
pub mod force;
pub mod group_of_job;
pub mod host_inventory;
pub mod host_links;
pub mod host_messages;
pub mod host_orders;
pub mod host_reports;
pub mod job_groups;
pub mod job_status;
pub mod load_suspend;
pub mod lost_controls;
pub mod meant_elements;
pub mod messages;
pub mod migrate;
pub mod modify;
pub mod orphans;
pub mod pending_time;
pub mod reconfigure;
pub mod recovery;
pub mod report_standing;
pub mod reposition;
pub mod requeue;
pub mod retry;
pub mod submit;
pub mod suspension;
pub mod switch;
pub mod unreached_hosts;
pub mod window_suspend;
pub mod works;
