//! The scheduler: which pending job is ready, in which order, on which hosts, and when to look.
//!
//! | file | its part |
//! |---|---|
//! | readiness, lone | which jobs and elements are ready |
//! | classes | jobs that ask for the same thing, as one |
//! | order | ready classes in dispatch order; which of them wait for a look |
//! | open_hosts | hosts that may take a job, best first |
//! | place | whether a host takes a job of a class; which slots a job gets |
//! | walk | the pass: classes against hosts, decision by decision |
//! | explain | why a class finds no host, by the functions that the pass asks |
//!
//! A pass costs what has changed: a class that found no host is held against a host again only
//! after that host, the class or a limit has changed. It runs at the end of a turn in which
//! something changed, or when a timer says so. Its work in one turn is bounded by [`PASS_FUEL`];
//! what is left over follows in the next turn.

mod classes;
mod explain;
mod lone;
mod open_hosts;
mod order;
mod place;
mod readiness;
pub mod view;
mod walk;

pub use classes::{BYTES_PER_HOST, CLASSES_KEPT};
pub use order::{CLASSES_PER_TURN, LOOKS_PER_USER, TURN_PAUSE_US};
pub(crate) use place::split_host_word;

use crate::batch::site::requirements::Req;
use crate::batch::state::names::HostId;
use crate::batch::{Mbd, StepContext};
use crate::model::event::{Event, JobStart};
use crate::model::idmap::IdMap;
use crate::model::{JobKey, JobRef, Now};
use classes::Classes;
use open_hosts::OpenHosts;
use order::DispatchOrder;
use place::Alternative;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;
use walk::Walk;

/// Looks of a class at a host that a pass may take in one turn.
pub const PASS_FUEL: usize = 32_768;
/// A decision, carried out, costs as much as so many looks.
const DECISION_COST: usize = 32;
/// Jobs that one turn takes from a timer.
pub const DUE_PER_TURN: usize = 1024;

/// Dispatch order within a queue: user priority, then first come, unless moved; of one array by
/// the next element of each part, whose number comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DispatchKey {
    priority: Reverse<u32>,
    /// [`crate::model::event::QueuePosition`], without the gap that it would leave: there are very
    /// many.
    base: u64,
    between: u32,
    next: u32,
    part: u32,
}

/// A job that starts, where, and the requirement that it was found by.
#[derive(Debug)]
struct Decision {
    at: JobRef,
    /// Never empty; the first is the first execution host.
    hosts: Vec<(HostId, u32)>,
    req: Option<Rc<Alternative>>,
}

/// The work that a pass may still do in this turn.
#[derive(Debug)]
struct Fuel(usize);

impl Fuel {
    fn is_empty(&self) -> bool {
        self.0 == 0
    }
    fn spend(&mut self, looks: usize) {
        self.0 = self.0.saturating_sub(looks);
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    place: DispatchKey,
    class: u32,
    ready: bool,
}

// one for each pending job
const _: () = assert!(size_of::<Entry>() <= 32);

#[derive(Debug, Default)]
pub struct Sched {
    pub needed: bool,
    /// Counts changes that may make room for a class that found none, or take it.
    changes: u64,
    classes: Classes,
    order: DispatchOrder,
    hosts: OpenHosts,
    /// The pass under way.
    walk: Option<Walk>,
    entries: IdMap<u32, Entry>,
    /// Entries of the parts of an array: (job, part from 1).
    parts: BTreeMap<(u32, u32), Entry>,
    /// Jobs whose start time has not come: (seconds, job).
    begins: BTreeMap<(i64, u32), ()>,
    /// Elements that wait otherwise than their likes.
    lone: lone::Lones,
    /// Now, as the step was told.
    pub now: Now,
    begin_timer: Option<u64>,
    explained: explain::Explained,
    /// How often a class was held against hosts.
    #[cfg(test)]
    pub looks: usize,
    /// How often a pass came to a class.
    #[cfg(test)]
    pub visits: usize,
}

impl Sched {
    pub fn deadline(&self) -> Option<u64> {
        if self.needed {
            return Some(0);
        }
        let timers = [self.hosts.deadline(), self.begin_timer, self.order.deadline()];
        timers.into_iter().chain([self.lone.deadline()]).flatten().min()
    }

    /// The same with nothing known; changes are counted on.
    pub(crate) fn anew(&self) -> Sched {
        Sched { changes: self.changes, now: self.now, ..Sched::default() }
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

    /// A job of a user has left its slots.
    pub(crate) fn slots_released(&mut self, user: crate::batch::state::names::UserId) {
        self.note_change();
        self.order.released(user);
    }

    /// Something changed that makes no room.
    pub(crate) fn note_change(&mut self) {
        self.changes += 1;
        self.needed = true;
    }

    /// The groups of users may be others than before.
    pub(crate) fn users_changed(&mut self) {
        self.classes.forget_users();
    }

    /// So many jobs are about to come: a table that grows moves what it has.
    pub(crate) fn expect(&mut self, jobs: usize) {
        self.entries.reserve(jobs);
    }

    fn entry(&self, job: u32, part: u32) -> Option<&Entry> {
        match part {
            0 => self.entries.get(&job),
            _ => self.parts.get(&(job, part)),
        }
    }

    fn keep(&mut self, job: u32, part: u32, e: Entry) {
        match part {
            0 => drop(self.entries.insert(job, e)),
            _ => drop(self.parts.insert((job, part), e)),
        }
    }

    /// The requirement of a job's class, where it was compiled.
    pub fn req(&self, job: u32, part: u32) -> Option<Rc<Req>> {
        self.classes.kept(self.entry(job, part)?.class)?.req.clone()
    }
}

impl Mbd {
    /// Runs a pass if one is due.
    pub(crate) fn schedule_due(&mut self, cx: &mut StepContext) {
        let now = cx.now.mono_us;
        // what is due is due when all jobs were looked at
        if self.works.refill.is_some() {
            return;
        }
        if self.sched.begin_timer.is_some_and(|t| t <= now) {
            self.begin_due(cx);
        }
        self.lone_due(cx);
        if self.sched.hosts.wake(now) {
            self.sched.note_change();
        }
        if let Some(unseen) = self.sched.order.take_turns(now) {
            self.sched.needed = true;
            unseen.iter().for_each(|head| self.sched.classes.get_mut(head.1).unseen = true);
        }
        if self.sched.needed {
            self.sched.needed = false;
            if self.sched.walk.is_none() {
                self.sched.classes.forget();
            }
            self.pass(cx);
        }
    }

    fn pass(&mut self, cx: &mut StepContext) {
        let mut fuel = Fuel(PASS_FUEL);
        while let Some(decision) = self.next_decision(&mut fuel) {
            fuel.spend(DECISION_COST);
            self.dispatch(cx, decision);
        }
        // the walk goes on, or another takes up what has changed meanwhile
        self.sched.needed |= self.sched.walk.is_some() || self.sched.hosts.any_changed();
    }

    fn next_decision(&mut self, fuel: &mut Fuel) -> Option<Decision> {
        let (sched, view) = self.sched_and_view();
        sched.next_decision(&view, fuel)
    }

    fn dispatch(&mut self, cx: &mut StepContext, decision: Decision) {
        let Decision { at, hosts, req } = decision;
        let attempt = self.st.elem(at).map_or(0, |e| e.attempts) + 1;
        let first = hosts[0].0;
        for (host, _) in &hosts {
            self.net.hosts[*host].last_dispatch = Some(cx.now.mono_us);
        }
        let event = JobStart {
            at,
            attempt,
            hosts: hosts.iter().map(|(h, n)| (self.st.names.host(*h).clone(), *n)).collect(),
            host_factor: self.net.hosts[first].cpu_factor(),
            eff_res_req: req.as_ref().map(|r| r.text.clone()).unwrap_or_default(),
            boot: self.net.hosts[first].boot_id.clone(),
        };
        self.emit(cx, Event::JobStart(Box::new(event)));
        for (host, _) in hosts {
            self.host_filled(host);
        }
        self.send_start(cx, JobKey { job: at.job, idx: at.idx, attempt });
    }

    /// Closes a host that takes no further job.
    fn host_filled(&mut self, host: HostId) {
        let (sched, view) = self.sched_and_view();
        if !sched.hosts.started(&view, host)
            && let Some(walk) = &mut sched.walk
        {
            walk.closed(host);
        }
    }
}

#[cfg(test)]
impl Mbd {
    /// Why a job finds no host.
    pub fn reasons_of(&self, job: u32) -> Rc<place::Reasons> {
        self.sched.reasons(&self.view(), JobRef { job, idx: 0 }, 0)
    }
}

#[cfg(test)]
impl Sched {
    /// Classes there is room for.
    pub fn places(&self) -> usize {
        self.classes.places()
    }
    /// Bytes of classes that are kept compiled.
    pub fn compiled_bytes(&self) -> usize {
        self.classes.compiled_bytes()
    }
    /// How often an element that waits by itself was looked at.
    pub fn lone_looks(&self) -> usize {
        self.lone.looks
    }
    /// Start times ahead.
    pub fn begins_left(&self) -> usize {
        self.begins.len()
    }
}
