//! Real processes of a personal cluster on this machine: crashes, restarts, damage, reconfiguration.
//! Each module is one must-show of the foundation; every cluster is its own (`rig`).

mod apart;
mod base;
mod beats;
mod crash_daemons;
mod crash_master;
mod damage;
mod dynamic;
mod elims;
mod failover;
mod install;
mod keys;
mod limits;
mod nodes;
mod oldsite;
mod outputs;
mod post;
mod rcommands;
mod readme;
mod reconfig;
mod refusals;
mod remote;
mod rig;
mod rolling;
mod service;
mod several;
mod shared;
mod signals;
mod site;
mod syscalls;
mod terminal;
mod threshold;
mod users;
mod waited;
mod waits;
mod ways;
