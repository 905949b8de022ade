//! Requests of submitters in the world: one whose answer was lost is given up or made again, and
//! some arrive twice. At the end each job that may be stopped or held is resumed, until the answer
//! comes.
//!
//! A request that arrives twice, with nothing in between, changes nothing the second time.
//! [`super::same`] checks that the next mbatchd knows what was changed.

use super::change::{JobChangeRequest, changed_jobs};
use super::conn::ConnEnd;
use super::event::SimEvent;
use super::world::{DaemonMachine, World};
use crate::batch::state::ElemState;
use crate::model::time::US;
use crate::proto::Msg;
use crate::proto::client::{AdminOp, ClientMsg, QueueOp, Verb};
use crate::proto::machine::{ConnId, Input, Machine, Peer};

/// Share of the requests without an answer that are made again.
const AGAIN: f64 = 0.5;
/// Share of the requests that arrive twice.
const TWICE: f64 = 0.1;

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
        let leaving = self.mbd().and_then(|mbd| mbd.state().job(id.job)).is_some_and(|job| {
            let held = |e: &ElemState| matches!(e, ElemState::Run(run) if run.requeue.is_some());
            job.indices().iter().filter_map(|idx| job.elem(*idx)).any(|e| held(&e.state))
        });
        if leaving {
            return false;
        }
        let change = JobChangeRequest {
            last: true,
            ..JobChangeRequest::control(Verb::Resume, id, String::new())
        };
        self.clients[client].change = Some(change);
        true
    }

    /// A message reaches a daemon. The request of a submitter may arrive twice, as it does where
    /// an answer was lost: the second one changes nothing.
    pub(super) fn receive(&mut self, p: usize, from: ConnEnd, local: ConnId, msg: Msg) {
        let jobs = changed_jobs(&msg);
        let ConnEnd::Client { client, .. } = from else {
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
            Some(DaemonMachine::Mbd(m)) => {
                jobs.iter().map(|job| m.state().about(*job, whole)).collect::<Vec<String>>()
            }
            _ => Vec::new(),
        };
        // a request under way is given up for the second, which alone is answered
        let under_way = matches!(&self.procs[p].mach, Some(DaemonMachine::Mbd(m)) if m.has_work());
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
            Msg::Client(
                ClientMsg::Controlled { .. }
                    | ClientMsg::Submitted { .. }
                    | ClientMsg::AdminDone { .. }
            ) | Msg::Refused(_)
        );
        answer && self.clients[client].answers.pop_front() == Some(false)
    }

    /// An administrator opens what lost control records closed, until all of it is open.
    pub(super) fn reopen(&mut self) {
        let closed = |w: &World| {
            w.mbd().is_none_or(|mbd| {
                mbd.state().queue_controls().any(|(_, c)| c.closed || c.inactive)
                    || mbd.state().host_controls().any(|(_, c)| c.shut())
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
            self.push(self.now_us + US, SimEvent::Reopen);
        }
    }
}
