//! A job on many hosts: its start, and tasks by blaunch, beside what the same takes on one host or
//! without blaunch. Each figure is taken by the script of a job, by the clock of bash.

use super::RUNS;
use super::figures::Machine;
use super::rig::{Rig, job_id};
use super::table::{Figure, FigureTable, Unit};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// Hosts of the cluster, all on this machine.
pub const HOSTS: usize = 64;
/// Tasks of one blaunch.
const TASKS: usize = 1000;
/// Single tasks, and starts of jobs, of which a figure is the median.
const SINGLE: usize = 20;
/// Bytes of output of all tasks together.
const BYTES: usize = 1 << 30;
/// Longest time of one job.
const STEP: Duration = Duration::from_secs(120);

/// Runs the text by bash in a job on so many hosts; the lines of its output.
fn job(rig: &Rig, hosts: usize, text: &str) -> Option<Vec<String>> {
    let (script, out): (PathBuf, PathBuf) = (rig.path("job.sh"), rig.path("job.out"));
    let _ = std::fs::remove_file(&out);
    // in its place as a whole, under a name that the job looks for
    let whole = format!(
        "now() {{ echo $((${{EPOCHREALTIME/[.,]/}})); }}\n{text}\n\
         echo end >> job.part && mv job.part {}\n",
        out.display()
    );
    std::fs::write(&script, whole).ok()?;
    let _ = std::fs::remove_file(rig.path("job.part"));
    let n = hosts.to_string();
    let words = ["-n", &n, "-R", "span[ptile=1]", "-o", "/dev/null", "bash", "job.sh"];
    let said = rig.cmd("bsub").args(words).output().ok()?;
    job_id(&String::from_utf8_lossy(&said.stdout))?;
    let until = Instant::now() + STEP;
    while !out.exists() {
        if Instant::now() > until {
            eprintln!("  a job on {hosts} hosts has not ended within {STEP:?}");
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = std::fs::read_to_string(&out).ok()?;
    Some(text.lines().filter(|line| *line != "end").map(str::to_owned).collect())
}

/// The numbers that the job prints, as milliseconds from microseconds.
fn times(rig: &Rig, hosts: usize, text: &str) -> Vec<f64> {
    let lines = job(rig, hosts, text).unwrap_or_default();
    lines.iter().filter_map(|line| line.parse::<f64>().ok()).map(|us| us / 1000.0).collect()
}

/// The time from the call of bsub to the first instruction of a job on so many hosts.
fn start(rig: &Rig, hosts: usize) -> Option<f64> {
    let from = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let began = times(rig, hosts, "now >> job.part");
    Some(began.first()? - from.as_secs_f64() * 1000.0)
}

/// Shell text that runs a command several times and notes how long each takes.
fn timed(times: usize, command: &str) -> String {
    format!(
        "for i in $(seq {times}); do from=$(now); {command}; \
         echo $(($(now) - from)) >> job.part; done"
    )
}

pub fn measure(rig: &Rig, table: &mut FigureTable, machine: &Machine) {
    let one: Vec<f64> = (0..SINGLE).filter_map(|_| start(rig, 1)).collect();
    let all: Vec<f64> = (0..SINGLE).filter_map(|_| start(rig, HOSTS)).collect();
    let one = Figure::new("bsub on 1 host to the job's first instruction", Unit::Ms, one);
    let name = format!("bsub on {HOSTS} hosts to the job's first instruction");
    let one = table.limit(one);
    table.add(Figure::new(name, Unit::Ms, all), Some(one));

    let list = format!("list=$(for i in $(seq {TASKS}); do echo host$((i % {HOSTS} + 1)); done)");
    // a launcher starts lsf for each task, which becomes the task; the daemons of these hosts share
    // the processors with that: as many at once as there are hosts
    let each =
        |program: &str| format!("seq {TASKS} | xargs -P {HOSTS} -n 1 {program} > /dev/null 2>&1");
    let alone = format!("{}; {}", each("\"$LSF_BINDIR/lsid\" -V"), each("/bin/true"));
    let spawns = times(rig, HOSTS, &timed(RUNS, &alone));
    let name = format!("{TASKS} spawns of lsf and of /bin/true, {HOSTS} at once");
    let spawns = table.limit(Figure::new(name, Unit::Ms, spawns));
    let tasks =
        times(rig, HOSTS, &format!("{list}\n{}", timed(RUNS, "blaunch -n -z \"$list\" /bin/true")));
    let name = format!("blaunch of {TASKS} tasks on {HOSTS} hosts");
    table.add(Figure::new(name, Unit::Ms, tasks), Some(spawns));
    // the peak of its memory, as the kernel has it shortly before the end
    let peak = format!(
        "{list}\nblaunch -n -z \"$list\" sleep 2 & sleep 1.8\n\
         sed -n 's/^VmHWM:[^0-9]*\\([0-9]*\\) kB/\\1/p' /proc/$!/status >> job.part; wait"
    );
    let peak = times(rig, HOSTS, &peak).iter().map(|kb| kb * 1000.0 * 1024.0).collect();
    table.add(Figure::new("memory of that blaunch at its peak", Unit::Bytes, peak), None);

    let single = format!(
        "host=${{LSB_HOSTS##* }}; for i in $(seq {SINGLE}); do from=$(now); \
         began=$(blaunch -n -no-shell -z $host bash -c 'echo ${{EPOCHREALTIME/[.,]/}}'); \
         echo $((began - from)) >> job.part; done"
    );
    let single = times(rig, HOSTS, &single);
    let name = "blaunch on another host to the first instruction";
    table.add(Figure::new(name, Unit::Ms, single), Some(machine.spawn.clone()));

    let bytes = format!("blaunch -n -z ${{LSB_HOSTS##* }} head -c {BYTES} /dev/zero > /dev/null");
    let limit = table.limit(Figure::new(
        "1 GB out of one task of blaunch",
        Unit::Ms,
        times(rig, HOSTS, &timed(RUNS, &bytes)),
    ));
    let each = BYTES / HOSTS;
    let bytes = format!("blaunch -n -z \"$LSB_HOSTS\" head -c {each} /dev/zero > /dev/null");
    let runs = times(rig, HOSTS, &timed(RUNS, &bytes));
    table.add(Figure::new(format!("1 GB out of {HOSTS} tasks"), Unit::Ms, runs), Some(limit));
}
