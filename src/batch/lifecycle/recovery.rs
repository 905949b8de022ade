//! The machine from what recovery found in the log: at the start, and when records could not be
//! written. Everything outside the state is rebuilt from the state.

use crate::batch::cluster::hosts::Links;
use crate::batch::cluster::nlb_lists::NlbLists;
use crate::batch::cluster::unreached::Unreached;
use crate::batch::mbatchd::Mbatchd;
use crate::batch::sched::Sched;
use crate::batch::site::Site;
use crate::batch::soft_state::diagnose::Diagnose;
use crate::batch::soft_state::eligible::Eligible;
use crate::batch::soft_state::exception_round::ExceptionRound;
use crate::batch::soft_state::exit_rates::ExitRates;
use crate::batch::soft_state::extendable_limits::ExtendableLimits;
use crate::batch::soft_state::fanout::Fanout;
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
use crate::batch::state::State;
use crate::batch::step::StepContext;
use crate::batch::usage::advance_reservations::AdvanceReservations;
use crate::batch::usage::application_counts::ApplicationCounts;
use crate::batch::usage::dependencies::Deps;
use crate::batch::usage::exclusive_units::ExclusiveUnits;
use crate::batch::usage::fairshare::Fairshare;
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
use crate::conf::ClusterConf;
use crate::model::JobRef;
use crate::model::event::{Event, Record};
use crate::model::idmap::IdMap;
use std::rc::Rc;

/// The findings of recovery in the log.
#[derive(Debug, Default)]
pub struct Recovered {
    pub records: Vec<Record>,
    /// Jobs whose records were lost, with the words for the log.
    pub damaged: Vec<(JobRef, String)>,
    /// Control records that were lost.
    pub controls: Vec<LostControl>,
    /// IDs seen in any log.
    pub seen_ids: Vec<u32>,
    /// This run's number: larger than any before.
    pub epoch: u64,
    /// Number and length of the newest spool file.
    pub spool: u32,
    pub spool_end: u64,
}

impl Mbatchd {
    /// A machine for the host `me` with what recovery found.
    pub fn new(conf: ClusterConf, me: &str, found: Recovered) -> Self {
        let mut state = State::new();
        let site = Rc::new(Site::new(conf, state.names_mut()));
        let mut mbd = Mbatchd {
            links: Links::new(&site),
            site,
            state,
            me: me.to_string(),
            epoch: 0,
            spool: Spool::default(),
            damaged: Vec::new(),
            lost_controls: Vec::new(),
            root_jobs: false,
            started: false,
            log_failed: None,
            peers: IdMap::default(),
            broken: IdMap::default(),
            sched: Sched::default(),
            deps: Deps::default(),
            waits: Waits::default(),
            watches: Watches::default(),
            listings: Listings::default(),
            works: Works::default(),
            retention: Retention::default(),
            windows: ClosedByWindows::default(),
            load_checks: LoadChecks::default(),
            migration_checks: PeriodicLook::default(),
            hung_checks: PeriodicLook::default(),
            hung_walk: StartedWalk::default(),
            exception_checks: PeriodicLook::default(),
            acct_archive_checks: PeriodicLook::default(),
            exception_round: ExceptionRound::default(),
            exit_rates: ExitRates::default(),
            extendable: ExtendableLimits::default(),
            reserve: Reserve::default(),
            exclusive_units: ExclusiveUnits::default(),
            processor_units: ProcessorUnits::default(),
            timeline: Timeline::default(),
            limits: LimitsLedger::default(),
            fairshare: Fairshare::default(),
            preemptions: Preemptions::default(),
            group_counts: JobGroupCounts::default(),
            idle_groups: IdleGroups::default(),
            application_counts: ApplicationCounts::default(),
            guarantees: Guarantees::default(),
            slot_shares: SlotShares::default(),
            goals: ServiceGoals::default(),
            changed_profiles: Default::default(),
            reservations: AdvanceReservations::default(),
            status: Status::default(),
            unreached: Unreached::default(),
            fanout: Fanout::default(),
            eligible: Eligible::default(),
            perfmon: Perfmon::default(),
            routing: Routing::default(),
            validations: Validations::default(),
            nlb_servers: NlbServers::default(),
            nlb_lists: NlbLists::default(),
            diagnose: Diagnose::default(),
            reconfig: Vec::new(),
            reconfig_diags: Vec::new(),
        };
        mbd.reload(found);
        mbd
    }

    /// Puts the state back to what the log holds: at start, and when records could not be
    /// written. Soft state is rebuilt.
    pub fn reload(&mut self, found: Recovered) {
        self.state.begin_anew();
        self.fanout = Fanout::default();
        // each goes as its job comes, so that its memory is used again
        self.fairshare = Fairshare::default();
        self.fairshare.rebuild(&self.state, &self.site);
        for rec in found.records {
            let change = self.state.recover(&rec);
            self.fairshare.follow(&self.state, &self.site, &rec, change.job());
        }
        self.state.reserve_ids(found.seen_ids.iter().copied());
        self.damaged = found.damaged;
        self.lost_controls = found.controls;
        self.epoch = found.epoch;
        self.spool.open(found.spool, found.spool_end);
        self.note_carried();
        self.group_hosts_read();
        self.routing.forget_requests();
        self.validations.forget();
        self.rebuild();
    }

    /// Soft state from the state and the policy.
    pub(crate) fn rebuild(&mut self) {
        self.works.refill(None);
        self.sched = self.sched.anew();
        self.fairshare.rebuild(&self.state, &self.site);
        self.sched.set_timed(!self.state.reservations().is_empty());
        self.deps = Deps::default();
        self.group_counts = JobGroupCounts::recount(&self.state);
        // there may be very many jobs: few wait for others, and those that ended wait for nothing
        let (mut waiting, mut pending) = (Vec::new(), Vec::new());
        for job in self.state.each_job().filter(|job| job.tally().pend + job.tally().psusp > 0) {
            pending.push(job.id);
            waiting.extend(job.depend.as_ref().map(|_| job.id));
        }
        waiting.into_iter().for_each(|id| self.watch_depend(id));
        let (sched, view) = self.sched_and_view();
        sched.begins_rebuilt(&view);
        pending.into_iter().for_each(|id| self.refresh(id));
        self.load_checks = LoadChecks::default();
        self.unreached = Unreached::default();
        self.look_left();
        self.reserve = Reserve::of_all(&self.state, &self.site, self.reserve.now());
        self.exclusive_units = ExclusiveUnits::of_all(&self.state, &self.site);
        self.processor_units = ProcessorUnits::of_all(&self.state, &self.site);
        self.limits.recount(&self.state, &self.site);
        self.rebuild_preemptions();
        self.application_counts = ApplicationCounts::recount(&self.state);
        self.guarantees = Guarantees::of_all(&self.state, &self.site, &self.reserve);
        self.slot_shares = SlotShares::default();
        self.goals = ServiceGoals::of_all(&self.state, &self.site);
        self.reservations = AdvanceReservations::of_all(&self.state);
        self.rebuild_timeline();
        let started: Vec<JobRef> = self.state.counts().started().collect();
        started.into_iter().for_each(|at| self.refresh_growth(at));
        self.sched.changed();
    }

    pub(crate) fn start(&mut self, context: &mut StepContext) {
        self.started = true;
        self.note_earlier_dispatches(context.now);
        if self.state.carried_at() > 0 {
            self.retention.note_earlier_switch(self.state.carried_at(), context.now);
        }
        self.idle_groups.begin(context.now.mono_us);
        self.status.note_start(context.now.secs());
        self.perfmon.reset(context.now, self.site.params());
        let names = crate::proto::lim::INDEX_NAMES.iter().map(|s| s.to_string()).collect();
        self.emit(context, Event::LoadIndex { names });
        // that forgets the hosts that jobs were not to go to
        let tried: Vec<JobRef> = self.state.tries().elements().collect();
        self.emit(context, self.start_event());
        tried.into_iter().for_each(|at| self.refresh_at(at));
        self.restore_groups(context);
        self.hold_damaged(context);
        self.end_all_orphans(context);
        self.net_start(context);
    }

    /// Marks the jobs whose history is incomplete. After a reload they are those that the log
    /// does not mark yet: the marks of the start may be among what could not be written.
    pub(crate) fn hold_damaged(&mut self, context: &mut StepContext) {
        self.close_lost(context);
        for (at, why) in std::mem::take(&mut self.damaged) {
            if let Some(job) = self.state.job(at.job) {
                if job.tally().unfinished() > 0 {
                    context.say(log::Level::Error, format!("job <{at}> is held: {why}"));
                } else {
                    let text = format!("job <{at}> has ended; a requeue will hold it: {why}");
                    context.say(log::Level::Warn, text);
                }
                self.emit(context, Event::Hold { at, why });
            } else {
                context.say(log::Level::Error, format!("job <{at}> is lost from the log: {why}"));
                self.state.reserve_ids([at.job].into_iter());
            }
        }
    }
}
