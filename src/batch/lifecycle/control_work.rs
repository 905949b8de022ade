//! A control request (bkill, bstop, bresume, bswitch, btop, bbot, brequeue) as work that is done
//! unit by unit: which jobs it means, element by element, and the answer when all is done, or in
//! pieces to a client that takes those. A request for a few jobs is done and answered at once.
//!
//! Invariant: what the request has done before its first answer was lost (`state::retries`) is
//! not done again where that would be another action, and is answered as done.

use crate::batch::lifecycle::control::ControlRequest;
use crate::batch::lifecycle::reposition::Moved;
use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::control_work::{ControlWork, OneJob, Source};
use crate::batch::soft_state::cursor::Cursor;
use crate::batch::soft_state::works::{UNIT, UNIT_LOOKS, Work};
use crate::batch::state::Job;
use crate::batch::state::space::log_bytes;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::reason::err;
use crate::model::time::US;
use crate::proto::Refusal;
use crate::proto::caps::{MAX_OUTCOMES, OUTCOMES_PIECE};
use crate::proto::client::{ClientMsg, Control, IdSel, MAX_REASON, Outcome, Verb};
use crate::proto::machine::ConnId;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Units of a request that are done at once, before others get their turn.
const UNITS_AT_ONCE: usize = 2;
/// A client that takes pieces hears at least so often that its request is under way, microseconds.
const WORD_US: u64 = 2 * US;

/// Does the job wait to be released because the log lost a part of its history?
fn held_for_damage(job: &Job) -> bool {
    job.damaged && job.tally.unfinished() > 0
}

impl Mbatchd {
    /// Begins a request that has passed its checks, and does it where that takes no time.
    pub(crate) fn begin_control(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        c: Control,
    ) {
        let weight = 1 + c.select.ids.iter().map(|id| 1 + id.elems.len()).sum::<usize>();
        self.works.forget_request(who.uid, &c.request);
        if let Err(r) = self.works.room(conn, who.uid, weight) {
            return context.refuse(conn, r);
        }
        let s = &c.select;
        let source = match (s.ids.is_empty(), s.all) {
            (false, _) => Source::Named(0),
            (true, true) => Source::All { from: 0 },
            // without 0 or an ID only the last job submitted is meant
            (true, false) => Source::Newest { from: 0, found: Vec::new() },
        };
        let hosts = (!s.host.is_empty()).then(|| self.site.expand_host(&s.host));
        let mut work = Box::new(ControlWork {
            conn: Some(conn),
            who: who.clone(),
            weight,
            waits: false,
            before: self.state.done_by(&c.request),
            source,
            until: self.state.next_order(),
            hosts,
            job: None,
            outcomes: Vec::new(),
            acted: 0,
            written: 0,
            scan: None,
            said: context.now.mono_us,
            c,
        });
        for _ in 0..UNITS_AT_ONCE {
            match self.control_unit(context, work) {
                Some(left) => work = left,
                None => return,
            }
        }
        self.works.put(Work::Control(work));
    }

    /// Does a unit; gives the work back unless it is whole.
    pub(crate) fn control_unit(
        &mut self,
        context: &mut StepContext,
        mut work: Box<ControlWork>,
    ) -> Option<Box<ControlWork>> {
        let (mut fuel, mut looks) = (UNIT, UNIT_LOOKS);
        while fuel > 0 && looks > 0 {
            let before = context.out.len();
            if let Some(job) = work.job.take() {
                work.job = self.control_on(context, &mut work, job, &mut fuel, &mut looks);
            } else if !self.next_job(&mut work, &mut fuel, &mut looks) {
                self.works.end_scan(&mut work);
                self.answer_control(context, &mut work, false);
                return None;
            }
            work.written += log_bytes(&context.out[before..]);
            if let Some(why) = work.beyond(self.works.log_most()) {
                self.works.end_scan(&mut work);
                self.answer_control(context, &mut work, true);
                if let Some(conn) = work.conn {
                    context.refuse(conn, why);
                }
                return None;
            }
        }
        if work.conn.is_none() {
            work.outcomes.clear();
        }
        if !work.c.pieces {
            work.outcomes.truncate(MAX_OUTCOMES);
        }
        let full = work.outcomes.len() >= OUTCOMES_PIECE;
        if work.c.pieces && (full || context.now.mono_us >= work.said + WORD_US) {
            self.answer_control(context, &mut work, true);
        }
        Some(work)
    }

    fn answer_control(&mut self, context: &mut StepContext, work: &mut ControlWork, more: bool) {
        let mut outcomes = std::mem::take(&mut work.outcomes);
        if !work.c.pieces {
            outcomes.truncate(MAX_OUTCOMES);
        }
        let Some(conn) = work.conn else { return };
        if more && !work.c.pieces {
            return;
        }
        (work.said, work.waits) = (context.now.mono_us, more);
        context.reply_durable(conn, ClientMsg::Controlled { outcomes, more });
    }

    /// Takes the next job that is meant, or looks for it; false: there is none.
    fn next_job(&mut self, w: &mut ControlWork, fuel: &mut usize, looks: &mut usize) -> bool {
        match &mut w.source {
            Source::Named(at) => {
                let Some(sel) = w.c.select.ids.get(*at).cloned() else { return false };
                *at += 1;
                *fuel -= 1;
                let sift = !w.c.select.states.unset() && self.state.job(sel.job).is_some();
                w.job = self.one_job(w, sel, sift);
            }
            Source::All { from } => {
                let mut from_here = *from;
                let found = self.look_for(w, &mut from_here, looks);
                let Some(id) = found else {
                    w.source = match *looks {
                        0 => Source::All { from: from_here },
                        _ => Source::Over,
                    };
                    return *looks == 0;
                };
                w.source = Source::All { from: from_here };
                *fuel -= 1;
                w.job = self.chosen_job(w, id);
            }
            Source::Newest { from, found } => {
                let (mut from_here, mut found) = (*from, std::mem::take(found));
                let sifts = self.sifts(&w.c);
                while let Some(id) = self.look_for(w, &mut from_here, looks) {
                    let order = self.state.job(id).map_or(0, |j| j.order);
                    // without filters of elements each of them will do
                    if !sifts && found.first().is_none_or(|f| f.0 <= order) {
                        found.clear();
                    }
                    if sifts || found.is_empty() {
                        found.push((order, id));
                    }
                }
                if *looks == 0 {
                    w.source = Source::Newest { from: from_here, found };
                    return true;
                }
                w.source = Source::Chosen(self.newest_first(w, found));
            }
            Source::Chosen(ids) => match ids.pop() {
                Some(id) if w.acted == 0 && w.outcomes.is_empty() => {
                    w.job = self.chosen_job(w, id);
                    *fuel -= 1;
                }
                _ => return false,
            },
            Source::Over => return false,
        }
        true
    }

    /// Jobs found, the last to be taken first; a retry means the job that it meant before.
    fn newest_first(&self, w: &ControlWork, mut found: Vec<(u64, u32)>) -> Vec<u32> {
        if let Some(done) = &w.before {
            return done.jobs().take(1).collect();
        }
        found.sort_unstable();
        found.into_iter().map(|f| f.1).collect()
    }

    /// The next job that the filters let through.
    fn look_for(&self, w: &ControlWork, from: &mut u32, looks: &mut usize) -> Option<u32> {
        let ended = matches!(w.c.verb, Verb::Requeue(r) if r.done || r.exit);
        let states = w.c.select.states;
        let finished = ended || states.all || states.done;
        for job in self.state.jobs_from(*from) {
            if *looks == 0 {
                return None;
            }
            *looks -= 1;
            *from = job.id.saturating_add(1);
            let before = || w.before.as_ref().is_some_and(|done| done.has_job(job.id));
            let open = job.tally.unfinished() > 0 || finished || before();
            if open && job.order < w.until && self.selects(&w.who, &w.c.select, job) {
                return Some(job.id);
            }
        }
        // nothing left: that is not for want of looks
        *looks = (*looks).max(1);
        None
    }

    /// A job that the filters have let through, with the elements that they mean.
    fn chosen_job(&self, w: &ControlWork, id: u32) -> Option<OneJob> {
        let named = crate::batch::query::selection::name_elements(&w.c.select.name);
        let parted = self.state.job(id).is_some_and(|j| !j.parts().is_empty());
        let sift = parted || !named.is_empty() || self.sifts(&w.c);
        let one = self.one_job(w, IdSel { job: id, elems: Vec::new() }, sift)?;
        Some(OneJob { named, ..one })
    }

    /// Do filters concern elements?
    fn sifts(&self, c: &Control) -> bool {
        !c.select.states.unset() || !c.select.host.is_empty() || matches!(c.verb, Verb::Requeue(_))
    }

    fn one_job(&self, w: &ControlWork, sel: IdSel, sift: bool) -> Option<OneJob> {
        let owner = self.state.job(sel.job).map(|j| self.state.names().user(j.user));
        let by_admin = owner.is_some_and(|owner| **owner != *w.who.user);
        let sift = sift.then(|| (Vec::new(), true));
        let (cursor, named, best) = (Cursor::default(), Vec::new(), err::JOB_FINISH);
        Some(OneJob { sel, cursor, named, sift, best, by_admin })
    }

    /// Goes on with a job; gives it back unless it is done.
    fn control_on(
        &mut self,
        context: &mut StepContext,
        w: &mut ControlWork,
        mut one: OneJob,
        fuel: &mut usize,
        looks: &mut usize,
    ) -> Option<OneJob> {
        let id = one.sel.job;
        let whole = JobRef { job: id, idx: 0 };
        let Some(job) = self.state.job(id) else {
            let did = w.before.as_ref().is_some_and(|done| done.has_job(id));
            w.outcomes.push(Outcome::new(whole, if did { 0 } else { err::NO_JOB }));
            return None;
        };
        if one.sift.is_some() {
            return self.sift(w, one, looks);
        }
        let told_once = !job.is_array() || one.sel.elems.is_empty();
        if one.cursor.range == 0 && one.cursor.next == 0 {
            if let Some(code) = self.refused_at_once(w, job, &one.sel) {
                w.outcomes.push(code);
                return None;
            }
            one = match self.control_whole(context, w, one, fuel, looks) {
                ControlFlow::Continue(one) => one,
                ControlFlow::Break(rest) => return rest,
            };
        }
        if let Verb::Switch { queue } = &w.c.verb
            && one.sel.elems.is_empty()
        {
            if !self.fit_parts(context, &w.who, (id, queue), &mut one.cursor.next, fuel) {
                return Some(one);
            }
            w.outcomes.push(Outcome::new(whole, 0));
            return None;
        }
        match w.c.verb {
            Verb::Switch { .. } => self.switch_some(context, w, &mut one, fuel),
            _ => self.control_elements(context, w, &mut one, told_once, fuel, looks),
        }
        let over = self.state.job(id).is_none_or(|job| one.cursor.over(job, &one.sel));
        if !over {
            return Some(one);
        }
        if told_once && !matches!(w.c.verb, Verb::Switch { .. }) {
            w.outcomes.push(Outcome::new(whole, one.best));
        }
        self.clean_bulk(context, &w.c, id);
        None
    }

    /// The part of a request that concerns the job as a whole, before its elements: `Break` ends
    /// the turn, with the job where it is not dealt with yet.
    fn control_whole(
        &mut self,
        context: &mut StepContext,
        w: &mut ControlWork,
        mut one: OneJob,
        fuel: &mut usize,
        looks: &mut usize,
    ) -> ControlFlow<Option<OneJob>, OneJob> {
        let whole = JobRef { job: one.sel.job, idx: 0 };
        match &w.c.verb {
            Verb::Move { top, position } => {
                let to = (*top, *position);
                let moved = self.reposition(context, &w.who, &one.sel, to, &mut w.scan, looks);
                w.outcomes.push(match moved {
                    Moved::Later => return ControlFlow::Break(Some(one)),
                    Moved::To(place) => Outcome { id: whole, code: 0, place },
                    Moved::Refused(code) => Outcome::new(whole, code),
                });
                (*fuel, w.acted) = (0, w.acted + 1);
                ControlFlow::Break(None)
            }
            Verb::Switch { queue } if one.sel.elems.is_empty() => {
                let told = w.outcomes.len();
                self.switch(context, &w.who, &one.sel, queue, &mut w.outcomes);
                w.acted += 1;
                one.cursor.next = 1;
                one.best = w.outcomes.drain(told..).next().map_or(0, |o| o.code);
                if one.best != 0 {
                    w.outcomes.push(Outcome::new(whole, one.best));
                    return ControlFlow::Break(None);
                }
                ControlFlow::Continue(one)
            }
            Verb::Resume if self.state.job(whole.job).is_some_and(held_for_damage) => {
                let code = self.release(context, &w.who, whole);
                w.outcomes.push(Outcome::new(whole, code));
                ControlFlow::Break(None)
            }
            _ => ControlFlow::Continue(one),
        }
    }

    /// Why nothing is done of a job.
    fn refused_at_once(&self, w: &ControlWork, job: &Job, sel: &IdSel) -> Option<Outcome> {
        // who names an element does not mean a job that has none
        let first = crate::batch::query::selection::elements(&sel.elems).next().filter(|i| *i != 0);
        if let Some(idx) = first.filter(|_| !job.is_array()) {
            return Some(Outcome::new(JobRef { job: sel.job, idx }, err::NO_JOB));
        }
        let whole = JobRef { job: sel.job, idx: 0 };
        let may = self.may_control(&w.who, job, sel);
        (!may).then(|| Outcome::new(whole, err::PERMISSION))
    }

    /// Acts on elements, one after the other.
    fn control_elements(
        &mut self,
        context: &mut StepContext,
        w: &mut ControlWork,
        one: &mut OneJob,
        told_once: bool,
        fuel: &mut usize,
        looks: &mut usize,
    ) {
        while *fuel > 0 && *looks > 0 {
            let Some(job) = self.state.job(one.sel.job) else { return };
            let Some(idx) = one.cursor.next(job, &one.sel, looks) else { return };
            let at = JobRef { job: one.sel.job, idx };
            *fuel -= 1;
            w.acted += 1;
            let again = w.before.as_ref().is_some_and(|done| done.has(at));
            let known = job.view(idx).is_some();
            let asked = ControlRequest { who: &w.who, c: &w.c, by_admin: one.by_admin };
            let code = match (known, again) {
                (true, false) => self.control_one(context, &asked, at),
                (true, true) => self.control_again(context, &asked, at),
                (false, true) => 0,
                (false, false) => err::NO_JOB,
            };
            match told_once {
                true if code == 0 || one.best == err::JOB_FINISH => one.best = code,
                true => {}
                false => w.outcomes.push(Outcome::new(at, code)),
            }
        }
    }

    /// bswitch of some elements.
    fn switch_some(
        &mut self,
        context: &mut StepContext,
        w: &mut ControlWork,
        one: &mut OneJob,
        fuel: &mut usize,
    ) {
        let Some(job) = self.state.job(one.sel.job) else { return };
        let (mut some, mut any) = (Vec::new(), usize::MAX);
        while some.len() < *fuel
            && let Some(idx) = one.cursor.next(job, &one.sel, &mut any)
        {
            some.push(idx);
        }
        if some.is_empty() {
            return;
        }
        *fuel -= some.len();
        w.acted += some.len() as u64;
        let sel =
            IdSel { job: one.sel.job, elems: crate::batch::state::element_groups::ranges(some) };
        if let Verb::Switch { queue } = &w.c.verb {
            self.switch(context, &w.who, &sel, queue, &mut w.outcomes);
        }
    }

    /// Finds out which elements the filters leave.
    fn sift(&self, w: &mut ControlWork, mut one: OneJob, looks: &mut usize) -> Option<OneJob> {
        let job = self.state.job(one.sel.job)?;
        let named = matches!(w.source, Source::Named(_));
        let parts = if named { None } else { self.selected_parts(&w.c.select, job) };
        let (left, all) = one.sift.as_mut()?;
        while *looks > 0 {
            let Some(idx) = one.cursor.next(job, &one.sel, looks) else { break };
            *looks = looks.saturating_sub(1);
            if job.view(idx).is_none() {
                continue;
            }
            let at = JobRef { job: job.id, idx };
            let before = || w.before.as_ref().is_some_and(|done| done.has(at));
            let part = parts.as_ref().is_none_or(|p| p.contains(&job.part_no(idx)));
            let meant = |&(a, b, step): &(u32, u32, u32)| {
                (a..=b).contains(&idx) && (idx - a) % step.max(1) == 0
            };
            let part = part && (one.named.is_empty() || one.named.iter().any(meant));
            *looks = looks.saturating_sub(one.named.len() / 16);
            if (part && self.element_fits(w, job, idx, named)) || before() {
                match left.last_mut() {
                    Some((_, last, _)) if last.checked_add(1) == Some(idx) => *last = idx,
                    _ => left.push((idx, idx, 1)),
                }
            } else {
                *all = false;
            }
        }
        if !one.cursor.over(job, &one.sel) {
            return Some(one);
        }
        let (left, all) = one.sift.take()?;
        if left.is_empty() {
            // an operand that means nothing is told of, a filter that does is not
            if named {
                let whole = JobRef { job: job.id, idx: 0 };
                w.outcomes.push(Outcome::new(whole, err::NO_JOB));
            }
            return None;
        }
        if job.is_array() && (!all || !one.named.is_empty()) {
            one.sel.elems = left;
        }
        one.cursor = Cursor::default();
        Some(one)
    }

    /// The filters that concern elements.
    fn element_fits(&self, w: &ControlWork, job: &Job, idx: u32, named: bool) -> bool {
        let states = w.c.select.states;
        if !states.unset() && !crate::batch::query::selection::stands(states, job, idx) {
            return false;
        }
        if named {
            return true;
        }
        let there = |hosts: &BTreeSet<String>| self.on_host(job, idx, hosts);
        w.hosts.as_ref().is_none_or(there)
            && match w.c.verb {
                Verb::Requeue(which) => crate::batch::query::selection::requeues(which, job, idx),
                _ => true,
            }
    }

    pub(crate) fn control(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        mut c: Control,
    ) {
        // -r is not everybody's: from others it is a kill as any other
        let for_admins = c.verb == Verb::Remove && self.site.params().force_kill_by_admins;
        if for_admins && !self.site.is_admin(&who.user) {
            c.verb = Verb::Kill;
        }
        if let Err(r) = self.log_works().and_then(|()| self.check_select(&c.select)) {
            return context.refuse(conn, r);
        }
        if c.reason.chars().count() > MAX_REASON {
            return context.refuse(conn, Refusal::new(err::BAD_ARG));
        }
        if let Verb::Switch { queue } = &c.verb
            && self.site.find_queue(queue).is_none()
        {
            return context.refuse(conn, Refusal::about(err::BAD_QUEUE, queue));
        }
        self.begin_control(context, conn, who, c);
    }
}
