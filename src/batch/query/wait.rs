//! bwait and bsub -K: requests that are answered when a condition becomes true, can never be, or
//! the time is over. Nothing polls: a change of a named job looks at the condition again.

use crate::batch::site::permissions::Caller;
use crate::batch::state::ElemState;
use crate::batch::usage::named_jobs::Finder;
use crate::batch::{Mbatchd, StepContext};
use crate::lang::depend::{DepValue, Resolved};
use crate::model::time::US;
use crate::proto::client::{ClientMsg, Wait, Waited};
use crate::proto::machine::ConnId;

impl Mbatchd {
    pub(crate) fn wait(&mut self, context: &mut StepContext, conn: ConnId, who: &Caller, w: Wait) {
        if let Some(select) = w.watch {
            return self.watch(context, conn, who, *select);
        }
        let last = self.site.params().job_dep_last_sub;
        let finder = Finder { state: &self.state, last, user: &who.user, recorded: false };
        let resolved = finder.bind(&w.expr, None);
        let expr = match resolved {
            Ok(e) => e,
            Err(r) => return context.refuse(conn, r),
        };
        let until = (w.timeout > 0).then(|| context.now.mono_us.saturating_add(w.timeout * US));
        match self.waits.add(conn, expr, until) {
            Ok(()) => self.look(context, conn),
            Err(refusal) => context.refuse(conn, refusal),
        }
    }

    fn look(&mut self, context: &mut StepContext, conn: ConnId) {
        let Some(condition) = self.waits.condition(conn) else { return };
        let answer = match condition.eval(&self.facts(), None) {
            DepValue::False => return,
            DepValue::True => self.end_of_one(condition).unwrap_or(Waited::True),
            DepValue::Never => Waited::Never,
        };
        self.waits.close(conn);
        context.reply_durable(conn, ClientMsg::Waited(answer));
    }

    /// The end of one plain job, for `ended(ID)` (bsub -K needs it).
    fn end_of_one(&self, expr: &Resolved) -> Option<Waited> {
        let ids = expr.job_ids();
        let [id] = ids[..] else { return None };
        if expr.to_string() != format!("ended({id})") {
            return None;
        }
        let e = self.state.job(id as u32)?.elem(0)?;
        let ElemState::End(end) = &e.state else { return None };
        Some(Waited::Ended {
            exit_code: crate::model::job::exit_code(end.status),
            status: e.stat().bits(),
            started: end.run.is_some(),
        })
    }

    pub(crate) fn wait_changed(&mut self, context: &mut StepContext, job: u32) {
        self.waits.on_job(job).into_iter().for_each(|conn| self.look(context, conn));
    }

    pub(crate) fn wait_group_changed(&mut self, context: &mut StepContext, path: &str) {
        self.waits.on_job_group(path).into_iter().for_each(|conn| self.look(context, conn));
    }

    pub(crate) fn wait_tick(&mut self, context: &mut StepContext) {
        while let Some(conn) = self.waits.take_late(context.now.mono_us) {
            context.reply(conn, ClientMsg::Waited(Waited::Timeout));
        }
    }
}
