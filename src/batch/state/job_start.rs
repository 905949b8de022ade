//! Applies JOB_START: an element has these hosts from now on.

use crate::batch::state::change::Applied;
use crate::batch::state::element::Allowance;
use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::{
    CheckpointState, Elem, ElemState, ElementView, LastWords, Phase, PreemptionHistory, Run, State,
};
use crate::model::JobKey;
use crate::model::event::{JobStart, RunLimitChange};

impl State {
    pub(super) fn job_start(&mut self, t: i64, s: &JobStart) -> Applied {
        let hosts = s.hosts.iter().map(|(h, n)| (self.names.id_of_host(h), *n)).collect();
        let (hosts, task_order) = JobHosts::merged(hosts);
        match self.jobs.get(&s.at.job).and_then(|j| j.view(s.at.idx)) {
            None => return Applied::Rejected("no such job"),
            // of a later attempt: damage took the record that put it back to its queue
            Some(ElementView::Own(Elem { state: ElemState::Run(run), .. }))
                if run.key.attempt < s.attempt => {}
            Some(v) if !v.stat().is_pending() => {
                return Applied::Rejected("start of a job that is not pending");
            }
            Some(_) => {}
        }
        hosts.iter().for_each(|(host, _)| self.last_starts.note(*host, t));
        self.waited_until(t, s.at);
        let times_given =
            self.jobs.get(&s.at.job).map_or(0, |job| job.times_given(job.part_no(s.at.idx)));
        self.set(s.at, |e| {
            e.attempts = if s.attempt > 0 { s.attempt } else { e.attempts + 1 };
            let key = JobKey { job: s.at.job, idx: s.at.idx, attempt: e.attempts };
            e.state = ElemState::Run(Box::new(Run {
                key,
                start_time: t,
                hosts,
                task_order,
                host_factor: s.host_factor,
                own_requirement: s.eff_res_req.clone(),
                times_given,
                slice: s.slice,
                allowance: None,
                boot: s.boot.clone(),
                phase: Phase::Starting,
                forced: s.forced,
                account: s.account.clone(),
                affinity: s.affinity.clone(),
                placed: s.placed.clone(),
                unknown: false,
                pid: 0,
                pgid: 0,
                exec: None,
                killed: None,
                window_signal: 0,
                as_done: false,
                requeue: None,
                migrates: false,
                checkpoint: CheckpointState::default(),
                resize: None,
                susp_since: 0,
                susp_total: 0,
                resumed_at: 0,
                preempted: PreemptionHistory::default(),
                soft: LastWords::default(),
            }));
        })
    }

    /// LSF_RUN_LIMIT: a started element has another limit by EXTENDABLE_RUNLIMIT.
    pub(super) fn allow(&mut self, r: &RunLimitChange) -> Applied {
        let running =
            |e: &Elem| matches!(&e.state, ElemState::Run(run) if run.key.attempt == r.attempt);
        if !self.elem(r.at).is_some_and(running) {
            return Applied::Rejected("a run limit of an attempt that is not started");
        }
        let RunLimitChange { secs, hard, .. } = *r;
        self.with_run(r.at, |run| run.allowance = Some(Allowance { secs, hard }))
    }

    /// These hosts were given jobs at this second.
    pub(super) fn started_on(&mut self, t: i64, hosts: &[String]) -> Applied {
        for host in hosts {
            self.last_starts.note(self.names.host_id(host), t);
        }
        Applied::Nothing
    }
}
