//! Arrivals at daemons and submitters: connections are opened, messages come, connections end; and
//! at the launcher: a task's process is ready or has ended.

use super::conn::ConnEnd;
use super::membership_deaths::Death;
use super::os;
use super::world::World;
use crate::model::time::US;
use crate::proto::Daemon;
use crate::proto::Msg;
use crate::proto::launch::{OsInput, Ready, Setup, TaskStep};
use crate::proto::machine::{ConnId, Endpoint, Input, Peer};

impl World {
    pub(super) fn dial(&mut self, p: usize, born: u64, local: ConnId, to: Endpoint) {
        if self.procs[p].born != born {
            return;
        }
        let from = self.procs[p].host;
        let (host, daemon) = match &to {
            Endpoint::Launcher => (Some(from), Daemon::Launcher),
            Endpoint::Tcp { host, daemon } => {
                (self.hosts.iter().position(|h| h.name == *host), *daemon)
            }
            Endpoint::Nlb { host, .. } => {
                (self.hosts.iter().position(|h| h.name == *host), Daemon::NlbServer)
            }
        };
        // nobody answers a collector that calls the batch agent of a host without one
        if daemon == Daemon::Sbatchd && host == Some(from) && self.only_collects(from) {
            return;
        }
        let cut = |h: usize| h != from && (self.hosts[h].isolated || self.hosts[from].isolated);
        let target = host.filter(|h| !cut(*h)).and_then(|h| self.find(h, daemon).map(|q| (h, q)));
        let Some((h, q)) = target else {
            let why = "refused".to_string();
            let refused = host.is_some_and(|h| !cut(h));
            return self.step(p, Input::ConnectFailed { conn: local, why, refused });
        };
        let remote = self.incoming();
        let me = self.procs[p].daemon;
        let (to_q, to_p) = match to {
            Endpoint::Launcher => {
                (Peer::Local { uid: 500, pid: 1 }, Peer::Local { uid: 0, pid: 1 })
            }
            Endpoint::Tcp { .. } | Endpoint::Nlb { .. } => (
                Peer::Daemon { daemon: me, host: self.hosts[from].name.clone() },
                Peer::Daemon { daemon, host: self.hosts[h].name.clone() },
            ),
        };
        let a = ConnEnd::Proc { proc_: p, born, local };
        let b = ConnEnd::Proc { proc_: q, born: self.procs[q].born, local: remote };
        self.connect(a, b, h == from);
        self.step(q, Input::Opened { conn: remote, peer: to_q });
        if self.procs[p].born == born {
            self.step(p, Input::Opened { conn: local, peer: to_p });
        }
    }

    pub(super) fn arrive(&mut self, id: u64, from_a: bool, msg: Msg) {
        let Some(c) = self.conns.get(&id) else { return };
        let (from, to) = if from_a { (c.a, c.b) } else { (c.b, c.a) };
        let (local, closing) = (c.local, c.closing);
        let cut = !local
            && (self.hosts[self.host_of(c.a)].isolated || self.hosts[self.host_of(c.b)].isolated);
        if cut {
            // a message that cannot be delivered breaks the connection in the end
            return self.cut(id);
        }
        match to {
            ConnEnd::Proc { proc_, born, local } => {
                let open = self.procs[proc_].conns.get(&local) == Some(&id) && !closing;
                if self.procs[proc_].born == born && open {
                    let death = self.death_at(&msg);
                    if death == Some(Death::ReceiverBefore) {
                        return self.dies(to);
                    }
                    self.look_at_membership(self.procs[proc_].host, &msg);
                    self.trace_message(proc_, &msg);
                    let again = self.tasks.repeated(&msg);
                    self.receive(proc_, from, local, msg);
                    if let Some(msg) = again.filter(|_| self.procs[proc_].born == born) {
                        self.receive(proc_, from, local, msg);
                    }
                    match death {
                        Some(Death::ReceiverAfter) => self.dies(to),
                        Some(Death::Sender) => self.dies(from),
                        _ => {}
                    }
                }
            }
            ConnEnd::Client { client, dials } => self.client_msg(client, dials, msg),
            ConnEnd::Administrator { dials } => self.administrator_hears(dials, msg),
            ConnEnd::Call { call } => self.caller_hears(call, msg),
        }
    }

    /// With `lsfsim -v`, a message about jobs that comes to a daemon, without its long texts.
    fn trace_message(&self, proc_: usize, msg: &Msg) {
        const LONGEST: usize = 240;
        if let Msg::Sbd(of) = msg
            && log::log_enabled!(log::Level::Trace)
        {
            let (t, to) = (self.now_us as f64 / 1e6, &self.procs[proc_]);
            let (host, text) = (&self.hosts[to.host].name, format!("{of:?}"));
            log::trace!("{t:.6} {} on {host} hears {text:.LONGEST$}", to.daemon.name());
        }
    }

    /// The daemon that dies at the arrival of this message, if one does.
    fn death_at(&mut self, msg: &Msg) -> Option<Death> {
        let faulty = self.scale.fault_every > 0.0 && self.now_us < self.scale.fault_secs * US;
        if faulty { self.membership_deaths.at(msg) } else { None }
    }

    /// A daemon dies, if it is still the one that had this end of a connection.
    fn dies(&mut self, end: ConnEnd) {
        if let ConnEnd::Proc { proc_, born, .. } = end
            && self.procs[proc_].born == born
        {
            log::info!("{:.6} a daemon dies at a message", self.now_us as f64 / 1e6);
            self.kill_proc(proc_, true);
        }
    }

    fn host_of(&self, end: ConnEnd) -> usize {
        match end {
            ConnEnd::Proc { proc_, .. } => self.procs[proc_].host,
            ConnEnd::Client { client, .. } => self.clients[client].host,
            ConnEnd::Call { call } => self.tasks.host_of(call),
            ConnEnd::Administrator { .. } => 0,
        }
    }

    pub(super) fn end_closed(&mut self, end: ConnEnd) {
        match end {
            ConnEnd::Proc { proc_, born, local } => {
                if self.procs[proc_].born == born
                    && let Some(id) = self.procs[proc_].conns.remove(&local)
                {
                    // one that it closed itself it does not hear of
                    if self.conns.remove(&id).is_none_or(|c| !c.closing) {
                        self.step(proc_, Input::Closed { conn: local });
                    }
                }
            }
            ConnEnd::Administrator { dials } => self.administrator_is_cut_off(dials),
            ConnEnd::Call { call } => self.caller_is_cut_off(call),
            ConnEnd::Client { client, dials } => {
                if self.clients[client].dials == dials {
                    if let Some(id) = self.clients[client].conn.take() {
                        self.conns.remove(&id);
                    }
                    self.redial(client);
                }
            }
        }
    }

    pub(super) fn task_ready(&mut self, host: usize, boot: u64, pid: u32) {
        if self.hosts[host].os.boot != boot {
            return;
        }
        let Some(t) = self.hosts[host].os.tasks.get(&pid) else { return };
        let (id, parent) = (t.id, t.parent);
        let Some(l) = self.find(host, Daemon::Launcher).filter(|l| self.procs[*l].born == parent)
        else {
            return;
        };
        let ready =
            Ready { user: "u".into(), cwd: "/".into(), home: "/".into(), ..Ready::default() };
        let setup = Setup::Ready(Box::new(ready));
        self.step(l, Input::Os(OsInput::Setup { id, setup, ended: false }));
    }

    pub(super) fn task_end(&mut self, host: usize, boot: u64, pid: u32, gen_: u64) {
        let now = self.now_us;
        if self.hosts[host].os.boot != boot {
            return;
        }
        let known =
            self.hosts[host].os.tasks.get(&pid).is_some_and(|t| t.gen_ == gen_ && !t.stopped);
        if !known {
            return;
        }
        let Some(t) = self.hosts[host].os.tasks.remove(&pid) else { return };
        if t.id.step == TaskStep::Control {
            self.check.checkpoints.ended(t.id.key, t.status);
        }
        if t.id.step == TaskStep::Job && !t.waiting {
            self.check.ended(host, t.id.key, Some(t.status));
            self.callers_end(host);
        }
        if let Some(l) =
            self.find(host, Daemon::Launcher).filter(|l| self.procs[*l].born == t.parent)
        {
            let usage = os::usage(now.saturating_sub(t.since));
            self.step(l, Input::Os(OsInput::Exited { pid, status: t.status, usage }));
        }
    }
}
