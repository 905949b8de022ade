//! The turn of a machine: one input, and the effects that it leads to at once.

use super::balancer::Balancer;
use super::event::SimEvent;
use super::limits;
use super::suspension::hear_of_suspension;
use super::world::{DaemonMachine, World};
use crate::model::JobRef;
use crate::model::event::{Event, Finish, Record};
use crate::proto::Daemon;
use crate::proto::lim::{HostFacts, LoadSample};
use crate::proto::machine::{Effect, Input};
use crate::proto::res::{TaskNews, TaskOp};
use std::collections::VecDeque;

/// The records that a machine appends.
fn records(out: &[Effect]) -> impl Iterator<Item = &Record> {
    out.iter().filter_map(|effect| match effect {
        Effect::Append(record) => Some(&**record),
        _ => None,
    })
}

impl World {
    /// One input, then everything it leads to at once.
    pub(super) fn step(&mut self, p: usize, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now = self.now(self.procs[p].host);
            let mut out = Vec::new();
            let born = self.procs[p].born;
            if self.procs[p].daemon == Daemon::Mbatchd {
                self.mbd_hears(p, &input);
            }
            let Some(mach) = &mut self.procs[p].mach else { return };
            let tick = matches!(input, Input::Tick);
            mach.step(now, input, &mut out);
            if let DaemonMachine::Mbd(mbd) = &*mach
                && let Err(why) =
                    self.started.appended(mbd.state(), &self.conf.batch, records(&out))
            {
                self.check.fail(why);
            }
            if let DaemonMachine::Mbd(mbd) = &*mach {
                for (key, slots) in limits::on_first_hosts(mbd.state(), Some(records(&out))) {
                    self.check.given(key, slots);
                }
                if records(&out).any(|record| matches!(record.event, Event::JobStart(_))) {
                    self.check.decided_start();
                }
                let secs = self.now_us as f64 / 1e6;
                let state = mbd.state();
                hear_of_suspension(&mut self.check, state, &self.conf.batch, records(&out), secs);
            }
            // one unit in a turn, so that others and failures come between two of them
            if tick && mach.has_work() {
                mach.work(now, &mut out);
            }
            let mut answers = VecDeque::new();
            for eff in out {
                self.carry_out(p, eff, &mut answers);
                if self.procs[p].born != born {
                    return;
                }
            }
            while let Some(a) = answers.pop_back() {
                inputs.push_front(a);
            }
        }
        if self.procs[p].daemon == Daemon::Mbatchd {
            self.log_end_of_turn();
            if let Some(Err(why)) = self.balancer.as_mut().map(Balancer::turn_ends) {
                self.check.fail(why);
            }
        }
        self.look_at_policies(p);
        self.arm(p);
    }

    fn arm(&mut self, p: usize) {
        let Some(mach) = &self.procs[p].mach else { return };
        // A turn takes time: a machine that wants a tick at once gets it a little later.
        let due = if mach.has_work() { Some(0) } else { mach.deadline() };
        let want = due.map(|d| d.max(self.now_us + 1));
        if want == self.procs[p].tick_at {
            return;
        }
        self.procs[p].tick_at = want;
        self.procs[p].tick_gen += 1;
        if let Some(at) = want {
            let gen_ = self.procs[p].tick_gen;
            self.push(at, SimEvent::Tick { proc_: p, gen_ });
        }
    }

    /// mbatchd appends a record.
    fn look_at_record(&mut self, record: &Record) {
        log::trace!("{:.6} appended: {record:?}", self.now_us as f64 / 1e6);
        self.mbd_decides(&record.event);
        if let Some(Err(why)) = self.balancer.as_mut().map(|b| b.appended(record)) {
            self.check.fail(why);
        }
    }

    /// mbatchd accounts for ends of jobs.
    fn look_at_accounts(&mut self, effect: &Effect) {
        match effect {
            Effect::Account(finish) => self.check.accounts(finish),
            Effect::AccountElements(finish, elems) => {
                let each = |&(a, b, step): &(u32, u32, u32)| (a..=b).step_by(step.max(1) as usize);
                for idx in elems.iter().flat_map(each) {
                    let at = JobRef { idx, ..finish.at };
                    self.check.accounts(&Finish { at, ..(**finish).clone() });
                }
            }
            _ => {}
        }
    }

    fn carry_out(&mut self, p: usize, eff: Effect, answers: &mut VecDeque<Input>) {
        if let Effect::Append(record) = &eff {
            self.look_at_record(record);
        }
        self.look_at_accounts(&eff);
        let Some(eff) = self.log_effect(eff) else { return };
        match eff {
            Effect::Send { conn, msg } => {
                self.look_at_answer(p, &msg);
                let drained = msg.goes_on();
                self.send(p, conn, msg);
                if drained {
                    self.later(p, 100, Input::Drained { conn });
                }
            }
            Effect::SendDurable { conn, msg } => match self.log.tickets.due() {
                Some(ticket) => self.hold(p, conn, ticket, msg),
                None => self.send(p, conn, msg),
            },
            Effect::SendBlob { conn, at } => self.send_blob(p, conn, at),
            Effect::Close { conn } => self.close(p, conn),
            Effect::Connect { conn, to } => {
                let born = self.procs[p].born;
                let at = self.now_us + self.latency();
                self.push(at, SimEvent::Dial { proc_: p, born, local: conn, to });
            }
            Effect::LoadConfig => {
                let conf = Some(Box::new(self.conf.clone()));
                answers.push_back(Input::Config { conf, diags: Vec::new() });
            }
            Effect::Datagram { to, msg } => self.datagram(p, &to, msg),
            Effect::Sample => {
                let facts =
                    HostFacts { ncpus: limits::CPUS, cpu_factor: 1.0, ..HostFacts::default() };
                let boot_id = self.hosts[self.procs[p].host].os.boot_id();
                let mem = 8000;
                let s = LoadSample { facts, boot_id, mem, ..LoadSample::default() };
                answers.push_back(Input::Sample(Box::new(s)));
            }
            Effect::Os(os) => self.os_effect(p, os, answers),
            Effect::Say { level, text } => {
                let (t, q) = (self.now_us as f64 / 1e6, &self.procs[p]);
                let host = &self.hosts[q.host].name;
                log::log!(level, "{t:.6} {} on {host}: {text}", q.daemon.name());
            }
            Effect::Exit { .. } => self.kill_proc(p, true),
            // a task of res has no descriptors here: there is nothing to be read
            Effect::Task { n, op: TaskOp::Drain } => {
                self.later(p, 100, Input::Task { n, news: TaskNews::Drained });
            }
            // taken by the log above
            Effect::Task { .. }
            | Effect::Append(_)
            | Effect::Spool { .. }
            | Effect::Account(_)
            | Effect::AccountElements(..)
            | Effect::Switch { .. } => {}
            Effect::Nlb(effect) => self.nlb_effect(p, effect),
            Effect::Mail { text, .. } => {
                let ticket = self.log.tickets.due();
                self.balancer.iter_mut().for_each(|b| b.mail(ticket, &text));
            }
            // notes and definitions of queues are not simulated
            _ => {}
        }
    }
}
