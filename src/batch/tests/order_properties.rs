//! The order of starts in random clusters is that of a plain list: no job is passed over that could
//! start, whatever changes between. Queues have random priorities, some of them the same; in some
//! clusters a queue has FAIRSHARE, or several queues share.

use super::JobRef;
use super::cluster::random::cases;
use super::cluster::{ADMINISTRATOR, Cluster, ClusterBuilder, cluster};
use crate::proto::client::Verb;
use proptest::prelude::*;
use std::cmp::Reverse;

const USERS: [&str; 3] = ["ann", "bob", "cid"];
const QUEUES: [&str; 4] = ["q0", "q1", "q2", "q3"];
/// Priorities of queues; few, so that several have the same.
const PRIORITIES: [u32; 3] = [10, 20, 30];
/// Priorities of bsub -sp; the one in the middle is that of a job without it.
const JOB_PRIORITIES: [u32; 3] = [40, 50, 60];
/// Shares of the users; no two users ever have the same priority by them and few started jobs.
const SHARES: [u32; 3] = [1009, 2003, 3001];
const CASES: u32 = 60;
const MOST_STEPS: usize = 40;
const MOST_SLOTS: u32 = 8;

/// The queues as they are configured: priorities, and the slots of each queue and of each of its
/// users; 0: no limit.
#[derive(Clone, Debug)]
struct Queues {
    priorities: Vec<u32>,
    limits: Vec<u32>,
    user_limits: Vec<u32>,
    sharing: Sharing,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sharing {
    Nobody,
    /// The queue q1 alone.
    Queue,
    /// The queue q1 with the next one; DISPATCH_ORDER = QUEUE.
    Queues(bool),
}

#[derive(Clone, Debug)]
struct Submission {
    queue: usize,
    user: usize,
    priority: usize,
    slots: u32,
}

/// A step; numbers of jobs count those that it may be about, round and round.
#[derive(Clone, Debug)]
enum Step {
    Submit(Submission),
    /// Jobs that are submitted while the host is closed.
    SubmitAll(Vec<Submission>),
    End(usize),
    /// All started jobs end while the host is closed.
    EndAll,
    Kill(usize),
    Stop(usize),
    Resume(usize),
    Switch(usize, usize),
    Turn(usize),
    Reconfigure(Queues),
    Restart,
    Wait(u64),
}

fn queues() -> impl Strategy<Value = Queues> {
    let each = QUEUES.len();
    let limit = || prop_oneof![2 => Just(0u32), 1 => 1..=MOST_SLOTS];
    let priority = prop::sample::select(PRIORITIES.to_vec());
    let sharing = prop_oneof![
        2 => Just(Sharing::Nobody),
        1 => Just(Sharing::Queue),
        2 => any::<bool>().prop_map(Sharing::Queues),
    ];
    (
        prop::collection::vec(priority, each),
        prop::collection::vec(limit(), each),
        prop::collection::vec(limit(), each),
        sharing,
    )
        .prop_map(|(priorities, limits, user_limits, sharing)| Queues {
            priorities,
            limits,
            user_limits,
            sharing,
        })
}

fn step() -> impl Strategy<Value = Step> {
    let submission = || {
        let fields = (0..QUEUES.len(), 0..USERS.len(), 0..JOB_PRIORITIES.len(), 1..=2u32);
        fields.prop_map(|(queue, user, priority, slots)| Submission {
            queue,
            user,
            priority,
            slots,
        })
    };
    prop_oneof![
        4 => submission().prop_map(Step::Submit),
        4 => prop::collection::vec(submission(), 4..12).prop_map(Step::SubmitAll),
        8 => any::<usize>().prop_map(Step::End),
        2 => Just(Step::EndAll),
        1 => any::<usize>().prop_map(Step::Kill),
        2 => any::<usize>().prop_map(Step::Stop),
        2 => any::<usize>().prop_map(Step::Resume),
        2 => (any::<usize>(), 0..QUEUES.len()).prop_map(|(job, queue)| Step::Switch(job, queue)),
        1 => (0..QUEUES.len()).prop_map(Step::Turn),
        1 => queues().prop_map(Step::Reconfigure),
        1 => Just(Step::Restart),
        2 => (1..100u64).prop_map(Step::Wait),
    ]
}

fn site(slots: u32, queues: &Queues) -> ClusterBuilder {
    let site = cluster().hosts(1, slots).param("MAX_USER_PRIORITY = 100");
    // the priority of a user is that of the shares by the started jobs
    let site = site.param("CPU_TIME_FACTOR = 0").param("RUN_TIME_FACTOR = 0");
    let site = site.param("RUN_JOB_FACTOR = 1");
    let shares = USERS.iter().zip(SHARES).map(|(user, shares)| format!("[{user}, {shares}]"));
    let fair = format!("; FAIRSHARE = USER_SHARES[{}]", shares.collect::<String>());
    QUEUES.iter().enumerate().fold(site, |site, (n, name)| {
        let line = |name: &str, value: u32| match value {
            0 => String::new(),
            _ => format!("; {name} = {value}"),
        };
        let limits = line("QJOB_LIMIT", queues.limits[n]);
        let limits = limits + &line("UJOB_LIMIT", queues.user_limits[n]);
        let fair = match (n, queues.sharing) {
            (1, Sharing::Queue) => fair.clone(),
            (1, Sharing::Queues(false)) => format!("{fair}; FAIRSHARE_QUEUES = q2"),
            (1, Sharing::Queues(true)) => {
                format!("{fair}; FAIRSHARE_QUEUES = q2; DISPATCH_ORDER = QUEUE")
            }
            _ => String::new(),
        };
        site.queue(name, &format!("PRIORITY = {}{limits}{fair}", queues.priorities[n]))
    })
}

/// A job of the plain list.
#[derive(Clone, Debug)]
struct Listed {
    at: JobRef,
    queue: usize,
    user: usize,
    priority: u32,
    slots: u32,
    state: Is,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Pending,
    Stopped,
    Started,
}

struct Tested {
    c: Cluster,
    slots: u32,
    queues: Queues,
    inactive: [bool; QUEUES.len()],
    /// The jobs that have not ended, in the order of their submission.
    jobs: Vec<Listed>,
}

impl Tested {
    /// The job of this number among those in a state.
    fn pick(&mut self, n: usize, state: Is) -> Option<usize> {
        let these = self.jobs.iter().enumerate().filter(|(_, job)| job.state == state);
        let these: Vec<usize> = these.map(|(position, _)| position).collect();
        (!these.is_empty()).then(|| these[n % these.len()])
    }

    fn submit(&mut self, job: &Submission) {
        let &Submission { queue, user, priority, slots } = job;
        let priority = JOB_PRIORITIES[priority];
        let options = format!("-q {} -n {slots} -sp {priority}", QUEUES[queue]);
        // more slots than a limit ever leaves are refused
        let Ok(at) = self.c.try_submit(USERS[user], &options) else { return };
        self.jobs.push(Listed { at, queue, user, priority, slots, state: Is::Pending });
    }

    fn happens(&mut self, step: &Step) {
        match step {
            Step::Submit(job) => self.submit(job),
            Step::SubmitAll(jobs) => {
                self.c.badmin("hclose h1");
                jobs.iter().for_each(|job| self.submit(job));
                self.c.badmin("hopen h1");
            }
            Step::EndAll => {
                self.c.badmin("hclose h1");
                while let Some(job) = self.pick(0, Is::Started) {
                    let at = self.jobs.remove(job).at;
                    self.c.end(at, 0);
                }
                self.c.badmin("hopen h1");
            }
            Step::End(n) => {
                if let Some(job) = self.pick(*n, Is::Started) {
                    let at = self.jobs.remove(job).at;
                    self.c.end(at, 0);
                }
            }
            Step::Kill(n) => {
                if let Some(job) = self.pick(*n, Is::Pending) {
                    let at = self.jobs.remove(job).at;
                    self.c.kill(ADMINISTRATOR, at);
                }
            }
            Step::Stop(n) => {
                if let Some(job) = self.pick(*n, Is::Pending) {
                    self.jobs[job].state = Is::Stopped;
                    assert_eq!(self.c.control(ADMINISTRATOR, Verb::Stop, self.jobs[job].at), [0]);
                }
            }
            Step::Resume(n) => {
                if let Some(job) = self.pick(*n, Is::Stopped) {
                    self.jobs[job].state = Is::Pending;
                    assert_eq!(self.c.control(ADMINISTRATOR, Verb::Resume, self.jobs[job].at), [0]);
                }
            }
            Step::Switch(n, queue) => {
                if let Some(job) = self.pick(*n, Is::Pending)
                    && self.jobs[job].queue != *queue
                {
                    let to = Verb::Switch { queue: QUEUES[*queue].to_owned() };
                    if self.c.control(ADMINISTRATOR, to, self.jobs[job].at) == [0] {
                        self.jobs[job].queue = *queue;
                    }
                }
            }
            Step::Turn(queue) => {
                let verb = ["qinact", "qact"][usize::from(self.inactive[*queue])];
                self.inactive[*queue] = !self.inactive[*queue];
                self.c.badmin(&format!("{verb} {}", QUEUES[*queue]));
            }
            Step::Reconfigure(queues) => {
                self.queues = queues.clone();
                self.c.reconfigure(site(self.slots, queues));
            }
            Step::Restart => self.c.restart(),
            Step::Wait(secs) => self.c.advance(*secs),
        }
    }

    /// The slots of started jobs that count.
    fn used(&self, counts: impl Fn(&Listed) -> bool) -> u32 {
        let started = self.jobs.iter().filter(|job| job.state == Is::Started);
        started.filter(|job| counts(job)).map(|job| job.slots).sum()
    }

    fn may_start(&self, job: &Listed) -> bool {
        let within = |limit: u32, used: u32| limit == 0 || used + job.slots <= limit;
        let of_queue = self.used(|other| other.queue == job.queue);
        let of_user = self.used(|other| (other.queue, other.user) == (job.queue, job.user));
        job.state == Is::Pending
            && !self.inactive[job.queue]
            && self.used(|_| true) + job.slots <= self.slots
            && within(self.queues.limits[job.queue], of_queue)
            && within(self.queues.user_limits[job.queue], of_user)
    }

    /// The queues that share.
    fn sharing(&self) -> &'static [usize] {
        match self.queues.sharing {
            Sharing::Nobody => &[],
            Sharing::Queue => &[1],
            Sharing::Queues(_) => &[1, 2],
        }
    }

    /// The place of the queue, or of those it is served together with: the PRIORITY of the first
    /// of them, and its place in the file.
    fn turn_of(&self, queue: usize) -> (Reverse<u32>, usize) {
        let shares = |queue: usize| self.sharing().contains(&queue);
        let of = |queue: usize| self.queues.priorities[queue];
        let together = |other: &usize| {
            let alike = shares(*other) == shares(queue);
            let by_user = shares(queue) && self.queues.sharing == Sharing::Queues(false);
            alike && (by_user || of(*other) == of(queue))
        };
        let all = (0..QUEUES.len()).filter(together);
        all.map(|other| (Reverse(of(other)), other)).min().unwrap()
    }

    /// The users of larger shares by the number of their started jobs come first.
    fn priority_of(&self, job: &Listed) -> u64 {
        let sharing = self.sharing();
        if !sharing.contains(&job.queue) {
            return 0;
        }
        let started = self.jobs.iter().filter(|other| {
            other.state == Is::Started && other.user == job.user && sharing.contains(&other.queue)
        });
        u64::from(SHARES[job.user]) * 1_000_000 / (1 + started.count() as u64)
    }

    /// The jobs that start now are the next of the list again and again.
    fn check(&mut self) {
        let mut expected = Vec::new();
        loop {
            let could = self.jobs.iter().enumerate().filter(|(_, job)| self.may_start(job));
            let order = |(submitted, job): &(usize, &Listed)| {
                let queue = match self.sharing().contains(&job.queue) {
                    true => Reverse(self.queues.priorities[job.queue]),
                    false => Reverse(0),
                };
                let user = Reverse(self.priority_of(job));
                (self.turn_of(job.queue), user, queue, Reverse(job.priority), *submitted)
            };
            let Some((next, job)) = could.min_by_key(order) else { break };
            expected.push(job.at);
            self.jobs[next].state = Is::Started;
        }
        assert_eq!(self.c.started(), expected, "{:?} {:?}", self.queues, self.jobs);
    }
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn jobs_of_random_queues_start_in_the_order_of_a_plain_list(
        slots in 1..=MOST_SLOTS,
        queues in queues(),
        all in prop::collection::vec(step(), 1..MOST_STEPS),
    ) {
        let c = site(slots, &queues).up();
        let mut tested =
            Tested { c, slots, queues, inactive: [false; QUEUES.len()], jobs: Vec::new() };
        for what in &all {
            tested.happens(what);
            tested.check();
        }
    }
}
