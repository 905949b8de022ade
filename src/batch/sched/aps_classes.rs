//! Gives the classes of queues with APS_PRIORITY their ranks (`aps_rank`), and keeps these up to
//! date.

use crate::batch::sched::Sched;
use crate::batch::sched::aps_rank::ApsClass;
use crate::batch::sched::view::View;
use crate::batch::site::aps::ApsInputs;
use crate::batch::state::Job;
use crate::batch::state::names::QueueId;
use crate::batch::usage::fairshare::account::AccountId;
use crate::model::job::JobSpec;

impl Sched {
    /// The class of a submission as the absolute priority of its jobs is made of.
    pub(super) fn aps_inputs(
        view: &View,
        queue: QueueId,
        job: &Job,
        spec: &JobSpec,
    ) -> Option<ApsClass> {
        let queue = view.site.queue(queue)?;
        let formula = queue.aps.clone()?;
        let names = view.state.names();
        let mut inputs = ApsInputs {
            tasks: spec.max_slots.max(spec.min_slots).max(1),
            priority: view.priority(spec),
            queue: queue.conf.priority,
            application: view.site.application_priority(&spec.further.application),
            user: view.site.user_priority(names.user(job.user)),
            user_group: view.site.group_priority(&spec.user_group),
            setting: spec.further.aps,
            ..ApsInputs::default()
        };
        if formula.weighs_amounts() {
            let of = (queue.id, &*spec.further.application);
            let req = view.combined_req(of, &spec.res_req, !spec.hosts.is_empty());
            let amounts = req.map(|req| view.site.amounts_asked(&req, inputs.tasks));
            (inputs.memory, inputs.swap) = amounts.unwrap_or_default();
        }
        let mut of = ApsClass::new(formula, inputs);
        of.find_account(view, job.user, &spec.user_group);
        of.take_share(view);
        Some(of)
    }

    /// Gives a class its ranks, where its queue has APS_PRIORITY.
    pub(super) fn begin_ranks(&mut self, view: &View, (job, part): (&Job, u32), class: u32) {
        if self.classes.get(class).kind.aps.is_some()
            && self.classes.get(class).aps.is_none()
            && let Some(of) = Self::aps_inputs(view, job.queue_of(part), job, job.spec_of(part))
        {
            self.classes.set_aps(class, of);
        }
    }

    /// Works out the ranks that may be others by now, before a walk begins.
    pub(super) fn renew_ranks(&mut self, view: &View) {
        if self.classes.ranks().is_empty() {
            return;
        }
        self.classes.find_accounts(view);
        for class in self.classes.ranks_mut().take_fair() {
            self.classes.take_share(view, class);
            self.classes.rank_again(&mut self.order, class);
        }
        for class in self.classes.ranks_mut().take_due() {
            self.classes.rank_again(&mut self.order, class);
        }
    }

    /// The use of an account has changed: the jobs of its users stand elsewhere.
    pub(super) fn rank_account(&mut self, view: &View, account: AccountId) {
        for class in self.classes.ranks().of_account(account) {
            self.classes.take_share(view, class);
            // one that moves forward is looked at by the next walk
            self.needed |= self.classes.rank_again(&mut self.order, class);
        }
    }
}
