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
pub mod host_snapshot;
mod lone;
mod open_hosts;
mod order;
mod place;
mod readiness;
pub mod view;
mod walk;

pub use classes::{BYTES_PER_HOST, CLASSES_KEPT};
pub use order::{CLASSES_PER_TURN, LOOKS_PER_USER, TURN_PAUSE_US};
#[cfg(test)]
pub(crate) use place::Reasons;
pub(crate) use place::split_host_word;

use crate::batch::site::requirements::Req;
use crate::batch::state::names::HostId;
use crate::model::idmap::IdMap;
use crate::model::{JobRef, Now};
use classes::Classes;
use open_hosts::OpenHosts;
use order::DispatchOrder;
use place::Alternative;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;
use view::View;
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
pub(crate) struct Decision {
    pub at: JobRef,
    /// Never empty; the first is the first execution host.
    pub hosts: Vec<(HostId, u32)>,
    /// The text of the requirement.
    pub req: Option<Rc<Alternative>>,
}

/// The work that a pass may still do in this turn.
#[derive(Debug)]
pub(crate) struct Fuel(usize);

impl Fuel {
    /// What a pass may spend in one turn.
    pub(crate) fn of_a_turn() -> Fuel {
        Fuel(PASS_FUEL)
    }
    /// A decision is carried out.
    pub(crate) fn spend_decision(&mut self) {
        self.spend(DECISION_COST);
    }
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
    /// How often a pass came to a host for a class.
    #[cfg(test)]
    pub host_looks: usize,
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

impl Sched {
    /// Begins a pass if one is due.
    pub(crate) fn begin_pass(&mut self, now: Now) -> bool {
        if self.hosts.wake(now.mono_us) {
            self.note_change();
        }
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
