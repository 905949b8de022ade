//! The object mbatchd: its parts, and [`Mbatchd::emit`], the only way to change the state. An event
//! is applied and appended, and [`Mbatchd::follow`] has all that is derived from the state follow.
//! Here is no decision about jobs: those are in `lifecycle` and `sched`.

use crate::batch::StepContext;
use crate::batch::cluster::hosts::Links;
use crate::batch::cluster::nlb_lists::NlbLists;
use crate::batch::cluster::unreached::Unreached;
use crate::batch::sched::Sched;
use crate::batch::sched::view::{SharesHeld, View};
use crate::batch::site::Site;
use crate::batch::soft_state::diagnose::Diagnose;
use crate::batch::soft_state::eligible::Eligible;
use crate::batch::soft_state::exception_round::ExceptionRound;
use crate::batch::soft_state::exit_rates::ExitRates;
use crate::batch::soft_state::extendable_limits::ExtendableLimits;
use crate::batch::soft_state::fanout::{Fanout, HostUse};
use crate::batch::soft_state::idle_groups::IdleGroups;
use crate::batch::soft_state::listings::Listings;
use crate::batch::soft_state::load_checks::LoadChecks;
use crate::batch::soft_state::lost_controls::LostControl;
use crate::batch::soft_state::nlb_servers::NlbServers;
use crate::batch::soft_state::perfmon::Perfmon;
use crate::batch::soft_state::periodic_look::PeriodicLook;
use crate::batch::soft_state::retention::Retention;
use crate::batch::soft_state::routing::Routing;
use crate::batch::soft_state::spool::Spool;
use crate::batch::soft_state::started_walk::StartedWalk;
use crate::batch::soft_state::status::Status;
use crate::batch::soft_state::validations::Validations;
use crate::batch::soft_state::waits::Waits;
use crate::batch::soft_state::watches::Watches;
use crate::batch::soft_state::works::Works;
use crate::batch::state::change::{Applied, Change, ChangeKind};
use crate::batch::state::names::HostId;
use crate::batch::state::{ElemState, LeftAttempt, Run, State};
use crate::batch::usage::advance_reservations::AdvanceReservations;
use crate::batch::usage::application_counts::ApplicationCounts;
use crate::batch::usage::dependencies::Deps;
use crate::batch::usage::exclusive_units::ExclusiveUnits;
use crate::batch::usage::fairshare::Fairshare;
use crate::batch::usage::group_watch::JobFacts;
use crate::batch::usage::guarantees::Guarantees;
use crate::batch::usage::job_group_counts::JobGroupCounts;
use crate::batch::usage::limits_ledger::LimitsLedger;
use crate::batch::usage::preemptions::Preemptions;
use crate::batch::usage::processor_units::ProcessorUnits;
use crate::batch::usage::reserve::ledger::Reserve;
use crate::batch::usage::service_goals::ServiceGoals;
use crate::batch::usage::slot_pools::SlotShares;
use crate::batch::usage::timeline::Timeline;
use crate::batch::usage::windows::ClosedByWindows;
use crate::conf::Diag;
use crate::model::event::{Event, Record};
use crate::model::idmap::IdMap;
use crate::model::job::SpoolRef;
use crate::model::job_group::lineage;
use crate::model::reason::PendReason;
use crate::model::{ByteStr, JobKey, JobRef};
use crate::proto::client::env_hash;
use crate::proto::machine::{ConnId, Effect, Peer};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The machine.
pub struct Mbatchd {
    pub(super) site: Rc<Site>,
    pub(super) state: State,
    /// This host, in the cluster's spelling.
    pub(super) me: String,
    pub(super) epoch: u64,
    pub(super) spool: Spool,
    /// Jobs to hold because the log lost part of their history.
    pub(super) damaged: Vec<(JobRef, String)>,
    /// Queues and hosts to close because the log lost their control records.
    pub(super) lost_controls: Vec<LostControl>,
    /// Root may submit (lsf.sudoers; launchers check again).
    pub(super) root_jobs: bool,
    pub(super) started: bool,
    /// The log cannot be written: nothing is accepted or dispatched, with the reason.
    pub(super) log_failed: Option<String>,
    pub(super) peers: IdMap<ConnId, Peer>,
    /// The chain of submissions, by connection, of which one was refused.
    pub(super) broken: IdMap<ConnId, u32>,
    pub(super) links: Links,
    pub(super) sched: Sched,
    pub(super) deps: Deps,
    pub(super) waits: Waits,
    pub(super) watches: Watches,
    pub(super) listings: Listings,
    pub(super) works: Works,
    pub(super) retention: Retention,
    pub(super) windows: ClosedByWindows,
    pub(super) load_checks: LoadChecks,
    pub(super) migration_checks: PeriodicLook,
    pub(super) hung_checks: PeriodicLook,
    pub(super) hung_walk: StartedWalk,
    pub(super) exception_checks: PeriodicLook,
    pub(super) acct_archive_checks: PeriodicLook,
    pub(super) exception_round: ExceptionRound,
    pub(super) exit_rates: ExitRates,
    pub(super) extendable: ExtendableLimits,
    pub(super) reserve: Reserve,
    pub(super) exclusive_units: ExclusiveUnits,
    pub(super) processor_units: ProcessorUnits,
    pub(super) timeline: Timeline,
    pub(super) limits: LimitsLedger,
    pub(super) preemptions: Preemptions,
    pub(super) fairshare: Fairshare,
    pub(super) group_counts: JobGroupCounts,
    pub(super) idle_groups: IdleGroups,
    pub(super) application_counts: ApplicationCounts,
    pub(super) guarantees: Guarantees,
    pub(super) slot_shares: SlotShares,
    pub(super) goals: ServiceGoals,
    /// The application profiles that the reconfiguration under way changes or removes.
    pub(super) changed_profiles: BTreeSet<String>,
    pub(super) reservations: AdvanceReservations,
    pub(super) status: Status,
    pub(super) unreached: Unreached,
    pub(super) fanout: Fanout,
    pub(super) eligible: Eligible,
    pub(super) perfmon: Perfmon,
    pub(super) routing: Routing,
    pub(super) validations: Validations,
    pub(super) nlb_servers: NlbServers,
    pub(super) nlb_lists: NlbLists,
    pub(super) diagnose: Diagnose,
    /// Connections that asked for the reconfiguration under way.
    pub(super) reconfig: Vec<ConnId>,
    /// The errors of a reconfiguration, answered when it is whole.
    pub(super) reconfig_diags: Vec<Diag>,
}

/// The view of a machine; a macro, as a function would borrow the scheduler too.
macro_rules! view_of {
    ($mbatchd:expr) => {
        View {
            now: $mbatchd.sched.now(),
            state: &$mbatchd.state,
            site: &$mbatchd.site,
            hosts: $mbatchd.links.hosts(),
            facts_changes: $mbatchd.links.facts_changes(),
            nlb_lists: &$mbatchd.nlb_lists,
            reserve: &$mbatchd.reserve,
            exclusive_units: &$mbatchd.exclusive_units,
            processor_units: &$mbatchd.processor_units,
            timeline: &$mbatchd.timeline,
            limits: &$mbatchd.limits,
            fairshare: &$mbatchd.fairshare,
            group_counts: &$mbatchd.group_counts,
            goals: &$mbatchd.goals,
            windows: &$mbatchd.windows,
            depends: &$mbatchd.deps,
            unreached: &$mbatchd.unreached,
            preemptions: &$mbatchd.preemptions,
            reservations: &$mbatchd.reservations,
            guarantees: &$mbatchd.guarantees,
            slot_shares: &$mbatchd.slot_shares,
            shares_held: SharesHeld::All,
        }
    };
}

/// The state with the counters of job groups; a macro, as a function would borrow the conditions
/// too.
macro_rules! counted_of {
    ($mbatchd:expr) => {
        crate::batch::usage::dependencies::Counted {
            state: &$mbatchd.state,
            counts: &$mbatchd.group_counts,
        }
    };
}
pub(super) use counted_of;

impl Mbatchd {
    /// The event-sourced state, for reading.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The parts below the scheduler, for reading.
    pub(crate) fn view(&self) -> View<'_> {
        view_of!(self)
    }

    /// The scheduler with its view of the state.
    pub(crate) fn sched_and_view(&mut self) -> (&mut Sched, View<'_>) {
        let view = view_of!(self);
        (&mut self.sched, view)
    }

    /// Pending elements of an array are stopped, resumed or killed by one record where they are so
    /// many; for the simulator, whose arrays are small.
    pub fn act_together_from(&mut self, elements: usize) {
        self.works.set_few(elements);
    }

    /// Changes the state by one event and has it logged.
    pub(crate) fn emit(&mut self, context: &mut StepContext, event: Event) {
        let Some((record, change)) = self.apply(context, event) else { return };
        self.follow(change.as_slice());
        self.append(context, [record]);
    }

    /// Changes the state by events, each about another job, and has them logged.
    pub(crate) fn emit_all(
        &mut self,
        context: &mut StepContext,
        events: impl Iterator<Item = Event>,
    ) {
        let (mut changes, mut records) = (Vec::new(), Vec::new());
        for event in events {
            if let Some((record, change)) = self.apply(context, event) {
                records.push(record);
                changes.extend(change);
            }
        }
        self.follow(&changes);
        self.append(context, records);
    }

    /// Changes the state by an event; what happened to which job. `None`: the event does not fit.
    fn apply(
        &mut self,
        context: &mut StepContext,
        event: Event,
    ) -> Option<(Box<Record>, Option<Change>)> {
        let record = Box::new(Record { time: context.now.secs(), event });
        match self.state.apply(&record) {
            Applied::Job(change) => {
                self.fairshare.follow(&self.state, &self.site, &record, Some(&change));
                Some((record, Some(change)))
            }
            Applied::Nothing => {
                self.note_group_event(&record.event);
                Some((record, None))
            }
            Applied::Rejected(why) => {
                context.say(log::Level::Error, format!("an event does not fit: {why}"));
                None
            }
        }
    }

    /// Has the records of events logged that have changed the state.
    fn append(
        &mut self,
        context: &mut StepContext,
        records: impl IntoIterator<Item = Box<Record>>,
    ) {
        if let Some(why) = self.limits.take_fault() {
            context.say(log::Level::Error, why);
        }
        self.note_chunks();
        for record in records {
            self.retention.wrote();
            context.out.push(Effect::Append(record));
        }
    }

    /// Has all that is derived from the state follow changes of jobs. The only place that does. One
    /// after the other of what is derived follows all of them.
    pub(crate) fn follow(&mut self, changes: &[Change]) {
        for change in changes {
            self.follow_conditions(change);
        }
        // the last one first: of jobs that start together the class then has a first one but once
        for change in changes.iter().rev() {
            self.refresh_at(change.at);
        }
        for change in changes {
            self.refresh_growth(change.at);
            self.follow_timeline(change.at);
        }
        for change in changes {
            self.follow_reservations(change.at);
        }
        self.limits.follow_all(&self.state, &self.site, changes);
        for change in changes {
            self.follow_preemptions(change.at);
        }
        self.note_limits();
        for change in changes {
            self.follow_groups(change);
        }
        self.note_shares();
        for change in changes {
            self.reservations.follow(&self.state, change);
            self.perfmon.follow(change);
            self.follow_room(change);
        }
    }

    /// Conditions, waits and watches of a job, and its other hosts, are to hear of a change.
    fn follow_conditions(&mut self, change: &Change) {
        let at = change.at;
        self.works.note_changed(at.job);
        if change.regrouped {
            self.works.note_parted(at.job);
        }
        self.deps.touched(counted_of!(self), at);
        if self.deps.concern(at.job) || !self.waits.is_empty() || !self.watches.is_empty() {
            self.deps.note_changed(at);
        }
        self.look_left_of(at);
        self.follow_fanout(at);
    }

    /// The ledgers of resources and processors follow a change.
    fn follow_reservations(&mut self, at: JobRef) {
        self.reserve.refresh(&self.state, &self.site, at);
        for host in self.exclusive_units.refresh(&self.state, &self.site, at) {
            self.sched.host_changed(host);
        }
        for host in self.processor_units.refresh(&self.state, &self.site, at) {
            self.sched.host_changed(host);
        }
    }

    /// The counters by job group, application profile, service class and pool follow a change.
    fn follow_groups(&mut self, change: &Change) {
        let at = change.at;
        self.note_group_of(at.job);
        if self.group_counts.follow(&self.state, at.job) {
            self.sched.group_room();
        }
        self.note_group_of(at.job);
        self.application_counts.follow(&self.state, at.job);
        if self.goals.follow(&self.state, &self.site, at) {
            self.sched.goal_room();
        }
        self.follow_guarantees(change);
    }

    /// The scheduler hears what room a change makes.
    fn follow_room(&mut self, change: &Change) {
        match &change.kind {
            // a submission makes room for nobody
            ChangeKind::Submitted { .. } => self.sched.need_pass(),
            ChangeKind::Modified { .. } => self.sched.changed(),
            ChangeKind::Element { held: Some(held), .. } => {
                self.note_room();
                self.sched.slots_released(held.user);
                held.hosts.iter().for_each(|host| self.sched.host_changed(host.0));
            }
            _ => self.sched.note_change(),
        }
    }

    /// The other hosts of a job on several may have to hear of a change.
    fn follow_fanout(&mut self, at: JobRef) {
        let run = self.state.elem(at).and_then(|elem| elem.run());
        let several = run.filter(|run| run.hosts.len() > 1).map(|run| run.key);
        self.fanout.note_change(at, several);
    }

    /// Hosts where a job may be preempted from now on, or may go on, are looked at again.
    fn follow_preemptions(&mut self, at: JobRef) {
        for host in self.preemptions.refresh(&self.state, &self.site, at) {
            self.sched.host_changed(host);
        }
        let unknown = || self.state.elem(at).and_then(|e| e.run()).is_some_and(|run| run.unknown);
        if self.preemptions.is_vacating(at) && unknown() {
            // its slots may never be vacated: the job that waits for them has others preempted
            self.sched.changed();
        }
        self.follow_vacated(at);
    }

    /// Hosts where preemption leaves more or less of a resource are looked at again; idx 0 of an
    /// array: by each of its started elements.
    pub(crate) fn follow_vacated(&mut self, at: JobRef) {
        if !self.site.names.preempts_resources() {
            return;
        }
        let job = self.state.job(at.job).filter(|job| at.idx == 0 && job.is_array());
        let elements: Vec<JobRef> = match job.and_then(|job| job.array()) {
            Some(array) => array.started().map(|idx| JobRef { job: at.job, idx }).collect(),
            None => vec![at],
        };
        let mut rows = self.preemptions.take_freed_rows();
        for at in elements {
            rows.extend(self.reserve.set_preempted(at, self.preemptions.preempted_by(at)));
        }
        for row in rows {
            for host in self.reserve.hosts_of_row(row) {
                self.sched.host_changed(host);
            }
        }
    }

    /// All who waited for a limit to leave more are looked at again.
    pub(crate) fn note_limits(&mut self) {
        // slots that a claim kept from others under limits may be any user's
        if self.preemptions.take_dropped() && self.site.rules.ignore_preempted() {
            self.sched.changed();
        }
        for counter in self.limits.take_freed() {
            self.sched.limit_fell(&self.site, counter);
        }
        for at in self.limits.take_given_up() {
            let Some(job) = self.state.job(at.job) else { continue };
            self.sched.slots_released(job.user);
            let run = job.elem(at.idx).and_then(|elem| elem.run());
            for (host, _) in run.iter().flat_map(|run| &run.hosts) {
                self.sched.host_changed(*host);
            }
        }
    }

    /// Elements that have begun or ceased to wait in a chunk are looked at again.
    fn note_chunks(&mut self) {
        for at in self.state.take_turned_members() {
            self.refresh_at(at);
        }
    }

    /// The sums of guaranteed pools follow a change.
    fn follow_guarantees(&mut self, change: &Change) {
        if !self.site.pools.is_empty() {
            self.guarantees.follow(&self.state, &self.site, &self.reserve, change);
            self.refresh_guarantees();
        }
    }

    /// Has pools follow the hosts that have changed, and wakes the jobs for which there is more.
    pub(crate) fn refresh_guarantees(&mut self) {
        let site = self.site.clone();
        for host in self.guarantees.take_stale(&site) {
            let facts = self.view().pool_facts(host);
            self.guarantees.set_host(&site, host, facts);
        }
        let stale = self.guarantees.take_stale_resources();
        for id in site.pools.of_resources().iter().filter(|_| stale) {
            let now = site.pools.get(*id).resource().map(|of| self.view().pool_resource(of));
            now.into_iter().for_each(|now| self.guarantees.set_resource(&site, *id, now));
        }
        for wait in self.guarantees.take_grown(&site) {
            self.sched.pool_grew(wait);
        }
    }

    /// The use of share accounts has changed: their priorities have, too.
    pub(crate) fn note_shares(&mut self) {
        if self.fairshare.has_changed() {
            self.sched.shares_changed(self.fairshare.take_changed());
        }
    }

    /// Has the timeline follow a change of an element; idx 0 of an array: of all started ones.
    pub(crate) fn follow_timeline(&mut self, at: JobRef) {
        if !self.site.keeps_timeline {
            return;
        }
        let mut all: Vec<JobRef> = match at.idx {
            0 => self.timeline.of_job(at.job).collect(),
            _ => vec![at],
        };
        if let Some(array) =
            self.state.job(at.job).and_then(|job| job.array()).filter(|_| at.idx == 0)
        {
            all.extend(array.started().map(|idx| JobRef { job: at.job, idx }));
        } else if at.idx == 0 {
            all.push(at);
        }
        for at in all {
            let view = self.view();
            let end = view.end_of(at).map(|(end, hosts)| (end, hosts.clone()));
            self.timeline.put(at, end.as_ref().map(|(end, hosts)| (*end, hosts)));
        }
    }

    /// The group of a job is looked at where conditions are about it, or about one above it.
    fn note_group_of(&mut self, job: u32) {
        let Some(path) = self.group_counts.group_of(job) else { return };
        if lineage(path).any(|path| self.asks_of_group(path)) {
            self.deps.note_job_group(path);
        }
    }

    /// Does a condition or a wait count the jobs of this group?
    pub(crate) fn asks_of_group(&self, path: &str) -> bool {
        self.deps.names_job_group(path) || self.waits.names_job_group(path)
    }

    /// A job group or an advance reservation was made, changed or deleted.
    fn note_group_event(&mut self, event: &Event) {
        match event {
            Event::JobGroupAdd(group) => self.deps.note_job_group(&group.path),
            Event::JobGroupDelete { path, .. } => self.deps.note_deleted_group(path),
            Event::Reservation(_) | Event::ReservationEnd { .. } => self.reservations.renew(),
            _ => {}
        }
    }

    /// Asks for bytes to be spooled, and returns their future place.
    pub(crate) fn spool(&mut self, context: &mut StepContext, data: ByteStr) -> SpoolRef {
        let at = self.spool.add(data.len() as u32);
        context.out.push(Effect::Spool { at, data });
        at
    }

    /// The place of an environment: stored once for a user as long as the spool file lasts.
    pub(crate) fn spool_env(
        &mut self,
        context: &mut StepContext,
        uid: u32,
        env: ByteStr,
    ) -> SpoolRef {
        let hash = env_hash(&env);
        if let Some(at) = self.spool.env(uid, &hash) {
            return at;
        }
        let at = self.spool(context, env);
        self.spool.keep_env(uid, hash, at);
        at
    }

    /// The place of an environment that this user stored before.
    pub(crate) fn env_kept(&self, uid: u32, hash: &str) -> Option<SpoolRef> {
        self.spool.env(uid, hash)
    }

    pub(crate) fn start_event(&self) -> Event {
        let (hosts, queues) = (self.site.hosts.len() as u32, self.site.queues.len() as u32);
        let (master, cluster) = (self.me.clone(), self.site.conf.base.name.clone());
        Event::MbdStart { master, cluster, hosts, queues }
    }

    /// Something has changed that may have a destination accept a request.
    pub(crate) fn note_room(&mut self) {
        if self.site.routes {
            self.routing.note_room(self.sched.now().mono_us);
        }
    }

    /// Looks again whether a job is ready, after anything about it has changed.
    pub(crate) fn refresh(&mut self, id: u32) {
        self.refresh_at(JobRef { job: id, idx: 0 });
    }

    /// Looks again whether one element is ready; idx 0 of an array: all of them.
    pub(crate) fn refresh_at(&mut self, at: JobRef) {
        let waits = |tally: &crate::batch::state::Tally| tally.pend + tally.psusp > 0;
        if self.site.routes {
            self.routing.touch(at.job);
        }
        if let Some(job) = self.state.job(at.job).filter(|job| waits(&job.tally())) {
            self.fairshare.ensure_job(&self.state, &self.site, job);
            self.eligible_touched(at.job);
        }
        let (sched, view) = self.sched_and_view();
        sched.refresh(&view, at);
    }

    /// Looks again whether a started element wants further slots; idx 0 of an array: each of them.
    pub(crate) fn refresh_growth(&mut self, at: JobRef) {
        let (sched, view) = self.sched_and_view();
        sched.refresh_growth(&view, at);
    }

    /// Puts a job with a start time ahead on the timer.
    pub(crate) fn watch_begin(&mut self, id: u32) {
        let (sched, view) = self.sched_and_view();
        if sched.watch_begin(&view, id) {
            self.refresh(id);
        }
    }

    /// Takes the start time of a job off the timer, before it becomes another one.
    pub(crate) fn unwatch_begin(&mut self, id: u32) {
        let (sched, view) = self.sched_and_view();
        sched.unwatch_begin(&view, id);
    }

    /// Begins to watch the condition of a new (or recovered) job.
    pub(crate) fn watch_depend(&mut self, id: u32) {
        self.deps.watch(counted_of!(self), id);
    }

    /// The facts that conditions are about, as of now.
    pub(crate) fn facts(&self) -> JobFacts<'_> {
        self.deps.facts(counted_of!(self))
    }

    /// Looks again at every job that has left an attempt behind.
    pub(crate) fn look_left(&mut self) {
        let left = self.state.left();
        self.unreached.keep_left(|key: JobKey| left.find(key).is_some());
        let barred = self.unreached.barred();
        let all: BTreeSet<JobRef> = left.elements().chain(barred).collect();
        all.into_iter().for_each(|at| self.look_left_of(at));
    }

    /// Has a pending element that has left attempts behind wait for them, or no longer.
    pub(crate) fn look_left_of(&mut self, at: JobRef) {
        if self.state.left().is_empty() && !self.unreached.has_barred() {
            return;
        }
        let pends = matches!(self.state.elem(at).map(|e| &e.state), Some(ElemState::Pend(_)));
        let bar = pends && !self.state.left().of(at).iter().all(|left| self.is_over(left));
        if self.unreached.set_barred(at, bar) {
            self.refresh_at(at);
            self.sched.note_change();
        }
    }

    /// May an attempt left behind be taken for over?
    pub(crate) fn is_over(&self, left: &LeftAttempt) -> bool {
        if self.unreached.is_over(left.key) {
            return true;
        }
        self.links.hosts().get(left.host).is_none_or(|host| host.given_up)
    }

    /// The reason for which nothing is dispatched at all.
    pub(crate) fn dispatch_stopped(&self) -> Option<PendReason> {
        self.log_failed.as_ref().map(|_| PendReason::LogFull)
    }

    pub(crate) fn tracks(&self) -> bool {
        self.site.params().track_eligible
    }

    /// Something about a job has changed.
    pub(crate) fn eligible_touched(&mut self, id: u32) {
        if self.tracks() {
            self.eligible.note_job(id);
        }
    }

    /// Something about queues has changed.
    pub(crate) fn eligible_all(&mut self) {
        if self.tracks() {
            self.eligible.note_all();
        }
    }

    /// Seconds that an element has waited ineligible until `t`; None while that is not tracked.
    pub(crate) fn ineligible_secs(&self, at: JobRef, t: i64) -> Option<i64> {
        self.tracks().then(|| self.state.waited().of(at).until(t))
    }

    /// The usage of an attempt on each of its several hosts, `first` the first one, unless the site
    /// wants none (NO_HOST_RUSAGE).
    pub(crate) fn usage_by_host(&self, key: JobKey, first: HostId) -> Vec<(HostId, &HostUse)> {
        match self.site.conf.base.lsf.has_extension("NO_HOST_RUSAGE") {
            true => Vec::new(),
            false => self.fanout.by_host(key, first),
        }
    }

    /// The host that holds a started attempt, where the cluster still has it.
    pub(crate) fn first_host(&self, run: &Run) -> Option<HostId> {
        run.hosts.first().map(|h| h.0).filter(|host| self.links.hosts().contains(*host))
    }
}
