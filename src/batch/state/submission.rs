//! JOB_NEW: a job comes into memory, and everything that is kept of jobs gets to know it.

use crate::batch::state::change::{Applied, Change, ChangeKind};
use crate::batch::state::counts::owner;
use crate::batch::state::element_groups::resolved;
use crate::batch::state::*;
use crate::lang::jobname::{ArraySpec, JobName};
use crate::model::JobRef;
use crate::model::event::JobNew;
use crate::model::job::opt2;
use crate::model::reason::PendReason;
use std::rc::Rc;

/// Names of user groups remembered that jobs were submitted with.
const MAX_GIVEN_GROUPS: usize = 100_000;

impl State {
    pub(super) fn job_new(&mut self, new: &JobNew) -> Applied {
        if self.jobs.contains_key(&new.job) {
            return Applied::Rejected("a job of this ID is known already");
        }
        let held = (new.spec.options2 & opt2::HOLD != 0).then_some(PendReason::UserStop);
        let mut job = self.submitted(new, held);
        let (user, queue, slots) = (job.user, job.queue, owner(&job, 0).2);
        if let Some(spec) = job.name.array.clone() {
            job.body = Body::Array(Box::new(untouched_array(*spec, held)));
        }
        let elements = job.tally().total;
        self.counts.fresh(queue, user, slots, elements, true);
        self.job_names.insert(user, &job.name.name, new.job);
        self.space.came(&job, &self.modifications);
        self.jobs.insert(new.job, Box::new(job));
        if !new.spec.user_group.is_empty() && self.given_groups.len() < MAX_GIVEN_GROUPS {
            self.given_groups.insert(new.spec.user_group.clone());
        }
        self.count_on(new);
        self.requests.note(new.submit_time, &new.request, new.job);
        let (at, kind) = (JobRef { job: new.job, idx: 0 }, ChangeKind::Submitted { elements });
        Applied::Job(Change { at, regrouped: false, kind })
    }

    /// The job of a submission, as a single one; its elements are not counted yet.
    fn submitted(&mut self, new: &JobNew, held: Option<PendReason>) -> Job {
        let name = match JobName::parse(&new.spec.name) {
            Ok(n) => n,
            // A name we would refuse today, from another LSF's log: kept as a plain name.
            Err(_) => JobName { name: new.spec.name.clone(), array: None },
        };
        let user = self.names.user_id(&new.user);
        let queue = self.names.queue_id(&new.spec.queue);
        let depend = resolved(&new.spec).map(|d| Rc::new(self.job_names.bind(user, d)));
        let order = self.next_order;
        self.next_order += 1;
        let pending = Pend { since: new.submit_time, held, reason: None };
        Job {
            id: new.job,
            order,
            uid: new.uid,
            gid: new.gid,
            user,
            queue,
            submit_time: new.submit_time,
            spec: self.kind(&new.spec),
            name,
            env: new.env,
            script: new.script,
            exact: new.exact,
            depend,
            body: Body::Single(Elem { attempts: 0, part: 0, state: ElemState::Pend(pending) }),
            damaged: false,
        }
    }

    /// The IDs given from now on come after that of a new job.
    fn count_on(&mut self, new: &JobNew) {
        self.reserved.remove(&new.job);
        let next = new.job.saturating_add(1);
        // one that a switch of the log carried over had its ID before the last one was given
        let carried = new.submit_time <= self.carried_at;
        self.next_job = if carried { next.max(self.next_job) } else { next };
    }
}

/// An array to whose elements nothing has happened yet.
fn untouched_array(spec: ArraySpec, held: Option<PendReason>) -> Array {
    let fresh = Untouched::new(spec.len() as u32);
    let (own, started, waiting, exits) = Default::default();
    let (parts, started_elements) = Default::default();
    let total = fresh.left();
    let (pend, psusp) = if held.is_some() { (0, total) } else { (total, 0) };
    let tally = Tally { total, pend, psusp, ..Tally::default() };
    Array { spec, fresh, held, own, started, started_elements, waiting, exits, parts, tally }
}
