//! `make bench`: the figures of the system beside the limits of the machine, measured in the same
//! run. Prints one table and writes `bench.json` into the target directory. The program makes
//! clusters of its own, ends by itself within fourteen minutes, and takes everything away again,
//! also when it is interrupted. `LSF_BENCH` names the groups to be measured, all by default. `make
//! bench-long` and `make bench-compare` are `long` and `compare`.

mod accounts;
mod compare;
mod configured;
mod figures;
mod goals;
mod interactive;
mod kept;
mod limits;
mod many;
mod nlb;
mod parallel;
mod procs;
mod remote;
#[path = "../cluster/rig.rs"]
mod rig;
mod sched;
mod table;

use figures::Machine;
use rig::Rig;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use table::FigureTable;

/// The allocator of the static file, which the group `sched` measures with everything else.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: lsf::sys::heap::Heap = lsf::sys::heap::Heap;

/// Runs of which each figure is the median.
const RUNS: usize = 5;
/// Longest time of it all, that of the group `sched` included.
const TOTAL: Duration = Duration::from_secs(800);

/// Runs `command` so often in each of four shells; runs a second, together. `None`: one failed,
/// or the time was over.
fn shells(command: &str, times: u32, dress: impl Fn(&mut Command), limit: Duration) -> Option<f64> {
    let script = format!(
        "i=0; while [ $i -lt {times} ]; do {command} >/dev/null || exit 1; i=$((i+1)); done"
    );
    let from = Instant::now();
    let mut running: Vec<Child> = (0..4)
        .filter_map(|_| {
            let mut shell = Command::new("/bin/sh");
            dress(&mut shell);
            shell.args(["-c", &script]).stdin(Stdio::null()).spawn().ok()
        })
        .collect();
    let mut good = running.len() == 4;
    for child in &mut running {
        good &= ends_well(child, from + limit);
    }
    good.then(|| f64::from(4 * times) / from.elapsed().as_secs_f64())
}

fn ends_well(child: &mut Child, until: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

/// Stops a cluster and removes its directory when this process ends in whatever way: a shell
/// that waits for the end of its input, out of reach of the terminal's interrupt.
struct Guard(Child);

impl Guard {
    fn over(dir: &Path) -> Guard {
        use std::os::unix::process::CommandExt;
        let script = "read x; [ \"$x\" = kept ] || { \"$1\" down --dir \"$2\"; rm -rf \"$2\"; }";
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script, "sh"]).arg(rig::binary()).arg(dir).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Guard(shell.spawn().unwrap())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let word: &[u8] = if std::thread::panicking() { b"kept\n" } else { b"\n" };
        let _ = self.0.stdin.take().map(|mut pipe| pipe.write_all(word));
        let _ = self.0.wait();
    }
}

/// Begins anew without what cargo puts into the environment: its LD_LIBRARY_PATH makes every
/// /bin/true search four directories, half as long again as it takes for a user.
fn as_a_user() {
    use std::os::unix::process::CommandExt;
    const CARGOS: [&str; 4] = ["LD_LIBRARY_PATH", "CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];
    let of_cargo = |name: &str| CARGOS.iter().any(|c| name.starts_with(c));
    let names: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    let names: Vec<_> = names.iter().filter(|n| of_cargo(&n.to_string_lossy())).collect();
    if names.is_empty() {
        return;
    }
    let mut again = Command::new("/proc/self/exe");
    names.into_iter().for_each(|name| _ = again.env_remove(name));
    let why = again.args(std::env::args_os().skip(1)).exec();
    eprintln!("bench: {why}: measured with the variables of cargo");
}

/// Ends the process when the time is over: the guards clear up.
fn watch() {
    std::thread::spawn(|| {
        std::thread::sleep(TOTAL);
        eprintln!("bench: not finished within {} s: given up", TOTAL.as_secs());
        std::process::exit(1);
    });
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn commit() -> String {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty", "--abbrev=12"]).stderr(Stdio::null());
    let out = git.current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let text = out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    text.ok().filter(|t| !t.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

fn machine(table: &mut FigureTable, dir: &Path) -> Machine {
    let name = "spawn+wait of /bin/true";
    let spawn = table.limit(limits::spawn(name, Path::new("/bin/true"), &[]));
    let shells = table.limit(limits::shells_spawn());
    let args = ["-c", "/bin/true"];
    table.limit(limits::spawn("spawn+wait of sh -c /bin/true", Path::new("/bin/sh"), &args));
    table.limit(limits::spawn("spawn+wait of this program (lsf -V)", &rig::binary(), &["-V"]));
    let trips = table.limit(limits::round_trips());
    table.limit(limits::syncs(dir));
    Machine { spawn, shells, trips }
}

/// Whether this group of figures is asked for.
fn wanted(group: &str) -> bool {
    std::env::var("LSF_BENCH")
        .map_or(true, |v| v.is_empty() || v.split([',', ' ']).any(|w| w == group))
}

/// Are figures asked for that need a cluster of real processes?
fn clusters_wanted() -> bool {
    let groups = std::env::var("LSF_BENCH").unwrap_or_default();
    let mut words = groups.split([',', ' ']).filter(|word| !word.is_empty()).peekable();
    words.peek().is_none() || words.any(|word| !matches!(word, "sched" | "nlb"))
}

fn measure(table: &mut FigureTable) {
    if wanted("sched") {
        sched::measure(table);
    }
    if wanted("nlb") {
        nlb::measure(table);
    }
    if clusters_wanted() {
        measure_clusters(table);
    }
}

fn measure_clusters(table: &mut FigureTable) {
    let rig = Rig::up("bench", 1);
    let _guard = Guard::over(&rig.dir);
    let machine = machine(table, &rig.dir);
    if wanted("remote") {
        remote::measure(&rig, table, &machine);
    }
    if wanted("interactive") {
        interactive::measure(&rig, table);
    }
    if wanted("accounts") {
        accounts::measure(&rig, table);
    }
    figures::prepare(&rig);
    if wanted("submit") {
        figures::submissions(&rig, table, &machine);
        figures::listings(&rig, table, &machine);
        figures::empty(&rig);
    }
    if wanted("work") {
        figures::work(&rig, table, &machine);
    }
    drop(rig);
    if wanted("usage") {
        let rig = Rig::up("bench-usage", 1);
        let _guard = Guard::over(&rig.dir);
        interactive::usage(&rig, table);
    }
    if wanted("parallel") {
        let rig = Rig::up("bench-parallel", parallel::HOSTS);
        let _guard = Guard::over(&rig.dir);
        parallel::measure(&rig, table, &machine);
    }
    simulated(table, &machine);
}

/// A cluster whose jobs are imagined: what scheduler, log and network cost alone.
fn imagined(name: &str, hosts: usize) -> (Rig, Guard) {
    let rig = Rig::up(name, hosts);
    let guard = Guard::over(&rig.dir);
    rig.down();
    let path = rig.path("conf/lsf.conf");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}\nLSB_SIM_EXEC=Y\n")).unwrap();
    rig.start();
    figures::prepare(&rig);
    (rig, guard)
}

/// The array once more, and what only shows among many pending jobs.
fn simulated(table: &mut FigureTable, machine: &Machine) {
    if wanted("sim") || wanted("many") {
        let (rig, _guard) = imagined("bench-sim", 1);
        if wanted("sim") {
            let trips = Some(machine.trips.clone());
            figures::array(&rig, table, trips, "execution simulated");
        }
        if wanted("many") {
            many::measure(&rig, table);
        }
    }
    if wanted("sim") {
        let (rig, _guard) = imagined("bench-configured", configured::HOSTS);
        configured::measure(&rig, table, machine.trips.clone());
    }
    if wanted("million") {
        let (rig, _guard) = imagined("bench-million", 1);
        many::million(&rig, table, machine);
    }
    if wanted("storm") {
        let (rig, _guard) = imagined("bench-storm", 1);
        many::stormy(&rig, table);
        drop(rig);
        let (rig, _guard) = imagined("bench-array", 1);
        many::large_arrays(&rig, table);
    }
}

fn target_dir() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), |d| root.join(d))
}

#[test]
#[ignore = "make bench"]
fn bench() {
    as_a_user();
    watch();
    let from = Instant::now();
    let cores = std::thread::available_parallelism().map_or(0, |n| n.get());
    let (commit, before) = (commit(), load());
    eprintln!("lsf {commit}, {cores} cores, load {before}");
    let mut table = FigureTable::default();
    measure(&mut table);
    let head = format!(
        "lsf {commit}, {cores} cores, load {before} before and {} after, {} s",
        load(),
        from.elapsed().as_secs()
    );
    println!("\n{head}\n\n{}\n{}", table.text(), goals::text(&table));
    let mut all = table.json();
    all["commit"] = json!(commit);
    all["cores"] = json!(cores);
    all["load"] = json!({ "before": before, "after": load() });
    keep("bench.json", &all);
}

fn keep(name: &str, all: &serde_json::Value) {
    let path = target_dir().join(name);
    let text = serde_json::to_string_pretty(all).unwrap_or_default();
    match std::fs::write(&path, text) {
        Ok(()) => println!("written to {}", path.display()),
        Err(e) => println!("{}: {e}", path.display()),
    }
}

/// `make bench-long`: arrays of real jobs one after the other for LSF_BENCH_MINUTES.
#[test]
#[ignore = "make bench-long"]
fn long() {
    as_a_user();
    let word = std::env::var("LSF_BENCH_MINUTES").unwrap_or_default();
    let minutes: u64 = word.parse().unwrap_or(10);
    let rig = Rig::up("bench-long", 1);
    let _guard = Guard::over(&rig.dir);
    let mut table = FigureTable::default();
    let shells = table.limit(limits::shells_spawn());
    figures::prepare(&rig);
    figures::long(&rig, &mut table, shells, Duration::from_secs(minutes * 60));
    println!("\n{}", table.text());
    let mut all = table.json();
    all["commit"] = json!(commit());
    keep("bench-long.json", &all);
}

/// A size of the group `sched`, in a process of its own.
#[test]
#[ignore = "make bench"]
fn sched_child() {
    sched::run_child();
}

/// `make bench-compare OLD=FILE NEW=FILE`.
#[test]
#[ignore = "make bench-compare"]
fn compare() {
    let file = |name: &str| std::env::var(name).unwrap_or_default();
    match compare::text(&file("LSF_BENCH_OLD"), &file("LSF_BENCH_NEW")) {
        Ok(text) => println!("{text}"),
        Err(why) => panic!("{why}"),
    }
}
