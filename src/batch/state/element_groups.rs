//! The changes of bmod, bswitch, btop and bbot: to a whole job, or to elements of an array.
//! Elements that were changed alike form a part (`array::ElementGroup`); the rest is as the job is.
//! Like everything that changes the state this is only reached through `apply`.

use crate::batch::state::array::Ranges;
use crate::batch::state::change::{Applied, Change, ChangeKind, Switched};
use crate::batch::state::counts::{Counts, owner};
use crate::batch::state::names::{QueueId, UserId};
use crate::batch::state::space::Space;
use crate::batch::state::{Body, ElemState, ElementGroup, ElementSpec, Job, State};
use crate::lang::depend::Resolved;
use crate::lang::jobname::JobName;
use crate::model::JobRef;
use crate::model::event::{JobModify, QueuePosition};
use crate::model::job::{JobSpec, SpoolRef};
use crate::model::nqs::Route;
use crate::model::specfield::SpecField;
use std::rc::Rc;
use std::sync::Arc;

/// Elements that join others at once, at most.
const JOINED: usize = 256;

/// Runs of indices, as short as they can be said.
pub fn ranges(indices: impl IntoIterator<Item = u32>) -> Vec<(u32, u32, u32)> {
    let mut out: Vec<(u32, u32, u32)> = Vec::new();
    for idx in indices {
        match out.last_mut() {
            Some((_, last, _)) if *last + 1 == idx => *last = idx,
            _ => out.push((idx, idx, 1)),
        }
    }
    out
}

pub(super) fn resolved(spec: &JobSpec) -> Option<Resolved> {
    let condition = &spec.further.resolved_condition;
    (!condition.is_empty()).then(|| Resolved::parse(condition).ok()).flatten()
}

impl State {
    /// Every counter of the job follows it to the queue.
    pub(super) fn switch(&mut self, at: JobRef, queue: &str, route: Option<&Route>) -> Applied {
        let to = self.names.queue_id(queue);
        if at.idx != 0 {
            return self.switch_elements(at.job, &[(at.idx, at.idx, 1)], queue, route);
        }
        let before = Space::before(self.job(at.job), &self.modifications);
        let did = self.recount(at.job, |job| {
            job.queue = to;
            Arc::make_mut(&mut job.spec).switch(queue, route);
            if let Body::Array(a) = &mut job.body {
                for part in &mut a.parts {
                    part.look.queue = to;
                    Arc::make_mut(&mut part.look.spec).switch(queue, route);
                }
            }
        });
        self.note_space(at.job, before, &[]);
        did
    }

    /// Elements of an array go to another queue.
    pub(super) fn switch_elements(
        &mut self,
        id: u32,
        elems: &Ranges,
        queue: &str,
        route: Option<&Route>,
    ) -> Applied {
        let to = self.names.queue_id(queue);
        self.change_elements(id, elems, |look| {
            let mut spec = (*look.spec).clone();
            spec.switch(queue, route);
            ElementSpec { queue: to, spec: Arc::new(spec), ..look.clone() }
        })
    }

    /// Changes a job in what its counters are made of.
    fn recount(&mut self, id: u32, change: impl FnOnce(&mut Job)) -> Applied {
        let Some(job) = self.jobs.get_mut(&id) else {
            return Applied::Rejected("no such job");
        };
        let queues: Vec<QueueId> =
            (0..=job.parts().len() as u32).map(|p| job.queue_of(p)).collect();
        self.counts.pending(job, false);
        change(job);
        self.counts.pending(job, true);
        let switched = self.counts.started_moved(job, &queues);
        Applied::modified(id, false, switched)
    }

    /// Moves elements of an array that are in memory into the element group that `change` gives for
    /// their properties.
    fn change_elements(
        &mut self,
        id: u32,
        elems: &Ranges,
        change: impl Fn(&ElementSpec) -> ElementSpec,
    ) -> Applied {
        let Some(job) = self.jobs.get_mut(&id) else { return Applied::Rejected("no such job") };
        let whole = ElementSpec { queue: job.queue, spec: job.spec.clone(), spot: None };
        let indices: Vec<u32> = match &job.body {
            Body::Array(a) => a.named(elems).collect(),
            Body::Single(_) => return Applied::Rejected("a change of an element of no array"),
        };
        // from which part into which
        let mut known: Vec<(u32, u32)> = Vec::new();
        let mut switched = Vec::new();
        for idx in indices {
            if job.view(idx).is_none() {
                continue;
            }
            let from = job.part_no(idx);
            let Body::Array(a) = &mut job.body else { break };
            let to = match known.iter().find(|k| k.0 == from) {
                Some(k) => k.1,
                None => {
                    let now = (from as usize).checked_sub(1).and_then(|i| a.parts.get(i));
                    let look = change(now.map_or(&whole, |p| &p.look));
                    let to = a.part_like(look);
                    known.push((from, to));
                    to
                }
            };
            put_in_part(&mut self.counts, &mut switched, job, idx, to);
        }
        Applied::modified(id, true, switched)
    }

    /// Changes all elements at once that are of the part of this one.
    fn change_part(
        &mut self,
        at: JobRef,
        change: impl FnOnce(&ElementSpec) -> ElementSpec,
    ) -> Applied {
        let part = self.jobs.get(&at.job).map_or(0, |job| job.part_no(at.idx));
        if part == 0 {
            return Applied::Rejected("a change of elements that were not changed before");
        }
        let did = self.recount(at.job, |job| {
            if let Body::Array(a) = &mut job.body
                && let Some(part) = a.part_mut(part)
            {
                part.look = change(&part.look);
            }
        });
        self.join_part(at.job, part);
        did
    }

    /// Elements that have become of the same submission as those of another part join these, where
    /// they are few: parts are bounded in number.
    fn join_part(&mut self, id: u32, part: u32) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(own) = job.part(part) else { return };
        let like = |p: &ElementGroup| !p.elems.is_empty() && p.look == own.look;
        let mut others = job.parts().iter().zip(1..).filter(|(p, no)| *no != part && like(p));
        let Some((other, no)) = others.next() else { return };
        let (few, to) = match own.elems.len() <= other.elems.len() {
            true => (own, no),
            false => (other, part),
        };
        if few.elems.len() <= JOINED {
            let few: Vec<u32> = few.elems.iter().copied().collect();
            let mut switched = Vec::new();
            few.into_iter().for_each(|idx| {
                put_in_part(&mut self.counts, &mut switched, job, idx, to);
            });
            debug_assert!(switched.is_empty(), "parts that are alike are of one queue");
        }
    }

    pub(super) fn modify(&mut self, m: &JobModify) -> Applied {
        let queue = self.names.queue_id(&m.spec.queue);
        let before = Space::before(self.job(m.job), &self.modifications);
        use SpecField::{Command, Env, Script};
        let other = [Command, Script, Env].iter().any(|f| m.fields.contains(f));
        if let Some(job) = self.jobs.get(&m.job).filter(|_| other) {
            self.modifications.note_first(job);
        }
        self.tries.begin_job_anew(m.job);
        let did = if m.elems.is_empty() {
            let named = self.jobs.get(&m.job).map(|j| (j.user, j.name.name.clone()));
            let user = named.as_ref().map(|n| n.0);
            // what a condition that stays stands for stays too
            let other = m.fields.contains(&SpecField::Depend);
            let depend = resolved(&m.spec).filter(|_| other).zip(user);
            let depend = depend.map(|(depend, user)| Rc::new(self.job_names.bind(user, depend)));
            let did = self.recount(m.job, |job| {
                if other {
                    job.depend = depend;
                }
                modify_job(job, m, queue);
            });
            self.renamed(m.job, named);
            did
        } else {
            let spec = Arc::new(m.spec.clone());
            let change =
                |look: &ElementSpec| ElementSpec { queue, spec: spec.clone(), spot: look.spot };
            match m.elems[..] {
                [(idx, ..)] if m.alike => self.change_part(JobRef { job: m.job, idx }, change),
                _ => self.change_elements(m.job, &m.elems, change),
            }
        };
        if matches!(did, Applied::Job(_)) {
            let places = [m.exact, m.script, m.env].into_iter().filter(|at| at.len > 0);
            self.modifications.note(m.job, places);
        }
        self.note_space(m.job, before, &[m.exact, m.script, m.env]);
        let Some(job) = self.jobs.get_mut(&m.job) else { return did };
        // these two are the whole job's
        if m.fields.contains(&SpecField::Script) && !m.alike {
            job.script = m.script;
        }
        if m.fields.contains(&SpecField::Env) && !m.alike {
            job.env = m.env;
        }
        if !m.eff_res_req.is_empty() {
            job.give_requirement(&m.elems, m.alike, m.eff_res_req.as_str().into());
        }
        did
    }

    /// The space of a job follows its change.
    pub(super) fn note_space(&mut self, id: u32, before: u64, places: &[SpoolRef]) {
        if let Some(job) = self.jobs.get(&id) {
            self.space.changed(job, &self.modifications, before, places);
        }
    }

    /// A job that had this name may have another.
    fn renamed(&mut self, id: u32, was: Option<(UserId, String)>) {
        let (Some(job), Some((user, was))) = (self.jobs.get(&id), was) else { return };
        if job.name.name != was {
            self.job_names.remove(user, &was, id);
            self.job_names.insert(user, &job.name.name, id);
        }
    }

    pub(super) fn moved(&mut self, at: JobRef, place: Option<QueuePosition>, top: bool) -> Applied {
        // Another LSF's record does not tell the place: before or behind all.
        let place = place
            .unwrap_or(QueuePosition { base: if top { 0 } else { u64::MAX }, between: at.job });
        if at.idx != 0 {
            return self.move_elements(at.job, &[(at.idx, at.idx, 1)], place);
        }
        let Some(job) = self.jobs.get_mut(&at.job) else {
            return Applied::Rejected("no such job");
        };
        if let Body::Array(a) = &mut job.body {
            a.parts.iter_mut().for_each(|p| p.look.spot = None);
        }
        self.moved.insert(at.job, place);
        Applied::Job(Change { at, regrouped: false, kind: ChangeKind::Moved })
    }

    /// Elements of an array get another place in the order of dispatch.
    pub(super) fn move_elements(
        &mut self,
        id: u32,
        elems: &Ranges,
        place: QueuePosition,
    ) -> Applied {
        let spot = Some(place);
        match self.change_elements(id, elems, |look| ElementSpec { spot, ..look.clone() }) {
            Applied::Job(change) => Applied::Job(Change { kind: ChangeKind::Moved, ..change }),
            rejected => rejected,
        }
    }
}

/// An element that is in memory is of this part from now on; notes where it was started in another
/// queue.
fn put_in_part(
    counts: &mut Counts,
    switched: &mut Vec<Switched>,
    job: &mut Job,
    idx: u32,
    to: u32,
) {
    let at = JobRef { job: job.id, idx };
    let (queue, user, slots) = owner(job, job.part_no(idx));
    let from = queue;
    let submit_time = job.submit_time;
    let Body::Array(a) = &mut job.body else { return };
    if a.part_mut(to).is_none() {
        return;
    }
    if let Some(pos) = a.pos(idx)
        && a.fresh.take(pos)
    {
        a.touch(idx, submit_time);
    }
    let Some(mut e) = a.own.remove(&idx) else { return };
    a.leave(idx, &e);
    counts.elem(queue, user, slots, at, &e, false);
    a.keep_given(&mut e);
    e.part = to;
    if let ElemState::Run(run) = &mut e.state {
        run.times_given = a.started_elements(to).times_given();
    }
    a.note(idx, &e, true);
    let Some(part) = a.part_mut(to) else { return };
    part.elems.insert(idx);
    let (queue, slots) = (part.look.queue, part.look.spec.min_slots.max(1));
    counts.elem(queue, user, slots, at, &e, true);
    if let ElemState::Run(run) = &e.state
        && queue != from
    {
        Switched::add(switched, from, queue, run);
    }
    a.own.insert(idx, e);
}

/// The elements outside of any part get this submission.
fn modify_job(job: &mut Job, m: &JobModify, queue: QueueId) {
    job.queue = queue;
    job.spec = Arc::new(m.spec.clone());
    if m.fields.contains(&SpecField::Command) {
        job.script = SpoolRef::default();
    }
    // The list of an array stays; its limit may change.
    let name = match m.spec.name.as_str() {
        "" => JobName { name: String::new(), array: None },
        text => JobName::parse(text).unwrap_or_else(|_| job.name.clone()),
    };
    match (&mut job.body, &name.array) {
        (Body::Array(a), Some(new)) => a.spec.limit = new.limit,
        (Body::Single(_), None) => {}
        _ => return,
    }
    job.name = name;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_indices_are_joined_to_ranges() {
        assert_eq!(ranges([1, 2, 3, 7, 9, 10]), [(1, 3, 1), (7, 7, 1), (9, 10, 1)]);
        assert!(ranges([]).is_empty());
    }
}
