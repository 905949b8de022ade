//! Interactive batch jobs beside remote tasks, and the measuring of jobs that run.

use super::RUNS;
use super::procs;
use super::rig::{Rig, job_id};
use super::table::{Figure, FigureTable, Unit, ms};
use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Bytes that go out of a job.
const BYTES: u64 = 1 << 30;
/// Shells that are started one after the other for one run.
const SHELLS: u32 = 10;
/// Jobs that run at once when their measuring is measured.
const JOBS: u32 = 1000;
/// The time of one run of that: two looks at the jobs at the default SBD_SLEEP_TIME.
const WATCHED: Duration = Duration::from_secs(60);
/// Runs of it.
const WATCHES: usize = 2;
/// Longest time for all jobs to run.
const START: Duration = Duration::from_secs(120);

/// The time until a shell on a pseudo-terminal shows its prompt; its end is waited for as well.
fn prompt(rig: &Rig, words: &[&str]) -> Option<f64> {
    let mut c = rig.cmd(words[0]);
    c.args(&words[1..]).args(["bash", "--norc", "--noprofile", "-i"]);
    c.env("PS1", "ready: ").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let from = Instant::now();
    let mut child = c.spawn().ok()?;
    let mut out = child.stdout.take()?;
    let (mut seen, mut chunk) = (Vec::new(), [0u8; 4096]);
    while !seen.windows(7).any(|w| w == b"ready: ") {
        let n = out.read(&mut chunk).ok().filter(|n| *n > 0)?;
        seen.extend_from_slice(&chunk[..n]);
    }
    let total = ms(from.elapsed());
    child.stdin.take()?.write_all(b"exit\n").ok()?;
    let _ = out.read_to_end(&mut seen);
    child.wait().ok().filter(|status| status.success())?;
    Some(total)
}

/// Means of the prompts of both commands. They alternate: the two are compared, and what else the
/// machine does changes from second to second.
fn prompts(rig: &Rig, first: &[&str], second: &[&str]) -> Option<(f64, f64)> {
    let mut total = (0.0, 0.0);
    for _ in 0..SHELLS {
        total = (total.0 + prompt(rig, first)?, total.1 + prompt(rig, second)?);
    }
    Some((total.0 / f64::from(SHELLS), total.1 / f64::from(SHELLS)))
}

/// The time for a gigabyte out of a command.
fn out_of(rig: &Rig, words: &[&str]) -> Option<f64> {
    let mut c = rig.cmd(words[0]);
    let bytes = BYTES.to_string();
    c.args(&words[1..]).args(["head", "-c", &bytes, "/dev/zero"]).env("BSUB_QUIET", "1");
    let from = Instant::now();
    c.stdout(File::create("/dev/null").ok()?).stderr(Stdio::null());
    c.status().ok().filter(|status| status.success())?;
    Some(ms(from.elapsed()))
}

/// `bsub -I` and `-Is` beside lsrun.
pub fn measure(rig: &Rig, table: &mut FigureTable) {
    while rig.run("lsrun", &["-L", "-m", "host1", "true"]).code != 0 {
        std::thread::sleep(Duration::from_millis(50));
    }
    let runs = |one: &dyn Fn() -> Option<f64>| (0..RUNS).map_while(|_| one()).collect();
    let (remote, batch) = (["lsrun", "-P", "-L", "-m", "host1"], ["bsub", "-Is"]);
    let both = (0..RUNS).map_while(|_| prompts(rig, &remote, &batch));
    let (lsrun, bsub): (Vec<f64>, Vec<f64>) = both.unzip();
    let limit = table.limit(Figure::new("lsrun -P bash to its prompt", Unit::Ms, lsrun));
    table.add(Figure::new("bsub -Is bash to its prompt", Unit::Ms, bsub), Some(limit));
    let lsrun = runs(&|| out_of(rig, &["lsrun", "-L", "-m", "host1"]));
    let limit = table.limit(Figure::new("1 GB out of lsrun, for bsub -I", Unit::Ms, lsrun));
    let bsub = runs(&|| out_of(rig, &["bsub", "-I"]));
    table.add(Figure::new("1 GB out of bsub -I", Unit::Ms, bsub), Some(limit));
}

/// The processor time of the daemons of a host with many running jobs, % of one processor: the
/// measuring of the jobs, and little besides while none begins or ends.
pub fn usage(rig: &Rig, table: &mut FigureTable) {
    let dir = rig.configdir();
    let hosts = format!("Begin Host\nHOST_NAME MXJ\ndefault {JOBS}\nEnd Host\n");
    if std::fs::write(dir.join("lsb.hosts"), hosts).is_err() {
        return;
    }
    // the default, which the file of a personal cluster replaces
    let params = dir.join("lsb.params");
    let text = std::fs::read_to_string(&params).unwrap_or_default();
    let kept = text.lines().filter(|l| !l.starts_with("SBD_SLEEP_TIME"));
    let text: String = kept.flat_map(|l| [l, "\n"]).collect();
    if std::fs::write(&params, text).is_err() {
        return;
    }
    rig.ok("badmin", &["reconfig", "-f"]);
    let out = rig.ok("bsub", &["-J", &format!("u[1-{JOBS}]"), "-o", "/dev/null", "sleep 3600"]);
    let job = job_id(&out).unwrap_or(0).to_string();
    let from = Instant::now();
    let running = || {
        let out = rig.run("bjobs", &["-noheader", "-r", "-o", "stat", &job]).out;
        out.lines().filter(|l| *l == "RUN").count()
    };
    while running() < JOBS as usize && from.elapsed() < START {
        std::thread::sleep(Duration::from_secs(1));
    }
    let all = running() == JOBS as usize;
    let daemons = ["sbatchd", "launcher", "mbatchd"];
    let pids: Vec<u32> = daemons.iter().filter_map(|name| rig.pid(name, "host1")).collect();
    // what the starts leave to be done
    std::thread::sleep(Duration::from_secs(5));
    let used = || pids.iter().map(|pid| procs::own_cpu(*pid)).sum::<f64>();
    let one = || {
        let (before, from) = (used(), Instant::now());
        std::thread::sleep(WATCHED);
        all.then(|| (used() - before) * 100.0 / from.elapsed().as_secs_f64())
    };
    let runs = (0..WATCHES).map_while(|_| one()).collect();
    let name = format!("{JOBS} running jobs: CPU of sbatchd, launcher, mbatchd");
    table.add(Figure::new(name, Unit::Percent, runs), None);
    rig.run("bkill", &["-r", &job]);
}
