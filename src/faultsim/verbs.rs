//! The verbs with which submitters change their jobs: bmod, bswitch, btop, bbot, brequeue, bkill,
//! bstop and bresume, of whole jobs and of elements. A submitter whose answer was lost gives up or
//! asks again, and some requests arrive twice. At the end each job that may be stopped or held is
//! resumed, until the answer comes.
//!
//! A request that arrives twice, with nothing in between, changes nothing the second time.
//! [`super::same`] checks that the next mbatchd knows what was changed.

use super::Rng;
use super::client::Client;
use super::net::End;
use super::world::{Ev, Mach, World};
use crate::batch::state::ElemState;
use crate::model::job::JobSpec;
use crate::model::specfield::SpecField;
use crate::model::time::US;
use crate::model::{ByteStr, JobRef};
use crate::proto::Msg;
use crate::proto::client::{
    AdminOp, ClientMsg, Control, IdSel, JobSelect, Modify, QueueOp, Requeue, Verb,
};
use crate::proto::machine::{ConnId, Input, Machine, Peer};

/// Share of the requests without an answer that are made again.
const AGAIN: f64 = 0.5;
/// Share of the requests that have an id, by which mbatchd knows those that are made again.
const WITH_ID: f64 = 0.5;
/// Share of the requests that arrive twice.
const TWICE: f64 = 0.1;

/// A request that changes a submitted job.
#[derive(Clone, Debug)]
pub struct Change {
    pub msg: Msg,
    /// The project that bmod gives to the job or element.
    pub project: Option<(JobRef, String)>,
    /// bresume of the first of [`Client::stopped`], at the end.
    pub last: bool,
}

impl Change {
    fn control(verb: Verb, id: IdSel, request: String) -> Change {
        let select = JobSelect { ids: vec![id], ..JobSelect::default() };
        let control = Control { request, ..Control::of(verb, select) };
        let msg = Msg::Client(ClientMsg::Control(Box::new(control)));
        Change { msg, project: None, last: false }
    }
}

/// The jobs that a request changes.
fn changed_jobs(msg: &Msg) -> Vec<u32> {
    match msg {
        Msg::Client(ClientMsg::Control(c)) => c.select.ids.iter().map(|id| id.job).collect(),
        Msg::Client(ClientMsg::Modify(m)) => vec![m.id.job],
        _ => Vec::new(),
    }
}

impl Client {
    /// A random change of one of the submitted jobs.
    pub(super) fn next_change(&mut self, rng: &mut Rng) -> Option<Change> {
        let recent = rng.chance(0.5).then(|| self.jobs.last()).flatten();
        let any = self.jobs.get(rng.below(self.jobs.len().max(1) as u64) as usize);
        let &(job, size) = recent.or(any)?;
        let mut id = IdSel { job, elems: Vec::new() };
        if size > 1 && rng.chance(0.6) {
            let first = 1 + rng.below(u64::from(size)) as u32;
            let last = if rng.chance(0.5) { first } else { size };
            id.elems.push((first, last, 1));
        }
        let verb = match rng.below(11) {
            6 => Verb::Kill,
            7 => Verb::Stop,
            8 => Verb::Resume,
            // of running, ended and killed jobs
            0 | 9 | 10 => Verb::Requeue(Requeue {
                run: rng.chance(0.5),
                done: rng.chance(0.7),
                exit: rng.chance(0.7),
                hold: rng.chance(0.3),
                ..Requeue::default()
            }),
            1 => {
                let queue = if rng.chance(0.5) { "high" } else { "normal" };
                Verb::Switch { queue: queue.into() }
            }
            2 => {
                let position = 1 + rng.below(9) as u32;
                Verb::Move { top: rng.chance(0.5), position }
            }
            _ => return Some(modify(job, id, rng)),
        };
        if matches!(verb, Verb::Stop | Verb::Requeue(Requeue { hold: true, .. })) {
            self.stopped.push(id.clone());
        }
        let request =
            if rng.chance(WITH_ID) { format!("v{}", rng.below(1 << 40)) } else { "".into() };
        Some(Change::control(verb, id, request))
    }
}

/// bmod, with a project of its own, which lsb.acct shows; some with texts that the spool keeps.
fn modify(job: u32, id: IdSel, rng: &mut Rng) -> Change {
    let project = format!("p{}", rng.below(1 << 40));
    let idx = match id.elems[..] {
        [(first, last, _)] if first == last => first,
        _ => 0,
    };
    let mut fields = vec![SpecField::Project];
    let mut env = None;
    if rng.chance(0.5) {
        fields.push(SpecField::Description);
    }
    if id.elems.is_empty() && rng.chance(0.5) {
        fields.push(SpecField::Env);
        env = Some(ByteStr::from(format!("C={}\0", rng.below(3)).as_str()));
    }
    let description = format!("about {job}");
    let spec = JobSpec { project: project.clone(), description, ..JobSpec::default() };
    let modify = Modify { id, spec, fields, env, ..Modify::default() };
    let msg = Msg::Client(ClientMsg::Modify(Box::new(modify)));
    Change { msg, project: Some((JobRef { job, idx }, project)), last: false }
}

impl World {
    /// The connection of a submitter broke: whether its change was made it does not know.
    pub(super) fn answer_lost(&mut self, client: usize) {
        self.clients[client].answers.clear();
        if !self.rng.chance(AGAIN) {
            self.clients[client].change = None;
        }
    }

    /// Has the next stopped job resumed once all else is done; false: not yet.
    pub(super) fn resume_stopped(&mut self, client: usize) -> bool {
        let c = &self.clients[client];
        if c.next < c.wishes.len() || c.change.is_some() {
            return true;
        }
        let Some(id) = c.stopped.first().cloned() else { return true };
        // brequeue -H of a running element: it is held only once it has ended
        let leaving = self.mbd().and_then(|mbd| mbd.st.job(id.job)).is_some_and(|job| {
            let held = |e: &ElemState| matches!(e, ElemState::Run(run) if run.requeue.is_some());
            job.indices().iter().filter_map(|idx| job.elem(*idx)).any(|e| held(&e.state))
        });
        if leaving {
            return false;
        }
        let change = Change { last: true, ..Change::control(Verb::Resume, id, String::new()) };
        self.clients[client].change = Some(change);
        true
    }

    /// A message reaches a daemon. The request of a submitter may arrive twice, as it does where
    /// an answer was lost: the second one changes nothing.
    pub(super) fn receive(&mut self, p: usize, from: End, local: ConnId, msg: Msg) {
        let jobs = changed_jobs(&msg);
        let End::Client { client, .. } = from else {
            return self.step(p, Input::Msg { conn: local, msg });
        };
        self.clients[client].answers.push_back(true);
        if jobs.is_empty() || !self.rng.chance(TWICE) {
            return self.step(p, Input::Msg { conn: local, msg });
        }
        let born = self.procs[p].born;
        let whole = matches!(msg, Msg::Client(ClientMsg::Control(_)));
        self.step(p, Input::Msg { conn: local, msg: msg.clone() });
        let about = |w: &World| match &w.procs[p].mach {
            // each bmod spools the submission that it makes
            Some(Mach::Mbd(m)) => {
                jobs.iter().map(|job| m.st.about(*job, whole)).collect::<Vec<String>>()
            }
            _ => Vec::new(),
        };
        // a request under way is given up for the second, which alone is answered
        let under_way = matches!(&self.procs[p].mach, Some(Mach::Mbd(m)) if m.has_work());
        if self.procs[p].born != born || under_way {
            return;
        }
        self.clients[client].answers.push_back(false);
        let once = about(self);
        self.step(p, Input::Msg { conn: local, msg: msg.clone() });
        let twice = about(self);
        if self.procs[p].born == born && once != twice {
            let text = format!("{msg:?} does more the second time: {once:?}, then {twice:?}");
            self.fatal.get_or_insert(text);
        }
    }

    /// Is this the answer to the second of two equal requests?
    pub(super) fn is_echo(&mut self, client: usize, msg: &Msg) -> bool {
        let answer = matches!(
            msg,
            Msg::Client(ClientMsg::Controlled { .. } | ClientMsg::Submitted { .. })
                | Msg::Refused(_)
        );
        answer && self.clients[client].answers.pop_front() == Some(false)
    }

    /// An administrator opens what lost control records closed, until all of it is open.
    pub(super) fn reopen(&mut self) {
        let closed = |w: &World| {
            w.mbd().is_none_or(|mbd| {
                mbd.st.queue_ctl.values().any(|c| c.closed || c.inactive)
                    || mbd.st.host_ctl.values().any(|c| c.shut())
            })
        };
        if !self.log.shut {
            return;
        }
        if let Some(p) = self.mbd_proc().filter(|_| closed(self)) {
            let conn = self.incoming();
            let host = self.hosts[self.procs[p].host].name.clone();
            let peer = Peer::User { uid: 500, gid: 500, user: "admin".into(), host };
            let (born, comment) = (self.procs[p].born, String::new());
            let queue =
                |op| AdminOp::QueueCtrl { op, queues: vec!["all".into()], comment: "".into() };
            let (hosts, lock) = (vec!["all".into()], String::new());
            let host = AdminOp::HostCtrl { open: true, hosts, comment, lock };
            let ops = [queue(QueueOp::Open), queue(QueueOp::Activate), host];
            let asks = ops.map(|op| Input::Msg { conn, msg: Msg::Client(ClientMsg::Admin(op)) });
            for input in [Input::Opened { conn, peer }].into_iter().chain(asks) {
                if self.procs[p].born == born {
                    self.step(p, input);
                }
            }
        }
        // what was asked for may not become durable
        self.log.shut = closed(self) || self.mbd().is_some_and(|_| !self.log.quiet());
        if self.log.shut {
            self.push(self.now_us + US, Ev::Reopen);
        }
    }
}
