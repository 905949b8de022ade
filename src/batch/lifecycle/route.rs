//! Pipe queues: which requests wait in them, when each is tried, and who is asked (qmgr(8)).
//!
//! A job of a pipe queue is a request as soon as nothing but the queue keeps it from being
//! scheduled. Nothing here waits: servers answer later (`route_answers`), answers are carried out
//! in slices (`route_decide`).

use crate::batch::lifecycle::route_query::{acceptable, query_attributes};
use crate::batch::sched::{NotReady, ReadinessQuery};
use crate::batch::site::Queue;
use crate::batch::soft_state::nlb_servers::{Purpose, Query};
use crate::batch::soft_state::routing::{Choice, Deciding, Group, REQUESTS_OF_JOB};
use crate::batch::state::names::QueueId;
use crate::batch::state::{ElemState, Job};
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::nqs::{DEFAULT_QUERIES, Destination, Destinations};
use crate::model::reason::{PendReason, term};
use crate::model::time::US;
use crate::proto::nlb::{MAX_QUERY_HOSTS, NlbQuery};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Jobs that one turn looks at.
const LOOKS_PER_TURN: usize = 4_096;
/// Requests that one turn begins to try.
const TRIES_PER_TURN: usize = 20_000;
/// Pause before a request is tried whose queue has as many queries under way as it may, or starts
/// none now, microseconds.
const LATER: u64 = US / 20;
/// Pause before a request of a queue that is stopped is looked at again, microseconds.
const STOPPED: u64 = 60 * US;

impl Mbatchd {
    /// Routing goes on: requests come and go, are tried, given up, and bound to a host.
    pub(crate) fn route_due(&mut self, context: &mut StepContext) {
        self.validations_due(context);
        if self.routing.is_idle() || self.works.is_refilling() {
            return;
        }
        for _ in 0..LOOKS_PER_TURN {
            let Some(job) = self.routing.next_touched() else { break };
            self.look_for_requests(context, job);
        }
        self.try_due(context);
        self.decide_due(context);
    }

    /// Puts the requests of a job among those that wait, and takes out what is none any more.
    fn look_for_requests(&mut self, context: &StepContext, id: u32) {
        let (mut wanted, mut bound) = (BTreeSet::new(), BTreeMap::new());
        if let Some(job) = self.state.job(id) {
            self.requests_of(job, &mut wanted);
            self.bound_of(job, &mut bound);
        }
        for at in self.routing.of_job(id) {
            if !wanted.contains(&at) {
                self.routing.drop_request(at);
            }
        }
        let now = context.now.mono_us;
        for at in wanted {
            let Some(job) = self.state.job(id) else { return };
            let spec = job.spec_at(at.idx);
            let entered = spec.further.piped_at.and_then(|at| i64::try_from(at).ok());
            let (queue, since) = (job.queue_at(at.idx), entered.unwrap_or(job.submit_time));
            self.routing.admit(at, queue, since, now);
        }
        for at in self.routing.bound_of(id) {
            if !bound.contains_key(&at) {
                self.routing.set_bound(at, None);
            }
        }
        for (at, to) in bound {
            self.routing.set_bound(at, Some(to));
        }
    }

    /// The elements of a job that nothing but their pipe queue keeps.
    fn requests_of(&self, job: &Job, wanted: &mut BTreeSet<JobRef>) {
        let view = self.view();
        for part in 0..=job.parts().len() as u32 {
            if job.pending(part) == 0 || !self.site.is_pipe(job.queue_of(part)) {
                continue;
            }
            for idx in pending(job, part).take(REQUESTS_OF_JOB) {
                let of = ReadinessQuery::Element(idx);
                let why = self.sched.readiness(&view, job, of);
                if matches!(why, Err(NotReady { reason: PendReason::PipeQueue, .. })) {
                    wanted.insert(JobRef { job: job.id, idx });
                }
            }
        }
    }

    /// The pending elements of a job that are bound to a host of a `loadonly` queue.
    fn bound_of(
        &self,
        job: &Job,
        bound: &mut BTreeMap<JobRef, (QueueId, crate::batch::state::names::HostId)>,
    ) {
        for part in 0..=job.parts().len() as u32 {
            let Some(route) = &job.spec_of(part).further.route else { continue };
            let queue = self.site.queue(job.queue_of(part)).filter(|q| q.conf.nqs.load_only);
            let (Some(queue), Some(host)) = (queue, self.site.host_id(&route.host)) else {
                continue;
            };
            for idx in pending(job, part).take(REQUESTS_OF_JOB) {
                bound.insert(JobRef { job: job.id, idx }, (queue.id, host));
            }
        }
    }

    /// Begins to try the requests whose time has come.
    fn try_due(&mut self, context: &mut StepContext) {
        let now = context.now;
        let due = self.routing.take_due(now.mono_us, TRIES_PER_TURN);
        if due.is_empty() {
            return;
        }
        let site = self.site.clone();
        let longest = i64::from(site.conf.batch.nqs.wait_hours) * 3_600;
        let mut groups: BTreeMap<(QueueId, String), Group> = BTreeMap::new();
        for at in due {
            let Some((id, since)) = self.routing.waits_since(at, now.secs()) else { continue };
            let over = now.secs() >= since.saturating_add(longest);
            let queue = site.queue(id).filter(|q| q.conf.nqs.pipe.is_some());
            let Some((queue, job)) = queue.zip(self.state.job(at.job)) else {
                self.routing.drop_request(at);
                continue;
            };
            let to = queue.conf.nqs.pipe.as_deref();
            if matches!(to, Some(Destinations::Listed(list)) if list.is_empty()) {
                self.give_up(context, at, queue, term::NO_DESTINATIONS);
            } else if over {
                self.give_up(context, at, queue, term::GIVEN_UP);
            } else if self.view().queue_closed(id).is_some() {
                self.routing.put_off(at, None, now.mono_us + STOPPED);
            } else {
                let key = self.group_key(queue, job, at.idx);
                let new = || Group { queue: id, requests: Vec::new() };
                groups.entry((id, key)).or_insert_with(new).requests.push(at);
            }
        }
        for ((id, _), mut group) in groups {
            group.requests.sort_by_cached_key(|at| self.queue_order(*at));
            if let Some(queue) = site.queue(id) {
                self.try_group(context, queue, group);
            }
        }
    }

    /// The place of a request in its queue.
    fn queue_order(&self, at: JobRef) -> (u32, u64, u32, JobRef) {
        let Some(job) = self.state.job(at.job) else { return (0, 0, 0, at) };
        let part = job.part_no(at.idx);
        let spot = self.state.spot_of(job, part);
        let priority = self.view().priority(job.spec_of(part));
        (u32::MAX - priority, spot.base, spot.between, at)
    }

    /// Requests with the same text are asked about together: what the policy looks at of them, and
    /// their -m.
    fn group_key(&self, queue: &Queue, job: &Job, idx: u32) -> String {
        if queue.conf.nqs.pipe.as_deref().is_none_or(|to| to.policy().is_none()) {
            return String::new();
        }
        let spec = job.spec_at(idx);
        let used = self.routing.looks_at(queue.id).map(|used| &used[..]);
        let attributes = query_attributes(spec, &job.display_name(idx), used);
        format!("{attributes:?} {}", spec.hosts.join(" "))
    }

    fn try_group(&mut self, context: &mut StepContext, queue: &Queue, group: Group) {
        match queue.conf.nqs.pipe.as_deref() {
            Some(Destinations::Listed(list)) => {
                let choice = |to: &Destination| Choice {
                    queue: to.queue.clone(),
                    host: to.host.clone(),
                    value: String::new(),
                };
                let choices: Rc<[Choice]> = list.iter().map(choice).collect();
                self.routing.decide(Deciding::new(group, choices));
            }
            Some(selected) => {
                let most = queue.conf.nqs.pipe_queries.unwrap_or(DEFAULT_QUERIES);
                if !self.routing.may_ask(queue.id, most) {
                    let later = context.now.mono_us + LATER;
                    group.requests.iter().for_each(|at| self.routing.put_off(*at, None, later));
                    return;
                }
                let policy = selected.policy().unwrap_or_default().to_owned();
                let Some(query) = self.query_of(queue, &group, policy) else { return };
                self.routing.query_begun(queue.id);
                let purpose = Purpose::Requests(group);
                self.nlb_servers.ask(Query::new(purpose, query, &queue.conf.nqs.nlb_servers));
            }
            None => {}
        }
    }

    /// The query about requests that are alike to a server.
    fn query_of(&self, queue: &Queue, group: &Group, policy: String) -> Option<NlbQuery> {
        let at = group.requests.first()?;
        let job = self.state.job(at.job)?;
        let spec = job.spec_at(at.idx);
        let used = self.routing.looks_at(queue.id).map(|used| &used[..]);
        let attributes = query_attributes(spec, &job.display_name(at.idx), used);
        let mut hosts = acceptable(&self.site, spec);
        hosts.truncate(MAX_QUERY_HOSTS);
        Some(NlbQuery { policy, attributes, hosts, ..NlbQuery::default() })
    }
}

/// The pending elements of a part, held ones left out; of a job that is no array: itself.
fn pending(job: &Job, part: u32) -> Box<dyn Iterator<Item = u32> + '_> {
    let Some(array) = job.array() else {
        let waits = job.elem(0).is_some_and(|e| matches!(e.state, ElemState::Pend(_)));
        return Box::new(waits.then_some(0).into_iter());
    };
    match job.part(part) {
        Some(part) => Box::new(part.waiting().iter().copied()),
        None => Box::new(array.fresh_indices().chain(array.waiting().iter().copied())),
    }
}
