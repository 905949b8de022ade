//! The consumers of jobs that rules limit, as far as the rules look: queue and user, and where a
//! rule is about projects, application profiles or license projects, these too. Jobs that differ in
//! nothing that a rule looks at have one consumer.

use crate::batch::state::names::{
    ApplicationId, Id, InternedNames, LicenseProjectId, ProjectId, QueueId, UserId,
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
/// The last three are known where rules look at them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consumer {
    pub queue: QueueId,
    pub user: UserId,
    pub project: Option<ProjectId>,
    pub application: Option<ApplicationId>,
    pub license_project: Option<LicenseProjectId>,
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
        if (self.project, self.application, self.license_project) != (None, None, None) {
            (self.project, self.application, self.license_project).hash(to);
        }
    }
}

/// The projects, application profiles and license projects that were seen since the configuration
/// was read, where rules look at them.
#[derive(Debug, Default)]
pub struct ConsumerNames {
    pub(super) looks_at_projects: bool,
    pub(super) looks_at_applications: bool,
    pub(super) looks_at_license_projects: bool,
    projects: RefCell<InternedNames<ProjectId>>,
    applications: RefCell<InternedNames<ApplicationId>>,
    license_projects: RefCell<InternedNames<LicenseProjectId>>,
}

/// The id of a name; `None`: the name is empty.
fn id<I: Id>(names: &RefCell<InternedNames<I>>, name: &str) -> Option<I> {
    if name.is_empty() {
        return None;
    }
    if let Some(known) = names.borrow().find(name) {
        return Some(known);
    }
    let mut names = names.borrow_mut();
    Some(match names.len() < MAX_CONSUMER_NAMES {
        true => names.id(name),
        false => I::from_index(MAX_CONSUMER_NAMES),
    })
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
        consumer
    }
}
