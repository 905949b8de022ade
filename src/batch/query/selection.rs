//! The jobs and elements that a request means: its filters (-u, -q, -J, -m, -P, -G, -Jd, -g, -app,
//! -sla, -Lp), its states, and its operands.

use crate::batch::Mbatchd;
use crate::batch::site::permissions::{Action, Caller};
use crate::batch::state::{Elem, Job};
use crate::lang::jobname::{self, JobIdSpec, JobName};
use crate::model::further;
use crate::model::job::JobSpec;
use crate::model::job_state::JobState;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{IdSel, JobSelect, Requeue, Which};
use std::collections::BTreeSet;

/// Is an element in one of these states?
pub(crate) fn stands(states: Which, job: &Job, idx: u32) -> bool {
    job.view(idx).is_some_and(|v| crate::batch::query::selection::wanted(states, v.stat(), true))
}

/// Is an element in a state that brequeue is to take?
pub(crate) fn requeues(which: Requeue, job: &Job, idx: u32) -> bool {
    let run = which.run || !(which.done || which.exit || which.pend);
    job.view(idx).is_some_and(|v| match v.stat() {
        JobState::Pend | JobState::Psusp => which.pend,
        JobState::Done => which.done,
        JobState::Exit => which.exit,
        JobState::Run
        | JobState::Ssusp
        | JobState::Ususp
        | JobState::Wait
        | JobState::Unkwn
        | JobState::Zombi => run,
    })
}

/// Every index that ranges name.
pub(crate) fn elements(ranges: &[(u32, u32, u32)]) -> impl Iterator<Item = u32> + '_ {
    ranges.iter().flat_map(|&(a, b, step)| (a..=b).step_by(step.max(1) as usize))
}

/// -G, -Jd, -g, -app, -sla and -Lp against a job.
pub(crate) fn given_fits(option: &str, value: &str, spec: &JobSpec) -> bool {
    match option {
        "G" => spec.user_group == value,
        "Jd" => jobname::name_fits(value, &spec.description),
        further::GROUP => {
            spec.further.job_group.trim_end_matches('/') == value.trim_end_matches('/')
        }
        _ => spec.further.text(option).unwrap_or_default() == value,
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

/// Does a state belong to what was asked?
pub(crate) fn wanted(w: Which, state: JobState, by_id: bool) -> bool {
    let finished = state.is_finished();
    let none = !(w.all || w.done || w.pend || w.run || w.susp);
    if w.all || (none && by_id) {
        return true;
    }
    if none {
        return !finished;
    }
    (w.done && finished)
        || (w.pend && state.is_pending())
        || (w.run && matches!(state, JobState::Run | JobState::Unkwn | JobState::Zombi))
        || (w.susp && (state.is_suspended() || state == JobState::Psusp))
}

impl Mbatchd {
    /// Names that do not exist are refused, not taken for "nothing matched".
    pub(crate) fn check_select(&self, s: &JobSelect) -> Result<(), Refusal> {
        if !s.queue.is_empty() && self.site.find_queue(&s.queue).is_none() {
            return Err(Refusal::about(err::BAD_QUEUE, &s.queue));
        }
        let unknown = |word: &&str| self.site.expand_host(word).is_empty();
        if let Some(word) = s.host.split_whitespace().find(unknown) {
            return Err(Refusal::about(err::BAD_HOST, word));
        }
        let group = s.given.iter().find(|(option, _)| option == "G").map(|(_, name)| name);
        if let Some(name) = group.filter(|name| !self.knows_user_group(name)) {
            return Err(Refusal::about(err::BAD_USER_GROUP, name));
        }
        Ok(())
    }

    /// A group of lsb.users, or one that a job was submitted with.
    pub(crate) fn knows_user_group(&self, name: &str) -> bool {
        self.site.conf.batch.users.groups.iter().any(|g| g.name == name)
            || self.state.has_given_group(name)
    }

    /// The filters that concern a whole job: user, queue, name, project.
    pub(crate) fn selects(&self, who: &Caller, s: &JobSelect, job: &Job) -> bool {
        let user: &str = self.state.names().user(job.user);
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
    pub(crate) fn part_fits(&self, s: &JobSelect, job: &Job, part: u32) -> bool {
        let spec = job.spec_of(part);
        (s.queue.is_empty() || **self.state.names().queue(job.queue_of(part)) == *s.queue)
            && (s.project.is_empty() || spec.project == s.project)
            && s.given.iter().all(|(option, value)| given_fits(option, value, spec))
    }

    /// The parts of an array that the filters let through; `None`: all of it.
    pub(crate) fn selected_parts(&self, s: &JobSelect, job: &Job) -> Option<Vec<u32>> {
        let all = job.parts().len() as u32;
        let fit: Vec<u32> = (0..=all).filter(|part| self.part_fits(s, job, *part)).collect();
        (fit.len() as u32 <= all).then_some(fit)
    }

    pub(crate) fn in_user_group(&self, group: &str, user: &str, gid: u32) -> bool {
        let groups = &self.site.conf.batch.users.groups;
        groups.iter().any(|g| g.name == group && self.site.user_in(&g.members, user, Some(gid)))
    }

    /// Is or was an element on one of these hosts?
    pub(crate) fn on_host(&self, job: &Job, idx: u32, hosts: &BTreeSet<String>) -> bool {
        let Some(run) = job.elem(idx).and_then(Elem::run) else { return false };
        run.hosts.iter().any(|h| hosts.contains(&**self.state.names().host(h.0)))
    }

    /// May the caller control what an operand means, in whatever queues it is?
    pub(crate) fn may_control(&self, who: &Caller, job: &Job, sel: &IdSel) -> bool {
        let owner = self.state.names().user(job.user);
        let may = |part: u32| {
            let queue = self.state.names().queue(job.queue_of(part));
            let given = &job.spec_of(part).user_group;
            self.site.check_job(who, Action::ControlJob, (owner, queue, given)).is_ok()
        };
        let meant = |p: &crate::batch::state::ElementGroup| match sel.elems.is_empty() {
            true => !p.is_empty(),
            false => sel.elems.iter().any(|range| p.meets(range)),
        };
        may(0) && job.parts().iter().zip(1..).all(|(p, part)| !meant(p) || may(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_filters_select_jobs_by_their_options() {
        let spec = JobSpec {
            user_group: "chip".into(),
            description: "a nightly run".into(),
            further: [("app", "sim"), ("g", "/a/b")].into_iter().collect(),
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
