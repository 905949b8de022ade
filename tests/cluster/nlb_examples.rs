//! The load balancer from end to end: the manual's worked examples from the name map's dump to
//! where the job runs, servers that stand for each other, cron, and a site that has none of it.

use super::nlb::{hosts, with_server};
use super::reconfig::Crontab;
use crate::rig::{Rig, Said, binary, kill, skipped, wait_for};
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The policies file of a cluster's server.
const POLICIES: &str = "work/personal/nqe/nlbdir/policies";

/// The state, the host and the queue of a job.
fn where_is(rig: &Rig, job: &str) -> String {
    let out = rig.ok("bjobs", &["-a", "-noheader", "-o", "stat first_host queue", job]);
    out.trim().to_owned()
}

/// Adds attributes to maps of the server, as the manual does it; what it warns of.
fn add(rig: &Rig, attributes: &[(&str, &str)]) -> Said {
    let map = rig.path("name_map").display().to_string();
    assert_eq!(rig.ok("nlbconfig", &["-mdump", "-f", &map]), "");
    let mut text = rig.read("name_map");
    for (head, lines) in attributes {
        assert!(text.contains(head), "{text}");
        text = text.replacen(head, &format!("{head}\n{lines}"), 1);
    }
    rig.write("name_map", &text);
    rig.run("nlbconfig", &["-mput", "-f", &map])
}

#[test]
fn example_of_cpu_normalisation_holds_from_the_dump_to_the_host_of_the_job() {
    let rig = Rig::up("nlbnorm", 3);
    with_server(&rig);
    hosts(&rig, &[]);
    let line = "NLB_SITE_CPUNORM \"CPU Normalization Factor\" integer(1000);";
    let said = add(&rig, &[("map NLB = 1024 {", line)]);
    let warned = "<NLB_SITE_CPUNORM> integer(1000): numbers below 8192 are reserved\n";
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{}", said.err);
    assert!(said.err.ends_with(warned), "{}", said.err);
    rig.write(
        "obj_defs",
        "object NLB (host1) { NLB_SITE_CPUNORM = 1000; } \
         object NLB (host2) { NLB_SITE_CPUNORM = 1; }",
    );
    assert_eq!(rig.ok("nlbconfig", &["-oupdat", "-f", "obj_defs"]), "");
    rig.write(POLICIES, "policy: idlecpu sort: NLB_IDLECPU * NLB_SITE_CPUNORM\n");
    assert_eq!(rig.ok("nlbconfig", &["-pol"]), "");
    assert_eq!(hosts(&rig, &["-p", "idlecpu"]), ["host1", "host2", "host3"]);
    let shown = rig.ok("nlbpolicy", &["-p", "idlecpu", "-d", "-c2"]);
    assert!(shown.starts_with("object NLB (host1) {\n"), "{shown}");
    assert_eq!(shown.matches("\tNLB_SITE_CPUNORM = ").count(), 2, "{shown}");
    // a dump loads again and dumps the same
    let dumped = rig.ok("nlbconfig", &["-odump", "-t", "NLB", "-n", "host3"]);
    rig.write("again", &dumped);
    assert_eq!(rig.run("nlbconfig", &["-check", "again"]).code, 0, "{dumped}");
    let job = rig.bsub(&["-nlb", "idlecpu", "-o", "/dev/null", "sleep 100"]).to_string();
    wait_for("the job to run", || where_is(&rig, &job) == "RUN host1 normal");
    let words = "placed by NLB policy <idlecpu>, ";
    let long = rig.ok("bjobs", &["-l", &job]).replace("\n                     ", "");
    assert!(long.contains(words) && long.contains(", choice 1 of 3;"), "{long}");
}

#[test]
fn example_of_packages_holds_from_the_dump_to_the_host_of_the_request() {
    let rig = Rig::up("nlbpackages", 3);
    with_server(&rig);
    hosts(&rig, &[]);
    let job = "job_nastran \"Job requires nastran\" integer(8192);\n\
               job_oracle \"Job requires oracle\" integer(8193);\n\
               job_unichem \"Job requires unichem\" integer(8194);";
    let host = "host_nastran \"Host supports nastran\" integer(8192);\n\
                host_oracle \"Host supports oracle\" integer(8193);\n\
                host_unichem \"Host requires unichem\" integer(8194);";
    let said = add(&rig, &[("map NLB_JOB = 1025 {", job), ("map NLB = 1024 {", host)]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""));
    rig.write(
        "obj_defs",
        "object NLB (host1) { host_nastran = 1; host_unichem = 1; } \
         object NLB (host2) { host_oracle = 1; host_unichem = 1; } \
         object NLB (host3) { host_oracle = 1; }",
    );
    assert_eq!(rig.ok("nlbconfig", &["-oupdat", "-f", "obj_defs"]), "");
    let policy = "policy: nqs\nconstraint: exists(NLB_QUEUE_NAME)\n\
                  constraint: exists(job_nastran) => exists(host_nastran)\n\
                  constraint: exists(job_oracle) => exists(host_oracle)\n\
                  constraint: exists(job_unichem) => exists(host_unichem)\n\
                  sort: NLB_A_IDLECPU\n";
    rig.write(POLICIES, policy);
    assert_eq!(rig.ok("nlbconfig", &["-pol"]), "");
    let sorted = |args: &[&str]| {
        let mut found = hosts(&rig, args);
        found.sort();
        found
    };
    assert_eq!(sorted(&[]), ["host1", "host2", "host3"]);
    assert_eq!(sorted(&["-a", "JOB_NASTRAN"]), ["host1"]);
    assert_eq!(sorted(&["-a", "JOB_ORACLE"]), ["host2", "host3"]);
    assert_eq!(sorted(&["-a", "JOB_ORACLE,JOB_UNICHEM"]), ["host2"]);
    rig.ok("qmgr", &["create pipe_queue nlbqueue server=(pipeclient CRI_DS) priority=33"]);
    rig.ok("qmgr", &["set default batch_request queue nlbqueue"]);
    rig.write("job.sh", "sleep 100\n");
    for (packages, places) in [
        ("nastran", &["host1"][..]),
        ("oracle", &["host2", "host3"]),
        ("oracle,unichem", &["host2"]),
        ("unichem", &["host1", "host2"]),
    ] {
        let said = rig.ok("cqsub", &["-la", packages, "job.sh"]);
        let id = said.split(['<', '.']).nth(1).unwrap().to_owned();
        wait_for("the request to run", || where_is(&rig, &id).starts_with("RUN"));
        let at = where_is(&rig, &id);
        assert!(places.iter().any(|h| at == format!("RUN {h} normal")), "{packages}: {at}");
        rig.ok("cqdel", &["-k", &id]);
    }
    let said = rig.ok("cqsub", &["-la", "nastran,oracle", "job.sh"]);
    let id = said.split(['<', '.']).nth(1).unwrap().to_owned();
    let words = "no host meets the policy <nqs>; next try at ";
    wait_for(words, || rig.ok("bjobs", &["-p", &id]).replace("\n ", "").contains(words));
}

/// Has the cluster run a server on each of these hosts, each with a directory by this pattern.
fn with_servers(rig: &Rig, servers: &str, dir: &str) {
    assert_eq!(rig.down().code, 0);
    let dir = rig.path("work/personal/nqe").join(dir).display().to_string();
    let info = format!("NLB_SERVER=\"{servers}\"\nNLB_QUEUE=normal\nNLB_SERVER_DIR={dir}\n");
    rig.write("conf/nqeinfo", &info);
    let mut up = Command::new(binary());
    up.args(["up", "--nlb", "--dir"]).arg(&rig.dir).env_remove("LSF_ENVDIR").stdin(Stdio::null());
    let said = Said::from(up.output().unwrap());
    assert_eq!(said.code, 0, "lsf up: {}{}", said.out, said.err);
    rig.ready();
}

#[test]
fn second_server_goes_on_where_the_first_is_dead_and_changes_reach_both_or_are_told() {
    let rig = Rig::up("nlbpair", 2);
    // host1 is the master, which goes on
    with_servers(&rig, "host2 host1", "nlbdir.%H");
    for server in ["host1", "host2"] {
        assert_eq!(hosts(&rig, &["-s", server]).len(), 2);
    }
    let attribute = |n: u32| format!("SITE_{n} \"\" integer({n});");
    let put = |n: u32| add(&rig, &[("map NLB = 1024 {", &attribute(n))]);
    let has = |server: &str, n: u32| {
        let map = rig.run("nlbconfig", &["-s", server, "-mdump", "-t", "NLB"]).out;
        map.contains(&attribute(n))
    };
    assert_eq!(put(9001).code, 0);
    assert!(has("host1", 9001) && has("host2", 9001));
    // no launcher starts it again
    for daemon in ["launcher", "nlbserver"] {
        assert!(rig.kill9(daemon, "host2"), "{daemon}");
    }
    let begun = Instant::now();
    assert!(rig.ok("nlbpolicy", &[]).contains("host1 "));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let begun = Instant::now();
    let job = rig.bsub(&["-nlb", "nqs", "-m", "host1", "-o", "/dev/null", "sleep 100"]);
    wait_for("a job by the second server", || rig.stat(job) == "RUN");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    let long = rig.ok("bjobs", &["-l", &job.to_string()]).replace("\n                     ", "");
    assert!(long.contains("placed by NLB policy <nqs>, "), "{long}");
    let missed = put(9002);
    let words = "nlbconfig: no NLB server answers at host2:";
    assert_eq!((missed.code, missed.out.as_str()), (255, ""));
    assert!(missed.err.starts_with(words), "{}", missed.err);
    assert!(missed.err.ends_with(" (Connection refused)\n"), "{}", missed.err);
    assert!(has("host1", 9002));
    rig.start();
    assert_eq!(hosts(&rig, &["-s", "host2"]).len(), 2);
    assert!(!has("host2", 9002) && has("host2", 9001));
    let both = rig.ok("nlbconfig", &["-v", "-mput", "-f", "name_map"]);
    assert_eq!(both, "host2: done\nhost1: done\n");
    assert!(has("host1", 9002) && has("host2", 9002));
}

/// A launcher that is stopped keeps the port of its dead server, and keeps nobody waiting.
#[test]
fn server_that_is_dead_below_a_stopped_launcher_is_noticed_at_once() {
    let rig = Rig::up("nlbstopped", 1);
    with_server(&rig);
    hosts(&rig, &[]);
    let (launcher, server) = (rig.pid("launcher", "host1"), rig.pid("nlbserver", "host1"));
    kill(launcher.unwrap(), 19);
    kill(server.unwrap(), 9);
    let dead = |said: &Said| said.code == 255;
    wait_for("the server to be dead", || dead(&rig.run("nlbpolicy", &[])));
    let begun = Instant::now();
    let said = rig.run("nlbpolicy", &[]);
    let took = begun.elapsed();
    kill(launcher.unwrap(), 18);
    assert!(said.err.ends_with(" (Connection refused)\n"), "{said:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(hosts(&rig, &[]), ["host1"]);
}

#[test]
fn second_server_in_a_directory_ends_with_words() {
    let rig = Rig::up("nlblock", 2);
    with_servers(&rig, "host1 host2", "nlbdir");
    let dir = rig.path("work/personal/nqe/nlbdir").display().to_string();
    // either may be the first
    let words = |host: &str| format!("NLB_SERVER_DIR {dir} is in use by nlbserver of <{host}>");
    let log = |host: &str| rig.read(&format!("log/nlbserver.log.{host}"));
    let second = |first: &str, second: &str| log(second).contains(&words(first));
    wait_for("one to end with words", || second("host1", "host2") || second("host2", "host1"));
    let first = if second("host1", "host2") { "host1" } else { "host2" };
    assert_eq!(hosts(&rig, &["-s", first]).len(), 2);
    assert_eq!(rig.ok("nlbconfig", &["-s", first, "-pol"]), "");
    let other = if first == "host1" { "host2" } else { "host1" };
    assert_eq!(rig.run("nlbpolicy", &["-s", other]).code, 255);
}

#[test]
fn cron_swaps_the_policies_of_the_load_balancer() {
    const NAME: &str = "cron_swaps_the_policies_of_the_load_balancer";
    if !rustix::process::geteuid().is_root() {
        return skipped(&format!("{NAME}: only root has a line in /etc/cron.d"));
    }
    let rig = Rig::up("nlbcron", 3);
    with_server(&rig);
    hosts(&rig, &[]);
    let by_name = |sort: &str| format!("policy: nqs\nconstraint: exists(NLB_QUEUE_NAME)\n{sort}");
    rig.write(&format!("{POLICIES}.night"), &by_name("count: 1\n"));
    rig.write(&format!("{POLICIES}.broken"), "policy: nqs\nsort: NLB_FREEMEN\n");
    let dir = rig.path("work/personal/nqe/nlbdir").display().to_string();
    let swap = |name: &str| {
        let bin = rig.path("bin").display().to_string();
        format!("cd {dir} && cp policies.{name} policies && {bin}/nlbconfig -pol")
    };
    let out = |name: &str, kind: &str| rig.path(&format!("{name}.{kind}")).display().to_string();
    let part = |name: &str| {
        let (said, code) = (out(name, "said"), out(name, "code"));
        format!("{{ {}; }} >{said} 2>&1; echo $? >{code}", swap(name))
    };
    let done = out("broken", "code");
    let (night, broken) = (part("night"), part("broken"));
    // the good file, then the one with a mistake; once, should the test see the minute after it
    let line = format!("* * * * * root [ -e {done} ] || {{ {night}; {broken}; }}\n");
    let Some(tab) = Crontab::new(&line) else {
        return skipped(&format!("{NAME}: cron is not installed"));
    };
    tab.ran(&rig.path("broken.code"));
    drop(tab);
    assert_eq!((rig.read("night.said"), rig.read("night.code")), (String::new(), "0\n".into()));
    let path = rig.path(POLICIES).display().to_string();
    let fault = "no attribute <NLB_FREEMEN> in the maps of NLB and NLB_JOB; did you mean \
                 <NLB_FREEMEM>?";
    let said = rig.read("broken.said");
    assert!(said.starts_with(&format!("{path}:2:7: {fault}\n")), "{said}");
    assert_eq!(rig.read("broken.code"), "255\n");
    // the night goes on
    assert_eq!(hosts(&rig, &[]), ["host1"]);
}

/// The daemons of a cluster by their number, and the sockets that they listen on.
fn daemons(rig: &Rig) -> (BTreeMap<&'static str, usize>, usize) {
    let names = ["launcher", "lim", "mbatchd", "sbatchd", "authd", "res", "nlbserver", "ccollect"];
    let mut running = BTreeMap::new();
    // the launcher holds those of others as well
    let mut listening = BTreeSet::new();
    for name in names {
        let pids = rig.pids(name);
        for pid in pids.values() {
            let open: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|fd| std::fs::read_link(fd.path()).ok())
                .map(|to| to.display().to_string())
                .collect();
            let sockets = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap();
            let listen = sockets.lines().skip(1).filter_map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                (words[3] == "0A").then(|| format!("socket:[{}]", words[9]))
            });
            listening.extend(listen.filter(|socket| open.contains(socket)));
        }
        if !pids.is_empty() {
            running.insert(name, pids.len());
        }
    }
    (running, listening.len())
}

#[test]
fn site_without_nqeinfo_has_no_process_port_record_or_opened_file_more() {
    let rig = Rig::up("nobalancer", 1);
    rig.ready();
    wait_for("all daemons", || daemons(&rig).0.len() >= 4);
    let job = rig.bsub(&["-o", "/dev/null", "true"]);
    assert_eq!(rig.end_of(job), "DONE");
    let (running, listening) = daemons(&rig);
    assert!(!running.contains_key("nlbserver") && !running.contains_key("ccollect"));
    let events = std::fs::read_to_string(rig.logdir().join("lsb.events")).unwrap();
    for word in ["nlb", "nqs", "route", "placed"] {
        assert!(!events.to_lowercase().contains(word), "{word}: {events}");
    }
    assert!(!rig.read("conf/lsf.conf").contains("LSF_NLB_PORT"));
    // bsub looks for nothing of it
    let trace = rig.path("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", "trace=file,network", "-o"]).arg(&trace).arg(rig.path("bin/bsub"));
    strace.args(["-H", "true"]);
    rig.dress(&mut strace);
    match strace.output() {
        Ok(out) if out.status.success() => {
            let text = std::fs::read_to_string(&trace).unwrap();
            assert!(text.contains("lsf.conf"), "{text}");
            assert!(!text.contains("nqe"), "{text}");
            // it speaks to mbatchd and the authd of its host alone, each once
            let calls: Vec<&str> = text.lines().filter(|l| l.contains(" connect(")).collect();
            assert_eq!(calls.len(), 2, "{calls:?}");
            assert!(calls.iter().any(|call| call.contains("/authd/sock")), "{calls:?}");
            assert_eq!(text.matches(" socket(").count(), 2, "{text}");
        }
        _ => skipped("site_without_nqeinfo: strace cannot look"),
    }
    with_server(&rig);
    hosts(&rig, &[]);
    let (with, ports) = daemons(&rig);
    let mut wanted = running.clone();
    wanted.insert("nlbserver", 1);
    assert_eq!((with, ports), (wanted, listening + 1));
}

#[test]
fn nqeinfo_that_is_no_good_file_is_told_and_stops_no_daemon() {
    let rig = Rig::up("nqeinfo", 1);
    with_server(&rig);
    hosts(&rig, &[]);
    let path = rig.path("conf/nqeinfo");
    let good = std::fs::read(&path).unwrap();
    let server = rig.pid("nlbserver", "host1");
    let refused = |words: &str| {
        let told = format!("{}{words}", path.display());
        let checked = rig.run("lsadmin", &["ckconfig"]);
        let text = format!("{}{}", checked.out, checked.err);
        assert!(checked.code != 0 && text.contains(&told), "{text}, wanted {told}");
        let said = rig.run("nlbpolicy", &[]);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{words}");
        assert!(said.err.contains(&told), "{}, wanted {told}", said.err);
        assert_eq!(rig.pid("nlbserver", "host1"), server, "{words}");
    };
    for (bytes, words) in [
        (&b"NLB_SERVER=\"host1:x"[..], ":1:12: NLB_SERVER: <\"host1:x> names no port"),
        (b"NLB_SERVER=host1:\xff\xfe\n", ":1:18: <NLB_SERVER=host1:"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        refused(words);
    }
    std::fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    refused(": cannot be read: not a regular file");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    let none = rig.run("nlbpolicy", &[]);
    assert!(none.code == 255 && none.err.contains("no NLB server is known"), "{}", none.err);
    std::fs::write(&path, good).unwrap();
    assert_eq!(hosts(&rig, &[]), ["host1"]);
    assert_eq!(rig.pid("nlbserver", "host1"), server);
}

#[test]
fn scripts_of_lsf_of_a_cray_and_of_lsnqs_run_unchanged() {
    let rig = Rig::up("nqsscripts", 1);
    let dir = rig.dir.display().to_string();
    let lsf = format!(
        "#!/bin/sh\n#BSUB -q normal\n#BSUB -J lsfstyle\n#BSUB -o {dir}/out.lsf -c 5\n\
         echo \"$LSB_JOBNAME $LSB_QUEUE\" > {dir}/ran.lsf\n"
    );
    let cray = format!(
        "#!/bin/sh\n#\n#  a request of a Cray site\n# QSUB -q normal\n\
         # QSUB -r crayjob          # name of the request\n# QSUB -lT 30:00 -lM 10mw\n\
         # QSUB -lt 20 -mu nobody -nr\n# QSUB -eo -o {dir}/out.cray\n#QSUB\n# QSUB -r ignored\n\
         cd $QSUB_WORKDIR\necho \"$QSUB_REQNAME $ENVIRONMENT $PWD $QSUB_REQID\"\necho err >&2\n"
    );
    let lsnqs = format!(
        "#!/bin/sh\n# @$-q normal\n# @$-r lsnqs\n# @$-lt 20 -lm 64mb -eo\n# @$-o {dir}/out.lsnqs\n\
         echo \"$QSUB_REQNAME $ENVIRONMENT\"\n"
    );
    assert_eq!(rig.feed("bsub", &[], &lsf).code, 0);
    rig.write("cray.sh", &cray);
    rig.ok("cqsub", &["cray.sh"]);
    assert_eq!(rig.feed("cqsub", &["-z"], &lsnqs).out, "");
    for job in 1..4 {
        assert_eq!(rig.end_of(job), "DONE", "{}", rig.ok("bjobs", &["-l", &job.to_string()]));
    }
    assert_eq!(rig.read("ran.lsf"), "lsfstyle normal\n");
    // LSF's report follows
    let begins = |file: &str, text: &str| {
        wait_for(file, || rig.read(file).starts_with(&format!("{text}\n\n---")));
    };
    begins("out.cray", &format!("crayjob BATCH {dir} 2.host1\nerr"));
    begins("out.lsnqs", "lsnqs BATCH");
    let names: Vec<String> = (1..4).map(|n: u32| rig.field(&n.to_string(), "job_name")).collect();
    assert_eq!(names, ["lsfstyle", "crayjob", "lsnqs"]);
    // what the command line says stands above the script, and Table 8-4 becomes limits
    rig.ok("cqsub", &["-r", "other", "-lT", "60", "-a", "tomorrow noon", "cray.sh"]);
    let full = rig.ok("cqstatl", &["-f", "4"]);
    for line in [
        "Request name: other",
        "Per-request CPU limit: 60",
        "Per-request memory limit: 83886080.0",
        "Per-process CPU limit: 20",
    ] {
        assert!(full.lines().any(|l| l == line), "{line}: {full}");
    }
}
