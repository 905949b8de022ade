//! Requests about the tasks of parallel jobs: a caller asks a res for a task, a user sends a job a
//! signal.

use super::conn::ConnEnd;
use super::parallel_tasks::SIGUSR1;
use super::world::World;
use crate::model::JobRef;
use crate::proto::Daemon;
use crate::proto::Msg;
use crate::proto::client::{ClientMsg, Control, IdSel, JobSelect, Verb};
use crate::proto::machine::{Input, Peer};
use crate::proto::res::ResMsg;

impl World {
    /// A caller connects to the res of a host, and asks for a task.
    pub(super) fn call_res(&mut self, n: usize) {
        let call = &self.tasks.calls[n];
        if !self.calls(call) || call.conn.is_some() {
            return;
        }
        let (from, to, uid, job) = (call.host, call.to, call.uid, call.key.job_ref());
        let cut = from != to && (self.hosts[from].isolated || self.hosts[to].isolated);
        let Some(p) = self.find(to, Daemon::Res).filter(|_| !cut) else {
            return self.call_again(n);
        };
        self.tasks.calls[n].calls += 1;
        let (local, born) = (self.incoming(), self.procs[p].born);
        let end = ConnEnd::Proc { proc_: p, born, local };
        let id = self.connect(ConnEnd::Call { call: n }, end, from == to);
        let host = self.hosts[from].name.clone();
        let peer = Peer::User { uid, gid: uid, user: format!("user{uid}"), host };
        self.step(p, Input::Opened { conn: local, peer });
        let task = self.tasks.new_task(job);
        self.transmit(id, true, Msg::Res(ResMsg::Run(Box::new(task))));
    }

    /// A user sends a job a signal.
    pub(super) fn signal_job(&mut self, at: JobRef) {
        let Some(p) = self.mbd_proc() else { return };
        let (conn, born) = (self.incoming(), self.procs[p].born);
        let host = self.hosts[self.procs[p].host].name.clone();
        let peer = Peer::User { uid: 500, gid: 500, user: "admin".into(), host };
        let elems = if at.idx == 0 { Vec::new() } else { vec![(at.idx, at.idx, 1)] };
        let select = JobSelect { ids: vec![IdSel { job: at.job, elems }], ..JobSelect::default() };
        let signal = Verb::Signal { number: SIGUSR1, name: "USR1".into() };
        let msg = Msg::Client(ClientMsg::Control(Box::new(Control::of(signal, select))));
        *self.tasks.signals.entry(at).or_default() += 1;
        for input in [Input::Opened { conn, peer }, Input::Msg { conn, msg }] {
            if self.procs[p].born == born {
                self.step(p, input);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faultsim::Scale;
    use std::collections::BTreeMap;

    #[test]
    fn every_call_is_served_where_nothing_fails() {
        let scale = Scale { fault_every: 0.0, ..Scale::SMALL };
        let mut started = 0;
        for seed in [3, 9, 13, 19] {
            let mut world = World::new(seed, scale);
            world.run().unwrap();
            assert_eq!(world.tasks.refused, BTreeMap::new(), "seed {seed}");
            started += world.tasks.started;
        }
        assert!(started > 20, "{started}");
    }

    #[test]
    fn a_seed_without_tasks_has_no_res() {
        let mut world = World::new(4, Scale::SMALL);
        world.run().unwrap();
        assert_eq!((world.tasks.started, world.find(0, Daemon::Res)), (0, None));
    }
}
