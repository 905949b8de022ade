//! Reconfiguration: a new site takes the place of the old one, and every job is looked at again,
//! unit by unit, while others are served. None is dispatched before all were.

use crate::batch::cluster::unreached::Unreached;
use crate::batch::site::Site;
use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::load_checks::LoadChecks;
use crate::batch::soft_state::works::UNIT_LOOKS;
use crate::batch::state::AddedHosts;
use crate::batch::usage::exclusive_units::ExclusiveUnits;
use crate::batch::usage::guarantees::Guarantees;
use crate::batch::usage::processor_units::ProcessorUnits;
use crate::batch::usage::reserve::ledger::Reserve;
use crate::batch::usage::slot_pools::SlotShares;
use crate::batch::{Mbatchd, StepContext};
use crate::conf::external_groups::ExternalGroup;
use crate::conf::types::ApplicationConf;
use crate::conf::{ClusterConf, Diag, Member};
use crate::model::JobRef;
use crate::model::event::JobModify;
use crate::proto::client::ClientMsg;
use std::rc::Rc;

/// Puts the hosts into their groups; a group that is no more is passed over.
pub fn put(conf: &mut ClusterConf, added: &AddedHosts) {
    let hosts = &mut conf.batch.hosts;
    let groups = hosts.groups.iter_mut().map(|g| (&g.name, &mut g.members));
    let units = hosts.units.iter_mut().map(|u| (&u.name, &mut u.members));
    for (name, members) in groups.chain(units) {
        for host in added.get(name).into_iter().flatten() {
            if !members.contains(host) {
                members.push(host.clone());
            }
        }
    }
}

/// The names of profiles that one of the files lacks or has otherwise.
fn differing<'a>(
    was: &'a [ApplicationConf],
    is: &'a [ApplicationConf],
) -> impl Iterator<Item = String> + 'a {
    let other = |all: &'a [ApplicationConf]| {
        move |a: &&'a ApplicationConf| !all.iter().any(|b| b.name == a.name && b.raw == a.raw)
    };
    was.iter().filter(other(is)).chain(is.iter().filter(other(was))).map(|a| a.name.clone())
}

impl Mbatchd {
    /// Gives the pending elements of a job the limits that their application profile has now;
    /// without it, those of their queue. A submission that the limits do not fit any more stays as
    /// it is.
    fn fit_profile(&mut self, context: &mut StepContext, id: u32) {
        let site = self.site.clone();
        let mut part = 0;
        while !self.changed_profiles.is_empty() {
            let Some(job) = self.state.job(id) else { return };
            if part as usize > job.parts().len() {
                return;
            }
            let spec = job.spec_of(part);
            let changed = self.changed_profiles.contains(&*spec.further.application);
            if changed
                && job.pending(part) > 0
                && let Some(queue) = site.queue(job.queue_of(part))
            {
                let mut fitted = (**spec).clone();
                let fits = self.fit(&mut fitted, queue).is_ok();
                fitted.further.trim();
                if fits && fitted != **spec {
                    let change = JobModify { spec: fitted, ..job.change_of(part) };
                    let user = site.conf.base.cluster.admins.first().cloned().unwrap_or_default();
                    let who = Caller { uid: 0, gid: 0, user, host: String::new() };
                    self.record_modified(context, &who, change);
                }
            }
            part += 1;
        }
    }

    /// Rebuilds the scheduler after a reconfiguration while requests are served: it looks at jobs
    /// unit by unit and dispatches none before it has seen all.
    pub(crate) fn rebuild_by_units(&mut self) {
        self.sched = self.sched.anew();
        self.fairshare.rebuild(&self.state, &self.site);
        self.sched.set_timed(!self.state.reservations().is_empty());
        self.deps = std::mem::take(&mut self.deps).anew();
        self.works.drop_scans();
        self.load_checks = LoadChecks::default();
        self.unreached = Unreached::default();
        self.look_left();
        self.reserve = Reserve::of_all(&self.state, &self.site, self.reserve.now());
        self.rebuild_preemptions();
        self.exclusive_units = ExclusiveUnits::of_all(&self.state, &self.site);
        self.processor_units = ProcessorUnits::of_all(&self.state, &self.site);
        self.limits.recount(&self.state, &self.site);
        self.guarantees = Guarantees::of_all(&self.state, &self.site, &self.reserve);
        self.slot_shares = SlotShares::default();
        self.goals = std::mem::take(&mut self.goals).anew(&self.state, &self.site);
        self.rebuild_timeline();
        self.works.refill(Some(0));
        self.sched.changed();
    }

    pub(crate) fn config(
        &mut self,
        context: &mut StepContext,
        conf: Option<ClusterConf>,
        diags: Vec<Diag>,
    ) {
        if let Some(mut conf) = conf {
            conf.unix.keep_answers(&self.site.conf.unix);
            let sampling =
                crate::batch::soft_state::perfmon::differ(self.site.params(), &conf.batch.params);
            self.take_policy(context, conf);
            if sampling {
                self.perfmon.reset(context.now, self.site.params());
            }
            self.status.note_reconfiguration(context.now.secs());
            context.say(log::Level::Info, "reconfigured");
        } else {
            context.say(log::Level::Error, "reconfiguration refused: the old policy stays");
        }
        self.reconfig_diags = diags;
        // one that is taken is whole once all jobs were looked at
        if !self.works.is_refilling() {
            self.answer_reconfig(context);
        }
    }

    pub(crate) fn answer_reconfig(&mut self, context: &mut StepContext) {
        use crate::proto::client::AdminLine;
        let diags = std::mem::take(&mut self.reconfig_diags);
        let failed = crate::conf::has_errors(&diags);
        let lines: Vec<AdminLine> = diags
            .iter()
            .map(|d| AdminLine {
                about: String::new(),
                code: i32::from(d.severity == crate::conf::Severity::Error),
                text: d.to_string(),
            })
            .collect();
        for conn in std::mem::take(&mut self.reconfig) {
            if failed {
                let code = crate::model::reason::err::BAD_ARG;
                let mut lines = lines.clone();
                let text = "Reconfiguration aborted.".to_string();
                lines.push(AdminLine { about: String::new(), code, text });
                context.reply(conn, ClientMsg::AdminDone { lines });
            } else {
                context.reply_durable(conn, ClientMsg::AdminDone { lines: lines.clone() });
            }
        }
    }

    /// The policy that holds, with the hosts that have joined by themselves; None: it has them.
    pub fn with_members(&self, all: &[Member]) -> Option<ClusterConf> {
        let mut conf = self.site.conf.clone();
        conf.base.set_members(all, &self.me).then_some(conf)
    }

    /// Another policy holds from now on.
    pub(crate) fn take_policy(&mut self, context: &mut StepContext, mut conf: ClusterConf) {
        put(&mut conf, self.state.group_hosts());
        let before = std::mem::take(&mut self.changed_profiles);
        let was = &self.site.conf.batch.applications;
        self.changed_profiles = differing(was, &conf.batch.applications).chain(before).collect();
        self.site = Rc::new(Site::new(conf, self.state.names_mut()));
        self.net_reconfigured(context);
        self.rebuild_by_units();
        self.windows.renew();
        self.reservations.renew();
        self.validations_renewed();
        self.routing.touch_all();
        self.routing.renew(context.now.mono_us);
        self.nlb_lists.forget_lists();
    }

    /// Groups have other members.
    pub(crate) fn external_groups(
        &mut self,
        context: &mut StepContext,
        groups: &[(ExternalGroup, Vec<String>)],
    ) {
        let mut conf = self.site.conf.clone();
        let mut changed = Vec::new();
        for (group, members) in groups {
            if conf.set_external_members(group, members) {
                changed.push(group.name.as_str());
            }
        }
        if !changed.is_empty() {
            context.say(log::Level::Info, format!("other members of {}", changed.join(" ")));
            self.take_policy(context, conf);
        }
    }

    /// After the log was read: the policy with the hosts that it adds.
    pub(crate) fn group_hosts_read(&mut self) {
        if !self.state.group_hosts().is_empty() {
            let mut conf = self.site.conf.clone();
            put(&mut conf, self.state.group_hosts());
            self.site = Rc::new(Site::new(conf, self.state.names_mut()));
        }
    }

    /// One unit of looking at jobs after a reconfiguration.
    pub(crate) fn refill_unit(&mut self, context: &mut StepContext) {
        let Some(from) = self.works.refill_from() else { return };
        let some: Vec<u32> =
            self.state.jobs_from(from).map(|job| job.id).take(UNIT_LOOKS).collect();
        let waits =
            |id: &u32| self.state.job(*id).is_some_and(|j| j.tally().pend + j.tally().psusp > 0);
        let pending: Vec<u32> = some.iter().copied().filter(waits).collect();
        for id in pending {
            self.fit_profile(context, id);
            self.watch_depend(id);
            self.refresh(id);
            self.end_orphans(context, id);
        }
        for id in &some {
            self.refresh_growth(JobRef { job: *id, idx: 0 });
        }
        let next = some.last().and_then(|id| id.checked_add(1));
        self.works.refill(next.filter(|_| some.len() == UNIT_LOOKS));
        if !self.works.is_refilling() {
            self.changed_profiles.clear();
            self.sched.changed();
            self.answer_reconfig(context);
        }
    }
}
