//! Submissions over kept connections, as a program that links the client would make them.

use lsf::cli::client::{self, Client};
use lsf::cli::site::{self, Around, LocalSite};
use lsf::model::ByteStr;
use lsf::model::job::JobSpec;
use lsf::proto::client::{ClientMsg, Submit};
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Kept connections.
pub const CONNECTIONS: usize = 64;
/// Bytes of the environment that each submission carries.
pub const ENVIRONMENT: usize = 4096;

static REQUEST: AtomicU64 = AtomicU64::new(0);

/// The cluster in this directory.
pub fn cluster(dir: &Path) -> Option<LocalSite> {
    let envdir = Some(dir.join("conf").into_os_string());
    site::find_from(&Around { envdir, ..Around::process() }).ok()
}

/// A connection to its mbatchd.
pub fn connect(site: &LocalSite) -> Option<Client> {
    client::mbatchd(site, &mut std::io::sink()).ok()
}

fn environment() -> ByteStr {
    let mut env = Vec::new();
    while env.len() < ENVIRONMENT {
        env.extend_from_slice(format!("BENCH_{}=some value of a variable\0", env.len()).as_bytes());
    }
    env.truncate(ENVIRONMENT - 1);
    env.push(0);
    ByteStr(env)
}

/// A submission with a request number of its own.
pub fn submission(command: &str, queue: &str, dir: &Path) -> Submit {
    let n = REQUEST.fetch_add(1, Ordering::Relaxed);
    let dir = dir.to_string_lossy().into_owned();
    let spec = JobSpec {
        command: command.into(),
        queue: queue.into(),
        cwd: dir.as_str().into(),
        out_file: "/dev/null".into(),
        umask: 0o22,
        ..JobSpec::default()
    };
    let request = format!("bench-{}-{n}", std::process::id());
    Submit { request, spec, env: environment(), ..Submit::default() }
}

/// Submits one job; its ID.
pub fn submit(client: &mut Client, command: &str, queue: &str, dir: &Path) -> Option<u32> {
    match client.submit(submission(command, queue, dir), &mut std::io::sink()) {
        Ok(ClientMsg::Submitted { job, .. }) => Some(job),
        _ => None,
    }
}

/// Submits `count` jobs over 64 connections made before; jobs acknowledged, and the time.
pub fn storm(
    site: &LocalSite,
    dir: &Path,
    queue: &str,
    count: u64,
    limit: Duration,
) -> (u64, Duration) {
    let (taken, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    let barrier = Barrier::new(CONNECTIONS + 1);
    let mut took = Duration::ZERO;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                scope.spawn(|| {
                    let client = connect(site);
                    barrier.wait();
                    let Some(mut client) = client else { return };
                    while !stop.load(Ordering::Relaxed)
                        && taken.fetch_add(1, Ordering::Relaxed) < count
                        && submit(&mut client, "/bin/true", queue, dir).is_some()
                    {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        barrier.wait();
        let from = Instant::now();
        while threads.iter().any(|t| !t.is_finished()) {
            if from.elapsed() > limit {
                stop.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        took = from.elapsed();
    });
    (done.load(Ordering::Relaxed), took)
}
