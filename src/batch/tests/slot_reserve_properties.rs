//! Properties of reservations in random clusters: no slot is held and given at once, no job that
//! backfills delays one that reserves, and jobs that reserve neither wait for each other nor change
//! their plans without end.

use super::JobRef;
use super::cluster::random::{Listed, cases};
use super::cluster::{Cluster, ClusterBuilder, cluster};
use crate::model::event::Event;
use proptest::prelude::*;
use std::collections::BTreeMap;

const HOSTS: usize = 3;
const SLOTS: u32 = 4;
/// Memory of each host, where it counts, MB.
const MEMORY: u32 = 1000;
const CASES: u32 = 96;
const REST_CASES: u32 = 24;
const MOST_STEPS: usize = 24;
/// Changes of reservations by one thing that happens: each may have all younger ones planned anew.
const MOST_CHANGES: usize = MOST_STEPS * MOST_STEPS;
/// A job waits for no more than all others that come before it, one after the other, seconds.
const MOST_WAIT: u64 = 20 * 60 * MOST_STEPS as u64;

#[derive(Clone, Debug)]
enum Happening {
    /// Slots, minutes of its run limit, shape, and memory in MB for each task, where that counts.
    Wide(u32, u64, usize, u32),
    Fill(u32, u64, u32),
    Plain(u32, u64, u32),
    /// One of the running jobs ends early.
    End(usize),
    Wait(u64),
    Restart,
}

const SHAPES: [&str; 3] = ["", "span[hosts=1]", "span[ptile=2]"];

/// The option -R of a job of this shape and memory.
fn requirement(shape: &str, memory: u32) -> String {
    match (shape, memory) {
        ("", 0) => String::new(),
        (_, 0) => format!("-R '{shape}'"),
        _ => format!("-R '{shape} rusage[mem={memory}]'"),
    }
}

fn happening() -> impl Strategy<Value = Happening> {
    let memory = || (0..8u32).prop_map(|n| 100 * n);
    let job = move || (1..=SLOTS, 1..20u64, memory());
    let wide = (1..=8u32, 1..20u64, 0..SHAPES.len(), memory());
    prop_oneof![
        3 => wide.prop_map(|(n, w, s, m)| Happening::Wide(n, w, s, m)),
        4 => job().prop_map(|(n, w, m)| Happening::Fill(n, w, m)),
        2 => job().prop_map(|(n, w, m)| Happening::Plain(n, w, m)),
        1 => any::<usize>().prop_map(Happening::End),
        4 => (1..400u64).prop_map(Happening::Wait),
        1 => Just(Happening::Restart),
    ]
}

/// Each job ends by its run limit at the latest: what is due ends, second by second.
fn advance(c: &mut Cluster, secs: u64, ends: &mut BTreeMap<JobRef, i64>, limits: &Limits) {
    let until = c.secs() + secs as i64;
    loop {
        note_started(c, ends, limits);
        let next = ends.iter().map(|(at, end)| (*end, *at)).min();
        match next.filter(|next| next.0 <= until) {
            Some((end, at)) => {
                c.advance((end - c.secs()).max(0) as u64);
                ends.remove(&at);
                c.end(at, 0);
            }
            None => break,
        }
    }
    c.advance((until - c.secs()).max(0) as u64);
    note_started(c, ends, limits);
}

type Limits = BTreeMap<JobRef, i64>;

fn note_started(c: &mut Cluster, ends: &mut BTreeMap<JobRef, i64>, limits: &Limits) {
    for job in c.listed().iter().filter(|job| job.state == "RUN") {
        ends.entry(job.at).or_insert(job.start + limits[&job.at]);
    }
}

/// The slots that are held on each host fit beside what runs there, and are what the jobs hold.
fn no_slot_is_held_and_given(c: &mut Cluster, jobs: &[Listed]) {
    let mut held: BTreeMap<&str, u64> = BTreeMap::new();
    for (host, slots) in jobs.iter().flat_map(|job| &job.held) {
        *held.entry(host).or_default() += slots;
    }
    for host in c.hosts() {
        let of_jobs = held.get(host.name.as_str()).copied().unwrap_or(0);
        assert_eq!(host.rsv, of_jobs, "{}", host.name);
        assert!(
            host.run + host.rsv <= u64::from(SLOTS),
            "{}: {} {}",
            host.name,
            host.run,
            host.rsv
        );
    }
    let in_queue: u64 = ["wide", "fill", "normal"].iter().map(|name| c.queue(name).rsv).sum();
    assert_eq!(in_queue, held.values().sum::<u64>());
}

/// Jobs that reserve, that backfill and others: no promise is broken, and no slot given twice.
fn promises_hold(site: ClusterBuilder, all: &[Happening], with_memory: bool) {
    let mut c = site.up();
    if with_memory {
        c.loads(&format!("mem={MEMORY}"));
    }
    let (mut ends, mut limits) = (BTreeMap::new(), Limits::new());
    // the first job of its queue: no other of that priority takes its slots
    let mut promised: Option<(JobRef, i64)> = None;
    for what in all {
        let asks = |shape: &str, memory| requirement(shape, if with_memory { memory } else { 0 });
        let submitted = match what {
            Happening::Wide(n, w, shape, m) => {
                let n = n.max(if with_memory { &1 } else { &2 });
                Some((format!("-q wide -n {n} -W {w} {}", asks(SHAPES[*shape], *m)), *w))
            }
            Happening::Fill(n, w, m) => {
                Some((format!("-q fill -n {n} -W {w} {}", asks("", *m)), *w))
            }
            Happening::Plain(n, w, m) => Some((format!("-n {n} -W {w} {}", asks("", *m)), *w)),
            _ => None,
        };
        if let Some((options, minutes)) = submitted {
            let at = c.submit("ann", &options);
            limits.insert(at, minutes as i64 * 60);
        }
        match what {
            Happening::End(any) => {
                let running: Vec<JobRef> = ends.keys().copied().collect();
                if let Some(at) = running.get(any % running.len().max(1)) {
                    ends.remove(at);
                    c.end(*at, 0);
                }
            }
            Happening::Wait(secs) => advance(&mut c, *secs, &mut ends, &limits),
            Happening::Restart => {
                c.restart();
                c.advance(1);
            }
            _ => {}
        }
        note_started(&mut c, &mut ends, &limits);
        let jobs = c.listed();
        no_slot_is_held_and_given(&mut c, &jobs);
        if let Some((at, latest)) = promised {
            let job = jobs.iter().find(|job| job.at == at).unwrap();
            if job.start > 0 {
                assert!(job.start <= latest, "{at} at {} behind {latest}", job.start);
                promised = None;
            } else {
                assert!(c.secs() <= latest, "{at} waits beyond {latest}");
                let now = job.promised.unwrap_or(latest);
                assert!(now <= latest, "{at} is put off from {latest} to {now}");
                promised = Some((at, now));
            }
        }
        if promised.is_none() {
            // a job that is ahead of it in its queue may take slots that become free
            let first = jobs.iter().find(|job| job.state == "PEND");
            promised = first.and_then(|job| Some((job.at, job.promised?)));
        }
    }
    assert_eq!(c.complaints(), Vec::<String>::new());
}

/// Queues of which the first one reserves by this parameter.
fn site(reserves: &str) -> ClusterBuilder {
    cluster()
        .hosts(HOSTS, SLOTS)
        .queue("wide", &format!("PRIORITY = 50; {reserves} = MAX_RESERVE_TIME[1000]"))
        .queue("fill", "PRIORITY = 40; BACKFILL = Y")
        .queue("normal", "PRIORITY = 30")
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn random_backfill_delays_no_reservation_and_gives_no_slot_twice(
        all in prop::collection::vec(happening(), 1..=MOST_STEPS),
    ) {
        promises_hold(site("SLOT_RESERVE"), &all, false);
    }

    #[test]
    fn random_backfill_delays_no_reservation_of_memory(
        all in prop::collection::vec(happening(), 1..=MOST_STEPS),
        per_task in any::<bool>(),
    ) {
        let per_task = if per_task { "Y" } else { "N" };
        let site = site("RESOURCE_RESERVE");
        let site = site.param(&format!("RESOURCE_RESERVE_PER_TASK = {per_task}"));
        promises_hold(site, &all, true);
    }
}

/// Slots, minutes, shape, how it is submitted, and hundreds of MB.
type Reserving = (u32, u64, usize, u8, u32);

fn reserving() -> impl Strategy<Value = Vec<Reserving>> {
    let one = (1..=9u32, 1..20u64, 0..SHAPES.len(), 0..4u8, 0..=MEMORY / 100);
    prop::collection::vec(one, 4..=MOST_STEPS)
}

/// Reservations by this parameter come to rest, and all jobs start.
fn come_to_rest(parameter: &str, all: &[Reserving], pauses: &[u64]) {
    let reserves =
        |priority: u32| format!("PRIORITY = {priority}; {parameter} = MAX_RESERVE_TIME[1000]");
    let with_memory = parameter == "RESOURCE_RESERVE";
    let mut c = cluster()
        .hosts(HOSTS, SLOTS)
        .queue("wide", &reserves(50))
        .queue("broad", &reserves(45))
        .queue("normal", "PRIORITY = 30; BACKFILL = Y")
        .up();
    if with_memory {
        c.loads(&format!("mem={MEMORY}"));
    }
    let (mut ends, mut limits) = (BTreeMap::new(), Limits::new());
    // a host has SLOTS, and a tile of two on all hosts takes so many
    let most = [HOSTS as u32 * SLOTS, SLOTS, 2 * HOSTS as u32];
    for ((slots, minutes, shape, how, hundreds), pause) in all.iter().zip(pauses) {
        let slots = slots.min(&most[*shape]);
        let changes = |c: &Cluster| c.logged(|event| matches!(event, Event::JobReserve(_)));
        let before = changes(&c);
        // mbatchd knows the end of some
        let limit = if how % 2 == 0 { format!("-W {minutes}") } else { String::new() };
        let queue = if *how < 2 { "wide" } else { "broad" };
        let asks = requirement(SHAPES[*shape], if with_memory { 100 * hundreds } else { 0 });
        let at = c.submit("ann", &format!("-q {queue} -n {slots} {limit} {asks}"));
        limits.insert(at, *minutes as i64 * 60);
        let small = c.submit("bob", &format!("-W {minutes}"));
        limits.insert(small, *minutes as i64 * 60);
        assert!(changes(&c) - before <= MOST_CHANGES, "{}", changes(&c) - before);
        advance(&mut c, *pause, &mut ends, &limits);
    }
    advance(&mut c, MOST_WAIT, &mut ends, &limits);
    let waits = |job: &&Listed| !matches!(job.state.as_str(), "DONE" | "RUN");
    let waiting: Vec<String> =
        c.listed().iter().filter(waits).map(|job| job.at.to_string()).collect();
    assert!(waiting.is_empty(), "{waiting:?} wait for each other");
    assert_eq!(c.complaints(), Vec::<String>::new());
}

proptest! {
    #![proptest_config(cases(REST_CASES))]

    #[test]
    fn random_reservations_come_to_rest_and_all_jobs_start(
        all in reserving(),
        pauses in prop::collection::vec(0..400u64, MOST_STEPS),
    ) {
        come_to_rest("SLOT_RESERVE", &all, &pauses);
    }

    #[test]
    fn random_reservations_of_memory_come_to_rest_and_all_jobs_start(
        all in reserving(),
        pauses in prop::collection::vec(0..400u64, MOST_STEPS),
    ) {
        come_to_rest("RESOURCE_RESERVE", &all, &pauses);
    }
}

#[test]
fn promise_to_a_job_in_tiles_stands_where_a_host_has_room_for_its_rest_alone() {
    use Happening::{Fill, Restart, Wide};
    let all = [Wide(3, 1, 2, 100), Wide(5, 1, 2, 500), Fill(1, 1, 0), Fill(1, 2, 100), Restart];
    let site = site("RESOURCE_RESERVE").param("RESOURCE_RESERVE_PER_TASK = Y");
    promises_hold(site, &all, true);
}

#[test]
fn job_in_stripes_is_promised_a_start() {
    let mut c = site("SLOT_RESERVE").up();
    let first = c.submit("ann", "-n 12 -W 5");
    let striped = c.submit("ann", "-q wide -n 6 -W 5 -R 'span[stripe]'");
    let jobs = c.listed();
    let of = |at| jobs.iter().find(|job| job.at == at).unwrap();
    assert_eq!(of(striped).promised, Some(of(first).start + 300), "{:?}", of(striped));
}
