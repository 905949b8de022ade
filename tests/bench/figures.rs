//! The figures of the cluster, each bounded in time: what does not come is "not reached".

use super::kept::{self, CONNECTIONS};
use super::limits;
use super::procs;
use super::rig::{Rig, alive, job_id};
use super::table::{Figure, FigureTable, Unit, ms};
use super::{RUNS, shells};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Jobs that are pending when listings, restart and memory are measured.
pub const PENDING: u64 = 20_000;
/// Elements of the array.
pub const ELEMENTS: u64 = 10_000;
/// Lines of a file of submissions.
const PACK: u64 = 10_000;
/// Single jobs from four shells.
const SINGLES: u64 = 2_000;
/// Job slots of the host.
pub const SLOTS: u32 = 32;
/// Length of a run in which nothing happens.
const IDLE: Duration = Duration::from_secs(5);
/// Longest time of one step.
const STEP: Duration = Duration::from_secs(60);

/// The machine's own figures, which the others are compared with.
pub struct Machine {
    pub spawn: Figure,
    pub shells: Figure,
    pub trips: Figure,
}

/// Gives a cluster the slots and the array size of the bench.
pub fn prepare(rig: &Rig) {
    let dir = rig.configdir();
    let hosts = format!("Begin Host\nHOST_NAME MXJ\ndefault {SLOTS}\nEnd Host\n");
    std::fs::write(dir.join("lsb.hosts"), hosts).unwrap();
    let path = dir.join("lsb.params");
    let text = std::fs::read_to_string(&path).unwrap();
    let kept = text.lines().filter(|l| !l.starts_with("MAX_JOB_ARRAY_SIZE"));
    let mut text: String = kept.map(|l| format!("{l}\n")).collect();
    let more = "MAX_JOB_ARRAY_SIZE = 1000001\nMAX_JOBID = 99999999\nEnd Parameters";
    text = text.replace("End Parameters", more);
    std::fs::write(&path, text).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
}

/// Submissions while nothing is dispatched; leaves [`PENDING`] jobs if all goes well.
pub fn submissions(rig: &Rig, table: &mut FigureTable, machine: &Machine) {
    rig.ok("badmin", &["qinact", "all"]);
    let each = || {
        let from = Instant::now();
        for _ in 0..100 {
            let out = rig.cmd("bsub").args(["-o", "/dev/null", "/bin/true"]).output().ok()?;
            job_id(&String::from_utf8_lossy(&out.stdout))?;
            if from.elapsed() > STEP {
                return None;
            }
        }
        Some(ms(from.elapsed()) / 100.0)
    };
    let runs: Vec<f64> = (0..RUNS).map_while(|_| each()).collect();
    let name = "bsub, one after the other, idle cluster";
    table.add(Figure::new(name, Unit::Ms, runs), Some(machine.spawn.clone()));

    let bsub = "bsub -o /dev/null /bin/true";
    let four = || shells(bsub, 250, |c| rig.dress(c), STEP);
    let runs: Vec<f64> = (0..RUNS).map_while(|_| four()).collect();
    let name = "submissions from 4 shells";
    table.add(Figure::new(name, Unit::PerSec, runs), Some(machine.shells.clone()));

    empty(rig);
    packs(rig, table, machine);
    empty(rig);
    let runs = kept_submissions(rig);
    let name = format!("submissions over {CONNECTIONS} kept connections, 4 KB env");
    table.add(Figure::new(name, Unit::PerSec, runs), Some(machine.trips.clone()));
}

/// `bsub -pack`: many submissions of one command.
fn packs(rig: &Rig, table: &mut FigureTable, machine: &Machine) {
    let file = rig.path("pack");
    let lines = "-o /dev/null /bin/true\n".repeat(PACK as usize);
    if std::fs::write(&file, lines).is_err() {
        return;
    }
    let one = || {
        let from = Instant::now();
        let out = rig.cmd("bsub").arg("-pack").arg(&file).output().ok()?;
        let took = from.elapsed().as_secs_f64();
        let said = String::from_utf8_lossy(&out.stdout).into_owned()
            + &String::from_utf8_lossy(&out.stderr);
        let all = format!("{PACK} jobs submitted");
        (out.status.success() && said.contains(&all)).then(|| PACK as f64 / took)
    };
    let runs: Vec<f64> = (0..RUNS).map_while(|_| one()).collect();
    let name = format!("bsub -pack of {PACK} lines");
    table.add(Figure::new(name, Unit::PerSec, runs), Some(machine.trips.clone()));
}

fn kept_submissions(rig: &Rig) -> Vec<f64> {
    let Some(site) = kept::cluster(&rig.dir) else { return Vec::new() };
    let mut runs = Vec::new();
    for n in 0..RUNS as u64 {
        let count = PENDING * (n + 1) / RUNS as u64 - PENDING * n / RUNS as u64;
        let (done, took) = kept::storm(&site, &rig.dir, "", count, STEP / 2);
        if done < count {
            eprintln!("  only {done} of {count} were taken in {took:?}");
            break;
        }
        runs.push(done as f64 / took.as_secs_f64());
    }
    runs
}

/// mbatchd's memory and its log, bytes.
pub struct Memory {
    pub resident: f64,
    pub log: f64,
}

impl Memory {
    pub fn of(rig: &Rig) -> Option<Memory> {
        let resident = procs::resident(rig.pid("mbatchd", "host1")?)?;
        let log = std::fs::metadata(rig.logdir().join("lsb.events")).ok()?.len() as f64;
        Some(Memory { resident, log })
    }
}

/// Processor time of all idle daemons, % of one processor.
fn idle(rig: &Rig, table: &mut FigureTable) {
    // the last answers are out, the log is synced
    std::thread::sleep(Duration::from_secs(2));
    let used = || rig.pid("launcher", "host1").map(procs::family_cpu);
    let one = || {
        let (before, from) = (used()?, Instant::now());
        std::thread::sleep(IDLE);
        Some((used()? - before) * 100.0 / from.elapsed().as_secs_f64())
    };
    let runs: Vec<f64> = (0..RUNS).map_while(|_| one()).collect();
    let name = format!("idle, {PENDING} pending: CPU of all daemons");
    table.add(Figure::new(name, Unit::Percent, runs), None);
}

/// Listings of what [`submissions`] left, and a restart over it.
pub fn listings(rig: &Rig, table: &mut FigureTable, machine: &Machine) {
    let listing = rig.path("listing");
    let one = |args: &[&str]| {
        let out = File::create(&listing).ok()?;
        let from = Instant::now();
        let status = rig.cmd("bjobs").args(args).stdout(out).stderr(Stdio::null()).status().ok()?;
        let took = ms(from.elapsed());
        status.success().then_some(took)
    };
    let all: Vec<f64> = (0..RUNS).filter_map(|_| one(&["-u", "all"])).collect();
    let lines = std::fs::read_to_string(&listing).unwrap_or_default().lines().count();
    let all = if lines as u64 > PENDING { all } else { Vec::new() };
    let cat =
        limits::spawn("cat of the same text", Path::new("/bin/cat"), &[&listing.to_string_lossy()]);
    table.add(Figure::new(format!("bjobs -u all of {PENDING} pending"), Unit::Ms, all), Some(cat));
    let last = last_job(&listing);
    let single = || (0..20).filter_map(|_| one(&[&last])).collect::<Vec<f64>>();
    let name = format!("bjobs ID beside {PENDING} pending");
    table.add(Figure::new(name, Unit::Ms, single()), Some(machine.spawn.clone()));

    idle(rig, table);
    let (rate, time) = limits::scan(&rig.logdir().join("lsb.events"));
    table.limit(rate);
    let runs: Vec<f64> = (0..RUNS).map_while(|_| restart(rig)).collect();
    let name = format!("restart with {PENDING} pending, kill -9 to answer");
    table.add(Figure::new(name, Unit::Ms, runs), Some(time));
}

fn last_job(listing: &Path) -> String {
    let text = std::fs::read_to_string(listing).unwrap_or_default();
    text.lines().last().and_then(|l| l.split_whitespace().next()).unwrap_or("1").to_owned()
}

/// Kills mbatchd and asks until it answers.
pub fn restart(rig: &Rig) -> Option<f64> {
    let pid = rig.pid("mbatchd", "host1")?;
    let site = kept::cluster(&rig.dir)?;
    let from = Instant::now();
    super::rig::kill(pid, 9);
    while alive(pid) {
        std::thread::yield_now();
    }
    while from.elapsed() < STEP / 2 {
        let patience = lsf::cli::client::Patience::of(&site).once();
        let mut quiet = std::io::sink();
        let call = lsf::cli::client::Client::dial(&site, lsf::proto::Daemon::Mbatchd, patience);
        let ask = lsf::proto::Msg::Client(lsf::proto::client::ClientMsg::Params);
        if call.is_ok_and(|mut c| c.call(&ask, &mut quiet).is_ok()) {
            let took = ms(from.elapsed());
            // the launcher starts a daemon that has stayed up a while at once
            std::thread::sleep(Duration::from_millis(1500));
            return Some(took);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

/// Kills everything pending.
pub fn empty(rig: &Rig) {
    let until = Instant::now() + STEP;
    let _ = rig.run("bkill", &["-u", "all", "0"]);
    while Instant::now() < until {
        let out = rig.run("bqueues", &[]).out;
        let jobs = out.lines().skip(1).map(|l| l.split_whitespace().nth(7).unwrap_or("?"));
        if jobs.clone().count() > 0 && jobs.clone().all(|n| n == "0") {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    eprintln!("  jobs are left that should have been killed");
}

/// Ends of jobs, counted in lsb.acct.
struct Ends {
    file: PathBuf,
    at: u64,
}

impl Ends {
    fn from_now(rig: &Rig) -> Ends {
        let file = rig.logdir().join("lsb.acct");
        let at = std::fs::metadata(&file).map_or(0, |m| m.len());
        Ends { file, at }
    }

    /// Waits for so many; the time since `from`.
    fn wait(&mut self, count: u64, from: Instant, limit: Duration) -> Option<Duration> {
        let seen = self.seen(count, from, limit);
        if seen < count {
            eprintln!("  only {seen} of {count} had ended after {limit:?}");
            return None;
        }
        Some(from.elapsed())
    }

    /// How many have ended when it was so many, or `limit` after `from`.
    fn seen(&mut self, count: u64, from: Instant, limit: Duration) -> u64 {
        let mut seen = 0;
        while seen < count && from.elapsed() < limit {
            let mut text = Vec::new();
            if let Ok(mut file) = File::open(&self.file) {
                let _ = file.seek(SeekFrom::Start(self.at));
                let _ = file.read_to_end(&mut text);
            }
            self.at += text.len() as u64;
            seen += text.iter().filter(|b| **b == b'\n').count() as u64;
            std::thread::sleep(Duration::from_millis(2));
        }
        seen
    }
}

/// Jobs from submission to end.
pub fn work(rig: &Rig, table: &mut FigureTable, machine: &Machine) {
    rig.ok("badmin", &["qact", "all"]);
    first_instruction(rig, table, machine);
    let singles = || {
        let (mut ends, from) = (Ends::from_now(rig), Instant::now());
        shells("bsub -o /dev/null /bin/true", (SINGLES / 4) as u32, |c| rig.dress(c), STEP)?;
        let took = ends.wait(SINGLES, from, STEP)?;
        Some(SINGLES as f64 / took.as_secs_f64())
    };
    let runs: Vec<f64> = (0..RUNS).map_while(|_| singles()).collect();
    let name = format!("{SINGLES} single jobs from 4 shells, submit to done");
    table.add(Figure::new(name, Unit::PerSec, runs), Some(machine.shells.clone()));
    array(rig, table, Some(machine.shells.clone()), "submit to done");
}

/// An array of /bin/true from submission to end.
pub fn array(rig: &Rig, table: &mut FigureTable, limit: Option<Figure>, how: &str) {
    let runs: Vec<f64> = (0..RUNS).map_while(|_| array_once(rig, &[])).collect();
    table.add(Figure::new(format!("array of {ELEMENTS} jobs, {how}"), Unit::PerSec, runs), limit);
}

/// Jobs a second of one array within this time; what is left of it is killed.
pub fn array_for(rig: &Rig, limit: Duration) -> Option<f64> {
    let name = format!("true[1-{}]", ELEMENTS * 10);
    let (mut ends, from) = (Ends::from_now(rig), Instant::now());
    let id = job_id(&rig.run("bsub", &["-J", &name, "-o", "/dev/null", "/bin/true"]).out)?;
    let count = ends.seen(ELEMENTS * 10, from, limit);
    let rate = count as f64 / from.elapsed().as_secs_f64();
    let _ = rig.run("bkill", &[&id.to_string()]);
    let _ = rig.run("bwait", &["-t", "1", "-w", &format!("ended({id})")]);
    Some(rate)
}

/// Jobs a second of one array, which is submitted with these options.
pub fn array_once(rig: &Rig, options: &[&str]) -> Option<f64> {
    let name = format!("true[1-{ELEMENTS}]");
    let (mut ends, from) = (Ends::from_now(rig), Instant::now());
    let own = ["-J", &name, "-o", "/dev/null"];
    let said = rig.run("bsub", &[options, &own, &["/bin/true"]].concat());
    if job_id(&said.out).is_none() {
        eprintln!("  bsub: {}{}", said.out, said.err);
        return None;
    }
    let took = ends.wait(ELEMENTS, from, STEP)?;
    Some(ELEMENTS as f64 / took.as_secs_f64())
}

/// Arrays one after the other, for so long; jobs a second in each minute.
pub fn long(rig: &Rig, table: &mut FigureTable, limit: Figure, time: Duration) {
    let (from, mut minutes, mut ended) = (Instant::now(), Vec::new(), 0);
    let (mut at, mut resident) = (from, Vec::new());
    while from.elapsed() < time && array_once(rig, &[]).is_some() {
        ended += ELEMENTS;
        if at.elapsed() >= Duration::from_secs(60).min(time) {
            minutes.push(ended as f64 / at.elapsed().as_secs_f64());
            resident.extend(Memory::of(rig).map(|m| m.resident));
            eprintln!("  minute {}: {:.0} jobs/s", minutes.len(), minutes[minutes.len() - 1]);
            (at, ended) = (Instant::now(), 0);
        }
    }
    let how = format!("arrays of {ELEMENTS} jobs for {} s", from.elapsed().as_secs());
    let least = minutes.iter().copied().reduce(f64::min).into_iter().collect();
    table.add(Figure::new(how, Unit::PerSec, minutes), Some(limit.clone()));
    table.add(Figure::new("its slowest minute", Unit::PerSec, least), Some(limit));
    table.add(Figure::new("memory of mbatchd meanwhile", Unit::Bytes, resident), None);
}

/// The time until a job's first instruction, told through a FIFO.
fn first_instruction(rig: &Rig, table: &mut FigureTable, machine: &Machine) {
    let fifo = rig.path("first");
    let made = Command::new("mkfifo").arg(&fifo).status();
    let told = listen(fifo.clone());
    let command = format!("echo >{}", fifo.display());
    let mut by_bsub = Vec::new();
    let mut by_call = Vec::new();
    let connection = kept::cluster(&rig.dir).and_then(|site| kept::connect(&site));
    if let (Ok(_), Some(mut client)) = (made, connection) {
        for _ in 0..20 {
            let from = Instant::now();
            let said = rig.run("bsub", &["-o", "/dev/null", &command]);
            let Some(_) = job_id(&said.out) else { break };
            let Some(at) = heard(&told) else { break };
            by_bsub.push(ms(at - from));
            let from = Instant::now();
            let Some(_) = kept::submit(&mut client, &command, "", &rig.dir) else { break };
            let Some(at) = heard(&told) else { break };
            by_call.push(ms(at - from));
        }
    }
    let limit = || Some(machine.spawn.clone());
    table.add(
        Figure::new("start of bsub to the job's first instruction", Unit::Ms, by_bsub),
        limit(),
    );
    let name = "submission over a kept connection to the same";
    table.add(Figure::new(name, Unit::Ms, by_call), limit());
    // the listener ends when somebody writes `end`
    let _ = std::fs::OpenOptions::new().write(true).open(&fifo).map(|mut f| {
        use std::io::Write;
        f.write_all(b"end\n")
    });
}

fn heard(told: &Receiver<Instant>) -> Option<Instant> {
    told.recv_timeout(Duration::from_secs(10)).ok()
}

fn listen(fifo: PathBuf) -> Receiver<Instant> {
    let (tx, rx) = channel();
    std::thread::spawn(move || {
        // kept open for writing too, so that it never sees an end
        let both = std::fs::OpenOptions::new().read(true).write(true).open(&fifo);
        let Ok(mut both) = both else { return };
        let mut buf = [0u8; 64];
        while let Ok(n) = both.read(&mut buf) {
            if buf[..n].starts_with(b"end") || tx.send(Instant::now()).is_err() {
                return;
            }
        }
    });
    rx
}
