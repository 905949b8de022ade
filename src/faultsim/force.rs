//! An administrator who starts jobs of the submitters by force (brun), whatever keeps them waiting:
//! limits, conditions, holds, places.

use super::event::SimEvent;
use super::world::World;
use crate::model::JobRef;
use crate::model::time::US;
use crate::proto::Msg;
use crate::proto::client::{ClientMsg, Control, IdSel, JobSelect, Verb};
use crate::proto::force::Force;
use crate::proto::machine::{Input, Peer};

/// Share of the pauses of a submitter in which a job is forced.
const FORCED: f64 = 0.05;
/// Longest pause before that, seconds.
const PAUSE_MOST: u64 = 20;

impl World {
    /// Has one of a submitter's jobs forced in a while, or not.
    pub(super) fn plan_force(&mut self, client: usize) {
        if !self.rng.chance(FORCED) {
            return;
        }
        let jobs = self.clients[client].jobs.len() as u64;
        let at = self.rng.below(jobs.max(1)) as usize;
        let Some(&submitted) = self.clients[client].jobs.get(at) else { return };
        let idx = match submitted.size {
            1 => 0,
            size => 1 + self.rng.below(u64::from(size)) as u32,
        };
        let host = self.rng.below(self.scale.hosts as u64) as usize;
        let at = JobRef { job: submitted.job, idx };
        let pause = self.rng.below(PAUSE_MOST * US);
        self.push(self.now_us + pause, SimEvent::Force { at, host });
    }

    /// The administrator asks for it; whether it is done depends on the job and the host.
    pub(super) fn force(&mut self, at: JobRef, host: usize) {
        let Some(p) = self.mbd_proc() else { return };
        let (conn, born) = (self.incoming(), self.procs[p].born);
        let from = self.hosts[self.procs[p].host].name.clone();
        let peer = Peer::User { uid: 500, gid: 500, user: "admin".into(), host: from };
        let force = Force {
            hosts: vec![(self.hosts[host].name.clone(), 0)],
            never_suspended: self.rng.chance(0.5),
            ..Force::default()
        };
        let elems = if at.idx == 0 { Vec::new() } else { vec![(at.idx, at.idx, 1)] };
        let select = JobSelect { ids: vec![IdSel { job: at.job, elems }], ..JobSelect::default() };
        let control = Control::of(Verb::Force(force), select);
        let msg = Msg::Client(ClientMsg::Control(Box::new(control)));
        self.check.asked(&msg, None);
        for input in [Input::Opened { conn, peer }, Input::Msg { conn, msg }] {
            if self.procs[p].born == born {
                self.step(p, input);
            }
        }
    }
}
