//! A control request (bkill, bstop, bresume, bswitch, btop, bbot, brequeue) as work that is done
//! unit by unit: which jobs it means, element by element, and the answer when all is done, or in
//! pieces to a client that takes those. A request for a few jobs is done and answered at once.
//!
//! Invariant: what the request has done before its first answer was lost (`state::retries`) is
//! not done again where that would be another action, and is answered as done.

use crate::batch::lifecycle::array_control::TOGETHER;
use crate::batch::lifecycle::control::ControlRequest;
use crate::batch::lifecycle::reposition::Moved;
use crate::batch::site::permissions::{Action, Caller};
use crate::batch::soft_state::control_work::{ControlWork, MeantJobs, OneJob, Request};
use crate::batch::soft_state::works::{UNIT, UNIT_LOOKS, Work};
use crate::batch::state::Job;
use crate::batch::state::space::log_bytes;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{ClientMsg, Control, IdSel, MAX_REASON, Outcome, Verb};
use crate::proto::machine::ConnId;
use std::ops::ControlFlow;

/// Units of a request that are done at once, before others get their turn.
const UNITS_AT_ONCE: usize = 2;

/// Does the job wait to be released because the log lost a part of its history?
fn held_for_damage(job: &Job) -> bool {
    job.damaged && job.tally().unfinished() > 0
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
        self.works.forget_request(who.uid, &c.request);
        if let Err(r) = self.works.room(conn, who.uid, ControlWork::weight_of(&c)) {
            return context.refuse(conn, r);
        }
        let filter = &c.select.host;
        let hosts = (!filter.is_empty()).then(|| self.site.expand_host_words(filter));
        let (before, until) = (self.state.done_by(&c.request), self.state.next_order());
        let request = Request { who: who.clone(), control: c };
        let work = ControlWork::new((conn, request), before, until, hosts, context.now.mono_us);
        let mut work = Box::new(work);
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
            if let Some(job) = work.take_job() {
                let left = self.control_on(context, &mut work, job, &mut fuel, &mut looks);
                work.put_job(left);
            } else if !self.next_job(&mut work, &mut fuel, &mut looks) {
                self.works.end_scan(&mut work);
                self.answer_control(context, &mut work, false);
                return None;
            }
            work.wrote(log_bytes(&context.out[before..]));
            if let Some(why) = work.beyond(self.works.log_most()) {
                self.works.end_scan(&mut work);
                self.answer_control(context, &mut work, true);
                if let Some(conn) = work.conn() {
                    context.refuse(conn, why);
                }
                return None;
            }
        }
        if work.end_unit(context.now.mono_us) {
            self.answer_control(context, &mut work, true);
        }
        Some(work)
    }

    fn answer_control(&mut self, context: &mut StepContext, work: &mut ControlWork, more: bool) {
        if let Some((conn, outcomes)) = work.take_answer(context.now.mono_us, more) {
            context.reply_durable(conn, ClientMsg::Controlled { outcomes, more });
        }
    }

    /// Takes the next job that is meant, or looks for it; false: there is none.
    fn next_job(&mut self, w: &mut ControlWork, fuel: &mut usize, looks: &mut usize) -> bool {
        let request = w.request();
        let c = &request.control;
        let (source, found) = match w.take_source() {
            MeantJobs::Named(at) => {
                let Some(sel) = c.select.ids.get(at).cloned() else { return false };
                let sift = !c.select.states.unset() && self.state.job(sel.job).is_some();
                (MeantJobs::Named(at + 1), Some(self.one_job(&request.who, sel, sift)))
            }
            MeantJobs::All { mut from } => match self.look_for(w, &mut from, looks) {
                Some(id) => (MeantJobs::All { from }, Some(self.chosen_job(&request, id))),
                None if *looks == 0 => (MeantJobs::All { from }, None),
                None => return false,
            },
            MeantJobs::Newest { mut from, mut found } => {
                let sifts = self.sifts(c);
                while let Some(id) = self.look_for(w, &mut from, looks) {
                    let order = self.state.job(id).map_or(0, |j| j.order);
                    // without filters of elements each of them will do
                    if !sifts && found.first().is_none_or(|f| f.0 <= order) {
                        found.clear();
                    }
                    if sifts || found.is_empty() {
                        found.push((order, id));
                    }
                }
                match *looks {
                    0 => (MeantJobs::Newest { from, found }, None),
                    _ => (MeantJobs::Chosen(w.newest_first(found)), None),
                }
            }
            MeantJobs::Chosen(mut ids) => match ids.pop().filter(|_| w.is_untouched()) {
                Some(id) => (MeantJobs::Chosen(ids), Some(self.chosen_job(&request, id))),
                None => return false,
            },
            MeantJobs::Over => return false,
        };
        *fuel -= usize::from(found.is_some());
        w.put_source(source);
        w.put_job(found);
        true
    }

    /// The next job that the filters let through.
    fn look_for(&self, w: &ControlWork, from: &mut u32, looks: &mut usize) -> Option<u32> {
        let request = w.request();
        let (who, c) = (&request.who, &request.control);
        let ended = match &c.verb {
            Verb::Requeue(which) => which.done || which.exit,
            Verb::Force(_) => true,
            _ => false,
        };
        let states = c.select.states;
        let finished = ended || states.all || states.done;
        for job in self.state.jobs_from(*from) {
            if *looks == 0 {
                return None;
            }
            *looks -= 1;
            *from = job.id.saturating_add(1);
            let open = job.tally().unfinished() > 0 || finished || w.acted_before_on(job.id);
            if open && w.means(job.order) && self.selects(who, &c.select, job) {
                return Some(job.id);
            }
        }
        // nothing left: that is not for want of looks
        *looks = (*looks).max(1);
        None
    }

    /// A job that the filters have let through, with the elements that they mean.
    fn chosen_job(&self, request: &Request, id: u32) -> OneJob {
        let c = &request.control;
        let named = crate::batch::query::selection::name_elements(&c.select.name);
        let parted = self.state.job(id).is_some_and(|j| !j.parts().is_empty());
        let sift = parted || !named.is_empty() || self.sifts(c);
        let one = self.one_job(&request.who, IdSel { job: id, elems: Vec::new() }, sift);
        one.with_named(named)
    }

    /// Do filters concern elements?
    fn sifts(&self, c: &Control) -> bool {
        !c.select.states.unset()
            || !c.select.host.is_empty()
            || matches!(c.verb, Verb::Requeue(_) | Verb::Migrate { .. } | Verb::Checkpoint(_))
    }

    fn one_job(&self, who: &Caller, sel: IdSel, sift: bool) -> OneJob {
        let owner = self.state.job(sel.job).map(|j| self.state.names().user(j.user));
        let by_admin = owner.is_some_and(|owner| **owner != *who.user);
        OneJob::new(sel, sift, by_admin)
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
        let request = w.request();
        let (who, c) = (&request.who, &request.control);
        let whole = one.whole();
        let Some(job) = self.state.job(whole.job) else {
            let code = if w.acted_before_on(whole.job) { 0 } else { err::NO_JOB };
            w.tell(Outcome::new(whole, code));
            return None;
        };
        if one.sifts() {
            return self.sift(w, one, looks);
        }
        let told_once = !job.is_array() || one.is_whole();
        if one.is_untouched() {
            if let Some(refused) = self.refused_at_once(who, job, one.sel()) {
                w.tell(refused);
                return None;
            }
            let damaged = held_for_damage(job);
            one = match self.control_whole(context, w, (one, damaged), fuel, looks) {
                ControlFlow::Continue(one) => one,
                ControlFlow::Break(rest) => return rest,
            };
        }
        match &c.verb {
            Verb::Switch { queue } if one.is_whole() => {
                let to = (whole.job, queue.as_str());
                if !self.fit_parts(context, who, to, one.next_group(), fuel) {
                    return Some(one);
                }
                w.tell(Outcome::new(whole, 0));
                return None;
            }
            Verb::Switch { queue } => self.switch_some(context, w, &mut one, queue, fuel),
            _ => self.control_elements(context, w, &mut one, told_once, fuel, looks),
        }
        if self.state.job(whole.job).is_some_and(|job| !one.is_over(job)) {
            return Some(one);
        }
        if told_once && !matches!(c.verb, Verb::Switch { .. }) {
            w.tell(one.outcome());
        }
        self.clean_bulk(context, c, whole.job);
        None
    }

    /// The part of a request that concerns the job as a whole, before its elements: `Break` ends
    /// the turn, with the job where it is not dealt with yet. `damaged`: the job waits to be
    /// released.
    fn control_whole(
        &mut self,
        context: &mut StepContext,
        w: &mut ControlWork,
        (mut one, damaged): (OneJob, bool),
        fuel: &mut usize,
        looks: &mut usize,
    ) -> ControlFlow<Option<OneJob>, OneJob> {
        let (whole, request) = (one.whole(), w.request());
        let who = &request.who;
        let outcome = match &request.control.verb {
            Verb::Move { top, position } => {
                let (to, mut scan) = ((*top, *position), w.take_scan());
                let moved = self.reposition(context, who, one.sel(), to, &mut scan, looks);
                w.put_scan(scan);
                let outcome = match moved {
                    Moved::Later => return ControlFlow::Break(Some(one)),
                    Moved::To(place) => Outcome { id: whole, code: 0, place },
                    Moved::Refused(code) => Outcome::new(whole, code),
                };
                *fuel = 0;
                w.count_acted(1);
                outcome
            }
            Verb::Switch { queue } if one.is_whole() => {
                let mut outcomes = Vec::new();
                self.switch(context, who, one.sel(), queue, &mut outcomes);
                w.count_acted(1);
                *one.next_group() = 1;
                match outcomes.first().map_or(0, |o| o.code) {
                    0 => return ControlFlow::Continue(one),
                    code => Outcome::new(whole, code),
                }
            }
            Verb::Force(_)
                if one.is_whole() && self.state.job(whole.job).is_some_and(Job::is_array) =>
            {
                Outcome::new(whole, err::WHOLE_ARRAY)
            }
            Verb::Resume if damaged => Outcome::new(whole, self.release(context, who, whole)),
            _ => return ControlFlow::Continue(one),
        };
        w.tell(outcome);
        ControlFlow::Break(None)
    }

    /// Why nothing is done of a job.
    fn refused_at_once(&self, who: &Caller, job: &Job, sel: &IdSel) -> Option<Outcome> {
        // who names an element does not mean a job that has none
        let first = crate::batch::query::selection::elements(&sel.elems).next().filter(|i| *i != 0);
        if let Some(idx) = first.filter(|_| !job.is_array()) {
            return Some(Outcome::new(JobRef { job: sel.job, idx }, err::NO_JOB));
        }
        let whole = JobRef { job: sel.job, idx: 0 };
        let may = self.may_control(who, job, sel);
        (!may).then(|| Outcome::new(whole, err::PERMISSION))
    }

    /// Acts on elements: on pending ones together where they are many, on others one by one.
    fn control_elements(
        &mut self,
        context: &mut StepContext,
        w: &mut ControlWork,
        one: &mut OneJob,
        told_once: bool,
        fuel: &mut usize,
        looks: &mut usize,
    ) {
        let request = w.request();
        let asked =
            ControlRequest { who: &request.who, c: &request.control, by_admin: one.by_admin() };
        let mut together = Vec::new();
        while *fuel > 0 && *looks > 0 && together.len() < TOGETHER {
            let Some(job) = self.state.job(one.sel().job) else { break };
            let before = *looks;
            let Some(idx) = one.next(job, looks) else { break };
            let at = JobRef { job: job.id, idx };
            w.count_acted(1);
            if !w.acted_before(at) && self.goes_together(&asked, at) {
                // these are bounded by their own number
                *looks = before;
                together.push(idx);
                match told_once {
                    true => one.note_code(0),
                    false => w.tell(Outcome::new(at, 0)),
                }
                continue;
            }
            *fuel -= 1;
            let code = match (job.view(idx).is_some(), w.acted_before(at)) {
                (true, false) => self.control_one(context, &asked, at),
                (true, true) => self.control_again(context, &asked, at),
                (false, true) => 0,
                (false, false) => err::NO_JOB,
            };
            match told_once {
                true => one.note_code(code),
                false => w.tell(Outcome::new(at, code)),
            }
        }
        if !together.is_empty() {
            *fuel = 0;
            self.control_together(context, &asked, one.sel().job, together);
        }
    }

    /// bswitch of some elements.
    fn switch_some(
        &mut self,
        context: &mut StepContext,
        w: &mut ControlWork,
        one: &mut OneJob,
        queue: &str,
        fuel: &mut usize,
    ) {
        let Some(job) = self.state.job(one.sel().job) else { return };
        let (mut some, mut any) = (Vec::new(), usize::MAX);
        // these are bounded by their own number
        while some.len() < TOGETHER
            && let Some(idx) = one.next(job, &mut any)
        {
            some.push(idx);
        }
        if some.is_empty() {
            return;
        }
        *fuel = fuel.saturating_sub(some.len());
        w.count_acted(some.len() as u64);
        let elems = crate::batch::state::element_groups::ranges(some);
        let (sel, mut outcomes) = (IdSel { job: job.id, elems }, Vec::new());
        self.switch(context, w.who(), &sel, queue, &mut outcomes);
        w.tell_all(outcomes);
    }

    /// Finds out which elements the filters leave.
    fn sift(&self, w: &mut ControlWork, mut one: OneJob, looks: &mut usize) -> Option<OneJob> {
        let job = self.state.job(one.sel().job)?;
        let request = w.request();
        let select = &request.control.select;
        let parts = if w.is_named() { None } else { self.selected_parts(select, job) };
        while *looks > 0 {
            let Some(idx) = one.next(job, looks) else { break };
            *looks = looks.saturating_sub(1);
            if job.view(idx).is_none() {
                continue;
            }
            let at = JobRef { job: job.id, idx };
            let part = parts.as_ref().is_none_or(|p| p.contains(&job.part_no(idx)));
            let meant = part && one.names(idx);
            *looks = looks.saturating_sub(one.looks_for_name());
            let leave = (meant && self.element_fits(w, job, idx)) || w.acted_before(at);
            one.sifted(idx, leave);
        }
        if !one.is_over(job) {
            return Some(one);
        }
        let whole = one.whole();
        let left = one.end_sift(job);
        // an operand that means nothing is told of, a filter that does is not
        if left.is_none() && w.is_named() {
            w.tell(Outcome::new(whole, err::NO_JOB));
        }
        left
    }

    /// The filters that concern elements.
    fn element_fits(&self, w: &ControlWork, job: &Job, idx: u32) -> bool {
        let request = w.request();
        let c = &request.control;
        let states = c.select.states;
        if !states.unset() && !crate::batch::query::selection::stands(states, job, idx) {
            return false;
        }
        if w.is_named() {
            return true;
        }
        w.hosts().is_none_or(|hosts| self.on_host(job, idx, hosts))
            && match c.verb {
                Verb::Requeue(which) => crate::batch::query::selection::requeues(which, job, idx),
                Verb::Migrate { .. } => {
                    let at = JobRef { job: job.id, idx };
                    let may = self.rerunnable(at) || self.checkpointable(at);
                    self.state.running_at(at) && may
                }
                Verb::Checkpoint(_) => {
                    let at = JobRef { job: job.id, idx };
                    self.state.running_at(at) && self.checkpointable(at)
                }
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
        if matches!(c.verb, Verb::Force(_))
            && let Err(r) = self.site.check(who, Action::ForceJob, "", "")
        {
            return context.refuse(conn, r);
        }
        if let Verb::Switch { queue } = &c.verb
            && self.site.find_queue(queue).is_none()
        {
            return context.refuse(conn, Refusal::about(err::BAD_QUEUE, queue));
        }
        self.begin_control(context, conn, who, c);
    }
}
