//! bjobs --watch: who is told that jobs have changed. Nothing polls: an event that touches a job
//! looks at who watches it.
//!
//! Invariant: a watcher gets one message and then none until it asks for the next, so that at most
//! one message waits for each watcher, however slow it is; a change between the two is remembered.

use crate::batch::site::permissions::Caller;
use crate::batch::{Mbatchd, StepContext};
use crate::proto::client::{ClientMsg, JobSelect, Waited};
use crate::proto::machine::ConnId;

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
        match self.watches.ask(conn, who, select) {
            Ok(true) => context.reply_durable(conn, ClientMsg::Waited(Waited::True)),
            Ok(false) => {}
            Err(refusal) => context.refuse(conn, refusal),
        }
    }

    pub(crate) fn watch_changed(&mut self, context: &mut StepContext, job: u32) {
        for conn in self.watches.unchanged(job, |who, select| self.is_watched(who, select, job)) {
            if self.watches.note_change(conn) {
                context.reply_durable(conn, ClientMsg::Waited(Waited::True));
            }
        }
    }

    /// Whether a watch that names no job is of this one.
    fn is_watched(&self, who: &Caller, select: &JobSelect, job: u32) -> bool {
        self.state.job(job).is_some_and(|j| self.selects(who, select, j))
    }
}
