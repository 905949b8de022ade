//! A slow evaluator of pending reasons. It takes a configuration as the test wrote it, the load as
//! the test reported it and the jobs as bjobs lists them, and counts everything anew for each
//! question: for each way to spread a job over hosts it lists the documented conditions that would
//! be broken. It calls nothing of the scheduler, of the ledgers or of the reader of requirements.

use super::cluster::random::{Listed, number};
use super::cluster::{ClusterBuilder, cluster};
use super::limit_properties::RandomLimit;
use crate::model::reason::PendReason;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};

/// Users, the queues, and the projects of [`RandomLimit`].
pub const USERS: usize = 3;
pub const QUEUES: usize = 2;
pub const PROJECTS: usize = 3;
/// Processors of each host.
const CPUS: u32 = 4;
/// Memory that LIM reports of a host at first, MB.
pub const MEMORY: u32 = 1000;
/// MBD_SLEEP_TIME, seconds: the unit of JOB_ACCEPT_INTERVAL.
const SLEEP: i64 = 20;
/// The two user groups: `g0` of u0 and u1, `g1` of u1 and u2.
const GROUPS: [[usize; 2]; 2] = [[0, 1], [1, 2]];
const MEM: u8 = 10;
const R1M: u8 = 1;

/// A time window between 22:00 and 23:00: its first minute, and the first one behind it.
pub type Window = (u32, u32);

/// loadSched of r1m and mem.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thresholds {
    pub r1m: Option<u32>,
    pub mem: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct HostRules {
    /// MXJ and JL/U.
    pub slots: u32,
    pub of_user: Option<u32>,
    pub thresholds: Thresholds,
    /// The host has the Boolean resource `big`.
    pub big: bool,
    pub window: Option<Window>,
}

#[derive(Clone, Debug)]
pub struct QueueRules {
    /// QJOB_LIMIT, UJOB_LIMIT, HJOB_LIMIT, and the slots on a host that PJOB_LIMIT gives.
    pub all: Option<u32>,
    pub of_user: Option<u32>,
    pub on_host: Option<u32>,
    pub by_processors: Option<u32>,
    pub hosts: Option<BTreeSet<usize>>,
    pub select: Option<Select>,
    pub thresholds: Thresholds,
    pub window: Option<Window>,
}

/// MAX_JOBS, and the slots on a host that JL/P gives.
#[derive(Clone, Copy, Debug)]
pub struct UserRules {
    pub all: Option<u32>,
    pub on_host: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct Site {
    pub hosts: Vec<HostRules>,
    pub queues: Vec<QueueRules>,
    pub users: Vec<UserRules>,
    pub groups: Vec<UserRules>,
    pub limits: Vec<RandomLimit>,
    /// Instances of `tok`, which all hosts share.
    pub tokens: u32,
    /// JOB_ACCEPT_INTERVAL.
    pub accept: u32,
}

/// A condition of select[].
#[derive(Clone, Copy, Debug)]
pub enum Select {
    Big,
    MemoryAbove(u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    Any,
    OneHost,
    Two,
}

/// A condition of bsub -w on another job.
#[derive(Clone, Copy, Debug)]
pub enum After {
    Done(u32),
    Ended(u32),
}

/// The options of a submission.
#[derive(Clone, Debug)]
pub struct Asked {
    pub user: usize,
    pub queue: usize,
    pub project: usize,
    pub min: u32,
    pub span: Span,
    /// rusage of mem and tok; 0: none.
    pub mem: u32,
    pub tok: u32,
    pub select: Option<Select>,
    pub hosts: Option<BTreeSet<usize>>,
    pub exclusive: bool,
    /// The seconds from its submission to bsub -b; 0: none.
    pub delay: u32,
    pub after: Option<After>,
    /// The elements of an array, and its %limit.
    pub array: Option<(u32, u32)>,
    /// When it was submitted, seconds since the epoch.
    pub submitted: i64,
}

/// The host as the test has told of it.
#[derive(Clone, Copy, Debug)]
pub struct HostNow {
    pub closed: bool,
    pub locked: bool,
    pub unavailable: bool,
    pub mem: u32,
    pub r1m: u32,
}

/// Everything that the evaluator looks at.
pub struct World<'a> {
    pub site: &'a Site,
    pub now: i64,
    pub hosts: &'a [HostNow],
    /// Whether each queue is active.
    pub active: &'a [bool],
    pub jobs: &'a [Listed],
    pub asked: &'a BTreeMap<u32, Asked>,
}

/// A condition that is broken, and the number of the host where it is one of a host.
type Broken = Vec<(PendReason, Option<usize>)>;

/// Slots of each host.
type Spread = Vec<u32>;

fn shown(amount: Option<impl Display>) -> String {
    amount.map_or("-".to_owned(), |amount| amount.to_string())
}

fn names(letter: &str, these: &BTreeSet<usize>) -> String {
    these.iter().map(|n| format!("{letter}{n}")).collect::<Vec<_>>().join(" ")
}

fn window(of: Window) -> String {
    format!("22:{:02}-22:{:02}", of.0, of.1)
}

/// The amount for each processor that makes this one for a host.
fn by_processor(on_host: Option<u32>) -> Option<f64> {
    on_host.map(|slots| f64::from(slots) / f64::from(CPUS))
}

impl Select {
    fn text(self) -> String {
        match self {
            Select::Big => "select[big]".to_owned(),
            Select::MemoryAbove(mem) => format!("select[mem>{mem}]"),
        }
    }
}

impl Asked {
    /// The options of bsub.
    pub fn options(&self) -> String {
        let Asked { queue, project, min, .. } = self;
        let mut text = format!("-q q{queue} -P p{project} -n {min}");
        let mut requirement = self.select.map_or(String::new(), Select::text);
        requirement += match self.span {
            Span::Any => "",
            Span::OneHost => " span[hosts=1]",
            Span::Two => " span[ptile=2]",
        };
        let terms = [("mem", self.mem), ("tok", self.tok)].into_iter().filter(|term| term.1 > 0);
        let terms: Vec<String> = terms.map(|(name, n)| format!("{name}={n}")).collect();
        if !terms.is_empty() {
            let _ = write!(requirement, " rusage[{}]", terms.join(","));
        }
        if !requirement.is_empty() {
            let _ = write!(text, " -R '{requirement}'");
        }
        if let Some(hosts) = &self.hosts {
            let _ = write!(text, " -m '{}'", names("h", hosts));
        }
        text += if self.exclusive { " -x" } else { "" };
        if self.delay > 0 {
            let _ = write!(text, " -b {}", self.delay);
        }
        match self.after {
            Some(After::Done(job)) => _ = write!(text, " -w done({job})"),
            Some(After::Ended(job)) => _ = write!(text, " -w ended({job})"),
            None => {}
        }
        if let Some((elements, limit)) = self.array {
            let _ = write!(text, " -J 'a[1-{elements}]%{limit}'");
        }
        text
    }
}

impl Site {
    pub fn files(&self) -> ClusterBuilder {
        let mut hosts = "Begin Host\nHOST_NAME MXJ JL/U r1m mem DISPATCH_WINDOW\n".to_owned();
        for (i, host) in self.hosts.iter().enumerate() {
            let HostRules { slots, of_user, thresholds, .. } = host;
            let (r1m, mem) = (shown(thresholds.r1m), shown(thresholds.mem));
            let open = host.window.map_or("()".to_owned(), |of| format!("({})", window(of)));
            let of_user = shown(*of_user);
            let _ = writeln!(hosts, "h{} {slots} {of_user} {r1m} {mem} {open}", i + 1);
        }
        let mut users = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\n".to_owned();
        for (i, members) in GROUPS.iter().enumerate() {
            let _ = writeln!(users, "g{i} (u{} u{})", members[0], members[1]);
        }
        users += "End UserGroup\nBegin User\nUSER_NAME MAX_JOBS JL/P\n";
        for (letter, all) in [("u", &self.users), ("g", &self.groups)] {
            for (i, of) in all.iter().enumerate() {
                let on_host = shown(by_processor(of.on_host));
                let _ = writeln!(users, "{letter}{i} {} {on_host}", shown(of.all));
            }
        }
        let sections: String = self.limits.iter().map(RandomLimit::section).collect();
        let site = cluster().hosts(self.hosts.len(), CPUS).lsb_hosts(&(hosts + "End Host\n"));
        let site = site.lsb_users(&(users + "End User\n")).file("lsb.resources", &sections);
        let site = site.resource("big Boolean () ()").resource("tok Numeric () N");
        let site = site.resource_map(&format!("tok ({}@[all])", self.tokens));
        let site = site.param(&format!("MBD_SLEEP_TIME = {SLEEP}"));
        let site = site.param(&format!("JOB_ACCEPT_INTERVAL = {}", self.accept));
        let with_big = (1..).zip(&self.hosts).filter(|(_, host)| host.big);
        let site = with_big.fold(site, |site, (n, _)| site.host_resources(&format!("h{n}"), "big"));
        let queues = self.queues.iter().enumerate();
        queues.fold(site, |site, (i, queue)| site.queue(&format!("q{i}"), &queue.lines(i)))
    }
}

impl QueueRules {
    fn lines(&self, at: usize) -> String {
        let mut lines = format!("PRIORITY = {}; EXCLUSIVE = Y", 20 + 10 * at);
        let amounts =
            [("QJOB_LIMIT", self.all), ("UJOB_LIMIT", self.of_user), ("HJOB_LIMIT", self.on_host)];
        let loads = [("r1m", self.thresholds.r1m), ("mem", self.thresholds.mem)];
        for (name, amount) in amounts.into_iter().chain(loads) {
            amount.iter().for_each(|amount| _ = write!(lines, "; {name} = {amount}"));
        }
        if let Some(each) = by_processor(self.by_processors) {
            let _ = write!(lines, "; PJOB_LIMIT = {each}");
        }
        if let Some(hosts) = &self.hosts {
            let _ = write!(lines, "; HOSTS = {}", names("h", hosts));
        }
        if let Some(select) = self.select {
            let _ = write!(lines, "; RES_REQ = {}", select.text());
        }
        if let Some(open) = self.window {
            let _ = write!(lines, "; DISPATCH_WINDOW = {}", window(open));
        }
        lines
    }
}

/// Every way to spread `left` slots over so many hosts.
fn spreads(hosts: usize, left: u32) -> Vec<Spread> {
    if hosts == 0 {
        return if left == 0 { vec![Spread::new()] } else { Vec::new() };
    }
    let with = |here: u32| {
        let rest = spreads(hosts - 1, left - here).into_iter();
        rest.map(move |rest| std::iter::once(here).chain(rest).collect::<Spread>())
    };
    (0..=left).flat_map(with).collect()
}

impl World<'_> {
    fn of(&self, job: &Listed) -> &Asked {
        &self.asked[&job.at.job]
    }

    /// The started jobs, with what each has asked for.
    fn started(&self) -> impl Iterator<Item = (&Listed, &Asked)> {
        let started = self.jobs.iter().filter(|job| job.state == "RUN");
        started.map(|job| (job, self.of(job)))
    }

    /// Slots of the started jobs among these, on one host or on all.
    fn slots(&self, host: Option<usize>, among: impl Fn(&Asked) -> bool) -> u32 {
        let name = host.map(host_name);
        let jobs = self.started().filter(|(_, of)| among(of));
        jobs.map(|(job, _)| job.slots(name.as_deref()) as u32).sum()
    }

    fn memory_left(&self, host: usize) -> u32 {
        let here = |job: &Listed| job.slots(Some(&host_name(host))) > 0;
        let taken: u32 = self.started().filter(|(j, _)| here(j)).map(|(_, of)| of.mem).sum();
        self.hosts[host].mem.saturating_sub(taken)
    }

    fn opens(&self, window: Option<Window>) -> bool {
        let minute = (self.now / 60) % (24 * 60) - 22 * 60;
        window.is_none_or(|(from, to)| (i64::from(from)..i64::from(to)).contains(&minute))
    }

    /// The reasons of the job itself, whatever room there is.
    pub fn not_ready(&self, job: &Listed) -> Vec<PendReason> {
        let of = self.of(job);
        let mut all = Vec::new();
        if of.delay > 0 && self.now < of.submitted + i64::from(of.delay) {
            all.push(PendReason::StartTime);
        }
        let other = |job: u32| self.jobs.iter().filter(move |other| other.at.job == job);
        match of.after {
            Some(After::Done(id)) if other(id).any(|other| other.state == "EXIT") => {
                all.push(PendReason::DependencyNever);
            }
            Some(After::Done(id)) if other(id).any(|other| other.state != "DONE") => {
                all.push(PendReason::Dependency);
            }
            Some(After::Ended(id)) if other(id).any(|o| !o.is(&["DONE", "EXIT"])) => {
                all.push(PendReason::Dependency);
            }
            _ => {}
        }
        let running = other(job.at.job).filter(|element| element.state == "RUN").count();
        if of.array.is_some_and(|(_, limit)| running >= limit as usize) {
            all.push(PendReason::ArrayLimit);
        }
        if !self.active[of.queue] {
            all.push(PendReason::QueueInactive);
        } else if !self.opens(self.site.queues[of.queue].window) {
            all.push(PendReason::QueueWindow);
        }
        all
    }

    /// The conditions of a host that a job would break there with so many slots.
    fn broken_on(&self, job: &Listed, host: usize, slots: u32) -> Vec<PendReason> {
        let (of, rules, now) = (self.of(job), &self.site.hosts[host], self.hosts[host]);
        let queue = &self.site.queues[of.queue];
        let on = Some(host);
        let above = |used: u32, most: Option<u32>| most.is_some_and(|most| used + slots > most);
        let used = self.slots(on, |_| true);
        let by_user = self.slots(on, |other| other.user == of.user);
        let by_queue = self.slots(on, |other| other.queue == of.queue);
        let alone = self.slots(on, |other| other.exclusive) > 0;
        let outside = |hosts: &Option<BTreeSet<usize>>| {
            hosts.as_ref().is_some_and(|hosts| !hosts.contains(&(host + 1)))
        };
        let beyond = |of: Thresholds, index: u8| match index {
            R1M => of.r1m.is_some_and(|most| now.r1m > most),
            _ => of.mem.is_some_and(|least| self.memory_left(host) < least),
        };
        let loads = |index| beyond(rules.thresholds, index) || beyond(queue.thresholds, index);
        let fails = |select: Option<Select>| match select {
            None => false,
            Some(Select::Big) => !rules.big,
            Some(Select::MemoryAbove(least)) => self.memory_left(host) <= least,
        };
        let full_groups = GROUPS.iter().zip(&self.site.groups).any(|(members, group)| {
            let used = self.slots(on, |other| members.contains(&other.user));
            members.contains(&of.user) && above(used, group.on_host)
        });
        let accept = i64::from(self.site.accept) * SLEEP;
        let last = self.jobs.iter().filter(|job| job.slots(Some(&host_name(host))) > 0);
        let last = last.map(|job| job.start).max();
        let all = [
            (now.unavailable, PendReason::LoadUnavailable),
            (now.closed, PendReason::HostClosed),
            (now.locked, PendReason::HostLocked),
            (!self.opens(rules.window), PendReason::HostWindow),
            (alone, PendReason::ExclusiveJob),
            (of.exclusive && used > 0, PendReason::Exclusive),
            (outside(&queue.hosts), PendReason::NotQueueHost),
            (outside(&of.hosts), PendReason::NotAskedHost),
            (fails(of.select), PendReason::Requirement),
            (fails(queue.select), PendReason::QueueRequirement),
            (loads(R1M), PendReason::Load(R1M)),
            (loads(MEM), PendReason::Load(MEM)),
            (of.mem > self.memory_left(host), PendReason::Reserve(MEM)),
            (above(used, Some(rules.slots)), PendReason::HostFull),
            (above(by_user, rules.of_user), PendReason::HostUserLimit),
            (above(by_queue, queue.on_host), PendReason::QueueHostLimit),
            (above(by_queue, queue.by_processors), PendReason::QueueCpuLimit),
            (above(by_user, self.site.users[of.user].on_host), PendReason::UserCpuLimit),
            (full_groups, PendReason::GroupCpuLimit),
            (last.is_some_and(|start| start + accept > self.now), PendReason::JustStarted),
        ];
        all.into_iter().filter(|(broken, _)| *broken).map(|(_, reason)| reason).collect()
    }

    /// The conditions that the job would break with these slots: its own, and those of hosts.
    fn broken(&self, job: &Listed, spread: &[u32]) -> Broken {
        let of = self.of(job);
        let slots: u32 = spread.iter().sum();
        let above = |used: u32, most: Option<u32>| most.is_some_and(|most| used + slots > most);
        let queue = &self.site.queues[of.queue];
        let in_queue = self.slots(None, |other| other.queue == of.queue);
        let of_user_there =
            self.slots(None, |other| other.queue == of.queue && other.user == of.user);
        let of_user = self.slots(None, |other| other.user == of.user);
        let full_groups = GROUPS.iter().zip(&self.site.groups).any(|(members, group)| {
            let used = self.slots(None, |other| members.contains(&other.user));
            members.contains(&of.user) && above(used, group.all)
        });
        let tokens: u32 = self.started().map(|(_, other)| other.tok).sum();
        let lacks = of.tok > 0 && tokens + of.tok > self.site.tokens;
        let all = [
            (above(in_queue, queue.all), PendReason::QueueJobLimit),
            (above(of_user_there, queue.of_user), PendReason::QueueUserJobLimit),
            (above(of_user, self.site.users[of.user].all), PendReason::UserJobLimit),
            (full_groups, PendReason::GroupJobLimit),
            (lacks, PendReason::ReserveExternal(None)),
        ];
        let own = all.into_iter().filter(|(broken, _)| *broken).map(|(_, reason)| (reason, None));
        let mut broken: Broken = own.collect();
        let mut with = self.jobs.to_vec();
        let used = spread.iter().enumerate().filter(|(_, slots)| **slots > 0);
        let hosts = used.clone().map(|(host, slots)| (host_name(host), *slots)).collect();
        with.retain(|other| other.at != job.at);
        with.push(Listed { state: "RUN".to_owned(), hosts, ..job.clone() });
        let memory: BTreeMap<u32, u32> =
            self.asked.iter().map(|(job, of)| (*job, of.mem)).collect();
        for limit in &self.site.limits {
            // what others hold too much already is no matter of this job
            let (before, after) = (limit.held(self.jobs, &memory), limit.held(&with, &memory));
            let grown = after.iter().filter(|(key, held)| before.get(*key) < Some(*held));
            if grown.into_iter().any(|(_, held)| *held > limit.most()) {
                broken.push((PendReason::Limit(limit.reason()), None));
            }
        }
        for (host, slots) in used {
            let here = self.broken_on(job, host, *slots).into_iter();
            broken.extend(here.map(|reason| (reason, Some(host))));
        }
        broken
    }

    /// The ways to spread a job that its span[] allows.
    fn ways(&self, job: &Listed) -> Vec<Spread> {
        let of = self.of(job);
        let mut all = spreads(self.site.hosts.len(), of.min);
        all.retain(|spread| {
            let count = |n: u32| spread.iter().filter(|slots| **slots == n).count() as u32;
            match of.span {
                Span::Any => true,
                Span::OneHost => count(of.min) == 1,
                Span::Two => spread.iter().all(|slots| *slots <= 2) && count(1) == of.min % 2,
            }
        });
        all
    }

    /// A way to start the job that breaks no condition.
    pub fn could_start(&self, job: &Listed) -> Option<Spread> {
        if !self.not_ready(job).is_empty() {
            return None;
        }
        self.ways(job).into_iter().find(|spread| self.broken(job, spread).is_empty())
    }

    /// Is it true of the job, whatever its hosts?
    pub fn holds(&self, job: &Listed, reason: PendReason) -> bool {
        let (plain, parallel) = plain(reason);
        let breaks =
            |spread: &Spread| self.broken(job, spread).iter().any(|(why, _)| is(*why, plain));
        let with_one = || spreads(self.site.hosts.len(), 1).iter().any(breaks);
        self.not_ready(job).contains(&reason)
            || self.ways(job).iter().all(breaks) && !(parallel && with_one())
    }

    /// Is it true of the job on this host?
    pub fn holds_on(&self, job: &Listed, reason: PendReason, host: usize) -> bool {
        let of = self.of(job);
        let least = self.least_on_one(job);
        let with = |slots: u32| {
            let mut spread = vec![0; self.site.hosts.len()];
            spread[host] = slots;
            self.broken(job, &spread)
        };
        if matches!(reason, PendReason::NotEnoughSlots | PendReason::Span) {
            return (reason == PendReason::Span) == (of.span != Span::Any)
                && of.min > 1
                && with(1).is_empty()
                && !(of.span == Span::OneHost && with(of.min).is_empty());
        }
        let (plain, _) = plain(reason);
        let limits = matches!(plain, PendReason::Limit(_));
        let most = if limits { of.min } else { least };
        let breaks = |slots: u32| with(slots).into_iter().any(|(why, _)| is(why, plain));
        (least..=most).any(breaks)
    }

    /// The slots that a host of the job has at least.
    fn least_on_one(&self, job: &Listed) -> u32 {
        let of = self.of(job);
        match of.span {
            Span::Any => 1,
            Span::OneHost => of.min,
            Span::Two if of.min % 2 == 1 => 1,
            Span::Two => 2,
        }
    }

    /// All that is broken on a host with the fewest slots there, for the message of a test.
    pub fn told_of(&self, job: &Listed, host: usize) -> Vec<PendReason> {
        self.broken_on(job, host, self.least_on_one(job))
    }
}

fn host_name(host: usize) -> String {
    format!("h{}", host + 1)
}

/// The reason in the words for a job of one slot, and whether it was in those for a parallel job.
fn plain(reason: PendReason) -> (PendReason, bool) {
    match reason {
        PendReason::QueueParallelJob => (PendReason::QueueJobLimit, true),
        PendReason::QueueUserParallelJob => (PendReason::QueueUserJobLimit, true),
        PendReason::UserParallelJob => (PendReason::UserJobLimit, true),
        PendReason::GroupParallelJob => (PendReason::GroupJobLimit, true),
        other => (other, false),
    }
}

/// Are they told by the same number?
fn is(one: PendReason, other: PendReason) -> bool {
    one.number() == other.number()
}

/// The position of a host by its name.
pub fn host_at(name: &str) -> usize {
    number(name) - 1
}
