//! badmin hghostadd and hghostdel: dynamic hosts that are members of host groups and compute units
//! beside those that lsb.hosts names. The event log keeps them (LSF_GROUP_HOST), so that they
//! survive a restart; lsb.hosts is never written.
//!
//! Only hosts that have joined by themselves are added, and only those that were added are taken
//! away: what the files say is changed in the files.

use crate::batch::site::permissions::{Action, Caller};
use crate::batch::{Mbatchd, StepContext};
use crate::model::event::Event;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::AdminLine;
use std::collections::BTreeSet;

/// Most hosts that are added to groups.
const MAX_ADDED: usize = 65_536;

/// LSF's numbers and words.
const IS_MEMBER: (i32, &str) = (232, "Host is already member of group");
const NOT_DYNAMIC: (i32, &str) = (233, "Host is not a dynamic host");
const NOT_ADDED: (i32, &str) = (234, "Host was not added with badmin hghostadd");

impl Mbatchd {
    /// Adds hosts to a group, or takes them away. True in the answer: the files are to be read
    /// again, as what is taken away may be in them.
    pub(crate) fn group_ctrl(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        add: bool,
        group: &str,
        hosts: &[String],
        comment: &str,
    ) -> Result<(Vec<AdminLine>, bool), Refusal> {
        self.site.check(who, Action::HostCtrl, "", "")?;
        crate::batch::admin::comment::check_comment(comment)?;
        let batch = &self.site.conf.batch.hosts;
        if !batch.groups.iter().any(|g| g.name == group)
            && !batch.units.iter().any(|u| u.name == group)
        {
            let (about, code, text) = (group.to_string(), err::BAD_HOST, String::new());
            return Ok((vec![AdminLine { about, code, text }], false));
        }
        let (mut lines, mut done) = (Vec::new(), false);
        for word in hosts {
            let known = self.site.conf.base.hosts.canonical(word).map(str::to_string);
            let host = known.unwrap_or_else(|| word.clone());
            let (code, text) = self.group_fault(add, group, &host).unwrap_or((0, ""));
            lines.push(AdminLine { about: host.clone(), code, text: text.to_string() });
            if code == 0 {
                let (group, message) = (group.to_string(), comment.to_string());
                let (uid, user) = (who.uid, who.user.clone());
                self.emit(context, Event::GroupHost { add, group, host, uid, user, message });
                done = true;
            }
        }
        if done && add {
            self.take_policy(context, self.site.conf.clone());
        }
        Ok((lines, done && !add))
    }

    /// Why a host cannot be added or taken away, if it cannot.
    fn group_fault(&self, add: bool, group: &str, host: &str) -> Option<(i32, &'static str)> {
        let own = self.state.group_hosts().get(group).is_some_and(|hosts| hosts.contains(host));
        if !add {
            return (!own).then_some(NOT_ADDED);
        }
        let Some(def) = self.site.conf.base.cluster.hosts.iter().find(|h| h.name == host) else {
            return Some((err::BAD_HOST, ""));
        };
        let batch = &self.site.conf.batch.hosts;
        let unit = batch.units.iter().find(|u| u.name == group);
        let member = match unit {
            Some(unit) => unit.members.iter().any(|m| m == host),
            None => self.site.expand_host(group).contains(host),
        };
        let all: usize = self.state.group_hosts().values().map(BTreeSet::len).sum();
        match () {
            () if own || member => Some(IS_MEMBER),
            () if !def.dynamic => Some(NOT_DYNAMIC),
            () if all >= MAX_ADDED => Some((err::BAD_ARG, "Too many hosts were added to groups")),
            () => None,
        }
    }
}
