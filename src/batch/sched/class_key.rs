//! The key of a class: the submission fields that pending jobs of one class have in common.

use crate::batch::site::aps::ApsFormula;
use crate::batch::site::nlb_request::NlbKey;
use crate::batch::site::rules::Consumer;
use crate::batch::site::service_classes::ServiceClassId;
use crate::batch::site::{Queue, Site};
use crate::batch::state::names::{HostId, QueueId, UserId};
use crate::batch::usage::pool_room::PoolJob;
use crate::model::aps::ApsSetting;
use crate::model::further::HostLines;
use crate::model::job::JobSpec;
use crate::model::reason::PendReason;
use std::rc::Rc;

/// Bytes of host words, host files and requirements that cost as much as a look at a host.
const BYTES_PER_LOOK: usize = 32;

/// The key of a class: pending jobs of one key are alike to the scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ClassKey {
    pub(super) queue: QueueId,
    pub(super) user: UserId,
    /// Queue and user again, and what else of a job limits look at.
    pub(super) consumer: Consumer,
    pub(super) from_host: String,
    pub(super) res_req: String,
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) hosts: Vec<String>,
    /// -x.
    pub(super) exclusive: bool,
    /// The application profile; empty none.
    pub(super) application: Box<str>,
    /// The path of the job group; empty none.
    pub(super) group: Box<str>,
    /// -G where users share by groups; empty none.
    pub(super) share_group: Box<str>,
    /// The advance reservation; empty none.
    pub(super) reservation: Box<str>,
    /// The run limit in seconds, while there are advance reservations that it may run into.
    pub(super) run_limit: Option<u64>,
    /// The service class, where the configuration has it.
    pub(super) service_class: Option<ServiceClassId>,
    /// How long they may run, seconds, where pools lend to short jobs alone.
    pub(super) loan_seconds: Option<u64>,
    /// -hostfile: exactly these slots on these hosts; empty none.
    pub(super) fixed: HostLines,
    /// How long they may run, where the scheduler looks at that ([`Queue::is_timed`]) and they have
    /// a run limit.
    ///
    /// [`Queue::is_timed`]: crate::batch::site::Queue::is_timed
    pub(super) time: Option<Box<TimeKey>>,
    /// The parts of their absolute priority, where the queue has APS_PRIORITY.
    pub(super) aps: Option<Box<ApsKey>>,
    /// The list of hosts of the load balancer that they share, where a policy of it chooses hosts
    /// for them.
    pub(super) nlb: Option<Rc<NlbKey>>,
    /// Hosts that these are not to be started on, and why: of single elements (`sched::lone`).
    pub(super) barred: Vec<(HostId, PendReason)>,
}

/// Parts of the absolute priority of jobs, beside queue, user, application and requirement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ApsKey {
    /// bsub -sp.
    pub(super) priority: u32,
    /// bmod -aps.
    pub(super) setting: Option<ApsSetting>,
    /// The priority of the user group of bsub -G, where it counts.
    pub(super) user_group: u32,
    /// The account of bsub -G, where the dynamic priority counts.
    pub(super) share_group: Box<str>,
    /// When they were submitted, where the order of submission does not hold among them.
    pub(super) bucket: Option<i64>,
}

impl ApsKey {
    /// The key of a submission whose pending time began then.
    pub fn of(site: &Site, formula: &ApsFormula, spec: &JobSpec, since: i64) -> Box<ApsKey> {
        let weighed = formula.weighs_groups();
        Box::new(ApsKey {
            priority: spec.priority,
            setting: spec.further.aps,
            user_group: if weighed { site.group_priority(&spec.user_group) } else { 0 },
            share_group: match formula.tree {
                Some(_) => spec.user_group.as_str().into(),
                None => "".into(),
            },
            bucket: formula.bucket(since),
        })
    }
}

/// How long jobs may run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TimeKey {
    /// The run limit as submitted, seconds.
    pub(super) run: Option<u64>,
    /// The host or model that it was given for; empty: the default.
    pub(super) limit_spec: Box<str>,
    /// ABS_RUNLIMIT.
    pub(super) absolute: bool,
    /// The termination deadline of -t, seconds since the epoch; 0 none.
    pub(super) term: i64,
}

impl TimeKey {
    /// The key of a submission to a queue; `None`: nothing depends on how long its jobs run.
    pub fn of(site: &Site, queue: Option<&Queue>, spec: &JobSpec) -> Option<Box<TimeKey>> {
        let run = Some(spec.limits.run?);
        let queue = queue.filter(|queue| queue.is_timed(spec.term_time > 0))?;
        let absolute = site.settings(spec, Some(queue)).absolute_run_limit();
        let limit_spec = spec.limit_spec.as_str().into();
        Some(Box::new(TimeKey { run, limit_spec, absolute, term: spec.term_time }))
    }
}

impl ClassKey {
    /// The jobs of the class as guaranteed pools look at them.
    pub(super) fn pool_job(&self) -> PoolJob {
        PoolJob { class: self.service_class, queue: self.queue, seconds: self.loan_seconds }
    }

    /// Do guaranteed pools keep anything from the jobs? None from those of an advance reservation,
    /// nor from those of a queue with SLA_GUARANTEES_IGNORE.
    pub(super) fn obeys_pools(&self, site: &Site) -> bool {
        let ignores = |queue: &Queue| queue.conf.ignores.guarantees;
        self.reservation.is_empty() && !site.queue(self.queue).is_some_and(ignores)
    }

    pub fn bytes(&self) -> usize {
        let words = self.hosts.iter().map(|word| word.len() + 1).sum::<usize>();
        let lines = self.fixed.iter().map(|(host, _)| host.len() + 1).sum::<usize>();
        let names = self.application.len() + self.share_group.len() + self.reservation.len();
        self.res_req.len() + names + lines + words
    }

    /// The work of reading it, in looks at a host.
    pub fn looks(&self) -> usize {
        1 + self.bytes() / BYTES_PER_LOOK
    }
}
