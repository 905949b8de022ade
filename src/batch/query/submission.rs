//! bpeek: where the output of a started job is. The command reads it as its caller.
//! bjobs -env and -script: what is kept of a submission.

use crate::batch::site::permissions::{Action, Caller};
use crate::batch::state::{ElemState, ElementView};
use crate::batch::step::Checked;
use crate::batch::{Mbatchd, StepContext};
use crate::exec::plan::{expand, expand_dir, map_home};
use crate::model::JobRef;
use crate::model::job::{SpoolRef, opt};
use crate::model::reason::err;
use crate::proto::client::{ClientMsg, IdSel, JobSelect, PeekInfo};
use crate::proto::machine::{ConnId, Effect};
use crate::proto::sbd::SbdMsg;
use crate::proto::{Msg, Refusal};

impl Mbatchd {
    pub(crate) fn peek(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        s: &JobSelect,
    ) {
        match self.peeked(who, s) {
            Ok(info) => context.reply(conn, ClientMsg::Peeked(Box::new(info))),
            Err(r) => context.refuse(conn, r),
        }
    }

    pub(crate) fn stored(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        id: &IdSel,
        script: bool,
    ) {
        let at = match self.find_stored(who, id, script) {
            Ok(at) => at,
            Err(r) => return context.refuse(conn, r),
        };
        if at.len > 0 {
            return context.out.push(Effect::SendBlob { conn, at });
        }
        let command = self.state.job(id.job).filter(|_| script).map(|j| j.spec.command.clone());
        let data = command.unwrap_or_default();
        context.send(conn, Msg::Sbd(SbdMsg::Blob { at, data }));
    }

    fn find_stored(&self, who: &Caller, id: &IdSel, script: bool) -> Checked<SpoolRef> {
        let no_job = || Refusal::new(err::NO_JOB);
        let job = self.state.job(id.job).ok_or_else(no_job)?;
        let idx = id.elems.first().map_or(0, |e| e.0);
        if idx > 0 && job.view(idx).is_none() {
            return Err(no_job());
        }
        let (owner, queue) =
            (self.state.names().user(job.user), self.state.names().queue(job.queue));
        self.site.check(who, Action::SeeSubmission, owner, queue)?;
        Ok(if script { job.script } else { job.env })
    }

    fn peeked(&self, who: &Caller, s: &JobSelect) -> Checked<PeekInfo> {
        self.check_select(s)?;
        let no_job = || Refusal::new(err::NO_JOB);
        let at = match s.ids.first() {
            Some(id) if id.elems.is_empty() => self.newest_element(id.job),
            Some(id) => JobRef { job: id.job, idx: id.elems.first().map_or(0, |e| e.0) },
            None => self.newest_started(who, s).ok_or_else(no_job)?,
        };
        let job = self.state.job(at.job).ok_or_else(no_job)?;
        let owner = self.state.names().user(job.user);
        let queue = self.state.names().queue(job.queue_at(at.idx));
        let given = &job.spec_at(at.idx).user_group;
        self.site.check_job(who, Action::PeekJob, (owner, queue, given))?;
        let run = match job.view(at.idx).ok_or_else(no_job)? {
            ElementView::Untouched(_) => return Err(Refusal::new(err::NOT_STARTED)),
            ElementView::Own(e) => match &e.state {
                ElemState::Pend(_) => return Err(Refusal::new(err::NOT_STARTED)),
                ElemState::End(_) => return Err(Refusal::new(err::JOB_FINISH)),
                ElemState::Run(run) => run,
            },
        };
        let spec = job.spec_at(at.idx);
        if spec.options & opt::INTERACTIVE != 0 && spec.out_file.is_empty() {
            let words = "Cannot bpeek an interactive job.";
            return Err(Refusal::text(err::NO_INTERACTIVE, words));
        }
        let exec = run.exec.as_deref().ok_or_else(|| Refusal::new(err::NOT_STARTED))?;
        let name = |f: &crate::model::ByteStr| expand(f.as_bytes(), at.job, at.idx).into();
        let order = self.start_order(run.key);
        let out_dir = order
            .map_or(Vec::new(), |order| expand_dir(order.spec.further.out_dir.as_bytes(), &order));
        Ok(PeekInfo {
            id: at,
            host: run
                .hosts
                .first()
                .map_or(String::new(), |h| self.state.names().host(h.0).to_string()),
            submit_time: job.submit_time,
            out_file: name(&spec.out_file),
            err_file: name(&spec.err_file),
            cwd: exec.cwd.clone(),
            out_dir: map_home(&out_dir, spec.home.as_bytes(), exec.home.as_bytes()).into(),
            home: exec.home.clone(),
            uid: exec.uid,
            pid: run.pid,
        })
    }

    /// The element of an array dispatched last, or the first one if none runs.
    fn newest_element(&self, job: u32) -> JobRef {
        let of = |idx| JobRef { job, idx };
        let Some(job) = self.state.job(job).filter(|j| j.is_array()) else { return of(0) };
        let started = |idx: &u32| match &job.elem(*idx)?.state {
            ElemState::Run(run) => Some((run.start_time, *idx)),
            _ => None,
        };
        let newest = job.indices().into_iter().filter_map(|idx| started(&idx)).max();
        of(newest.map(|n| n.1).or_else(|| job.indices().into_iter().next()).unwrap_or(0))
    }

    /// The job or element dispatched last among those that the filters select. The search goes over
    /// started jobs, of which there are fewer than jobs.
    fn newest_started(&self, who: &Caller, s: &JobSelect) -> Option<JobRef> {
        let hosts = (!s.host.is_empty()).then(|| self.site.expand_host_words(&s.host));
        let running = self.state.counts().started();
        let mut newest: Option<(i64, JobRef)> = None;
        for at in running {
            let Some(ElemState::Run(run)) = self.state.elem(at).map(|e| &e.state) else { continue };
            let found = (run.start_time, at);
            let Some(job) = self.state.job(at.job).filter(|_| newest.is_none_or(|n| n <= found))
            else {
                continue;
            };
            let here = hosts.as_ref().is_none_or(|hosts| self.on_host(job, at.idx, hosts));
            if here && self.selects(who, s, job) {
                newest = Some(found);
            }
        }
        newest.map(|n| n.1)
    }
}
