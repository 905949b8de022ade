//! Submitters in the world: their connections, requests and the answers to them.

use super::change::Submitted;
use super::client::Client;
use super::conn::ConnEnd;
use super::event::SimEvent;
use super::verbs;
use super::world::{World, simulated_site};
use crate::model::job::{opt, opt2};
use crate::model::reason::err;
use crate::proto::client::{ClientMsg, IdSel};
use crate::proto::machine::{Input, Peer};
use crate::proto::{Msg, Refusal};

/// Share of the submissions, and of the changes, that a change follows.
const CHANGES: f64 = 0.5;
/// Share of the time of faults over which the requests are spread.
const SPREAD: f64 = 0.7;

/// May this refusal go away by itself? `shut`: queues are closed since control records were lost,
/// until the administrator opens them.
fn passing(r: &Refusal, shut: bool) -> bool {
    matches!(r.code, err::LOG_FULL | err::BUSY) || shut && r.code == err::QUEUE_CLOSED
}

/// The job of a submission that is repeated after the job has ended and left memory.
fn cleaned_job(r: &Refusal) -> Option<u32> {
    let id = r.about.strip_prefix("Job <")?.strip_suffix('>')?;
    id.parse().ok().filter(|_| r.code == err::JOB_FINISH)
}

impl World {
    pub(super) fn redial(&mut self, client: usize) {
        self.answer_lost(client);
        if self.clients[client].done() {
            return;
        }
        self.clients[client].dials += 1;
        let dials = self.clients[client].dials;
        let at = self.now_us + 100_000 + self.rng.below(900_000);
        self.push(at, SimEvent::ClientDial { client, dials });
    }

    pub(super) fn client_dial(&mut self, client: usize, dials: u64) {
        if self.clients[client].dials != dials || self.clients[client].conn.is_some() {
            return;
        }
        let host = self.clients[client].host;
        let isolated = |h: usize| self.hosts[h].isolated;
        let reached = |q: &usize| {
            let at = self.procs[*q].host;
            at == host || !isolated(host) && !isolated(at)
        };
        let Some(q) = self.mbd_proc().filter(reached) else {
            return self.redial(client);
        };
        let remote = self.incoming();
        let a = ConnEnd::Client { client, dials };
        let b = ConnEnd::Proc { proc_: q, born: self.procs[q].born, local: remote };
        let id = self.connect(a, b, host == self.procs[q].host);
        let c = &self.clients[client];
        let (uid, user) = (c.uid, c.user.clone());
        let peer = Peer::User { uid, gid: uid, user, host: self.hosts[host].name.clone() };
        self.step(q, Input::Opened { conn: remote, peer });
        self.ask(client, id);
    }

    fn ask(&mut self, client: usize, id: u64) {
        if !self.resume_stopped(client) {
            // dialled again later
            return self.cut(id);
        }
        if let Some(msg) = self.clients[client].ask() {
            self.transmit(id, true, msg);
        }
    }

    /// The next wish has become a job. `last`: the job that a condition may name from now on.
    fn submitted(&mut self, client: usize, job: u32, last: Option<u32>) {
        let w = &self.clients[client].wishes[self.clients[client].next];
        let (request, size) = (w.request.clone(), w.size);
        let waits = !w.spec.depend.is_empty();
        // a request is bound to one host
        let by_exit = !w.spec.further.requeue.is_empty() || self.balancer.is_some();
        if w.spec.options & opt::RERUNNABLE != 0 {
            self.check.rerunnable.insert(job);
        }
        if w.spec.options2 & opt2::HOLD != 0 {
            self.clients[client].stopped.push(IdSel { job, elems: Vec::new() });
        }
        self.check.acknowledged(&request, job, size);
        if let Some(before) = self.clients[client].last.filter(|_| waits) {
            self.check.waits_for.entry(job).or_default().push(before);
        }
        self.clients[client].last = last;
        self.clients[client].jobs.push(Submitted { job, size, by_exit });
        self.clients[client].next += 1;
        self.plan_change(client);
        self.ask_later(client);
    }

    /// May the job that a condition names have left memory?
    fn may_be_gone(&self, client: usize) -> bool {
        self.clients[client].last.is_some() && (self.check.cleans || self.check.damaged)
    }

    fn plan_change(&mut self, client: usize) {
        self.plan_force(client);
        if self.rng.chance(CHANGES) {
            let now = self.now(self.log.host).secs();
            let site = simulated_site(&self.conf.batch, self.seed, self.scale.hosts, now);
            let Client { jobs, stopped, wishes, .. } = &mut self.clients[client];
            let change = verbs::random_change((jobs, wishes.len()), stopped, site, &mut self.rng);
            change.iter().for_each(|d| self.check.asked(&d.msg, d.project.as_ref()));
            self.clients[client].change = change;
        }
    }

    /// The next request follows after a pause, so that jobs have begun and ended when they are
    /// changed.
    fn ask_later(&mut self, client: usize) {
        let c = &self.clients[client];
        let requests = c.wishes.len() as f64 * (1.0 + CHANGES / (1.0 - CHANGES));
        let mean = self.scale.fault_secs as f64 * SPREAD / requests;
        let (dials, pause) = (c.dials, (self.rng.exp(mean) * 1e6) as u64);
        self.push(self.now_us + pause, SimEvent::Ask { client, dials });
    }

    pub(super) fn ask_next(&mut self, client: usize, dials: u64) {
        let c = &self.clients[client];
        if let Some(id) = c.conn.filter(|_| c.dials == dials) {
            self.ask(client, id);
        }
    }

    pub(super) fn client_msg(&mut self, client: usize, dials: u64, msg: Msg) {
        if self.clients[client].dials != dials {
            return;
        }
        let Some(id) = self.clients[client].conn else { return };
        if self.is_echo(client, &msg) {
            return;
        }
        match msg {
            Msg::Client(ClientMsg::Submitted { job, env_kept, .. }) => {
                self.clients[client].env_kept = env_kept;
                self.submitted(client, job, Some(job));
            }
            Msg::Client(ClientMsg::Controlled { outcomes, .. }) => {
                let change = self.clients[client].change.take();
                if change.as_ref().is_some_and(|d| d.last) {
                    self.clients[client].stopped.remove(0);
                }
                let done = outcomes.iter().all(|o| o.code == 0);
                if let Some((at, project)) = change.and_then(|d| d.project).filter(|_| done) {
                    self.check.granted(at, &project);
                }
                if self.clients[client].next < self.clients[client].wishes.len() {
                    self.plan_change(client);
                }
                self.ask_later(client);
            }
            Msg::Client(ClientMsg::AdminDone { .. }) => {
                self.clients[client].change = None;
                self.ask_later(client);
            }
            Msg::Refused(_) if self.clients[client].change.as_ref().is_some_and(|d| d.last) => {
                self.cut(id)
            }
            Msg::Refused(_) if self.clients[client].change.take().is_some() => {
                self.ask_later(client);
            }
            Msg::Refused(r) if r.code == err::ENV_GONE && self.clients[client].env_kept => {
                self.clients[client].env_kept = false;
                self.ask(client, id);
            }
            Msg::Refused(r) if passing(&r, self.log.shut) => self.cut(id),
            Msg::Refused(r) if r.code == err::NO_JOB && self.may_be_gone(client) => {
                self.clients[client].last = None;
                self.ask(client, id);
            }
            Msg::Refused(r) if cleaned_job(&r).is_some() => {
                self.submitted(client, cleaned_job(&r).unwrap_or(0), None);
            }
            Msg::Refused(r) => {
                self.fatal = Some(format!("a good submission was refused: {}", r.words()))
            }
            _ => {}
        }
    }
}
