//! brun: an administrator has a pending or finished job started at once on hosts of his choice,
//! whatever keeps it waiting: limits, windows, dependencies, load, a closed host.
//!
//! The start is decided here and not by the scheduler. Invariants: a job is started on hosts with a
//! link alone; an element is not started while an earlier attempt of it may still run; the record
//! of the force comes before that of the start, in one commit.

use crate::batch::site::permissions::Caller;
use crate::batch::site::requirements::Req;
use crate::batch::state::ElemState;
use crate::batch::state::names::HostId;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::{Event, Forced, JobForce, force_options};
use crate::model::job_state::JobState;
use crate::model::reason::err;
use crate::proto::force::Force;
use std::sync::Arc;

impl Mbatchd {
    /// Starts one job or element; an lsberrno where it cannot be.
    pub(crate) fn force_one(
        &mut self,
        context: &mut StepContext,
        (who, request): (&Caller, &str),
        force: &Force,
        at: JobRef,
    ) -> i32 {
        let hosts = match self.may_be_forced(at).and_then(|()| self.forced_hosts(force, at)) {
            Ok(hosts) => hosts,
            Err(code) => return code,
        };
        if self.state.elem(at).is_some_and(|e| matches!(e.state, ElemState::End(_))) {
            self.requeue(context, at, None, true);
        }
        let Some(job) = self.state.job(at.job) else { return err::NO_JOB };
        let (queue, spec) = (job.queue_at(at.idx), job.spec_at(at.idx).clone());
        let req = self.view().combined_req(
            (queue, &spec.further.application),
            &spec.res_req,
            !spec.hosts.is_empty(),
        );
        let first = |req: Req| {
            let first = req.alternatives().into_iter().next();
            first.map_or(req.0, |variant| variant.req).to_string()
        };
        let requirement: Arc<str> = req.map_or_else(|_| "".into(), |req| first(req).into());
        let bits = [
            (force_options::NEVER_SUSPENDED, force.never_suspended),
            (force_options::FROM_BEGINNING, force.from_beginning),
            (force_options::FREE_PROCESSORS, force.free_processors),
        ];
        let given = bits.iter().filter(|(_, on)| *on).fold(0, |all, (bit, _)| all | bit);
        let record = JobForce {
            at,
            uid: who.uid,
            user: who.user.clone(),
            options: if force.never_suspended { given } else { given | force_options::NORMAL },
            hosts: self.named_hosts(&hosts),
            queue: self.state.names().queue(queue).to_string(),
            request: request.to_string(),
        };
        self.emit(context, Event::JobForce(Box::new(record)));
        let how = if force.never_suspended { Forced::NeverSuspended } else { Forced::Yes };
        self.start_on(
            context,
            (at, &[]),
            hosts.into(),
            requirement,
            (how, Default::default(), Default::default()),
        );
        0
    }

    /// Why an element cannot be started by force.
    fn may_be_forced(&self, at: JobRef) -> Result<(), i32> {
        let job = self.state.job(at.job).ok_or(err::NO_JOB)?;
        let view = job.view(at.idx).ok_or(err::NO_JOB)?;
        match view.stat() {
            JobState::Ssusp | JobState::Ususp => return Err(err::SUSPENDED),
            stat if !stat.is_pending() && !stat.is_finished() => return Err(err::JOB_STARTED),
            _ => {}
        }
        // its history is incomplete, or an earlier attempt may still run
        let left = self.state.left().of(at).iter().any(|left| !self.is_over(left));
        match job.damaged || left {
            true => Err(err::IN_PROGRESS),
            false => Ok(()),
        }
    }

    /// The hosts with their slots: of each host as many as were asked for, else as it has (free)
    /// processors, until the job has enough; a job on one host gets its slots there whatever the
    /// host has.
    fn forced_hosts(&self, force: &Force, at: JobRef) -> Result<Vec<(HostId, u32)>, i32> {
        let job = self.state.job(at.job).ok_or(err::NO_JOB)?;
        let (min, max) = (job.spec_at(at.idx).min_slots.max(1), job.spec_at(at.idx).max_slots);
        let mut named: Vec<(HostId, u32)> = Vec::new();
        for (word, asked) in &force.hosts {
            let hosts = self.site.expand_servers(word);
            if hosts.is_empty() {
                return Err(err::BAD_HOST);
            }
            for host in hosts {
                if !named.iter().any(|(known, _)| *known == host) {
                    named.push((host, *asked));
                }
            }
        }
        for (host, _) in &named {
            let known = self.links.hosts().get(*host);
            let reached = known.is_some_and(|known| known.up().is_some());
            if !reached || known.is_some_and(|known| known.given_up) {
                return Err(err::HOST_UNREACHED);
            }
        }
        let mut left = max.max(min);
        if let [(host, 0)] = named[..]
            && !force.free_processors
        {
            return Ok(vec![(host, left)]);
        }
        let mut placed = Vec::new();
        for (host, asked) in named {
            let processors = u64::from(self.links.hosts()[host].ncpus());
            let used = if force.free_processors { self.view().host_used(host) } else { 0 };
            let room = u32::try_from(processors.saturating_sub(used)).unwrap_or(u32::MAX);
            let room = if asked == 0 { room } else { room.min(asked) };
            let slots = room.min(left);
            if slots > 0 {
                placed.push((host, slots));
                left -= slots;
            }
        }
        let slots: u32 = placed.iter().map(|p| p.1).sum();
        if slots < min { Err(err::NO_HOST) } else { Ok(placed) }
    }
}
