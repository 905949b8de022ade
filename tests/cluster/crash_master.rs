//! Crash of the master: mbatchd is killed at named points and at random while clients submit.
//! Acknowledged IDs run exactly once, unacknowledged ones at most once, finished ones stay
//! finished.

use crate::rig::{Rig, job_id, wait_for};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Submissions over all clients.
const JOBS: usize = 2000;
const CLIENTS: usize = 4;
/// Kills at the named points (one each and more), then at random times.
const POINTS: [&str; 4] = ["before-append", "before-sync", "before-reply", "after-reply"];
const RANDOM_KILLS: usize = 16;

/// A pseudo-random sequence from the test's seed.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

fn kill_at_points(rig: &Rig, seed: &mut u64) -> usize {
    // The next mbatchd that starts reads the file named by LSF_CRASH_FILE once, takes it away,
    // and dies at the point it names.
    let file = rig.path("crash.at");
    let mut kills = 0;
    for point in POINTS {
        let n = 1 + next(seed) % 40;
        // one that answers has looked for the file: the next one finds it
        rig.ready();
        let before = rig.pid("mbatchd", "host1");
        let mut armed = None;
        std::fs::write(&file, format!("{point}:{n}")).unwrap();
        rig.kill9("mbatchd", "host1");
        wait_for("a new mbatchd", || {
            armed = rig.pid("mbatchd", "host1");
            armed.is_some() && armed != before
        });
        wait_for(&format!("the crash {point}"), || rig.pid("mbatchd", "host1") != armed);
        kills += 2;
    }
    kills
}

#[test]
fn acknowledged_jobs_run_exactly_once_over_crashes_of_the_master() {
    let mut seed = 0x5eed_0001u64;
    let rig = Rig::up("crash", 2);
    let ran = rig.path("ran");
    let acked = Mutex::new(Vec::new());
    let submitted = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let mut kills = 0;
    std::thread::scope(|s| {
        for _ in 0..CLIENTS {
            s.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    if submitted.fetch_add(1, Ordering::Relaxed) >= JOBS {
                        return;
                    }
                    let line = format!("echo $LSB_JOBID >> {}", ran.display());
                    let mut c = rig.cmd("bsub");
                    c.args(["-o", "/dev/null", &line]).env("LSB_NTRIES", "100");
                    let out = c.stderr(Stdio::null()).output().unwrap();
                    if let Some(id) = job_id(&String::from_utf8_lossy(&out.stdout)) {
                        acked.lock().unwrap().push(id);
                    }
                }
            });
        }
        kills += kill_at_points(&rig, &mut seed);
        while kills < POINTS.len() * 2 + RANDOM_KILLS && submitted.load(Ordering::Relaxed) < JOBS {
            std::thread::sleep(Duration::from_millis(50 + next(&mut seed) % 600));
            kills += usize::from(rig.kill9("mbatchd", "host1"));
        }
    });
    stop.store(true, Ordering::Relaxed);
    assert!(kills >= 20, "only {kills} kills");
    rig.ready();
    wait_for("all jobs to end", || {
        rig.run("bjobs", &["-u", "all"]).err == "No unfinished job found\n"
    });
    let acked = acked.into_inner().unwrap();
    assert!(acked.len() >= JOBS * 9 / 10, "only {} of {JOBS} were answered", acked.len());
    let mut times: BTreeMap<u32, usize> = BTreeMap::new();
    for line in rig.read("ran").lines() {
        *times.entry(line.trim().parse().unwrap()).or_default() += 1;
    }
    let lost: Vec<_> = acked.iter().filter(|id| !times.contains_key(id)).collect();
    assert!(lost.is_empty(), "acknowledged and never run: {lost:?}");
    let twice: Vec<_> = times.iter().filter(|(_, n)| **n > 1).collect();
    assert!(twice.is_empty(), "run more than once: {twice:?}");
    let mut unique = acked.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), acked.len(), "an ID was answered twice");
    rig.kill9("mbatchd", "host1");
    rig.ready();
    let out = rig.ok("bjobs", &["-a", "-noheader", "-o", "jobid stat"]);
    let done = out.lines().filter(|l| l.ends_with(" DONE")).count();
    assert!(done >= acked.len(), "{done} of {} are still DONE", acked.len());
}
