//! Whole clusters in virtual time with faults: fixed seeds here, fresh ones in `make soak`
//! (LSF_SOAK_SECS), one again by LSF_SIM_SEED (with LSF_SIM_LARGE=1 for the large scale).

use lsf::sim::{Failure, Scale, Stats, run};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Seeds of three hosts and 50 jobs.
const SMALL_SEEDS: u64 = 980;
/// Seeds of 50 hosts and 5,000 jobs.
const LARGE_SEEDS: u64 = 20;

fn add(sum: &mut Stats, s: Stats) {
    sum.events += s.events;
    sum.virtual_secs += s.virtual_secs;
    sum.acknowledged += s.acknowledged;
    sum.faults += s.faults;
    sum.unknown_ends += s.unknown_ends;
}

/// Runs seeds on both cores; the first failure wins and is printed with its seed.
fn run_seeds(seeds: std::ops::Range<u64>, scale: Scale) -> Result<Stats, Failure> {
    let next = AtomicU64::new(seeds.start);
    let result: Mutex<(Stats, Option<Failure>)> = Mutex::default();
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || result.lock().unwrap().1.is_some() {
                        return;
                    }
                    match run(seed, scale) {
                        Ok(stats) => add(&mut result.lock().unwrap().0, stats),
                        Err(f) => {
                            result.lock().unwrap().1.get_or_insert(f);
                        }
                    }
                }
            });
        }
    });
    match result.into_inner().unwrap() {
        (_, Some(f)) => Err(f),
        (stats, None) => Ok(stats),
    }
}

fn check(seeds: std::ops::Range<u64>, scale: Scale) {
    let begin = Instant::now();
    match run_seeds(seeds, scale) {
        Ok(s) => println!("{s:?} in {:.1} s", begin.elapsed().as_secs_f64()),
        Err(f) => panic!("{f}\nreplay: LSF_SIM_SEED={} cargo test --test sim replay", f.seed),
    }
}

#[test]
fn small_clusters_with_faults() {
    check(0..SMALL_SEEDS, Scale::SMALL);
}

#[test]
fn large_clusters_with_faults() {
    check(0..LARGE_SEEDS, Scale::LARGE);
}

#[test]
fn replay() {
    let Ok(seed) = std::env::var("LSF_SIM_SEED") else { return };
    let seed: u64 = seed.parse().expect("LSF_SIM_SEED is a number");
    let large = std::env::var_os("LSF_SIM_LARGE").is_some();
    check(seed..seed + 1, if large { Scale::LARGE } else { Scale::SMALL });
}

#[test]
fn soak() {
    let Ok(secs) = std::env::var("LSF_SOAK_SECS") else { return };
    let end = Instant::now() + Duration::from_secs(secs.parse().expect("seconds"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut seed = now.as_secs() << 20;
    while Instant::now() < end {
        check(seed..seed + 20, Scale::SMALL);
        check(seed..seed + 1, Scale::LARGE);
        seed += 20;
    }
}
