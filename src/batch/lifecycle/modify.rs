//! bmod: a pending job gets another submission (bmod(1)). The fields asked for are put over those
//! it has, what its queue gave is taken back, and the whole passes the checks of a new submission
//! by its owner; then one JOB_MODIFY2 records all of it.
//!
//! A started job is not changed, unless lsf.conf says LSB_MOD_ALL_JOBS=Y, and then in few fields:
//! its hosts hear of the new limits, the new rusage is reserved, the rest is for the next time it
//! is started. Of an array only elements that have not started are affected, and its list of
//! indices stays; elements that are named become a part of their own (`state::element_groups`).

use crate::batch::lifecycle::meant_elements::{Meant, PARTS_PER_UNIT};
use crate::batch::lifecycle::requirement_checks::bad_requirement;
use crate::batch::lifecycle::submit::{
    check_host_lines, check_interactive, check_texts, check_times,
};
use crate::batch::site::limits::keep_to_estimate;
use crate::batch::site::permissions::Caller;
use crate::batch::site::requirements::Req;
use crate::batch::soft_state::modify_work::{MODIFIED_AT_ONCE, Modified, ModifyWork};
use crate::batch::soft_state::works::{UNIT_LOOKS, Work};
use crate::batch::state::Job;
use crate::batch::state::space::{log_bytes, spec_bytes};
use crate::batch::step::Checked;
use crate::batch::{Mbatchd, StepContext};
use crate::lang::jobname::JobName;
use crate::lang::resreq::{ResReq, Simple};
use crate::model::event::{Event, JobModify};
use crate::model::job::{JobSpec, SpoolRef, opt, opt2};
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::model::{ByteStr, JobRef};
use crate::proto::Refusal;
use crate::proto::caps::MAX_MODIFY_BYTES;
use crate::proto::client::{ClientMsg, Modify, Outcome};
use crate::proto::machine::ConnId;

/// The fields that can be changed of a started job.
const WHILE_RUNNING: [SpecField; 7] = [
    SpecField::ResReq,
    SpecField::CpuLimit,
    SpecField::MemLimit,
    SpecField::RunLimit,
    SpecField::OutFile,
    SpecField::ErrFile,
    SpecField::Rerun,
];

impl Mbatchd {
    pub(crate) fn modify(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        m: Modify,
    ) {
        if let Err(r) = self.works.room(conn, who.uid, ModifyWork::weight_of(&m)) {
            return context.refuse(conn, r);
        }
        let work = Box::new(ModifyWork::new(conn, who.clone(), m));
        if let Some(left) = self.modify_unit(context, work) {
            self.works.put(Work::Modify(left));
        }
    }

    /// Changes a job, or some more of the elements named; gives the work back unless it is whole.
    pub(crate) fn modify_unit(
        &mut self,
        context: &mut StepContext,
        mut work: Box<ModifyWork>,
    ) -> Option<Box<ModifyWork>> {
        let id = &work.request().id;
        if id.elems.is_empty() {
            return self.modify_whole(context, work);
        }
        if id.named() <= MODIFIED_AT_ONCE {
            let did = work.change_all(|who, m| self.modified(context, who, m));
            return self.end_modify(context, &work, did);
        }
        if !work.is_sorted() {
            let job = self.state.job(id.job);
            work.sort_elements(job, UNIT_LOOKS);
            return Some(work);
        }
        let (some, more) = work.next_elements();
        if some.is_empty() {
            return self.end_modify(context, &work, Err(Refusal::new(err::NO_JOB)));
        }
        let before = context.out.len();
        let mut did = work.change_some(&some, |who, m| self.modified(context, who, m));
        let written = work.wrote(log_bytes(&context.out[before..]));
        // these were started when they were looked at, and have ended since
        let over = |r: &Refusal| r.code == err::JOB_FINISH;
        if (more || work.modified() != Modified::Nothing) && did.as_ref().is_err_and(over) {
            did = Ok(());
        }
        if did.is_ok() && more {
            did = self.log_takes(written);
            if did.is_ok() {
                return Some(work);
            }
        }
        self.end_modify(context, &work, did)
    }

    /// Ends a modification: carries out the consequences of its changes, and answers.
    fn end_modify(
        &mut self,
        context: &mut StepContext,
        work: &ModifyWork,
        did: Checked<()>,
    ) -> Option<Box<ModifyWork>> {
        let id = work.request().id.job;
        let some = did.is_ok() || work.modified() != Modified::Nothing;
        if some && work.is_running() {
            self.tell_limits(context, id);
        }
        if some && work.request().fields.contains(&SpecField::Queue) {
            self.queue_changed(context, id, &[]);
        }
        self.answer_modify(context, work, did);
        None
    }

    /// Whether a request may write more than that many bytes.
    fn log_takes(&self, written: u64) -> Checked<()> {
        let most = self.works.log_most();
        if written <= most {
            return Ok(());
        }
        let text = format!("the log takes at most {most} bytes of a request");
        Err(Refusal::text(err::BAD_ARG, text))
    }

    /// Changes a whole job: of an array first what was not changed by itself, then part by part.
    fn modify_whole(
        &mut self,
        context: &mut StepContext,
        mut work: Box<ModifyWork>,
    ) -> Option<Box<ModifyWork>> {
        let before = context.out.len();
        if work.next_part().is_none() {
            if let Err(refused) = work.change_all(|who, m| self.modified(context, who, m)) {
                return self.end_modify(context, &work, Err(refused));
            }
            work.stands_at(1);
        }
        let mut did = self.modify_parts(context, &mut work);
        let written = work.wrote(log_bytes(&context.out[before..]));
        if let Ok(true) = did
            && work.begin_again()
        {
            did = Ok(false);
        }
        if let Ok(false) = did {
            match self.log_takes(written) {
                Ok(()) => return Some(work),
                Err(full) => did = Err(full),
            }
        }
        self.end_modify(context, &work, did.map(|_| ()))
    }

    /// Changes some more parts of an array; whether all are.
    fn modify_parts(&mut self, context: &mut StepContext, work: &mut ModifyWork) -> Checked<bool> {
        let id = work.request().id.job;
        for _ in 0..PARTS_PER_UNIT {
            let gone = || Refusal::new(err::NO_JOB);
            let job = self.state.job(id).ok_or_else(gone)?;
            let next = work.next_part().unwrap_or(1);
            let left = (next..).zip(job.parts().iter().skip(next as usize - 1));
            let Some((part, _)) = left.into_iter().find(|(_, p)| p.unfinished() > 0) else {
                return Ok(true);
            };
            self.log_works()?;
            let owner = self.owner(id)?;
            let meant = Meant { part, elems: Vec::new() };
            let change =
                self.change_of(context, &owner, job, meant, work.request(), work.is_running())?;
            // it may have been changed before another one was put into it
            if change.spec != **job.spec_of(part) || !change.eff_res_req.is_empty() {
                self.record_modified(context, work.who(), change);
            }
            work.stands_at(part + 1);
        }
        Ok(false)
    }

    fn answer_modify(&mut self, context: &mut StepContext, work: &ModifyWork, did: Checked<()>) {
        let Some(conn) = work.conn() else { return };
        match did {
            Ok(()) => {
                let outcomes = vec![Outcome::new(JobRef { job: work.request().id.job, idx: 0 }, 0)];
                context.reply_durable(conn, ClientMsg::Controlled { outcomes, more: false });
            }
            Err(mut r) => {
                let before = match work.modified() {
                    Modified::Elements(last) => format!("elements up to <{last}> were"),
                    Modified::Nothing => String::new(),
                    Modified::Part => "a part of the array was".to_string(),
                };
                if !before.is_empty() {
                    r.text = format!("{} ({before} modified before)", r.words());
                    r.about = String::new();
                }
                context.refuse(conn, r);
            }
        }
    }

    /// Checks a change of all that is meant, and makes it; of whole parts of an array it is made
    /// by [`Mbatchd::modify_parts`]. Whether the job has been started.
    fn modified(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        m: &mut Modify,
    ) -> Checked<bool> {
        self.log_works()?;
        let id = m.id.job;
        let job = self.state.job(id).ok_or_else(|| Refusal::new(err::NO_JOB))?;
        let owner = self.owner(id)?;
        if !self.may_control(who, job, &m.id) {
            return Err(Refusal::new(err::PERMISSION));
        }
        let (meant, running) = self.changeable(job, m)?;
        if m.fields.is_empty() {
            return Err(Refusal::new(err::MOD_UNUSED));
        }
        // an array is in one group as a whole
        if m.fields.contains(&SpecField::Group) && !m.id.elems.is_empty() {
            return Err(Refusal::new(err::ELEMENT));
        }
        if m.fields.contains(&SpecField::Priority) {
            self.check_priority(&m.spec, who, self.state.names().queue(job.queue))?;
        }
        self.check_absolute_priority(who, job, m)?;
        self.as_submitted(job, m);
        self.room_to_modify(job, m, meant.len())?;
        let mut all = Vec::new();
        for part in meant {
            let later = part.part != 0 && part.elems.is_empty();
            let change = self.change_of(context, &owner, job, part, m, running)?;
            all.extend((!later).then_some(change));
        }
        let (script, env) = self.stored_anew(context, m);
        for change in all {
            self.record_modified(context, who, JobModify { script, env, ..change });
        }
        if m.id.elems.is_empty() {
            // they are stored
            (m.script, m.env) = (ByteStr::default(), None);
        }
        Ok(running)
    }

    /// The record of a change of a part, or of elements of it.
    fn change_of(
        &self,
        context: &StepContext,
        owner: &Caller,
        job: &Job,
        meant: Meant,
        m: &Modify,
        running: bool,
    ) -> Checked<JobModify> {
        let mut spec = self.changed(context, owner, job, meant.part, m)?;
        let mut eff_res_req = String::new();
        if running && m.fields.contains(&SpecField::ResReq) {
            spec.res_req = self.other_rusage(&job.spec_of(meant.part).res_req, &m.spec)?;
            if let Some(queue) = self.site.queue(job.queue_of(meant.part)) {
                self.check_requirement(&spec, queue)?;
            }
            eff_res_req = self.effective(&spec)?;
        }
        let fields = m.fields.clone();
        let of = match meant.elems.is_empty() {
            true => job.change_of(meant.part),
            false => {
                let elems = crate::batch::state::element_groups::ranges(meant.elems);
                JobModify { job: job.id, elems, ..JobModify::default() }
            }
        };
        Ok(JobModify { spec, fields, eff_res_req, ..of })
    }

    /// Bounds the bytes that a change writes: by itself, and with all that the owner's jobs keep.
    fn room_to_modify(&self, job: &Job, m: &Modify, parts: usize) -> Checked<()> {
        let spec = (0..=job.parts().len() as u32).map(|part| spec_bytes(job.spec_of(part))).max();
        let spec = spec.unwrap_or(0) + spec_bytes(&m.spec);
        let bytes = spec.saturating_mul(parts as u64);
        if bytes > MAX_MODIFY_BYTES as u64 {
            let text = format!(
                "the change writes {bytes} bytes for {parts} differing parts of the array; the \
                 limit is {MAX_MODIFY_BYTES}: modify fewer elements at a time"
            );
            return Err(Refusal::text(err::BAD_ARG, text));
        }
        let env = m.env.as_ref().map_or(0, ByteStr::len);
        self.check_space(job.user, bytes + (m.script.len() + env) as u64, 0)
    }

    /// Puts in place what -Zsn goes back to.
    fn as_submitted(&self, job: &Job, m: &mut Modify) {
        if m.fields.contains(&SpecField::Script) && m.spec.command.is_empty() {
            let first = self.state.modifications().first(job.id);
            let now = || job.spec.options2 & opt2::SCRIPT != 0;
            m.spec.command = first.map_or(&job.spec.command, |f| &f.command).clone();
            m.spec.options2 &= !opt2::SCRIPT;
            if first.map_or_else(now, |f| f.scripted) {
                m.spec.options2 |= opt2::SCRIPT;
            }
            m.script = ByteStr::default();
        }
    }

    /// The places of the script and the environment that a job has from now on.
    fn stored_anew(&mut self, context: &mut StepContext, m: &Modify) -> (SpoolRef, SpoolRef) {
        let Some(job) = self.state.job(m.id.job) else { return <_>::default() };
        let (uid, first) = (job.uid, self.state.modifications().first(job.id));
        let mut script = first.map_or(job.script, |f| f.script);
        let mut env = first.map_or(job.env, |f| f.env);
        let asked = |field| m.fields.contains(&field);
        if !asked(SpecField::Script) {
            script = SpoolRef::default();
        } else if !m.script.is_empty() {
            script = self.spool(context, m.script.clone());
        }
        if !asked(SpecField::Env) {
            env = SpoolRef::default();
        } else if let Some(new) = &m.env {
            env = self.spool_env(context, uid, new.clone());
        }
        (script, env)
    }

    /// The parts of a job that the request means, and whether any of them has been started.
    fn changeable(&self, job: &Job, m: &Modify) -> Checked<(Vec<Meant>, bool)> {
        let refuse = |code| Err(Refusal::new(code));
        if !m.id.elems.is_empty() && !job.is_array() {
            return refuse(err::NO_JOB);
        }
        let (mut meant, not) = self.meant(job, &m.id);
        if job.tally().unfinished() == 0 {
            return refuse(err::JOB_FINISH);
        }
        if meant.is_empty() {
            return refuse(not.first().map_or(err::NO_JOB, |n| n.1));
        }
        let waits = |idx: &u32| job.view(*idx).is_some_and(|v| v.stat().is_pending());
        let running = match m.id.elems.is_empty() {
            true => job.tally().pend + job.tally().psusp == 0,
            false => !meant.iter().any(|part| part.elems.iter().any(waits)),
        };
        let group = |f: &SpecField| *f == SpecField::Group;
        // a group takes started jobs at any time, and an array as long as none of it is started
        if m.fields.iter().any(group) && job.is_array() && job.tally().started() > 0 {
            return Err(Refusal::text(err::RUNNING, "Elements of the job array have been started"));
        }
        let may = self.site.conf.base.lsf.yes("LSB_MOD_ALL_JOBS") || m.fields.iter().all(group);
        let few = m.fields.iter().all(|f| group(f) || WHILE_RUNNING.contains(f));
        if running && !may {
            return refuse(err::RUNNING);
        }
        if running && !few {
            return refuse(err::MOD_RUNNING);
        }
        if m.id.elems.is_empty() {
            return Ok((meant, running));
        }
        if m.fields.contains(&SpecField::Name) {
            return refuse(err::ARRAY_NAME);
        }
        // These fields belong to the whole job.
        let whole = [SpecField::Depend, SpecField::Script, SpecField::Env];
        if whole.iter().any(|f| m.fields.contains(f)) {
            return refuse(err::ELEMENT);
        }
        if !running {
            meant.iter_mut().for_each(|part| part.elems.retain(waits));
            meant.retain(|part| !part.elems.is_empty());
        }
        self.room_for_parts(job, &m.id, meant.len()).map_err(Refusal::new)?;
        Ok((meant, running))
    }

    /// The submission that a part of a job becomes of.
    fn changed(
        &self,
        context: &StepContext,
        owner: &Caller,
        job: &Job,
        part: u32,
        m: &Modify,
    ) -> Checked<JobSpec> {
        let asked = |field| m.fields.contains(&field);
        check_host_lines(&m.spec)?;
        let mut spec = (**job.spec_of(part)).clone();
        leave_host_file(&mut spec, m)?;
        crate::batch::site::limits::unfill(&mut spec);
        let was = spec.cwd.clone();
        for field in &m.fields {
            field.copy(&mut spec, &m.spec);
            if *field == SpecField::Hosts {
                // a request is bound to its host no longer
                spec.further.route = None;
            }
        }
        if asked(SpecField::Cwd) {
            submission_directory(&mut spec, was);
        }
        crate::batch::site::limits::user_limits(&mut spec, &m.spec, &m.fields);
        let file = asked(SpecField::HostFile) && !spec.further.host_lines.is_empty();
        if file && !spec.res_req.is_empty() {
            let words = "Option -hostfile cannot be combined with option -R";
            return Err(Refusal::text(err::BAD_ARG, words));
        }
        let none = ByteStr::default();
        check_texts(&spec, m.env.as_ref().unwrap_or(&none), &m.script)?;
        if asked(SpecField::Group) && !spec.further.job_group.is_empty() {
            self.check_group(&mut spec, &owner.user)?;
        }
        let name = self.changed_name(&mut spec, job, asked(SpecField::Name))?;
        check_interactive(&spec, &name)?;
        if asked(SpecField::App) {
            self.choose_application(&mut spec)?;
        }
        let queue = match asked(SpecField::Queue) {
            true => self.choose_queue(&mut spec, owner)?,
            false => spec.queue.clone(),
        };
        let queue =
            self.site.find_queue(&queue).ok_or_else(|| Refusal::about(err::BAD_QUEUE, queue))?;
        let new_limit = asked(SpecField::RunLimit);
        if new_limit || asked(SpecField::Estimate) {
            keep_to_estimate(&mut spec, queue, &self.site, !new_limit)?;
        }
        self.fit(&mut spec, queue)?;
        if asked(SpecField::Begin) || asked(SpecField::Term) {
            check_times(&spec, context.now.secs())?;
        }
        if asked(SpecField::Depend) {
            self.check_depend(&mut spec, owner, &name)?;
        }
        self.default_project(&mut spec);
        self.check_named(owner, m, &mut spec, &queue.conf.name)?;
        spec.further.trim();
        Ok(spec)
    }

    /// Checks what a change names: a reservation, a service class, a policy of the load balancer.
    fn check_named(
        &self,
        owner: &Caller,
        m: &Modify,
        spec: &mut JobSpec,
        queue: &str,
    ) -> Checked<()> {
        let asked = |field| m.fields.contains(&field);
        if asked(SpecField::Reservation) {
            self.check_reserved(&spec.further.reservation, owner)?;
        }
        if asked(SpecField::Sla) && !spec.further.service_class.is_empty() {
            self.check_service_class(spec, owner, queue)?;
        }
        if asked(SpecField::Nlb) {
            self.check_nlb(spec)?;
        }
        Ok(())
    }

    /// The name of a changed submission; the list of an array stays.
    fn changed_name(&self, spec: &mut JobSpec, job: &Job, asked: bool) -> Checked<JobName> {
        if asked && let (Some(limit), Some(array)) = (spec.name.strip_prefix('%'), &job.name.array)
        {
            spec.name = format!("{}[{}]%{limit}", job.name.name, array.list);
        }
        if asked && job.name.array.is_none() && is_array_limit(&spec.name) {
            let (limit, id) = (&spec.name, job.id);
            let words = format!("<{limit}> is the limit of a job array; job <{id}> is not one");
            return Err(Refusal::text(err::ARRAY_NONE, words));
        }
        let name = self.check_name(spec)?;
        if name.array.as_ref().map(|a| &a.list) != job.name.array.as_ref().map(|a| &a.list) {
            return Err(Refusal::new(err::ARRAY_NAME));
        }
        Ok(name)
    }

    /// The requirement of a started job with the rusage of `new` in place of its own. The other
    /// sections cannot be changed any more.
    fn other_rusage(&self, old: &str, new: &JobSpec) -> Checked<String> {
        let parse = |text: &str| match text.is_empty() {
            true => Ok(ResReq::default()),
            false => self.site.names.parse(text).map_err(|e| bad_requirement(text, &e)),
        };
        let (ResReq::Simple(mut was), ResReq::Simple(mut new)) =
            (parse(old)?, parse(&new.res_req)?)
        else {
            return Err(Refusal::new(err::MOD_RUNNING));
        };
        let rusage = new.rusage.take();
        was.rusage = None;
        if *new != Simple::default() && new != was {
            return Err(Refusal::new(err::MOD_RUNNING));
        }
        was.rusage = rusage;
        Ok(ResReq::Simple(was).to_string())
    }

    /// The requirement that acts for a submission.
    pub(crate) fn effective(&self, spec: &JobSpec) -> Checked<String> {
        let queue = self.site.find_queue(&spec.queue).and_then(|q| q.req.as_deref());
        let application = self.site.applications.get(&spec.further.application);
        let levels = [application.and_then(|a| a.req.as_deref()), queue];
        Req::combined(&spec.res_req, levels, !spec.hosts.is_empty(), &self.site.names)
            .map(|req| req.0.to_string())
            .map_err(|_| Refusal::new(err::BAD_RESREQ))
    }

    /// The submitter of a job, as a caller.
    pub(crate) fn owner(&self, id: u32) -> Checked<Caller> {
        let job = self.state.job(id).ok_or_else(|| Refusal::new(err::NO_JOB))?;
        Ok(Caller {
            uid: job.uid,
            gid: job.gid,
            user: self.state.names().user(job.user).to_string(),
            host: job.spec.from_host.clone(),
        })
    }

    /// The job, or the elements, are what the change says from now on.
    pub(crate) fn record_modified(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        m: JobModify,
    ) {
        let job = m.job;
        let Some(submit_time) = self.state.job(job).map(|j| j.submit_time) else { return };
        self.make_groups(context, (who.uid, &who.user), &m.spec.further.job_group);
        let exact = self.spool_spec(context, &m.spec);
        let (uid, user) = (who.uid, who.user.clone());
        let other = |field| m.fields.contains(&field);
        let (begin, depend) = (other(SpecField::Begin), other(SpecField::Depend) && !m.alike);
        self.sched.drop_entry(job);
        if begin {
            self.unwatch_begin(job);
        }
        if depend {
            self.deps.unwatch(&self.state, job);
        }
        let m = JobModify { uid, user, submit_time, exact, ..m };
        self.emit(context, Event::JobModify(Box::new(m)));
        if depend {
            self.watch_depend(job);
        }
        if begin {
            self.watch_begin(job);
        }
        self.refresh(job);
        self.end_orphans(context, job);
    }
}

/// A submission with -hostfile: another file takes the place of its hosts, other options for hosts
/// and slots are refused.
fn leave_host_file(spec: &mut JobSpec, m: &Modify) -> Checked<()> {
    if spec.further.host_lines.is_empty() {
        return Ok(());
    }
    if m.fields.contains(&SpecField::HostFile) {
        (spec.min_slots, spec.max_slots) = (0, 0);
        spec.hosts.clear();
        spec.options &= !opt::HOST;
        return Ok(());
    }
    let places = [SpecField::Slots, SpecField::Hosts, SpecField::ResReq];
    match places.into_iter().find(|field| m.fields.contains(field)) {
        Some(field) => {
            let words = "Option -hostfile cannot be combined with option -";
            Err(Refusal::text(err::BAD_ARG, format!("{words}{}", field.word())))
        }
        None => Ok(()),
    }
}

/// `%N`, the limit of an array without its name.
fn is_array_limit(name: &str) -> bool {
    let digits = name.strip_prefix('%').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// -cwd leaves the directory of the submission behind, -cwdn goes back to it.
fn submission_directory(spec: &mut JobSpec, was: ByteStr) {
    let kept = &mut spec.further.submission_directory;
    if spec.cwd.is_empty() {
        let kept = std::mem::take(kept);
        spec.cwd = if kept.is_empty() { was } else { ByteStr::from(&*kept) };
    } else if kept.is_empty() {
        *kept = was.lossy().into();
    }
}
