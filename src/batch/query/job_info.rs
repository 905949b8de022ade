//! The part of a job that a caller may see: SECURE_JOB_INFO_LEVEL and
//! ENABLE_JOB_INFO_BY_ADMIN_ROLE of lsb.params(5). Root and the primary administrator see
//! everything.

use crate::batch::Mbatchd;
use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::job_viewer::JobViewer;
use crate::batch::state::Job;
use crate::conf::types::{JobCloseness, JobRights};
use crate::proto::client::Col;

/// Does a column tell no more than a summary of a job?
pub(crate) fn is_summary(col: Col) -> bool {
    use Col::{
        AbsolutePriority, AllPendReasons, ArrayLimit, BeginTime, CondensedHosts, Counters, CpuUsed,
        EndTime, ExecHosts, FromHost, HostFactor, Idx, IneligibleTime, Job, Limits, MaxSlots,
        MemKb, MinSlots, Name, NextTry, PendLimits, PendReasons, PendTime, Pids, Project, Queue,
        RunLimit, RunTime, StartTime, Stat, SubmitTime, SuspIndex, SuspReason, SwapKb, TermTime,
        User,
    };
    matches!(
        col,
        AbsolutePriority
            | AllPendReasons
            | ArrayLimit
            | BeginTime
            | CondensedHosts
            | Counters
            | CpuUsed
            | EndTime
            | ExecHosts
            | FromHost
            | HostFactor
            | Idx
            | IneligibleTime
            | Job
            | Limits
            | MaxSlots
            | MemKb
            | MinSlots
            | Name
            | NextTry
            | PendLimits
            | PendReasons
            | PendTime
            | Pids
            | Project
            | Queue
            | RunLimit
            | RunTime
            | StartTime
            | Stat
            | SubmitTime
            | SuspIndex
            | SuspReason
            | SwapKb
            | TermTime
            | User
    )
}

impl Mbatchd {
    /// The caller of a listing, if there may be jobs that it does not see whole.
    pub(crate) fn viewer(&self, who: &Caller) -> Option<JobViewer> {
        let primary = self.site.conf.base.cluster.admins.first();
        let sees_all = who.uid == 0 || self.site.personal() || primary == Some(&who.user);
        let restricted = self.site.params().job_access.level > 0 && !sees_all;
        restricted.then(|| JobViewer::new(who))
    }

    /// The part of a job that a caller may see.
    pub(crate) fn job_rights(&self, viewer: &mut JobViewer, job: &Job) -> JobRights {
        let access = self.site.params().job_access;
        let (spec, names) = (job.spec_of(0), self.state.names());
        let (owner, given) = (names.user(job.user), spec.user_group.as_str());
        let who = viewer.who();
        let queue = names.queue(job.queue_of(0));
        if (access.cluster_admins && self.site.is_admin(&who.user))
            || (access.queue_admins && self.site.is_queue_admin(queue, &who.user, who.gid))
            || (access.user_group_admins && self.site.is_user_group_admin(who, owner, given))
        {
            return JobRights::Detail;
        }
        if **owner == *who.user {
            return access.rights(JobCloseness::Own);
        }
        let is_in = |who: &Caller, group: &str| {
            let unix = self.site.conf.unix.of(&who.user, Some(who.gid));
            self.site.conf.in_user_group(&who.user, group, &unix)
        };
        let same = match given.is_empty() {
            // the job belongs to the group that it was submitted to, and to no other
            false => viewer.is_in(given, |who| is_in(who, given)),
            true => viewer.shares_group(job.user, |who| {
                let groups = &self.site.conf.batch.users.groups;
                let mut names = groups.iter().map(|group| &group.name);
                names.any(|name| is_in(who, name) && self.site.in_group(owner, name))
            }),
        };
        access.rights(if same { JobCloseness::SameGroup } else { JobCloseness::Other })
    }

    /// May a caller see all of a job?
    pub(crate) fn sees_detail(&self, who: &Caller, job: &Job) -> bool {
        let viewer = self.viewer(who);
        viewer.is_none_or(|mut viewer| self.job_rights(&mut viewer, job) == JobRights::Detail)
    }
}
