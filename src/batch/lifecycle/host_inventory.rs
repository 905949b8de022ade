//! The inventory of a host: after every connect its sbatchd tells all attempts that it knows of, in
//! pieces that a turn can take each. Every attempt told is settled at once. A job or a
//! post-execution command of the host that none of the pieces names is settled after the last one,
//! some in each unit of work; then the host may be given jobs.
//!
//! Invariants: nothing of an inventory is believed after its connection is gone; the next one
//! begins anew. Of a host that knows a started attempt no second start is ordered, and an attempt
//! that its host does not know has an unknown end, unless its start was never confirmed.

use crate::batch::soft_state::missing_attempts::Missing;
use crate::batch::soft_state::works::UNIT;
use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, Phase as RunPhase, Run};
use crate::batch::{Mbatchd, StepContext};
use crate::model::job::End;
use crate::model::reason::term;
use crate::model::{JobKey, JobRef};
use crate::proto::caps::MAX_INVENTORY;
use crate::proto::machine::{ConnId, Effect};
use crate::proto::sbd::{AttemptPhase, Post, TaskState};
use std::collections::HashSet;

impl Mbatchd {
    /// One piece of what a host knows of.
    pub(crate) fn inventory_piece(
        &mut self,
        context: &mut StepContext,
        (i, conn): (HostId, ConnId),
        boot_id: String,
        tasks: &[TaskState],
        more: bool,
    ) {
        let told = self.links.take_inventory(i, boot_id, tasks.iter().map(|t| t.key));
        if told > MAX_INVENTORY {
            let name = &self.links.hosts()[i].name;
            let most = MAX_INVENTORY;
            let text = format!("sbatchd of <{name}> tells of more than {most} attempts");
            context.say(log::Level::Warn, format!("{text}; closed"));
            context.out.push(Effect::Close { conn });
            return self.net_closed(context, conn);
        }
        for t in tasks {
            self.task_state(context, i, t);
            // an order that told of changed limits may have been lost
            if self.state.modifications().has(t.key.job) && self.state.running(t.key).is_some() {
                self.tell_limits_of(context, t.key.job_ref());
            }
        }
        if !more {
            let told = self.links.end_inventory(i);
            let keys = self.missing(i, &told);
            self.works.drop_missing(conn);
            self.some_missing(context, i, Missing::new(conn, keys, told));
        }
    }

    /// The attempts that the state has on a host, running or in post-execution, and that the host
    /// did not report.
    fn missing(&self, host: HostId, told: &HashSet<JobKey>) -> Vec<JobKey> {
        let is = |run: &&Run| run.hosts.first().map(|h| h.0) == Some(host);
        let posts = self.state.posts().iter().filter(|key| {
            let run = self.state.elem(key.job_ref()).and_then(|e| e.run());
            run.filter(is).is_some()
        });
        let here = self.state.counts().started_on(host);
        let runs = here.filter_map(|at| self.started(at).filter(is).map(|run| run.key));
        let all = posts.chain(runs).filter(|key| !told.contains(key));
        let mut all: Vec<JobKey> = all.collect();
        // the last is taken first
        all.reverse();
        all
    }

    fn started(&self, at: JobRef) -> Option<&Run> {
        match &self.state.elem(at)?.state {
            ElemState::Run(r) => Some(r),
            _ => None,
        }
    }

    /// One unit of what hosts do not know of.
    pub(crate) fn missing_unit(&mut self, context: &mut StepContext) -> Option<()> {
        let work = self.works.next_missing()?;
        // its connection is gone: the next inventory tells
        if let Some(i) = self.links.host_by_conn(work.conn()) {
            self.some_missing(context, i, work);
        }
        Some(())
    }

    /// Settles some; after the last the host is ready.
    fn some_missing(&mut self, context: &mut StepContext, i: HostId, mut work: Missing) {
        for _ in 0..UNIT {
            let Some(key) = work.take_next() else { break };
            self.settle_missing(context, i, key);
        }
        if !work.is_settled() {
            return self.works.put_missing(work);
        }
        self.left_told(i, work.told());
        self.host_ready(i);
    }

    /// The host does not know an attempt.
    fn settle_missing(&mut self, context: &mut StepContext, i: HostId, key: JobKey) {
        let Some(run) = self.started(key.job_ref()).filter(|run| run.key == key) else {
            // what ran after it has failed
            return self
                .posted(context, &TaskState { key, post: Post::Failed, ..TaskState::default() });
        };
        let rebooted = *run.boot != *self.links.hosts()[i].boot_id;
        if !rebooted && run.phase == RunPhase::Starting {
            self.known_again(context, key);
            self.send_start(context, key);
        } else {
            self.lost(context, key, rebooted);
        }
    }

    /// The end of a started job that its host does not know of.
    fn lost(&mut self, context: &mut StepContext, key: JobKey, rebooted: bool) {
        let info = if rebooted { term::HOST_RESTART } else { term::LOST_STATUS };
        let t = TaskState {
            key,
            phase: AttemptPhase::Ended { end: End::Unknown, exit_info: info },
            time: context.now.secs(),
            ..TaskState::default()
        };
        self.ended(context, &t, End::Unknown, info);
    }
}
