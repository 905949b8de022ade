//! The callers of res in the world: what they hear and when they end; and the conditions for the
//! tasks that res has started for them ([`super::parallel_tasks`]).

use super::event::SimEvent;
use super::os::{Os, SimTask};
use super::parallel_tasks::{CALLS_MOST, Call, SIGNALLED};
use super::world::World;
use crate::model::JobKey;
use crate::proto::Msg;
use crate::proto::launch::{LaunchMsg, TaskId, TaskStep};
use crate::proto::member::TaskNote;
use crate::proto::res::ResMsg;
use crate::proto::sbd::SbdMsg;
use std::collections::BTreeSet;
use std::sync::Arc;

impl World {
    /// mbatchd has started an attempt on these hosts.
    pub(super) fn tasks_hear_of_start(&mut self, key: JobKey, hosts: &[(Arc<str>, u32)]) {
        if !self.tasks.on() {
            return;
        }
        let at = |name: &str| self.hosts.iter().position(|host| host.name == name);
        let hosts = hosts.iter().filter_map(|(name, slots)| Some((at(name)?, *slots))).collect();
        self.tasks.hosts.insert(key, hosts);
    }

    /// The first process of an attempt runs: it calls the hosts of its job.
    pub(super) fn plan_calls(&mut self, host: usize, key: JobKey, pid: u32, uid: u32) {
        let hosts = self.tasks.hosts.get(&key).cloned().unwrap_or_default();
        if hosts.len() < 2 {
            return;
        }
        let boot = self.hosts[host].os.boot;
        let each = hosts.iter().flat_map(|&(to, slots)| std::iter::repeat_n(to, slots as usize));
        for to in each {
            let call = Call { key, uid, host, boot, pid, to, calls: 0, conn: None };
            self.tasks.calls.push(call);
            self.call_later(self.tasks.calls.len() - 1);
        }
    }

    fn call_later(&mut self, call: usize) {
        let pause = self.tasks.pause();
        self.push(self.now_us + pause, SimEvent::CallRes { call });
    }

    /// Does the process live that makes this call?
    pub(super) fn calls(&self, call: &Call) -> bool {
        let os = &self.hosts[call.host].os;
        let of_job = |task: &SimTask| task.id.key == call.key && task.id.step == TaskStep::Job;
        os.boot == call.boot && os.tasks.get(&call.pid).is_some_and(of_job)
    }

    /// A call has failed: the script makes it again, or has had enough of it.
    pub(super) fn call_again(&mut self, n: usize) {
        let call = &mut self.tasks.calls[n];
        call.calls += 1;
        if call.calls <= CALLS_MOST {
            self.call_later(n);
        }
    }

    /// res answers a caller.
    pub(super) fn caller_hears(&mut self, n: usize, msg: Msg) {
        let at = self.tasks.calls[n].key.job_ref();
        match msg {
            Msg::Res(ResMsg::Started { .. }) => {
                self.tasks.started += 1;
                if self.tasks.chance(SIGNALLED) {
                    let pause = self.tasks.pause();
                    self.push(self.now_us + pause, SimEvent::SignalJob { at });
                }
            }
            Msg::Res(ResMsg::Ended { .. }) => self.hang_up(n),
            Msg::Refused(refusal) => {
                *self.tasks.refused.entry(refusal.code).or_default() += 1;
                self.hang_up(n);
                self.call_again(n);
            }
            _ => {}
        }
    }

    fn hang_up(&mut self, n: usize) {
        if let Some(id) = self.tasks.calls[n].conn.take() {
            self.cut(id);
        }
    }

    /// The connection of a caller has ended.
    pub(super) fn caller_is_cut_off(&mut self, n: usize) {
        if let Some(id) = self.tasks.calls[n].conn.take() {
            self.conns.remove(&id);
            self.call_again(n);
        }
    }

    /// Processes of a host have ended, and the calls that they make with them.
    pub(super) fn callers_end(&mut self, host: usize) {
        for n in 0..self.tasks.calls.len() {
            let call = &self.tasks.calls[n];
            if call.host == host && call.conn.is_some() && !self.calls(call) {
                self.hang_up(n);
            }
        }
    }

    /// A host is cut off for long: the calls over its network end.
    pub(super) fn break_silent_calls(&mut self, host: usize) {
        for n in 0..self.tasks.calls.len() {
            let Call { host: from, to, conn, .. } = self.tasks.calls[n];
            if let Some(id) = conn.filter(|_| from != to && [from, to].contains(&host)) {
                self.cut(id);
            }
        }
    }

    /// SIGUSR1 comes to a process.
    pub(super) fn signalled(&mut self, host: usize, pid: u32) {
        let Some(task) = self.hosts[host].os.tasks.get_mut(&pid) else { return };
        task.signals += 1;
        let (id, had) = (task.id, task.signals);
        let Some(key) = self.tasks.attempt_of(host, id) else { return };
        let sent = self.tasks.signals.get(&key.job_ref()).copied().unwrap_or(0);
        self.tasks.signalled += 1;
        if had > sent {
            let text =
                format!("a process of {key} has had a signal {had} times, it was sent {sent}");
            self.check.fail(text);
        }
    }

    /// A message comes to a daemon of this host.
    pub(super) fn look_at_membership(&mut self, host: usize, msg: &Msg) {
        match msg {
            Msg::Sbd(SbdMsg::Join(order)) => drop(self.tasks.left.remove(&(host, order.key))),
            Msg::Launch(LaunchMsg::Start { id, note, .. }) => {
                if let Some(note) = TaskNote::of(note).filter(|_| id.step == TaskStep::Task) {
                    self.tasks.attempts.insert((host, *id), note.key);
                }
            }
            _ => {}
        }
    }

    /// mbatchd hears that an attempt has left a host.
    pub(super) fn has_left(&mut self, host: usize, key: JobKey) {
        if !self.tasks.on() {
            return;
        }
        let tasks = self.hosts[host].os.tasks.values().filter(|task| !task.waiting);
        let of = |task: &SimTask| self.tasks.attempt_of(host, task.id);
        if tasks.filter(|task| task.id.step == TaskStep::Task).any(|task| of(task) == Some(key)) {
            self.check.fail(format!("{key} has left host {host}, where a task of it runs"));
        }
        self.tasks.left.insert((host, key));
    }

    /// A process of a job or of one of its tasks is let go.
    pub(super) fn look_at_slots(&mut self, host: usize, id: TaskId) {
        if !self.tasks.on() || !matches!(id.step, TaskStep::Job | TaskStep::Task) {
            return;
        }
        let attempt = self.tasks.attempt_of(host, id).filter(|_| id.step == TaskStep::Task);
        if let Some(key) = attempt.filter(|key| self.tasks.left.contains(&(host, *key))) {
            self.check.fail(format!("a task of {key} begins on host {host}, which it has left"));
        }
        let attempts: BTreeSet<JobKey> = self.attempts_on(host).collect();
        let counted = attempts.iter().filter(|key| self.check.has_its_slots(key));
        let used: u32 = counted.map(|key| self.tasks.slots(*key, host)).sum();
        if used > self.scale.slots {
            let text = format!(
                "the jobs with processes on host {host} have {used} slots, it has {}: {attempts:?}",
                self.scale.slots
            );
            self.check.fail(text);
        }
    }

    /// The attempts whose processes have slots on a host.
    fn attempts_on(&self, host: usize) -> impl Iterator<Item = JobKey> {
        let tasks = self.hosts[host].os.tasks.values().filter(|task| !task.waiting);
        tasks.filter_map(move |task| match task.id.step {
            TaskStep::Job => Some(task.id.key),
            TaskStep::Task => {
                let key = self.tasks.attempt_of(host, task.id)?;
                let first = self.tasks.hosts.get(&key).and_then(|hosts| hosts.first());
                first.is_none_or(|first| first.0 != host).then_some(key)
            }
            _ => None,
        })
    }

    /// Is no task left of a job that is over?
    pub(super) fn no_tasks_left(&self) -> bool {
        let left = |(host, os): (usize, &Os)| {
            let tasks = os.tasks.values().filter(|task| task.id.step == TaskStep::Task);
            let mut attempts = tasks.filter_map(|task| self.tasks.attempt_of(host, task.id));
            attempts.any(|key| !self.check.excused(key.job))
        };
        let mut each = self.hosts.iter().map(|host| &host.os).enumerate();
        self.check.damaged || !self.tasks.on() || !each.any(left)
    }
}
