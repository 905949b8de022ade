//! The connections of `bjobs --watch`.
//!
//! Invariant: a watcher is told once, and then not again until it asks for the next time; a change
//! in between is kept for that.

use crate::batch::site::permissions::Caller;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::JobSelect;
use crate::proto::machine::ConnId;
use std::collections::BTreeMap;

/// Connections that watch at a time.
pub const MAX_WATCHES: usize = 1024;

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
}

impl Watches {
    pub fn is_empty(&self) -> bool {
        self.by_conn.is_empty()
    }

    pub fn close(&mut self, conn: ConnId) {
        self.by_conn.remove(&conn);
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
        let watcher = Watcher { who: who.clone(), select, asks: !changed, changed: false };
        self.by_conn.insert(conn, watcher);
        Ok(changed)
    }

    /// The connections that have not heard of a change yet, of those whose jobs fit.
    pub(crate) fn unchanged(&self, fits: impl Fn(&Caller, &JobSelect) -> bool) -> Vec<ConnId> {
        let of = |(conn, w): (&ConnId, &Watcher)| {
            (!w.changed && fits(&w.who, &w.select)).then_some(*conn)
        };
        self.by_conn.iter().filter_map(of).collect()
    }

    /// A job that a client watches has changed. Is it to be told now?
    pub(crate) fn note_change(&mut self, conn: ConnId) -> bool {
        let Some(watcher) = self.by_conn.get_mut(&conn) else { return false };
        let tell = std::mem::take(&mut watcher.asks);
        watcher.changed |= !tell;
        tell
    }
}
