//! The commands of the base system on a running cluster, and its load figures beside what the
//! system's own tools say in the same second.

use crate::rig::{Rig, Said, skipped, wait_for};
use lsf::lim::meter::Meter;
use lsf::proto::lim::LoadSample;
use lsf::sys::load::Probe;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn tool(words: &[&str]) -> Option<String> {
    let out = Command::new(words[0]).args(&words[1..]).env("LC_ALL", "C").output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}

fn number(text: Option<&str>) -> f64 {
    text.and_then(|w| w.trim_end_matches(',').parse().ok()).unwrap_or(f64::NAN)
}

/// Value in MB, minutes or a share, of what lsload prints, and half of its last digit.
fn shown(cell: &str) -> (f64, f64) {
    let cell = cell.trim_start_matches('*');
    let split = cell.find(|c: char| c.is_ascii_alphabetic() || c == '%').unwrap_or(cell.len());
    let (digits, unit) = cell.split_at(split);
    let scale = match unit {
        "G" => 1024.0,
        "T" => 1024.0 * 1024.0,
        _ => 1.0,
    };
    let last = if digits.contains('.') { 0.05 } else { 0.5 };
    (digits.parse::<f64>().unwrap() * scale, last * scale)
}

/// The first number of a line of `vmstat -s` that ends so.
fn counted(text: &str, what: &str) -> u64 {
    let line = text.lines().find(|l| l.trim_end().ends_with(what));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// The figures of vmstat, in the form of LIM's sample.
fn vmstat() -> Option<LoadSample> {
    let all = tool(&["vmstat", "-s"])?;
    let ticks = |names: &[&str]| names.iter().map(|n| counted(&all, n)).sum::<u64>();
    let busy = [
        "non-nice user cpu ticks",
        " nice user cpu ticks",
        "system cpu ticks",
        " IRQ cpu ticks",
        "softirq cpu ticks",
        "stolen cpu ticks",
    ];
    let cpu_busy = ticks(&busy);
    let disks = tool(&["vmstat", "-d"])?;
    let real = |name: &str| Path::new("/sys/block").join(name).join("device").exists();
    let sectors = disks.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    let sectors = sectors.filter(|w| w.len() > 7 && real(w[0]));
    let sectors: u64 =
        sectors.map(|w| [3, 7].map(|n| w[n].parse().unwrap_or(0u64)).iter().sum::<u64>()).sum();
    Some(LoadSample {
        cpu_busy,
        cpu_total: cpu_busy + ticks(&["idle cpu ticks", "IO-wait cpu ticks"]),
        pages: ticks(&["pages swapped in", "pages swapped out"]),
        io_kb: sectors / 2,
        ..LoadSample::default()
    })
}

/// ut, pg and io: the same arithmetic over what vmstat counts right before and right after.
#[test]
fn rates_equal_those_of_vmstat() {
    if vmstat().is_none() {
        return skipped("rates_equal_those_of_vmstat: vmstat is wanted");
    }
    let mut probe = Probe::new();
    let file = std::env::temp_dir().join(format!("lsf-rates-{}", std::process::id()));
    let mut meters = [Meter::default(), Meter::default(), Meter::default()];
    // the least and the most that may have come between two samples
    let (mut least, mut most) = (LoadSample::default(), LoadSample::default());
    let mut last: Option<(LoadSample, LoadSample)> = None;
    let began = Instant::now();
    for turn in 0..4 {
        let (before, ours_now) = (vmstat().unwrap(), probe.sample());
        let (us, after) = (began.elapsed().as_micros() as u64, vmstat().unwrap());
        let of = |s: &LoadSample| [s.cpu_busy, s.cpu_total, s.pages, s.io_kb];
        for ((low, is), high) in of(&before).iter().zip(of(&ours_now)).zip(of(&after)) {
            // ticks of several processors are not counted in the same instant
            assert!(low - low.min(&20) <= is && is <= high + 20, "{low} {is} {high}");
        }
        if let Some((older, old)) = &last {
            least.pages += before.pages.saturating_sub(old.pages);
            least.io_kb += before.io_kb.saturating_sub(old.io_kb);
            most.pages += after.pages - older.pages;
            most.io_kb += after.io_kb - older.io_kb;
        }
        (most.cpu_busy, most.cpu_total) = (before.cpu_busy, before.cpu_total);
        for (meter, sample) in meters.iter_mut().zip([&least, &ours_now, &most]) {
            meter.take(us, sample);
        }
        last = Some((before, after));
        // something to measure
        let mut disk = std::fs::File::create(&file).unwrap();
        disk.write_all(&vec![turn; 4 << 20]).unwrap();
        disk.sync_all().unwrap();
        std::thread::sleep(Duration::from_millis(700));
    }
    let _ = std::fs::remove_file(&file);
    let [least, is, most] = meters.map(|m| m.index());
    assert!((is[3] - most[3]).abs() < 0.1 && is[3] > 0.0, "ut {} {}", is[3], most[3]);
    for n in [4, 5] {
        assert!((least[n]..=most[n]).contains(&is[n]), "{} {} {}", least[n], is[n], most[n]);
    }
    assert!(is[5] > 0.0, "nothing was written");
}

/// Seconds since somebody last touched a terminal: those that `who -u` names, and all of
/// /dev/pts, as stat tells.
fn youngest() -> Option<i64> {
    let who = tool(&["who", "-u"])?;
    let mut lines: Vec<String> = who
        .lines()
        .filter_map(|l| Some(format!("/dev/{}", l.split_whitespace().nth(1)?)))
        .collect();
    let pts = std::fs::read_dir("/dev/pts").ok()?.flatten().map(|e| e.path());
    let pts = pts.filter(|p| p.file_name().is_some_and(|n| n != "ptmx"));
    lines.extend(pts.map(|p| p.display().to_string()));
    let touched = |line: &String| tool(&["stat", "-c", "%X", line])?.trim().parse::<i64>().ok();
    lines.iter().filter_map(touched).max()
}

#[test]
fn idle_time_counts_from_the_terminal_used_last() {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
    if ["script", "who", "stat"].iter().any(|t| tool(&[t, "--version"]).is_none()) {
        return skipped("idle_time_counts_from_the_terminal_used_last: script, who and stat");
    }
    let mut c = Command::new("script");
    c.args(["-qec", "tty; sleep 60", "/dev/null"]).stdin(Stdio::null());
    let mut script = c.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(script.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let tty = line.trim();
    assert!(tty.starts_with("/dev/pts/"), "{tty}");
    let mut probe = Probe::new();
    let now = || lsf::sys::now().secs();
    // touched now, then three minutes ago; others may work at theirs
    for ago in [0, 180] {
        let at = Timespec { tv_sec: now() - ago, tv_nsec: 0 };
        let times = Timestamps { last_access: at, last_modification: at };
        utimensat(CWD, tty, &times, AtFlags::empty()).unwrap();
        wait_for("one second without a key", || {
            let before = youngest().unwrap();
            let (is, now) = (probe.sample().idle_minutes, now());
            let want = (now - before).max(0) as f64 / 60.0;
            assert!(is <= (ago + 60) as f64 / 60.0, "{is}");
            youngest() == Some(before) && (is - want).abs() <= 2.0 / 60.0
        });
    }
    let _ = script.kill();
    let _ = script.wait();
}

#[test]
fn loads_equal_the_figures_of_the_system() {
    let name = "loads_equal_the_figures_of_the_system";
    let tools = [&["df", "-m", "/tmp"][..], &["free", "-m"], &["uptime"], &["who"]];
    if tools.iter().any(|t| tool(t).is_none()) {
        return skipped(&format!("{name}: df, free, uptime and who are wanted"));
    }
    // LIM measures when it begins, and shows that for 15 s and more: the tools are asked before
    // and after
    let columns = ["ls", "tmp", "swp", "mem"];
    let told = || {
        let row = |text: &str, n: usize, at: usize| -> f64 {
            number(text.lines().nth(n).and_then(|l| l.split_whitespace().nth(at)))
        };
        let (df, free) = (tool(tools[0]).unwrap(), tool(tools[1]).unwrap());
        let who = tool(tools[3]).unwrap();
        let mut users: Vec<&str> = who.lines().filter_map(|l| l.split(' ').next()).collect();
        users.sort_unstable();
        users.dedup();
        // others work on this machine: a little may come between the two looks
        [users.len() as f64, row(&df, 1, 3), row(&free, 2, 3), row(&free, 1, 6)]
    };
    let look = || {
        let mut worst = String::new();
        let before = told();
        let rig = Rig::up("figures", 1);
        wait_for("lsload", || rig.run("lsload", &[]).out.contains(" ok "));
        let out = rig.ok("lsload", &["-I", &columns.join(":")]);
        let cells: Vec<&str> = out.lines().nth(1).unwrap().split_whitespace().skip(2).collect();
        let range = before.into_iter().zip(told());
        // others work on this machine: a little may come and go between the two looks
        for (n, ((cell, (a, b)), play)) in
            cells.iter().zip(range).zip([0.0, 8.0, 8.0, 64.0]).enumerate()
        {
            let (is, half) = shown(cell);
            let play = half + play + 1.0;
            if is < a.min(b) - play || is > a.max(b) + play {
                worst = format!("{} is {cell}, not {a} to {b}", columns[n]);
            }
        }
        (rig, worst)
    };
    let (mut rig, mut worst) = look();
    for _ in 0..4 {
        if !worst.is_empty() {
            drop(rig);
            (rig, worst) = look();
        }
    }
    assert!(worst.is_empty(), "{worst}");
    // the long averages begin where the system's are and go the same way
    let out = rig.ok("lsload", &["-I", "r1m:r15m"]);
    let cells: Vec<f64> =
        out.lines().nth(1).unwrap().split_whitespace().skip(2).map(|c| shown(c).0).collect();
    let uptime = tool(tools[2]).unwrap();
    let averages = uptime.rsplit("load average:").next().unwrap();
    let averages: Vec<f64> = averages.split_whitespace().map(|w| number(Some(w))).collect();
    assert!((cells[0] - averages[0]).abs() < 1.0 + averages[0] * 0.5, "{out} {uptime}");
    assert!((cells[1] - averages[2]).abs() < 0.3 + averages[2] * 0.1, "{out} {uptime}");
    busy_processor_shows(&rig);
}

/// r15s and ut of a machine one of whose processors is kept busy.
fn busy_processor_shows(rig: &Rig) {
    // vmstat's run queue, and processor time while one processor is kept busy
    let mut burn = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    let until = Instant::now() + Duration::from_secs(50);
    let mut seen = (0.0, 0.0);
    // both are shown anew every 15 seconds
    while Instant::now() < until && (seen.0 <= 0.6 || seen.1 <= 30.0 / cpus) {
        let out = rig.ok("lsload", &["-I", "r15s:ut"]);
        let cells: Vec<f64> =
            out.lines().nth(1).unwrap().split_whitespace().skip(2).map(|c| shown(c).0).collect();
        seen = (f64::max(seen.0, cells[0]), f64::max(seen.1, cells[1]));
        std::thread::sleep(Duration::from_secs(1));
    }
    burn.kill().unwrap();
    burn.wait().unwrap();
    assert!(seen.0 > 0.6 && seen.1 > 30.0 / cpus, "r15s {} ut {}%", seen.0, seen.1);
}

#[test]
fn base_commands_show_hosts_loads_and_resources() {
    let rig = Rig::up("base", 2);
    rig.ready();
    let ok = |h: &str| rig.run("lsload", &[h]).out.contains(" ok ");
    wait_for("both hosts", || ok("host1") && ok("host2"));
    let out = rig.ok("lsclusters", &[]);
    let user = rig.ok("lsclusters", &["-l"]);
    let admin = user.lines().find_map(|l| l.strip_prefix("LSF administrators: ")).unwrap();
    let want = format!(
        "CLUSTER_NAME   STATUS   MASTER_HOST               ADMIN    HOSTS  SERVERS\n\
         personal       ok       host1           {admin:>15}        2        2\n"
    );
    assert_eq!(out, want);
    let s = rig.run("lsclusters", &["nosuch"]);
    assert_eq!((s.code, s.err.as_str()), (255, "nosuch: Unknown cluster name\n"));
    let out = rig.ok("lsinfo", &[]);
    for line in [
        "mem           Numeric   Dec   Available memory (Mbytes)",
        "fast          Boolean   N/A   Hosts with the fastest processors",
        "TYPE_NAME",
        "MODEL_NAME      CPU_FACTOR      ARCHITECTURE",
    ] {
        assert!(out.lines().any(|l| l == line), "{line}: {out}");
    }
    let s = rig.run("lsinfo", &["mem", "nosuch"]);
    assert_eq!((s.code, s.err.as_str()), (255, "nosuch: Resource name not found\n"));
    let row = rig.ok("lshosts", &["-o", "hname server delimiter=';'", "host2"]);
    assert_eq!(row, "HOST_NAME;SERVER\nhost2;Yes\n");
    let json = rig.ok("lsload", &["-o", "hname status", "-json", "personal"]);
    assert!(json.contains("\"COMMAND\":\"lsload\"") && json.contains("host2"), "{json}");
    let types = rig.ok("lim", &["-t"]);
    let kind = types.lines().next().unwrap().split(" : ").nth(1).unwrap().to_owned();
    assert!(rig.ok("lshosts", &["-w", "host1"]).contains(&kind), "{types}");
    placement(&rig);
    locks(&rig);
    tasks(&rig);
    monitor(&rig);
    let s = rig.run("lsadmin", &["reconfig", "-f"]);
    assert_eq!(s.code, 0, "{}{}", s.out, s.err);
    wait_for("both hosts again", || ok("host1") && ok("host2"));
    exclusive(&rig);
}

/// A host whose resource is exclusive is for those who ask for it.
fn exclusive(rig: &Rig) {
    let file = "conf/lsf.cluster.personal";
    let text = rig.read(file);
    let row = text.lines().find(|l| l.starts_with("host2 ")).unwrap();
    rig.write(file, &text.replace(row, &row.replace("()", "(!fast)")));
    assert_eq!(rig.run("lsadmin", &["reconfig", "-f"]).code, 0);
    wait_for("the resource", || rig.run("lshosts", &["host2"]).out.contains(" (!fast)\n"));
    wait_for("both hosts", || rig.run("lsload", &[]).out.matches(" ok ").count() == 2);
    assert_eq!(rig.ok("lsplace", &["-n", "0"]), "host1\n");
    assert_eq!(rig.ok("lsplace", &["-n", "0", "-R", "fast"]), "host2\n");
    assert_eq!(rig.run("badmin", &["reconfig", "-f"]).code, 0);
    let asks = rig.bsub(&["-R", "fast", "-o", "/dev/null", "true"]);
    assert_eq!(rig.end_of(asks), "DONE");
    assert_eq!(rig.field(&asks.to_string(), "exec_host"), "host2");
    let plain = rig.bsub(&["-m", "host2", "-o", "/dev/null", "true"]);
    let why = rig.ok("bjobs", &["-p", &plain.to_string()]);
    assert!(why.contains("Job's resource requirements not satisfied"), "{why}");
}

fn placement(rig: &Rig) {
    let both = rig.ok("lsplace", &["-n", "2"]);
    let mut names: Vec<&str> = both.split_whitespace().collect();
    names.sort_unstable();
    assert_eq!(names, ["host1", "host2"]);
    assert_eq!(rig.ok("lsplace", &["-n", "0"]).split_whitespace().count(), 2);
    let s = rig.run("lsplace", &["-R", "select[mem>99999999]"]);
    let want = "lsplace: Not enough host(s) currently eligible\n";
    assert_eq!((s.code, s.err.as_str()), (1, want));
    assert_eq!(rig.run("lsplace", &["-n", "1000"]).code, 1);
    // what is sent somewhere counts there
    rig.ok("lsloadadj", &["host1:50"]);
    assert_eq!(rig.ok("lsplace", &[]), "host2\n");
    // places beyond the hosts are the processors', of the best host first
    let row = rig.ok("lshosts", &["-o", "ncpus", "-w", "host2"]);
    let cpus: usize = row.lines().nth(1).unwrap().trim().parse().unwrap();
    let more = rig.ok("lsplace", &["-n", &(cpus + 1).max(3).to_string()]);
    let best = vec!["host2"; cpus].join(" ");
    assert!(cpus < 2 || more.starts_with(&format!("{best} host1")), "{cpus}: {more}");
    let s = rig.run("lsloadadj", &["nosuch:2"]);
    assert_eq!((s.code, s.err.as_str()), (255, "lsloadadj: nosuch: Bad host name\n"));
    assert_eq!(rig.run("lsloadadj", &["host1:x"]).code, 255);
}

fn locks(rig: &Rig) {
    let status = |host: &str| {
        let out = rig.run("lsload", &[host]).out;
        let word = out.lines().nth(1).and_then(|l| l.split_whitespace().nth(1));
        word.unwrap_or_default().to_owned()
    };
    assert_eq!(rig.ok("lsadmin", &["limlock"]), "Host is locked\n");
    wait_for("the lock", || status("host1") == "lockU");
    assert_eq!(rig.ok("lsplace", &["-n", "0"]), "host2\n");
    assert!(rig.ok("bhosts", &["-w", "host1"]).contains("closed_Lock"));
    assert_eq!(rig.ok("lsadmin", &["limunlock"]), "Host is unlocked\n");
    assert_eq!(rig.ok("lsadmin", &["limhlock", "host2"]), "Host <host2> is locked\n");
    wait_for("the master's lock", || status("host2") == "lockM" && status("host1") == "ok");
    assert_eq!(rig.ok("lsadmin", &["limhunlock", "host2"]), "Host <host2> is unlocked\n");
    wait_for("no lock", || status("host2") == "ok");
    // the LIM that was told ends; the next one knows
    rig.ok("lsadmin", &["limlock"]);
    rig.ok("lsadmin", &["limhlock", "host2"]);
    assert!(rig.kill9("lim", "host1"));
    wait_for("the locks", || status("host1") == "lockU" && status("host2") == "lockM");
    wait_for("LIM to unlock", || rig.run("lsadmin", &["limunlock"]).code == 0);
    wait_for("the master to unlock", || rig.run("lsadmin", &["limhunlock", "host2"]).code == 0);
    wait_for("no locks", || status("host1") == "ok" && status("host2") == "ok");
    rig.ok("lsadmin", &["limlock", "-l", "2"]);
    wait_for("the lock to end", || status("host1") == "ok");
    logging(rig);
    assert_eq!(
        rig.run("lsadmin", &["limhlock", "nosuch"]).err,
        "limhlock: nosuch: Bad host name\n"
    );
}

/// The logging of daemons is changed while they run, on other hosts too.
fn logging(rig: &Rig) {
    let done = |applet: &str, args: &[&str], host: &str| {
        let said = rig.run(applet, args);
        let want = format!("{} on <{host}> ...... done\n", args[0]);
        assert_eq!((said.code, said.err), (0, want));
    };
    let says = |file: &str, words: &str| {
        wait_for(&format!("{words} in {file}"), || {
            std::fs::read_to_string(rig.path("log").join(file)).is_ok_and(|t| t.contains(words))
        });
    };
    done("lsadmin", &["limtime", "-l", "5", "-f", "aside", "host2"], "host2");
    says("aside.lim.log.host2", "timing: ");
    done("lsadmin", &["limdebug", "-l", "2", "host2"], "host2");
    done("lsadmin", &["limtime", "-o", "host2"], "host2");
    done("lsadmin", &["limdebug", "-o", "host2"], "host2");
    done("lsadmin", &["restime", "-l", "5", "host2"], "host2");
    done("lsadmin", &["resdebug", "host2"], "host2");
    says("res.log.host2", "timing: message: ");
    done("lsadmin", &["restime", "-o", "host2"], "host2");
    done("badmin", &["mbdtime", "-l", "5"], "host1");
    rig.ok("bqueues", &[]);
    says("mbatchd.log.host1", "timing: message: ");
    done("badmin", &["mbdtime", "-o"], "host1");
    done("badmin", &["mbddebug"], "host1");
    done("badmin", &["mbddebug", "-o"], "host1");
    done("badmin", &["sbdtime", "-l", "5", "host2"], "host2");
    assert_eq!(rig.end_of(rig.bsub(&["-m", "host2", "-o", "/dev/null", "true"])), "DONE");
    says("sbatchd.log.host2", "timing: message: ");
    done("badmin", &["sbddebug", "-o", "host2"], "host2");
    done("badmin", &["sbdtime", "-o", "host2"], "host2");
    let said = rig.run("badmin", &["sbdtime", "nosuch"]);
    assert!(said.code == 255 && said.err.contains("<nosuch> ...... failed: Bad host"), "{said:?}");
    settings(rig);
}

/// The output is one line, then `NAME = value` lines, as tools take them apart.
fn settings(rig: &Rig) {
    let conf = rig.path("conf").display().to_string();
    for (applet, args, head, hosts) in [
        ("lsadmin", &["showconf", "lim", "all"][..], "LIM configuration at ", 2),
        ("badmin", &["showconf", "mbd"], "MBD configuration at ", 1),
        ("badmin", &["showconf", "sbd", "host2"], "SBD configuration at ", 1),
    ] {
        let text = rig.ok(applet, args);
        assert_eq!(text.matches(head).count(), hosts, "{text}");
        for line in text.lines().filter(|l| !l.starts_with(head)) {
            let (name, value) = line.trim().split_once(" = ").unwrap_or_else(|| panic!("{line}"));
            assert!(!value.is_empty() && name.starts_with("LS"), "{line}");
        }
        assert!(text.contains(&format!("LSF_CONFDIR = {conf}\n")), "{text}");
        assert!(text.contains("LSB_SHAREDIR = "), "{text}");
    }
    let text = rig.ok("badmin", &["showstatus"]);
    let pid = rig.pid("mbatchd", "host1").unwrap();
    assert!(text.contains(&format!("\n    Active mbatchd PID:     {pid}\n")), "{text}");
    assert!(text.contains("\n        Servers:            2/2\n"), "{text}");
    assert!(text.contains("\n        Running:            0\n"), "{text}");
    let tree = rig.ok("lshosts", &["-T", "host1"]);
    assert!(tree.starts_with("Host[") && tree.contains("            core(0"), "{tree}");
    assert!(rig.ok("lshosts", &["-cname", "host1"]).contains("host1@perso"));
    assert!(rig.ok("lsload", &["-gpu"]).lines().count() == 3);
    assert!(rig.ok("lsload", &["-gpuload", "host2"]).contains("gpu_mtotal"));
    assert!(rig.ok("lshosts", &["-gpu"]).contains("gpu_model"));
}

fn tasks(rig: &Rig) {
    rig.write(
        "conf/lsf.task",
        "Begin LocalTasks\nvi\nEnd LocalTasks\nBegin RemoteTasks\n\
                                + \"cc/select[mem>1]\"\nEnd RemoteTasks\n",
    );
    let at = |applet: &str, args: &[&str]| {
        Said::from(rig.cmd(applet).args(args).env("HOME", &rig.dir).output().unwrap())
    };
    assert_eq!(at("lsrtasks", &[]).out, "cc/select[mem>1]\n");
    assert_eq!(at("lsrtasks", &["+", "sim/mem", "render"]).code, 0);
    assert_eq!(at("lsrtasks", &["-", "cc"]).code, 0);
    assert_eq!(at("lsltasks", &["+mail"]).code, 0);
    assert_eq!(at("lsrtasks", &[]).out, "render\nsim/mem\n");
    assert_eq!(at("lsltasks", &[]).out, "mail\nvi\n");
    let said = |args: &[&str]| {
        let s = at("lseligible", args);
        (s.code, s.out)
    };
    assert_eq!(said(&["/usr/bin/sim -x"]), (0, "ELIGIBLE mem\n".into()));
    assert_eq!(said(&["-q", "sim"]), (0, "mem\n".into()));
    assert_eq!(said(&["cc"]), (1, "NON-ELIGIBLE\n".into()));
    assert_eq!(said(&["-r", "cc"]), (0, "ELIGIBLE\n".into()));
    assert_eq!(said(&["-r", "vi"]), (1, "NON-ELIGIBLE\n".into()));
    assert_eq!(said(&["-s", "sim"]), (0, String::new()));
}

fn monitor(rig: &Rig) {
    let mut c = Command::new("timeout");
    c.args(["3", rig.path("bin/lsmon").to_str().unwrap(), "-i", "1", "-L", "lim.acct"]);
    rig.dress(&mut c);
    let said = Said::from(c.output().unwrap());
    let heads = said.out.lines().filter(|l| l.starts_with("HOST_NAME")).count();
    assert!((2..5).contains(&heads), "{}", said.out);
    let log = rig.read("lim.acct");
    assert!(log.starts_with("r15s r1m r15m ut pg io ls it tmp swp mem\n"), "{log}");
    assert!(log.lines().filter(|l| l.contains(" host1 ok ")).count() >= 2, "{log}");
    // on a terminal: the whole screen, keys are heard, and the terminal is as it was
    let lsmon = rig.path("bin/lsmon");
    let line = format!(
        "(sleep 2; printf N; sleep 1; printf q) | script -qec '{} -i 1; stty -a' \
                        /dev/null",
        lsmon.display()
    );
    let mut c = Command::new("sh");
    c.args(["-c", &line]);
    rig.dress(&mut c);
    if tool(&["script", "--version"]).is_none() {
        return skipped("lsmon on a terminal: script is not installed");
    }
    background(rig);
    let said = Said::from(c.output().unwrap());
    assert!(said.out.contains("\x1b[H\x1b[2JHOST_NAME"), "{:?}", said.out);
    assert!(said.out.contains(" icanon") && !said.out.contains("-icanon"), "{:?}", said.out);
}

/// The key b: lsmon leaves the terminal and goes on writing its file.
fn background(rig: &Rig) {
    let (lsmon, file) = (rig.path("bin/lsmon"), rig.path("behind.acct"));
    let line = format!(
        "(sleep 1; printf b) | script -qec '{} -i 1 -L {}; stty -a' /dev/null",
        lsmon.display(),
        file.display()
    );
    let mut c = Command::new("sh");
    c.args(["-c", &line]);
    rig.dress(&mut c);
    let said = Said::from(c.output().unwrap());
    let pid = said.out.split_once("] lsmon continues").and_then(|(head, _)| head.rsplit_once('['));
    let pid: u32 = pid.unwrap_or_else(|| panic!("{said:?}")).1.parse().unwrap();
    let lines = || rig.read("behind.acct").lines().filter(|l| l.contains(" host1 ")).count();
    let now = lines();
    wait_for("more lines", || lines() >= now + 2);
    crate::rig::kill(pid, 15);
    assert!(said.out.contains(" icanon"), "{:?}", said.out);
}

#[test]
fn daemons_are_listed_by_their_names() {
    let rig = Rig::up("named", 1);
    // the first job has a starter made
    rig.ok("bsub", &["-K", "true"]);
    let of = |pid: u32, what: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/{what}"));
        text.unwrap_or_default().trim().to_owned()
    };
    for daemon in ["launcher", "authd", "lim", "sbatchd", "mbatchd", "res"] {
        let pid = rig.pid(daemon, "host1").unwrap_or_else(|| panic!("no {daemon}"));
        assert_eq!(of(pid, "comm"), daemon);
    }
    let launcher = rig.pid("launcher", "host1").unwrap();
    let children = of(launcher, &format!("task/{launcher}/children"));
    let mut names = children.split(' ').filter_map(|c| Some(of(c.parse().ok()?, "comm")));
    assert!(names.any(|name| name == "starter"), "{children}");
}
