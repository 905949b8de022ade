//! The administrator of the load balancer, who changes policies, maps and objects over a connection
//! that may be lost.

use super::balancer::SERVER;
use super::conn::ConnEnd;
use super::event::SimEvent;
use super::world::World;
use crate::model::time::US;
use crate::proto::machine::{Input, Peer};
use crate::proto::nlb::NlbMsg;
use crate::proto::{Daemon, Msg};

/// Mean seconds between two requests of the administrator.
const ORDERS: f64 = 1.5;

impl World {
    /// The administrator does the next thing, until the last policies are in force.
    pub(super) fn administer(&mut self) {
        let over = self.now_us >= self.scale.fault_secs * US;
        let Some(balancer) = &mut self.balancer else { return };
        if balancer.settled {
            return;
        }
        match balancer.conn {
            None => self.administrator_dials(),
            Some(id) if balancer.asked.is_none() => {
                let msg = balancer.next_order(over, &mut self.rng);
                self.transmit(id, true, Msg::Nlb(msg));
            }
            // one that has lost patience comes again
            Some(id) if self.rng.chance(0.1) => self.cut(id),
            Some(_) => {}
        }
        let at = self.now_us + (self.rng.exp(ORDERS) * 1e6) as u64 + 1;
        self.push(at, SimEvent::Administer);
    }

    fn administrator_dials(&mut self) {
        let (server, own) = (self.find(SERVER, Daemon::NlbServer), 0);
        let cut = self.hosts[own].isolated || self.hosts[SERVER].isolated;
        let Some(q) = server.filter(|_| !cut) else { return };
        let remote = self.incoming();
        let Some(balancer) = &mut self.balancer else { return };
        balancer.dials += 1;
        let a = ConnEnd::Administrator { dials: balancer.dials };
        let b = ConnEnd::Proc { proc_: q, born: self.procs[q].born, local: remote };
        self.connect(a, b, false);
        let (user, host) = ("admin".to_owned(), self.hosts[own].name.clone());
        let peer = Peer::User { uid: 500, gid: 500, user, host };
        self.step(q, Input::Opened { conn: remote, peer });
    }

    /// The administrator hears from the server.
    pub(super) fn administrator_hears(&mut self, dials: u64, msg: Msg) {
        let Some(balancer) = self.balancer.as_mut().filter(|b| b.dials == dials) else { return };
        let told = match msg {
            Msg::Nlb(NlbMsg::Outcome(outcome)) => balancer.answered(&outcome),
            Msg::Refused(refusal) => Err(format!("the administrator: {}", refusal.words())),
            _ => Ok(()),
        };
        told.err().into_iter().for_each(|why| self.check.fail(why));
    }

    /// The administrator's connection is gone.
    pub(super) fn administrator_is_cut_off(&mut self, dials: u64) {
        if let Some(balancer) = self.balancer.as_mut().filter(|b| b.dials == dials) {
            balancer.answer_lost();
            if let Some(id) = balancer.conn.take() {
                self.conns.remove(&id);
            }
        }
    }
}
