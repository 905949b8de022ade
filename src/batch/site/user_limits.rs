//! The limits of lsb.users(5) and lsb.resources(5) that a user is subject to, by name and as a
//! member of groups.
//!
//! With ENFORCE_ONE_UG_LIMITS of lsb.params(5) a job that was submitted with -G is subject to the
//! limits of that group and of the groups that it is nested in; those of other groups that its user
//! is in do not concern it.

use crate::batch::site::Site;
use crate::batch::site::rules::{Consumer, ConsumerRules};
use crate::conf::types::{UserPolicy, UserTerm};
use crate::model::kept_answers::KeptAnswers;
use std::sync::Arc;

/// The user groups whose limits a job is subject to, of those that its user is in.
#[derive(Clone, Debug)]
pub enum LimitingGroups {
    All,
    /// The group of -G, and those that it is nested in.
    Of(Arc<str>),
    /// Some, by the -G of each job.
    Unknown,
}

/// The limits that are about a user, whatever queue, project or application: a user has many
/// consumers. They hold for one group of -G, until the next configuration.
#[derive(Debug, Default)]
pub struct LimitsAboutUser {
    /// The row of lsb.users; `None`: not looked up yet.
    row: Option<Option<usize>>,
    /// Whether the words of a rule mean the user, for each rule that was asked for.
    meant: KeptAnswers,
}

impl Site {
    /// The rules that a consumer is subject to, whose user has this name. `known`: what was found
    /// for this user and group before.
    pub fn consumer_rules(
        &self,
        consumer: Consumer,
        user: &str,
        known: &mut LimitsAboutUser,
    ) -> ConsumerRules {
        let groups = self.limiting_groups(consumer);
        let LimitsAboutUser { row, meant } = known;
        let row = *row.get_or_insert_with(|| self.user_row_position(user, &groups));
        self.rules.of_consumer(consumer, row, |rule, words| {
            meant.answer(rule.index(), || self.limit_words_mean(words, user, &groups))
        })
    }

    /// The groups whose limits a consumer is subject to.
    pub fn limiting_groups(&self, consumer: Consumer) -> LimitingGroups {
        let group = consumer.user_group.map(|id| self.rules.consumer_names().user_group(id));
        match group {
            _ if !self.params().scheduler.user_groups.one_group_limits => LimitingGroups::All,
            None => LimitingGroups::Unknown,
            Some(group) if group.is_empty() => LimitingGroups::All,
            Some(group) => LimitingGroups::Of(group),
        }
    }

    /// Are the words of a limit about the jobs of a user?
    pub fn limit_words_mean(
        &self,
        words: &[UserTerm],
        user: &str,
        groups: &LimitingGroups,
    ) -> bool {
        match groups {
            LimitingGroups::All => self.user_in(words, user, None),
            // of a group that the user is no longer in, or that there is no more, nothing counts
            LimitingGroups::Of(group) if self.in_group(user, group) => {
                self.conf.user_in_by_group(words, user, Some(group))
            }
            LimitingGroups::Of(_) | LimitingGroups::Unknown => {
                self.conf.user_in_by_group(words, user, None)
            }
        }
    }

    /// The row of lsb.users for a user.
    pub fn user_row(&self, user: &str) -> Option<&UserPolicy> {
        let position = self.user_row_position(user, &LimitingGroups::All);
        position.map(|position| &self.conf.batch.users.users[position])
    }

    /// The position of the row of lsb.users for a user: by name, as a member of a group, or by
    /// default.
    pub fn user_row_position(&self, user: &str, of: &LimitingGroups) -> Option<usize> {
        let rows = &self.conf.batch.users.users;
        if rows.is_empty() {
            return None;
        }
        let own = rows.iter().position(|r| r.name == user && !r.each_member);
        let member = || {
            let groups = self.conf.unix.of(user, None);
            let in_it = |name: &str| self.conf.in_user_group(user, name, &groups);
            let counts = |r: &UserPolicy| match of {
                LimitingGroups::Of(given) => in_it(given) && self.conf.is_nested(given, &r.name),
                _ => in_it(&r.name),
            };
            rows.iter().position(|r| r.each_member && counts(r))
        };
        match of {
            LimitingGroups::Unknown => own,
            _ => own.or_else(member).or_else(|| rows.iter().position(|r| r.name == "default")),
        }
    }

    /// Limits of lsb.users on pending jobs of the user's groups, of each group as a whole. `given`:
    /// the group of -G; empty none.
    pub fn pending_groups(&self, user: &str, given: &str) -> impl Iterator<Item = &UserPolicy> {
        let limited = move |r: &&UserPolicy| {
            let whole = !r.each_member && r.name != "default" && r.name != user;
            whole && r.max_pend_jobs.or(r.max_pend_slots).is_some()
        };
        let one = self.params().scheduler.user_groups.one_group_limits && !given.is_empty();
        let counts = move |r: &UserPolicy| !one || self.conf.is_nested(given, &r.name);
        let rows = self.conf.batch.users.users.iter().filter(limited);
        rows.filter(move |r| counts(r) && self.in_group(user, &r.name))
    }
}
