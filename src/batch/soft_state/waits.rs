//! The connections of bwait and bsub -K, by the jobs that their conditions name.

use crate::lang::depend::Resolved;
use crate::model::idmap::IdMap;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::machine::ConnId;
use std::collections::{BTreeMap, BTreeSet};

/// Waits at a time.
pub const MAX_WAITS: usize = 100_000;

#[derive(Debug)]
struct Waiter {
    expr: Resolved,
    /// Microseconds of the monotonic clock.
    until: Option<u64>,
}

#[derive(Debug, Default)]
pub struct Waits {
    by_conn: IdMap<ConnId, Waiter>,
    /// Named job -> connections.
    named: IdMap<u32, BTreeSet<ConnId>>,
    /// Path of a job group -> connections.
    job_groups: BTreeMap<String, BTreeSet<ConnId>>,
    timers: BTreeMap<(u64, ConnId), ()>,
}

impl Waits {
    /// A connection waits for a condition, in the place of one that it waited for before.
    pub(crate) fn add(
        &mut self,
        conn: ConnId,
        expr: Resolved,
        until: Option<u64>,
    ) -> Result<(), Refusal> {
        if self.by_conn.len() >= MAX_WAITS {
            return Err(Refusal::new(err::BUSY));
        }
        self.close(conn);
        for id in expr.job_ids() {
            self.named.entry(id as u32).or_default().insert(conn);
        }
        for (_, path) in expr.job_groups() {
            self.job_groups.entry(path).or_default().insert(conn);
        }
        if let Some(t) = until {
            self.timers.insert((t, conn), ());
        }
        self.by_conn.insert(conn, Waiter { expr, until });
        Ok(())
    }

    /// The condition that a connection waits for.
    pub(crate) fn condition(&self, conn: ConnId) -> Option<&Resolved> {
        self.by_conn.get(&conn).map(|waiter| &waiter.expr)
    }

    /// The connections that wait for conditions which name a job.
    pub(crate) fn on_job(&self, job: u32) -> Vec<ConnId> {
        self.named.get(&job).into_iter().flatten().copied().collect()
    }

    /// The connections that wait for conditions on a job group.
    pub(crate) fn on_job_group(&self, path: &str) -> Vec<ConnId> {
        self.job_groups.get(path).into_iter().flatten().copied().collect()
    }

    /// Is a condition about this job group?
    pub fn names_job_group(&self, path: &str) -> bool {
        self.job_groups.contains_key(path)
    }

    /// Takes out a connection that has waited for as long as it wanted to.
    pub(crate) fn take_late(&mut self, now_us: u64) -> Option<ConnId> {
        let &(until, conn) = self.timers.keys().next()?;
        (until <= now_us).then(|| self.close(conn)).map(|()| conn)
    }

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
        for (_, path) in w.expr.job_groups() {
            if let Some(set) = self.job_groups.get_mut(&path) {
                set.remove(&conn);
                if set.is_empty() {
                    self.job_groups.remove(&path);
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
