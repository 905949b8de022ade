//! The order to start an attempt, as its first host gets it: read from the job, its queue and the
//! parameters. Run and CPU limits are normalised to the speed of that host.

use crate::batch::Mbatchd;
use crate::batch::sched::run_limit::normalised;
use crate::batch::site::settings::Settings;
use crate::batch::state::names::HostId;
use crate::batch::state::{Job, Run};
use crate::conf::types::Resizable;
use crate::lang::lsfhosts;
use crate::model::event::NamedHosts;
use crate::model::job::{JobSpec, Limits, SpoolRef, opt, opt2};
use crate::model::{JobKey, JobRef};
use crate::proto::sbd::StartJob;
use std::collections::HashSet;
use std::sync::Arc;

impl Mbatchd {
    /// The order of an attempt that runs, or that was the last one.
    pub(crate) fn start_order(&self, key: JobKey) -> Option<Box<StartJob>> {
        let job = self.state.job(key.job)?;
        let elem = job.elem(key.idx)?;
        let run = elem.run().filter(|r| r.key == key)?;
        let spec = job.spec_of(elem.part);
        let requirement = job.effective_requirement(elem)?;
        let settings = self.site.settings(spec, self.site.queue(job.queue_of(elem.part)));
        // Elements may have been given a command in its place.
        let scripted = elem.part == 0 || spec.options2 & opt2::SCRIPT != 0;
        let (end, step) = match &job.name.array {
            Some(a) => (a.list.max(), a.list.ranges.first().map_or(1, |r| r.step.max(1))),
            None => (0, 0),
        };
        Some(Box::new(StartJob {
            key,
            boot: run.boot.clone(),
            uid: job.uid,
            gid: job.gid,
            user: self.state.names().user(job.user).clone(),
            submit_time: job.submit_time,
            start_time: run.start_time,
            spec: settings.submission(spec),
            env: job.env,
            script: if scripted { job.script } else { SpoolRef::default() },
            hosts: self.named_hosts(&run.hosts),
            ranks: match &run.task_order {
                Some(order) => {
                    self.named_hosts(order).iter().map(|(h, n)| (h.to_string(), *n)).collect()
                }
                None => self.ranks(spec),
            },
            cluster: self.site.cluster.clone(),
            nice: settings.nice(),
            limits: self.host_limits(job, run),
            eff_res_req: requirement.clone(),
            index_end: end,
            index_step: step,
            name: job.display_name(key.idx),
            pre_exec: settings.pre_exec_of_queue(),
            post_exec: settings.post_exec_of_queue(),
            host_pre_exec: settings.host_pre_exec(),
            host_post_exec: settings.host_post_exec(),
            starter: settings.starter(),
            account: self.mapped_account(spec, run),
            restart: self.restart_directory(key, spec),
            controls: settings.controls(),
            success: settings.success_codes(),
            rerun: key.attempt > 1 && spec.options & opt::RERUNNABLE != 0,
            include_post: settings.includes_post(),
            post_timeout: settings.post_timeout(),
            cwd_ttl: settings.directory_ttl(),
            pre_timeout: settings.pre_timeout(),
            env_vars: settings.env_vars(),
            resizable: settings.resizable() != Resizable::No,
            affinity: run.affinity.clone(),
            bind_job: settings.bind_job(),
            bound: String::new(),
            last_requeue: self.requeued_enough(key.job_ref(), settings),
        }))
    }

    /// The order of an attempt on the same host and started at the same second as that of the order
    /// `like`. Of jobs with one submission nearly everything is the same, and is not worked out
    /// again.
    pub(crate) fn start_order_like(&self, like: &StartJob, key: JobKey) -> Option<Box<StartJob>> {
        let both = self.first_attempt(like.key).zip(self.first_attempt(key));
        let alike = both.filter(|((first, first_run), (job, run))| {
            let (of, of_first) = ((job.queue_of(0), job.user), (first.queue_of(0), first.user));
            Arc::ptr_eq(&job.spec, &first.spec)
                && (of, run.slice) == (of_first, first_run.slice)
                && (&run.hosts, run.start_time) == (&first_run.hosts, first_run.start_time)
        });
        let Some((_, (job, _))) = alike else { return self.start_order(key) };
        let order = Box::new(StartJob {
            key,
            uid: job.uid,
            gid: job.gid,
            submit_time: job.submit_time,
            env: job.env,
            script: job.script,
            name: job.display_name(0),
            ..like.clone()
        });
        debug_assert_eq!(Some(&order), self.start_order(key).as_ref(), "{key}");
        Some(order)
    }

    /// A job that is no array, and its attempt, if that runs and there was none before.
    fn first_attempt(&self, key: JobKey) -> Option<(&Job, &Run)> {
        let job = self.state.job(key.job).filter(|job| !job.is_array())?;
        let run = job.elem(key.idx)?.run().filter(|run| run.key == key)?;
        let first = key.attempt == 1 && self.state.tries().of(key.job_ref()).is_none();
        first.then_some((job, run))
    }

    /// The account of ~/.lsfhosts for the first host of a start; empty: the user's own. A personal
    /// cluster has one user, and an interactive job belongs to the user at its terminal.
    fn mapped_account(&self, spec: &JobSpec, run: &Run) -> String {
        if spec.further.accounts.is_empty() {
            return String::new();
        }
        let own = self.site.personal() || self.site.params().disable_uacct_map;
        let first = run.hosts.first().map_or("", |h| self.state.names().host(h.0));
        if own || spec.options & opt::INTERACTIVE != 0 || first == spec.from_host {
            return String::new();
        }
        let cluster = &self.site.conf.base.name;
        let is = |name: &str| name == cluster || self.site.canonical(name).unwrap_or(name) == first;
        lsfhosts::account(&spec.further.accounts, is).unwrap_or_default().to_string()
    }

    /// The directory that an attempt restarts from; empty: it begins anew.
    fn restart_directory(&self, key: JobKey, spec: &JobSpec) -> String {
        let at = key.job_ref();
        let checkpointed = self.state.tries().of(at).is_some_and(|tries| tries.checkpointed);
        let own = checkpointed && spec.further.checkpoint.is_some();
        if own { at.to_string() } else { spec.further.restart.to_string() }
    }

    /// The names of hosts; those of the start that the host was given last are kept.
    pub(crate) fn named_hosts(&self, hosts: &[(HostId, u32)]) -> NamedHosts {
        if let [(host, slots)] = hosts
            && let Some(known) = self.links.hosts().get(*host).and_then(|h| h.started_alone(*slots))
        {
            return known.clone();
        }
        hosts.iter().map(|(host, n)| (self.state.names().host(*host).clone(), *n)).collect()
    }

    /// The hosts of -hostfile in the order of its lines, where they come back to one that was
    /// left; elsewhere that is the order of the hosts of the job.
    pub(crate) fn ranks(&self, spec: &JobSpec) -> Vec<(String, u32)> {
        let lines = &spec.further.host_lines;
        if lines.is_empty() {
            return Vec::new();
        }
        let mut all: Vec<(String, u32)> = Vec::new();
        for (host, slots) in lines.iter() {
            let name = self.site.canonical(host).unwrap_or(host);
            match all.last_mut() {
                Some(last) if last.0 == name => last.1 = last.1.saturating_add(*slots),
                _ => all.push((name.to_string(), *slots)),
            }
        }
        let hosts: HashSet<&str> = all.iter().map(|h| h.0.as_str()).collect();
        if hosts.len() == all.len() { Vec::new() } else { all }
    }

    /// The job's limits with run and CPU limit normalised to the speed of its first host.
    pub(crate) fn host_limits(&self, job: &Job, run: &Run) -> Limits {
        let part = job.part_no(run.key.idx);
        let spec = job.spec_of(part);
        let hard_memory = spec.further.hard_memory.0;
        let queue = self.site.queue(job.queue_of(part));
        let limited = spec.limits.rss.is_some();
        let memory_of = limited.then(|| self.site.settings(spec, queue).memory_of()).flatten();
        let mut l = Limits { hard_memory, memory_of, ..spec.limits.clone() };
        if l.run.is_none() && l.cpu.is_none() && run.slice == 0 {
            return l;
        }
        let factor = self.view().limit_factor(queue, &spec.limit_spec, &spec.from_host);
        let norm = |secs: u64| normalised(secs, factor, run.host_factor);
        l.run = self.view().run_limit_on_host(job, run.key.idx, run);
        l.cpu = l.cpu.map(norm);
        l
    }

    /// The element is held if its exit value requeues it this time.
    pub(crate) fn requeued_enough(&self, at: JobRef, settings: Settings<'_>) -> bool {
        let before = self.state.tries().of(at).map_or(0, |t| t.requeues);
        before >= settings.retry_limits().requeues
    }
}
