//! The common parts of the tests of random clusters: the jobs as bjobs lists them, and the
//! happenings that are no submissions.

use super::{ADMINISTRATOR, Cluster};
use crate::model::JobRef;
use crate::model::affinity::JobUnits;
use crate::model::reason::PendReason;
use crate::proto::client::{Col, Verb};
use proptest::prelude::*;

/// A job as bjobs shows it.
#[derive(Clone, Debug)]
pub struct Listed {
    pub at: JobRef,
    pub state: String,
    pub user: String,
    pub queue: String,
    pub project: String,
    /// Execution hosts with their slots.
    pub hosts: Vec<(String, u32)>,
    /// Seconds since the epoch; 0 not started.
    pub start: i64,
    /// Numbers of the reasons for which it waits.
    pub reasons: Vec<u64>,
    /// The start that SLOT_RESERVE promises, seconds since the epoch.
    pub promised: Option<i64>,
    /// Hosts with the slots that SLOT_RESERVE holds there.
    pub held: Vec<(String, u64)>,
    pub units: JobUnits,
    /// The slots that it asks for at least.
    pub min_slots: u64,
    /// The number of the reason why the system has suspended it; 0 none.
    pub suspended_for: u64,
    pub run_secs: u64,
    /// The path of the share account that it is charged to; empty none.
    pub charged: String,
}

const COLUMNS: [Col; 15] = [
    Col::Job,
    Col::Idx,
    Col::Stat,
    Col::User,
    Col::Queue,
    Col::Project,
    Col::ExecHosts,
    Col::StartTime,
    Col::PendReasons,
    Col::Reservation,
    Col::ProcessorUnits,
    Col::MinSlots,
    Col::SuspReason,
    Col::RunTime,
    Col::Charged,
];

/// The states of a started job, and those of a job that has not ended.
pub const STARTED: [&str; 3] = ["RUN", "SSUSP", "USUSP"];
pub const UNENDED: [&str; 5] = ["PEND", "PSUSP", "RUN", "SSUSP", "USUSP"];

impl Listed {
    fn of(row: &[serde_json::Value]) -> Listed {
        let text = |n: usize| row[n].as_str().unwrap_or_default().to_owned();
        let reasons = row[8].as_array().into_iter().flatten();
        let kept = row[9].as_array();
        let held = kept.and_then(|kept| serde_json::from_value(kept[2].clone()).ok());
        Listed {
            at: at(row),
            state: text(2),
            user: text(3),
            queue: text(4),
            project: text(5),
            hosts: serde_json::from_value(row[6].clone()).unwrap(),
            start: row[7].as_i64().unwrap_or(0),
            reasons: reasons.filter_map(|reason| reason[0].as_u64()).collect(),
            promised: kept.and_then(|kept| kept[1].as_i64()).filter(|start| *start > 0),
            held: held.unwrap_or_default(),
            units: JobUnits::parse(&text(10)).unwrap(),
            min_slots: row[11].as_u64().unwrap_or(0),
            suspended_for: row[12].as_u64().unwrap_or(0),
            run_secs: row[13].as_u64().unwrap_or(0),
            charged: text(14),
        }
    }

    pub fn is(&self, states: &[&str]) -> bool {
        states.contains(&self.state.as_str())
    }

    /// The slots that it has on all hosts, or on those of this name.
    pub fn slots(&self, on: Option<&str>) -> u64 {
        let here = self.hosts.iter().filter(|(host, _)| on.is_none_or(|name| host == name));
        here.map(|(_, slots)| u64::from(*slots)).sum()
    }
}

fn at(row: &[serde_json::Value]) -> JobRef {
    let number = |n: usize| row[n].as_u64().unwrap() as u32;
    JobRef { job: number(0), idx: number(1) }
}

/// The number in a name of one letter and a number: 3 of `u3`.
pub fn number(name: &str) -> usize {
    name[1..].parse().unwrap_or_else(|_| panic!("{name}"))
}

/// Every job that waits has a reason, and not that it is new.
pub fn all_are_told_why_they_wait(jobs: &[Listed]) {
    let new = u64::from(PendReason::New.number());
    for job in jobs.iter().filter(|job| job.state == "PEND") {
        assert!(!job.reasons.is_empty() && !job.reasons.contains(&new), "no reason for {job:?}");
    }
}

/// A happening that is no submission; a number chooses among the jobs or hosts that there are.
#[derive(Clone, Copy, Debug)]
pub enum Happening {
    /// A job that runs ends well.
    End(usize),
    Kill(usize),
    Stop(usize),
    Resume(usize),
    Requeue(usize),
    /// A host is closed, or opened again.
    Close(usize),
    Open(usize),
    /// The free memory of a host, MB.
    Memory(usize, u32),
    Restart,
    /// mbatchd reads its files again, which are the same.
    Reconfigure,
    Wait(u64),
}

/// A happening to any job or host.
pub fn any(what: fn(usize) -> Happening) -> impl Strategy<Value = Happening> {
    any_number().prop_map(what)
}

fn any_number() -> impl Strategy<Value = usize> {
    proptest::prelude::any::<usize>()
}

/// The free memory of any host is below so many MB.
pub fn memory(below: u32) -> impl Strategy<Value = Happening> {
    (any_number(), 0..below).prop_map(|(host, mem)| Happening::Memory(host, mem))
}

/// Less than so many seconds pass.
pub fn wait(below: u64) -> impl Strategy<Value = Happening> {
    (1..below).prop_map(Happening::Wait)
}

/// Runs this number of cases, and keeps what fails in no file.
pub fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

impl Cluster {
    /// Every job and element, as bjobs shows it.
    pub fn listed(&mut self) -> Vec<Listed> {
        self.listing(&COLUMNS).iter().map(|row| Listed::of(row)).collect()
    }

    /// The jobs in these states.
    pub fn in_states(&mut self, states: &[&str]) -> Vec<JobRef> {
        let rows = self.listing(&[Col::Job, Col::Idx, Col::Stat]);
        let among = |row: &&Vec<_>| states.iter().any(|state| row[2] == *state);
        rows.iter().filter(among).map(|row| at(row)).collect()
    }

    /// One of the jobs in these states, chosen by any number.
    pub fn any_job(&mut self, states: &[&str], n: usize) -> Option<JobRef> {
        let all = self.in_states(states);
        all.get(n % all.len().max(1)).copied()
    }

    /// One of the hosts, chosen by any number.
    fn any_host(&self, n: usize) -> String {
        let count = self.site.each_host().count();
        let name = self.site.each_host().nth(n % count.max(1)).map(|host| host.0.to_owned());
        name.unwrap_or_default()
    }

    /// Lets it happen; where there is no such job, nothing does.
    pub fn happens(&mut self, what: Happening) {
        let job = |c: &mut Cluster, states: &[&str], n| c.any_job(states, n).into_iter();
        match what {
            Happening::End(n) => job(self, &["RUN"], n).for_each(|at| self.end(at, 0)),
            Happening::Kill(n) => job(self, &UNENDED, n).for_each(|at| {
                self.kill(ADMINISTRATOR, at);
            }),
            Happening::Stop(n) => job(self, &["RUN", "SSUSP"], n).for_each(|at| {
                self.stop(ADMINISTRATOR, at);
            }),
            Happening::Resume(n) => job(self, &["USUSP", "SSUSP"], n).for_each(|at| {
                assert_eq!(self.control(ADMINISTRATOR, Verb::Resume, at), [0], "bresume {at}");
            }),
            Happening::Requeue(n) => job(self, &["RUN"], n).for_each(|at| {
                self.requeue(ADMINISTRATOR, at);
            }),
            Happening::Close(n) => self.badmin(&format!("hclose {}", self.any_host(n))),
            Happening::Open(n) => self.badmin(&format!("hopen {}", self.any_host(n))),
            Happening::Memory(n, mem) => self.load(&self.any_host(n), &format!("mem={mem}")),
            Happening::Restart => self.restart(),
            Happening::Reconfigure => self.reconfigure(self.site.clone()),
            Happening::Wait(secs) => self.advance(secs),
        }
    }
}
