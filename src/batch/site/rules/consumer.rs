//! The consumers of jobs that rules limit, as far as the rules look: queue and user, and where a
//! rule is about projects, application profiles or license projects, these too. Jobs that differ in
//! nothing that a rule looks at have one consumer.

use crate::batch::state::names::{
    ApplicationId, Id, InternedNames, LicenseProjectId, ProjectId, QueueId, UserGroupId, UserId,
};
use crate::model::job::JobSpec;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Names of projects (likewise of the others) that rules tell apart. Users choose projects: further
/// ones count as one.
pub const MAX_CONSUMER_NAMES: usize = 65_536;
/// The name of these.
const FURTHER: &str = "(others)";

/// The dimensions of a job that rules look at, without its hosts.
///
/// The last four are known where rules look at them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consumer {
    pub queue: QueueId,
    pub user: UserId,
    pub project: Option<ProjectId>,
    pub application: Option<ApplicationId>,
    pub license_project: Option<LicenseProjectId>,
    /// The group of -G, where its limits alone count of those of groups (ENFORCE_ONE_UG_LIMITS);
    /// that of no name: none was given.
    pub user_group: Option<UserGroupId>,
}

impl Consumer {
    pub fn new(queue: QueueId, user: UserId) -> Consumer {
        Consumer { queue, user, ..Consumer::default() }
    }
}

/// Two ids as one number.
pub(super) fn pair(a: impl Id, b: impl Id) -> u64 {
    (a.index() as u64) << 32 | b.index() as u64
}

impl Hash for Consumer {
    fn hash<H: Hasher>(&self, to: &mut H) {
        to.write_u64(pair(self.queue, self.user));
        let rest = (self.project, self.application, self.license_project, self.user_group);
        if rest != (None, None, None, None) {
            rest.hash(to);
        }
    }
}

/// The projects, application profiles, license projects and groups of -G that were seen since the
/// configuration was read, where rules look at them.
#[derive(Debug, Default)]
pub struct ConsumerNames {
    pub(super) looks_at_projects: bool,
    pub(super) looks_at_applications: bool,
    pub(super) looks_at_license_projects: bool,
    pub(super) looks_at_user_groups: bool,
    projects: RefCell<InternedNames<ProjectId>>,
    applications: RefCell<InternedNames<ApplicationId>>,
    license_projects: RefCell<InternedNames<LicenseProjectId>>,
    user_groups: RefCell<InternedNames<UserGroupId>>,
}

/// The id of a name; `None`: the name is empty.
fn id<I: Id>(names: &RefCell<InternedNames<I>>, name: &str) -> Option<I> {
    if name.is_empty() { None } else { Some(id_of_any(names, name)) }
}

/// The id of a name, be it empty.
fn id_of_any<I: Id>(names: &RefCell<InternedNames<I>>, name: &str) -> I {
    if let Some(known) = names.borrow().find(name) {
        return known;
    }
    let mut names = names.borrow_mut();
    match names.len() < MAX_CONSUMER_NAMES {
        true => names.id(name),
        false => I::from_index(MAX_CONSUMER_NAMES),
    }
}

fn text<I: Id>(names: &RefCell<InternedNames<I>>, id: I) -> Arc<str> {
    let names = names.borrow();
    if id.index() < names.len() { names.text(id).clone() } else { FURTHER.into() }
}

impl ConsumerNames {
    pub(super) fn project_id(&self, name: &str) -> Option<ProjectId> {
        id(&self.projects, name)
    }

    pub(super) fn application_id(&self, name: &str) -> Option<ApplicationId> {
        id(&self.applications, name)
    }

    pub(super) fn license_project_id(&self, name: &str) -> Option<LicenseProjectId> {
        id(&self.license_projects, name)
    }

    pub fn project(&self, id: ProjectId) -> Arc<str> {
        text(&self.projects, id)
    }

    pub fn application(&self, id: ApplicationId) -> Arc<str> {
        text(&self.applications, id)
    }

    pub fn license_project(&self, id: LicenseProjectId) -> Arc<str> {
        text(&self.license_projects, id)
    }

    pub fn user_group(&self, id: UserGroupId) -> Arc<str> {
        text(&self.user_groups, id)
    }

    /// The consumer of the jobs of a submission.
    pub(super) fn consumer(&self, (queue, user): (QueueId, UserId), spec: &JobSpec) -> Consumer {
        let mut consumer = Consumer::new(queue, user);
        if self.looks_at_projects {
            consumer.project = self.project_id(&spec.project);
        }
        if self.looks_at_applications {
            consumer.application = self.application_id(&spec.further.application);
        }
        if self.looks_at_license_projects {
            consumer.license_project = self.license_project_id(&spec.further.license_project);
        }
        if self.looks_at_user_groups {
            consumer.user_group = Some(id_of_any(&self.user_groups, &spec.user_group));
        }
        consumer
    }
}
