//! Properties of limits under which preempted jobs do not count (PREEMPT_FOR), in random clusters:
//! the running jobs keep to every limit, no job is suspended again and again, and every job ends.

use super::cluster::random::{self, Happening, cases};
use super::cluster::{ADMINISTRATOR, Cluster, cluster};
use super::{Act, JobRef};
use proptest::prelude::*;
use std::collections::BTreeMap;

const QUEUES: [&str; 3] = ["low", "middle", "high"];
const PREEMPTION: [&str; 3] = ["", "; PREEMPTION = PREEMPTIVE[low]", "; PREEMPTION = PREEMPTIVE"];
const WORDS: [&str; 4] = ["GROUP_MAX", "GROUP_JLP", "USER_JLP", "HOST_JLU"];
const USERS: [&str; 3] = ["ann", "bob", "eve"];
/// Hosts, each with as many slots and processors.
const HOSTS: usize = 3;
const SLOTS: u32 = 3;
const CASES: u32 = 80;
const MOST_STEPS: usize = 40;

#[derive(Clone, Debug)]
enum Step {
    Submit { user: usize, queue: usize, slots: u32 },
    Happens(Happening),
}

fn step() -> impl Strategy<Value = Step> {
    let slots = prop_oneof![3 => Just(1u32), 1 => Just(2u32)];
    prop_oneof![
        10 => (0..USERS.len(), 0..QUEUES.len(), slots).prop_map(|(user, queue, slots)| {
            Step::Submit { user, queue, slots }
        }),
        5 => random::any(Happening::End).prop_map(Step::Happens),
        1 => random::any(Happening::Kill).prop_map(Step::Happens),
        1 => random::any(Happening::Stop).prop_map(Step::Happens),
        2 => random::any(Happening::Resume).prop_map(Step::Happens),
        1 => Just(Step::Happens(Happening::Restart)),
        1 => random::wait(100).prop_map(Step::Happens),
    ]
}

/// Slots of ann, of ann and bob together, of eve for each processor, of the group for each
/// processor, and of each user on a host; 0: no such limit.
#[derive(Clone, Debug)]
struct Amounts {
    ann: u32,
    group: u32,
    eve_on_host: u32,
    group_on_host: u32,
    each_on_host: u32,
}

fn amounts() -> impl Strategy<Value = Amounts> {
    let some = |all: std::ops::Range<u32>| prop_oneof![1 => Just(0u32), 2 => all];
    (some(2..5), some(2..6), some(2..3), some(2..3), some(2..3)).prop_map(
        |(ann, group, eve_on_host, group_on_host, each_on_host)| Amounts {
            ann,
            group,
            eve_on_host,
            group_on_host,
            each_on_host,
        },
    )
}

fn up(amounts: &Amounts, words: &[bool]) -> Cluster {
    let shown = |n: u32| if n == 0 { "-".to_owned() } else { n.to_string() };
    // for each of so many processors
    let each = |n: u32| match n {
        0 => "-".to_owned(),
        n => format!("{:.4}", (f64::from(n) - 0.5) / f64::from(SLOTS)),
    };
    let (ann, group, on_host) = (shown(amounts.ann), shown(amounts.group), amounts.group_on_host);
    let users = format!(
        "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\nchip (ann bob)\nEnd UserGroup\n\
         Begin User\nUSER_NAME MAX_JOBS JL/P\nann {ann} -\nchip {group} {}\neve - {}\nEnd User\n",
        each(on_host),
        each(amounts.eve_on_host),
    );
    let jl_u = shown(amounts.each_on_host);
    let hosts = format!("Begin Host\nHOST_NAME MXJ JL/U\ndefault {SLOTS} {jl_u}\nEnd Host\n");
    let words: Vec<&str> =
        WORDS.into_iter().zip(words).filter(|(_, asked)| **asked).map(|of| of.0).collect();
    let mut files = cluster().hosts(HOSTS, SLOTS).lsb_users(&users).lsb_hosts(&hosts);
    if !words.is_empty() {
        files = files.param(&format!("PREEMPT_FOR = {}", words.join(" ")));
    }
    let all = QUEUES.iter().zip(PREEMPTION).zip(1..);
    let files = all.fold(files, |files, ((queue, preemption), n)| {
        files.queue(queue, &format!("PRIORITY = {}{preemption}", 10 * n))
    });
    files.up()
}

struct Tested {
    c: Cluster,
    amounts: Amounts,
    jobs: BTreeMap<JobRef, usize>,
}

impl Tested {
    fn in_state(&mut self, state: &str) -> Vec<JobRef> {
        self.c.in_states(&[state])
    }

    fn happens(&mut self, what: &Step) {
        match *what {
            Step::Submit { user, queue, slots } => {
                let at = self.c.submit(USERS[user], &format!("-q {} -n {slots}", QUEUES[queue]));
                self.jobs.insert(at, user);
            }
            Step::Happens(what) => self.c.happens(what),
        }
    }

    fn check(&mut self) {
        let mut used: BTreeMap<(String, usize), u32> = BTreeMap::new();
        for at in self.in_state("RUN") {
            let user = self.jobs[&at];
            for host in self.c.running_on(at) {
                *used.entry((host, user)).or_default() += 1;
            }
        }
        let sum = |of: &dyn Fn(&str, usize) -> bool| -> u32 {
            used.iter().filter(|((host, user), _)| of(host, *user)).map(|all| all.1).sum()
        };
        let within = |name: &str, limit: u32, n: u32| {
            assert!(limit == 0 || n <= limit, "{name} is {limit}, {n} run: {used:?}");
        };
        let Amounts { ann, group, eve_on_host, group_on_host, each_on_host } = self.amounts;
        within("MAX_JOBS of ann", ann, sum(&|_, user| user == 0));
        within("MAX_JOBS of the group", group, sum(&|_, user| user < 2));
        for n in 1..=HOSTS {
            let host = format!("h{n}");
            within("MXJ", SLOTS, sum(&|on, _| on == host));
            within("JL/P of eve", eve_on_host, sum(&|on, user| on == host && user == 2));
            within("JL/P of the group", group_on_host, sum(&|on, user| on == host && user < 2));
            for own in 0..USERS.len() {
                within("JL/U", each_on_host, sum(&|on, user| on == host && user == own));
            }
        }
        let mut orders: BTreeMap<JobRef, usize> = BTreeMap::new();
        for (at, _) in self.c.orders().into_iter().filter(|order| order.1 == Act::Suspend) {
            *orders.entry(at).or_default() += 1;
        }
        assert!(orders.values().all(|n| *n <= 3), "suspended again and again: {orders:?}");
    }

    /// All running jobs end, again and again: all jobs have ended then.
    fn ends(&mut self) {
        for stopped in self.in_state("USUSP") {
            self.c.resume(ADMINISTRATOR, stopped);
        }
        for _ in 0..=self.jobs.len() {
            for at in self.in_state("RUN") {
                self.c.end(at, 0);
            }
        }
        let left = self.c.in_states(&["SSUSP", "RUN", "PEND"]);
        assert!(left.is_empty(), "not ended: {left:?}");
    }
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn running_jobs_beside_preempted_ones_keep_to_limits_and_all_end(
        amounts in amounts(),
        words in prop::collection::vec(any::<bool>(), WORDS.len()),
        all in prop::collection::vec(step(), 1..MOST_STEPS),
    ) {
        let c = up(&amounts, &words);
        let mut tested = Tested { c, amounts, jobs: BTreeMap::new() };
        for what in &all {
            tested.happens(what);
            tested.check();
        }
        tested.ends();
    }
}
