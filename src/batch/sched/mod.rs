//! The scheduler: which pending job is ready, in which order, and when to look.
//!
//! Pending jobs that ask for the same thing are one class, considered once a pass: when a class
//! finds no place, none of its jobs does, until something changes that may make room. An array is
//! one entry until its elements are out. A pass runs at the end of a turn in which something
//! changed, or when a timer says so; its work is bounded by [`DISPATCH_PER_PASS`] and
//! [`LOOKS_PER_PASS`], and that of one user's classes by [`ready`], never by the number of pending
//! jobs.

mod lone;
mod place;
mod ready;

pub(crate) use place::{Reasons, split_host_word};
pub use ready::{CLASSES_PER_TURN, CLASSES_PER_USER, TURN_PAUSE_US};

use super::names::{HostId, QueueId, UserId};
use super::require::Req;
use super::state::{Body, Job};
use super::{Cx, Mbd};
use crate::lang::depend::DepValue;
use crate::model::event::{Event, JobStart, Spot};
use crate::model::idmap::IdMap;
use crate::model::job::{JobSpec, extra, opt};
use crate::model::reason::pend;
use crate::model::{JobKey, JobRef, Now};
use ready::{Ready, Seen, Walk};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// Dispatches of one pass; what is left over follows in the next turn.
pub const DISPATCH_PER_PASS: usize = 500;
/// Hosts that one pass holds against classes, each host once for each class and alternative; a
/// pass that is not over by then goes on in the next turn.
pub const LOOKS_PER_PASS: usize = 32_768;
/// Bytes of host words, host files and requirements that cost as much as a look at a host.
const BYTES_PER_LOOK: usize = 32;
/// Bytes of requirements that are kept compiled; compiled they take many times as much.
const MAX_COMPILED: usize = 1 << 20;
/// Host numbers in the reasons of all classes; beyond it reasons name no hosts.
const MAX_REASON_HOSTS: usize = 4 << 20;
/// Jobs that one turn takes from a timer.
pub const DUE_PER_TURN: usize = 1024;
/// So many classes are kept whether a job is pending in them or not.
pub const CLASSES_KEPT: usize = 1024;

/// The key of a class: pending jobs of one key are alike to the scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Kind {
    queue: QueueId,
    user: UserId,
    from_host: String,
    res_req: String,
    min: u32,
    max: u32,
    hosts: Vec<String>,
    /// -x.
    exclusive: bool,
    /// -hostfile: exactly these slots on these hosts; empty none.
    fixed: String,
    /// Hosts that these are not to be started on, and why: of single elements ([`lone`]).
    barred: Vec<(HostId, u32)>,
}

impl Kind {
    /// The work of holding so many hosts against it, in looks at a host.
    fn looks(&self, hosts: usize) -> usize {
        let words = self.hosts.iter().map(|word| word.len() + 1).sum::<usize>();
        1 + hosts + (self.res_req.len() + self.fixed.len() + words) / BYTES_PER_LOOK
    }
}

/// Dispatch order within a queue: user priority, then first come, unless moved; of one array by
/// the next element of each part, whose number comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    priority: Reverse<u32>,
    /// [`Spot`], without the gap that it would leave: there are very many.
    base: u64,
    between: u32,
    next: u32,
    part: u32,
}

/// Hosts with slots, and what the job asks for there.
type Found = (Vec<(HostId, u32)>, Option<Rc<Req>>);

/// The requirement of a class, parsed.
#[derive(Clone, Debug)]
struct Compiled {
    req: Option<Rc<Req>>,
    /// The requirement, one entry per rusage alternative; never empty.
    alternatives: Rc<[Option<Rc<Req>>]>,
}

/// The work that a pass may still do in this turn.
#[derive(Debug)]
struct Left {
    dispatches: usize,
    looks: usize,
}

impl Left {
    fn none(&self) -> bool {
        self.dispatches == 0 || self.looks == 0
    }
}

/// A class of pending jobs.
#[derive(Debug)]
struct Class {
    kind: Rc<Kind>,
    compiled: Option<Compiled>,
    /// Pending jobs and parts of them.
    pending: u32,
    /// In dispatch order; jobs that were moved within two queues may have one place.
    ready: BTreeSet<(Place, u32)>,
    /// [`Sched::changes`] when no place was found; 0: not looked at, or a place was found.
    looked: u64,
    /// Why no place was found: code with the hosts it holds for (none: all).
    reasons: Reasons,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    place: Place,
    class: u32,
    ready: bool,
}

// one for each pending job
const _: () = assert!(size_of::<Entry>() <= 32);

#[derive(Debug, Default)]
pub struct Sched {
    pub needed: bool,
    /// Counts changes that may make room for a class that found none.
    changes: u64,
    /// `changes` when the pass under way began.
    round: u64,
    /// The last pass has to go on in the next turn.
    unfinished: bool,
    classes: Vec<Class>,
    by_kind: HashMap<Rc<Kind>, usize>,
    /// Bytes of the requirements that are kept compiled.
    compiled: usize,
    /// Host numbers in the reasons of all classes.
    reason_hosts: usize,
    /// Classes that were forgotten: their places are given to new ones.
    free: Vec<usize>,
    /// With so many classes in use they are gone through again; see [`Sched::forget`].
    crowded: usize,
    /// The class found last, and of what: very many jobs share a submission.
    recent: Option<(QueueId, UserId, Arc<JobSpec>, usize)>,
    /// Classes with a ready job.
    ready: Ready,
    /// Queues that dispatch nothing, with the reason.
    shut: BTreeMap<QueueId, Reasons>,
    entries: IdMap<u32, Entry>,
    /// Entries of the parts of an array: (job, part from 1).
    parts: BTreeMap<(u32, u32), Entry>,
    /// Jobs whose start time has not come: (seconds, job).
    begins: BTreeMap<(i64, u32), ()>,
    /// Elements that wait otherwise than their likes.
    lone: lone::Lones,
    /// Now, as the step was told.
    pub now: Now,
    /// The next instant at which a host may take a job again.
    timer: Option<u64>,
    begin_timer: Option<u64>,
    /// When further classes of a user with very many have their turn.
    turn_timer: Option<u64>,
    /// How often hosts were held against a class.
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
        let timers = [self.timer, self.begin_timer, self.turn_timer, self.lone.deadline()];
        timers.into_iter().flatten().min()
    }

    /// The same with nothing known; changes are counted on.
    pub(crate) fn anew(&self) -> Sched {
        Sched { changes: self.changes, ..Sched::default() }
    }

    /// Changes so far that may make room, or take it.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Something changed that may make room for any class.
    pub(crate) fn changed(&mut self) {
        self.changes += 1;
        self.needed = true;
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

    /// Why the class of a ready job found no place.
    pub fn reasons(&self, job: u32) -> &[(u32, Vec<HostId>)] {
        self.reasons_of(job, 0)
    }

    /// Why the class of a ready part of a job found no place.
    pub fn reasons_of(&self, job: u32, part: u32) -> &[(u32, Vec<HostId>)] {
        self.entry(job, part).map_or(&[], |e| self.reasons_in(e.class))
    }

    /// The same of an element of that part.
    pub fn reasons_at(&self, at: JobRef, part: u32) -> &[(u32, Vec<HostId>)] {
        match self.lone.get(at) {
            Some(lone) => lone.entry.map_or(&[], |e| self.reasons_in(e.class)),
            None => self.reasons_of(at.job, part),
        }
    }

    fn reasons_in(&self, class: u32) -> &[(u32, Vec<HostId>)] {
        let class = &self.classes[class as usize];
        self.shut.get(&class.kind.queue).unwrap_or(&class.reasons)
    }

    pub fn req(&self, job: u32, part: u32) -> Option<Rc<Req>> {
        let class = &self.classes[self.entry(job, part)?.class as usize];
        class.compiled.as_ref()?.req.clone()
    }

    /// Keeps why a class found no place; of one beyond the first of its user without hosts, which
    /// would take memory for each of very many.
    fn keep_reasons(&mut self, class: usize, mut reasons: Reasons, beyond: bool) {
        let hosts = |all: &Reasons| all.iter().map(|r| r.1.len()).sum::<usize>();
        self.reason_hosts -= hosts(&self.classes[class].reasons);
        if beyond || self.reason_hosts + hosts(&reasons) > MAX_REASON_HOSTS {
            reasons.iter_mut().for_each(|r| r.1 = Vec::new());
        }
        if beyond {
            reasons.insert(0, (pend::USER_CLASSES, Vec::new()));
        }
        self.reason_hosts += hosts(&reasons);
        self.classes[class].reasons = reasons;
    }

    /// Forgets the compiled requirement of a class.
    fn drop_compiled(&mut self, class: usize) {
        let class = &mut self.classes[class];
        if class.compiled.take().is_some() {
            self.compiled -= class.kind.res_req.len();
        }
    }

    fn add_class(&mut self, kind: Kind) -> usize {
        let kind = Rc::new(kind);
        let (ready, reasons) = (BTreeSet::new(), Vec::new());
        let (compiled, pending, looked) = (None, 0, 0);
        let class = Class { kind: kind.clone(), compiled, pending, ready, looked, reasons };
        let c = self.free.pop().unwrap_or(self.classes.len());
        match self.classes.get_mut(c) {
            Some(place) => *place = class,
            None => self.classes.push(class),
        }
        self.by_kind.insert(kind, c);
        c
    }

    /// Forgets the classes without a pending job once they may be half of many: jobs that each
    /// ask for something of their own must not fill the memory. Not within a pass, which knows
    /// classes by their number.
    fn forget(&mut self) {
        if self.by_kind.len() < self.crowded.max(2 * CLASSES_KEPT) {
            return;
        }
        let gone = self.by_kind.values().copied().filter(|c| self.classes[*c].pending == 0);
        for c in gone.collect::<Vec<usize>>() {
            self.drop_compiled(c);
            self.keep_reasons(c, Vec::new(), false);
            let kind = std::mem::take(&mut self.classes[c].kind);
            self.by_kind.remove(&kind);
            self.free.push(c);
        }
        self.recent = None;
        self.crowded = 2 * self.by_kind.len();
    }

    /// A job becomes ready, or is no more.
    fn set_ready(&mut self, class: u32, place: Place, job: u32, ready: bool) {
        let Class { kind, ready: jobs, .. } = &mut self.classes[class as usize];
        let of = (kind.queue, kind.user);
        let before = jobs.first().map(|first| first.0);
        match ready {
            true => jobs.insert((place, job)),
            false => jobs.remove(&(place, job)),
        };
        let after = jobs.first().map(|first| first.0);
        if before != after {
            before.into_iter().for_each(|place| self.ready.remove(of, (place, class)));
            after.into_iter().for_each(|place| self.ready.insert(of, (place, class)));
        }
    }

    /// The first ready job of a class.
    fn head(&self, class: usize) -> Option<(Place, u32)> {
        self.classes[class].ready.first().copied()
    }

    /// A job changed in what its class or its place is made of.
    pub(crate) fn drop_entry(&mut self, id: u32) {
        let mut gone: Vec<Entry> = self.entries.remove(&id).into_iter().collect();
        let parts: Vec<u32> = self.parts.range((id, 0)..=(id, u32::MAX)).map(|p| p.0.1).collect();
        gone.extend(parts.iter().filter_map(|part| self.parts.remove(&(id, *part))));
        gone.extend(self.lone.remove_all(id));
        for e in &gone {
            self.classes[e.class as usize].pending -= 1;
            if e.ready {
                self.set_ready(e.class, e.place, id, false);
            }
        }
    }
}

impl Mbd {
    /// Looks again whether a job is ready, after anything about it has changed.
    pub(crate) fn refresh(&mut self, id: u32) {
        self.refresh_at(JobRef { job: id, idx: 0 });
    }

    /// The same, where one element has changed; idx 0 of an array: all of it.
    pub(crate) fn refresh_at(&mut self, at: JobRef) {
        let id = at.job;
        let Some(job) = self.st.jobs.get(&id) else {
            self.sched.drop_entry(id);
            return;
        };
        if job.tally.pend + job.tally.psusp == 0 {
            self.sched.drop_entry(id);
            return;
        }
        self.eligible_touched(id);
        self.refresh_lones(at);
        let Some(job) = self.st.jobs.get(&id) else { return };
        let parts = job.parts().len() as u32;
        for part in 0..=parts {
            self.refresh_part(id, part);
        }
    }

    fn refresh_part(&mut self, id: u32, part: u32) {
        let Some(job) = self.st.jobs.get(&id) else { return };
        let ready = self.ready(job, part);
        let next = match job.parts().is_empty() || !ready {
            true => 0,
            false => self.next_element(id, part).map_or(0, |at| at.idx),
        };
        let known = self.sched.entry(id, part).copied();
        let entry = match known {
            Some(e) => e,
            None => {
                let priority = Reverse(self.priority(job.spec_of(part)));
                let Spot { base, between } = self.st.spot_of(job, part);
                let place = Place { priority, base, between, next, part };
                let class = self.class_of(id, part, &[]);
                self.sched.classes[class].pending += 1;
                Entry { class: class as u32, place, ready: false }
            }
        };
        let place = Place { next, ..entry.place };
        if known.is_some() && (ready, place) == (entry.ready, entry.place) {
            return;
        }
        if entry.ready {
            self.sched.set_ready(entry.class, entry.place, id, false);
        }
        if ready {
            self.sched.set_ready(entry.class, place, id, true);
        }
        self.sched.keep(id, part, Entry { ready, place, ..entry });
    }

    fn ready(&self, job: &Job, part: u32) -> bool {
        if !self.may_start(job, part) || job.waiting(part) <= self.sched.lone.of_part(job.id, part)
        {
            return false;
        }
        if !job.depend.as_ref().is_some_and(|d| d.per_element()) {
            return self.deps.value(job.id) == DepValue::True;
        }
        self.ready_element(job, part).is_some()
    }

    /// Does nothing keep all of a part from starting, but what it depends on?
    fn may_start(&self, job: &Job, part: u32) -> bool {
        !job.damaged
            && job.tally.pend > 0
            && !job.at_limit()
            && !self.sched.begins.contains_key(&(job.spec_of(part).begin_time, job.id))
    }

    /// The first element of a part whose own condition holds, where elements wait one by one.
    fn ready_element(&self, job: &Job, part: u32) -> Option<u32> {
        let mine = |idx: &&u32| {
            job.part_no(**idx) == part && !self.sched.lone.has(JobRef { job: job.id, idx: **idx })
        };
        self.deps.ready_elements(job.id)?.iter().find(mine).copied()
    }

    /// Puts a job with a start time ahead on the timer.
    pub(crate) fn watch_begin(&mut self, cx: &Cx, id: u32) {
        let Some(job) = self.st.jobs.get(&id) else { return };
        let mut ahead = false;
        for begin in begins(job).filter(|begin| *begin > cx.now.secs()) {
            self.sched.begins.insert((begin, id), ());
            ahead = true;
        }
        if ahead {
            self.set_begin_timer(cx);
            self.refresh(id);
        }
    }

    /// Its start time is about to be another one.
    pub(crate) fn unwatch_begin(&mut self, cx: &Cx, id: u32) {
        if let Some(job) = self.st.jobs.get(&id) {
            for begin in begins(job) {
                self.sched.begins.remove(&(begin, id));
            }
            self.set_begin_timer(cx);
        }
    }

    /// All start times, whether ahead or over, to be looked at in the next turn.
    pub(crate) fn begins_rebuilt(&mut self) {
        let pending = |j: &&Job| j.tally.pend + j.tally.psusp > 0 && has_begin(j);
        let ids: Vec<u32> = self.st.each_job().filter(pending).map(|j| j.id).collect();
        ids.into_iter().for_each(|id| self.begins_of(id));
    }

    /// The start times of one job, likewise.
    pub(crate) fn begins_of(&mut self, id: u32) {
        let Some(job) = self.st.jobs.get(&id) else { return };
        for begin in begins(job).filter(|begin| *begin > 0) {
            self.sched.begins.insert((begin, id), ());
            self.sched.begin_timer = Some(0);
        }
    }

    fn set_begin_timer(&mut self, cx: &Cx) {
        let first = self.sched.begins.keys().next();
        self.sched.begin_timer = first.map(|(t, _)| cx.now.mono_of_wall(*t));
    }

    fn begin_due(&mut self, cx: &Cx) {
        for _ in 0..DUE_PER_TURN {
            let Some(&(t, id)) = self.sched.begins.keys().next() else { break };
            if t > cx.now.secs() {
                break;
            }
            self.sched.begins.remove(&(t, id));
            self.refresh(id);
            self.sched.needed = true;
        }
        self.set_begin_timer(cx);
    }

    fn class_of(&mut self, id: u32, part: u32, barred: &[(HostId, u32)]) -> usize {
        let job = &self.st.jobs[&id];
        let (spec, queue, user) = (job.spec_of(part).clone(), job.queue_of(part), job.user);
        if let Some((of, who, like, c)) = &self.sched.recent
            && barred.is_empty()
            && (*of, *who) == (queue, user)
            && Arc::ptr_eq(like, &spec)
        {
            return *c;
        }
        let kind = Kind {
            queue,
            user,
            from_host: spec.from_host.clone(),
            res_req: spec.res_req.clone(),
            min: spec.min_slots.max(1),
            max: spec.max_slots.max(spec.min_slots).max(1),
            hosts: spec.hosts.clone(),
            exclusive: spec.options & opt::EXCLUSIVE != 0,
            fixed: spec.given(extra::HOST_SLOTS).to_string(),
            barred: barred.to_vec(),
        };
        let c = match self.sched.by_kind.get(&kind) {
            Some(c) => *c,
            None => self.sched.add_class(kind),
        };
        if barred.is_empty() {
            self.sched.recent = Some((queue, user, spec, c));
        }
        c
    }

    /// The requirement that acts for a job: its own over its queue's, with defaults.
    pub(crate) fn combined_req(
        &self,
        job: &Job,
        part: u32,
    ) -> Result<Req, crate::lang::resreq::ResReqError> {
        let spec = job.spec_of(part);
        self.combined(job.queue_of(part), &spec.res_req, !spec.hosts.is_empty())
    }

    fn combined(
        &self,
        queue: QueueId,
        res_req: &str,
        asked: bool,
    ) -> Result<Req, crate::lang::resreq::ResReqError> {
        let queue = self.pol.queue(queue);
        let of_queue = queue.and_then(|q| q.req.as_deref());
        Req::combined(res_req, of_queue, asked, &self.pol.names)
    }

    /// The requirement of a class, compiled; kept where it is one of its user's first and there
    /// is room.
    fn compiled(&mut self, class: usize, beyond: bool) -> Compiled {
        let c = &self.sched.classes[class];
        if let Some(compiled) = &c.compiled {
            return compiled.clone();
        }
        let (kind, len) = (c.kind.clone(), c.kind.res_req.len());
        let req = self.combined(kind.queue, &kind.res_req, !kind.hosts.is_empty());
        let req = req.ok().map(Rc::new);
        let alternatives = match &req {
            Some(r) => r.alternatives().map_or_else(
                || vec![req.clone()],
                |all| all.into_iter().map(|r| Some(Rc::new(r))).collect(),
            ),
            None => vec![None],
        };
        let compiled = Compiled { req, alternatives: alternatives.into() };
        if !beyond && self.sched.compiled + len <= MAX_COMPILED {
            self.sched.compiled += len;
            self.sched.classes[class].compiled = Some(compiled.clone());
        }
        compiled
    }

    /// Runs a pass if one is due.
    pub(crate) fn schedule_due(&mut self, cx: &mut Cx) {
        let now = cx.now.mono_us;
        // what is due is due when all jobs were looked at
        if self.works.refill.is_some() {
            return;
        }
        if self.sched.begin_timer.is_some_and(|t| t <= now) {
            self.begin_due(cx);
        }
        self.lone_due(cx);
        if self.sched.timer.is_some_and(|t| t <= now) {
            self.sched.timer = None;
            self.sched.changed();
        }
        if self.sched.needed || self.sched.turn_timer.is_some_and(|t| t <= now) {
            self.sched.needed = false;
            self.sched.forget();
            self.pass(cx);
        }
    }

    fn pass(&mut self, cx: &mut Cx) {
        let pol = self.pol.clone();
        self.reserve_sum(cx);
        if !std::mem::take(&mut self.sched.unfinished) {
            self.sched.round = self.sched.changes;
        }
        self.sched.turn_timer = None;
        let mut left = Left { dispatches: DISPATCH_PER_PASS, looks: LOOKS_PER_PASS };
        for queue in &pol.queues {
            let sym = queue.id;
            let inactive = self.st.queue_ctl.get(&queue.id).is_some_and(|c| c.inactive);
            let why = match inactive {
                true => Some(pend::QUEUE_INACT),
                false => self.queue_shut(queue.id).then_some(pend::QUEUE_WINDOW),
            };
            if let Some(why) = why {
                self.sched.shut.insert(sym, vec![(why, Vec::new())]);
                continue;
            }
            self.sched.shut.remove(&sym);
            self.pass_queue(cx, queue, sym, &mut left);
            if left.none() {
                self.sched.needed = true;
                // what made room by its end is not held against those before in the order
                self.sched.unfinished = left.dispatches > 0;
                return;
            }
            let turn = self.sched.ready.timer(sym, self.sched.changes);
            let turn = turn.map(|t| t.max(cx.now.mono_us + 1));
            self.sched.turn_timer = [self.sched.turn_timer, turn].into_iter().flatten().min();
        }
        self.sched.needed |= self.sched.changes != self.sched.round;
    }

    /// Jobs of one queue in order, class by class as their heads come up.
    fn pass_queue(
        &mut self,
        cx: &mut Cx,
        queue: &super::policy::Queue,
        sym: QueueId,
        left: &mut Left,
    ) {
        let mut walks: HashMap<UserId, Walk> = HashMap::new();
        let mut heads: BinaryHeap<Reverse<(Place, u32, UserId)>> = BinaryHeap::new();
        let changes = self.sched.changes;
        let users: Vec<UserId> = self.sched.ready.users(sym, changes).collect();
        for user in users {
            let mut walk = Walk::new((changes == self.sched.round).then_some(changes));
            heads.extend(self.walk_on(cx, (sym, user), &mut walk));
            walks.insert(user, walk);
        }
        let mut found: HashMap<usize, Vec<place::Candidates>> = HashMap::new();
        while let Some(Reverse((place, c, user))) = heads.pop() {
            #[cfg(test)]
            {
                self.sched.visits += 1;
            }
            let Some(walk) = walks.get_mut(&user) else { continue };
            let class = c as usize;
            let looked = self.sched.classes[class].looked;
            let seen = match looked > 0 && looked >= self.sched.round {
                _ if found.contains_key(&class) => Seen::Again,
                true => Seen::PassedOver,
                false => Seen::Looked,
            };
            walk.count(seen);
            let mut started = false;
            if seen != Seen::PassedOver {
                let at = (class, place, walk.beyond());
                started = self.pass_head(cx, queue, at, &mut found, left);
                if left.none() {
                    return;
                }
            }
            // an array stays where it is until its elements are out
            let again = self.sched.head(class).filter(|head| started && head.0 <= place);
            match again {
                Some((place, _)) => heads.push(Reverse((place, c, user))),
                None => heads.extend(self.walk_on(cx, (sym, user), walk)),
            }
        }
    }

    fn walk_on(
        &mut self,
        cx: &Cx,
        of: (QueueId, UserId),
        walk: &mut Walk,
    ) -> Option<Reverse<(Place, u32, UserId)>> {
        let Sched { ready, changes, .. } = &mut self.sched;
        let (place, class) = ready.next(of, walk, cx.now.mono_us, *changes)?;
        Some(Reverse((place, class, of.1)))
    }

    /// Starts the first job of a class, or keeps why there is no place for it; whether it started.
    fn pass_head(
        &mut self,
        cx: &mut Cx,
        queue: &super::policy::Queue,
        (c, place, beyond): (usize, Place, bool),
        found: &mut HashMap<usize, Vec<place::Candidates>>,
        left: &mut Left,
    ) -> bool {
        let Some((_, id)) = self.sched.head(c).filter(|head| head.0 == place) else {
            return false;
        };
        let at = match self.sched.classes[c].kind.barred.is_empty() {
            true => self.next_element(id, place.part),
            false => Some(JobRef { job: id, idx: place.next }),
        };
        let Some(at) = at else {
            // Nothing of it can go: it should not have been ready.
            self.refresh(id);
            return false;
        };
        #[cfg(test)]
        {
            self.sched.looks += 1;
        }
        let Compiled { req, alternatives } = self.compiled(c, beyond);
        let (room, code) = self.consumer_room(queue, c);
        let why = match room < u64::from(self.sched.classes[c].kind.min) {
            true => vec![(code, Vec::new())],
            false => {
                let cost = self.sched.classes[c].kind.looks(self.net.hosts.len());
                left.looks = left.looks.saturating_sub(cost * alternatives.len());
                let mut cands = found.remove(&c).unwrap_or_else(|| {
                    let cands = self.candidates(cx, queue, c, req.as_deref());
                    vec![cands; alternatives.len()]
                });
                match self.find_first(cx, queue, (c, room, &alternatives), &mut cands) {
                    Ok((hosts, req)) => {
                        found.insert(c, cands);
                        self.sched.keep_reasons(c, Vec::new(), false);
                        self.sched.classes[c].looked = 0;
                        self.dispatch(cx, req.as_deref(), at, hosts);
                        left.dispatches -= 1;
                        return true;
                    }
                    Err(reasons) => reasons,
                }
            }
        };
        self.sched.classes[c].looked = self.sched.changes;
        self.sched.keep_reasons(c, why, beyond);
        if beyond {
            self.sched.drop_compiled(c);
        }
        false
    }

    /// A place by the first alternative of the class that has one, and that alternative.
    fn find_first(
        &mut self,
        cx: &Cx,
        queue: &super::policy::Queue,
        (class, room, alternatives): (usize, u64, &[Option<Rc<Req>>]),
        cands: &mut [place::Candidates],
    ) -> Result<Found, Reasons> {
        let mut why = Err(Vec::new());
        for (n, (cands, req)) in cands.iter_mut().zip(alternatives).enumerate() {
            match self.find_place(cx, queue, (class, room), (cands, req.as_deref())) {
                Ok(hosts) => return Ok((hosts, req.clone())),
                // the first one's tell most
                Err(reasons) if n == 0 => why = Err(reasons),
                Err(_) => {}
            }
        }
        why
    }

    /// The next element of a ready part of a job that may go: the lowest index.
    fn next_element(&self, id: u32, part: u32) -> Option<JobRef> {
        let job = self.st.jobs.get(&id)?;
        let at = |idx| JobRef { job: id, idx };
        let Body::Array(a) = &job.body else { return Some(at(0)) };
        if self.deps.ready_elements(id).is_some() {
            return self.ready_element(job, part).map(at);
        }
        let lone = self.sched.lone.of_part(id, part);
        let alike = |idx: &u32| lone == 0 || !self.sched.lone.has(at(*idx));
        if let Some(p) = job.part(part) {
            return p.waiting.iter().copied().find(alike).map(at);
        }
        let fresh = a.first_fresh();
        let own = match a.waiting.len() > lone as usize {
            true => a.waiting.iter().copied().find(alike),
            false => None,
        };
        [fresh, own].into_iter().flatten().min().map(at)
    }

    fn dispatch(&mut self, cx: &mut Cx, req: Option<&Req>, at: JobRef, hosts: Vec<(HostId, u32)>) {
        let attempt = self.st.elem(at).map_or(0, |e| e.attempts) + 1;
        let first = hosts[0].0;
        for (i, _) in &hosts {
            self.net.hosts[*i].last_dispatch = Some(cx.now.mono_us);
        }
        let event = JobStart {
            at,
            attempt,
            hosts: hosts.iter().map(|(i, n)| (self.net.hosts[*i].name.clone(), *n)).collect(),
            host_factor: self.net.hosts[first].cpu_factor(),
            eff_res_req: req.map_or(String::new(), |r| r.0.to_string()),
            boot: self.net.hosts[first].boot_id.clone(),
        };
        self.emit(cx, Event::JobStart(Box::new(event)));
        self.reserve_started(cx, at, req.and_then(|r| r.0.first()));
        self.send_start(cx, JobKey { job: at.job, idx: at.idx, attempt });
    }
}

fn has_begin(job: &Job) -> bool {
    begins(job).any(|begin| begin > 0)
}

/// The start times of a job and its parts.
fn begins(job: &Job) -> impl Iterator<Item = i64> + '_ {
    (0..=job.parts().len() as u32).map(|part| job.spec_of(part).begin_time)
}

#[cfg(test)]
impl Sched {
    /// Classes there is room for.
    pub fn places(&self) -> usize {
        self.classes.len()
    }
    /// Host numbers kept in reasons, classes with a compiled requirement.
    pub fn kept(&self) -> (usize, usize) {
        (self.reason_hosts, self.classes.iter().filter(|c| c.compiled.is_some()).count())
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
