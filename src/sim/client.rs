//! Submitters: each sends its jobs one after the other over connections that break, repeating a
//! submission under the same request id until it is answered. In between they change, switch,
//! move, requeue, kill, stop and resume what they have submitted; that is asked for once, whatever
//! comes of it. Only that what they stopped goes on is asked for at the end until it is answered.

use super::Rng;
use super::net::End;
use super::world::{Ev, World};
use crate::model::job::{JobSpec, opt};
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::model::{ByteStr, JobRef};
use crate::proto::client::{
    ClientMsg, Control, IdSel, JobSelect, Modify, Requeue, Submit, Verb, env_hash,
};
use crate::proto::machine::{ConnId, Input, Peer};
use crate::proto::{Msg, Refusal};

/// One submission.
#[derive(Clone, Debug)]
pub struct Wish {
    pub request: String,
    pub spec: JobSpec,
    /// Elements.
    pub size: u32,
}

/// What is asked for of a job that was submitted.
#[derive(Clone, Debug)]
pub struct Deed {
    msg: Msg,
    /// The project that it gives to the job or element.
    project: Option<(JobRef, String)>,
    /// It lets the first of [`Client::stopped`] go on.
    last: bool,
}

/// Share of jobs that run for minutes.
const LONG_OF_FEW: f64 = 0.08;
const LONG_OF_MANY: f64 = 0.01;
/// How often a submission is followed by a deed.
const DEEDS: f64 = 0.5;

/// One submitter.
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
    /// What was submitted, with its number of elements.
    pub jobs: Vec<(u32, u32)>,
    /// Asked for and not answered.
    pub deed: Option<Deed>,
    /// What may be stopped and has to go on at the end.
    stopped: Vec<IdSel>,
}

impl Client {
    pub fn new(n: usize, host: usize, jobs: usize, rng: &mut Rng) -> Client {
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
            // What the job does: it runs so many milliseconds and ends with this code.
            // some outlast the death of a host
            let share = if jobs > 100 { LONG_OF_MANY } else { LONG_OF_FEW };
            let long = match size == 1 && rng.chance(share) {
                true => 200_000 + rng.below(700_000),
                false => 0,
            };
            let (ms, code) = (50 + rng.below(9000) + long, if rng.chance(0.2) { 3 } else { 0 });
            let spec = JobSpec {
                name,
                command: format!("work {ms} {code}").into(),
                queue: if rng.chance(0.2) { "high".into() } else { String::new() },
                options: if rng.chance(0.4) { opt::RERUNNABLE } else { 0 },
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
            deed: None,
            stopped: Vec::new(),
        }
    }

    pub fn done(&self) -> bool {
        self.next >= self.wishes.len() && self.deed.is_none() && self.stopped.is_empty()
    }

    /// Lets go on what was stopped, when all else is done.
    fn go_on(&mut self) {
        if self.next >= self.wishes.len()
            && self.deed.is_none()
            && let Some(id) = self.stopped.first()
        {
            let deed = Deed { last: true, ..Deed::control(Verb::Resume, id.clone()) };
            self.deed = Some(deed);
        }
    }

    /// The message for the deed, or for the next wish.
    pub fn ask(&self) -> Option<Msg> {
        if let Some(deed) = &self.deed {
            return Some(deed.msg.clone());
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

impl Client {
    /// Something to be done about one of the jobs.
    fn next_deed(&mut self, rng: &mut Rng) -> Option<Deed> {
        let recent = rng.chance(0.5).then(|| self.jobs.last()).flatten();
        let any = self.jobs.get(rng.below(self.jobs.len().max(1) as u64) as usize);
        let &(job, size) = recent.or(any)?;
        let mut id = IdSel { job, elems: Vec::new() };
        if size > 1 && rng.chance(0.6) {
            let first = 1 + rng.below(u64::from(size)) as u32;
            let last = if rng.chance(0.5) { first } else { size };
            id.elems.push((first, last, 1));
        }
        let verb = match rng.below(9) {
            6 => Verb::Kill,
            7 => Verb::Stop,
            8 => Verb::Resume,
            0 => Verb::Requeue(Requeue::default()),
            1 => {
                let queue = if rng.chance(0.5) { "high" } else { "normal" };
                Verb::Switch { queue: queue.into() }
            }
            2 => {
                let position = 1 + rng.below(9) as u32;
                Verb::Move { top: rng.chance(0.5), position }
            }
            _ => {
                let project = format!("p{}", rng.below(1 << 40));
                let idx = match id.elems[..] {
                    [(first, last, _)] if first == last => first,
                    _ => 0,
                };
                let spec = JobSpec { project: project.clone(), ..JobSpec::default() };
                let modify =
                    Modify { id, spec, fields: vec![SpecField::Project], ..Modify::default() };
                let msg = Msg::Client(ClientMsg::Modify(Box::new(modify)));
                let project = Some((JobRef { job, idx }, project));
                return Some(Deed { msg, project, last: false });
            }
        };
        if verb == Verb::Stop {
            self.stopped.push(id.clone());
        }
        Some(Deed::control(verb, id))
    }
}

impl Deed {
    fn control(verb: Verb, id: IdSel) -> Deed {
        let select = JobSelect { ids: vec![id], ..JobSelect::default() };
        let msg = Msg::Client(ClientMsg::Control(Box::new(Control::of(verb, select))));
        Deed { msg, project: None, last: false }
    }
}

/// May this refusal go away by itself?
pub fn passing(r: &Refusal) -> bool {
    matches!(r.code, err::LOG_FULL | err::BUSY)
}

impl World {
    pub(super) fn redial(&mut self, client: usize) {
        // what became of it nobody knows
        self.clients[client].deed = None;
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
        self.clients[client].go_on();
        if let Some(msg) = self.clients[client].ask() {
            self.transmit(id, true, msg);
        }
    }

    pub(super) fn client_msg(&mut self, client: usize, dials: u64, msg: Msg) {
        if self.clients[client].dials != dials {
            return;
        }
        let Some(id) = self.clients[client].conn else { return };
        match msg {
            Msg::Client(ClientMsg::Submitted { job, env_kept, .. }) => {
                self.clients[client].env_kept = env_kept;
                let w = &self.clients[client].wishes[self.clients[client].next];
                let (request, size) = (w.request.clone(), w.size);
                let waits = !w.spec.depend.is_empty();
                if w.spec.options & opt::RERUNNABLE != 0 {
                    self.check.rerunnable.insert(job);
                }
                self.check.acknowledged(&request, job, size);
                if let Some(last) = self.clients[client].last.filter(|_| waits) {
                    self.check.waits_for.insert(job, last);
                }
                self.clients[client].last = Some(job);
                self.clients[client].jobs.push((job, size));
                self.clients[client].next += 1;
                if self.rng.chance(DEEDS) {
                    let deed = self.clients[client].next_deed(&mut self.rng);
                    deed.iter().for_each(|d| self.check.asked(&d.msg, d.project.as_ref()));
                    self.clients[client].deed = deed;
                }
                self.ask(client, id);
            }
            Msg::Client(ClientMsg::Controlled { outcomes, .. }) => {
                let deed = self.clients[client].deed.take();
                if deed.as_ref().is_some_and(|d| d.last) {
                    self.clients[client].stopped.remove(0);
                }
                let done = outcomes.iter().all(|o| o.code == 0);
                if let Some((at, project)) = deed.and_then(|d| d.project).filter(|_| done) {
                    self.check.granted(at, &project);
                }
                self.ask(client, id);
            }
            Msg::Refused(_) if self.clients[client].deed.as_ref().is_some_and(|d| d.last) => {
                self.cut(id)
            }
            Msg::Refused(_) if self.clients[client].deed.take().is_some() => self.ask(client, id),
            Msg::Refused(r) if r.code == err::ENV_GONE && self.clients[client].env_kept => {
                self.clients[client].env_kept = false;
                self.ask(client, id);
            }
            Msg::Refused(r) if passing(&r) => self.cut(id),
            Msg::Refused(r) => {
                self.fatal = Some(format!("a good submission was refused: {}", r.words()))
            }
            _ => {}
        }
    }
}
