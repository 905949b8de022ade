//! The service class of a submission: the one named, or the first that attaches the job; and the
//! looks at the goals of all classes.

use crate::batch::site::permissions::Caller;
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::{ServiceClassConf, UserTerm};
use crate::model::job::JobSpec;
use crate::model::job_group::lineage;
use crate::model::reason::err;
use crate::proto::{Effect, Refusal};

/// A condition of a service class that a job does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Barred {
    User,
    Queue,
    Application,
    Project,
    LicenceProject,
    FairshareGroup,
}

impl Mbatchd {
    /// Checks the service class of a submission to a queue, or attaches the job to one. Without any
    /// class in the configuration the name is a mere label.
    pub(crate) fn check_service_class(
        &self,
        spec: &mut JobSpec,
        who: &Caller,
        queue: &str,
    ) -> Result<(), Refusal> {
        let classes = &self.site.service_classes;
        let user = (who.user.as_str(), Some(who.gid));
        if classes.is_empty() {
            return Ok(());
        }
        if spec.further.service_class.is_empty() {
            spec.further.service_class = self.class_of_group(&spec.further.job_group).into();
        }
        if spec.further.service_class.is_empty() {
            if let Some(class) = self.attached_class(user, (queue, spec)) {
                spec.further.service_class = class.into();
            }
            return Ok(());
        }
        let name = spec.further.service_class.clone();
        let class = classes.id(&name).and_then(|id| classes.get(id));
        let class = class.ok_or_else(|| Refusal::about(err::SLA_NULL, &*name))?;
        let may = self.may_be_in(class, user, (queue, spec));
        may.map_err(|barred| {
            let code = match barred {
                Barred::User if class.guarantee => err::SLA_USER,
                Barred::User => err::SLA_MEMBER,
                Barred::Queue => err::SLA_QUEUE,
                Barred::Application => err::SLA_APP,
                Barred::Project => err::SLA_PROJECT,
                Barred::LicenceProject => err::SLA_LICENSE,
                Barred::FairshareGroup => err::SLA_GROUP,
            };
            Refusal::about(code, &*name)
        })
    }
}

impl Mbatchd {
    /// Looks at the goals of service classes where that is due, and has the CONTROL_ACTION of those
    /// run that have missed a goal for too long.
    pub(crate) fn service_goals_due(&mut self, context: &mut StepContext) {
        let found = self.goals.look(context.now, &self.site, self.windows.zone());
        if found.more {
            self.sched.goal_room();
        }
        if found.turned {
            self.sched.changed();
        }
        for class in self.goals.take_actions() {
            let Some(conf) = self.site.service_classes.get(class) else { continue };
            let Some(action) = &conf.control_action else { continue };
            let (class, command) = (conf.name.clone(), action.command.clone());
            context.out.push(Effect::ControlAction { class, command });
        }
    }
}

fn names(list: &[UserTerm], name: &str) -> bool {
    list.is_empty() || list.iter().any(|word| word.name == "all" || word.name == name)
}

impl Mbatchd {
    /// May a job of a user be in this class? The queue is that of `spec`.
    fn may_be_in(
        &self,
        class: &ServiceClassConf,
        (user, gid): (&str, Option<u32>),
        (queue, spec): (&str, &JobSpec),
    ) -> Result<(), Barred> {
        let access = &class.access;
        let user_meant = |list: &[UserTerm]| list.is_empty() || self.site.user_in(list, user, gid);
        let is_admin = || self.site.is_admin(user);
        if !user_meant(&class.users) && !is_admin() || !user_meant(&access.users) {
            return Err(Barred::User);
        }
        let group = spec.user_group.as_str();
        match () {
            () if !names(&access.queues, queue) => Err(Barred::Queue),
            () if !names(&access.apps, &spec.further.application) => Err(Barred::Application),
            () if !names(&access.projects, &spec.project) => Err(Barred::Project),
            () if !names(&access.lic_projects, &spec.further.license_project) => {
                Err(Barred::LicenceProject)
            }
            () if !names(&access.fairshare_groups, group) => Err(Barred::FairshareGroup),
            () => Ok(()),
        }
    }

    /// The service class with goals that are numbers of jobs of a job group, or of the next one
    /// above it that has one; empty: none has.
    fn class_of_group(&self, path: &str) -> &str {
        let (groups, classes) = (self.state.job_groups(), &self.site.service_classes);
        let name = lineage(path).find_map(|path| {
            let name = groups.get(path)?.sla.as_str();
            classes.id(name).filter(|id| !classes.goals(*id).is_empty()).map(|_| name)
        });
        name.unwrap_or_default()
    }

    /// The first class with AUTO_ATTACH=Y that a job may be in.
    fn attached_class(
        &self,
        (user, gid): (&str, Option<u32>),
        (queue, spec): (&str, &JobSpec),
    ) -> Option<&str> {
        let mut attaching = self.site.service_classes.iter().filter(|(_, class)| class.auto_attach);
        let found =
            attaching.find(|(_, class)| self.may_be_in(class, (user, gid), (queue, spec)).is_ok());
        found.map(|(_, class)| class.name.as_str())
    }
}
