//! mbatchd as a pure, event-sourced state machine.
//!
//! `Mbatchd::step` decides; every change goes through [`Mbatchd::emit`], which applies the event to
//! the [`state::State`] and asks for it to be appended. Acknowledgements leave with `SendDurable`.
//! Beside the event-sourced state there is soft state only: links to hosts, load, readiness of
//! pending jobs, open listings and waits. Soft state can be rebuilt from the state at any time.
//!
//! | room | what lives there |
//! |---|---|
//! | state | the event-sourced state, and `apply`, which alone changes it |
//! | site | the configuration, compiled |
//! | cluster | the hosts at run time: links, load, status |
//! | usage | what follows from the state: reservations, dependency conditions, closed windows |
//! | sched | which pending job goes where, and why not |
//! | soft_state | what is kept in memory alone: requests under way, waits, timers, metrics |
//! | mbatchd.rs | the object, and `emit` |
//! | query | what commands list, read or wait for |
//! | lifecycle | what happens to jobs, by request, by report, by load and time |
//! | admin | requests of administrators; what mbatchd says about itself |
//!
//! A room takes from those above it in this table alone. Here is the router: each input goes to the
//! file that deals with it.

pub mod admin;
pub mod cluster;
pub mod lifecycle;
mod mbatchd;
pub mod past_jobs;
pub mod query;
pub mod sched;
pub mod site;
pub mod soft_state;
pub mod state;
mod step;
pub mod usage;

pub use lifecycle::recovery::Recovered;
pub use mbatchd::Mbatchd;
pub(crate) use step::StepContext;

use crate::batch::site::permissions::Caller;
use crate::batch::usage::processor_units::ProcessorUnits;
use crate::conf::UnixGroup;
use crate::model::Now;
use crate::proto::Daemon;
use crate::proto::caps;
use crate::proto::client::ClientMsg;
use crate::proto::machine::{ConnId, Effect, Input, Machine, Peer};
use crate::proto::{Msg, Refusal};
use std::rc::Rc;

impl Mbatchd {
    /// A job that the scheduler has overlooked: hosts have room for it, and no pass is due. For
    /// tests and the simulator.
    pub fn overlooked(&self) -> Option<u32> {
        const MOST_CLASSES: usize = 64;
        self.is_at_rest().then(|| self.sched.overlooked(&self.view(), MOST_CLASSES)).flatten()
    }

    /// Has all that is derived followed the state, so that nothing is left to be done now?
    fn is_at_rest(&self) -> bool {
        let idle = self.started && self.log_failed.is_none() && !self.works.is_refilling();
        idle && self.deadline().is_none_or(|due| due > self.sched.now().mono_us)
    }

    /// Does the scheduler take exactly those jobs for ready that are? The error names
    /// the others. While the machine has work to do, the answer is yes. For tests and the
    /// simulator: the audit looks at every pending job.
    pub fn readiness_audit(&self) -> Result<(), String> {
        match self.is_at_rest() {
            true => self.sched.audit_readiness(&self.view()),
            false => Ok(()),
        }
    }

    /// Are the reservations of all hosts what the started elements reserve? Else where they are
    /// not. For tests and the simulator: it looks at every started element.
    pub fn reserve_audit(&self) -> Result<(), String> {
        self.reserve.audit(&self.state, &self.site, &self.preemptions)
    }

    /// Is what is counted under each limit what the started elements hold? Else where it is not.
    /// For tests and the simulator: it looks at every started element and every limit.
    pub fn limits_audit(&self) -> Result<(), String> {
        self.limits.audit(&self.state, &self.site)
    }

    /// Is what is known of preemption what the started elements are? For tests and the simulator:
    /// it looks at every started element.
    pub fn preemptions_audit(&self) -> Result<(), String> {
        self.preemptions.audit(&self.state, &self.site)
    }

    /// Are the processor units in use what the started elements have? For tests and the simulator:
    /// it looks at every started element.
    pub fn processor_units_audit(&self) -> Result<(), String> {
        let counted = ProcessorUnits::of_all(&self.state, &self.site);
        match counted == self.processor_units {
            true => Ok(()),
            false => Err(format!("processor units: {:?} is not {counted:?}", self.processor_units)),
        }
    }

    /// Are the counters of job groups what their jobs are? For tests and the simulator: it looks at
    /// every job.
    pub fn job_groups_audit(&self) -> Result<(), String> {
        self.group_counts.audit(&self.state)?;
        // groups that the log has lost are made again at the start, as soon as it can be written
        match self.started && self.log_failed.is_none() {
            true => self.group_counts.groups_exist(&self.state),
            false => Ok(()),
        }
    }

    /// Is what is known of the slots that pending jobs keep on each host what these keep? For tests
    /// and the simulator.
    pub fn slot_reservations_audit(&self) -> Result<(), String> {
        let audited = self.state.slot_reservations().audit();
        let waits = |of: &&state::slot_reservations::SlotReservation| {
            let elem = self.state.job(of.at.job).and_then(|job| job.view(of.at.idx));
            elem.is_some_and(|elem| elem.stat().is_pending())
        };
        let all = self.state.slot_reservations();
        match all.iter().find(|of| !waits(of)) {
            Some(of) => Err(format!("job {} keeps slots and is not pending", of.at)),
            None => audited,
        }
    }

    /// Are the counters of service classes what their jobs are? For tests and the simulator: it
    /// looks at every job.
    pub fn service_classes_audit(&self) -> Result<(), String> {
        self.goals.jobs().audit(&self.state, &self.site)
    }

    /// Are the counters of application profiles what their jobs are? For tests and the simulator:
    /// it looks at every job.
    pub fn applications_audit(&self) -> Result<(), String> {
        self.application_counts.audit(&self.state)
    }

    /// Do share accounts hold and have used what the jobs do and did? For tests and the simulator:
    /// it looks at every started element.
    pub fn fairshare_audit(&self) -> Result<(), String> {
        self.fairshare.audit(&self.state, &self.site, self.sched.now().secs())
    }

    /// Are the slots of advance reservations what their jobs hold? For tests and the simulator: it
    /// looks at every started element.
    pub fn reservations_audit(&self) -> Result<(), String> {
        self.reservations.audit(&self.state)
    }

    /// Is what guaranteed pools have what their hosts and jobs are? For tests and the simulator: it
    /// looks at every started element.
    pub fn guarantees_audit(&self) -> Result<(), String> {
        self.guarantees.audit(&self.state, &self.site, &self.reserve)
    }

    /// Says whether root may submit.
    pub fn with_root_jobs(mut self, may: bool) -> Self {
        self.root_jobs = may;
        self
    }

    fn message(&mut self, context: &mut StepContext, conn: ConnId, msg: Msg) {
        let Some(peer) = self.peers.get(&conn).cloned() else { return };
        match (msg, peer) {
            (Msg::Client(m), Peer::User { uid, gid, user, host }) => {
                self.client(context, conn, Caller { uid, gid, user, host }, m);
            }
            (Msg::Sbd(m), Peer::Daemon { daemon: Daemon::Sbatchd, host }) => {
                if let Some(why) = caps::check_sbd(&m) {
                    context.say(log::Level::Warn, format!("sbatchd of <{host}>: {why}; closed"));
                    context.out.push(Effect::Close { conn });
                    return self.net_closed(context, conn);
                }
                self.take_sbatchd_message(context, conn, m)
            }
            (Msg::Lim(m), Peer::Daemon { daemon: Daemon::Lim, .. }) => {
                self.take_lim_message(context, conn, m);
                self.note_peak();
            }
            (Msg::Nlb(m), Peer::Daemon { daemon: Daemon::NlbServer, .. }) => {
                self.take_nlb_message(context, conn, m);
            }
            (Msg::Refused(r), Peer::Daemon { daemon: Daemon::NlbServer, .. }) => {
                self.nlb_servers.refused(conn, &r.words());
            }
            (Msg::Ping { n }, _) => context.send(conn, Msg::Pong { n }),
            (Msg::Pong { .. } | Msg::Refused(_), _) => self.heard(context, conn),
            (_, peer) => {
                context.say(
                    log::Level::Warn,
                    format!("{peer} sent a message that it may not send; closed"),
                );
                context.out.push(Effect::Close { conn });
            }
        }
    }

    fn client(&mut self, context: &mut StepContext, conn: ConnId, who: Caller, msg: ClientMsg) {
        self.perfmon.asked(&msg);
        self.note_query(context, &who, &msg);
        if let Err(r) = caps::check(&msg) {
            return context.refuse(conn, r);
        }
        match msg {
            ClientMsg::Submit(s) => self.submit(context, conn, &who, *s),
            ClientMsg::Control(c) => self.control(context, conn, &who, *c),
            ClientMsg::Modify(m) => self.modify(context, conn, &who, *m),
            ClientMsg::Peek(s) => self.peek(context, conn, &who, &s),
            ClientMsg::Stored { id, script } => self.stored(context, conn, &who, &id, script),
            ClientMsg::Dependencies(d) => self.list_dependencies(context, conn, &who, &d),
            ClientMsg::Reservation(r) => self.reservation_request(context, conn, &who, *r),
            ClientMsg::JobGroup(g) => self.job_group_request(context, conn, &who, *g),
            ClientMsg::Message(m) => self.message_request(context, conn, &who, *m),
            ClientMsg::Jobs(q) => self.list_jobs(context, conn, &who, *q),
            ClientMsg::Queues { names, user, host } => {
                self.list_queues(context, conn, &names, &user, &host)
            }
            ClientMsg::Partitions { names } => self.list_partitions(context, conn, &names),
            ClientMsg::Applications { names } => self.list_applications(context, conn, &names),
            ClientMsg::Limits(query) => self.list_limits(context, conn, &query),
            ClientMsg::Hosts { names, res_req } => self.list_hosts(context, conn, &names, &res_req),
            ClientMsg::Wait(w) => self.wait(context, conn, &who, w),
            ClientMsg::Admin(op) => self.admin(context, conn, &who, op),
            ClientMsg::Users { names } => self.list_users(context, conn, &names),
            ClientMsg::Slots { res_req } => self.list_slots(context, conn, &res_req),
            ClientMsg::Groups { hosts, names, expand, units } => {
                self.list_groups(context, conn, (hosts, units), &names, expand)
            }
            ClientMsg::Params => self.list_params(context, conn),
            _ => {
                context
                    .say(log::Level::Warn, format!("connection {conn}: a command sent an answer"));
                context.out.push(Effect::Close { conn });
            }
        }
    }

    fn closed(&mut self, context: &mut StepContext, conn: ConnId) {
        self.peers.remove(&conn);
        self.broken.remove(&conn);
        self.listings.close(conn);
        self.works.close(conn);
        self.waits.close(conn);
        self.watches.close(conn);
        self.reconfig.retain(|c| *c != conn);
        self.net_closed(context, conn);
    }

    fn failed(&mut self, context: &mut StepContext, why: String) {
        context.say(log::Level::Error, format!("the event log cannot be written: {why}"));
        self.log_failed = Some(why);
        for conn in self.works.give_up() {
            context.refuse(conn, Refusal::new(crate::model::reason::err::LOG_FULL));
        }
        // Messages to hosts since the last durable record are void: all links begin anew.
        self.net_drop_all(context);
    }

    fn log_is_back(&mut self, context: &mut StepContext) {
        self.log_failed = None;
        context.say(log::Level::Info, "the event log can be written again");
        self.restore_groups(context);
        self.hold_damaged(context);
        self.end_all_orphans(context);
        // jobs may not be as run windows want them: that work was given up
        self.windows.renew();
        self.reservations.renew();
        self.sched.changed();
        self.net_start(context);
    }

    /// The name service has told who the members of Unix groups are.
    fn user_groups_known(&mut self, asked: &[String], found: Vec<UnixGroup>) {
        // The site has no other owner between two steps.
        if let Some(site) = Rc::get_mut(&mut self.site) {
            site.conf.unix.answered(asked, found);
            // another row of lsb.users may apply to a user
            self.fairshare.rebuild(&self.state, &self.site);
            self.sched.users_changed();
            self.limits.recount(&self.state, &self.site);
        }
    }
}

impl Mbatchd {
    /// Hands an input to the file that deals with it.
    fn take(&mut self, context: &mut StepContext, input: Input) {
        match input {
            Input::Start => self.start(context),
            Input::Tick => {}
            Input::Opened { conn, peer } => {
                self.peers.insert(conn, peer);
                self.net_opened(context, conn);
            }
            Input::ConnectFailed { conn, why, .. } => self.net_failed(context, conn, &why),
            Input::Closed { conn } => self.closed(context, conn),
            Input::Drained { conn } => {
                self.works.drained(conn);
                self.next_slice(context, conn);
            }
            Input::Msg { conn, msg } => self.message(context, conn, msg),
            Input::Config { conf, diags } => self.config(context, conf.map(|c| *c), diags),
            Input::QueuesDefined { conn, told } => self.queues_defined(context, conn, told),
            Input::Groups { asked, found } => self.user_groups_known(&asked, found),
            Input::ExternalGroups { groups } => self.external_groups(context, &groups),
            Input::NoEadmin { all } => self.no_eadmin(context, &all),
            Input::LogFailed { why } => self.failed(context, why),
            Input::LogBack => self.log_is_back(context),
            Input::Switched { ok } => self.switched(context, ok),
            Input::Datagram { .. }
            | Input::Sample(_)
            | Input::External(_)
            | Input::Kept { .. }
            | Input::Members(_)
            | Input::Os(_)
            | Input::Task { .. }
            | Input::Nlb(_) => {}
        }
    }

    /// The work that time has brought, and at the end of a turn the pass of the scheduler.
    fn do_what_is_due(&mut self, context: &mut StepContext, end_of_turn: bool) {
        self.held_ends_due(context);
        self.usage_of_others_due(context);
        self.fanout_due(context);
        // the next of a chunk has no slots that a host has not left
        self.chunks_due(context);
        self.housekeep(context);
        self.unreached_due(context);
        if end_of_turn {
            self.remove_hung_jobs(context);
            self.exceptions_due(context);
        }
        self.acct_archive_due(context);
        self.orphans_due(context);
        self.windows_due(context);
        self.reservations_due(context);
        self.service_goals_due(context);
        self.suspend_by_load(context);
        self.migrate_suspended(context);
        self.perfmon.end_due_period(context.now);
        self.eligible_due(context);
        self.route_due(context);
        self.nlb_hosts_due(context);
        if self.nlb_lists.take_rekey(context.now.mono_us) {
            // jobs that were alike to the scheduler may differ for a policy, or the other way
            self.rebuild_by_units();
        }
        self.nlb_servers_due(context);
        for host in self.reserve.take_freed() {
            self.sched.host_changed(host);
        }
        // one pass for all that a turn brings: the tick comes behind the other inputs
        if end_of_turn {
            // attempts may have ended since, whose hosts are still to leave
            self.settle_fanout(context);
            self.schedule_due(context);
            self.extendable_limits_due(context);
        }
        self.tell_exclusive(context);
    }
}

impl Machine for Mbatchd {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        let mut context = StepContext { now, out };
        let context = &mut context;
        self.sched.set_now(now);
        self.reserve.set_now(now.secs());
        let tick = matches!(input, Input::Tick);
        self.take(context, input);
        self.settle(context);
        self.net_tick(context);
        self.wait_tick(context);
        if self.dispatch_stopped().is_none() && self.started {
            self.do_what_is_due(context, tick);
        }
    }

    fn work(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.work_left() {
            self.reserve.set_now(now.secs());
            self.work_unit(&mut StepContext { now, out });
        }
    }

    fn has_work(&self) -> bool {
        self.work_left()
    }

    fn deadline(&self) -> Option<u64> {
        // While nothing may be decided, nothing is due.
        let on = self.started && self.dispatch_stopped().is_none();
        let work = on.then(|| {
            let (retention, windows) = (self.retention.deadline(), self.windows.deadline());
            let left = (self.deps.left() && !self.conditions_left()) || self.eligible.left();
            let deps = left.then_some(0).or_else(|| self.orphan_deadline());
            let perf = self.perfmon.deadline();
            let unreached = self.unreached.deadline();
            let reserved = self.state.slot_reservations().next();
            [
                reserved.map(|until| self.sched.now().mono_of_wall(until)),
                retention,
                self.sched.deadline(),
                windows,
                self.reservations.deadline(),
                self.goals.deadline(),
                self.load_checks.deadline(),
                self.migration_checks.deadline(),
                self.hung_checks.deadline(),
                self.exception_checks.deadline(),
                self.exception_round.deadline(),
                self.hung_walk.deadline(),
                self.extendable.deadline(self.sched.now()),
                self.acct_archive_checks.deadline(),
                deps,
                perf,
                unreached,
                self.fanout.deadline(),
                self.group_counts.has_emptied().then_some(0),
                self.routing.deadline(),
                self.validations.deadline(),
                self.nlb_lists.deadline(),
                self.nlb_servers_deadline(),
            ]
        });
        let d = [self.links.deadline(), self.waits.deadline()];
        d.into_iter().chain(work.into_iter().flatten()).flatten().min()
    }
}

#[cfg(test)]
mod tests;
