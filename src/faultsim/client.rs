//! Submitters: each sends its jobs one after the other over connections that break, repeating a
//! submission under the same request id until it is answered. In between they change jobs that they
//! have submitted ([`super::verbs`]).

use super::limits::{WIDEST, any_queue};
use super::net::End;
use super::rng::Rng;
use super::verbs::{self, Change};
use super::world::{Ev, World};
use crate::model::ByteStr;
use crate::model::job::{JobSpec, extra, opt};
use crate::model::reason::err;
use crate::proto::client::{ClientMsg, IdSel, Submit, env_hash};
use crate::proto::machine::{ConnId, Input, Peer};
use crate::proto::{Msg, Refusal};
use std::collections::VecDeque;

/// A submission.
#[derive(Clone, Debug)]
pub struct Wish {
    pub request: String,
    pub spec: JobSpec,
    /// Elements.
    pub size: u32,
}

/// Share of jobs that go back to their queue by the exit value of their first attempts.
const BY_EXIT: f64 = 0.1;
/// Attempts that end so, at most: fewer than there are hosts, so that EXCLUDE() leaves one.
const BY_EXIT_ATTEMPTS: u64 = 2;
/// Share of jobs that run for minutes.
const LONG_OF_FEW: f64 = 0.08;
const LONG_OF_MANY: f64 = 0.01;
/// Share of the submissions, and of the changes, that a change follows.
const CHANGES: f64 = 0.5;
/// Requirements of jobs, by turns. Of these indices a host has enough whatever is reserved.
const RESERVE: [&str; 3] = ["", "rusage[r1m=0.5:duration=1:decay=1,ut=0.1/task]", "rusage[pg=2]"];
/// Share of the time of faults over which the requests are spread.
const SPREAD: f64 = 0.7;

/// Share of jobs on several slots.
const PARALLEL: f64 = 0.3;

/// How many slots a job asks for, at least and at most, and how they are to be spread.
fn wide(pairs: bool, rng: &mut Rng) -> (u32, u32, &'static str) {
    if !rng.chance(PARALLEL) {
        return (1, 1, "");
    }
    let most = 2 + rng.below(u64::from(WIDEST) - 1) as u32;
    let least = if rng.chance(0.3) { 1 } else { most };
    match rng.below(3) {
        0 => (least, most, " span[ptile=1]"),
        1 if pairs => (2, 2, " span[hosts=1]"),
        _ => (least, most, ""),
    }
}

/// A submitter.
#[derive(Debug)]
pub struct Client {
    pub host: usize,
    pub user: String,
    pub uid: u32,
    pub wishes: Vec<Wish>,
    pub next: usize,
    /// The connection, when there is one.
    pub conn: Option<ConnId>,
    /// Ignores what belongs to an earlier connection.
    pub dials: u64,
    /// The last job acknowledged: later ones may name it.
    pub last: Option<u32>,
    /// The master has said that it keeps the environment.
    pub env_kept: bool,
    /// Submitted jobs, with the number of their elements.
    pub jobs: Vec<(u32, u32)>,
    /// Requested and not answered.
    pub change: Option<Change>,
    /// Jobs that may be stopped or held and are to be resumed at the end.
    pub stopped: Vec<IdSel>,
    /// Answers that are to come on this connection; `false`: to the second of two equal requests.
    pub answers: VecDeque<bool>,
}

impl Client {
    /// `pairs`: a job may ask for two slots of one host.
    pub fn new(n: usize, host: usize, jobs: usize, pairs: bool, rng: &mut Rng) -> Client {
        let mut wishes = Vec::new();
        let mut left = jobs as u32;
        while left > 0 {
            let request = format!("c{n}-{}", wishes.len());
            let size = if left > 4 && rng.chance(0.1) { 2 + rng.below(3) as u32 } else { 1 };
            left -= size;
            let limit = if rng.chance(0.5) { "%1" } else { "" };
            let name = match size {
                1 => String::new(),
                n => format!("arr[1-{n}]{limit}"),
            };
            // the job runs so many milliseconds and ends with this code
            // some outlast the death of a host
            let share = if jobs > 100 { LONG_OF_MANY } else { LONG_OF_FEW };
            let long = match size == 1 && rng.chance(share) {
                true => 200_000 + rng.below(700_000),
                false => 0,
            };
            let (ms, code) = (50 + rng.below(9000) + long, if rng.chance(0.2) { 3 } else { 0 });
            let mut command = format!("work {ms} {code}");
            let mut extra = Vec::new();
            let (least, most, span) = wide(pairs, rng);
            // where hosts are excluded, one is left
            if most == 1 && rng.chance(BY_EXIT) {
                command = format!("work {ms} 99 {}", 1 + rng.below(BY_EXIT_ATTEMPTS));
                let values = if rng.chance(0.5) { "99" } else { "EXCLUDE(99)" };
                extra.push((extra::REQUEUE.to_string(), values.to_string()));
            }
            let spec = JobSpec {
                name,
                command: command.into(),
                extra,
                queue: if rng.chance(0.4) { any_queue(rng) } else { String::new() },
                min_slots: least,
                max_slots: most,
                options: if rng.chance(0.4) { opt::RERUNNABLE } else { 0 },
                res_req: format!("{}{span}", RESERVE[wishes.len() % RESERVE.len()]),
                depend: if rng.chance(0.15) { "ended(last)".into() } else { String::new() },
                ..JobSpec::default()
            };
            wishes.push(Wish { request, spec, size });
        }
        let (user, uid) = (format!("user{n}"), 1000 + n as u32);
        Client {
            host,
            user,
            uid,
            wishes,
            next: 0,
            conn: None,
            dials: 0,
            last: None,
            env_kept: false,
            jobs: Vec::new(),
            change: None,
            stopped: Vec::new(),
            answers: VecDeque::new(),
        }
    }

    pub fn done(&self) -> bool {
        self.next >= self.wishes.len() && self.change.is_none() && self.stopped.is_empty()
    }

    /// The change that is to be made, or the next submission.
    pub fn ask(&self) -> Option<Msg> {
        if let Some(change) = &self.change {
            return Some(change.msg.clone());
        }
        let w = self.wishes.get(self.next)?;
        let mut spec = w.spec.clone();
        if !spec.depend.is_empty() {
            spec.depend = self.last.map_or(String::new(), |j| format!("ended({j})"));
        }
        let env = ByteStr::from("A=1\0B=2\0");
        let (env, env_hash) = match self.env_kept {
            true => (ByteStr::default(), env_hash(&env)),
            false => (env, String::new()),
        };
        let request = w.request.clone();
        let submit = Submit { request, spec, env, env_hash, ..Submit::default() };
        Some(Msg::Client(ClientMsg::Submit(Box::new(submit))))
    }
}

/// May this refusal go away by itself?
pub fn passing(r: &Refusal) -> bool {
    matches!(r.code, err::LOG_FULL | err::BUSY)
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
        self.push(at, Ev::ClientDial { client, dials });
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
        let a = End::Client { client, dials };
        let b = End::Proc { proc_: q, born: self.procs[q].born, local: remote };
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
        if w.spec.options & opt::RERUNNABLE != 0 {
            self.check.rerunnable.insert(job);
        }
        self.check.acknowledged(&request, job, size);
        if let Some(before) = self.clients[client].last.filter(|_| waits) {
            self.check.waits_for.insert(job, before);
        }
        self.clients[client].last = last;
        self.clients[client].jobs.push((job, size));
        self.clients[client].next += 1;
        self.plan_change(client);
        self.ask_later(client);
    }

    /// May the job that a condition names have left memory?
    fn may_be_gone(&self, client: usize) -> bool {
        self.clients[client].last.is_some() && (self.check.cleans || self.check.damaged)
    }

    fn plan_change(&mut self, client: usize) {
        if self.rng.chance(CHANGES) {
            let change = {
                let Client { jobs, stopped, .. } = &mut self.clients[client];
                verbs::random_change(jobs, stopped, &mut self.rng)
            };
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
        self.push(self.now_us + pause, Ev::Ask { client, dials });
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
            Msg::Refused(r) if passing(&r) => self.cut(id),
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
