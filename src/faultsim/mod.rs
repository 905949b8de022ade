//! The simulated runner: the real machines of a whole cluster in one process, in virtual time, with
//! a seeded network, disk and process faults. Equal seeds give equal runs, so a failure replays.
//!
//! Real are every machine, every message and record as a typed value, the event log with its
//! recovery. Simulated are clocks, connections, datagrams, processes and the disk.
//!
//! Each file takes from files above it in this table.
//!
//! | file | what |
//! |---|---|
//! | rng, scale | random numbers; the size of a run |
//! | conn, event | a connection and its ends; the events of a run |
//! | os | processes and journal of a host |
//! | force | an administrator who forces jobs |
//! | limits | the limits of queues, users and hosts; mbatchd's counters |
//! | policies | fairshare and reserved slots of some clusters |
//! | groups | job groups that submitters name and change |
//! | change, modify, verbs | requests that change jobs: bmod; bswitch, bkill and others |
//! | client | submitters |
//! | preempted | attempts that are preempted, and how often |
//! | same | the state that a recovery finds is the one before |
//! | check | conditions that must hold |
//! | suspension | jobs that are suspended, by the records of mbatchd |
//! | log | the event log of mbatchd on a disk with faults |
//! | balancer | the load balancer: what must hold of it |
//! | membership_deaths | the messages about the hosts of a job at which daemons die |
//! | parallel_tasks | tasks of parallel jobs, and the calls by which they are started |
//! | world | the state of a run |
//! | net | messages and datagrams leave |
//! | task_calls | the callers of res, and conditions for tasks |
//! | balancer_start | the server and the collectors of the load balancer start |
//! | host_death | the hosts that may be given up, and conditions for their jobs |
//! | log_files | the log is opened, written and closed |
//! | processes | daemons start and are killed |
//! | host | system calls of a launcher |
//! | balancer_disk | files of the load balancer's server, on a disk with faults |
//! | turn | one input of a machine and its effects |
//! | log_thread | turns of the log's thread |
//! | task_requests | a caller asks for a task, a user sends a signal |
//! | requests | answers that are lost, requests that arrive twice |
//! | submitters | connections and requests of submitters |
//! | administrator | an administrator changes policies, maps and objects of the load balancer |
//! | arrivals | messages and ends of tasks arrive |
//! | faults | the faults and their times |
//! | run | a run event by event |

mod administrator;
mod arrivals;
mod balancer;
mod balancer_disk;
mod balancer_start;
mod change;
mod check;
mod checkpoints;
mod client;
mod conn;
mod duplicate;
mod duplicate_master;
mod duplicate_model;
mod event;
mod faults;
mod force;
mod groups;
mod host;
mod host_death;
mod limits;
mod log;
mod log_files;
mod log_thread;
mod membership_deaths;
mod modify;
mod net;
mod os;
mod parallel_tasks;
mod policies;
mod preempted;
mod processes;
mod requests;
mod rng;
mod run;
mod same;
mod scale;
mod submitters;
mod suspension;
mod task_calls;
mod task_requests;
mod turn;
mod verbs;
mod world;

pub use check::Failure;
pub use duplicate::run_duplicate;
pub use membership_deaths::MEMBERSHIP_MESSAGES;
pub use rng::Rng;
pub use scale::{Scale, Stats};
pub use world::World;

/// Runs one seed to the end of all jobs.
pub fn run(seed: u64, scale: Scale) -> Result<Stats, Failure> {
    let mut world = World::new(seed, scale);
    world.run()
}
