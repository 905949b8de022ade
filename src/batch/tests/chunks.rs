//! Chunk jobs, beside the scenarios in tests/policy/chunk.txt: bmig of a member, the record in the
//! log, and what holds for any chunks whatever happens to them.

use super::cluster::random::{Happening, Listed, any, cases, wait};
use super::cluster::{ADMINISTRATOR, Cluster, cluster, element};
use super::*;
use crate::batch::state::State;
use crate::model::event::{Event, JobChunk};
use proptest::prelude::*;

const CASES: u32 = 60;
const MOST_STEPS: usize = 30;
const HOSTS: usize = 2;
const SLOTS: u32 = 2;
const QUEUES: [&str; 2] = ["single", "chunked"];

#[test]
fn member_that_migrates_is_pending_and_its_chunk_goes_on() {
    let mut c = cluster().hosts(1, 1).queue("chunked", "CHUNK_JOB_SIZE = 4").up();
    let array = c.submit("ann", "-q chunked -J x[1-4]");
    assert_eq!(c.state(element(array, 2)), "WAIT");
    let migrate = Verb::Migrate { force: false };
    assert_eq!(c.control("ann", migrate, element(array, 2)), [0]);
    let states: Vec<String> = (1..=4).map(|idx| c.state(element(array, idx))).collect();
    assert_eq!(states, ["RUN", "PEND", "WAIT", "WAIT"]);
    c.end(element(array, 1), 0);
    let states: Vec<String> = (2..=4).map(|idx| c.state(element(array, idx))).collect();
    assert_eq!(states, ["PEND", "RUN", "WAIT"]);
}

/// The record of the chunk leaves the log with the job that it is of.
#[test]
fn element_that_waited_in_a_chunk_is_as_one_that_never_did_once_the_chunk_is_over() {
    let mut site = conf();
    site.batch.queues[0].chunk_job_size = 2;
    let mut r = Rig::of(site);
    let four = |name: &str| JobSpec { name: name.into(), min_slots: 4, max_slots: 4, ..spec("x") };
    let first = r.submit(four("")).unwrap();
    let [runs, array] = ["", "y[1-2]"].map(|name| r.submit(four(name)).unwrap());
    let key = JobKey { job: first, idx: 0, attempt: 1 };
    let conn = r.mbd.links.hosts()[host(0)].up().unwrap();
    r.report(conn, key, done());
    let at = |job, idx| JobRef { job, idx };
    assert_eq!(r.mbd.state.job_chunks().waiting(at(runs, 0)), [at(array, 1)]);
    let (mut with, mut without) = (State::default(), State::default());
    for record in r.read_back() {
        if !matches!(record.event, Event::JobChunk(_)) {
            without.apply(&record);
        }
        with.apply(&record);
    }
    assert!(!with.differences(&without, &Default::default()).is_empty(), "it waits");
    let over = JobChunk { members: vec![at(runs, 0)], ..JobChunk::default() };
    with.apply(&Record { time: r.now.secs(), event: Event::JobChunk(Box::new(over)) });
    assert_eq!(with.differences(&without, &Default::default()), [""; 0]);
}

#[test]
fn record_of_a_chunk_names_its_members_and_hosts() {
    let mut c = cluster().hosts(1, 1).queue("chunked", "CHUNK_JOB_SIZE = 3").up();
    let array = c.submit("ann", "-q chunked -J x[1-3]");
    c.end(element(array, 1), 0);
    let all = c.records(|event| matches!(event, Event::JobChunk(_)));
    let chunks: Vec<(Vec<u32>, usize)> = all
        .iter()
        .filter_map(|event| match event {
            Event::JobChunk(chunk) => {
                Some((chunk.members.iter().map(|at| at.idx).collect(), chunk.hosts.len()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(chunks, [(vec![1, 2, 3], 1), (vec![2, 3], 1)]);
}

#[test]
fn record_of_a_chunk_has_its_slots_in_short_where_the_site_wants_it() {
    for (line, short) in [("LSF_HPC_EXTENSIONS=SHORT_EVENTFILE", true), ("", false)] {
        let site = cluster().hosts(1, 2).queue("chunked", "CHUNK_JOB_SIZE = 3").lsf_conf(line);
        let mut c = site.up();
        c.submit("ann", "-q chunked -n 2 -J x[1-3]");
        let all = c.records(|event| matches!(event, Event::JobChunk(_)));
        let [Event::JobChunk(chunk)] = &all[..] else { panic!("{all:?}") };
        assert_eq!((&*chunk.hosts, chunk.short_hosts), (&[("h1".into(), 2)][..], short));
    }
}

/// A step of a random history.
#[derive(Clone, Debug)]
enum Step {
    /// Queue, elements of an array (0: a single job), MB of memory reserved in hundreds.
    Submit(usize, u32, u32),
    Happens(Happening),
    KillMember(usize),
    StopMember(usize),
    ResumePending(usize),
    Migrate(usize),
    Switch(usize, usize),
    ToTop(usize),
    Lose(usize),
    Find(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let number = proptest::prelude::any::<usize>;
    let happening = prop_oneof![
        12 => any(Happening::End),
        1 => any(Happening::Kill),
        1 => any(Happening::Stop),
        1 => any(Happening::Resume),
        1 => any(Happening::Requeue),
        1 => any(Happening::Close),
        1 => any(Happening::Open),
        1 => Just(Happening::Restart),
        1 => Just(Happening::Reconfigure),
        2 => wait(100),
    ];
    prop_oneof![
        8 => (0..QUEUES.len(), 0..6u32, 0..2u32).prop_map(|(a, b, c)| Step::Submit(a, b, c)),
        22 => happening.prop_map(Step::Happens),
        1 => number().prop_map(Step::KillMember),
        1 => number().prop_map(Step::StopMember),
        1 => number().prop_map(Step::ResumePending),
        1 => number().prop_map(Step::Migrate),
        1 => (number(), 0..QUEUES.len()).prop_map(|(n, queue)| Step::Switch(n, queue)),
        1 => number().prop_map(Step::ToTop),
        1 => (0..HOSTS).prop_map(Step::Lose),
        2 => (0..HOSTS).prop_map(Step::Find),
    ]
}

fn takes(c: &mut Cluster, step: &Step) {
    let act = |c: &mut Cluster, states: &[&str], n: usize, verb: Verb| {
        let job = c.any_job(states, n);
        job.into_iter().for_each(|at| drop(c.control(ADMINISTRATOR, verb.clone(), at)));
    };
    match *step {
        Step::Submit(queue, elements, mem) => {
            let name = if elements > 0 { format!("-J x[1-{elements}]") } else { String::new() };
            c.submit("ann", &format!("-q {} -R rusage[mem={mem}] {name}", QUEUES[queue]));
        }
        Step::Happens(what) => c.happens(what),
        Step::KillMember(n) => act(c, &["WAIT"], n, Verb::Kill),
        Step::StopMember(n) => act(c, &["WAIT"], n, Verb::Stop),
        Step::ResumePending(n) => act(c, &["PSUSP"], n, Verb::Resume),
        Step::Migrate(n) => act(c, &["WAIT"], n, Verb::Migrate { force: false }),
        Step::Switch(n, queue) => {
            let to = Verb::Switch { queue: QUEUES[queue].to_owned() };
            act(c, &["WAIT", "RUN", "PEND"], n, to);
        }
        Step::ToTop(n) => {
            let first = Verb::Move { top: true, position: 1 };
            act(c, &["WAIT", "PEND"], n, first);
        }
        Step::Lose(host) => c.lose(&format!("h{}", host + 1)),
        Step::Find(host) => c.find(&format!("h{}", host + 1)),
    }
}

/// The members that wait, with the element each waits for.
fn chunks(state: &State) -> Vec<(JobRef, Vec<JobRef>)> {
    state.job_chunks().each().map(|(at, all)| (at, all.to_vec())).collect()
}

proptest! {
    #![proptest_config(cases(CASES))]

    /// A member waits for one that is started, on the hosts of that one; no chunk is larger than
    /// its queue says; and the log has all of them.
    #[test]
    fn chunk_is_of_pending_jobs_behind_a_started_one(
        all in prop::collection::vec(step(), 1..=MOST_STEPS),
    ) {
        let mut c = cluster()
            .hosts(HOSTS, SLOTS)
            .queue("single", "PRIORITY = 30")
            .queue("chunked", "PRIORITY = 30\nCHUNK_JOB_SIZE = 3")
            .up();
        for step in &all {
            takes(&mut c, step);
            let jobs = c.listed();
            let of = |at: JobRef| jobs.iter().find(|job| job.at == at);
            let mut waiting: Vec<JobRef> = Vec::new();
            for (runner, members) in chunks(c.state_of_jobs()) {
                prop_assert!((1..=2).contains(&members.len()), "{members:?}");
                let started = |job: &&Listed| job.is(&["RUN", "SSUSP", "USUSP"]);
                let Some(runner) = of(runner).filter(started) else {
                    return Err(TestCaseError::fail(format!("{members:?} wait for nobody")));
                };
                for at in &members {
                    let member = of(*at).unwrap();
                    prop_assert_eq!(&member.state, "WAIT");
                    prop_assert_eq!(&member.hosts, &runner.hosts);
                    prop_assert!(member.reasons.is_empty());
                }
                waiting.extend(members);
            }
            let shown = jobs.iter().filter(|job| job.state == "WAIT").count();
            prop_assert_eq!(shown, waiting.len());
            prop_assert_eq!(chunks(c.state_of_jobs()), chunks(c.read_log().state()));
        }
        let mut complaints = c.complaints();
        // of hosts that are lost there is much to be told
        complaints.retain(|text| text.contains("does not fit"));
        prop_assert_eq!(complaints, Vec::<String>::new());
    }
}
