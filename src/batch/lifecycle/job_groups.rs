//! bgadd, bgmod and bgdel, and the groups that leave when they are empty (JOB_GROUP_CLEAN).

use crate::batch::lifecycle::group_of_job::{named, words};
use crate::batch::site::permissions::{Action, Caller};
use crate::batch::soft_state::works::UNIT;
use crate::batch::state::job_groups::JobGroup;
use crate::batch::step::Checked;
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::GroupClean;
use crate::model::event::Event;
use crate::model::job_group::lineage;
use crate::model::reason::err;
use crate::model::time::US;
use crate::proto::Refusal;
use crate::proto::client::{AdminLine, ClientMsg};
use crate::proto::job_group::{DeleteGroups, JobGroupRequest, NewLimit};
use crate::proto::machine::ConnId;

/// Groups that one bgdel deletes; further ones go with the next.
pub const MAX_DELETED: usize = 10_000;

impl Mbatchd {
    pub(crate) fn job_group_request(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        request: JobGroupRequest,
    ) {
        let did = self.log_works().and_then(|()| match request {
            JobGroupRequest::Add { path, limit, sla } => {
                self.add_group(context, who, &path, limit, sla)
            }
            JobGroupRequest::Modify { path, limit, owner } => {
                self.modify_group(context, who, &path, limit, &owner)
            }
            JobGroupRequest::Delete(delete) => self.delete_groups(context, who, &delete),
            JobGroupRequest::List { path, slots } => {
                let rows = self.job_group_rows(&path, slots)?;
                context.reply(conn, ClientMsg::JobGroups(rows));
                Ok(None)
            }
        });
        match did {
            Ok(None) => {}
            Ok(Some(paths)) => {
                let line = |about: String| AdminLine { about, code: 0, text: String::new() };
                let lines = paths.into_iter().map(line).collect();
                context.reply_durable(conn, ClientMsg::AdminDone { lines });
            }
            Err(refusal) => context.refuse(conn, refusal),
        }
    }

    fn add_group(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        path: &str,
        limit: Option<u32>,
        sla: String,
    ) -> Checked<Option<Vec<String>>> {
        let path = named(path)?;
        if self.state.job_groups().get(path).is_some_and(|group| group.explicit) {
            return Err(Refusal::new(err::JGRP_EXIST));
        }
        self.check_group_limit(path, limit)?;
        if sla.len() > crate::proto::caps::MAX_NAME || sla.chars().any(char::is_control) {
            return Err(words("the name of the service class is not plain text".to_string()));
        }
        let classes = &self.site.service_classes;
        if !sla.is_empty() && !classes.is_empty() && classes.id(&sla).is_none() {
            return Err(Refusal::about(err::SLA_NULL, &*sla));
        }
        self.room_for_groups(path)?;
        self.make_groups(context, (who.uid, &who.user), path);
        // one that a submission has made stays its owner's
        let known = self.state.job_groups().get(path).cloned().unwrap_or_default();
        let group = JobGroup { explicit: true, limit, sla, ..known };
        self.emit(context, Event::JobGroupAdd(Box::new(group.record(path, context.now.secs()))));
        self.sched_group_room();
        Ok(Some(vec![path.to_string()]))
    }

    fn modify_group(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        path: &str,
        limit: Option<NewLimit>,
        owner: &str,
    ) -> Checked<Option<Vec<String>>> {
        let path = named(path)?;
        let Some(group) = self.state.job_groups().get(path).cloned() else {
            return Err(Refusal::new(err::NO_JGRP));
        };
        self.check_group_owner(who, path)?;
        let mut changed = group.clone();
        if let Some(limit) = limit {
            changed.limit = match limit {
                NewLimit::Most(most) => Some(most),
                NewLimit::None => None,
            };
            self.check_group_limit(path, changed.limit)?;
        }
        if !owner.is_empty() {
            // who it belongs to is for administrators to say
            self.site.check(who, Action::HostCtrl, "", "")?;
            changed.owner = owner.to_string();
        }
        if changed != group {
            self.emit(
                context,
                Event::JobGroupModify(Box::new(changed.record(path, context.now.secs()))),
            );
            self.sched_group_room();
        }
        Ok(Some(vec![path.to_string()]))
    }

    fn delete_groups(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        delete: &DeleteGroups,
    ) -> Checked<Option<Vec<String>>> {
        let mut gone = match delete.path.is_empty() {
            true => self.empty_groups(context, who, delete)?,
            false => {
                let path = named(&delete.path)?;
                if self.state.job_groups().get(path).is_none() {
                    return Err(Refusal::new(err::NO_JGRP));
                }
                self.check_group_owner(who, path)?;
                match delete.empty_only {
                    true => self.empty_below(path),
                    false if self.group_counts.tally(path).jobs > 0 => {
                        return Err(Refusal::new(err::JGRP_HASJOB));
                    }
                    false => {
                        let below = self.state.job_groups().below(path).map(|of| of.0.to_string());
                        let mut all: Vec<String> = below.take(MAX_DELETED + 1).collect();
                        if all.len() > MAX_DELETED {
                            let text = format!("more than {MAX_DELETED} groups below it");
                            return Err(words(text));
                        }
                        all.push(path.to_string());
                        all
                    }
                }
            }
        };
        // a group behind those below it
        gone.sort_unstable_by(|a, b| b.cmp(a));
        gone.truncate(MAX_DELETED);
        for path in &gone {
            self.delete_group(context, who.uid, &who.user, path);
        }
        Ok(Some(gone))
    }

    fn delete_group(&mut self, context: &mut StepContext, uid: u32, user: &str, path: &str) {
        self.idle_groups.forget(path);
        let (user, path) = (user.to_string(), path.to_string());
        self.emit(context, Event::JobGroupDelete { uid, user, path });
    }

    /// A group and those below it, without those in which or below which jobs are.
    fn empty_below(&self, path: &str) -> Vec<String> {
        let empty = |path: &&str| self.group_counts.tally(path).jobs == 0;
        let below = self.state.job_groups().below(path).map(|of| of.0);
        below.chain([path]).filter(empty).map(str::to_string).collect()
    }

    /// The empty groups of the caller, of another user, or of everybody; those that have been empty
    /// for so long, and all groups below them, too.
    fn empty_groups(
        &self,
        context: &StepContext,
        who: &Caller,
        delete: &DeleteGroups,
    ) -> Checked<Vec<String>> {
        let own = delete.user.is_empty() || delete.user == who.user;
        if !own {
            self.site.check(who, Action::HostCtrl, "", "")?;
        }
        let user = if delete.user.is_empty() { &who.user } else { &delete.user };
        let groups = self.state.job_groups();
        let (now, least) = (context.now.mono_us, delete.idle_secs.saturating_mul(US));
        let young = |path: &str| self.idle_groups.idle_for(path, now) < least;
        let all = groups.each().filter(|(path, group)| {
            let meant = *user == "all" || group.owner == *user;
            let stays = |(path, below): (&str, &JobGroup)| {
                *user != "all" && below.owner != *user || young(path)
            };
            let empty = self.group_counts.tally(path).jobs == 0;
            meant && empty && !young(path) && !groups.below(path).any(stays)
        });
        Ok(all.map(|(path, _)| path.to_string()).collect())
    }

    fn check_group_owner(&self, who: &Caller, path: &str) -> Checked<()> {
        match self.state.job_groups().is_owner(path, &who.user) {
            true => Ok(()),
            false => self.site.check(who, Action::HostCtrl, "", ""),
        }
    }

    /// A limit is not above those of the groups above, and not below those of the groups below.
    fn check_group_limit(&self, path: &str, limit: Option<u32>) -> Checked<()> {
        let Some(limit) = limit else { return Ok(()) };
        let groups = self.state.job_groups();
        let above = lineage(path).skip(1).find_map(|path| Some((path, groups.get(path)?.limit?)));
        if let Some((above, most)) = above.filter(|(_, most)| limit > *most) {
            let text = format!("the limit {limit} is above that of job group <{above}>, {most}");
            return Err(words(text));
        }
        let below = groups.below(path).find_map(|(path, group)| Some((path, group.limit?)));
        if let Some((below, least)) = below.filter(|(_, own)| *own > limit) {
            let text = format!("the limit {limit} is below that of job group <{below}>, {least}");
            return Err(words(text));
        }
        Ok(())
    }

    /// Deletes groups that the last job has left, where JOB_GROUP_CLEAN says so.
    pub(crate) fn clean_groups(&mut self, context: &mut StepContext) {
        for _ in 0..UNIT {
            let Some(path) = self.group_counts.take_emptied() else { return };
            let groups = self.state.job_groups();
            let Some(group) = groups.get(&path) else { continue };
            let empty = self.group_counts.tally(&path).jobs == 0;
            if empty {
                self.idle_groups.note(&path, context.now.mono_us);
            }
            let goes = match self.site.params().job_group_clean {
                GroupClean::No => false,
                GroupClean::Implicit => !group.explicit && group.limit.is_none(),
                GroupClean::All => true,
            };
            if !goes || !empty || groups.below(&path).next().is_some() {
                continue;
            }
            let (uid, owner) = (group.uid, group.owner.clone());
            self.delete_group(context, uid, &owner, &path);
            if let Some(above) = lineage(&path).nth(1) {
                self.group_counts.note_emptied(above);
            }
        }
    }

    /// A limit of groups may leave room that it did not.
    fn sched_group_room(&mut self) {
        self.sched.group_room();
    }
}
