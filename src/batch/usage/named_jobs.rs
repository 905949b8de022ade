//! The jobs that a condition of bsub -w or bwait names, found once, when the condition is made.

use crate::batch::state::named::{MAX_WAIT_NAMED, NAMED_LISTED};
use crate::batch::state::{Job, State};
use crate::lang::depend::{DepExpr, NamedJob, ResolveError, Resolved, Resolver};
use crate::lang::jobname::ArraySpec;
use crate::model::reason::err;
use crate::proto::Refusal;

/// Finds the jobs of a user by what a condition calls them.
pub struct Finder<'a> {
    pub state: &'a State,
    /// A name stands for the job submitted last alone (JOB_DEP_LAST_SUB=1).
    pub last: bool,
    pub user: &'a str,
    /// The condition is to be recorded: names that stand for many jobs stay names.
    pub recorded: bool,
}

impl Finder<'_> {
    /// The condition of this text by job IDs. `array`: of the job that has the condition. A whole
    /// condition in quotes is first a job's name, as any quoted text, and means what is in the
    /// quotes where no job bears that name: scripts quote it once for each shell it goes through.
    ///
    /// # Errors
    /// The refusal for a text that is no condition, for a job that is not known and for names of
    /// too many jobs.
    pub fn bind(&self, text: &str, array: Option<&ArraySpec>) -> Result<Resolved, Refusal> {
        let syntax = |_| Refusal::about(err::DEPEND_SYNTAX, text);
        let condition = DepExpr::parse(text).map_err(syntax)?;
        match (self.resolve(&condition, text, array), condition.in_quotes()) {
            (Err(refusal), Some(inner)) if refusal.code == err::NO_JOB => {
                self.resolve(&inner, text, array)
            }
            (bound, _) => bound,
        }
    }

    fn resolve(
        &self,
        condition: &DepExpr,
        text: &str,
        array: Option<&ArraySpec>,
    ) -> Result<Resolved, Refusal> {
        if !self.state.names_within(self.user, condition, self.recorded, self.last) {
            return Err(too_many(text));
        }
        condition.resolve(self, array).map_err(|e| match e {
            ResolveError::NoMatchingJob(about) => Refusal::about(err::NO_JOB, about),
            ResolveError::NoJobGroup(path) => Refusal::about(err::NO_JGRP, path),
            ResolveError::ArraySizes => Refusal::new(err::DEP_ARRAY_SIZE),
            ResolveError::TooMany(about) => too_many(&about),
        })
    }
}

fn named(job: &Job) -> NamedJob<'_> {
    NamedJob { id: u64::from(job.id), array: job.name.array.as_deref() }
}

impl Resolver for Finder<'_> {
    fn by_id(&self, id: u64) -> Option<NamedJob<'_>> {
        self.state.job(u32::try_from(id).ok()?).map(named)
    }

    fn by_name(&self, name: &str, prefix: bool) -> Vec<NamedJob<'_>> {
        let Some(user) = self.state.names().find_user(self.user) else { return Vec::new() };
        let found = match self.last {
            true => self.state.last_named(user, name, prefix).into_iter().collect(),
            // one more says that there are too many
            false => self.state.named(user, name, prefix, MAX_WAIT_NAMED + 1),
        };
        found.into_iter().map(named).collect()
    }

    fn kept(&self, name: &str, prefix: bool) -> bool {
        let many = |user| self.state.job_names().more_than(user, name, prefix, NAMED_LISTED);
        self.recorded && !self.last && self.state.names().find_user(self.user).is_some_and(many)
    }

    fn job_group(&self, path: &str) -> bool {
        self.state.job_groups().get(path).is_some()
    }

    fn most(&self) -> usize {
        MAX_WAIT_NAMED
    }
}

/// A name in a dependency condition stands for too many jobs.
pub(crate) fn too_many(about: &str) -> Refusal {
    let text = format!("Dependency condition <{about}> names too many jobs; give job IDs instead");
    Refusal::text(err::BAD_ARG, text)
}
