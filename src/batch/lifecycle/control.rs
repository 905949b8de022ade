//! bkill, bstop, bresume, and what they share with bswitch, btop, bbot and brequeue
//! (`lifecycle::switch_requeue`): which jobs are meant, who may, and what happens to each.

use crate::batch::admin::permissions::{Action, Caller};
use crate::batch::state::{Elem, ElemState, Job, Phase};
use crate::batch::{Mbatchd, StepContext};
use crate::lang::jobname::{self, JobIdSpec, JobName};
use crate::model::event::{Event, JobSignal, JobStatus};
use crate::model::job::{JobSpec, stat};
use crate::model::reason::{err, pend, susp, term};
use crate::model::{JobKey, JobRef};
use crate::proto::Refusal;
use crate::proto::client::{Control, IdSel, JobSelect, MAX_REASON, Requeue, Verb, Which};
use crate::proto::machine::ConnId;
use crate::proto::sbd::Act;
use std::collections::BTreeSet;

/// What is asked of a job: by whom, and whether that is not its owner.
pub(crate) struct Asked<'a> {
    pub who: &'a Caller,
    pub c: &'a Control,
    pub by_admin: bool,
}

impl Asked<'_> {
    /// The TERM_ number of what bkill ends.
    fn killed(&self) -> u32 {
        match (self.c.bulk && self.c.verb == Verb::Kill, self.by_admin) {
            (true, _) => term::BUCKET_KILL,
            (false, true) => term::ADMIN,
            (false, false) => term::OWNER,
        }
    }

    /// The TERM_ number of bkill -r.
    fn killed_by_force(&self) -> u32 {
        if self.by_admin { term::FORCE_ADMIN } else { term::FORCE_OWNER }
    }

    fn as_done(&self) -> bool {
        self.c.done && self.c.verb == Verb::Kill
    }
}

/// The key of what was not started.
fn never(at: JobRef) -> JobKey {
    JobKey { job: at.job, idx: at.idx, attempt: 0 }
}

impl Mbatchd {
    pub(crate) fn control(
        &mut self,
        cx: &mut StepContext,
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
            return cx.refuse(conn, r);
        }
        if c.reason.chars().count() > MAX_REASON {
            return cx.refuse(conn, Refusal::new(err::BAD_ARG));
        }
        if let Verb::Switch { queue } = &c.verb
            && self.site.find_queue(queue).is_none()
        {
            return cx.refuse(conn, Refusal::about(err::BAD_QUEUE, queue));
        }
        self.begin_control(cx, conn, who, c);
    }

    /// Names that do not exist are refused, not taken for "nothing matched".
    pub(crate) fn check_select(&self, s: &JobSelect) -> Result<(), Refusal> {
        if !s.queue.is_empty() && self.site.find_queue(&s.queue).is_none() {
            return Err(Refusal::about(err::BAD_QUEUE, &s.queue));
        }
        if !s.host.is_empty() && self.site.expand_host(&s.host).is_empty() {
            return Err(Refusal::about(err::BAD_HOST, &s.host));
        }
        let group = s.given.iter().find(|(option, _)| option == "G").map(|(_, name)| name);
        if let Some(name) = group.filter(|name| !self.knows_user_group(name)) {
            return Err(Refusal::about(err::BAD_USER_GROUP, name));
        }
        Ok(())
    }

    /// A group of lsb.users, or one that a job was submitted with.
    fn knows_user_group(&self, name: &str) -> bool {
        self.site.conf.batch.users.groups.iter().any(|g| g.name == name)
            || self.state.given_groups.contains(name)
    }

    /// The filters that concern a whole job: user, queue, name, project.
    pub(crate) fn selects(&self, who: &Caller, s: &JobSelect, job: &Job) -> bool {
        let user: &str = self.state.names.user(job.user);
        let user_fits = match s.user.as_str() {
            "" => user == who.user,
            "all" => true,
            u => user == u || self.in_user_group(u, user, job.gid),
        };
        user_fits
            && (s.name.is_empty() || name_fits(&s.name, job))
            && (0..=job.parts().len() as u32).any(|part| self.part_fits(s, job, part))
    }

    /// The filters in which the elements of an array may differ.
    fn part_fits(&self, s: &JobSelect, job: &Job, part: u32) -> bool {
        let spec = job.spec_of(part);
        (s.queue.is_empty() || **self.state.names.queue(job.queue_of(part)) == *s.queue)
            && (s.project.is_empty() || spec.project == s.project)
            && s.given.iter().all(|(option, value)| given_fits(option, value, spec))
    }

    /// The parts of an array that the filters let through; `None`: all of it.
    pub(crate) fn selected_parts(&self, s: &JobSelect, job: &Job) -> Option<Vec<u32>> {
        let all = job.parts().len() as u32;
        let fit: Vec<u32> = (0..=all).filter(|part| self.part_fits(s, job, *part)).collect();
        (fit.len() as u32 <= all).then_some(fit)
    }

    fn in_user_group(&self, group: &str, user: &str, gid: u32) -> bool {
        let groups = &self.site.conf.batch.users.groups;
        groups.iter().any(|g| g.name == group && self.site.user_in(&g.members, user, Some(gid)))
    }

    /// Is or was an element on one of these hosts?
    pub(crate) fn on_host(&self, job: &Job, idx: u32, hosts: &BTreeSet<String>) -> bool {
        let Some(run) = job.elem(idx).and_then(Elem::run) else { return false };
        run.hosts.iter().any(|h| hosts.contains(&**self.state.names.host(h.0)))
    }

    /// bkill -b: a job of which nothing was ever started leaves memory at once.
    pub(crate) fn clean_bulk(&mut self, cx: &mut StepContext, c: &Control, id: u32) {
        let Some(t) =
            self.state.job(id).map(|j| j.tally).filter(|_| c.bulk && c.verb == Verb::Kill)
        else {
            return;
        };
        let never_ran = t.exit_unstarted == t.total && t.cleaned == 0;
        if never_ran && !self.is_named(id) {
            self.emit(cx, Event::JobClean { at: JobRef { job: id, idx: 0 } });
        }
    }

    /// May the caller control what an operand means, in whatever queues it is?
    pub(crate) fn may_control(&self, who: &Caller, job: &Job, sel: &IdSel) -> bool {
        let owner = self.state.names.user(job.user);
        let may = |part: u32| {
            let queue = self.state.names.queue(job.queue_of(part));
            self.check(who, Action::ControlJob, owner, queue).is_ok()
        };
        // what is asked is looked for in the part, never the part gone through
        let within =
            |p: &crate::batch::state::ElementGroup, &(a, b, step): &(u32, u32, u32)| match step {
                0 | 1 => a <= b && p.elems.range(a..=b).next().is_some(),
                step => (a..=b).step_by(step as usize).any(|idx| p.elems.contains(&idx)),
            };
        let meant = |p: &crate::batch::state::ElementGroup| match sel.elems.is_empty() {
            true => !p.elems.is_empty(),
            false => sel.elems.iter().any(|range| within(p, range)),
        };
        may(0) && job.parts().iter().zip(1..).all(|(p, part)| !meant(p) || may(part))
    }

    /// An administrator lets a job go whose history is incomplete.
    pub(crate) fn release(&mut self, cx: &mut StepContext, who: &Caller, at: JobRef) -> i32 {
        if self.check(who, Action::ReleaseDamaged, "", "").is_err() {
            return err::PERMISSION;
        }
        self.emit(cx, Event::Release { at, uid: who.uid, user: who.user.clone() });
        0
    }

    /// A request is repeated that was carried out on this element: done, but for what a crash
    /// cut off between two records of one deed.
    pub(crate) fn control_again(&mut self, cx: &mut StepContext, a: &Asked, at: JobRef) -> i32 {
        let elem = self.state.elem(at);
        let pending = elem.is_none_or(|e| matches!(e.state, ElemState::Pend(_)));
        let view = self.state.job(at.job).and_then(|j| j.view(at.idx));
        let held = view.is_some_and(|v| v.held().is_some());
        let removed =
            elem.and_then(Elem::run).is_some_and(|r| r.killed == Some(a.killed_by_force()));
        let open = match &a.c.verb {
            Verb::Kill | Verb::Signal { .. } => pending,
            Verb::Remove => pending || (removed && self.state.running_at(at)),
            Verb::Stop => pending && !held,
            Verb::Resume => held,
            Verb::Switch { .. } | Verb::Move { .. } => true,
            Verb::Requeue(_) => false,
        };
        if open { self.control_one(cx, a, at) } else { 0 }
    }

    pub(crate) fn control_one(&mut self, cx: &mut StepContext, a: &Asked, at: JobRef) -> i32 {
        let verb = &a.c.verb;
        if let Verb::Requeue(which) = verb {
            return self.requeue_one(cx, a, *which, at);
        }
        let (status, key, held) = match self.state.job(at.job).and_then(|j| j.view(at.idx)) {
            None => return err::NO_JOB,
            Some(view @ crate::batch::state::ElementView::Untouched(held)) => {
                (view.stat(), None, held)
            }
            Some(crate::batch::state::ElementView::Own(e)) => match &e.state {
                ElemState::Pend(p) => (e.stat(), None, p.held),
                ElemState::Run(r) => (e.stat(), Some(r.key), None),
                ElemState::End(_) => return err::JOB_FINISH,
            },
        };
        match (verb, key) {
            (Verb::Kill | Verb::Remove, None) => self.kill_pending(cx, a, at),
            (Verb::Kill, Some(key)) => {
                self.signal_event(cx, a, at, "KILL", key);
                self.act_on(cx, key, Act::Terminate { exit_info: a.killed() });
            }
            (Verb::Remove, Some(key)) => self.remove(cx, a, at, key),
            (Verb::Signal { name, .. }, None) => {
                if !matches!(name.as_str(), "KILL" | "INT" | "TERM" | "HUP" | "QUIT" | "ABRT") {
                    return err::NOT_STARTED;
                }
                self.kill_pending(cx, a, at);
            }
            (Verb::Signal { number, name }, Some(key)) => {
                self.signal_event(cx, a, at, name, key);
                self.act_on(cx, key, Act::Signal { number: *number });
            }
            (Verb::Stop, None) => self.stop_pending(cx, a, at, held),
            (Verb::Stop, Some(key)) => self.stop_running(cx, a, at, key, status),
            (Verb::Resume, None) => {
                let locked =
                    held == Some(pend::ADMIN_STOP) && !self.site.params().enable_user_resume;
                if locked && !a.by_admin && !self.site.is_admin(&a.who.user) {
                    return err::PERMISSION;
                }
                if held.is_some() {
                    self.signal_event(cx, a, at, "CONT", never(at));
                    self.pend_event(cx, at, stat::PEND, pend::RESUMED);
                }
            }
            (Verb::Resume, Some(key)) => return self.resume_running(cx, a, at, key),
            (Verb::Switch { .. } | Verb::Move { .. } | Verb::Requeue(_), _) => {}
        }
        0
    }

    fn kill_pending(&mut self, cx: &mut StepContext, a: &Asked, at: JobRef) {
        self.signal_event(cx, a, at, "KILL", never(at));
        self.end_unstarted(cx, at, a.killed(), a.as_done());
    }

    /// What waits is held. Who is not the owner takes it from him to resume it, also where he has
    /// stopped it himself.
    fn stop_pending(&mut self, cx: &mut StepContext, a: &Asked, at: JobRef, held: Option<u32>) {
        let why = if a.by_admin { pend::ADMIN_STOP } else { pend::USER_STOP };
        if held.is_none() || (a.by_admin && held != Some(why)) {
            self.signal_event(cx, a, at, "STOP", never(at));
            self.pend_event(cx, at, stat::PSUSP, why);
        }
    }

    /// -r: out of the system at once, whether its host answers or not.
    fn remove(&mut self, cx: &mut StepContext, a: &Asked, at: JobRef, key: JobKey) {
        self.signal_event(cx, a, at, "DELETEJOB", key);
        let info = a.killed_by_force();
        self.act_on(cx, key, Act::Terminate { exit_info: info });
        self.end_unasked(cx, key, info, false);
    }

    fn stop_running(
        &mut self,
        cx: &mut StepContext,
        a: &Asked,
        at: JobRef,
        key: JobKey,
        status: u32,
    ) {
        let why = if a.by_admin { susp::ADMIN } else { susp::USER };
        self.signal_event(cx, a, at, "STOP", key);
        if status == stat::USUSP {
            // its owner has stopped it: from now on it is not he who resumes it
            if a.by_admin {
                self.phase_event(cx, at, key.attempt, stat::USUSP, why);
            }
            return;
        }
        if let Some(run) = self.state.running_mut(key) {
            run.soft.asked = Some(why);
        }
        self.act_on(cx, key, Act::Suspend);
    }

    fn resume_running(&mut self, cx: &mut StepContext, a: &Asked, at: JobRef, key: JobKey) -> i32 {
        let phase = self.state.running(key).map(|r| r.phase);
        let admin = self.site.is_admin(&a.who.user) || a.by_admin;
        if phase == Some(Phase::Ususp(susp::ADMIN))
            && !admin
            && !self.site.params().enable_user_resume
        {
            return err::PERMISSION;
        }
        // With closed run windows it waits for them.
        let shut = self.run_shut(at);
        // a stop that is on its way is taken back
        let asked = self.state.running(key).and_then(|r| r.soft.asked);
        if !matches!(phase, Some(Phase::Ususp(_))) && asked.is_some_and(|why| why != 0) {
            self.signal_event(cx, a, at, "CONT", key);
        }
        if let Some(Phase::Ususp(_)) = phase {
            self.signal_event(cx, a, at, "CONT", key);
            let why = if shut { susp::WINDOW } else { susp::RESUMED };
            self.phase_event(cx, at, key.attempt, stat::SSUSP, why);
        }
        if shut {
            if let Some(run) = self.state.running_mut(key) {
                run.soft.asked = None;
            }
            self.shut_job(cx, key);
            return 0;
        }
        if let Some(run) = self.state.running_mut(key) {
            run.soft.asked = Some(0);
        }
        self.act_on(cx, key, Act::Resume);
        0
    }

    pub(crate) fn signal_event(
        &mut self,
        cx: &mut StepContext,
        a: &Asked,
        at: JobRef,
        signal: &str,
        key: JobKey,
    ) {
        let kill = signal == "KILL" && a.c.verb == Verb::Kill;
        let s = JobSignal {
            at,
            uid: a.who.uid,
            user: a.who.user.clone(),
            signal: signal.to_string(),
            run_count: key.attempt,
            by_admin: a.by_admin,
            host: a.who.host.clone(),
            reason: a.c.reason.clone(),
            done: kill && a.as_done(),
            bulk: kill && a.c.bulk,
            request: a.c.request.clone(),
        };
        self.emit(cx, Event::JobSignal(Box::new(s)));
    }

    fn pend_event(&mut self, cx: &mut StepContext, at: JobRef, status: u32, reason: u32) {
        let s = JobStatus { at, status, reason, ..JobStatus::default() };
        self.emit(cx, Event::JobStatus(Box::new(s)));
    }

    pub(crate) fn act_on(&mut self, cx: &mut StepContext, key: JobKey, act: Act) {
        let Some(i) = self.state.running(key).and_then(|r| self.first_host(r)) else { return };
        self.act(cx, key, i, act);
    }
}

/// Is an element in one of these states?
pub(crate) fn stands(states: Which, job: &Job, idx: u32) -> bool {
    job.view(idx).is_some_and(|v| crate::batch::query::jobs::wanted(states, v.stat(), true))
}

/// Is an element in a state that brequeue is to take?
pub(crate) fn requeues(which: Requeue, job: &Job, idx: u32) -> bool {
    let run = which.run || !(which.done || which.exit || which.pend);
    job.view(idx).is_some_and(|v| match v.stat() {
        stat::PEND | stat::PSUSP => which.pend,
        stat::DONE => which.done,
        stat::EXIT => which.exit,
        _ => run,
    })
}

/// Every index that ranges name.
pub(crate) fn elements(ranges: &[(u32, u32, u32)]) -> impl Iterator<Item = u32> + '_ {
    ranges.iter().flat_map(|&(a, b, step)| (a..=b).step_by(step.max(1) as usize))
}

/// -G, -Jd, -g, -app, -sla and -Lp against a job.
fn given_fits(option: &str, value: &str, spec: &JobSpec) -> bool {
    match option {
        "G" => spec.user_group == value,
        "Jd" => jobname::name_fits(value, &spec.description),
        "g" => spec.given("g").trim_end_matches('/') == value.trim_end_matches('/'),
        _ => spec.given(option) == value,
    }
}

/// -J against a job: `name`, `*name*`, `name[index]`.
pub(crate) fn name_fits(pattern: &str, job: &Job) -> bool {
    let base = pattern.split('[').next().unwrap_or(pattern);
    let name = &job.name.name;
    let plain = |text: &str| jobname::name_fits(base, text);
    let elems = name_elements(pattern);
    if !elems.is_empty() && !job.is_array() {
        return false;
    }
    plain(name) || (name.is_empty() && plain(&job.spec.command.lossy()))
}

/// The element list in a -J pattern, if it has one.
pub(crate) fn name_elements(pattern: &str) -> Vec<(u32, u32, u32)> {
    match JobName::parse(pattern) {
        Ok(JobName { array: Some(a), .. }) => {
            a.list.ranges.iter().map(|r| (r.start, r.last(), r.step.max(1))).collect()
        }
        _ => Vec::new(),
    }
}

/// A job operand in the form of the wire.
pub fn id_sel(spec: &JobIdSpec) -> Option<IdSel> {
    match spec {
        JobIdSpec::All => None,
        JobIdSpec::Job(id) => Some(IdSel { job: *id as u32, elems: Vec::new() }),
        JobIdSpec::Elements(id, list) => Some(IdSel {
            job: *id as u32,
            elems: list.ranges.iter().map(|r| (r.start, r.last(), r.step.max(1))).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_filters() {
        let spec = JobSpec {
            user_group: "chip".into(),
            description: "a nightly run".into(),
            extra: vec![("app".into(), "sim".into()), ("g".into(), "/a/b".into())],
            ..JobSpec::default()
        };
        for (option, value, fits) in [
            ("G", "chip", true),
            ("G", "other", false),
            ("Jd", "*nightly*", true),
            ("Jd", "nightly", false),
            ("app", "sim", true),
            ("app", "si", false),
            ("sla", "gold", false),
            ("g", "/a/b/", true),
            ("g", "/a", false),
        ] {
            assert_eq!(given_fits(option, value, &spec), fits, "{option} {value}");
        }
    }
}
