//! The connection to the launcher: its list of tasks is compared with the attempts known here.

use super::agent::*;
use super::directory_table::is_directory;
use super::*;

impl Sbatchd {
    pub(super) fn launcher(&mut self, now: Now, msg: LaunchMsg, out: &mut Vec<Effect>) {
        match msg {
            LaunchMsg::Tasks { boot_id, tasks, more } => {
                let Some(list) = &mut self.listing else { return };
                list.extend(tasks);
                if !more {
                    self.boot_id = boot_id;
                    let list = self.listing.take().unwrap_or_default();
                    self.reconcile(now, list, out);
                }
            }
            // of a task that was listed already this is the news, any other is listed yet
            LaunchMsg::Task(info) => match &mut self.listing {
                Some(list) if list.iter().any(|t| t.id == info.id) => list.push(*info),
                Some(_) => {}
                None => self.task(now, *info, out),
            },
            LaunchMsg::Refused { id, why, .. } => self.not_started(now, id, why, out),
            LaunchMsg::DaemonList { .. } => {
                self.members.launcher_answers();
                self.members_due(now, out);
            }
            _ => {}
        }
    }

    /// Brings what is known here and what the launcher knows together.
    pub(super) fn reconcile(&mut self, now: Now, list: Vec<TaskInfo>, out: &mut Vec<Effect>) {
        (self.linked, self.loaded) = (true, true);
        let known: BTreeSet<TaskId> = list.iter().map(|t| t.id).collect();
        let greeted = self.mbd.is_some_and(|(_, told)| told);
        let mut first = Vec::new();
        for info in &list {
            let of_job = info.id.step == TaskStep::Job && !is_directory(info.id.key);
            if of_job && !self.jobs.contains_key(&info.id.key) {
                first.push(info.id.key);
                self.adopt(now, info, out);
            }
        }
        for info in list {
            match info.id.step {
                TaskStep::Task => self.job_task_told(now, &info, false, out),
                _ => self.task(now, info, out),
            }
        }
        for key in self.jobs.keys().copied().collect::<Vec<_>>() {
            self.missed(now, key, &known, out);
        }
        self.tidy_missed(now, &known, out);
        self.directories_missed(now, &known, out);
        self.host_tasks_missed(&known);
        self.validations_missed(now, &known, out);
        self.members.listed(&known);
        self.members_due(now, out);
        self.signal_again(now, out);
        if let Some(on) = self.master {
            ask(out, LaunchMsg::Run { daemon: Daemon::Mbatchd, on });
        }
        self.inventory(now, out);
        self.tell_all_gone(out);
        for key in first.into_iter().filter(|_| greeted) {
            self.tell_state(key, out);
        }
        for (key, number, act) in std::mem::take(&mut self.deferred) {
            self.act(now, key, number, act, out);
        }
    }

    /// Learns an attempt from its note.
    pub(super) fn adopt(&mut self, now: Now, info: &TaskInfo, out: &mut Vec<Effect>) {
        let key = info.id.key;
        let note = serde_json::from_slice::<Note>(info.note.as_bytes())
            .ok()
            .filter(|n| n.order.key == key);
        let note = note.unwrap_or_else(|| {
            say(out, log::Level::Error, format!("{key}: its note cannot be read"));
            let order = StartJob { key, uid: info.uid, ..StartJob::default() };
            Note { order, ..Note::default() }
        });
        let mut job = Attempt::noted(note, now);
        job.follow_clock(now);
        (job.stage, job.accepted) = (AttemptStage::Launching, info.started);
        self.jobs.insert(key, job);
    }

    /// Does again what a launcher that was replaced has not heard of.
    pub(super) fn missed(
        &mut self,
        now: Now,
        key: JobKey,
        known: &BTreeSet<TaskId>,
        out: &mut Vec<Effect>,
    ) {
        let Some(job) = self.jobs.get(&key).filter(|j| j.sim_end.is_none()) else { return };
        let has = |step| known.contains(&TaskId { key, step });
        if job.note.mark.control.is_some() && !has(TaskStep::Control) {
            self.control_over(now, key, false, out);
        }
        let Some(job) = self.jobs.get(&key) else { return };
        match job.stage {
            AttemptStage::Launching if !has(TaskStep::Job) => self.launch_job(key, out),
            AttemptStage::Running if !has(TaskStep::Job) => self.over(now, key, End::Unknown, out),
            AttemptStage::Finishing if !has(TaskStep::Finish) => self.finish(now, key, out),
            AttemptStage::Finishing if !has(TaskStep::Report) => self.report_missed(now, key, out),
            AttemptStage::Over if !has(TaskStep::Finish) => {
                self.posted(now, key, End::Unknown, out);
            }
            AttemptStage::Launching | AttemptStage::Running => self.keep_note(key, out),
            _ => {}
        }
    }

    pub(super) fn task(&mut self, now: Now, info: TaskInfo, out: &mut Vec<Effect>) {
        let key = info.id.key;
        if info.id.step == TaskStep::Task {
            return self.job_task_told(now, &info, true, out);
        }
        if self.validation_told(now, &info, out)
            || self.tidied(now, &info, out)
            || self.directory_told(now, &info, out)
            || self.host_task_told(now, &info, out)
        {
            return;
        }
        let Some(job) = self.jobs.get_mut(&key) else { return };
        match info.id.step {
            TaskStep::Job => {}
            TaskStep::Begin | TaskStep::Task | TaskStep::Warn => return,
            TaskStep::HostBefore | TaskStep::HostAfter => return,
            TaskStep::Control => return self.control_told(now, &info, out),
            TaskStep::Report => return self.report_told(now, &info, out),
            TaskStep::Finish => {
                // what runs after the job goes on when all else is done, but not beside the same
                // job begun anew
                let anew = job.goes_back();
                let last = anew || job.includes_post();
                let done = info.ended.is_some() || info.setup.is_some() && !last;
                let finishing = done && job.stage == AttemptStage::Finishing;
                job.told_after(now, &info);
                if let Some(ended) = &info.ended {
                    job.post_ran(info.started, ended.time, &ended.usage);
                } else if info.setup.is_some() {
                    job.post_runs(now, info.started);
                }
                if let Some(ended) = &info.ended {
                    self.posted(now, key, ended.end, out);
                }
                let waits = self.jobs.get(&key).is_some_and(|job| job.hosts.is_some());
                if finishing && !waits {
                    self.rest_over(now, key, out);
                }
                if info.setup.is_some() || info.ended.is_some() {
                    self.output_ready(now, key, out);
                }
                return;
            }
        }
        (job.pid, job.started) = (info.pid, info.started);
        (job.ticks, job.group) = (info.ticks, info.group);
        if job.stage == AttemptStage::Launching
            && let Some(Setup::Ready(ready)) = &info.setup
        {
            job.ready = (**ready).clone();
            self.running(now, key, info.ended.is_none(), out);
        }
        if let Some(ended) = info.ended {
            self.ended(now, key, info.setup, ended, out);
        }
    }

    /// The job runs or ran: its end reports everything that a start report would contain.
    pub(super) fn running(&mut self, now: Now, key: JobKey, still: bool, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        (job.stage, job.plan) = (AttemptStage::Running, None);
        job.arm(now);
        job.arm_checkpoint(now);
        let suspend = std::mem::take(&mut job.suspend_asked) && still;
        let why = job.suspend_why;
        // one that is over already is told of by its end, unless that is long in coming
        let long = job.note.mark.include_post && !plan::post(&job.note.order).is_empty();
        if still || long {
            self.tell_state(key, out);
        }
        self.mail_begin(key, out);
        if suspend {
            self.suspend(now, key, why, out);
            self.keep_note(key, out);
        }
    }

    pub(super) fn not_started(&mut self, now: Now, id: TaskId, why: String, out: &mut Vec<Effect>) {
        if self.validation_refused(now, id.key, &why, out) {
            return;
        }
        if is_directory(id.key) {
            return self.directory_removed(now, id.key, Some(why), out);
        }
        if id.key.job == 0 {
            return self.tidy_over(now, id.key.idx, false, out);
        }
        if matches!(id.step, TaskStep::HostBefore | TaskStep::HostAfter) {
            return self.host_task_refused(id, why, out);
        }
        let Some(job) = self.jobs.get_mut(&id.key) else { return };
        match (id.step, job.stage) {
            (TaskStep::Control, _) => self.control_over(now, id.key, false, out),
            (TaskStep::Job, AttemptStage::Launching) => {
                job.ready.note = why;
                self.failed(now, id.key, PendReason::ExecInit, out);
            }
            (TaskStep::Report, AttemptStage::Finishing) => {
                job.after = why;
                self.report_over(now, id.key, out);
            }
            (TaskStep::Finish, AttemptStage::Finishing) => {
                self.posted(now, id.key, End::Unknown, out);
                self.finished(now, id.key, out);
            }
            _ => {}
        }
    }
}
