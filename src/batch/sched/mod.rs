//! The scheduler: which pending job is ready, in which order, and when to look.
//!
//! Pending jobs that ask for the same thing are one class, considered once a pass: when a class
//! finds no place, none of its jobs does. An array is one entry until its elements are out. A
//! pass runs at the end of a turn in which something changed, or when a timer says so; its work
//! is bounded by what it dispatches and by classes, never by the number of pending jobs.

mod lone;
mod place;

pub(crate) use place::split_host_word;

use super::names::Sym;
use super::require::Req;
use super::state::{Body, ElemState, Job};
use super::{Cx, Mbd};
use crate::lang::depend::DepValue;
use crate::model::event::{Event, JobStart, Spot};
use crate::model::idmap::IdMap;
use crate::model::job::{JobSpec, extra, opt};
use crate::model::reason::pend;
use crate::model::{JobKey, JobRef, Now};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// Dispatches of one pass; what is left over follows in the next turn.
pub const DISPATCH_PER_PASS: usize = 500;
/// So many classes are kept whether a job is pending in them or not.
pub const CLASSES_KEPT: usize = 1024;

/// What makes two pending jobs alike to the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Kind {
    queue: Sym,
    user: Sym,
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
    barred: Vec<(Sym, u32)>,
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
type Found = (Vec<(usize, u32)>, Option<Rc<Req>>);

/// A class of pending jobs.
#[derive(Debug)]
pub struct Class {
    kind: Kind,
    pub req: Option<Rc<Req>>,
    /// It, once for each alternative of its rusage; never empty.
    alternatives: Vec<Option<Rc<Req>>>,
    /// Pending jobs and parts of them.
    pending: u32,
    ready: BTreeMap<Place, u32>,
    /// Why no place was found in the last pass: code with the hosts it holds for (none: all).
    pub reasons: Vec<(u32, Vec<usize>)>,
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
    classes: Vec<Class>,
    by_kind: HashMap<Kind, usize>,
    /// Classes that were forgotten: their places are given to new ones.
    free: Vec<usize>,
    /// With so many classes in use they are gone through again; see [`Sched::forget`].
    crowded: usize,
    /// The class found last, and of what: very many jobs share a submission.
    recent: Option<(Sym, Sym, Arc<JobSpec>, usize)>,
    /// Classes with a ready job.
    some_ready: BTreeSet<usize>,
    entries: IdMap<u32, Entry>,
    /// Those of the parts of an array: (job, part from 1).
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
}

impl Sched {
    pub fn deadline(&self) -> Option<u64> {
        if self.needed {
            return Some(0);
        }
        [self.timer, self.begin_timer, self.lone.deadline()].into_iter().flatten().min()
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
    pub fn reasons(&self, job: u32) -> &[(u32, Vec<usize>)] {
        self.reasons_of(job, 0)
    }

    /// Why the class of a ready part of a job found no place.
    pub fn reasons_of(&self, job: u32, part: u32) -> &[(u32, Vec<usize>)] {
        self.entry(job, part).map_or(&[], |e| &self.classes[e.class as usize].reasons)
    }

    /// The same of an element of that part.
    pub fn reasons_at(&self, at: JobRef, part: u32) -> &[(u32, Vec<usize>)] {
        match self.lone.get(at) {
            Some(lone) => lone.entry.map_or(&[], |e| &self.classes[e.class as usize].reasons),
            None => self.reasons_of(at.job, part),
        }
    }

    pub fn req(&self, job: u32, part: u32) -> Option<Rc<Req>> {
        self.classes[self.entry(job, part)?.class as usize].req.clone()
    }

    fn add_class(&mut self, kind: Kind, req: Option<Rc<Req>>) -> usize {
        let alternatives = match &req {
            Some(r) => r.alternatives().into_iter().map(|r| Some(Rc::new(r))).collect(),
            None => vec![None],
        };
        let (ready, reasons) = (BTreeMap::new(), Vec::new());
        let class = Class { kind: kind.clone(), req, alternatives, pending: 0, ready, reasons };
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
        let Sched { classes, by_kind, free, .. } = self;
        by_kind.retain(|_, c| {
            let class = &mut classes[*c];
            if class.pending > 0 {
                return true;
            }
            (class.req, class.alternatives, class.reasons) = (None, Vec::new(), Vec::new());
            free.push(*c);
            false
        });
        self.recent = None;
        self.crowded = 2 * self.by_kind.len();
    }

    /// A job becomes ready, or is no more.
    fn set_ready(&mut self, class: u32, place: Place, job: u32, ready: bool) {
        let class = class as usize;
        let jobs = &mut self.classes[class].ready;
        if ready {
            jobs.insert(place, job);
            self.some_ready.insert(class);
        } else {
            jobs.remove(&place);
            if jobs.is_empty() {
                self.some_ready.remove(&class);
            }
        }
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
        while let Some(&(t, id)) = self.sched.begins.keys().next() {
            if t > cx.now.secs() {
                break;
            }
            self.sched.begins.remove(&(t, id));
            self.refresh(id);
            self.sched.needed = true;
        }
        self.set_begin_timer(cx);
    }

    fn class_of(&mut self, id: u32, part: u32, barred: &[(Sym, u32)]) -> usize {
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
            None => {
                let req = self.combined_req(job, part).ok().map(Rc::new);
                self.sched.add_class(kind, req)
            }
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
        let queue = self.pol.find_queue(self.st.names.text(job.queue_of(part)));
        let spec = job.spec_of(part);
        let asked = !spec.hosts.is_empty();
        let of_queue = queue.and_then(|q| q.req.as_deref());
        Req::combined(&spec.res_req, of_queue, asked, &self.pol.names)
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
        if self.sched.needed || self.sched.timer.is_some_and(|t| t <= now) {
            self.sched.needed = false;
            self.sched.timer = None;
            self.sched.forget();
            self.pass(cx);
        }
    }

    fn pass(&mut self, cx: &mut Cx) {
        let pol = self.pol.clone();
        self.reserve_sum(cx);
        let mut by_queue: HashMap<Sym, Vec<usize>> = HashMap::new();
        for &c in &self.sched.some_ready {
            by_queue.entry(self.sched.classes[c].kind.queue).or_default().push(c);
        }
        let mut budget = DISPATCH_PER_PASS;
        for queue in &pol.queues {
            let Some(sym) = self.st.names.find(&queue.conf.name) else { continue };
            let Some(classes) = by_queue.remove(&sym) else { continue };
            if self.st.queue_ctl.get(&queue.conf.name).is_some_and(|c| c.inactive) {
                for c in classes {
                    self.sched.classes[c].reasons = vec![(pend::QUEUE_INACT, Vec::new())];
                }
                continue;
            }
            if self.queue_shut(&queue.conf.name) {
                for c in classes {
                    self.sched.classes[c].reasons = vec![(pend::QUEUE_WINDOW, Vec::new())];
                }
                continue;
            }
            self.pass_queue(cx, queue, classes, &mut budget);
            if budget == 0 {
                self.sched.needed = true;
                return;
            }
        }
    }

    /// Jobs of one queue in order, class by class as their heads come up.
    fn pass_queue(
        &mut self,
        cx: &mut Cx,
        queue: &super::policy::Queue,
        classes: Vec<usize>,
        budget: &mut usize,
    ) {
        let head =
            |s: &Self, c: usize| s.sched.classes[c].ready.iter().next().map(|(p, j)| (*p, *j));
        let mut heads: BinaryHeap<Reverse<(Place, usize)>> = BinaryHeap::new();
        for &c in &classes {
            heads.extend(head(self, c).map(|(p, _)| Reverse((p, c))));
        }
        let mut found: HashMap<usize, Vec<place::Candidates>> = HashMap::new();
        while let Some(Reverse((_, c))) = heads.pop() {
            if *budget == 0 {
                return;
            }
            let Some((place, id)) = head(self, c) else { continue };
            let at = match self.sched.classes[c].kind.barred.is_empty() {
                true => self.next_element(id, place.part),
                false => Some(JobRef { job: id, idx: place.next }),
            };
            let Some(at) = at else {
                // Nothing of it can go: it should not have been ready.
                self.refresh(id);
                if head(self, c).is_some_and(|(p, _)| p != place) {
                    heads.extend(head(self, c).map(|(p, _)| Reverse((p, c))));
                }
                continue;
            };
            if !found.contains_key(&c) {
                let cands = self.candidates(cx, queue, c);
                found.insert(c, vec![cands; self.sched.classes[c].alternatives.len()]);
            }
            let Some(cands) = found.get_mut(&c) else { continue };
            match self.find_first(cx, queue, c, cands) {
                Ok((hosts, req)) => {
                    self.sched.classes[c].reasons.clear();
                    self.dispatch(cx, req.as_deref(), at, hosts);
                    *budget -= 1;
                    heads.extend(head(self, c).map(|(p, _)| Reverse((p, c))));
                }
                Err(reasons) => self.sched.classes[c].reasons = reasons,
            }
        }
    }

    /// A place by the first alternative of the class that has one, and that alternative.
    fn find_first(
        &mut self,
        cx: &Cx,
        queue: &super::policy::Queue,
        class: usize,
        cands: &mut [place::Candidates],
    ) -> Result<Found, place::Reasons> {
        let mut why = Err(Vec::new());
        for (n, cands) in cands.iter_mut().enumerate() {
            let req = self.sched.classes[class].alternatives[n].clone();
            match self.find_place(cx, queue, class, (cands, req.as_deref())) {
                Ok(hosts) => return Ok((hosts, req)),
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
        let own = if job.waiting(0) > a.fresh.left() + lone {
            let waits = |e: &super::state::Elem| {
                e.part == 0 && matches!(&e.state, ElemState::Pend(p) if p.held.is_none())
            };
            a.own.iter().filter(|(_, e)| waits(e)).map(|(i, _)| *i).find(alike)
        } else {
            None
        };
        [fresh, own].into_iter().flatten().min().map(at)
    }

    fn dispatch(&mut self, cx: &mut Cx, req: Option<&Req>, at: JobRef, hosts: Vec<(usize, u32)>) {
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
}
