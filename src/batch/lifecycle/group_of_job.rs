//! The job group of a submission or of bmod -g: its path, and the groups that are made for it.

use crate::batch::state::job_groups::JobGroup;
use crate::batch::step::Checked;
use crate::batch::{Mbatchd, StepContext};
use crate::model::event::Event;
use crate::model::job::JobSpec;
use crate::model::job_group::{lineage, path_of};
use crate::model::reason::err;
use crate::proto::Refusal;

/// Job groups that there may be.
pub const MAX_JOB_GROUPS: usize = 100_000;
pub(super) fn words(text: String) -> Refusal {
    Refusal::text(err::BAD_ARG, text)
}

/// The path that a request names, as it is kept.
pub(super) fn named(path: &str) -> Checked<&str> {
    path_of(path).ok_or_else(|| Refusal::new(err::BAD_JGRP))
}

impl Mbatchd {
    /// Makes the groups on the way to a path that there are not yet.
    pub(super) fn make_groups(&mut self, context: &mut StepContext, who: (u32, &str), path: &str) {
        let (uid, owner) = (who.0, who.1.to_string());
        let new: Vec<String> = self.missing_groups(path).map(str::to_string).collect();
        for path in new.iter().rev() {
            let group = JobGroup { uid, owner: owner.clone(), ..JobGroup::default() };
            let record = group.record(path, context.now.secs());
            self.emit(context, Event::JobGroupAdd(Box::new(record)));
            self.idle_groups.note(path, context.now.mono_us);
        }
    }

    /// The groups on the way to a path that there are not, the path first.
    fn missing_groups<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a str> {
        lineage(path).take_while(|path| self.state.job_groups().get(path).is_none())
    }

    /// Is there room for the groups on the way to a path?
    pub(super) fn room_for_groups(&self, path: &str) -> Checked<()> {
        let (new, all) = (self.missing_groups(path).count(), self.state.job_groups().len());
        if new == 0 || all + new <= MAX_JOB_GROUPS {
            return Ok(());
        }
        Err(words(format!(
            "there are {all} job groups; the limit is {MAX_JOB_GROUPS}: delete empty ones with \
             bgdel, or set JOB_GROUP_CLEAN in lsb.params"
        )))
    }

    /// The group of a submission, or the default one, as it is kept.
    pub(crate) fn check_group(&self, spec: &mut JobSpec, user: &str) -> Checked<()> {
        if spec.further.job_group.is_empty() {
            let Some(group) = &self.site.params().default_jobgroup else { return Ok(()) };
            let project = if spec.project.is_empty() {
                &self.site.params().default_project
            } else {
                &spec.project
            };
            let sla = spec.further.text(crate::model::further::SLA).unwrap_or_default();
            let group = group.replace("%p", project).replace("%u", user).replace("%s", &sla);
            spec.further.job_group = group.into();
        }
        let path = named(&spec.further.job_group)?.into();
        spec.further.job_group = path;
        self.room_for_groups(&spec.further.job_group)
    }

    /// Makes the groups of jobs that do not exist: another LSF or an earlier version wrote the log,
    /// or damage took their records.
    pub(crate) fn restore_groups(&mut self, context: &mut StepContext) {
        let groups = self.state.job_groups();
        let lost = self.group_counts.oldest_jobs(|path| groups.get(path).is_none());
        for (path, id) in lost {
            let job = self.state.job(id);
            let owner = job.map(|job| (job.uid, self.state.names().user(job.user).to_string()));
            let (uid, user) = owner.unwrap_or_default();
            self.make_groups(context, (uid, &user), &path);
        }
    }
}
