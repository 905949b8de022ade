//! Reservation methods: how often the amount of a rusage term is reserved for a parallel job.

use crate::conf::types::BatchConf;
use crate::lang::resreq::{Per, RusageTerm};
use std::collections::HashMap;

/// The unit by which the amount of a rusage term is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationMethod {
    /// For each task.
    PerTask,
    /// For each host of the job, even where these share the resource.
    PerHost,
    /// The hosts where it is held: on each host of the job, of a resource that hosts share once for
    /// these.
    PerInstance,
    /// Once for the job, on its first host.
    PerJob,
}

/// METHOD of the sections ReservationUsage (lsb.resources(5)), and RESOURCE_RESERVE_PER_TASK
/// (lsb.params(5)) for all other resources.
#[derive(Debug)]
pub(super) struct ReservationMethods {
    of_resource: HashMap<String, ReservationMethod>,
    per_task: bool,
}

impl ReservationMethods {
    pub fn compile(conf: &BatchConf) -> ReservationMethods {
        let rows = conf.resources.reservation_usage.iter();
        let method = |method: &str| match method {
            "PER_JOB" => Some(ReservationMethod::PerJob),
            "PER_HOST" => Some(ReservationMethod::PerHost),
            "PER_TASK" | "PER_SLOT" => Some(ReservationMethod::PerTask),
            _ => None,
        };
        ReservationMethods {
            of_resource: rows
                .filter_map(|row| Some((row.resource.clone(), method(&row.method)?)))
                .collect(),
            per_task: conf.params.resource_reserve_per_task,
        }
    }

    /// The method of a term: by the word behind it, else by its resource.
    pub fn of(&self, term: &RusageTerm) -> ReservationMethod {
        let by_resource = || match self.of_resource.is_empty() {
            true => None,
            false => self.of_resource.get(&term.res).copied(),
        };
        match term.per {
            Per::Task => ReservationMethod::PerTask,
            Per::Host => ReservationMethod::PerHost,
            Per::Job => ReservationMethod::PerJob,
            Per::Unsaid => by_resource().unwrap_or(match self.per_task {
                true => ReservationMethod::PerTask,
                false => ReservationMethod::PerInstance,
            }),
        }
    }
}
