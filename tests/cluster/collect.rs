//! The collectors of a cluster: figures beside those of the kernel, custom collectors that die,
//! write rubbish, hang or can be exchanged, and what is left after a kill -9.

use crate::rig::{Rig, Said, alive, binary, wait_for};
use lsf::conf::nlb_map::NameMaps;
use lsf::model::nlb::NLB;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Has the cluster run a server on host1 and a collector on each host, with these further lines of
/// nqeinfo.
pub fn with_collectors(rig: &Rig, lines: &str) {
    assert_eq!(rig.down().code, 0);
    let info = "NLB_SERVER=host1\nNLB_QUEUE=normal\nNQE_DEFAULT_COMPLIST=NQS,NLB,COLLECTOR\n";
    rig.write("conf/nqeinfo", &format!("{info}{lines}"));
    let mut up = Command::new(binary());
    up.args(["up", "--nlb", "--dir"]).arg(&rig.dir).env_remove("LSF_ENVDIR").stdin(Stdio::null());
    let said = Said::from(up.output().unwrap());
    assert_eq!(said.code, 0, "lsf up: {}{}", said.out, said.err);
    rig.ready();
}

/// The values of an object as nlbconfig dumps it.
fn value(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find_map(|l| l.trim().strip_prefix(name)?.strip_prefix(" = "))?;
    Some(line.split(';').next()?.to_owned())
}

fn program(rig: &Rig, name: &str, body: &str, mode: u32) {
    let path = rig.path(name);
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
}

fn log(rig: &Rig, host: &str) -> String {
    rig.read(&format!("log/ccollect.log.{host}"))
}

fn pids(rig: &Rig, file: &str) -> Vec<u32> {
    rig.read(file).lines().filter_map(|l| l.parse().ok()).collect()
}

/// Runs the cluster with a custom collector of each kind.
fn with_programs(rig: &Rig) {
    let dir = rig.dir.display().to_string();
    let write = "echo \"object NLB ($LSF_LOCAL_HOST) { SITE_INODES = 4711; }\"";
    let own = format!("{dir}/data.$LSF_LOCAL_HOST");
    let inodes = format!(
        "echo $$ >> {dir}/pids.$LSF_LOCAL_HOST; pwd > {dir}/cwd; env > {dir}/env\n\
         while :; do {write} > {own}.new && mv {own}.new {own}; sleep 1; done"
    );
    program(rig, "inodes", &inodes, 0o755);
    program(rig, "dies", "exit 3", 0o755);
    program(rig, "flood", "while :; do printf 'rub\\033bish\\n'; done", 0o755);
    let hangs =
        format!("echo $$ >> {dir}/hangs.$LSF_LOCAL_HOST; trap '' TERM\nwhile :; do sleep 1; done");
    program(rig, "hangs", &hangs, 0o755);
    program(rig, "shared", &format!("touch {dir}/shared.ran"), 0o777);
    rig.write("data.file", "object NLB (host2) { SITE_FILE = \"of host2\"; }\n");
    let list = "inodes: dies: flood, a, b: hangs: shared: data.file: absent";
    with_collectors(
        rig,
        &format!(
            "NQE_BIN={dir}\nNQE_CUSTOM_COLLECTOR_LIST=\"{list}\"\n\
             NLB_CCOLLECT_OPTIONS=\"-i 5 -d {dir} -C {dir}/data.host1 -C {dir}/data.host2\"\n"
        ),
    );
}

/// Nothing is left of programs when their collector has gone.
fn killed_and_stopped(rig: &Rig) {
    // a collector that is killed leaves nothing running twice
    let first = pids(rig, "pids.host1");
    assert!(rig.kill9("ccollect", "host1"));
    wait_for("another collector", || pids(rig, "pids.host1").len() > first.len());
    wait_for("the program of before to end", || !alive(first[0]));
    let dump = || rig.run("nlbconfig", &["-t", "NLB", "-odump", "-n", "host1"]).out;
    wait_for("the values again", || value(&dump(), "SITE_INODES").is_some());
    // and one that is stopped leaves nothing at all, whatever a program does about it
    assert_eq!(rig.down().code, 0);
    let mut all = Vec::new();
    for file in ["pids.host1", "pids.host2", "hangs.host1", "hangs.host2"] {
        all.extend(pids(rig, file));
    }
    assert!(all.len() >= 6, "{all:?}");
    wait_for("all programs to end", || all.iter().all(|pid| !alive(*pid)));
}

#[test]
fn collectors_report_their_hosts_and_keep_the_programs_of_the_site_running() {
    let rig = Rig::up("collect", 2);
    assert!(rig.pids("ccollect").is_empty(), "a collector without nqeinfo");
    let dir = rig.dir.display().to_string();
    with_programs(&rig);
    crate::nlb::hosts(&rig, &[]);
    let text = rig.ok("nlbconfig", &["-mdump", "-t", "NLB"]);
    let further = "{\n\tSITE_INODES \"\" integer(9000);\n\tSITE_FILE \"\" string(9001);";
    rig.write("name_map", &text.replacen('{', further, 1));
    rig.ok("nlbconfig", &["-mput", "name_map"]);
    let dump = |host: &str| rig.run("nlbconfig", &["-t", "NLB", "-odump", "-n", host]).out;
    for host in ["host1", "host2"] {
        wait_for("custom objects", || value(&dump(host), "SITE_INODES").is_some());
        let text = dump(host);
        assert_eq!(value(&text, "SITE_INODES").as_deref(), Some("4711"), "{text}");
        assert_eq!(value(&text, "NLB_HOST"), Some(format!("\"{host}\"")), "{text}");
        assert_eq!(value(&text, "NLB_TMPNAME"), Some(format!("\"{dir}\"")), "{text}");
        assert_eq!(value(&text, "NLB_QUEUE_NAME").as_deref(), Some("\"normal\""), "{text}");
        // it may have been measured before its batch agent was up
        wait_for("the batch agent", || value(&dump(host), "NLB_NQS_UP").as_deref() == Some("1"));
        assert!(value(&text, "NLB_A_SYSCPU").is_some(), "{text}");
        assert_eq!(value(&text, "SITE_FILE").is_some(), host == "host2", "{text}");
    }
    let status = rig.ok("nlbconfig", &["-status"]);
    assert!(status.contains("HOSTS_COLLECTOR: 2\n"), "{status}");
    let only = format!("{dir}/shared can be changed by users other than its owner and root");
    for words in [
        &format!("shared: not started: {only}"),
        "dies: ended with exit code 3; it is started again in",
        "flood says: rub\\u{1b}bish",
        "flood says more than 20 lines: not logged",
        "absent: not started: No such file or directory",
    ] {
        wait_for(words, || log(&rig, "host1").contains(words));
    }
    assert!(!rig.path("shared.ran").exists());
    let said = log(&rig, "host1");
    assert!(said.matches("shared: not started").count() == 1, "{said}");
    assert_eq!(rig.read("cwd").trim(), rig.path("work/personal/nqe").display().to_string());
    let env = rig.read("env");
    let names: Vec<&str> = env.lines().filter_map(|l| l.split_once('=')).map(|(n, _)| n).collect();
    let known =
        |n: &&str| n.starts_with("LSF_") || ["PATH", "PWD", "SHLVL", "_", "OLDPWD"].contains(n);
    assert!(names.iter().all(known) && names.contains(&"LSF_ENVDIR"), "{names:?}");
    killed_and_stopped(&rig);
}

#[test]
fn a_report_that_is_printed_has_the_figures_of_the_same_second() {
    let rig = Rig::up("collect-once", 1);
    let field = |file: &str, name: &str, at: usize| -> u64 {
        let text = std::fs::read_to_string(file).unwrap();
        let line = text.lines().find(|l| l.split([' ', ':']).next() == Some(name)).unwrap();
        line.split_whitespace().nth(at).unwrap().parse().unwrap()
    };
    rig.write("custom", "object NLB (host1) { NLB_CLOCK = 77; }\nobject NLB (hostb) { }\n");
    let switches = || field("/proc/stat", "ctxt", 1);
    let vmstat = Command::new("vmstat").args(["1", "2"]).stdout(Stdio::piped()).spawn();
    let (before, began) = (switches(), std::time::Instant::now());
    let said = rig.run("ccollect", &["-n", "-Q", "night", "-C", "custom"]);
    let (after, secs) = (switches(), began.elapsed().as_secs_f64());
    let text = &said.out;
    let number = |name: &str| -> f64 {
        value(text, name).unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
    };
    assert!(text.starts_with("object NLB (host1) {\n\tNLB_OSNAME = \"Linux\";\n"), "{text}");
    assert_eq!(number("NLB_PHYSMEM"), field("/proc/meminfo", "MemTotal", 1) as f64);
    assert_eq!(number("NLB_SWAPSIZE"), (field("/proc/meminfo", "SwapTotal", 1) / 1024) as f64);
    let free = field("/proc/meminfo", "MemAvailable", 1) as f64;
    assert!((number("NLB_FREEMEM") - free).abs() < free / 10.0, "{text}");
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    assert_eq!(number("NLB_NCPUS"), cpus);
    // no more switches than there were in the time around
    assert!(number("NLB_PSWCH") <= (after - before) as f64, "{secs} s, {text}");
    for name in ["NLB_IDLECPU", "NLB_SYSCPU", "NLB_RUNQOCC"] {
        assert!((0.0..=100.0).contains(&number(name)), "{text}");
        assert_eq!(number(name), number(&name.replacen("NLB_", "NLB_A_", 1)), "{text}");
    }
    assert_eq!((number("NLB_CLOCK"), number("NLB_NQS_UP")), (77.0, 1.0));
    assert_eq!(value(text, "NLB_QUEUE_NAME").as_deref(), Some("\"night\""));
    pages_name_what_is_not_measured(text);
    let path = rig.path("custom").display().to_string();
    let words = "1 object is not sent: a collector reports its own host alone";
    assert_eq!((said.code, said.err), (0, format!("{path}: <hostb>: {words}\n")));
    if let Ok(vmstat) = vmstat {
        let out = String::from_utf8(vmstat.wait_with_output().unwrap().stdout).unwrap();
        let columns: Vec<&str> = out.lines().nth(1).unwrap().split_whitespace().collect();
        let last: Vec<f64> =
            out.lines().nth(3).unwrap().split_whitespace().map(|w| w.parse().unwrap()).collect();
        let of = |name: &str| last[columns.iter().position(|c| *c == name).unwrap()];
        // the two seconds overlap; the machine may be busy with other tests
        let idle = of("id") + of("wa");
        assert!((number("NLB_IDLECPU") - idle).abs() <= 30.0, "{idle}: {text}");
    }
}

/// The attributes of the shipped map that a report does not have, but for those of the server and
/// those that some machines do not tell, are named by the pages.
fn pages_name_what_is_not_measured(report: &str) {
    let others = ["NLB_POLICY", "NLB_TIMESTAMP", "NLB_HOST", "NLB_IOTOTAL", "NLB_IOREQS"];
    let maps = NameMaps::shipped();
    let attributes = maps.numbered(NLB).unwrap().attributes().iter();
    let names = attributes.map(|a| a.name.to_string()).filter(|name| value(report, name).is_none());
    let names: BTreeSet<String> = names.map(|n| n.replacen("NLB_A_", "NLB_", 1)).collect();
    let missing: Vec<&String> = names.iter().filter(|n| !others.contains(&n.as_str())).collect();
    assert_eq!(missing.len(), 4, "{missing:?}");
    for (page, from) in [("ccollect.8", "Not measured are"), ("name_map.5", "nothing measures")] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man").join(page);
        let text = std::fs::read_to_string(path).unwrap();
        let told = text.split(from).nth(1).unwrap().split("\n.").next().unwrap();
        assert!(missing.iter().all(|name| told.contains(name.as_str())), "{page}: {missing:?}");
    }
}

#[test]
fn options_that_cannot_be_are_refused_with_words() {
    let rig = Rig::up("collect-options", 1);
    let refused = |args: &[&str], words: &str| {
        let mut all = vec!["-n"];
        all.extend(args);
        let said = rig.run("ccollect", &all);
        let wanted = format!("ccollect: {words}\n");
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (255, "", wanted.as_str()));
    };
    refused(&["-r", "10"], "-r <10>: shorter than the interval of 30 s");
    refused(&["-r", "18031"], "-r <18031>: longer than 600 intervals of 30 s");
    refused(&["-i", "4"], "-i <4>: 5 to 3600 seconds are wanted");
    refused(&["-i", "x"], "-i <x>: a number of seconds is wanted");
    refused(&["-s", "host1:x"], "<host1:x> names no port");
    let none = rig.run("ccollect", &[]);
    let words = "ccollect: no NLB server is known: NLB_SERVER is not set\n";
    assert_eq!((none.code, none.err.as_str()), (255, words));
    // files that are none
    let dir = rig.dir.display().to_string();
    rig.write("real", "object NLB (host1) { NLB_CLOCK = 77; }\n");
    std::os::unix::fs::symlink(rig.path("real"), rig.path("link")).unwrap();
    assert!(Command::new("mkfifo").arg(rig.path("fifo")).status().unwrap().success());
    std::fs::write(rig.path("bytes"), [0xff, 0xfe, b'\n']).unwrap();
    rig.write("half", "object NLB (host1) { NLB_CLOCK = ");
    rig.write("large", &" ".repeat(5 << 20));
    for (file, words) in [
        ("link", ": a symbolic link is not followed"),
        ("fifo", ": not a plain file"),
        ("", ": not a plain file"),
        ("absent", ": No such file or directory"),
        ("bytes", ":1:1: not UTF-8"),
        ("half", ":1:34: a value is wanted before the end of the file"),
        ("large", ": larger than 1 MB"),
    ] {
        let path = if file.is_empty() { dir.clone() } else { format!("{dir}/{file}") };
        let said = rig.run("ccollect", &["-n", "-C", &path]);
        assert_eq!((said.code, said.err), (0, format!("{path}{words}\n")));
        assert_ne!(value(&said.out, "NLB_CLOCK").as_deref(), Some("77"));
    }
    let list = rig.cmd("ccollect").args(["-n"]).env("NQE_CUSTOM_COLLECTOR_LIST", ",a").output();
    let said = Said::from(list.unwrap());
    let words = "NQE_CUSTOM_COLLECTOR_LIST: a comma stands where a program is wanted";
    assert_eq!((said.code, said.err), (255, format!("ccollect: {words}\n")));
}
