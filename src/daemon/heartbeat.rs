//! The signs of life that the loop of a daemon gives its launcher (`crate::exec::life`): a `Ping`
//! over a connection of its own, which an older launcher answers like any other.
//!
//! Invariants: a loop that does not turn gives none; nor does one whose log has not got on since
//! the last, though somebody waits for it. Nothing here waits.

use crate::conf::LsfConf;
use crate::exec::life::{self, GIVE_SIGNS};
use crate::model::time::US;
use crate::net::local::LocalConn;
use crate::net::sock;
use crate::proto::{Daemon, Msg};
use std::path::PathBuf;

/// A daemon's signs of life.
pub struct Heartbeat {
    launcher: PathBuf,
    every: u64,
    /// When the next is due, monotonic microseconds.
    pub at: u64,
    link: Option<LocalConn>,
    /// The progress of the log at the last check, if requests waited for it.
    waited: Option<u64>,
}

impl Heartbeat {
    /// The heartbeat of a daemon whose standstill would hold up the cluster, if MBD_HANG_TIME is
    /// not 0.
    pub fn of(lsf: &LsfConf, launcher: PathBuf, daemon: Daemon) -> Option<Heartbeat> {
        let hang = lsf.mbd_hang_secs() * US;
        let given = GIVE_SIGNS.contains(&daemon) && hang > 0;
        let every = life::pause(hang);
        given.then_some(Heartbeat { launcher, every, at: 0, link: None, waited: None })
    }

    /// Gives a sign where one is due. `waits`: something waits for the log, which is that far.
    pub fn turn(&mut self, now: u64, waits: Option<u64>) {
        if now < self.at {
            return;
        }
        self.at = now + self.every;
        let stuck = waits.is_some() && waits == self.waited;
        self.waited = waits;
        if !stuck && !self.give() {
            // the launcher is away, or has replaced itself: the next sign goes to its successor
            self.link = None;
        }
    }

    fn give(&mut self) -> bool {
        if self.link.is_none() {
            self.link = sock::dial_unix(&self.launcher).ok().map(LocalConn::new);
        }
        let Some(link) = &mut self.link else { return false };
        let heard = link.read(&mut |_| {});
        matches!(heard, Ok(true)) && link.send(&Msg::Ping { n: 0 }).is_ok() && link.flush()
    }
}
