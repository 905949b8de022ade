//! Cleaning finished jobs out of memory after CLEAN_PERIOD, and switching lsb.events after
//! MAX_JOB_NUM finished jobs.
//!
//! A switch carries over the records of all jobs in memory, pending and finished. So that its cost
//! is that of the work done since the last one, whatever is in memory, it also waits until the log
//! has about as many records more as would be carried over.

use super::state::{Body, Elem, ElemState, Job};
use super::{Cx, Mbd, RECORDS_PER_TURN};
use crate::model::JobRef;
use crate::model::event::{Event, Record};
use crate::model::time::US;
use crate::proto::machine::Effect;

/// Seconds until a failed switch is tried again.
const SWITCH_RETRY: u64 = 60;
/// Records that a switch may carry over whatever has been written since the last one.
const CARRIED_FREELY: u64 = 4000;

#[derive(Debug, Default)]
pub struct Keep {
    timer: Option<u64>,
    pub(super) switching: bool,
    last_switch: Option<u64>,
    not_before: u64,
    /// Records written since the last switch, or since the state was read.
    written: u64,
    /// About so many were carried over by it, or are in the log that was recovered.
    carried: u64,
}

impl Keep {
    pub fn deadline(&self) -> Option<u64> {
        self.timer
    }

    /// A record goes to the log.
    pub fn wrote(&mut self) {
        self.written += 1;
    }
}

impl Mbd {
    pub(crate) fn housekeep(&mut self, cx: &mut Cx) {
        self.clean_due(cx);
        self.switch_due(cx);
    }

    /// Takes finished jobs out of memory. One that a pending job or a wait still names stays.
    fn clean_due(&mut self, cx: &mut Cx) {
        let now = cx.now.secs();
        let period = self.pol.params().clean_period as i64;
        let mut budget = RECORDS_PER_TURN;
        while let Some(&(ended, id)) = self.st.ended.front() {
            if ended + period > now || budget == 0 {
                break;
            }
            self.st.ended.pop_front();
            budget -= 1;
            let Some(job) = self.st.job(id) else { continue };
            // The ID may have been given again since, or the job have run again: its last end
            // has an entry of its own.
            if job.last_end() > ended || job.submit_time > ended || job.tally.unfinished() > 0 {
                continue;
            }
            // its host may come back with what must not go on
            if self.deps.is_named(id) || self.waits.is_named(id) || self.left_alive(id) {
                self.st.ended.push_back((now, id));
                continue;
            }
            self.emit(cx, Event::JobClean { at: JobRef { job: id, idx: 0 } });
        }
        let next = self.st.ended.front().map(|(t, _)| cx.now.mono_of_wall(t + period));
        self.keep.timer = match (budget, next) {
            (0, _) => Some(cx.now.mono_us + 1000),
            (_, Some(t)) => Some(t.max(cx.now.mono_us + 1000)),
            (_, None) => None,
        };
    }

    fn switch_due(&mut self, cx: &mut Cx) {
        let p = self.pol.params();
        if self.keep.switching || self.st.finished < p.max_job_num.max(1) {
            return;
        }
        if self.keep.written + CARRIED_FREELY < self.keep.carried {
            return;
        }
        if cx.now.mono_us < self.keep.not_before {
            return;
        }
        let min = p.min_switch_period * US;
        if self.keep.last_switch.is_some_and(|t| t + min > cx.now.mono_us) {
            return;
        }
        self.keep.switching = true;
        let last_job = self.st.next_job.saturating_sub(1);
        // The old log ends with LOG_SWITCH; what follows it goes to the new one.
        self.emit(cx, Event::LogSwitch { last_job });
        let head = self.switch_head(cx.now.secs());
        let live: Vec<u32> = self.st.jobs.keys().copied().collect();
        self.note_carried();
        self.spool.spool += 1;
        self.spool.at = 0;
        self.envs.clear();
        let oldest_spool = self.oldest_spool();
        let spool = self.spool.spool;
        cx.out.push(Effect::Switch { live, head, spool, oldest_spool });
    }

    /// Counts anew from here what is written beside what is carried over.
    pub(crate) fn note_carried(&mut self) {
        self.keep.written = 0;
        self.keep.carried = self.st.each_job().map(records_of).sum();
    }

    /// The oldest spool file that a job in memory needs.
    fn oldest_spool(&self) -> u32 {
        let used = self.st.jobs.values().flat_map(|j| [j.env, j.script, j.exact]);
        let used = used.chain(self.st.changed.values().flatten().copied());
        let used = used.filter(|r| r.len > 0).map(|r| r.spool);
        used.min().unwrap_or(self.spool.spool).min(self.spool.spool)
    }

    /// What a new log begins with: numbers and the last word on queues and hosts.
    pub(crate) fn switch_head(&self, time: i64) -> Vec<Record> {
        use crate::model::event::Ctrl;
        let next_job = self.st.next_job;
        let mut head = vec![Record { time, event: Event::Carried { next_job, epoch: self.epoch } }];
        for (queue, c) in &self.st.queue_ctl {
            let mut put = |op| {
                let (uid, user) = c.by.clone();
                let (queue, message) = (queue.clone(), c.comment.clone());
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
        for (host, c) in &self.st.host_ctl {
            let locks = c.closed.then(String::new).into_iter().chain(c.locks.iter().cloned());
            for lock in locks {
                let (uid, user) = c.by.clone();
                let (host, message) = (host.clone(), c.comment.clone());
                let event = Event::HostCtrl { op: Ctrl::Close, host, uid, user, message, lock };
                head.push(Record { time: c.time, event });
            }
        }
        for (group, hosts) in &self.st.group_hosts {
            for host in hosts {
                let (group, host) = (group.clone(), host.clone());
                let (uid, user, message) = (0, String::new(), String::new());
                let event = Event::GroupHost { add: true, group, host, uid, user, message };
                head.push(Record { time, event });
            }
        }
        head
    }

    pub(crate) fn switched(&mut self, cx: &mut Cx, ok: bool) {
        self.keep.switching = false;
        if ok {
            self.keep.last_switch = Some(cx.now.mono_us);
        } else {
            self.keep.not_before = cx.now.after(SWITCH_RETRY);
            self.keep.carried = 0;
            cx.say(log::Level::Error, "lsb.events could not be switched; tried again later");
        }
    }
}

/// About how many records a job has in the log.
fn records_of(job: &Job) -> u64 {
    let of = |e: &Elem| match e.state {
        ElemState::Pend(_) => 0,
        // started, accepted, executed
        ElemState::Run(_) => 3,
        ElemState::End(_) => 4,
    };
    1 + match &job.body {
        Body::Single(e) => of(e),
        Body::Array(a) => a.own.values().map(of).sum(),
    }
}
