//! Carries out the requests of machines to the operating system of a simulated host: processes
//! begin, stop, end and are found; the journal is kept. State is in `os`, time in `world`.

use super::checkpoints;
use super::event::SimEvent;
use super::os::{self, SimTask};
use super::parallel_tasks::{SIGUSR1, STUBBORN};
use super::world::World;
use crate::model::limits::HostMemory;
use crate::proto::launch::{
    OsEffect, OsInput, Plan, TaskId, TaskIdentity, TaskPlan, TaskProcesses, TaskStep,
};
use crate::proto::machine::Input;
use std::collections::VecDeque;

impl World {
    pub(super) fn os_effect(&mut self, p: usize, eff: OsEffect, answers: &mut VecDeque<Input>) {
        let host = self.procs[p].host;
        match eff {
            // no TaskStarter runs on a simulated host
            OsEffect::Spawn { id, plan, .. } if matches!(plan.what, TaskPlan::Adopt { .. }) => {
                let why = "no such process".into();
                answers.push_back(Input::Os(OsInput::SpawnFailed { id, why }));
            }
            OsEffect::Spawn { id, plan, .. } => {
                let (pid, ticks) = self.spawn_task(p, id, &plan);
                answers.push_back(Input::Os(OsInput::Spawned { id, pid, ticks, group: None }));
            }
            OsEffect::Go { id } => self.go(host, id),
            OsEffect::SpawnDaemon { daemon } => {
                let input = match self.spawn_daemon(host, daemon) {
                    Ok((pid, ticks)) => OsInput::DaemonUp { daemon, pid, ticks },
                    Err(why) => {
                        self.fatal = Some(why.clone());
                        OsInput::DaemonFailed { daemon, why }
                    }
                };
                answers.push_back(Input::Os(input));
            }
            OsEffect::Signal { pid, ticks, signal } => self.signal(host, pid, ticks, signal),
            OsEffect::SignalTask { task, signal } => {
                self.signal(host, task.pid, task.ticks, signal);
            }
            OsEffect::Release { .. } | OsEffect::Look { .. } => {}
            OsEffect::Check { procs } => {
                for (pid, ticks) in procs {
                    if !self.hosts[host].os.alive(pid, ticks) {
                        answers.push_back(Input::Os(OsInput::Gone { pid, ticks }));
                    }
                }
            }
            OsEffect::Journal(line) => self.hosts[host].os.journal.push(*line),
            OsEffect::Rewrite(lines) => self.hosts[host].os.journal = lines,
            OsEffect::Sample { tasks, .. } => {
                let os = &self.hosts[host].os;
                let processes = |task: &TaskIdentity| {
                    let pid = task.pid;
                    os.tasks.get(&pid).filter(|t| !t.waiting).map(|_| one_process(pid))
                };
                let found = tasks.iter().filter_map(processes).collect();
                answers.push_back(Input::Os(OsInput::Sampled(found, HostMemory::default())));
            }
        }
    }

    /// A process that waits for its launcher's word; its process ID and start.
    fn spawn_task(&mut self, p: usize, id: TaskId, plan: &Plan) -> (u32, u64) {
        let mut stubborn = false;
        let (ms, code) = match &plan.what {
            TaskPlan::Job(j) if id.step == TaskStep::Task => {
                let words = j.attach.iter().flat_map(|attach| &attach.argv);
                let words: Vec<String> = words.map(|word| word.lossy().into_owned()).collect();
                stubborn = words.first().is_some_and(|word| word == STUBBORN);
                os::work(&words.join(" "), 0)
            }
            TaskPlan::Job(j) => {
                let command = j.command.lossy();
                self.check.begins_with(id.key, &command);
                os::work(&command, id.key.attempt)
            }
            TaskPlan::Finish(_) if id.step == TaskStep::Control => {
                checkpoints::echkpnt(&mut self.rng)
            }
            TaskPlan::Finish(_) | TaskPlan::Adopt { .. } => (1, 0),
        };
        let (now, parent) = (self.now_us, self.procs[p].born);
        let os = &mut self.hosts[self.procs[p].host].os;
        let (pid, ticks) = (os.pid(), now + 1);
        let task = SimTask {
            id,
            ticks,
            parent,
            waiting: true,
            left: ms * 1000,
            since: now,
            stopped: false,
            gen_: 0,
            status: code << 8,
            uid: plan.uid,
            stubborn,
            signals: 0,
        };
        os.tasks.insert(pid, task);
        (pid, ticks)
    }

    fn go(&mut self, host: usize, id: TaskId) {
        let now = self.now_us;
        let delay = 200 + self.rng.below(2000);
        let os = &mut self.hosts[host].os;
        let boot = os.boot;
        let Some((&pid, t)) = os.tasks.iter_mut().find(|(_, t)| t.id == id && t.waiting) else {
            return;
        };
        t.waiting = false;
        t.since = now;
        let (end, gen_, uid) = (now + delay + t.left, t.gen_, t.uid);
        self.push(now + delay, SimEvent::TaskReady { host, boot, pid });
        self.push(end, SimEvent::TaskEnd { host, boot, pid, gen_ });
        let alike = self.hosts[host].os.tasks.values().filter(|t| t.id.key == id.key && !t.waiting);
        if alike.filter(|t| t.id.step == TaskStep::Control).count() > 1 {
            self.check.fail(format!("two checkpoints of {} are made at a time", id.key));
        }
        if id.step == TaskStep::Job {
            self.check.started(host, id.key, self.scale.slots);
            self.plan_calls(host, id.key, pid, uid);
        }
        self.look_at_slots(host, id);
    }

    fn signal(&mut self, host: usize, pid: u32, ticks: u64, signal: i32) {
        let now = self.now_us;
        if self.hosts[host].os.daemons.get(&pid).is_some_and(|d| d.1 == ticks) {
            if let Some(p) = self.procs.iter().position(|q| q.host == host && q.pid == pid) {
                self.kill_proc(p, true);
            }
            return;
        }
        let os = &mut self.hosts[host].os;
        let boot = os.boot;
        let Some(t) = os.tasks.get_mut(&pid).filter(|t| t.ticks == ticks) else { return };
        match signal {
            SIGUSR1 => self.signalled(host, pid),
            1 | 2 | 15 if t.stubborn => {}
            19 | 20 => {
                if !t.stopped {
                    t.left = t.left.saturating_sub(now - t.since);
                    t.stopped = true;
                    t.gen_ += 1;
                }
            }
            18 => {
                if t.stopped {
                    t.stopped = false;
                    t.since = now;
                    t.gen_ += 1;
                    let (end, gen_) = (now + t.left, t.gen_);
                    self.push(end, SimEvent::TaskEnd { host, boot, pid, gen_ });
                }
            }
            _ => {
                t.gen_ += 1;
                t.stopped = false;
                t.status = signal;
                let gen_ = t.gen_;
                self.push(now + 100, SimEvent::TaskEnd { host, boot, pid, gen_ });
            }
        }
    }
}

/// The processes of a job that has one.
fn one_process(pid: u32) -> TaskProcesses {
    let one = || vec![pid];
    let (pids, pgids, groups) = (one(), one(), one());
    TaskProcesses { pid, usage: os::usage(1000), pids, pgids, groups, ..TaskProcesses::default() }
}
