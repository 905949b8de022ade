//! The commands of the load balancer in a real cluster of one host: a query from the shell, and a
//! request from its submission until its JOB_SWITCH is on the disk.

use super::super::rig::{self, Rig, Said, job_id};
use super::super::table::{Figure, FigureTable, Unit, ms};
use super::super::{Guard, RUNS};
use super::server::HOSTS;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Commands and requests of which the time is taken one by one.
const SINGLE: usize = 5 * RUNS;
/// Longest time of one request.
const LIMIT: Duration = Duration::from_secs(10);
/// Pause between two looks at the log.
const LOOK: Duration = Duration::from_micros(200);

/// A cluster with a server that knows of many hosts, and a pipe queue.
fn cluster() -> Result<Rig, String> {
    let rig = Rig::up("bench-nlb", 1);
    rig.down();
    let mut up = Command::new(rig::binary());
    up.args(["up", "--nlb", "--dir"]).arg(&rig.dir).env_remove("LSF_ENVDIR").stdin(Stdio::null());
    let said = up.output().map(Said::from).map_err(|e| e.to_string())?;
    if said.code != 0 {
        return Err(said.err);
    }
    rig.ready();
    let begun = Instant::now();
    while rig.run("nlbpolicy", &["-p", "nqs"]).code != 0 {
        if begun.elapsed() > LIMIT {
            return Err("no NLB server answers".to_owned());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let map = rig.ok("nlbconfig", &["-mdump", "-t", "NLB"]);
    let own = "map NLB = 1024 {\nNLB_SITE_A \"\" float(8192);\nNLB_SITE_B \"\" float(8193);";
    rig.write("map", &map.replacen("map NLB = 1024 {", own, 1));
    rig.ok("nlbconfig", &["-mput", "map"]);
    let object = |n: usize| {
        let (a, b) = (super::server::some(n, 1), super::server::some(n, 2));
        format!("object NLB (n{n:05}) {{ NLB_SITE_A = {a:.6}; NLB_SITE_B = {b:.6}; }}\n")
    };
    rig.write("objects", &(0..HOSTS).map(object).collect::<String>());
    rig.ok("nlbconfig", &["-oupdat", "objects"]);
    let policies = "policy: nqs\nconstraint: exists(NLB_QUEUE_NAME)\nsort: NLB_IDLECPU\n\
                    policy: bench\nconstraint: NLB_SITE_A > 0.1 && exists(NLB_SITE_B)\n\
                    sort: NLB_SITE_A * NLB_SITE_B\n";
    rig.write("work/personal/nqe/nlbdir/policies", policies);
    rig.ok("nlbconfig", &["-pol"]);
    rig.ok("qmgr", &["create pipe_queue pipe server=(pipeclient CRI_DS nqs)"]);
    // what is routed waits there
    rig.ok("qmgr", &["stop queue normal"]);
    Ok(rig)
}

/// A command so often, milliseconds each.
fn commands(rig: &Rig, applet: &str, args: &[&str], lines: usize) -> Result<Vec<f64>, String> {
    let one = |_| {
        let from = Instant::now();
        let said = rig.run(applet, args);
        let took = ms(from.elapsed());
        match said.out.lines().count() {
            n if said.code == 0 && n >= lines => Ok(took),
            n => Err(format!("{applet}: {n} lines, {}", said.err)),
        }
    };
    (0..SINGLE).map(one).collect()
}

/// Submissions to a queue, each until a record of this kind is in the log; milliseconds.
fn recorded(rig: &Rig, queue: &str, record: &str) -> Result<Vec<f64>, String> {
    let path = rig.logdir().join("lsb.events");
    let one = |_| {
        let told = |e: std::io::Error| format!("lsb.events: {e}");
        let mut log = File::open(&path).map_err(told)?;
        log.seek(SeekFrom::End(0)).map_err(told)?;
        let (from, mut text) = (Instant::now(), String::new());
        let said = rig.run("bsub", &["-q", queue, "-o", "/dev/null", "true"]);
        let job = job_id(&said.out).ok_or(said.err)?;
        let is = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            words[0] == format!("\"{record}\"") && words.contains(&job.to_string().as_str())
        };
        loop {
            log.read_to_string(&mut text).map_err(told)?;
            if text.lines().any(is) {
                return Ok(ms(from.elapsed()));
            }
            if from.elapsed() > LIMIT {
                return Err(format!("no {record} of job {job} in {LIMIT:?}"));
            }
            std::thread::sleep(LOOK);
        }
    };
    // the first has the policy asked
    (0..=SINGLE).map(one).collect::<Result<Vec<_>, _>>().map(|all| all[1..].to_vec())
}

pub fn measure(table: &mut FigureTable) -> Result<(), String> {
    let rig = cluster()?;
    let _guard = Guard::over(&rig.dir);
    let bare = table.limit(Figure::new("bqueues", Unit::Ms, commands(&rig, "bqueues", &[], 2)?));
    let asked = commands(&rig, "nlbpolicy", &["-p", "bench", "-c", "10"], 10)?;
    let name = format!("nlbpolicy -c 10 of {HOSTS} hosts");
    table.add(Figure::new(name, Unit::Ms, asked), Some(bare));
    let plain = recorded(&rig, "normal", "JOB_NEW")?;
    let name = "bsub to JOB_NEW on the disk, a batch queue";
    let plain = table.limit(Figure::new(name, Unit::Ms, plain));
    let routed = recorded(&rig, "pipe", "JOB_SWITCH")?;
    let name = "bsub to JOB_SWITCH on the disk, a pipe queue";
    table.add(Figure::new(name, Unit::Ms, routed), Some(plain));
    let size = std::fs::metadata(rig::binary()).map_err(|e| e.to_string())?.len();
    table.add(Figure::new("size of the program", Unit::Bytes, vec![size as f64]), None);
    Ok(())
}
