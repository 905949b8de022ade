//! The end of an attempt: its meaning, the job report, and the message to mbatchd.

use super::agent::*;
use super::*;
use crate::exec::env_script::{self, CLEANUP_SECS};
use crate::exec::others_usage::ReportTask;
use crate::exec::report::ReportPlace;
use crate::model::job::Usage;
use crate::proto::launch::{Eexec, HookOf};

impl Sbatchd {
    /// A job's process has ended, as the launcher tells.
    pub(super) fn ended(
        &mut self,
        now: Now,
        key: JobKey,
        setup: Option<Setup>,
        ended: TaskEnd,
        out: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.get_mut(&key).filter(|j| j.live()) else { return };
        if job.holds_end(&setup, &ended) {
            return;
        }
        let killed = job.note.mark.kill.is_some();
        let signalled = job.note.mark.signalled;
        let mut end = ended.end;
        if let Some(Setup::Failed { begun: Some(ready), .. }) = &setup {
            (job.ready, job.begun) = ((**ready).clone(), true);
        }
        let mut usage = ended.usage;
        usage.add(&Usage { max_mem_kb: 0, ..self.members.spent_at_end(key) });
        job.final_usage(now, usage);
        let mark = &mut job.note.mark;
        if ended.end == End::Unknown {
            let lost = if ended.restarted { term::HOST_RESTART } else { term::LOST_STATUS };
            mark.exit_info = lost;
        }
        if mark.exit_info == 0 && job.group.as_ref().is_some_and(|group| group.out_of_memory) {
            mark.exit_info = term::MEMLIMIT;
        }
        match setup {
            Some(Setup::Failed { at: launch::SetupStage::Cwd, why, .. }) => {
                mark.exit_info = term::CWD_NOTEXIST;
                job.ready.note = why;
            }
            Some(Setup::Failed { at: launch::SetupStage::PreAbort, why, .. }) => {
                job.ready.note = why;
            }
            // what kills a job kills what runs before it
            Some(Setup::Failed { why, .. }) if killed => job.ready.note = why,
            // bkill -s means the job, whatever runs of it: a command before the job that fails
            // after the signal is not tried again, or the signal would never end the job
            Some(Setup::Failed { why, .. }) if signalled != 0 => {
                job.ready.note = why;
                end = End::Status(signalled);
            }
            Some(Setup::Failed { at, why, exit, .. }) => {
                (job.ready.note, job.pre_exit) = (why, exit);
                return self.failed(now, key, stage_reason(at), out);
            }
            // it died before it could report: killed, unless something else is wrong
            None if !killed && signalled == 0 && end != End::Unknown => {
                job.ready.note = "the job's starter died".into();
                return self.failed(now, key, PendReason::ExecInit, out);
            }
            _ => {}
        }
        let exit_info = job.note.mark.exit_info;
        job.outcome = Some((AttemptPhase::Ended { end, exit_info }, ended.time));
        if killed && self.linked {
            // nothing of a killed job stays behind
            let id = TaskId { key, step: TaskStep::Job };
            ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
        }
        self.end_tasks_of(now, key, out);
        self.finish(now, key, out);
    }

    /// A job is over without the launcher's word: simulated, or forgotten by it.
    pub(super) fn over(&mut self, now: Now, key: JobKey, end: End, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let unknown = end == End::Unknown;
        let exit_info = if unknown { term::LOST_STATUS } else { job.note.mark.exit_info };
        job.outcome = Some((AttemptPhase::Ended { end, exit_info }, now.secs()));
        self.end_tasks_of(now, key, out);
        self.finished(now, key, out);
    }

    /// The job never ran.
    pub(super) fn failed(&mut self, now: Now, key: JobKey, why: PendReason, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.outcome = Some((AttemptPhase::Failed { reason: why.number() }, now.secs()));
        let note = &job.ready.note;
        say(out, log::Level::Warn, format!("{key} did not start: {note}"));
        match job.begun {
            true => self.finish(now, key, out),
            false => self.finished(now, key, out),
        }
    }

    /// Has the report written, files copied back and the job file removed, then tells the end.
    pub(super) fn finish(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let post = job.post_commands();
        let mut copies = plan::copies_back(&job.note.order);
        copies.retain(|_| !job.begun);
        // a job whose setup failed has no files, and what is done after it was not begun
        let ran = job.stage != AttemptStage::Launching || job.begun;
        let variable = self.conf.site.tmpdir.as_ref().map_or("", |(_, variable)| variable);
        let cleanup = env_script::cleanup(&job.ready, variable).filter(|_| !job.begun);
        let none = post.is_empty() && copies.is_empty() && !job.ready.eexec && cleanup.is_none();
        let Ready { out: output, script, err_buffer, .. } = &job.ready;
        let files = !output.is_empty() || !script.is_empty() || !err_buffer.is_empty();
        if !ran || !files && none {
            return self.finished(now, key, out);
        }
        job.stage = AttemptStage::Finishing;
        if post.iter().any(|hook| hook.of != HookOf::Copy) {
            job.post = Post::Running;
        }
        let cleans = cleanup.as_ref().map_or(0, |_| CLEANUP_SECS * US);
        job.cleans_until.get_or_insert(now.mono_us + cleans);
        // transfers take as long as they take: bkill ends them
        if copies.is_empty() {
            job.finish_by.get_or_insert(now.mono_us + cleans + FINISH_WAIT);
        }
        let reported = self.jobs.get(&key).is_some_and(|job| self.reports(job));
        let waits = self.waits_for_usage(now, (key, reported), out);
        // transfers bring the report back, too
        let divides = (!post.is_empty() || self.jobs[&key].ready.eexec) && copies.is_empty();
        if waits && divides {
            self.divide(key, out);
        } else if waits {
            return;
        }
        let Some(job) = self.jobs.get(&key).filter(|_| self.linked) else { return };
        let report_apart = job.report.task != ReportTask::Within;
        let o = &job.note.order;
        let mut eexec = Eexec::default();
        let env = match self.blobs.get(o.env) {
            _ if none => ByteStr::default(),
            Some(env) => {
                if job.ready.eexec {
                    eexec = plan::eexec(&self.conf.site, &env);
                }
                plan::post_env(&self.conf.site, o, &job.ready, job.end(), &env).into()
            }
            None => return self.need(o.env, out),
        };
        let cwd = if none { "" } else { &job.ready.cwd }.into();
        let written = match job.begun {
            true => FinishPlan { remove: job.ready.script.clone(), ..FinishPlan::default() },
            false => self.written(job),
        };
        let what = FinishPlan { report_apart, eexec, post, copies, cleanup, env, cwd, ..written };
        as_account(&self.jobs[&key], TaskStep::Finish, what, out);
    }

    /// A kill of a job that only copies files back ends that, and with it the job. It does not end
    /// a script that cleans up, with which the output of the job would be lost.
    pub(super) fn cut_short(&self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let cleaned = |j: &Attempt| j.cleans_until.is_none_or(|until| until <= now.mono_us);
        let copies = |j: &&Attempt| !plan::copies_back(&j.note.order).is_empty() && cleaned(j);
        if self.linked && self.jobs.get(&key).filter(copies).is_some() {
            let id = TaskId { key, step: TaskStep::Finish };
            ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
        }
    }

    /// The part of what is done after a job that concerns its files and its mail.
    pub(super) fn written(&self, job: &Attempt) -> FinishPlan {
        let o = &job.note.order;
        let ready = &job.ready;
        let (mut text, mut tail, mut unwritten) = <(String, String, Option<Box<Mail>>)>::default();
        if !ready.out.is_empty() {
            let place =
                if ready.buffer.is_empty() { ReportPlace::Below } else { ReportPlace::Above };
            let report = self.report(job, place);
            text = report.text(&self.conf.zone);
            if place == ReportPlace::Above {
                tail = report.after_output();
            }
            if !ready.kept {
                unwritten = self.letter(job, !ready.buffer.is_empty());
            }
        }
        let buffered = !ready.buffer.is_empty() || !ready.err_buffer.is_empty();
        FinishPlan {
            append_to: ready.out.clone(),
            text: text.into(),
            buffer: ready.buffer.clone(),
            tail: tail.into(),
            over: o.spec.options2 & opt2::OVERWRITE_OUT != 0,
            err_buffer: ready.err_buffer.clone(),
            err: ready.err.clone(),
            err_over: o.spec.options2 & opt2::OVERWRITE_ERR != 0,
            umask: (buffered || !ready.env_script.is_empty()).then_some(o.spec.umask & 0o777),
            unwritten,
            kept_as: Some((o.key.job, o.key.idx, o.submit_time)),
            tag: self.conf.site.tag.clone(),
            remove: ready.script.clone(),
            mail: self.mail(job),
            ..FinishPlan::default()
        }
    }

    /// Whether a report on the job is written or sent.
    fn reports(&self, job: &Attempt) -> bool {
        !job.ready.out.is_empty() || self.mail(job).is_some()
    }

    /// Sends the mail of -B; a launcher that has the step already does nothing.
    pub(super) fn mail_begin(&self, key: JobKey, out: &mut Vec<Effect>) {
        let job = &self.jobs[&key];
        let o = &job.note.order;
        if o.spec.options & opt::NOTIFY_BEGIN != 0
            && self.linked
            && let Some(mail) = self.letter(job, false)
        {
            let what = FinishPlan { mail: Some(mail), ..FinishPlan::default() };
            as_account(job, TaskStep::Begin, what, out);
        }
    }

    /// Mails the user of an attempt that never ran what mbatchd has to say of it.
    pub(super) fn mail_user(&self, key: JobKey, text: &str, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get(&key).filter(|_| self.linked && !text.is_empty()) else {
            return;
        };
        let (site, o) = (&self.conf.site, &job.note.order);
        let to = plan::mail_to(site, o);
        if site.mail_program.is_empty() || to.is_empty() {
            return;
        }
        let text = self.report(job, ReportPlace::Mail { to: &to, output: false }).held(text).into();
        let program = site.mail_program.as_str().into();
        let mail = Mail { program, to, text, output: false, limit_kb: site.mail_limit_kb };
        let what = FinishPlan { mail: Some(Box::new(mail)), ..FinishPlan::default() };
        as_user(o, TaskStep::Finish, what, out);
    }

    /// The post-execution commands of a job have ended.
    pub(super) fn posted(&mut self, now: Now, key: JobKey, end: End, out: &mut Vec<Effect>) {
        let running = |j: &&Attempt| j.post == Post::Running;
        let well = end == End::Status(0);
        if self.jobs.get(&key).filter(running).is_none()
            || self.ask_hosts_after(now, key, well, out)
        {
            return;
        }
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.post = if well { Post::Done } else { Post::Failed };
        if job.stage == AttemptStage::Over {
            self.tell_state(key, out);
        }
    }

    pub(super) fn finished(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        if let Some(job) = self.jobs.get_mut(&key) {
            job.stage = AttemptStage::Over;
            (job.kill_at, job.run_at, job.sample_at) = (None, None, None);
            job.warn_at = None;
            (job.finish_by, job.plan) = (None, None);
            self.tidy.attempt_over(now, job);
        }
        self.directory_over(now, key, out);
        self.temporary_over(now, key, out);
        self.tell_state(key, out);
    }

    /// The mail about a finished job: its output when that has no file of its own,
    /// and its report where -N or -Ne asked for it.
    fn mail(&self, job: &Attempt) -> Option<Box<Mail>> {
        let order = &job.note.order;
        let spec = &order.spec;
        // one that goes back to its queue is told of when it goes back no more, with what it wrote
        // until then
        if plan::goes_back(order, job.end()) && !order.last_requeue {
            return None;
        }
        let told = |(end, info, _)| plan::told_end(order, end, info);
        let failed = job.end().map(told).is_none_or(|end| end != End::Status(0));
        let asked = spec.options & opt::NOTIFY_END != 0
            || spec.options2 & opt2::NOTIFY_ERROR != 0 && failed;
        if job.ready.kept || asked { self.letter(job, job.ready.kept) } else { None }
    }

    /// A mail about a job as it stands; `None` where it cannot be sent.
    fn letter(&self, job: &Attempt, output: bool) -> Option<Box<Mail>> {
        let site = &self.conf.site;
        let to = plan::mail_to(site, &job.note.order);
        if site.mail_program.is_empty() || to.is_empty() {
            return None;
        }
        let text =
            self.report(job, ReportPlace::Mail { to: &to, output }).text(&self.conf.zone).into();
        let (program, limit_kb) = (site.mail_program.as_str().into(), site.mail_limit_kb);
        Some(Box::new(Mail { program, to, text, output, limit_kb }))
    }

    /// The report for the place where it stands.
    fn report<'a>(&'a self, job: &'a Attempt, place: ReportPlace<'a>) -> Report<'a> {
        let o = &job.note.order;
        let begins = job.stage == AttemptStage::Running;
        let (end, exit_info, ended) = job.end().unwrap_or((End::Unknown, 0, 0));
        let Ready { user, cwd, home, .. } = &job.ready;
        let own = (job.max_procs, job.max_threads);
        let used = job.report.others.with_first(&o.hosts, &job.usage, own);
        let file = |file: &ByteStr| {
            let name = plan::expand(&file.0, o.key.job, o.key.idx);
            String::from_utf8_lossy(&name).into_owned()
        };
        Report {
            admin: &self.conf.admin,
            host: &self.conf.site.host,
            cluster: &self.conf.cluster,
            key: o.key,
            name: if o.name.is_empty() { o.spec.command.lossy() } else { o.name.as_str().into() },
            from_host: &o.spec.from_host,
            user: &o.user,
            exec_user: user,
            queue: &o.spec.queue,
            hosts: &o.hosts,
            home,
            cwd,
            submitted: o.submit_time,
            started: job.started,
            ended,
            text: &job.note.shown,
            begins,
            end: plan::told_end(o, end, exit_info),
            exit_info,
            used,
            requested_mb: requested_mb(o),
            run_secs: job.run_secs(ended),
            run_limit: o.limits.run,
            err_file: file(&o.spec.err_file),
            out_file: file(&o.spec.out_file),
            place,
        }
    }
}

/// The pending reason of a setup that failed.
fn stage_reason(at: launch::SetupStage) -> PendReason {
    use launch::SetupStage as S;
    match at {
        S::User => PendReason::NoUser,
        S::JobFile => PendReason::JobFile,
        S::Cwd => PendReason::JobPaths,
        S::Input | S::Output => PendReason::JobOpenFiles,
        S::Plan | S::Limits | S::Finish => PendReason::ExecInit,
        S::Shell => PendReason::JobEnv,
        S::Account => PendReason::NoAccount,
        S::PreExec | S::PreAbort => PendReason::PreExec,
        S::QueuePreExec => PendReason::QueuePreExec,
    }
}

/// `rusage[mem=]` of all slots or hosts, MB.
fn requested_mb(o: &StartJob) -> Option<f64> {
    resreq::requested_mb(if o.eff_res_req.is_empty() { &o.spec.res_req } else { &o.eff_res_req })
}
