//! The connections of `bjobs --watch`, and of interactive bsubs, each of which watches one job.
//!
//! Invariant: a watcher is told once, and then not again until it asks for the next time; a change
//! in between is kept for that.

use crate::batch::site::permissions::Caller;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::JobSelect;
use crate::proto::machine::ConnId;
use std::collections::{BTreeMap, BTreeSet};

/// Connections that watch at a time.
pub const MAX_WATCHES: usize = 16_384;

#[derive(Debug)]
struct Watcher {
    who: Caller,
    select: JobSelect,
    /// The client waits to be told.
    asks: bool,
    /// Something changed since it was told.
    changed: bool,
}

#[derive(Debug, Default)]
pub struct Watches {
    by_conn: BTreeMap<ConnId, Watcher>,
    /// Job -> the connections that name it.
    named: BTreeMap<u32, BTreeSet<ConnId>>,
    /// The connections that name no job.
    others: BTreeSet<ConnId>,
}

impl Watches {
    pub fn is_empty(&self) -> bool {
        self.by_conn.is_empty()
    }

    pub fn close(&mut self, conn: ConnId) {
        let Some(watcher) = self.by_conn.remove(&conn) else { return };
        self.others.remove(&conn);
        for id in &watcher.select.ids {
            if let Some(conns) = self.named.get_mut(&id.job) {
                conns.remove(&conn);
                if conns.is_empty() {
                    self.named.remove(&id.job);
                }
            }
        }
    }

    /// A client asks for the next change of these jobs. Has there been one since it was told?
    pub(crate) fn ask(
        &mut self,
        conn: ConnId,
        who: &Caller,
        select: JobSelect,
    ) -> Result<bool, Refusal> {
        if !self.by_conn.contains_key(&conn) && self.by_conn.len() >= MAX_WATCHES {
            return Err(Refusal::new(err::BUSY));
        }
        let before = self.by_conn.get(&conn);
        let changed = before.is_some_and(|w| w.changed && w.select == select);
        self.close(conn);
        if select.ids.is_empty() {
            self.others.insert(conn);
        }
        for id in &select.ids {
            self.named.entry(id.job).or_default().insert(conn);
        }
        let watcher = Watcher { who: who.clone(), select, asks: !changed, changed: false };
        self.by_conn.insert(conn, watcher);
        Ok(changed)
    }

    /// The connections that have not heard of a change yet, of those that name the job or, naming
    /// none, fit.
    pub(crate) fn unchanged(
        &self,
        job: u32,
        fits: impl Fn(&Caller, &JobSelect) -> bool,
    ) -> Vec<ConnId> {
        let unheard = |conn: &ConnId| self.by_conn.get(conn).filter(|w| !w.changed);
        let named = self.named.get(&job).into_iter().flatten();
        let named = named.filter(|conn| unheard(conn).is_some());
        let others = self.others.iter();
        let others = others.filter(|conn| unheard(conn).is_some_and(|w| fits(&w.who, &w.select)));
        named.chain(others).copied().collect()
    }

    /// A job that a client watches has changed. Is it to be told now?
    pub(crate) fn note_change(&mut self, conn: ConnId) -> bool {
        let Some(watcher) = self.by_conn.get_mut(&conn) else { return false };
        let tell = std::mem::take(&mut watcher.asks);
        watcher.changed |= !tell;
        tell
    }
}
