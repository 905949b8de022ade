//! The permissions: the one table of verb x role. The answer for each message and command is in
//! permissions.txt; a test compares the two.

use crate::batch::site::Site;
use crate::model::reason::err;
use crate::proto::Refusal;
use std::collections::BTreeSet;

/// The authenticated sender of a request.
#[derive(Clone, Debug)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    pub user: String,
    pub host: String,
}

/// The kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Submit,
    /// Kill, stop, resume, signal.
    ControlJob,
    /// Ask for the place of a job's output.
    PeekJob,
    /// The environment and the script that a job was submitted with.
    SeeSubmission,
    /// bpost.
    PostMessage,
    /// Attach data to a message, and read them.
    AttachData,
    /// Start a job whatever keeps it waiting.
    ForceJob,
    /// Let go a job held after damage to the log.
    ReleaseDamaged,
    SeeJobs,
    /// Make an advance reservation, where no policy permits it.
    Reserve,
    /// Change or delete an advance reservation; its creator is its owner.
    ChangeReservation,
    HostCtrl,
    QueueCtrl,
    Reconfig,
    Shutdown,
    /// Change the logging of daemons.
    Logging,
    /// Sampling of metrics.
    Perfmon,
}

/// The roles of the caller towards the object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Roles {
    pub owner: bool,
    pub admin: bool,
    /// Root, where LSF_ROOT_USER lets root administer, or in a personal cluster of root.
    pub root: bool,
    pub queue_admin: bool,
    /// GROUP_ADMIN of a user group of the job.
    pub user_group_admin: bool,
}

/// The table.
pub fn allowed(action: Action, r: Roles) -> bool {
    let cluster = r.admin || r.root;
    match action {
        Action::Submit | Action::SeeJobs => true,
        Action::ControlJob | Action::PeekJob => {
            r.owner || cluster || r.queue_admin || r.user_group_admin
        }
        Action::SeeSubmission | Action::PostMessage => r.owner || cluster,
        Action::ChangeReservation => r.owner || cluster,
        Action::AttachData => r.owner,
        Action::QueueCtrl => cluster || r.queue_admin,
        Action::ForceJob | Action::ReleaseDamaged | Action::HostCtrl => cluster,
        Action::Reserve => cluster,
        Action::Reconfig | Action::Shutdown | Action::Logging | Action::Perfmon => cluster,
    }
}

impl Site {
    /// The roles of a caller towards a job's owner and queue (empty: none).
    pub(crate) fn roles(&self, who: &Caller, owner: &str, queue: &str) -> Roles {
        Roles {
            owner: !owner.is_empty() && owner == who.user,
            admin: self.is_admin(&who.user),
            root: who.uid == 0 && self.root_user(),
            queue_admin: !queue.is_empty() && self.is_queue_admin(queue, &who.user, who.gid),
            user_group_admin: false,
        }
    }

    /// The hosts of the host groups that a caller administers (GROUP_ADMIN of lsb.hosts).
    pub(crate) fn hosts_administered_by(&self, who: &Caller) -> BTreeSet<String> {
        let unix = self.conf.unix.of(&who.user, Some(who.gid));
        let all = self.conf.batch.hosts.groups.iter();
        let own = all.filter(|group| self.conf.names_admin(&group.admins, &who.user, &unix));
        own.flat_map(|group| self.expand_host(&group.name)).collect()
    }

    /// Does a caller administer a user group of a job: the one that it was submitted to (-G), or,
    /// without STRICT_UG_CONTROL, any that its owner is in? A group of all users has
    /// administrators with STRICT_UG_CONTROL alone.
    pub(crate) fn is_user_group_admin(&self, who: &Caller, owner: &str, given: &str) -> bool {
        let strict = self.params().job_access.strict_user_groups;
        let unix = self.conf.unix.of(&who.user, Some(who.gid));
        let all = self.conf.batch.users.groups.iter();
        let mut own = all.filter(|group| {
            let everybody = !strict && group.is_of_all();
            !everybody && self.conf.names_admin(&group.admins, &who.user, &unix)
        });
        own.any(|group| group.name == given || (!strict && self.in_group(owner, &group.name)))
    }

    /// Refuses what the table does not allow.
    pub(crate) fn check(
        &self,
        who: &Caller,
        action: Action,
        owner: &str,
        queue: &str,
    ) -> Result<(), Refusal> {
        match allowed(action, self.roles(who, owner, queue)) {
            true => Ok(()),
            false => Err(Refusal::new(err::PERMISSION)),
        }
    }

    /// Refuses what the table does not allow towards a job; `given`: its user group (-G).
    pub(crate) fn check_job(
        &self,
        who: &Caller,
        action: Action,
        (owner, queue, given): (&str, &str, &str),
    ) -> Result<(), Refusal> {
        let roles = self.roles(who, owner, queue);
        let user_group_admin = || self.is_user_group_admin(who, owner, given);
        match allowed(action, roles)
            || allowed(action, Roles { user_group_admin: user_group_admin(), ..roles })
        {
            true => Ok(()),
            false => Err(Refusal::new(err::PERMISSION)),
        }
    }
}

/// The rows of permissions.txt: the message, and for each role whether it is let through.
#[cfg(test)]
pub fn rows() -> Vec<(&'static str, Vec<bool>)> {
    let lines = include_str!("permissions.txt").lines().filter(|l| !l.starts_with('#'));
    let row = |line: &'static str| {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let roles = words.by_ref().take(5).map(|w| match w {
            "+" => true,
            "-" => false,
            _ => panic!("{line}"),
        });
        (name, roles.collect())
    };
    lines.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_is_permitted_to_the_listed_roles_alone() {
        use Action::*;
        let none = Roles::default();
        let owner = Roles { owner: true, ..none };
        let admin = Roles { admin: true, ..none };
        let root = Roles { root: true, ..none };
        let qadmin = Roles { queue_admin: true, ..none };
        let gadmin = Roles { user_group_admin: true, ..none };
        let rows = [
            (Submit, [true; 5]),
            (SeeJobs, [true; 5]),
            (ControlJob, [false, true, true, true, true]),
            (PeekJob, [false, true, true, true, true]),
            (PostMessage, [false, true, true, true, false]),
            (AttachData, [false, true, false, false, false]),
            (ForceJob, [false, false, true, true, false]),
            (ReleaseDamaged, [false, false, true, true, false]),
            (Reserve, [false, false, true, true, false]),
            (ChangeReservation, [false, true, true, true, false]),
            (HostCtrl, [false, false, true, true, false]),
            (QueueCtrl, [false, false, true, true, true]),
            (Reconfig, [false, false, true, true, false]),
            (Shutdown, [false, false, true, true, false]),
            (Logging, [false, false, true, true, false]),
        ];
        for (action, want) in rows {
            let of_jobs = matches!(action, Submit | SeeJobs | ControlJob | PeekJob);
            assert_eq!(allowed(action, gadmin), of_jobs, "{action:?}");
            let got = [none, owner, admin, root, qadmin].map(|r| allowed(action, r));
            assert_eq!(got, want, "{action:?}");
        }
    }
}
