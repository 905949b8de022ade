//! Submissions: every check, in LSF's words, before anything changes; then one JOB_NEW.

use crate::batch::sched::split_host_word;
use crate::batch::site::Queue;
use crate::batch::site::applications::Application;
use crate::batch::site::limits::keep_to_estimate;
use crate::batch::site::permissions::Caller;
use crate::batch::site::task_rule::TaskRule;
use crate::batch::state::names::UserId;
use crate::batch::state::space::spec_bytes;
use crate::batch::state::started_elements::Slots;
use crate::batch::step::Checked;
use crate::batch::usage::named_jobs::{Finder, too_many};
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::Interactive;
use crate::lang::jobname::{JobName, JobNameError};
use crate::model::ByteStr;
use crate::model::event::{Event, JobNew};
use crate::model::further::{self, CHKPNT, WarnAction};
use crate::model::job::{JobSpec, SpoolRef, opt, opt2};
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::caps::{self, MAX_ENV, MAX_NAME, MAX_SCRIPT, MAX_SLOTS};
use crate::proto::client::{ClientMsg, Submit};
use crate::proto::machine::ConnId;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Mbatchd {
    pub(crate) fn submit(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        s: Submit,
    ) {
        if !s.request.is_empty()
            && let Some(job) = self.state.requested_job(&s.request)
        {
            return self.answer_again(context, conn, who, job);
        }
        let chain = s.chain;
        if chain != 0 && self.broken.get(&conn) == Some(&chain) {
            return context.refuse(conn, Refusal::new(err::CHAIN));
        }
        match self.accept(context, who, s) {
            Ok(job) => self.answer(context, conn, job),
            Err(r) => {
                if chain != 0 {
                    self.broken.insert(conn, chain);
                }
                context.refuse(conn, r);
            }
        }
    }

    /// MAX_JOBID.
    pub(crate) fn max_job_id(&self) -> u32 {
        self.site.params().max_jobid.min(u64::from(i32::MAX as u32)) as u32
    }

    /// A retry gets the first answer, if it is the submitter's own.
    fn answer_again(&mut self, context: &mut StepContext, conn: ConnId, who: &Caller, job: u32) {
        match self.state.job(job) {
            Some(j) if j.uid != who.uid => context.refuse(conn, Refusal::new(err::PERMISSION)),
            Some(_) => self.answer(context, conn, job),
            None => context.refuse(conn, Refusal::about(err::JOB_FINISH, format!("Job <{job}>"))),
        }
    }

    fn answer(&mut self, context: &mut StepContext, conn: ConnId, job: u32) {
        let Some(j) = self.state.job(job) else { return };
        let queue = self.state.names().queue(j.queue).to_string();
        let default_queue = j.spec.options2 & opt2::DEFAULT_QUEUE != 0;
        let class_ignored =
            !j.spec.further.service_class.is_empty() && self.site.service_classes.is_empty();
        let nlb_unchecked = self.is_nlb_unchecked(&j.spec);
        let msg = ClientMsg::Submitted {
            job,
            queue,
            default_queue,
            env_kept: true,
            class_ignored,
            nlb_unchecked,
        };
        context.reply_durable(conn, msg);
    }

    fn accept(&mut self, context: &mut StepContext, who: &Caller, s: Submit) -> Checked<u32> {
        self.log_works()?;
        if who.uid == 0 && !self.site.personal() && !self.root_jobs {
            return Err(Refusal::new(err::ROOT));
        }
        let kept = self.kept_env(who, &s)?;
        let mut spec = s.spec;
        check_host_lines(&spec)?;
        forget_condition(&mut spec);
        spec.from_host = who.host.clone();
        check_texts(&spec, &s.env, &s.script)?;
        let name = self.check_name(&spec)?;
        check_interactive(&spec, &name)?;
        let site = self.site.clone();
        self.choose_application(&mut spec)?;
        let queue = self.choose_queue(&mut spec, who)?;
        let queue = site.find_queue(&queue).ok_or_else(|| Refusal::new(err::BAD_QUEUE))?;
        keep_to_estimate(&mut spec, queue, &site, false)?;
        self.fit(&mut spec, queue)?;
        check_times(&spec, context.now.secs())?;
        self.check_reserved(&spec.further.reservation, who)?;
        self.check_pending(&spec, who, &name)?;
        if let Some(user) = self.state.names().find_user(&who.user) {
            let bytes = s.env.len() + s.script.len();
            self.check_space(user, spec_bytes(&spec) + bytes as u64, 1)?;
        }
        self.check_priority(&spec, who, &queue.conf.name)?;
        self.check_depend(&mut spec, who, &name)?;
        self.default_project(&mut spec);
        self.check_service_class(&mut spec, who, &queue.conf.name)?;
        self.check_nlb(&mut spec)?;
        self.check_group(&mut spec, &who.user)?;
        spec.further.trim();
        let job =
            self.state.free_id(self.max_job_id()).ok_or_else(|| Refusal::new(err::NO_JOBID))?;
        let env = match kept {
            Some(at) => at,
            None => self.spool_env(context, who.uid, s.env),
        };
        let script = match s.script.is_empty() {
            true => SpoolRef::default(),
            false => self.spool(context, s.script),
        };
        let exact = match spec.text_loses() {
            true => self.spool_spec(context, &spec),
            false => SpoolRef::default(),
        };
        self.make_groups(context, (who.uid, &who.user), &spec.further.job_group);
        self.emit(
            context,
            Event::JobNew(Box::new(JobNew {
                job,
                uid: who.uid,
                gid: who.gid,
                user: who.user.clone(),
                submit_time: context.now.secs(),
                spec: Arc::new(spec),
                request: s.request,
                env,
                script,
                exact,
            })),
        );
        self.watch_depend(job);
        self.watch_begin(job);
        self.refresh(job);
        self.end_orphans(context, job);
        Ok(job)
    }

    /// The place in the spool of the environment that a submission names by its hash. Only
    /// environments of the submitter himself are looked up: knowing another user's hash is of no
    /// use.
    fn kept_env(&self, who: &Caller, s: &Submit) -> Checked<Option<SpoolRef>> {
        if s.env_hash.is_empty() {
            return Ok(None);
        }
        let at = self.env_kept(who.uid, &s.env_hash);
        at.map(Some).ok_or_else(|| Refusal::new(err::ENV_GONE))
    }

    /// Refuses the request if its record could not be written.
    pub(crate) fn log_works(&self) -> Checked<()> {
        match &self.log_failed {
            None => Ok(()),
            Some(why) => {
                let text = format!("{} ({why})", crate::model::reason::err_text(err::LOG_FULL));
                Err(Refusal::text(err::LOG_FULL, text))
            }
        }
    }

    pub(crate) fn default_project(&self, spec: &mut JobSpec) {
        if spec.project.is_empty() {
            spec.project = self.site.params().default_project.clone();
        }
    }

    /// The application profile of a submission: the one named, else DEFAULT_APPLICATION.
    pub(crate) fn choose_application(&self, spec: &mut JobSpec) -> Checked<()> {
        let by_default = self.site.params().default_application.as_deref();
        let known = |name: &str| self.site.applications.get(name).is_some();
        match &*spec.further.application {
            "" => {
                if let Some(name) = by_default.filter(|name| known(name)) {
                    spec.further.application = name.into();
                }
                Ok(())
            }
            name if known(name) => Ok(()),
            name => Err(Refusal::about(err::NO_APP, name)),
        }
    }

    /// Checks a submission against its application profile and its queue, and fills in their
    /// defaults.
    pub(crate) fn fit(&self, spec: &mut JobSpec, queue: &Queue) -> Checked<()> {
        crate::batch::site::limits::unfill(spec);
        self.host_file(spec, queue)?;
        let asked = crate::batch::site::limits::LimitsAsked::by(spec);
        let application = self.site.applications.get(&spec.further.application);
        self.tasks_of_requirement(spec);
        self.check_slots(spec, application, queue)?;
        self.check_hosts(spec, queue)?;
        self.check_requirement(spec, queue)?;
        crate::batch::site::limits::check(spec, application, queue, &self.site)?;
        if spec.options & opt::EXCLUSIVE != 0 && !queue.conf.exclusive {
            return Err(Refusal::about(err::EXCLUSIVE, &queue.conf.name));
        }
        let interactive = spec.options & opt::INTERACTIVE != 0;
        if spec.options2 & opt2::NEVER_RERUN != 0 || interactive {
            spec.options &= !opt::RERUNNABLE;
        } else if self.site.settings(spec, Some(queue)).rerunnable() {
            spec.options |= opt::RERUNNABLE;
        }
        let checkpoint = self.site.settings(spec, Some(queue)).checkpoint();
        if spec.further.checkpoint.is_none() && checkpoint.is_some() && !interactive {
            spec.further.checkpoint = checkpoint;
        }
        if spec.further.checkpoint.is_none()
            && matches!(&spec.further.warn_action, Some(WarnAction::Command(c)) if **c == *CHKPNT)
        {
            return Err(Refusal::about(err::NOT_CHKPNT, CHKPNT));
        }
        if let Some(estimate) = self.site.settings(spec, Some(queue)).estimate()
            && spec.further.estimate.is_empty()
        {
            spec.further.estimate = estimate.into();
        }
        asked.note_filled(spec, self.site.sized);
        Ok(())
    }

    /// The exact submission goes to the spool.
    pub(crate) fn spool_spec(&mut self, context: &mut StepContext, spec: &JobSpec) -> SpoolRef {
        match serde_json::to_vec(spec) {
            Ok(json) => self.spool(context, ByteStr(json)),
            Err(_) => SpoolRef::default(),
        }
    }

    pub(crate) fn check_name(&self, spec: &JobSpec) -> Checked<JobName> {
        if spec.name.is_empty() {
            return Ok(JobName { name: String::new(), array: None });
        }
        let refuse = |e: JobNameError| match e {
            JobNameError::BadName => Refusal::about(err::BAD_JOB, &spec.name),
            JobNameError::ArrayIndex => Refusal::about(err::ARRAY_INDEX, &spec.name),
            JobNameError::ArrayTooLarge => Refusal::new(err::ARRAY_LARGE),
        };
        let name = JobName::parse(&spec.name).map_err(refuse)?;
        if let Some(a) = &name.array {
            a.check_size(self.site.params().max_job_array_size).map_err(refuse)?;
        }
        Ok(name)
    }

    /// The first of the queues named (or the default ones) that takes the job.
    pub(crate) fn choose_queue(&self, spec: &mut JobSpec, who: &Caller) -> Checked<String> {
        let defaulted = spec.queue.trim().is_empty();
        let names: Vec<String> = match defaulted {
            true => self.site.default_queues(),
            false => spec.queue.split_whitespace().map(str::to_string).collect(),
        };
        let mut first = None;
        for name in &names {
            let taken = self.queue_takes(name, who, spec).and_then(|()| self.not_pipe_only(name));
            match taken {
                Ok(()) => {
                    spec.queue = name.clone();
                    spec.options |= opt::QUEUE;
                    if defaulted {
                        spec.options2 |= opt2::DEFAULT_QUEUE;
                    }
                    return Ok(name.clone());
                }
                Err(r) => first = first.or(Some(r)),
            }
        }
        Err(first.unwrap_or_else(|| Refusal::new(err::QUEUE_NAME)))
    }

    /// A queue may take jobs from pipe queues alone.
    pub(crate) fn not_pipe_only(&self, name: &str) -> Checked<()> {
        match self.site.find_queue(name).is_some_and(|q| q.conf.nqs.pipe_only) {
            true => {
                let words = format!("queue <{name}> takes requests from pipe queues only");
                Err(Refusal::text(err::QUEUE_USE, words))
            }
            false => Ok(()),
        }
    }

    pub(crate) fn queue_takes(&self, name: &str, who: &Caller, spec: &JobSpec) -> Checked<()> {
        let queue =
            self.site.find_queue(name).ok_or_else(|| Refusal::about(err::BAD_QUEUE, name))?;
        if self.state.queue_control_of(name).is_some_and(|c| c.closed) {
            return Err(Refusal::about(err::QUEUE_CLOSED, name));
        }
        if !self.site.may_use(&queue.conf, &who.user, Some(who.gid)) {
            return Err(Refusal::about(err::QUEUE_USE, name));
        }
        self.shares_take(queue, &who.user, spec)?;
        match (queue.conf.interactive, spec.options & opt::INTERACTIVE != 0) {
            (Interactive::Only, false) => Err(Refusal::new(err::ONLY_INTERACTIVE)),
            (Interactive::No, true) => Err(Refusal::new(err::NO_INTERACTIVE)),
            _ => Ok(()),
        }
    }

    /// Has the user a share in a queue with FAIRSHARE, and is in the group of -G? Administrators
    /// need a share, too.
    fn shares_take(&self, queue: &Queue, user: &str, spec: &JobSpec) -> Checked<()> {
        // of host partitions the hosts decide
        let tree = queue.tree.filter(|tree| !self.site.shares.get(*tree).is_partition());
        let Some(tree) = tree else { return Ok(()) };
        let known = self.state.names().find_user(user);
        let has_jobs = known.is_some_and(|user| self.fairshare.has_share(tree, user));
        if !has_jobs && self.site.share_paths(tree, user).is_empty() {
            return Err(Refusal::about(err::QUEUE_USE, &queue.conf.name));
        }
        let group = spec.user_group.as_str();
        if group.is_empty() || self.site.in_group(user, group) {
            return Ok(());
        }
        match self.site.conf.batch.users.groups.iter().any(|known| known.name == group) {
            true => Err(Refusal::about(err::NOT_IN_USER_GROUP, group)),
            false => Err(Refusal::about(err::BAD_USER_GROUP, group)),
        }
    }

    fn check_slots(
        &self,
        spec: &mut JobSpec,
        application: Option<&Application>,
        queue: &Queue,
    ) -> Checked<()> {
        let of_application = TaskRule::of_application(application);
        let of_queue = TaskRule::of_queue(queue);
        let asked = spec.min_slots > 0;
        let default = of_application.default().or(of_queue.default());
        if let Some(tasks) = default.filter(|_| !asked) {
            (spec.min_slots, spec.max_slots) = (tasks, tasks);
        }
        let errors = match (asked, of_application) {
            (false, TaskRule::Limit(_)) => [err::PROC_APP_QUEUE; 2],
            _ => [err::PROC_NUM, err::PROC_LESS],
        };
        of_queue.check(spec, ("queue", &queue.conf.name), errors)?;
        let profile = application.map_or("", |a| &a.conf.name);
        of_application.check(spec, ("application profile", profile), [err::PROC_APP; 2])?;
        spec.min_slots = spec.min_slots.max(1);
        spec.max_slots = spec.max_slots.max(spec.min_slots);
        if spec.max_slots > MAX_SLOTS {
            return Err(Refusal::new(err::PROC_NUM));
        }
        let over = |limit: Option<u32>| limit.is_some_and(|l| spec.min_slots > l);
        if over(queue.conf.ujob_limit) {
            return Err(Refusal::new(err::UJOB_LIMIT));
        }
        if over(queue.conf.qjob_limit) {
            return Err(Refusal::new(err::PROC_NUM));
        }
        Ok(())
    }

    /// -hostfile: the job asks for exactly the hosts and slots that it names.
    fn host_file(&self, spec: &mut JobSpec, queue: &Queue) -> Checked<()> {
        let lines = spec.further.host_lines.clone();
        if lines.is_empty() {
            return Ok(());
        }
        let (mut hosts, mut total): (Vec<String>, u32) = (Vec::new(), 0);
        let mut known_hosts = BTreeSet::new();
        for (host, slots) in lines.iter() {
            let known = self.site.canonical(host).and_then(|h| self.site.host_id(h));
            let id = known.ok_or_else(|| Refusal::about(err::BAD_HOST, &**host))?;
            let name = &self.site.hosts[id].def.name;
            if queue.hosts.as_ref().is_some_and(|set| !set.contains_key(&id)) {
                return Err(Refusal::about(err::QUEUE_HOST, name));
            }
            total = total.saturating_add(*slots);
            if known_hosts.insert(id) {
                hosts.push(name.clone());
            }
        }
        (spec.min_slots, spec.max_slots, spec.hosts) = (total, total, hosts);
        spec.options |= opt::HOST;
        Ok(())
    }

    fn check_hosts(&self, spec: &JobSpec, queue: &Queue) -> Checked<()> {
        let mut usable = spec.hosts.is_empty();
        let mut looked_at = BTreeSet::new();
        for word in &spec.hosts {
            let (name, _) = split_host_word(word);
            // a group that is named again has as many hosts again
            if !looked_at.insert(name) {
                continue;
            }
            if name == "others" || name == "all" {
                usable = true;
                continue;
            }
            let hosts = self.site.expand_host(name);
            if hosts.is_empty() {
                return Err(Refusal::about(err::BAD_HOST, name));
            }
            usable |= match &queue.hosts {
                None => true,
                Some(set) => {
                    let mut servers = hosts.iter().filter_map(|h| self.site.host_id(h));
                    servers.any(|h| set.contains_key(&h))
                }
            };
        }
        if usable { Ok(()) } else { Err(Refusal::new(err::QUEUE_HOST)) }
    }

    /// MAX_PEND_JOBS and MAX_PEND_SLOTS of the cluster, of the user and of groups of users. A
    /// submission that exceeds a limit by itself is refused for good; else bsub may try again.
    fn check_pending(&self, spec: &JobSpec, who: &Caller, name: &JobName) -> Checked<()> {
        let p = self.site.params();
        let more = name.array.as_ref().map_or(1, |a| a.len());
        let slots = more.saturating_mul(u64::from(spec.min_slots.max(1)));
        let fits = |now: &Slots, jobs: Option<u64>, most: Option<u64>| {
            jobs.is_none_or(|max| now.pend_jobs.saturating_add(more) <= max)
                && most.is_none_or(|max| now.pend.saturating_add(slots) <= max)
        };
        let user = self.site.user_row(&who.user);
        let groups: Vec<_> = self
            .site
            .pending_groups(&who.user, &spec.user_group)
            .map(|g| (g, self.slots_of_group(&g.name)))
            .collect();
        let none = Slots::default();
        let fit = |all: &Slots, own: &Slots, empty: bool| {
            fits(all, p.max_pend_jobs, p.max_pend_slots)
                && user.is_none_or(|u| fits(own, u.max_pend_jobs, u.max_pend_slots))
                && groups.iter().all(|(g, now)| {
                    fits(if empty { &none } else { now }, g.max_pend_jobs, g.max_pend_slots)
                })
        };
        let all = match p.max_pend_jobs.or(p.max_pend_slots) {
            Some(_) => Slots::sum(self.state.counts().queues().map(|of| of.1)),
            None => Slots::default(),
        };
        let own = self.state.names().find_user(&who.user);
        let own = own.map_or(none, |user| self.state.counts().user(user));
        if fit(&all, &own, false) {
            return Ok(());
        }
        let again = if fit(&none, &none, true) { p.sub_try_interval } else { 0 };
        Err(Refusal { again, ..Refusal::new(err::PJOB_LIMIT) })
    }

    /// Is there room for so many bytes and jobs more of a user (MAX_USER_SPACE, MAX_USER_JOBS)?
    pub(crate) fn check_space(&self, user: UserId, bytes: u64, jobs: u64) -> Checked<()> {
        let (kept, p) = (self.state.space().of(user), self.site.params());
        let name = self.state.names().user(user);
        let most = p.max_user_jobs.unwrap_or(p.max_jobid / 2);
        if kept.jobs + jobs > most {
            let text = format!(
                "user <{name}> has {} jobs in the system, finished ones that are not yet cleaned \
                 included; the limit is {most} (MAX_USER_JOBS)",
                kept.jobs
            );
            return Err(Refusal::text(err::PJOB_LIMIT, text));
        }
        let most = p.max_user_space_mb.saturating_mul(1 << 20);
        if kept.bytes.saturating_add(kept.gone).saturating_add(bytes) > most {
            let text = format!(
                "the jobs of user <{name}> keep {} MB of scripts, environments and submissions, \
                 the limit is {} MB (MAX_USER_SPACE)",
                (kept.bytes + kept.gone) >> 20,
                p.max_user_space_mb
            );
            return Err(Refusal::text(err::PJOB_LIMIT, text));
        }
        Ok(())
    }

    /// The slots of all members of a user group together.
    fn slots_of_group(&self, group: &str) -> Slots {
        let of_group = self.state.counts().users().filter(|(user, slots)| {
            slots.pend > 0 && self.site.in_group(self.state.names().user(*user), group)
        });
        Slots::sum(of_group.map(|(_, slots)| slots))
    }

    /// Checks the priority of -sp: administrators of the cluster and of the queue may exceed
    /// MAX_USER_PRIORITY.
    pub(crate) fn check_priority(&self, spec: &JobSpec, who: &Caller, queue: &str) -> Checked<()> {
        let roles = self.site.roles(who, "", queue);
        let may_exceed = roles.admin || roles.root || roles.queue_admin;
        match (spec.priority, self.site.params().max_user_priority) {
            (0, _) => Ok(()),
            (_, None) => Err(Refusal::new(err::PRIORITY_UNDEF)),
            (p, Some(max)) if p > max && !may_exceed => Err(Refusal::new(err::BAD_PRIORITY)),
            _ => Ok(()),
        }
    }

    /// Parses the dependency and binds its names to jobs, once, now.
    pub(crate) fn check_depend(
        &self,
        spec: &mut JobSpec,
        who: &Caller,
        name: &JobName,
    ) -> Checked<()> {
        forget_condition(spec);
        if spec.depend.trim().is_empty() {
            return Ok(());
        }
        let last = self.site.params().job_dep_last_sub;
        let finder = Finder { state: &self.state, last, user: &who.user, recorded: true };
        let resolved = finder.bind(&spec.depend, name.array.as_deref())?;
        if let Some(user) = self.state.names().find_user(&who.user)
            && self.state.job_names().too_many(user, &resolved)
        {
            return Err(too_many(&spec.depend));
        }
        spec.options |= opt::DEPEND_COND;
        spec.further.resolved_condition = resolved.to_string().into();
        Ok(())
    }
}

/// An interactive job is one job, with one bsub that waits for it.
pub(crate) fn check_interactive(spec: &JobSpec, name: &JobName) -> Checked<()> {
    if spec.options & opt::INTERACTIVE == 0 {
        return Ok(());
    }
    if name.array.is_some() {
        return Err(Refusal::text(err::BAD_ARG, "Interactive job cannot be a job array"));
    }
    if spec.options & opt::RERUNNABLE != 0 {
        return Err(Refusal::new(err::INTERACTIVE_RERUN));
    }
    Ok(())
}

/// Names without control characters, texts and blobs within their limits.
pub(crate) fn check_texts(spec: &JobSpec, env: &ByteStr, script: &ByteStr) -> Checked<()> {
    let plain = |what: &str, s: &str| {
        if s.len() > MAX_NAME || s.chars().any(char::is_control) {
            return Err(Refusal::about(err::BAD_ARG, format!("{what} <{}>", s.escape_debug())));
        }
        Ok(())
    };
    if spec.name.chars().any(char::is_control) || spec.name.len() > MAX_NAME {
        return Err(Refusal::about(err::BAD_JOB, spec.name.escape_debug().to_string()));
    }
    plain("project", &spec.project)?;
    plain("user group", &spec.user_group)?;
    plain("queue", &spec.queue)?;
    plain("mail user", &spec.mail_user)?;
    plain("host specification", &spec.limit_spec)?;
    caps::check_spec(spec)?;
    for h in &spec.hosts {
        plain("host", h)?;
    }
    let long = |what: &str, len: usize, max: usize| match len > max {
        true => Err(Refusal::text(
            err::BAD_ARG,
            format!("{what} is {len} bytes long; the limit is {max}"),
        )),
        false => Ok(()),
    };
    long("the environment", env.len(), MAX_ENV)?;
    long("the job script", script.len(), MAX_SCRIPT)?;
    if spec.command.is_empty() && script.is_empty() {
        return Err(Refusal::new(err::BAD_CMD));
    }
    Ok(())
}

/// A condition is resolved by mbatchd alone, each time that it is given.
fn forget_condition(spec: &mut JobSpec) {
    if !spec.further.resolved_condition.is_empty() {
        spec.further.resolved_condition = "".into();
    }
}

/// The lines of -hostfile can be read.
pub(crate) fn check_host_lines(spec: &JobSpec) -> Checked<()> {
    match spec.further.unreadable(further::HOST_LINES) {
        Some(text) => Err(Refusal::about(err::BAD_HOST, text)),
        None => Ok(()),
    }
}

pub(crate) fn check_times(spec: &JobSpec, now: i64) -> Checked<()> {
    if spec.term_time != 0 && spec.term_time <= now {
        return Err(Refusal::new(err::BAD_TIME));
    }
    if spec.term_time != 0 && spec.begin_time > spec.term_time {
        return Err(Refusal::new(err::START_TIME));
    }
    Ok(())
}
