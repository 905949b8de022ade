//! badmin's requests: hosts, queues, reconfiguration, shutdown.

use crate::batch::admin::comment::check_comment;
use crate::batch::site::permissions::{Action, Caller};
use crate::batch::{Mbatchd, StepContext};
use crate::model::event::{Ctrl, Event};
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{AdminLine, AdminOp, ClientMsg, QueueOp};
use crate::proto::machine::{ConnId, Effect};
use std::collections::BTreeSet;

fn line(about: &str, code: i32) -> AdminLine {
    AdminLine { about: about.to_string(), code, text: String::new() }
}

/// Longest lock ID of a host, characters.
const MAX_LOCK_ID: usize = 128;

impl Mbatchd {
    pub(crate) fn admin(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        op: AdminOp,
    ) {
        if let Some(why) = &self.log_failed
            && matches!(
                op,
                AdminOp::HostCtrl { .. } | AdminOp::QueueCtrl { .. } | AdminOp::GroupHosts { .. }
            )
        {
            let text = format!("{} ({why})", crate::model::reason::err_text(err::LOG_FULL));
            return context.refuse(conn, Refusal::text(err::LOG_FULL, text));
        }
        let result = match op {
            AdminOp::HostCtrl { open, hosts, comment, lock } => {
                self.host_ctrl(context, who, open, &hosts, (&comment, &lock))
            }
            AdminOp::QueueCtrl { op, queues, comment } => {
                self.queue_ctrl(context, who, op, &queues, &comment)
            }
            AdminOp::Logging { hosts, set } => self.set_logging(context, who, &hosts, set),
            AdminOp::Show { what } => self.show(&what),
            AdminOp::DefineQueues { command, again } => {
                return self.define_queues(context, conn, who, (command, again));
            }
            AdminOp::Diagnose { what, on, file, minutes } => {
                self.diagnose(context.now, who, (&what, on), &file, minutes)
            }
            AdminOp::Perfmon { what, secs } => self.perf_admin(context, who, &what, secs),
            AdminOp::GroupHosts { add, group, hosts, comment } => {
                match self.group_ctrl(context, who, add, &group, &hosts, &comment) {
                    Ok((lines, false)) => Ok(lines),
                    Ok((lines, true)) => {
                        // what the files say holds for it again
                        context.out.push(Effect::LoadConfig);
                        Ok(lines)
                    }
                    Err(r) => Err(r),
                }
            }
            AdminOp::Reconfig { .. } => match self.site.check(who, Action::Reconfig, "", "") {
                Ok(()) => {
                    context.say(
                        log::Level::Info,
                        format!("reconfiguration asked for by {}", who.user),
                    );
                    self.reconfig.push(conn);
                    context.out.push(Effect::LoadConfig);
                    return;
                }
                Err(r) => Err(r),
            },
            AdminOp::Shutdown { comment } => match self.site.check(who, Action::Shutdown, "", "") {
                Ok(()) => {
                    self.shutdown(context, conn, &comment);
                    return;
                }
                Err(r) => Err(r),
            },
        };
        match result {
            Ok(lines) => context.reply_durable(conn, ClientMsg::AdminDone { lines }),
            Err(r) => context.refuse(conn, r),
        }
    }

    fn shutdown(&mut self, context: &mut StepContext, conn: ConnId, comment: &str) {
        let (master, message) = (self.me.clone(), comment.to_string());
        // A log that cannot be written must not keep an administrator from a restart.
        if self.log_failed.is_none() {
            self.emit(context, Event::MbdDie { master, removed: 0, code: 0, message });
        }
        context.reply_durable(conn, ClientMsg::AdminDone { lines: Vec::new() });
        context.out.push(Effect::Exit { code: 0 });
    }

    fn host_ctrl(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        open: bool,
        hosts: &[String],
        (comment, lock): (&str, &str),
    ) -> Result<Vec<AdminLine>, Refusal> {
        // administrators of host groups may open and close the hosts of these alone
        let cluster = self.site.check(who, Action::HostCtrl, "", "");
        let own = self.site.hosts_administered_by(who);
        if own.is_empty() {
            cluster.clone()?;
        }
        check_comment(comment)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if lock.len() > MAX_LOCK_ID || !lock.chars().all(plain) {
            let words = format!("a lock ID has up to {MAX_LOCK_ID} letters, digits, - and _");
            return Err(Refusal::text(err::BAD_ARG, words));
        }
        let mut lines = Vec::new();
        // what is named again, by itself or in a group, is not done again
        let (mut words, mut done) = (BTreeSet::new(), BTreeSet::new());
        for word in hosts.iter().filter(|word| words.insert(*word)) {
            let names = self.site.expand_host(word);
            if names.is_empty() {
                lines.push(line(word, err::BAD_HOST));
            }
            for host in names {
                if !done.insert(host.clone()) {
                    continue;
                }
                if cluster.is_err() && !own.contains(&host) {
                    lines.push(line(&host, err::PERMISSION));
                    continue;
                }
                let op = if open { Ctrl::Open } else { Ctrl::Close };
                let (uid, user) = (who.uid, who.user.clone());
                let message = comment.to_string();
                if let Some(text) = self.keeps_shut(&host, open, lock) {
                    lines.push(AdminLine { text, ..line(&host, err::BAD_ARG) });
                    continue;
                }
                lines.push(line(&host, 0));
                let lock = lock.to_string();
                if let Some(id) = self.site.host_id(&host).filter(|_| open) {
                    self.exit_rates.forget(id);
                }
                self.emit(context, Event::HostCtrl { op, host, uid, user, message, lock });
            }
        }
        self.sched.changed();
        self.note_room();
        Ok(lines)
    }

    /// Why a host cannot be opened so, if it cannot.
    fn keeps_shut(&self, host: &str, open: bool, lock: &str) -> Option<String> {
        let locks = self.state.host_control_of(host).map(|c| &c.locks);
        let has = |lock: &str| locks.is_some_and(|l| l.contains(lock));
        match (open, lock) {
            (true, "") => {
                let all: Vec<&str> = locks?.iter().map(String::as_str).collect();
                let words = "Lock IDs keep the host closed";
                (!all.is_empty()).then(|| format!("{words}: {}", all.join(" ")))
            }
            (true, lock) if !has(lock) => Some(format!("Lock ID <{lock}> is not attached")),
            _ => None,
        }
    }

    fn queue_ctrl(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        op: QueueOp,
        queues: &[String],
        comment: &str,
    ) -> Result<Vec<AdminLine>, Refusal> {
        check_comment(comment)?;
        let all = queues.iter().any(|q| q == "all");
        let names: Vec<String> = match all {
            true => self.site.queues.iter().map(|q| q.conf.name.clone()).collect(),
            false => {
                let mut seen = BTreeSet::new();
                queues.iter().filter(|name| seen.insert(*name)).cloned().collect()
            }
        };
        let op = match op {
            QueueOp::Open => Ctrl::Open,
            QueueOp::Close => Ctrl::Close,
            QueueOp::Activate => Ctrl::Activate,
            QueueOp::Inactivate => Ctrl::Inactivate,
        };
        let mut lines = Vec::new();
        for queue in names {
            if self.site.find_queue(&queue).is_none() {
                lines.push(line(&queue, err::BAD_QUEUE));
            } else if self.site.check(who, Action::QueueCtrl, "", &queue).is_err() {
                lines.push(line(&queue, err::PERMISSION));
            } else {
                lines.push(line(&queue, 0));
                let (uid, user) = (who.uid, who.user.clone());
                let message = comment.to_string();
                self.emit(context, Event::QueueCtrl { op, queue, uid, user, message });
            }
        }
        self.eligible_all();
        self.sched.changed();
        self.note_room();
        Ok(lines)
    }
}
