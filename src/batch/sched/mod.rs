//! The scheduler: which pending job is ready, in which order, on which hosts, and when to look.
//!
//! | file | its part |
//! |---|---|
//! | readiness | whether an element could start: the one answer for all who ask |
//! | ready_entries, lone_readiness, lone | which jobs and elements are ready |
//! | start_times | when a job with a start time becomes ready |
//! | classes | jobs that ask for the same thing, as one |
//! | aps_rank, aps_classes | the order of classes by absolute priority |
//! | absolute_priority | absolute priorities as commands list them |
//! | order | ready classes in dispatch order; which of them wait for a look |
//! | open_hosts | hosts that may take a job, best first |
//! | policy | whether a queue, a user, a host has slots for a class: one file for each policy |
//! | fixed_match | which hosts match a requirement as far as that does not change with load |
//! | run_limit | how long a job may run on a host |
//! | forecast | when a job that finds too few slots has enough, by the ends of others |
//! | reserving | whether a job that keeps slots still waits for more |
//! | reserved_slots | slots that pending jobs keep, as hosts have them now |
//! | place | a class as it is held against hosts; which slots a job gets |
//! | pool_hosts | hosts as guaranteed pools see them |
//! | pool_waits | classes that a guaranteed pool leaves too little |
//! | joint_room | amounts that several hosts have together, by limits |
//! | limit_waits | users and classes that a limit leaves too little |
//! | growing, growth | started jobs that want further slots; which hosts they are given |
//! | resumption | which preempted jobs go on |
//! | vacancy | resources that preempted jobs leave to a queue |
//! | head_set | the classes of one user in one queue, in dispatch order |
//! | fair_order, fair_walk | users in the order of a share tree; the next of them in a walk |
//! | same_host | the host of the job before, for the next one of its class |
//! | start_together | the jobs behind one that the pass would start on the same host next |
//! | first_fit | hosts for a job, best first, until there are enough |
//! | slot_demand | how many slots the ready jobs of a queue want |
//! | lent_walk | slots that no queue of a slot pool uses by its share |
//! | wanted_hosts | whether pending jobs want what a started one has |
//! | walk | the pass: classes against hosts, decision by decision |
//! | explain | why a class finds no host, by the functions that the pass asks |
//! | start_needs | the smallest changes after which a job could start |
//!
//! A pass costs what has changed: a class that found no host is held against a host again only
//! after that host, the class or a limit has changed. A pass runs at the end of a turn in which
//! something changed, or when a timer says so. The work in one turn is bounded by [`PASS_FUEL`];
//! the rest follows in the next turn.

mod absolute_priority;
mod aps_classes;
mod aps_rank;
mod class_key;
mod class_mates;
mod classes;
mod decision;
mod dispatch_key;
mod entries;
mod explain;
mod explained;
mod fair_order;
mod fair_walk;
mod first_fit;
mod fixed_match;
mod forecast;
mod goal_walk;
mod growing;
mod growth;
mod head_set;
mod hold;
pub mod host_snapshot;
mod joint_room;
mod lent_walk;
mod limit_changes;
mod limit_waits;
mod lone;
mod lone_readiness;
mod named_orders;
mod open_hosts;
mod order;
mod place;
pub(crate) mod policy;
mod pool_hosts;
mod pool_waits;
mod readiness;
mod ready_entries;
mod reserved_slots;
mod reserving;
mod resumption;
pub(crate) mod run_limit;
mod same_host;
mod slot_demand;
mod start_needs;
mod start_times;
mod start_together;
pub mod vacancy;
pub mod view;
mod walk;
mod walk_state;
mod wanted_hosts;

pub use classes::{BYTES_PER_HOST, CLASSES_KEPT};
pub use decision::PASS_FUEL;
pub(crate) use decision::{Allocation, Decision, Fuel, Preemption};
pub use order::{CLASSES_PER_TURN, LOOKS_PER_USER, TURN_PAUSE_US};
#[cfg(test)]
pub(crate) use place::Reasons;
pub(crate) use place::{Alternative, split_host_word, units_of_job};
pub(crate) use readiness::{NotReady, ReadinessQuery};
pub(crate) use start_needs::Need;

use crate::batch::site::nlb_request::NlbKey;
use crate::batch::state::names::{HostId, QueueId};
use crate::batch::usage::fairshare::account::AccountId;
use crate::batch::usage::guarantees::PoolWait;
use crate::model::Now;
use crate::model::idtable::IdTable;
use classes::Classes;
use dispatch_key::ClassEntry;
use limit_waits::LimitWaits;
use open_hosts::OpenHosts;
use order::DispatchOrder;
use policy::Policies;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use view::View;
use walk_state::Walk;

/// Jobs that one turn takes from a timer.
pub const DUE_PER_TURN: usize = 1024;

#[derive(Debug, Default)]
pub struct Sched {
    needed: bool,
    /// Counts changes that may make room for a class that found none, or take it.
    changes: u64,
    classes: Classes,
    order: DispatchOrder,
    hosts: OpenHosts,
    growth: growing::Growth,
    /// The host of the last start, where it takes further jobs of that class.
    same_host: Option<same_host::SameHost>,
    /// The pass under way.
    walk: Option<Box<Walk>>,
    /// The walk is not of the turn in which slot pools were shared out last.
    went_on: bool,
    entries: IdTable<ClassEntry>,
    /// Entries of the parts of an array: (job, part from 1).
    parts: BTreeMap<(u32, u32), ClassEntry>,
    /// Jobs whose start time has not come: (seconds, job).
    begins: BTreeMap<(i64, u32), ()>,
    /// Elements that wait otherwise than their likes.
    lone: lone::Lones,
    /// Now, as the step was told.
    now: Now,
    begin_timer: Option<u64>,
    explained: explained::Explained,
    /// When the classes of a queue are looked at again because time alone changes what may be done
    /// for them: microseconds of the monotonic clock.
    again: BTreeSet<(u64, QueueId)>,
    /// Classes that may be started by another alternative of their requirement from an instant
    /// on: microseconds of the monotonic clock.
    delayed: BTreeSet<(u64, u32)>,
    /// Classes whose job group had no room when they were looked at.
    full_groups: BTreeSet<u32>,
    /// Classes that limits left enough slots, but for those that reservations keep.
    short_by_reservations: BTreeSet<u32>,
    /// Classes of whose service class as many jobs ran as its goals wanted.
    full_goals: BTreeSet<u32>,
    /// Users and classes that a limit left too little.
    limit_waits: LimitWaits,
    /// Hosts of preempted jobs that a limit keeps from going on.
    held_by_limits: RefCell<BTreeSet<HostId>>,
    /// Classes that a guaranteed pool left too little.
    pool_waits: BTreeMap<PoolWait, BTreeSet<u32>>,
    /// The conditions under which jobs are kept from slots.
    policies: Policies,
    /// Does any queue do something for blocked classes? None: it was not asked yet in this
    /// configuration.
    acts: Option<bool>,
    /// Share accounts whose priorities have changed since a pass asked for them.
    accounts: Vec<AccountId>,
    /// How often a class was held against hosts.
    #[cfg(test)]
    looks: usize,
    /// How often a pass came to a host for a class.
    #[cfg(test)]
    host_looks: usize,
    /// How often a pass came to a class.
    #[cfg(test)]
    visits: usize,
}

impl Sched {
    pub fn deadline(&self) -> Option<u64> {
        if self.needed {
            return Some(0);
        }
        let timers = [self.hosts.deadline(), self.begin_timer, self.order.deadline()];
        let again = self.again.first().map(|again| again.0);
        let delayed = self.delayed.first().map(|delayed| delayed.0);
        let more = [self.lone.deadline(), self.growth.deadline(), again, delayed];
        timers.into_iter().chain(more).flatten().min()
    }

    /// A scheduler that knows nothing but the start times ahead; it goes on counting changes.
    pub(crate) fn anew(&mut self) -> Sched {
        let (policies, begins) = (self.policies.clone(), std::mem::take(&mut self.begins));
        let (changes, now, begin_timer) = (self.changes, self.now, self.begin_timer);
        let mut anew = Sched { changes, policies, begins, begin_timer, ..Sched::default() };
        anew.set_now(now);
        anew
    }

    /// The instant of this step.
    pub(crate) fn now(&self) -> Now {
        self.now
    }

    pub(crate) fn set_now(&mut self, now: Now) {
        self.now = now;
        self.classes.ranks_mut().set_now(now.secs());
    }

    /// Changes so far that may make room, or take it.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Something changed that may make room for any class on any host.
    pub(crate) fn changed(&mut self) {
        self.note_change();
        self.hosts.change_all();
        self.order.unsee_all();
    }

    /// A host takes other jobs than before, or other numbers of them.
    pub(crate) fn host_changed(&mut self, host: HostId) {
        self.note_change();
        self.hosts.change(host);
    }

    /// A job of a user has left its slots. Under a limit that counts them, more may be left beside
    /// what reservations keep, for jobs of whatever user.
    pub(crate) fn slots_released(&mut self, user: crate::batch::state::names::UserId) {
        self.order.released(user);
        self.reservations_released();
    }

    /// A job group may have room: the classes that found none are looked at again.
    pub(crate) fn group_room(&mut self) {
        let classes = std::mem::take(&mut self.full_groups);
        self.look_again(classes);
        self.note_change();
    }

    /// Pending jobs keep fewer slots: the classes that these left too few are looked at again.
    pub(crate) fn reservations_released(&mut self) {
        let classes = std::mem::take(&mut self.short_by_reservations);
        self.look_again(classes);
        self.note_change();
    }

    /// The lists of the load balancer that classes with a ready job want, in order.
    pub(crate) fn wanted_lists(&self) -> impl Iterator<Item = &Rc<NlbKey>> {
        self.classes.wanted_lists()
    }

    /// Is a list of the load balancer wanted that was not when this was asked last?
    pub(crate) fn take_nlb_news(&mut self) -> bool {
        self.classes.take_nlb_news()
    }

    /// Other hosts may take the jobs that want a list of the load balancer.
    pub(crate) fn list_changed(&mut self, key: &NlbKey) {
        self.same_host = None;
        let classes = self.classes.of_list(key);
        self.look_again(classes);
        self.note_change();
    }

    /// These classes are to be held against all open hosts again.
    fn look_again(&mut self, classes: BTreeSet<u32>) {
        for number in classes {
            self.unsee(number);
        }
    }

    /// A class is to be held against all open hosts.
    fn unsee(&mut self, number: u32) {
        let Some((place, _)) = self.classes.head(number) else { return };
        let class = self.classes.get_mut(number);
        class.unseen = true;
        let of = (class.kind.queue, class.bidder);
        self.order.unsee(of, (place, number));
    }

    /// The classes that have waited for another alternative long enough are looked at again.
    fn wake_delayed(&mut self, now: u64) {
        while let Some((_, number)) = self.delayed.first().copied().filter(|next| next.0 <= now) {
            self.delayed.pop_first();
            self.unsee(number);
            self.note_change();
        }
    }

    /// A job keeps other slots than before: reasons may be others.
    pub(crate) fn reservation_changed(&mut self) {
        self.changes += 1;
    }

    /// A pass is due: a job may be ready that was not.
    pub(crate) fn need_pass(&mut self) {
        self.needed = true;
    }

    /// Something changed that makes no room.
    pub(crate) fn note_change(&mut self) {
        self.changes += 1;
        self.needed = true;
    }

    /// The use of share accounts has changed.
    pub(crate) fn shares_changed(&mut self, accounts: Vec<AccountId>) {
        match self.accounts.is_empty() {
            true => self.accounts = accounts,
            false => self.accounts.extend(accounts),
        }
    }

    /// Are jobs with other run limits of other classes, as advance reservations need it?
    pub(crate) fn is_timed(&self) -> bool {
        self.classes.is_timed()
    }

    /// For a scheduler that knows no job yet.
    pub(crate) fn set_timed(&mut self, timed: bool) {
        self.classes.set_timed(timed);
    }

    /// The least slots that a ready job of an advance reservation needs; `None`: none is ready.
    pub(crate) fn waiting_in(&self, reservation: &str) -> Option<u32> {
        self.classes.waiting_in(reservation)
    }

    /// The groups of users may be others than before, and share accounts, too.
    pub(crate) fn users_changed(&mut self) {
        self.classes.forget_users();
        self.order.forget_shares();
        (self.accounts, self.walk) = (Vec::new(), None);
        self.changed();
    }
}

impl Sched {
    /// Begins a pass if one is due.
    pub(crate) fn begin_pass(&mut self, now: Now) -> bool {
        self.same_host = None;
        if self.hosts.wake(now.mono_us) {
            self.note_change();
        }
        self.needed |= self.growth.wake(now.mono_us);
        while let Some(&(until, queue)) = self.again.first().filter(|again| again.0 <= now.mono_us)
        {
            self.again.remove(&(until, queue));
            self.order.pass_over_queue(queue);
            self.needed = true;
        }
        self.wake_delayed(now.mono_us);
        if let Some(unseen) = self.order.take_turns(now.mono_us) {
            self.needed = true;
            unseen.iter().for_each(|head| self.classes.get_mut(head.1).unseen = true);
        }
        if std::mem::take(&mut self.needed) {
            if self.walk.is_none() {
                self.classes.forget();
            }
            return true;
        }
        false
    }

    /// The work of the turn is done: the walk goes on in the next, or another takes up what has
    /// changed meanwhile.
    pub(crate) fn end_turn(&mut self) {
        self.needed |= self.walk.is_some() || self.hosts.any_changed();
        // what has changed during a walk of several turns may change shares
        self.needed |= std::mem::take(&mut self.went_on) && self.walk.is_none();
    }

    /// Is a walk about to begin from the first queue? Else the one under way goes on.
    pub(crate) fn begins_pass(&mut self) -> bool {
        self.went_on = self.walk.is_some();
        !self.went_on
    }

    /// A host was given a job: it is closed where it takes no further one.
    pub(crate) fn host_filled(&mut self, view: &View, host: HostId) {
        if !self.hosts.started(view, host)
            && let Some(walk) = &mut self.walk
        {
            walk.closed(host);
        }
    }
}

#[cfg(test)]
impl Sched {
    /// Holds one more policy.
    pub(crate) fn use_policy(&mut self, policy: Box<dyn policy::Policy>) {
        (self.policies, self.acts) = (Policies::with(policy), None);
        self.changed();
    }
    /// How often a class was held against hosts.
    pub fn looks(&self) -> usize {
        self.looks
    }
    /// How often a pass came to a host for a class since this was asked last.
    pub fn take_host_looks(&mut self) -> usize {
        std::mem::take(&mut self.host_looks)
    }
    /// How often a pass came to a class.
    pub fn visits(&self) -> usize {
        self.visits
    }
    /// Classes there is room for.
    pub fn places(&self) -> usize {
        self.classes.places()
    }
    /// Bytes of classes that are kept compiled.
    pub fn compiled_bytes(&self) -> usize {
        self.classes.compiled_bytes()
    }
    /// Requirements that were compiled and are not forgotten.
    pub fn requirements(&self) -> usize {
        self.classes.requirements()
    }
    /// How often it was asked whether an element waits by itself.
    pub fn lone_asked(&self) -> usize {
        self.lone.asked.get()
    }
    /// How often an element that waits by itself was looked at.
    pub fn lone_looks(&self) -> usize {
        self.lone.looks
    }
    /// How often a rank was worked out since this was asked last.
    pub fn take_ranks(&mut self) -> usize {
        self.classes.ranks_mut().take_ranked()
    }
    /// Start times ahead.
    pub fn begins_left(&self) -> usize {
        self.begins.len()
    }
}
