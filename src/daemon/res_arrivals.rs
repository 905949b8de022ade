//! Starters of interactive jobs that have brought their descriptors before a bsub asked for them.
//!
//! Invariant: as many as [`ARRIVALS_MAX`], and [`PER_USER_MAX`] of one user, so that nobody fills
//! the room of others; a starter that has ended is forgotten when the next one comes.

use crate::model::JobKey;
use mio::net::UnixStream;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;

/// Most starters that wait for their bsub.
const ARRIVALS_MAX: usize = 1024;
/// Most of them of one user.
const PER_USER_MAX: usize = 256;

/// A starter with its job's descriptors.
pub(super) struct Arrival {
    pub uid: u32,
    pub key: JobKey,
    pub sock: UnixStream,
    pub fds: Vec<OwnedFd>,
}

impl Arrival {
    /// A starter says nothing while it waits.
    fn gone(&mut self) -> bool {
        !matches!(self.sock.read(&mut [0]), Err(e) if e.kind() == ErrorKind::WouldBlock)
    }
}

#[derive(Default)]
pub(super) struct Arrivals(Vec<Arrival>);

impl Arrivals {
    /// Keeps a starter until its bsub comes; dropping it ends it.
    pub(super) fn keep(&mut self, arrival: Arrival) -> Result<(), &'static str> {
        self.0.retain_mut(|a| !a.gone());
        let own = self.0.iter().filter(|a| a.uid == arrival.uid).count();
        if self.0.len() >= ARRIVALS_MAX || own >= PER_USER_MAX {
            return Err("too many interactive jobs wait for their bsub");
        }
        self.0.push(arrival);
        Ok(())
    }

    /// The last attempt of a user's job.
    pub(super) fn take(&mut self, uid: u32, job: u32) -> Option<Arrival> {
        self.0.retain_mut(|a| !a.gone());
        let fits = |a: &&Arrival| (a.uid, a.key.job) == (uid, job);
        let last = self.0.iter().filter(fits).map(|a| a.key.attempt).max()?;
        let at = self.0.iter().position(|a| fits(&a) && a.key.attempt == last)?;
        Some(self.0.swap_remove(at))
    }
}
