//! The start of jobs: they are logged, and their host is told. Decides nothing.
//!
//! If several jobs start together, each step is done for one after the other
//! (`sched::start_together` says why).

use crate::batch::state::job_hosts::JobHosts;
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::SHORT_EVENTFILE;
use crate::model::event::{Event, Forced, JobStart};
use crate::model::{JobKey, JobRef};
use crate::proto::sbd::{SbdMsg, StartJob};
use std::iter;
use std::sync::Arc;

impl Mbatchd {
    /// Starts an element on these hosts, and further ones that each get as many slots there, with
    /// the effective requirement; charged to a share account where the user has several, and with
    /// these processor units.
    pub(crate) fn start_on(
        &mut self,
        context: &mut StepContext,
        (first, further): (JobRef, &[JobRef]),
        hosts: JobHosts,
        eff_res_req: Arc<str>,
        (forced, account, affinity): (Forced, Arc<str>, Arc<str>),
    ) {
        let by_pass = forced == Forced::No;
        let on = hosts[0].0;
        let named = self.named_hosts(&hosts);
        self.links.note_start(on, &named);
        for (host, _) in &hosts {
            self.links.note_dispatch(*host, context.now.mono_us);
        }
        // jobs that start together are of one class, hence of one list
        let placed = self.nlb_placement(first, on).filter(|_| by_pass);
        let short_hosts = self.site.conf.base.lsf.has_extension(SHORT_EVENTFILE);
        let start = |at: JobRef| JobStart {
            at,
            attempt: self.state.elem(at).map_or(0, |e| e.attempts) + 1,
            hosts: named.clone(),
            short_hosts,
            host_factor: self.links.hosts()[on].cpu_factor(),
            eff_res_req: eff_res_req.clone(),
            boot: self.links.hosts()[on].boot_id.clone(),
            slice: if by_pass { self.slice_of(at, &hosts) } else { 0 },
            forced,
            account: account.clone(),
            affinity: affinity.clone(),
            placed: placed.clone(),
        };
        let starts: Vec<Box<JobStart>> = iter::once(first)
            .chain(further.iter().copied())
            .map(|at| Box::new(start(at)))
            .collect();
        let key = |s: &JobStart| JobKey { job: s.at.job, idx: s.at.idx, attempt: s.attempt };
        let keys: Vec<JobKey> = starts.iter().map(|start| key(start)).collect();
        let counted_on = self.reservations_counting_on(first, &hosts);
        self.emit_all(context, starts.into_iter().map(Event::JobStart));
        for &(host, _) in &hosts {
            let (sched, view) = self.sched_and_view();
            sched.host_filled(&view, host);
        }
        counted_on.into_iter().for_each(|at| self.look_again(at));
        self.send_starts(context, &keys);
    }

    /// Has the first host of attempts that were started together start them.
    fn send_starts(&mut self, context: &mut StepContext, keys: &[JobKey]) {
        let [first, further @ ..] = keys else { return };
        let host = self.state.running(*first).and_then(|run| match *run.hosts {
            [(host, _)] if !further.is_empty() => Some(host),
            _ => None,
        });
        let Some((host, order)) = host.zip(self.start_order(*first)) else {
            keys.iter().for_each(|key| self.send_start(context, *key));
            return;
        };
        // a template without the name, which is made anew for each
        let like = StartJob { name: String::new(), ..(*order).clone() };
        self.order(context, host, SbdMsg::Start(order));
        for key in further {
            if let Some(order) = self.start_order_like(&like, *key) {
                self.order(context, host, SbdMsg::Start(order));
            }
        }
    }
}
