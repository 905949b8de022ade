//! The usage of real jobs on each of three hosts: CPU time and memory that are known
//! beforehand, in bjobs -l while a job runs, and in bacct -l, lsb.acct and lsb.events when it has
//! ended (bjobs(1), bacct(1)).

use super::rig::{Rig, kill, wait_for};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Uses `$1` seconds of CPU time, which the kernel ends, then holds `$2` MB until `$3` is there.
const WORK: &str = "(ulimit -t $1; while :; do :; done) 2> /dev/null\n\
    head -c $2M /dev/zero | tail -c $2M | while [ ! -e $3 ]; do sleep 0.1; done\n";

/// The CPU time of each host, seconds, and its memory, MB.
const WANTED: [(&str, (f64, f64)); 3] =
    [("host1", (2.0, 60.0)), ("host2", (4.0, 90.0)), ("host3", (3.0, 120.0))];

/// The words of a listing about a host.
#[derive(Debug, Default)]
struct Told {
    cpu: f64,
    mem: f64,
    pids: Vec<u32>,
}

/// The hosts that bjobs names with their usage.
fn listed(rig: &Rig, job: u32) -> BTreeMap<String, Told> {
    let text = rig.ok("bjobs", &["-UF", &job.to_string()]);
    let host = |part: &str| {
        let mut told = Told::default();
        let mut pieces = part.lines().next()?.split(';').map(str::trim);
        let name = pieces.next()?.to_owned();
        for piece in pieces {
            let (key, value) = piece.split_once(": ").unwrap_or((piece, ""));
            let words: Vec<&str> = value.split_whitespace().collect();
            let number = || words[0].parse::<f64>().unwrap();
            match key {
                "MEM" => told.mem = number() * if words[1] == "Gbytes" { 1024.0 } else { 1.0 },
                "CPU_TIME" => told.cpu = number(),
                "PIDs" => told.pids = words.iter().map(|pid| pid.parse().unwrap()).collect(),
                _ => {}
            }
        }
        Some((name, told))
    };
    text.split("HOST: ").skip(1).filter_map(host).collect()
}

/// The resident memory of processes, MB.
fn resident(pids: &[u32]) -> f64 {
    let kb = |pid: &u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    pids.iter().filter_map(kb).sum::<f64>() / 1024.0
}

/// Within 10% or 2 seconds.
fn near(got: f64, want: f64) -> bool {
    (got - want).abs() <= (want * 0.1).max(2.0)
}

/// A job that works on three hosts: `line` begins work on each.
fn work(name: &str, line: &str) {
    let rig = Rig::up(name, 3);
    std::fs::write(rig.path("work.sh"), WORK).unwrap();
    let (go, dir) = (rig.path("go"), rig.path(""));
    let script = format!("cd {}; GO={}\n{line}\nwait\n", dir.display(), go.display());
    std::fs::write(rig.path("job.sh"), script).unwrap();
    let line = format!("sh {}", rig.path("job.sh").display());
    let hosts = ["-n", "3", "-R", "span[ptile=1]", "-m", "host1! host2 host3"];
    let out = rig.path("out").display().to_string();
    let job = rig.bsub(&[&hosts[..], &["-o", &out, &line]].concat());
    // commands of LSF hold memory too: one process has to hold what the work holds
    let holds = |t: &Told, cpu: f64, mem: f64| {
        let held = resident(&t.pids);
        let holder = t.pids.iter().any(|pid| resident(&[*pid]) >= mem);
        holder && t.cpu + 0.5 >= cpu && (t.mem - held).abs() <= held * 0.05
    };
    let there = |told: &BTreeMap<String, Told>| {
        let mut wanted = WANTED.iter();
        wanted.all(|(host, (cpu, mem))| told.get(*host).is_some_and(|t| holds(t, *cpu, *mem)))
    };
    wait_for("each host to hold its memory", || there(&listed(&rig, job)));
    let told = listed(&rig, job);
    let long = rig.ok("bjobs", &["-l", &job.to_string()]);
    assert_eq!(long.matches("\n                     HOST: host").count(), 3, "{long}");
    let mut seen = BTreeSet::new();
    for (host, (cpu, mem)) in WANTED {
        let t = &told[host];
        assert!(near(t.cpu, cpu) && t.mem >= mem, "{host}: {t:?}");
        let held = resident(&t.pids);
        assert!((t.mem - held).abs() <= held * 0.1, "{host}: {held} {t:?}");
        assert!(!t.pids.is_empty() && t.pids.iter().all(|pid| seen.insert(*pid)), "{told:?}");
    }
    let of_job = rig.field(&job.to_string(), "pids");
    let of_job: BTreeSet<u32> = of_job.split(',').filter_map(|pid| pid.parse().ok()).collect();
    assert!(seen.len() >= 6 && seen.intersection(&of_job).count() >= 6, "{seen:?} {of_job:?}");
    let sum: f64 = WANTED.iter().map(|(_, (cpu, _))| cpu).sum();
    let cpu_of_job = rig.field(&job.to_string(), "cpu_used");
    let cpu: f64 = cpu_of_job.split_whitespace().next().unwrap().parse().unwrap();
    assert!(near(cpu, sum), "{cpu_of_job}");
    std::fs::write(&go, "").unwrap();
    assert_eq!(rig.end_of(job), "DONE");
    accounted(&rig, job, sum, &told);
    reported(&out, sum, told.values().map(|t| t.mem).sum());
}

/// The report on the job counts all of its hosts.
fn reported(out: &str, cpu: f64, mem: f64) {
    let text = std::fs::read_to_string(out).unwrap();
    let number = |label: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(label)).unwrap();
        line.split_whitespace().next().unwrap().parse::<f64>().unwrap()
    };
    assert!(near(number("CPU time :"), cpu), "{cpu}: {text}");
    assert!((number("Max Memory :") - mem).abs() <= mem * 0.1, "{mem}: {text}");
    assert!(!text.contains("counted on host"), "{text}");
}

/// bacct -l, lsb.acct and lsb.events of the ended job, of which this was `told` while it ran.
fn accounted(rig: &Rig, job: u32, sum: f64, told: &BTreeMap<String, Told>) {
    let held = |host: &str, mem: f64| (mem - told[host].mem).abs() <= told[host].mem * 0.1;
    // lsb.acct is written behind lsb.events
    let bacct = || rig.ok("bacct", &["-l", &job.to_string()]);
    wait_for("the record in lsb.acct", || bacct().contains("information about this job"));
    let text = bacct();
    let rows = |text: &str| -> Vec<Vec<String>> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        text.lines().map(words).collect()
    };
    let history = rig.ok("bhist", &["-l", &job.to_string()]);
    assert_eq!(history.matches("HOST USAGE:\nHOST ").count(), 1, "{history}");
    for (text, (host, (cpu, _))) in
        [&text, &history].into_iter().flat_map(|text| WANTED.map(|wanted| (text, wanted)))
    {
        let all = rows(text);
        let row = all.iter().find(|row| row.first().is_some_and(|is| is == host) && row.len() == 5);
        let row = row.unwrap_or_else(|| panic!("{host}: {text}"));
        let number = |at: usize| row[at].trim_end_matches('M').parse::<f64>().unwrap();
        assert!(near(number(1) + number(2), cpu), "{text}");
        assert!(held(host, number(3)), "{told:?}: {text}");
    }
    let history = rig.ok("bhist", &["-UF", &job.to_string()]);
    let used = history.split("The CPU time used is ").nth(1).unwrap_or_else(|| panic!("{history}"));
    assert!(near(used.split(' ').next().unwrap().parse().unwrap(), sum), "{history}");
    let rows = rows(&text);
    let at = rows.iter().position(|row| row.first().is_some_and(|is| is == "CPU_T")).unwrap();
    assert!(near(rows[at + 1][0].parse().unwrap(), sum), "{text}");
    for (file, kind) in [("lsb.acct", "JOB_FINISH"), ("lsb.events", "JOB_STATUS")] {
        let log = std::fs::read_to_string(rig.logdir().join(file)).unwrap();
        let ended =
            |line: &&str| line.starts_with(&format!("\"{kind}\"")) && line.contains("host3");
        let line = log.lines().find(ended).unwrap_or_else(|| panic!("{file}: {log}"));
        let words: Vec<&str> = line.split(' ').map(|word| word.trim_matches('"')).collect();
        let figures = words.windows(6).rev();
        let mut hosts = BTreeMap::new();
        for w in figures.filter(|w| w[0].starts_with("host")) {
            let numbers: Vec<f64> = w[1..5].iter().filter_map(|n| n.parse().ok()).collect();
            if let [mem, _, utime, stime] = numbers[..]
                && mem > 0.0
            {
                hosts.entry(w[0]).or_insert((utime + stime, mem / 1024.0));
            }
        }
        for (host, (cpu, _)) in WANTED {
            let (used, mem) = hosts[host];
            assert!(near(used, cpu) && held(host, mem), "{told:?} {file}: {line}");
        }
    }
}

/// The script itself works on the first host; the task on host2 ends within a sample and is
/// followed by another, which starts that on host3.
#[test]
fn usage_of_each_host_is_known_with_nested_blaunch_and_an_early_end() {
    work(
        "host-usage",
        "sh work.sh 2 60 $GO &\n\
         blaunch host2 '(ulimit -t 2; while :; do :; done) 2> /dev/null; true'\n\
         blaunch host2 \"blaunch host3 sh work.sh 3 120 $GO & sh work.sh 2 90 $GO; wait\" &",
    );
}

/// The tasks are those of TaskStarters that pam has started.
#[test]
fn usage_of_each_host_is_known_of_tasks_under_pam() {
    work(
        "host-usage-pam",
        "cat > pjl.sh << 'END'\n\
         #!/bin/sh\n\
         for h in $LSB_HOSTS; do blaunch $h \"$@\" & done; wait\n\
         END\n\
         cat > app.sh << END\n\
         #!/bin/sh\n\
         case \\$LSF_LOCAL_HOST in\n\
         host1) exec sh work.sh 2 60 $GO;;\n\
         host2) exec sh work.sh 4 90 $GO;;\n\
         *) exec sh work.sh 3 120 $GO;;\n\
         esac\n\
         END\n\
         chmod 755 pjl.sh app.sh\n\
         pam -t -g 1 ./pjl.sh ./app.sh",
    );
}

/// The other host says nothing when the script has ended: the report waits for that, what runs
/// after the job does not.
#[test]
fn post_execution_does_not_wait_for_the_usage_of_a_host_that_stands_still() {
    let rig = Rig::up("host-usage-post", 2);
    let file = |name: &str| rig.path(name).display().to_string();
    let out = file("out");
    let hosts = ["-n", "2", "-R", "span[ptile=1]", "-m", "host1! host2"];
    let line = format!(
        "touch {0}; while [ ! -e {1} ]; do sleep 0.1; done; date > {2}",
        file("in"),
        file("go"),
        file("ended")
    );
    let post = format!("date > {}", file("post"));
    let job = rig.bsub(&[&hosts[..], &["-o", &out, "-Ep", &post, &line]].concat());
    wait_for("the job", || rig.path("in").exists());
    let member = rig.pid("sbatchd", "host2").unwrap();
    kill(member, 19);
    rig.write("go", "");
    wait_for("what runs after it", || !rig.read("post").is_empty());
    let at = |name: &str| std::fs::metadata(rig.path(name)).unwrap().modified().unwrap();
    let report = || std::fs::read_to_string(&out).unwrap_or_default();
    wait_for("the report", || report().contains("Usage counted on host :"));
    kill(member, 18);
    let since = |name: &str| at(name).duration_since(at("ended")).unwrap();
    assert!(since("post") < Duration::from_millis(1500), "{:?}", since("post"));
    assert!(since("out") > Duration::from_millis(1900), "{:?}", since("out"));
    assert!(report().contains("host1 alone, see bacct -l"), "{}", report());
    assert_eq!(rig.end_of(job), "DONE");
    let said = || rig.ok("bhist", &["-l", &job.to_string()]);
    wait_for("its post-execution", || said().contains(": Post job process done successfully;"));
}
