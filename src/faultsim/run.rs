//! A run from its first event to the end of all jobs: events one by one in virtual time, and after
//! them the looks at what must hold.

use super::check::Failure;
use super::client::Client;
use super::event::SimEvent;
use super::scale::Stats;
use super::world::{DaemonMachine, World};
use crate::batch::Mbatchd;
use crate::model::time::US;
use crate::proto::machine::Input;
use std::cmp::Reverse;

/// Virtual seconds after the last fault in which everything must have finished.
const SETTLE_SECS: u64 = 7200;
/// Events after which a run is taken for stuck.
const MAX_EVENTS: u64 = 50_000_000;
/// Events from one recount of all that is counted to the next. A wrong count stays wrong, so that
/// a recount after many more events finds it, too: one in a large cluster looks at thousands of
/// jobs, and has as many events for each of them as one in a small cluster.
const AUDIT_EVENTS: u64 = 100;
/// Jobs of a cluster that is recounted after `AUDIT_EVENTS` at the least.
const AUDIT_JOBS: u64 = 500;

impl World {
    /// Runs until all is done, or something is wrong.
    pub fn run(&mut self) -> Result<Stats, Failure> {
        self.plan_fault();
        let end = (self.scale.fault_secs + SETTLE_SECS) * US;
        let audit_events = AUDIT_EVENTS * (self.scale.jobs as u64).div_ceil(AUDIT_JOBS);
        while let Some(Reverse((at, id))) = self.queue.pop() {
            self.now_us = at;
            self.handled += 1;
            let Some(ev) = self.events.remove(&id) else { continue };
            self.handle(ev);
            self.look_for_overlooked();
            if self.handled.is_multiple_of(audit_events) {
                self.audit();
            }
            if let Some(what) = self.fatal.take().or_else(|| self.check.wrong.clone()) {
                return Err(self.failure(what));
            }
            if self.handled.is_multiple_of(64) && self.finished() {
                break;
            }
            if at > end || self.handled > MAX_EVENTS {
                let left =
                    self.mbd().map_or("mbatchd is down".into(), |m| self.check.unfinished(m));
                let todo: usize = self.clients.iter().map(|c| c.wishes.len() - c.next).sum();
                let waits = self.still_at_work().join(", ");
                let what = format!("not finished ({todo} to submit; {waits}):{left}");
                return Err(self.failure(what));
            }
        }
        self.audit();
        let unknown_ends = match self.mbd_proc().map(|p| &self.procs[p].mach) {
            Some(Some(DaemonMachine::Mbd(m))) => self.check.finish(m),
            _ => return Err(self.failure("mbatchd is down at the end".to_string())),
        };
        self.check_log();
        if let Some(what) = self.fatal.take() {
            return Err(self.failure(what));
        }
        if let Some(what) = self.check.wrong.clone() {
            return Err(self.failure(what));
        }
        Ok(Stats {
            events: self.handled,
            virtual_secs: self.now_us / US,
            acknowledged: self.check.acked.len(),
            faults: self.faults,
            membership_deaths: self.membership_deaths.count,
            tasks: self.tasks.started,
            task_signals: self.tasks.signalled,
            switches: self.switches,
            routes: self.balancer.as_ref().map_or(0, |b| b.routes),
            nlb_changes: self.balancer.as_ref().map_or(0, |b| b.acknowledged),
            moves: self.moves,
            overtaken: self.overtaken,
            unknown_ends,
        })
    }

    /// No pass is due, and yet hosts have room for a job that may start.
    fn look_for_overlooked(&mut self) {
        const EVERY: u64 = 16;
        if !self.handled.is_multiple_of(EVERY) {
            return;
        }
        if let Some(job) = self.mbd().and_then(Mbatchd::overlooked) {
            self.check.fail(format!("the scheduler has overlooked job <{job}>"));
        }
    }

    fn audit(&mut self) {
        if let Some(Some(DaemonMachine::Mbd(m))) = self.mbd_proc().map(|p| &self.procs[p].mach) {
            self.check.reserved(m);
            self.check.recounted(m);
            self.check.ready(m);
        }
    }

    /// Once all is over, the last of the log: what a mbatchd finds that starts after the power
    /// went must be what the one before knew, and lsb.acct has each end once.
    pub(super) fn check_log(&mut self) {
        self.log.full = false;
        self.wake_master();
        self.log.drop_process();
        if self.rng.chance(0.5) {
            self.hosts[self.log.host].os.reboot();
            self.log.power_cut(&mut self.rng);
        }
        match self.open_log(self.log.host) {
            Ok(mbd) => {
                self.check.finish(&mbd);
                let acct = self.log.disk.get(crate::log::ACCT).unwrap_or_default();
                self.check.accounted(&acct);
            }
            Err(e) => self.fatal = Some(format!("the log cannot be opened: {e}")),
        }
    }

    fn failure(&self, what: String) -> Failure {
        Failure { seed: self.seed, at_secs: self.now_us as f64 / 1e6, what }
    }

    fn finished(&self) -> bool {
        self.now_us >= self.scale.fault_secs * US
            && self.clients.iter().all(Client::done)
            && self.mbd().is_some_and(|m| self.check.all_over(m))
            && self.still_at_work().is_empty()
    }

    /// The parts of the world that are not at rest, besides the jobs.
    fn still_at_work(&self) -> Vec<&'static str> {
        let settled = self.balancer.as_ref().is_none_or(|b| b.settled);
        let all = [
            ("the load balancer", settled),
            ("the log", self.log.quiet()),
            ("processes of jobs", self.check.nothing_left()),
            ("tasks of jobs", self.no_tasks_left()),
        ];
        all.into_iter().filter(|(_, rests)| !rests).map(|(what, _)| what).collect()
    }

    fn handle(&mut self, ev: SimEvent) {
        match ev {
            SimEvent::Input { proc_, born, input } => {
                if self.procs[proc_].born == born {
                    self.step(proc_, *input);
                }
            }
            SimEvent::Tick { proc_, gen_ } => {
                if self.procs[proc_].tick_gen == gen_ {
                    self.procs[proc_].tick_at = None;
                    self.step(proc_, Input::Tick);
                }
            }
            SimEvent::Arrive { conn, from_a, msg } => self.arrive(conn, from_a, *msg),
            SimEvent::Dial { proc_, born, local, to } => self.dial(proc_, born, local, to),
            SimEvent::Closed { end } => self.end_closed(end),
            SimEvent::LogTurn { gen_ } => self.log_turn(gen_),
            SimEvent::LogTold { born, notice } => self.log_told(born, notice),
            SimEvent::TaskEnd { host, boot, pid, gen_ } => self.task_end(host, boot, pid, gen_),
            SimEvent::TaskReady { host, boot, pid } => self.task_ready(host, boot, pid),
            SimEvent::Boot { host, boot } => self.boot(host, boot),
            SimEvent::ClientDial { client, dials } => self.client_dial(client, dials),
            SimEvent::Ask { client, dials } => self.ask_next(client, dials),
            SimEvent::Fault => self.fault(),
            SimEvent::CallRes { call } => self.call_res(call),
            SimEvent::SignalJob { at } => self.signal_job(at),
            SimEvent::Silence { host } => {
                if self.hosts[host].isolated {
                    self.break_silent_calls(host);
                }
            }
            SimEvent::Power { host } => drop(self.crash_host(host)),
            SimEvent::Rejoin { host } => self.rejoin(host),
            SimEvent::DiskBack => self.disk_back(),
            SimEvent::Wake => self.wake_master(),
            SimEvent::Reopen => self.reopen(),
            SimEvent::Administer => self.administer(),
            SimEvent::Force { at, host } => self.force(at, host),
        }
    }
}
