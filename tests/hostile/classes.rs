//! Very many pending jobs of one user with a requirement of their own each: others' jobs start as
//! promptly as without them, and mbatchd rests while nothing changes.

use super::site::MultiUserSite;
use std::time::{Duration, Instant};

/// Jobs with a requirement of their own: fewer for a binary that was not compiled for speed.
fn jobs() -> usize {
    if std::env::var_os("LSF_TEST_BIN").is_some() { 20_000 } else { 10_000 }
}

/// Jobs of one bsub -pack.
const PACK: usize = 2_000;
/// How long mbatchd is watched while nothing changes, and its largest share of a processor then.
const WATCHED: Duration = Duration::from_secs(4);
const SHARE: f64 = 0.25;
/// Clock ticks of a second in /proc/PID/stat.
const TICKS: f64 = 100.0;

/// Processor time of a process so far, seconds.
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let words: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |n: usize| words[n].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / TICKS
}

/// Seconds from the submission of a user's job to its end.
fn runs(site: &MultiUserSite, user: &str) -> f64 {
    let began = Instant::now();
    let said = site.run(user, "bsub -o /dev/null -K true");
    assert_eq!(said.code, 0, "{said:?}");
    began.elapsed().as_secs_f64()
}

/// The job that was submitted last.
fn last_job(site: &MultiUserSite) -> String {
    let said = site.ok("ann", "bjobs -noheader -o jobid | tail -1");
    said.trim().to_string()
}

#[test]
fn many_requirements_of_one_user_delay_no_other_user() {
    if !MultiUserSite::possible("many_requirements_of_one_user_delay_no_other_user") {
        return;
    }
    let site = MultiUserSite::up("classes", 1);
    runs(&site, "bob");
    let alone = runs(&site, "bob");
    let began = Instant::now();
    for pack in 0..jobs() / PACK {
        let line = |n| format!("-o /dev/null -R 'select[maxmem>{n}000000]' true\n");
        let text: String = (0..PACK).map(|n| line(10_000 + pack * PACK + n)).collect();
        site.write("pack", &text);
        let said =
            site.run("ann", &format!("bsub -pack {} > /dev/null", site.path("pack").display()));
        assert_eq!(said.code, 0, "{said:?}");
    }
    println!("submitted in {:?}", began.elapsed());
    let last = last_job(&site);
    let beside = runs(&site, "bob");
    println!("a job of another user: {alone:.2} s alone, {beside:.2} s beside");
    let (_, pid, _) = site.processes().into_iter().find(|p| p.0 == "mbatchd").unwrap();
    let (began, before) = (Instant::now(), cpu(pid));
    std::thread::sleep(WATCHED);
    let share = (cpu(pid) - before) / began.elapsed().as_secs_f64();
    println!("mbatchd takes {:.1}% of a processor", share * 100.0);
    // the user is told
    super::rig::wait_for("the reason of a job that had its turn", || {
        let said = site.ok("ann", &format!("bjobs -p {last}"));
        said.contains("resource requirements")
    });
    assert!(share < SHARE, "mbatchd takes {:.0}% of a processor", share * 100.0);
    // on a busy machine too
    assert!(beside < alone + 5.0, "{alone:.2} s alone, {beside:.2} s beside");
}
