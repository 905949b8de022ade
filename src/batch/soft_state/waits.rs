//! The connections of bwait and bsub -K, by the jobs that their conditions name.

use crate::lang::depend::Resolved;
use crate::model::idmap::IdMap;
use crate::proto::machine::ConnId;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) expr: Resolved,
    pub(crate) until: Option<u64>,
}

#[derive(Debug, Default)]
pub struct Waits {
    pub(crate) by_conn: IdMap<ConnId, Waiter>,
    /// Named job -> connections.
    pub(crate) named: IdMap<u32, BTreeSet<ConnId>>,
    pub(crate) timers: BTreeMap<(u64, ConnId), ()>,
}

impl Waits {
    pub fn deadline(&self) -> Option<u64> {
        self.timers.keys().next().map(|(t, _)| *t)
    }
    pub fn close(&mut self, conn: ConnId) {
        let Some(w) = self.by_conn.remove(&conn) else { return };
        for id in w.expr.job_ids() {
            if let Some(set) = self.named.get_mut(&(id as u32)) {
                set.remove(&conn);
                if set.is_empty() {
                    self.named.remove(&(id as u32));
                }
            }
        }
        if let Some(t) = w.until {
            self.timers.remove(&(t, conn));
        }
    }
    pub fn is_empty(&self) -> bool {
        self.by_conn.is_empty()
    }
    pub fn is_named(&self, job: u32) -> bool {
        self.named.contains_key(&job)
    }
}
