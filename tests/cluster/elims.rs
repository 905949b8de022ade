//! Elims: which hosts start which, what becomes of what they report and of those that fail. Real
//! scripts in LSF_SERVERDIR of real clusters, by the rows of LSF's elim document.

use crate::install::installed;
use crate::nodes::Nodes;
use crate::rig::{Rig, Said, alive, kill, program, wait_for};
use crate::site::{ADMIN, uid};
use std::collections::BTreeMap;

/// The sample elim of LSF's document, as it stands there but for two no-break spaces of its
/// typesetting round a `=`, with which every shell would take the test for true.
const SAMPLE: &str = include_str!("../expected/elim.sample");

/// A cluster of three hosts with these rows of lsf.shared's Resource and lsf.cluster's
/// ResourceMap sections, and these elims.
fn cluster(name: &str, resources: &str, map: &str, elims: &[(&str, String)]) -> Rig {
    let rig = Rig::up(name, 3);
    assert_eq!(rig.down().code, 0);
    let path = rig.path("conf/lsf.shared");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("End Resource\n", &format!("{resources}End Resource\n"));
    std::fs::write(path, text).unwrap();
    let path = rig.path("conf/lsf.cluster.personal");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text = text.replace("End Parameters", "HOST_INACTIVITY_LIMIT=1\nRETRY_LIMIT=1\nEnd Parameters");
    text.push_str(&format!("Begin ResourceMap\nRESOURCENAME LOCATION\n{map}End ResourceMap\n"));
    std::fs::write(path, text).unwrap();
    for (elim, script) in elims {
        put(&rig, elim, script);
    }
    rig.start();
    rig.ready();
    rig
}

fn put(rig: &Rig, elim: &str, script: &str) {
    let path = rig.path(&format!("etc/{elim}"));
    program(&path, script);
}

/// Writes down its environment, then reports this line every second.
fn probe(rig_dir: &str, name: &str, line: &str) -> String {
    format!(
        "#!/bin/sh\necho \"$$ $LSF_LOCAL_HOST $LSF_MASTER $ELIM_ABORT_VALUE $LSF_RESOURCES\" \
         >> {rig_dir}/{name}.seen\nwhile :; do echo \"{line}\"; sleep 1; done\n"
    )
}

/// Host, LSF_MASTER and LSF_RESOURCES of those of a probe that live.
fn seen(rig: &Rig, name: &str) -> BTreeMap<String, (String, String)> {
    let text = rig.read(&format!("{name}.seen"));
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let w: Vec<&str> = line.split_whitespace().collect();
        if alive(w[0].parse().unwrap()) {
            assert_eq!(w[3], "97");
            found.insert(w[1].to_owned(), (w[2].to_owned(), w[4..].join(" ")));
        }
    }
    found
}

fn row(master: &str, resources: &str) -> (String, String) {
    (master.to_owned(), resources.to_owned())
}

/// The value of a resource on a host, as lsload shows it.
fn value(rig: &Rig, host: &str, resource: &str) -> String {
    let said = rig.run("lsload", &["-I", resource, host]);
    let cell = said.out.lines().nth(1).and_then(|l| l.split_whitespace().nth(2));
    cell.unwrap_or_default().to_owned()
}

fn log(rig: &Rig, host: &str) -> String {
    rig.read(&format!("log/melim.log.{host}"))
}

const NUMERIC: &str = "Numeric 15 Y (test)\n";

#[test]
fn elims_report_at_the_locations_of_lsf_cluster() {
    let dir = std::env::temp_dir().join(format!("lsf-elimseen-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let at = dir.to_str().unwrap().to_owned();
    let names = ["every", "whole", "but2", "one", "pair"];
    let resources: String = names.map(|n| format!("{n} {NUMERIC}")).concat();
    let map = "every [default]\nwhole ([all])\nbut2 ([all ~host2])\none ([host3])\n\
               pair ([host2 host3] [host1])\n";
    let line = "5 every 1 whole 2 but2 3 one 4 pair $$";
    let rig = cluster("elims", &resources, map, &[("elim", probe(&at, "a", line))]);
    let rig = Seen { rig, dir };
    // `default` is there: every elim runs on every host, each for what is expected there
    let everywhere = BTreeMap::from([
        ("host1".to_owned(), row("Y", "every whole but2 pair")),
        ("host2".to_owned(), row("N", "every pair")),
        ("host3".to_owned(), row("N", "every one")),
    ]);
    wait_for("elims as the map wants them", || rig.seen("a") == everywhere);
    // what they report is where it belongs
    wait_for("the values", || {
        let values = |h: &str| ["every", "whole", "but2", "one"].map(|r| value(&rig.rig, h, r));
        values("host1") == ["1", "2", "3", "-"]
            && values("host2") == ["1", "2", "-", "-"]
            && values("host3") == ["1", "2", "3", "4"]
    });
    let r = &rig.rig;
    let (one, two) = (value(r, "host2", "pair"), value(r, "host1", "pair"));
    assert!(one != two && value(r, "host3", "pair") == one, "{one} {two}");
    // everywhere a built-in index is
    let said = r.ok("lsload", &["-l"]);
    let head = said.lines().next().unwrap();
    assert!(head.ends_with("mem  every"), "{head}: shared ones are -s's");
    let shared = r.ok("lsload", &["-s", "whole", "one", "pair"]);
    let row =
        |name: &str, value: &str, hosts: &str| format!("{name:<30} {value:>14}       {hosts} \n");
    for want in [row("whole", "2", "host1 host2 host3"), row("one", "4", "host3")] {
        assert!(shared.contains(&want), "{shared}");
    }
    assert!(shared.contains(&row("pair", &one, "host2 host3")), "{shared}");
    assert!(r.ok("lshosts", &["-s", "whole"]).contains(&row("whole", "2", "host1 host2 host3")));
    let hosts = |req: &str| {
        let out = r.ok("lsload", &["-R", req]);
        let mut names: Vec<String> = out.lines().skip(1).map(|l| l[..5].to_owned()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(hosts("select[one==4]"), ["host3"]);
    assert_eq!(hosts("select[defined(but2) && every==1] order[pair]"), ["host1", "host3"]);
    let job = r.bsub(&["-R", "select[one==4]", "-o", "/dev/null", "true"]);
    assert_eq!(r.end_of(job), "DONE");
    assert_eq!(r.field(&job.to_string(), "exec_host"), "host3");
    // the first of the list is gone: the next one reports, until it is back
    for daemon in ["launcher", "lim", "melim", "sbatchd"] {
        r.kill9(daemon, "host2");
    }
    wait_for("host3 to report for the pair", || {
        rig.seen("a").get("host3").is_some_and(|s| s.1 == "every one pair")
    });
    wait_for("its value", || !["-", "", &one].contains(&value(r, "host3", "pair").as_str()));
    r.start();
    wait_for("host2 to report again, and host3 no more", || rig.seen("a") == everywhere);
}

struct Seen {
    rig: Rig,
    dir: std::path::PathBuf,
}

impl Seen {
    fn seen(&self, name: &str) -> BTreeMap<String, (String, String)> {
        let text = std::fs::read_to_string(self.dir.join(format!("{name}.seen")));
        self.rig.write(&format!("{name}.seen"), &text.unwrap_or_default());
        seen(&self.rig, name)
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn sample_elim_reports_on_the_hosts_of_its_resource() {
    // no `default`: elims on the master for [all], on the first of the list; none on host3
    let map = "myrsc ([all])\npair ([host2 host3])\n";
    let resources = format!("myrsc {NUMERIC}pair {NUMERIC}");
    let other = SAMPLE.replace("myrsc", "pair").replace("val=\"1\"", "val=\"8\"");
    let elims = [("elim.sample", SAMPLE.to_owned()), ("elim.pair", other)];
    let rig = cluster("elims2", &resources, map, &elims);
    wait_for("its value", || value(&rig, "host3", "myrsc") == "1");
    wait_for("the pair's", || value(&rig, "host3", "pair") == "8");
    // until then no threshold of it holds anything back there
    let known = |host: &str| {
        let shown = rig.ok("bhosts", &["-l", host]);
        let at = shown.lines().position(|l| l.trim_start().starts_with("myrsc"));
        let total = at.and_then(|at| shown.lines().nth(at + 1)).unwrap_or_default();
        total.split_whitespace().nth(1) == Some("1")
    };
    wait_for("mbatchd to know it", || ["host1", "host2", "host3"].into_iter().all(known));
    // a queue with a threshold of it dispatches where it is not beyond that
    let queues = rig.configdir().join("lsb.queues");
    let text = std::fs::read_to_string(&queues).unwrap();
    let queue = |name: &str, bound: u32| {
        format!("Begin Queue\nQUEUE_NAME = {name}\nmyrsc = {bound}/\nEnd Queue\n")
    };
    std::fs::write(&queues, text + &queue("shut", 0) + &queue("wide", 1)).unwrap();
    assert_eq!(rig.run("badmin", &["reconfig", "-f"]).code, 0);
    let shut = rig.bsub(&["-q", "shut", "-o", "/dev/null", "true"]);
    let wide = rig.bsub(&["-q", "wide", "-o", "/dev/null", "true"]);
    assert_eq!(rig.end_of(wide), "DONE");
    let why = rig.ok("bjobs", &["-p", &shut.to_string()]);
    assert!(why.contains("External load index (myrsc) is beyond threshold"), "{why}");
    assert!(rig.pid("melim", "host3").is_none() && rig.pid("melim", "host1").is_some());
    // each found that it is not wanted on the other's host, and is not started again
    let gone = "ended with exit code 97; it is not wanted here, and not started again";
    wait_for("the words", || {
        log(&rig, "host1").contains(&format!("elim.pair: {gone}"))
            && log(&rig, "host2").contains(&format!("elim.sample: {gone}"))
    });
    // one process a host at least, and all of it goes with lim
    let melim = rig.pid("melim", "host1").unwrap();
    let below = lsf::sys::procs::below(melim);
    assert!(!below.is_empty());
    assert_eq!(rig.run("lsadmin", &["limrestart", "-v", "-f", "host1"]).code, 0);
    wait_for("the old ones to end", || !alive(melim) && below.iter().all(|p| !p.alive()));
    wait_for("the value again", || value(&rig, "host3", "myrsc") == "1");
}

/// An elim that reports what stands in a file: tok, which all hosts share, and scr.
const FROM_A_FILE: &str = "#!/bin/sh\nwhile :; do read t s < $LSF_ENVDIR/../values && \
                           echo 2 tok $t scr $s; sleep 0.2; done\n";

/// Has [`FROM_A_FILE`] report these values, and waits until they are known.
fn set(rig: &Rig, values: &str) {
    rig.write("values.new", &format!("{values}\n"));
    std::fs::rename(rig.path("values.new"), rig.path("values")).unwrap();
    let want: Vec<&str> = values.split(' ').collect();
    let known = || ["tok", "scr"].map(|index| value(rig, "host2", index)) == want[..];
    wait_for("the values", known);
}

/// Changes a file of the lsb.* directory.
fn edit(rig: &Rig, file: &str, f: &dyn Fn(String) -> String) {
    let path = rig.configdir().join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, f(text)).unwrap();
}

#[test]
fn external_indices_act_like_built_in_ones() {
    let resources = "tok Numeric 15 N (shared by all)\nscr Numeric 15 N (a host's own)\n\
                     lic Numeric () N (static)\n";
    let map = "tok ([all])\nscr [default]\nlic (3@[all])\n";
    let rig = cluster("elims4", resources, map, &[("elim", FROM_A_FILE.to_owned())]);
    let set = |values: &str| set(&rig, values);
    set("5 9");
    let edit = |file: &str, f: &dyn Fn(String) -> String| edit(&rig, file, f);
    let queue = "Begin Queue\nQUEUE_NAME = load\nPRIORITY = 20\ntok = 4/2\nEnd Queue\n";
    edit("lsb.queues", &|t| t + queue);
    edit("lsb.hosts", &|_| "Begin Host\nHOST_NAME MXJ scr\ndefault 9 2/1\nEnd Host\n".into());
    edit("lsb.params", &|t| t.replace("End Parameters", "SBD_SLEEP_TIME = 1\nEnd Parameters"));
    let said = rig.run("badmin", &["reconfig", "-f"]);
    assert_eq!(said.code, 0, "{}", said.err);
    // shown beside the built-in ones
    let shown = rig.ok("bqueues", &["-l", "load"]);
    let table = "              tok\n loadSched    4.0\n loadStop     2.0\n";
    assert!(shown.contains(table), "{shown}");
    wait_for("the loads in bhosts", || {
        let shown = rig.ok("bhosts", &["-l", "host2"]);
        let rows = "             tok   scr   lic\n Total         5     9     3\n \
                    Reserved    0.0   0.0   0.0\n";
        shown.contains(rows) && shown.contains("scr\n loadSched    2.0\n loadStop     1.0\n")
    });
    // rusage, of what hosts share
    fn lic(host: &str) -> [&str; 8] {
        ["-R", "rusage[lic=2]", "-m", host, "-o", "/dev/null", "sleep", "1000"]
    }
    let first = rig.bsub(&lic("host1"));
    wait_for("the first to run", || rig.stat(first) == "RUN");
    let second = rig.bsub(&lic("host2"));
    let row = |total: &str, reserved: &str| format!("{total:>10}{reserved:>15}       host1 host2");
    let shown = rig.ok("bhosts", &["-s"]);
    assert!(shown.contains(&format!("{:<20}{}", "lic", row("3", "2.0"))), "{shown}");
    assert!(shown.contains(&format!("{:<20}{}", "tok", row("5", "0.0"))), "{shown}");
    let why = rig.ok("bjobs", &["-p", &second.to_string()]);
    let told = "Job's requirements for reserving resource (lic) not satisfied";
    assert!(why.contains(told), "{why}");
    let none = rig.bsub(&["-R", "select[lic>1]", "-o", "/dev/null", "true"]);
    assert_eq!(rig.field(&none.to_string(), "stat"), "PEND");
    rig.ok("bkill", &[&first.to_string(), &none.to_string()]);
    wait_for("the second to run", || rig.stat(second) == "RUN");
    // loadStop of a queue: one of two on a host is suspended, and goes on
    let load = ["-q", "load", "-m", "host3", "-o", "/dev/null", "sleep", "1000"];
    let jobs = [rig.bsub(&load), rig.bsub(&load)];
    let stats = || jobs.map(|j| rig.field(&j.to_string(), "stat"));
    wait_for("both to run", || stats() == ["RUN", "RUN"]);
    set("1 9");
    wait_for("one to be suspended", || stats().contains(&"SSUSP".to_owned()));
    assert!(stats().contains(&"RUN".to_owned()), "one alone on its host goes on");
    let held = jobs[stats().iter().position(|s| s == "SSUSP").unwrap()];
    let why = rig.ok("bjobs", &["-s", &held.to_string()]);
    assert!(why.contains("Host load exceeded threshold:  External load index (tok);"), "{why}");
    set("5 9");
    wait_for("both to run again", || stats() == ["RUN", "RUN"]);
    // loadSched of hosts
    set("5 1.5");
    wait_for("hosts to be busy", || rig.ok("bhosts", &["-w"]).matches("closed_Busy").count() == 3);
    let late = rig.bsub(&["-o", "/dev/null", "true"]);
    let why = rig.ok("bjobs", &["-p", &late.to_string()]);
    assert!(why.contains("External load index (scr) is beyond threshold"), "{why}");
    set("5 9");
    assert_eq!(rig.end_of(late), "DONE");
}

#[test]
fn queue_conditions_and_rusage_alternatives_follow_the_values_of_elims() {
    let resources = "tok Numeric 15 N (shared by all)\nscr Numeric 15 N (a host's own)\n";
    let map = "tok ([all])\nscr [default]\n";
    let rig = cluster("elims5", resources, map, &[("elim", FROM_A_FILE.to_owned())]);
    let set = |values: &str| set(&rig, values);
    set("5 9");
    let edit = |file: &str, f: &dyn Fn(String) -> String| edit(&rig, file, f);
    let queue = |name: &str, lines: &str| {
        format!("Begin Queue\nQUEUE_NAME = {name}\nPRIORITY = 20\n{lines}\nEnd Queue\n")
    };
    let cond = queue("cond", "STOP_COND = select[tok < 2]\nRESUME_COND = select[scr > 8]");
    let ends = queue("ends", "tok = /2\nTERMINATE_WHEN = LOAD");
    edit("lsb.queues", &|t| t + &cond + &ends);
    edit("lsb.hosts", &|_| "Begin Host\nHOST_NAME MXJ\ndefault 9\nEnd Host\n".into());
    edit("lsb.params", &|t| t.replace("End Parameters", "SBD_SLEEP_TIME = 1\nEnd Parameters"));
    assert_eq!(rig.run("badmin", &["reconfig", "-f"]).code, 0);
    let shown = rig.ok("bqueues", &["-l", "cond"]);
    assert!(shown.contains("STOP_COND:  select[tok < 2]\n"), "{shown}");
    assert!(shown.contains("RESUME_COND:  select[scr > 8]\n"), "{shown}");
    let on = |queue: &'static str, host: &'static str| {
        rig.bsub(&["-q", queue, "-m", host, "-o", "/dev/null", "sleep", "1000"])
    };
    let jobs = [on("cond", "host3"), on("cond", "host3")];
    let others = [on("ends", "host2"), on("ends", "host2")];
    let stats = || jobs.map(|j| rig.field(&j.to_string(), "stat"));
    wait_for("all to run", || {
        stats() == ["RUN", "RUN"] && others.iter().all(|j| rig.stat(*j) == "RUN")
    });
    set("1 9");
    wait_for("one to be suspended", || stats().contains(&"SSUSP".to_owned()));
    let held = jobs[stats().iter().position(|s| s == "SSUSP").unwrap()].to_string();
    let why = rig.ok("bjobs", &["-s", &held]);
    assert!(why.contains(" STOP_COND is true with current host load;"), "{why}");
    // of the other queue's two, one is ended
    wait_for("one to be ended", || others.iter().any(|j| rig.stat(*j) == "EXIT"));
    let gone = others.into_iter().find(|j| rig.stat(*j) == "EXIT").unwrap();
    let told = rig.ok("bjobs", &["-l", &gone.to_string()]);
    assert!(told.contains("TERM_LOAD: job killed after load exceeds"), "{told}");
    set("5 7");
    wait_for("the other reason", || {
        let why = rig.ok("bjobs", &["-s", &held]);
        why.contains(" RESUME_COND is false with current host load;")
    });
    set("5 9");
    wait_for("both to run again", || stats() == ["RUN", "RUN"]);
    // two share the tok, the third takes the other alternative
    let asks = ["-R", "rusage[tok=2 || scr=9]", "-m", "host1", "-o", "/dev/null", "sleep", "1000"];
    let three = [rig.bsub(&asks), rig.bsub(&asks), rig.bsub(&asks)];
    wait_for("all three", || three.iter().all(|j| rig.stat(*j) == "RUN"));
    let used = three.map(|j| rig.field(&j.to_string(), "effective_resreq"));
    for (text, want) in used.iter().zip(["tok=2.00", "tok=2.00", "scr=9.00"]) {
        assert!(text.contains(&format!("rusage[{want}]")), "{used:?}");
    }
    let fourth = rig.bsub(&asks);
    let why = rig.ok("bjobs", &["-p", &fourth.to_string()]);
    assert!(why.contains("Job's requirements for reserving resource (tok) not satisfied"), "{why}");
}

#[test]
fn faults_of_an_elim_are_logged_and_leave_others_alone() {
    let words: String = ["good", "bad", "two", "late"].map(|n| format!("{n} {NUMERIC}")).concat();
    let resources = format!("{words}text String 15 () (test)\nflag Boolean 15 () (test)\n");
    let map = "good [default]\nbad [default]\ntwo [default]\nlate [default]\ntext [default]\n\
               flag [default]\n";
    let script = |body: &str| format!("#!/bin/sh\n{body}\nexec sleep 1000\n");
    let faults = "printf '1 ba'; sleep 0.2; printf 'd 5\\n'\necho '2 bad 6'\necho '1 nosuch 1'\n\
                  echo '1 bad NaN'\necho '1 text a b'\necho complaint >&2\n\
                  echo '2 text word flag 1'\nprintf '1 bad'";
    let elims = [
        ("elim.good", script("echo '2 good 1 two 1'")),
        ("elim.bad", script(faults)),
        ("elim.long", script("head -c 1000000 /dev/zero | tr '\\0' 1; echo; echo '1 late 3'")),
        ("elim.two", script("sleep 1; echo '1 two 2'")),
        ("elim.silent", script(":")),
        (
            "elim.dies",
            "#!/bin/sh\necho started >> $LSF_ENVDIR/../dies.$LSF_LOCAL_HOST\nkill -9 $$\n".into(),
        ),
        ("elim.notes", script("echo '1 good 99'").replace("/bin/sh", "/nonexistent")),
        ("elimination", script("echo '1 good 98'")),
    ];
    let rig = cluster("elims3", &resources, map, &elims);
    let all = ["good", "bad", "two", "late", "text", "flag"];
    wait_for("the values that are right", || {
        all.map(|r| value(&rig, "host2", r)) == ["1", "5", "2", "3", "word", "1"]
    });
    let text = log(&rig, "host2");
    for want in [
        "elim.bad: fault 1: 2 indices announced, 2 words follow: line <2 bad 6> is dropped",
        "<nosuch> is not a resource of lsf.shared: line <1 nosuch 1> is dropped",
        "<NaN> is not a value of bad: line <1 bad NaN> is dropped",
        "elim.bad: fault 4: 1 indices announced, 3 words follow",
        "elim.long: fault 1: a line longer than 65536 bytes",
        "elim.dies: ended with a signal; started again 90 s after its last start",
        "says: complaint",
        "elim.notes: No such file or directory",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
    assert_eq!(rig.read("dies.host2"), "started\n");
    // each of them is gone with melim, which lim has start again
    let melim = rig.pid("melim", "host2").unwrap();
    kill(melim, 9);
    wait_for("another melim", || rig.pid("melim", "host2").is_some_and(|p| p != melim));
    let said: Said = rig.run("lsload", &["-I", "good:nosuch"]);
    assert_eq!((said.code, said.err.as_str()), (255, "nosuch: Unknown resource name\n"));
}

#[test]
fn elims_of_a_site_run_as_the_administrator() {
    if !Nodes::possible("elims_of_a_site_run_as_the_administrator") {
        return;
    }
    let nodes = installed("elimuser", &["hosta"]);
    let top = nodes.path("top");
    let shared = std::fs::read_to_string(top.join("conf/lsf.shared")).unwrap();
    let shared = shared.replace("End Resource\n", &format!("who {NUMERIC}End Resource\n"));
    std::fs::write(top.join("conf/lsf.shared"), shared).unwrap();
    let path = top.join("conf/lsf.cluster.c1");
    let text = std::fs::read_to_string(&path).unwrap();
    let hosts = text.lines().filter(|l| !l.starts_with("hostb") && !l.starts_with("hostc"));
    let text: String = hosts.map(|l| format!("{l}\n")).collect();
    let map = "Begin ResourceMap\nRESOURCENAME LOCATION\nwho [default]\nEnd ResourceMap\n";
    std::fs::write(path, text + map).unwrap();
    nodes.write("top/etc/elim", "#!/bin/sh\nwhile :; do echo 1 who `id -u`; sleep 1; done\n");
    nodes.ok("root", "hosta", "chmod 755 $HOME/top/etc/elim 2>/dev/null || chmod 755 top/etc/elim");
    nodes.ok("root", "hosta", "lsf_daemons start");
    let want = uid(ADMIN).to_string();
    wait_for("the elim's own report", || {
        nodes.run("ann", "hosta", "lsload -I who").out.trim_end().ends_with(&want)
    });
    // a lim that root starts past the launcher runs none
    let s = nodes.run("root", "hosta", "LSF_RESOURCES=who melim");
    assert_eq!((s.code, s.err.as_str()), (255, "melim: elims are not run as root\n"));
}
