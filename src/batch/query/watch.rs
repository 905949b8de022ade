//! bjobs --watch: who is told that jobs have changed. Nothing polls: an event that touches a job
//! looks at who watches it.
//!
//! Invariant: a watcher is told once and then not again until it asks for the next time, so that
//! at most one word waits for each, however slow it is; a change between the two is remembered.

use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::watches::Watcher;
use crate::batch::{Mbatchd, StepContext};
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{ClientMsg, JobSelect, Waited};
use crate::proto::machine::ConnId;

/// Connections that watch at a time.
pub const MAX_WATCHES: usize = 1024;

impl Mbatchd {
    /// Asks for the next change; what changed since the last answer counts.
    pub(crate) fn watch(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        mut select: JobSelect,
    ) {
        // an element is watched with its array
        select.ids.iter_mut().for_each(|id| id.elems = Vec::new());
        if let Err(r) = self.check_select(&select) {
            return context.refuse(conn, r);
        }
        let watches = &mut self.watches.by_conn;
        if !watches.contains_key(&conn) && watches.len() >= MAX_WATCHES {
            return context.refuse(conn, Refusal::new(err::BUSY));
        }
        let changed = watches.get(&conn).is_some_and(|w| w.changed && w.select == select);
        let watcher = Watcher { who: who.clone(), select, asks: !changed, changed: false };
        watches.insert(conn, watcher);
        if changed {
            context.reply_durable(conn, ClientMsg::Waited(Waited::True));
        }
    }

    pub(crate) fn watch_changed(&mut self, context: &mut StepContext, job: u32) {
        let watches = &self.watches.by_conn;
        let told = watches.iter().filter(|(_, w)| !w.changed && self.is_watched(w, job));
        for conn in told.map(|(conn, _)| *conn).collect::<Vec<_>>() {
            let Some(w) = self.watches.by_conn.get_mut(&conn) else { continue };
            match std::mem::take(&mut w.asks) {
                true => context.reply_durable(conn, ClientMsg::Waited(Waited::True)),
                false => w.changed = true,
            }
        }
    }

    /// A job that is named is watched whatever becomes of it.
    fn is_watched(&self, w: &Watcher, job: u32) -> bool {
        if !w.select.ids.is_empty() {
            return w.select.ids.iter().any(|i| i.job == job);
        }
        self.state.job(job).is_some_and(|j| self.selects(&w.who, &w.select, j))
    }
}
