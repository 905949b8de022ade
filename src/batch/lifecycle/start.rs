//! The start of a job: it is logged, and its host is told. Decides nothing.

use crate::batch::state::job_hosts::JobHosts;
use crate::batch::{Mbatchd, StepContext};
use crate::model::event::{Event, Forced, JobStart};
use crate::model::{JobKey, JobRef};
use std::sync::Arc;

impl Mbatchd {
    /// Starts an element on these hosts, with the effective requirement; charged to a share account
    /// where the user has several, and with these processor units.
    pub(crate) fn start_on(
        &mut self,
        context: &mut StepContext,
        at: JobRef,
        hosts: JobHosts,
        eff_res_req: Arc<str>,
        (forced, account, affinity): (Forced, Arc<str>, Arc<str>),
    ) {
        let attempt = self.state.elem(at).map_or(0, |e| e.attempts) + 1;
        let first = hosts[0].0;
        let named = self.named_hosts(&hosts);
        self.links.note_start(first, &named);
        for (host, _) in &hosts {
            self.links.note_dispatch(*host, context.now.mono_us);
        }
        let event = JobStart {
            at,
            attempt,
            hosts: named,
            host_factor: self.links.hosts()[first].cpu_factor(),
            eff_res_req,
            boot: self.links.hosts()[first].boot_id.clone(),
            slice: if forced == Forced::No { self.slice_of(at, &hosts) } else { 0 },
            forced,
            account,
            affinity,
            placed: self.nlb_placement(at, first).filter(|_| forced == Forced::No),
        };
        self.emit(context, Event::JobStart(Box::new(event)));
        for &(host, _) in &hosts {
            let (sched, view) = self.sched_and_view();
            sched.host_filled(&view, host);
        }
        self.send_start(context, JobKey { job: at.job, idx: at.idx, attempt });
    }
}
