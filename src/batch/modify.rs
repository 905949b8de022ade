//! bmod: a pending job gets another submission (commands.md bmod). The fields asked for are put
//! over those it has, what its queue gave is taken back, and the whole passes the checks of a new
//! submission by its owner; then one JOB_MODIFY2 records all of it.
//!
//! What runs is not changed, unless lsf.conf says LSB_MOD_ALL_JOBS=Y, and then in few things: its
//! hosts hear of its limits, the rest is for the next time it is started. Of an array only elements
//! that have not started are affected, and its list of indices stays.

use super::perm::{Action, Caller};
use super::state::ElemState;
use super::submit::{Checked, check_group, check_texts, check_times};
use super::{Cx, Mbd};
use crate::model::event::{Event, JobModify};
use crate::model::job::JobSpec;
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::model::{ByteStr, JobRef};
use crate::proto::Refusal;
use crate::proto::client::{ClientMsg, Modify, Outcome};
use crate::proto::machine::ConnId;
use crate::proto::sbd::Act;

/// What can be changed of a job that runs.
const WHILE_RUNNING: [SpecField; 6] = [
    SpecField::CpuLimit,
    SpecField::MemLimit,
    SpecField::RunLimit,
    SpecField::OutFile,
    SpecField::ErrFile,
    SpecField::Rerun,
];

impl Mbd {
    pub(crate) fn modify(&mut self, cx: &mut Cx, conn: ConnId, who: &Caller, m: &Modify) {
        match self.modified(cx, who, m) {
            Ok(()) => {
                let outcomes = vec![Outcome::new(JobRef { job: m.id.job, idx: 0 }, 0)];
                cx.reply_durable(conn, ClientMsg::Controlled { outcomes });
            }
            Err(r) => cx.refuse(conn, r),
        }
    }

    fn modified(&mut self, cx: &mut Cx, who: &Caller, m: &Modify) -> Checked<()> {
        self.log_works()?;
        let id = m.id.job;
        let job = self.st.job(id).ok_or_else(|| Refusal::new(err::NO_JOB))?;
        let owner = self.owner(id)?;
        self.check(who, Action::ControlJob, &owner.user, self.st.names.text(job.queue))?;
        if !m.id.elems.is_empty() {
            return Err(Refusal::new(err::ELEMENT));
        }
        if job.tally.unfinished() == 0 {
            return Err(Refusal::new(err::JOB_FINISH));
        }
        let running = job.tally.pend + job.tally.psusp == 0;
        if running && !self.pol.conf.base.lsf.yes("LSB_MOD_ALL_JOBS") {
            return Err(Refusal::new(err::RUNNING));
        }
        if running && !m.fields.iter().all(|f| WHILE_RUNNING.contains(f)) {
            return Err(Refusal::new(err::MOD_RUNNING));
        }
        let mut spec = (*job.spec).clone();
        super::limits::unfill(&mut spec);
        for field in &m.fields {
            field.copy(&mut spec, &m.spec);
        }
        check_texts(&spec, &ByteStr::default(), &ByteStr::default())?;
        check_group(&spec)?;
        let name = self.check_name(&spec)?;
        if name.array.as_ref().map(|a| &a.list) != job.name.array.as_ref().map(|a| &a.list) {
            return Err(Refusal::new(err::ARRAY_NAME));
        }
        let pol = self.pol.clone();
        let queue = match m.fields.contains(&SpecField::Queue) {
            true => self.choose_queue(&mut spec, &owner)?,
            false => spec.queue.clone(),
        };
        let queue = pol.find_queue(&queue).ok_or_else(|| Refusal::about(err::BAD_QUEUE, queue))?;
        self.fit(&mut spec, queue)?;
        check_times(&spec, cx.now.secs())?;
        self.check_priority(&spec)?;
        self.check_depend(&mut spec, &owner, &name)?;
        self.default_project(&mut spec);
        self.record_modified(cx, who, id, spec, m.fields.clone());
        if running {
            self.tell_limits(cx, id);
        }
        Ok(())
    }

    /// The hosts of a changed job's started elements hear of its limits.
    pub(crate) fn tell_limits(&mut self, cx: &mut Cx, id: u32) {
        let Some(job) = self.st.job(id) else { return };
        let runs = |idx: u32| match &job.elem(idx)?.state {
            ElemState::Run(r) => Some((r.key, Box::new(self.host_limits(job, r)))),
            _ => None,
        };
        let all: Vec<_> = job.indices().into_iter().filter_map(runs).collect();
        for (key, limits) in all {
            self.act_on(cx, key, Act::Limits(limits));
        }
    }

    /// Who submitted a job, as one who submits.
    pub(crate) fn owner(&self, id: u32) -> Checked<Caller> {
        let job = self.st.job(id).ok_or_else(|| Refusal::new(err::NO_JOB))?;
        Ok(Caller {
            uid: job.uid,
            gid: job.gid,
            user: self.st.names.text(job.user).to_string(),
            host: job.spec.from_host.clone(),
        })
    }

    /// The job is what `spec` says from now on.
    pub(crate) fn record_modified(
        &mut self,
        cx: &mut Cx,
        who: &Caller,
        job: u32,
        spec: JobSpec,
        fields: Vec<SpecField>,
    ) {
        let Some(submit_time) = self.st.job(job).map(|j| j.submit_time) else { return };
        let exact = self.spool_spec(cx, &spec);
        let (uid, user) = (who.uid, who.user.clone());
        self.sched.drop_entry(job);
        self.unwatch_begin(cx, job);
        self.unwatch_depend(job);
        let m = JobModify { job, uid, user, submit_time, spec, fields, exact };
        self.emit(cx, Event::JobModify(Box::new(m)));
        self.watch_depend(job);
        self.watch_begin(cx, job);
        self.refresh(job);
    }
}
