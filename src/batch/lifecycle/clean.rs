//! Cleaning finished jobs out of memory after CLEAN_PERIOD, and switching lsb.events after
//! MAX_JOB_NUM finished jobs.
//!
//! A switch carries over the records of all jobs in memory, pending and finished. So that its cost
//! is that of the work done since the last one, whatever is in memory, it also waits until the log
//! has about as many records more as would be carried over.

use crate::batch::soft_state::works::{Count, UNIT};
use crate::batch::state::ended_jobs::{KeepEnded, Leaving};
use crate::batch::state::{Elem, ElemState, Job};
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::{Event, Record};
use crate::model::job_group::lineage;
use crate::model::reservation::Reservation;
use crate::proto::machine::Effect;
use std::collections::BTreeMap;

/// Hosts in one record of last starts.
const HOSTS_OF_RECORD: usize = 1_000;
/// Seconds before a finished job that is still named is looked at again, at least.
const NAMED_AGAIN: i64 = 1;
/// Bytes in the spool file that is written of which no job has any use: with so many the log is
/// switched, however few jobs have finished.
const SPOOL_GONE: u64 = 256 << 20;

/// Finished jobs of a job group that stay in memory because a condition counts them: any user may
/// name a group, and it may have jobs for ever.
const COUNTED_MAX: u64 = 100_000;

impl Mbatchd {
    pub(crate) fn housekeep(&mut self, context: &mut StepContext) {
        self.clean_due(context);
        self.clean_groups(context);
        self.switch_due(context);
    }

    /// Is there a finished job to be taken out of memory?
    fn clean_due(&mut self, context: &mut StepContext) {
        let keep = self.keep_ended();
        let Some(leaving) = self.state.ended().next(keep) else {
            return self.retention.clean_at(None);
        };
        let due = leaving.due(keep);
        let now = due <= context.now.secs();
        if now {
            self.works.set_cleaning(true);
        }
        let later = || context.now.mono_of_wall(due).max(context.now.mono_us + 1000);
        self.retention.clean_at((!now).then(later));
    }

    /// CLEAN_PERIOD and CLEAN_PERIOD_DONE.
    fn keep_ended(&self) -> KeepEnded {
        let p = self.site.params();
        let done = p.clean_period_done().unwrap_or(p.clean_period) as i64;
        KeepEnded { done, other: p.clean_period as i64 }
    }

    /// Does a pending job or a wait name the job, or its job group? As long as that is not known of
    /// all, each may.
    pub(crate) fn is_named(&self, id: u32) -> bool {
        let few = |path: &str| self.group_counts.tally(path).finished <= COUNTED_MAX;
        let counted = |path: &str| lineage(path).any(|path| self.asks_of_group(path) && few(path));
        self.works.is_refilling()
            || self.deps.is_named(id)
            || self.waits.is_named(id)
            || self.group_counts.group_of(id).is_some_and(counted)
    }

    /// Takes some finished jobs out of memory. A job that a pending job or a wait still names
    /// stays.
    pub(crate) fn clean_unit(&mut self, context: &mut StepContext) {
        let now = context.now.secs();
        let keep = self.keep_ended();
        for _ in 0..UNIT {
            let Some(leaving) = self.state.take_ended(now, keep) else {
                self.works.set_cleaning(false);
                return self.clean_due(context);
            };
            let id = leaving.job;
            let Some(job) = self.state.job(id) else { continue };
            // The ID may have been given again since, or the job have run again: its last end
            // has an entry of its own. The time of submission tells nothing: the clock may have
            // been set back since.
            if job.tally().unfinished() > 0 || self.state.ended().last_end(job) > leaving.ended {
                continue;
            }
            // its host may come back with what must not go on
            if self.is_named(id) || self.left_alive(id) {
                let again = (NAMED_AGAIN - leaving.period(keep)).max(0);
                let ended = now.saturating_add(again);
                self.state.put_back_ended(Leaving { ended, ..leaving });
                continue;
            }
            self.emit(context, Event::JobClean { at: JobRef { job: id, idx: 0 } });
        }
    }

    fn may_switch(&self, context: &StepContext) -> bool {
        let p = self.site.params();
        let many = self.state.finished() >= p.max_job_num.max(1) && self.retention.pays();
        (many || self.state.space().gone() >= SPOOL_GONE)
            && self.retention.may_switch(context.now, p.log.min_switch_period)
    }

    /// Begins to count what a switch would carry over, where one is due.
    fn switch_due(&mut self, context: &mut StepContext) {
        if !self.works.is_counting() && self.may_switch(context) {
            self.works.put_count(Count::begin(self.spool.file()));
        }
    }

    /// All was counted: the switch.
    pub(crate) fn switch_counted(&mut self, context: &mut StepContext, count: &Count) {
        let last_job = self.state.next_job().saturating_sub(1);
        // The old log ends with LOG_SWITCH; what follows it goes to the new one.
        self.emit(context, Event::LogSwitch { last_job });
        let head = self.switch_head(context.now.secs());
        let live: Vec<u32> = self.state.each_job().map(|job| job.id).collect();
        self.retention.switch_begins(count.carried());
        let spool = self.spool.switch();
        let oldest_spool = count.oldest().min(spool);
        context.out.push(Effect::Switch { live, head, spool, oldest_spool });
    }

    /// Counts anew from here what is written beside what is carried over.
    pub(crate) fn note_carried(&mut self) {
        self.retention.carried_over(self.state.each_job().map(records_of).sum());
    }

    /// The oldest spool file that a job needs. Later additions of the job are in newer files.
    pub(crate) fn oldest_of(&self, job: &Job) -> Option<u32> {
        let changed = self.state.modifications().places(job.id).iter().copied();
        let used = [job.env, job.script, job.exact].into_iter().chain(changed);
        used.filter(|r| r.len > 0).map(|r| r.spool).min()
    }

    /// The records at the head of a new log: numbers, the start of mbatchd, and the last word on
    /// queues and hosts.
    pub(crate) fn switch_head(&self, time: i64) -> Vec<Record> {
        use crate::model::event::Ctrl;
        // the new log has nothing of a job that damage took, whose ID is not free all the same
        let free = self.state.free_id(self.max_job_id());
        let next_job = free.unwrap_or(self.state.next_job());
        // no job that is carried over counts as one submitted since, also where the clock was set
        // back after its submission
        let submitted = self.state.each_job().map(|job| job.submit_time).max();
        let carried = submitted.map_or(time, |last| last.max(time));
        let event = Event::Carried { next_job, epoch: self.epoch };
        let mut head = vec![Record { time: carried, event }];
        if self.state.started_at() > 0 {
            head.push(Record { time: self.state.started_at(), event: self.start_event() });
        }
        for (id, c) in self.state.queue_controls() {
            let queue = self.state.names().queue(id);
            let mut put = |op| {
                let (uid, user) = c.by.clone();
                let (queue, message) = (queue.to_string(), c.comment.clone());
                let event = Event::QueueCtrl { op, queue, uid, user, message };
                head.push(Record { time: c.time, event });
            };
            if c.closed {
                put(Ctrl::Close);
            }
            if c.inactive {
                put(Ctrl::Inactivate);
            }
        }
        for (id, c) in self.state.host_controls() {
            let host = self.state.names().host(id);
            let locks = c.closed.then(String::new).into_iter().chain(c.locks.iter().cloned());
            for lock in locks {
                let (uid, user) = c.by.clone();
                let (host, message) = (host.to_string(), c.comment.clone());
                let event = Event::HostCtrl { op: Ctrl::Close, host, uid, user, message, lock };
                head.push(Record { time: c.time, event });
            }
        }
        head.extend(self.fairshare.records(&self.state, &self.site, time));
        head.extend(self.last_starts());
        for (path, group) in self.state.job_groups().each() {
            let record = Box::new(group.clone().record(path, time));
            head.push(Record { time, event: Event::JobGroupAdd(record) });
        }
        for (owner, next) in self.state.reservations().numbers() {
            let owner = owner.to_string();
            head.push(Record { time, event: Event::ReservationNext { owner, next } });
        }
        for r in self.state.reservations().each() {
            let event = Event::Reservation(Box::new(Reservation::clone(r)));
            head.push(Record { time, event });
        }
        for (group, hosts) in self.state.group_hosts() {
            for host in hosts {
                let (group, host) = (group.clone(), host.clone());
                let (uid, user, message) = (0, String::new(), String::new());
                let event = Event::GroupHost { add: true, group, host, uid, user, message };
                head.push(Record { time, event });
            }
        }
        head
    }

    /// When hosts were given jobs last: records for the hosts of each second.
    fn last_starts(&self) -> impl Iterator<Item = Record> {
        let (names, starts) = (self.state.names(), self.state.last_starts());
        let mut by_time: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for host in names.host_ids() {
            if let Some(last) = starts.of(host).filter(|last| starts.is_kept(*last)) {
                by_time.entry(last).or_default().push(names.host(host).to_string());
            }
        }
        by_time.into_iter().flat_map(|(time, hosts)| {
            let parts = hosts.chunks(HOSTS_OF_RECORD).map(<[String]>::to_vec);
            let record = |hosts| Record { time, event: Event::HostStarts { hosts } };
            parts.map(record).collect::<Vec<_>>()
        })
    }

    pub(crate) fn switched(&mut self, context: &mut StepContext, ok: bool) {
        self.retention.switch_ended(context.now, ok);
        if !ok {
            context.say(log::Level::Error, "lsb.events could not be switched; tried again later");
        }
    }
}

/// About how many records a job has in the log.
pub(crate) fn records_of(job: &Job) -> u64 {
    let of = |e: &Elem| match e.state {
        ElemState::Pend(_) => 0,
        // started, accepted, executed
        ElemState::Run(_) => 3,
        ElemState::End(_) => 4,
    };
    1 + match job.elem(0) {
        Some(e) => of(e),
        None => {
            let t = &job.tally();
            // elements that never ran have mostly ended by records that tell of many
            let unstarted = u64::from(t.exit_unstarted);
            let ran = u64::from(t.done + t.exit).saturating_sub(unstarted);
            3 * u64::from(t.started()) + 4 * ran + (2 * unstarted).min(32 + unstarted / 64)
        }
    }
}
