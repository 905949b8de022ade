//! Reservations follow the jobs that hold them: which hosts a change touches, and what is reserved
//! after it. After each step the builder has them counted anew from the jobs.

use super::cluster::{Cluster, ClusterBuilder, cluster, element};
use super::{Col, JobRef};
use crate::model::specfield::SpecField::ResReq;
use proptest::prelude::*;

/// The place of MEM among the built-in load indices.
const MEM: usize = 10;

/// Hosts that share `lic`; each has a `scr` of its own.
fn sharing(hosts: usize, slots: u32) -> ClusterBuilder {
    let site = cluster().hosts(hosts, slots).lsf_conf("LSB_MOD_ALL_JOBS=Y");
    let site = site.resource("lic Numeric () N").resource("scr Numeric 15 N");
    site.resource_map("lic (1000@[all])").resource_map("scr [default]")
}

fn started(site: ClusterBuilder) -> Cluster {
    let mut c = site.up();
    c.loads("mem=10000 scr=1000");
    c
}

/// The reserved memory of a host, and its available memory as bhosts shows it.
fn memory(c: &mut Cluster, host: &str) -> (f64, f64) {
    let row = c.host(host);
    (row.reserved[MEM], f64::from(row.load.unwrap().index[MEM]))
}

/// The reserved amounts of the site's own resources.
fn own(c: &mut Cluster, host: &str) -> String {
    let pairs = c.host(host).reserved_external;
    pairs.iter().map(|(name, amount)| format!("{name}={amount} ")).collect()
}

#[test]
fn end_of_one_of_many_jobs_touches_its_host_alone() {
    let mut c = started(sharing(20, 4));
    let jobs: Vec<JobRef> = (0..80)
        .map(|n| c.submit("ann", &format!("-m h{} -R 'rusage[mem=10:scr=2]'", n / 4 + 1)))
        .collect();
    assert_eq!(c.started(), jobs);
    assert_eq!(c.reservations_changed(), (160, vec![]), "two resources of each job");
    c.end(jobs[30], 0);
    assert_eq!(c.reservations_changed(), (2, vec!["h8".into()]));
    assert_eq!((memory(&mut c, "h8").0, memory(&mut c, "h9").0), (30.0, 40.0));
    c.kill("ann", jobs[31]);
    assert_eq!(c.reservations_changed(), (2, vec!["h8".into()]));
    // neither a pass over all hosts nor the load of one works out anything
    c.load("h3", "mem=9000");
    c.advance(60);
    assert_eq!(c.reservations_changed(), (0, vec![]));
}

#[test]
fn parallel_job_touches_each_of_its_hosts_once() {
    let mut c = started(sharing(5, 4));
    let job = c.submit("ann", "-n 6 -m 'h2 h4' -R 'span[ptile=3] rusage[mem=10]'");
    assert_eq!(c.running_on(job).len(), 6);
    assert_eq!(c.reservations_changed(), (2, vec![]));
    c.end(job, 0);
    assert_eq!(c.reservations_changed(), (2, vec!["h2".into(), "h4".into()]));
    let once = c.submit("ann", "-n 6 -m 'h2 h4' -R 'span[ptile=3] rusage[mem=10/job]'");
    assert_eq!(c.reservations_changed(), (1, vec![]));
    let first = c.running_on(once)[0].clone();
    c.end(once, 0);
    assert_eq!(c.reservations_changed(), (1, vec![first]));
}

#[test]
fn instance_that_hosts_share_is_kept_once_for_all_of_them() {
    let mut c = started(sharing(6, 4));
    let job = c.submit("ann", "-m h2 -R 'rusage[lic=3]'");
    assert_eq!(c.reservations_changed(), (1, vec![]));
    for host in ["h1", "h2", "h6"] {
        assert_eq!(own(&mut c, host), "lic=3.0 ");
    }
    // once for the job, however many of its hosts share it
    let wide = c.submit("ann", "-n 6 -R 'span[ptile=2] rusage[lic=5]'");
    assert_eq!((c.reservations_changed().0, own(&mut c, "h5")), (1, "lic=8.0 ".into()));
    let tasks = c.submit("ann", "-n 6 -R 'span[ptile=2] rusage[lic=5/task]'");
    assert_eq!((c.reservations_changed().0, own(&mut c, "h1")), (1, "lic=38.0 ".into()));
    for job in [job, wide, tasks] {
        c.end(job, 0);
    }
    let (touched, hosts) = c.reservations_changed();
    assert_eq!((touched, hosts.len(), own(&mut c, "h4")), (3, 6, String::new()));
}

#[test]
fn suspended_job_gives_back_what_release_says_until_it_is_resumed() {
    let mut c = started(sharing(2, 4));
    let job = c.submit("ann", "-m h1 -R 'rusage[mem=100:scr=5:lic=2]'");
    let kept = c.submit("ann", "-m h1 -R 'rusage[mem=10]'");
    assert_eq!((memory(&mut c, "h1").0, own(&mut c, "h1")), (110.0, "lic=2.0 scr=5.0 ".into()));
    c.reservations_changed();
    c.stop("ann", job);
    assert_eq!(c.state(job), "USUSP");
    assert_eq!((memory(&mut c, "h1").0, own(&mut c, "h1")), (110.0, String::new()));
    assert_eq!(c.reservations_changed().1, ["h1", "h2"], "lic is also the other host's");
    // nothing of this one is given back
    c.stop("ann", kept);
    assert_eq!((c.state(kept).as_str(), c.reservations_changed()), ("USUSP", (0, vec![])));
    c.resume("ann", job);
    assert_eq!((memory(&mut c, "h1").0, own(&mut c, "h1")), (110.0, "lic=2.0 scr=5.0 ".into()));
    c.stop("ann", job);
    c.kill("ann", job);
    assert_eq!((memory(&mut c, "h1").0, own(&mut c, "h1")), (10.0, String::new()));
}

#[test]
fn duration_that_is_over_gives_back_at_its_second() {
    let mut c = started(sharing(3, 4));
    c.submit("ann", "-m h1 -R 'rusage[mem=(300 100):duration=(1 2)]'");
    c.submit("ann", "-m h2 -R 'rusage[mem=50]'");
    c.reservations_changed();
    let mut seen = Vec::new();
    for secs in [0, 59, 1, 119, 1, 500] {
        c.advance(secs);
        let hosts = c.reservations_changed().1;
        seen.push((memory(&mut c, "h1"), hosts.concat()));
    }
    let at = |reserved: f64, hosts: &str| ((reserved, 10000.0 - reserved), hosts.to_owned());
    let (first, none) = (at(300.0, ""), at(0.0, ""));
    let want = [first.clone(), first, at(100.0, "h1"), at(100.0, ""), at(0.0, "h1"), none];
    assert_eq!(seen, want);
}

#[test]
fn decaying_reservation_is_worked_out_for_the_second_that_it_is_read() {
    let mut c = started(sharing(3, 4));
    c.submit("ann", "-m h1 -R 'rusage[mem=600:duration=2:decay=1]'");
    c.submit("ann", "-m h1 -R 'rusage[mem=10]'");
    c.submit("ann", "-m h2 -R 'rusage[mem=50]'");
    for (secs, left) in [(0, 610.0), (30, 460.0), (1, 455.0), (88, 15.0), (1, 10.0), (30, 10.0)] {
        c.advance(secs);
        c.reservations_changed();
        assert_eq!(memory(&mut c, "h1").0, left);
        assert_eq!(memory(&mut c, "h2").0, 50.0);
        let touched = c.reservations_changed().0;
        assert!(touched <= 1, "{touched} sums worked out for one second");
    }
    // it counts as changed while it decays, now and then, and at its end
    let job = c.submit("ann", "-m h3 -R 'rusage[mem=600:duration=2:decay=1]'");
    c.reservations_changed();
    let mut changes = 0;
    for _ in 0..150 {
        c.advance(1);
        changes += c.reservations_changed().1.len();
    }
    assert_eq!((changes, memory(&mut c, "h3").0), (120 / 15, 0.0));
    c.end(job, 0);
}

#[test]
fn memory_that_a_job_has_come_to_use_is_not_taken_away_twice() {
    let mut c = started(sharing(2, 4));
    let job = c.submit("ann", "-m h1 -R 'rusage[mem=600:scr=1]'");
    let other = c.submit("ann", "-m h1 -R 'rusage[scr=1]'");
    c.reservations_changed();
    assert_eq!(memory(&mut c, "h1"), (600.0, 9400.0));
    // what the host measures shows it with its next load
    c.uses(job, 250);
    assert_eq!((memory(&mut c, "h1"), c.reservations_changed()), ((600.0, 9400.0), (0, vec![])));
    c.load("h1", "mem=9750");
    assert_eq!(memory(&mut c, "h1"), (600.0, 9400.0));
    assert_eq!(c.reservations_changed().1, ["h1"]);
    // no more than it has reserved
    c.uses(job, 5000);
    c.load("h1", "mem=5000");
    assert_eq!(memory(&mut c, "h1"), (600.0, 5000.0));
    c.reservations_changed();
    // a job that reserves no memory
    c.uses(other, 100);
    c.load("h1", "mem=4900");
    assert_eq!(c.reservations_changed(), (0, vec![]));
}

#[test]
fn requirement_of_a_running_job_that_is_changed_is_reserved_from_then_on() {
    let mut c = started(sharing(2, 8).queue("normal", "PRIORITY=30").queue("night", "PRIORITY=20"));
    let job = c.submit("ann", "-m h1 -R 'rusage[mem=100]'");
    let array = c.submit("ann", "-m h1 -J 'a[1-3]' -R 'rusage[mem=20]'");
    assert_eq!(memory(&mut c, "h1").0, 160.0);
    c.reservations_changed();
    assert_eq!(c.modify("ann", job, &[ResReq], "-R 'rusage[mem=40]'"), 0);
    assert_eq!((memory(&mut c, "h1").0, c.reservations_changed()), (100.0, (2, vec!["h1".into()])));
    // every started element of an array that is changed as a whole
    assert_eq!(c.modify("ann", array, &[ResReq], "-R 'rusage[mem=5]'"), 0);
    assert_eq!(memory(&mut c, "h1").0, 55.0);
    assert_eq!(c.modify("ann", element(array, 2), &[ResReq], "-R 'rusage[mem=1]'"), 0);
    assert_eq!(memory(&mut c, "h1").0, 51.0);
    c.reservations_changed();
    c.switch("ann", job, "night");
    c.switch("ann", array, "night");
    assert_eq!((memory(&mut c, "h1").0, c.reservations_changed()), (51.0, (0, vec![])));
}

#[test]
fn requirement_given_to_a_whole_array_is_that_of_the_elements_started_by_then() {
    let site = sharing(1, 8).queue("normal", "PRIORITY=30").queue("night", "PRIORITY=20");
    let mut c = started(site);
    let array = c.submit("ann", "-J 'a[1-4]' -R 'rusage[mem=10]'");
    assert_eq!(memory(&mut c, "h1").0, 40.0);
    let rusage = |c: &mut Cluster, at: JobRef, mem: u32| {
        c.modify("ann", at, &[ResReq], &format!("-R 'rusage[mem={mem}]'"))
    };
    assert_eq!(rusage(&mut c, array, 20), 0);
    assert_eq!(memory(&mut c, "h1").0, 80.0);
    // an element that is changed by itself, and one that is started anew with what the queue adds
    assert_eq!(rusage(&mut c, element(array, 2), 1), 0);
    let site = sharing(1, 8).queue("normal", "PRIORITY=30; RES_REQ=rusage[scr=3]");
    c.reconfigure(site.queue("night", "PRIORITY=20"));
    c.loads("mem=10000 scr=1000");
    c.requeue("ann", element(array, 3));
    c.advance(120);
    let reserved = |c: &mut Cluster| (memory(c, "h1").0, own(c, "h1"));
    assert_eq!(reserved(&mut c), (61.0, "scr=3.0 ".to_owned()));
    // with a part of its own an element keeps what all were given
    c.switch("ann", element(array, 1), "night");
    assert_eq!(reserved(&mut c), (61.0, "scr=3.0 ".to_owned()));
    c.restart();
    c.loads("mem=10000 scr=1000");
    assert_eq!(reserved(&mut c), (61.0, "scr=3.0 ".to_owned()));
    // what is given to all goes to each part, also to those that were given something before
    assert_eq!(rusage(&mut c, array, 5), 0);
    assert_eq!(memory(&mut c, "h1").0, 20.0);
    c.accounted();
    c.end(element(array, 4), 0);
    assert_eq!(memory(&mut c, "h1").0, 15.0);
    let accounted = c.accounted();
    assert!(accounted[0].eff_res_req.contains("mem=5"), "{}", accounted[0].eff_res_req);
    let ended = c.column(element(array, 4), Col::EffectiveResReq);
    assert!(ended.as_str().unwrap().contains("mem=5"), "{ended}");
    assert_eq!(rusage(&mut c, array, 6), 0);
    let ended = c.column(element(array, 4), Col::EffectiveResReq);
    assert!(ended.as_str().unwrap().contains("mem=5"), "{ended}");
    c.restart();
    c.loads("mem=10000 scr=1000");
    assert_eq!(memory(&mut c, "h1").0, 18.0);
}

#[test]
fn reservations_after_a_restart_and_a_reconfiguration_are_those_of_the_jobs() {
    let mut c = started(sharing(2, 8));
    let stopped = c.submit("ann", "-m h2 -R 'rusage[mem=7:scr=3]'");
    c.submit("ann", "-m h1 -R 'rusage[mem=100:lic=2]'");
    c.submit("ann", "-m h1 -R 'rusage[mem=60:duration=1:decay=1]'");
    c.stop("ann", stopped);
    c.advance(30);
    let all = |c: &mut Cluster| {
        ["h1", "h2"].map(|host| (c.host(host).reserved, c.host(host).reserved_external))
    };
    let before = all(&mut c);
    assert_eq!((before[0].0[MEM], before[1].0[MEM]), (130.0, 7.0));
    c.restart();
    c.loads("mem=10000 scr=1000");
    assert_eq!(all(&mut c), before);
    // resources get other numbers, and hosts of their own
    let site = cluster().hosts(2, 8).resource("aaa Numeric 15 N");
    let site = site.resource("scr Numeric 15 N").resource("lic Numeric () N");
    let site = site.resource_map("lic (9@[h1] 9@[h2])").resource_map("scr [default]");
    c.reconfigure(site);
    assert_eq!([memory(&mut c, "h1").0, memory(&mut c, "h2").0], [130.0, 7.0]);
    assert_eq!([own(&mut c, "h1"), own(&mut c, "h2")], ["lic=2.0 ".to_owned(), String::new()]);
}

#[test]
fn job_that_goes_back_to_the_queue_gives_back_where_it_was() {
    let mut c = started(sharing(2, 1));
    let job = c.submit("ann", "-R 'rusage[mem=100]'");
    let first = c.running_on(job)[0].clone();
    c.badmin(&format!("hclose {first}"));
    c.reservations_changed();
    c.requeue("ann", job);
    let second = c.running_on(job)[0].clone();
    assert_ne!(first, second);
    assert_eq!((memory(&mut c, &first).0, memory(&mut c, &second).0), (0.0, 100.0));
    assert_eq!(c.reservations_changed().1, [first]);
}

#[test]
fn job_without_rusage_keeps_nothing() {
    let mut c = started(sharing(2, 4));
    let job = c.submit("ann", "-R 'select[mem>10] order[mem]'");
    assert_eq!((c.state(job).as_str(), c.reservations_changed()), ("RUN", (0, vec![])));
    assert!(!c.holds_reservation(job));
    let job = c.submit("ann", "-R 'rusage[mem=1]'");
    assert!(c.holds_reservation(job));
    c.end(job, 0);
    assert!(!c.holds_reservation(job));
}

#[test]
fn sums_of_parts_do_not_drift() {
    let mut c = started(sharing(1, 40));
    let jobs: Vec<JobRef> =
        (1..=40).map(|n| c.submit("ann", &format!("-R 'rusage[scr=0.{n:02}]'"))).collect();
    for job in jobs.iter().filter(|job| **job != jobs[9]) {
        c.end(*job, 0);
    }
    let load = c.host("h1").load.unwrap();
    assert_eq!(load.external, [("scr".to_owned(), "999.9".to_owned())]);
}

#[test]
fn audit_of_reservations_that_are_not_current_names_the_host_and_the_resource() {
    let mut c = started(sharing(2, 4));
    let job = c.submit("ann", "-m h2 -R 'rusage[mem=100]'");
    let told = c.uses_untold(job, 60).unwrap_err();
    assert!(told.starts_with("mem of h2: reserved (100.0, 100.0)"), "{told}");
    c.uses(job, 60);
    c.load("h2", "mem=9940");
    assert_eq!(memory(&mut c, "h2"), (100.0, 9900.0));
}

/// An event in the life of random jobs.
#[derive(Clone, Debug)]
enum Happening {
    Submit { slots: u32, requirement: usize },
    End(usize),
    Requeue(usize),
    Stop(usize),
    Resume(usize),
    Uses(usize, u64),
    Load(u32),
    Modify(usize, usize),
    Wait(u64),
    Restart,
}

const REQUIREMENTS: [&str; 8] = [
    "",
    "rusage[mem=100]",
    "rusage[mem=100/task:scr=0.1]",
    "rusage[mem=50/job:lic=1.5/task]",
    "rusage[lic=2:duration=1:decay=1,ut=0.5]",
    "rusage[mem=(90 20):duration=(10s 40s):decay=(1 0),scr=1/job]",
    "rusage[scr=3/host:duration=30s,r1m=1]",
    "rusage[tmp=5:swp=5:mem=0]",
];

fn happening() -> impl Strategy<Value = Happening> {
    let submit = (1..5u32, 0..REQUIREMENTS.len());
    let modify = (any::<usize>(), 0..REQUIREMENTS.len());
    prop_oneof![
        6 => submit.prop_map(|(slots, requirement)| Happening::Submit { slots, requirement }),
        2 => any::<usize>().prop_map(Happening::End),
        1 => any::<usize>().prop_map(Happening::Requeue),
        2 => any::<usize>().prop_map(Happening::Stop),
        2 => any::<usize>().prop_map(Happening::Resume),
        2 => (any::<usize>(), 0..200u64).prop_map(|(job, mem)| Happening::Uses(job, mem)),
        2 => (200..900u32).prop_map(Happening::Load),
        2 => modify.prop_map(|(job, requirement)| Happening::Modify(job, requirement)),
        2 => (0..40u64).prop_map(Happening::Wait),
        1 => Just(Happening::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..<_>::default() })]

    /// The builder compares after each step.
    #[test]
    fn random_jobs_leave_reservations_current(
        per_slot in any::<bool>(),
        all in prop::collection::vec(happening(), 1..60),
    ) {
        let site = sharing(4, 6).param("RESOURCE_RESERVE_PER_TASK = Y");
        let mut c = started(if per_slot { site } else { sharing(4, 6) });
        c.loads("tmp=1000 swp=1000");
        let mut running: Vec<JobRef> = Vec::new();
        for happening in all {
            let pick = |n: usize| (!running.is_empty()).then(|| running[n % running.len()]);
            match happening {
                Happening::Submit { slots, requirement } => {
                    let asks = REQUIREMENTS[requirement];
                    c.submit("ann", &format!("-n {slots} -R 'span[ptile=2] {asks}'"));
                }
                Happening::End(n) => pick(n).into_iter().for_each(|job| c.end(job, 0)),
                Happening::Requeue(n) => pick(n).into_iter().for_each(|job| c.requeue("ann", job)),
                Happening::Stop(n) => pick(n).into_iter().for_each(|job| c.stop("ann", job)),
                Happening::Resume(n) => pick(n).into_iter().for_each(|job| c.resume("ann", job)),
                Happening::Uses(n, mem) => pick(n).into_iter().for_each(|job| c.uses(job, mem)),
                Happening::Load(mem) => c.load("h1", &format!("mem={mem}")),
                Happening::Modify(n, requirement) => pick(n).into_iter().for_each(|job| {
                    let options = format!("-R '{}'", REQUIREMENTS[requirement]);
                    c.modify("ann", job, &[ResReq], &options);
                }),
                Happening::Wait(secs) => c.advance(secs),
                Happening::Restart => {
                    c.restart();
                    c.loads("");
                }
            }
            running.extend(c.started());
            running.retain(|job| ["RUN", "USUSP"].contains(&c.state(*job).as_str()));
        }
    }
}
