//! A site of 60 queues, 200 users in 30 groups, a dozen limits and four share trees: it starts,
//! runs ten thousand jobs, and its policies of day and night are swapped again and again meanwhile.

use super::cluster::{Cluster, ClusterBuilder, cluster};
use super::{Act, JobRef};
use crate::model::event::Event;
use crate::model::job_state::{JobState, LoggedStatus};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

const QUEUES: usize = 60;
const USERS: usize = 200;
const GROUPS: usize = 30;
const RACKS: usize = 2;
const HOSTS_OF_RACK: usize = 30;
const SLOTS: u32 = 8;
/// Arrays that are submitted; LSF_TEST_FULL=1: all.
const FEW_ARRAYS: usize = 400;
const ALL_ARRAYS: usize = 2000;
const ELEMENTS: usize = 5;
/// Ends after which the other policy comes, and after which mbatchd fails.
const SWAP: usize = 250;
const FAILURE: usize = 900;

/// The rack that a queue has by day, and by night.
fn rack_of(queue: usize, night: bool) -> usize {
    (queue + usize::from(night)) % RACKS
}

fn queue_lines(queue: usize, night: bool) -> String {
    let trees = "USER_SHARES[[g0, 5] [g1, 3] [g2@, 2] [default, 1]]";
    let own = match queue % 15 {
        0 => format!("FAIRSHARE = {trees}"),
        1 => "SLOT_RESERVE = MAX_RESERVE_TIME[100]".to_owned(),
        2 => "BACKFILL = Y".to_owned(),
        3 => "QJOB_LIMIT = 40".to_owned(),
        4 => "UJOB_LIMIT = 6".to_owned(),
        5 => format!("PREEMPTION = PREEMPTIVE[q{}]", (queue + 1) % QUEUES),
        7 => "RES_REQ = select[mem > 100] rusage[mem=200]".to_owned(),
        8 => "HJOB_LIMIT = 3".to_owned(),
        9 => "NEW_JOB_SCHED_DELAY = 0".to_owned(),
        10 => "PJOB_LIMIT = 1".to_owned(),
        11 => "RUNLIMIT = 30 600".to_owned(),
        _ => String::new(),
    };
    // a queue comes before the one that it preempts jobs of
    let priority = 2 * (QUEUES - queue) + 10;
    format!("PRIORITY = {priority}; HOSTS = rack{}; {own}", rack_of(queue, night))
}

/// Twelve limits. One for each rack says that the queues of the other one have nothing there: with
/// the queues of the other policy beside it no job would start.
fn limits(night: bool) -> String {
    let mut text = String::new();
    for rack in 0..RACKS {
        let others = (0..QUEUES).filter(|queue| rack_of(*queue, night) != rack);
        let names: String = others.map(|queue| format!(" q{queue}")).collect();
        let _ = writeln!(
            text,
            "Begin Limit\nNAME = rack{rack}\nQUEUES ={names}\nHOSTS = rack{rack}\nSLOTS = 0\n\
             End Limit"
        );
    }
    for n in 0..10 {
        let body = match n {
            0 => "PER_USER = all\nSLOTS = 40".to_owned(),
            1 => "USERS = g3 g4\nJOBS = 30".to_owned(),
            2 => "PER_PROJECT = all ~default\nSLOTS = 20".to_owned(),
            3 => "PER_HOST = all\nPER_USER = u5 u6\nSLOTS = 2".to_owned(),
            4 => "USERS = g5\nHOSTS = rack0\nMEM = 20000".to_owned(),
            _ => format!("PER_QUEUE = q{n} q{}\nUSERS = g{n}\nSLOTS = 10", n + 20),
        };
        let _ = writeln!(text, "Begin Limit\nNAME = limit{n}\n{body}\nEnd Limit");
    }
    text
}

fn users() -> String {
    let mut text = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER USER_SHARES\n".to_owned();
    for group in 0..GROUPS {
        let members: String = (0..USERS)
            .filter(|user| user % GROUPS == group)
            .map(|user| format!("u{user} "))
            .collect();
        let _ = writeln!(text, "g{group} ({members}) ([u{group}, 3] [default, 1])");
    }
    text + "End UserGroup\n"
}

fn hosts() -> String {
    let mut text = "Begin Host\nHOST_NAME MXJ\ndefault !\nEnd Host\n\
                    Begin HostGroup\nGROUP_NAME GROUP_MEMBER\n"
        .to_owned();
    for rack in 0..RACKS {
        let first = rack * HOSTS_OF_RACK + 1;
        let members: String =
            (first..first + HOSTS_OF_RACK).map(|host| format!("h{host} ")).collect();
        let _ = writeln!(text, "rack{rack} ({members})");
    }
    text + "End HostGroup\n"
}

fn site(night: bool) -> ClusterBuilder {
    let site = cluster()
        .hosts(RACKS * HOSTS_OF_RACK, SLOTS)
        .param("DEFAULT_QUEUE = q0")
        .param("CLEAN_PERIOD = 100000")
        .lsb_users(&users())
        .lsb_hosts(&hosts())
        .file("lsb.resources", &limits(night));
    (0..QUEUES)
        .fold(site, |site, queue| site.queue(&format!("q{queue}"), &queue_lines(queue, night)))
}

/// Submits all jobs; the queue of each.
fn submit_all(c: &mut Cluster, arrays: usize) -> BTreeMap<u32, usize> {
    let mut queue_of = BTreeMap::new();
    for n in 0..arrays {
        let (queue, user) = (n * 7 % QUEUES, n * 11 % USERS);
        let slots = if n % 20 == 0 { 3 } else { 1 };
        let project = n % 5;
        let options = format!("-q q{queue} -P p{project} -n {slots} -W 10 -J 'a{n}[1-{ELEMENTS}]'");
        queue_of.insert(c.submit(&format!("u{user}"), &options).job, queue);
    }
    queue_of
}

/// The jobs as they start, each in the rack that its queue has.
struct Watched {
    queue_of: BTreeMap<u32, usize>,
    night: bool,
    started: BTreeSet<JobRef>,
    running: VecDeque<JobRef>,
}

impl Watched {
    /// All starts since this was asked last are those of the policy in force.
    fn look(&mut self, c: &mut Cluster) {
        for order in c.start_orders() {
            let at = order.key.job_ref();
            assert!(self.started.insert(at), "{at} is started twice");
            let host = &order.hosts[0].0;
            let number: usize = host[1..].parse().unwrap();
            let rack = rack_of(self.queue_of[&at.job], self.night);
            assert_eq!((number - 1) / HOSTS_OF_RACK, rack, "{at} on {host}, night: {}", self.night);
            self.running.push_back(at);
        }
    }
}

#[test]
fn large_site_runs_ten_thousand_jobs_while_its_policies_are_swapped() {
    let mut c = site(false).up();
    let full = std::env::var_os("LSF_TEST_FULL").is_some();
    let arrays = if full { ALL_ARRAYS } else { FEW_ARRAYS };
    let (queue_of, jobs) = (submit_all(&mut c, arrays), arrays * ELEMENTS);
    let (started, running) = (BTreeSet::new(), VecDeque::new());
    let mut all = Watched { queue_of, night: false, started, running };
    all.look(&mut c);
    let mut ended = 0;
    while let Some(at) = all.running.pop_front() {
        c.end(at, 0);
        ended += 1;
        all.look(&mut c);
        if ended % SWAP == 0 {
            all.night = !all.night;
            c.reconfigure(site(all.night));
            c.advance(5);
            all.look(&mut c);
        }
        if ended % FAILURE == 0 {
            c.restart();
            all.look(&mut c);
        }
    }
    assert_eq!((ended, all.started.len()), (jobs, jobs));
    let done = |event: &Event| match event {
        Event::JobStatus(status) => status.status == LoggedStatus::State(JobState::Done),
        _ => false,
    };
    assert_eq!(c.logged(done), jobs);
    let killed = c.orders().into_iter().filter(|order| matches!(order.1, Act::Terminate { .. }));
    assert_eq!(killed.count(), 0);
    assert_eq!(c.complaints(), Vec::<String>::new());
}
