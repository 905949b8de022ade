//! Common features of the listing commands: refusals, formats of lsf.conf, readers that go away and
//! devices that are full.

use crate::common::*;
use std::process::Stdio;

/// Each refusal: the command, its words, what it says on stderr. Nothing goes to stdout, the exit
/// code is 255 and nothing is logged.
const REFUSED: &[(&str, &[&str], &str)] = &[
    ("bjobs", &["99999"], "Job <99999> is not found"),
    ("bjobs", &["-g", "/a", "99999"], "Job <99999> is not found"),
    ("bjobs", &["-q", "nosuch"], "nosuch: No such queue"),
    ("bjobs", &["-N", "nosuch"], "nosuch: Bad host specification"),
    ("bjobs", &["-N", "0"], "0: Bad host specification"),
    ("bjobs", &["-o", "jobid:x"], "<jobid:x> in the format string is not a valid output width."),
    ("bjobs", &["-G", "nosuch"], "nosuch: Bad user group name"),
    ("bjobs", &["-m", "no"], "no: Bad host name, host group name or cluster name"),
    ("bjobs", &["-J", "nojob"], "Job <nojob> is not found"),
    ("bjobs", &["-env", "99999"], "Job <99999> is not found"),
    ("bjobs", &["-script", "99999[2]"], "Job <99999[2]> is not found"),
    ("bjobs", &["abc"], "abc: Illegal job ID."),
    ("bpeek", &["abc"], "abc: Illegal job ID."),
    ("bpeek", &["-q", "nosuch"], "nosuch: No such queue"),
    ("bpeek", &["-m", "no"], "no: Bad host name, host group name or cluster name"),
    ("bpeek", &["-J", "nojob"], "Job <nojob> is not found"),
    ("bpeek", &["-J", "nojob", "-q", "short"], "Job <nojob> is not found in queue <short>"),
    ("bjobs", &["-A", "99999"], "Job array <99999> is not found"),
    ("bjobs", &["-A", "99999[2]"], "Job <99999[2]> is not a job array"),
    ("bjobs", &["-A", "-J", "nojob"], "Job array <nojob> is not found"),
    ("bjobs", &["-q", "short", "99999"], "Job <99999> is not found in queue <short>"),
    ("bpeek", &["99999"], "Job <99999>: No matching job found"),
    ("bqueues", &["nosuch"], "nosuch: No such queue"),
    ("bqueues", &["-l", "nosuch"], "nosuch: No such queue"),
    ("bqueues", &["-o", "foo"], "<foo> in the format string is not a valid field name."),
    ("bqueues", &["-m", "no"], "no: Bad host name, host group name or cluster name"),
    ("bhosts", &["nosuch"], "nosuch: Bad host name, host group name or cluster name"),
    ("bhosts", &["-l", "nosuch"], "nosuch: Bad host name, host group name or cluster name"),
    ("bhosts", &["-o", "foo"], "<foo> in the format string is not a valid field name."),
    ("bhosts", &["-R", "select[ncpus>100000]"], "Not enough host(s) currently eligible"),
    ("bhosts", &["-s", "nosuch"], "nosuch: Bad resource name"),
    ("busers", &["no-such-user"], "no-such-user: Unknown user"),
    ("busers", &["-o", "foo"], "<foo> in the format string is not a valid field name."),
    ("bugroup", &["nosuch"], "nosuch: Bad user group name"),
    ("bugroup", &["-l", "nosuch"], "nosuch: Bad user group name"),
    ("bmgroup", &["nosuch"], "nosuch: Bad host name, host group name or cluster name"),
    ("bhpart", &[], "No host partition defined in the system"),
    ("bapp", &["nosuch"], "nosuch: Application profile does not exist"),
    ("bapp", &["-l", "nosuch"], "nosuch: Application profile does not exist"),
    ("blimits", &["-n", "nosuch"], "nosuch: No such limit"),
    ("blimits", &["-q", "nosuch"], "nosuch: No such queue"),
    ("blimits", &["-m", "nosuch"], "nosuch: Bad host name, host group name or cluster name"),
    ("blimits", &["-A", "nosuch"], "nosuch: Application profile does not exist"),
    ("blimits", &["-o", "foo"], "<foo> in the format string is not a valid field name."),
    ("bresources", &["-s", "nosuch"], "nosuch: No reservation usage is configured"),
    ("bresources", &["-g"], "No guaranteed resource pool found."),
    ("bsla", &[], "No service class is configured"),
    ("bresources", &["-p"], "bresources: option -p is accepted but not acted on yet"),
    ("lshosts", &["nosuch"], "nosuch: Bad host name"),
    ("lshosts", &["-R", "select[ncpus>100000]"], "No host is eligible"),
    ("lshosts", &["-o", "foo"], "<foo> in the format string is not a valid field name."),
    ("lshosts", &["-s", "nosuch"], "nosuch: Resource name not found"),
    ("lsload", &["nosuch"], "nosuch: Bad host name"),
    ("lsload", &["-R", "select[ncpus>100000]"], "No host is eligible"),
    ("lsload", &["-I", "nosuch"], "nosuch: Unknown resource name"),
    ("lsload", &["-o", "foo"], "<foo> in the format string is not a valid field name."),
    ("lsinfo", &["xyz"], "xyz: Resource name not found"),
    ("lsclusters", &["xyz"], "xyz: Unknown cluster name"),
];

#[test]
fn listings_refuse_wrong_words_with_the_words_of_lsf() {
    for (command, words, why) in REFUSED {
        let said = run(command, words);
        let want = Said { code: 255, out: String::new(), err: format!("{why}\n") };
        assert_eq!(said, want, "{command} {words:?}");
    }
    for command in ["bhosts", "lshosts", "lsload"] {
        let said = run(command, &["-R", "select[mem>"]);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{command}");
        assert!(said.err.contains("Bad resource requirement syntax"), "{command}: {}", said.err);
    }
    // a queue of that name would have been logged by nobody: listings change nothing
    assert!(!event_log().contains("nosuch"));
}

/// Every command that lists, in a form that has something to show.
const LISTINGS: &[(&str, &[&str])] = &[
    ("bjobs", &["-u", "all"]),
    ("bjobs", &["-l", "-u", "all"]),
    ("bjobs", &["-json", "-u", "all"]),
    ("bqueues", &["-l"]),
    ("bhosts", &["-l"]),
    ("bparams", &["-a"]),
    ("busers", &["all"]),
    ("bslots", &[]),
    ("lsload", &["-l"]),
    ("lshosts", &["-l"]),
    ("lsinfo", &[]),
    ("lsid", &[]),
    ("lsclusters", &[]),
];

#[test]
fn listings_end_quietly_without_a_reader_and_fail_on_a_full_device() {
    let id = bsub(&["-H", "-J", "full[1-300]", "true"]);
    for (command, words) in LISTINGS {
        let mut c = cmd(command);
        let mut child =
            c.args(*words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let gone = Said::from(child.wait_with_output().unwrap());
        assert_eq!((gone.code, gone.err.as_str()), (0, ""), "{command} {words:?}");
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let said = Said::from(cmd(command).args(*words).stdout(full).output().unwrap());
        let name = ["lsf", command];
        let words_of = |n: &str| format!("{n}: write error: No space left on device\n");
        assert!(name.iter().any(|n| said.err == words_of(n)), "{command}: {}", said.err);
        assert_eq!(said.code, 255, "{command} {words:?}");
    }
    ok("bkill", &[&id]);
}

/// Forms of the listings that are asked for here alone: each has something to show.
const FORMS: &[(&str, &[&str])] = &[
    ("bjobs", &["-l"]),
    ("bjobs", &["-UF"]),
    ("bjobs", &["-lp"]),
    ("bjobs", &["-p1"]),
    ("bjobs", &["-p3"]),
    ("bjobs", &["-pei"]),
    ("bjobs", &["-W"]),
    ("bjobs", &["-WL"]),
    ("bjobs", &["-WF"]),
    ("bjobs", &["-WP"]),
    ("bjobs", &["-A"]),
    ("bjobs", &["-A", "-l"]),
    ("bjobs", &["-sum"]),
    ("bjobs", &["-aps"]),
    ("bjobs", &["-l", "-hostfile"]),
    ("bjobs", &["-X", "-cname"]),
    ("bjobs", &["-l", "-aff", "-gpu"]),
    ("bjobs", &["-N", "2.5", "-W"]),
    ("bjobs", &["-hms", "-o", "all"]),
    ("bjobs", &["-json", "-o", "all"]),
    ("bapp", &["-w", "-alloc"]),
    ("bapp", &["-l", "sim"]),
    ("bqueues", &["-w", "-alloc"]),
    ("bqueues", &["-r"]),
    ("bqueues", &["-lr"]),
    ("bqueues", &["-o", "all:8"]),
    ("bqueues", &["-u", "all", "-noheader"]),
    ("bqueues", &["-o", "all"]),
    ("bqueues", &["-json"]),
    ("bhosts", &["-w", "-a", "-X", "-alloc", "-cname"]),
    ("bhosts", &["-o", "all"]),
    ("bhosts", &["-json", "-o", "all"]),
    ("bhosts", &["-R", "select[ncpus>0]"]),
    ("bhosts", &["-aff"]),
    ("bhosts", &["-l", "-aff"]),
    ("bhosts", &["-gpu"]),
    ("bhosts", &["-attr"]),
    ("bhosts", &["-rc"]),
    ("busers", &["-w", "-alloc", "all"]),
    ("busers", &["-o", "all", "all"]),
    ("busers", &["-json", "all"]),
    ("bparams", &["-l"]),
    ("lshosts", &["-w"]),
    ("lshosts", &["-o", "all"]),
    ("lshosts", &["-json", "-o", "all"]),
    ("lsload", &["-w"]),
    ("lsload", &["-o", "all"]),
    ("lsload", &["-json", "-o", "all"]),
    ("lsload", &["-I", "r1m:mem", "-n", "1"]),
    ("lsinfo", &["-l", "-w"]),
    ("lsclusters", &["-l"]),
    ("lsclusters", &["-w"]),
];

#[test]
fn listings_answer_in_every_form() {
    let free = bsub(&["-H", "-J", "forms[1-2]", "true"]);
    let id = bsub(&["-J", "waits", "-w", &format!("done({free})"), "true"]);
    for (command, words) in FORMS {
        let jobs: &[&str] = match *command {
            "bjobs" if words.contains(&"-A") => &[&free],
            "bjobs" => &[&id],
            _ => &[],
        };
        let said = run(command, &[words, jobs].concat());
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{command} {words:?}");
        assert!(!said.out.is_empty(), "{command} {words:?}");
    }
    ok("bkill", &[&id, &free]);
}

/// A listing of things that the cluster does not have ends with a message on stderr.
#[test]
fn listings_of_nothing_say_that_there_is_none() {
    for (command, words, why, code) in [
        ("bhosts", &["-x"][..], "There is no exceptional host found", 0),
        ("bhosts", &["-e"], "No host is exported to another cluster", 0),
        ("bhosts", &["-e", "-s"], "No resource is exported to another cluster", 0),
        ("bhosts", &["-rconly"], "No host comes from the resource connector", 0),
        ("bjobs", &["-fwd", "-u", "all"], "No unfinished job found", 0),
        ("bjobs", &["-plan", "-u", "all"], "No pending job found", 0),
        ("bjobs", &["-ss"], "No unfinished job found", 0),
        ("bjobs", &["-u", "nosuchuser"], "No unfinished job found", 0),
        ("bjobs", &["-u", "nosuchuser", "-a"], "No job found", 0),
        ("bjobs", &["-u", "nosuchuser", "-p"], "No pending job found", 0),
        ("bjobs", &["-u", "nosuchuser", "-r"], "No running job found", 0),
        ("bjobs", &["-u", "nosuchuser", "-s"], "No suspended job found", 0),
        ("bjobs", &["-u", "nosuchuser", "-d"], "No DONE/EXIT job found", 0),
        (
            "bjobs",
            &["-u", "nosuchuser", "-q", "idle"],
            "No unfinished job found in queue <idle>",
            0,
        ),
        (
            "bjobs",
            &["-u", "nosuchuser", "-q", "idle", "-m", "host1"],
            "No unfinished job found in queue <idle> and on host/group <host1>",
            0,
        ),
        ("bjobs", &["-A", "-u", "nosuchuser"], "Job array is not found", 0),
        ("bpeek", &["-q", "idle"], "No unfinished job found in queue <idle>", 255),
        ("bhist", &["-u", "nosuchuser", "-a"], "No matching job found", 255),
        ("bmgroup", &["-cu"], "No compute unit defined in the system", 255),
    ] {
        let want = Said { code, out: String::new(), err: format!("{why}\n") };
        assert_eq!(run(command, words), want, "{command} {words:?}");
    }
}

#[test]
fn formats_of_the_caller_precede_those_of_the_site() {
    let id = bsub(&["-H", "-J", "formats", "true"]);
    let dir = scratch("formats");
    let formats = [
        ("bjobs", "LSB_BJOBS_FORMAT", "stat id", "STAT JOBID"),
        ("bqueues", "LSB_BQUEUES_FORMAT", "stat qname", "STATUS QUEUE_NAME"),
        ("bhosts", "LSB_BHOSTS_FORMAT", "max hname", "MAX HOST_NAME"),
        ("busers", "LSB_BUSERS_FORMAT", "max user", "MAX USER"),
        ("lshosts", "LSF_LSHOSTS_FORMAT", "ncpus hname", "NCPUS HOST_NAME"),
        ("lsload", "LSF_LSLOAD_FORMAT", "status hname", "STATUS HOST_NAME"),
    ];
    let lines = formats.map(|(_, name, format, _)| format!("{name}=\"{format}\"\n")).concat();
    let site = other_envdir(&dir, &lines);
    for (command, name, _, head) in formats {
        let first = |c: &mut std::process::Command| {
            let said = Said::from(c.output().unwrap());
            assert_eq!((said.code, said.err.as_str()), (0, ""), "{command} {name}");
            said.out.lines().next().unwrap_or_default().to_string()
        };
        let own = head.split(' ').next().unwrap_or_default();
        let format = if own == "STATUS" { "status" } else { own };
        assert_eq!(first(cmd(command).env(name, format)), own, "{command} {name}");
        assert!(first(cmd(command).env(name, format).arg("-w")).len() > 40, "{command} -w");
        if let Some(dir) = &site {
            assert_eq!(first(cmd(command).env("LSF_ENVDIR", dir)), head, "{command} {name}");
        }
    }
    ok("bkill", &[&id]);
}

#[test]
fn bjobs_filters_select_by_description_name_and_state() {
    let id = bsub(&["-H", "-J", "a_filtered_job", "-Jd", "the nightly run", "true"]);
    let show = |words: &[&str]| {
        let said = run("bjobs", &[&["-noheader", "-o", "id"], words].concat());
        // a refused option would show no job either
        let none = said.out.is_empty() && said.err.ends_with("No unfinished job found\n");
        assert!(said.code == 0 && (none || said.err.is_empty()), "{words:?}: {said:?}");
        said.out
    };
    let line = format!("{id}\n");
    for words in [&["-Jd", "*nightly*"][..], &["-J", "*filtered*"], &["-J", "a_*_job"], &["-pi"]] {
        assert!(show(words).contains(&line), "{words:?}");
    }
    for words in [&["-Jd", "nightly"][..], &["-app", "x"], &["-sla", "x"], &["-g", "/x"], &["-x"]] {
        assert!(!show(words).contains(&line), "{words:?}");
    }
    let sum = ok("bjobs", &["-psum", &id]);
    let name = ok("lsid", &[]);
    let cluster = name.lines().find_map(|l| l.strip_prefix("My cluster name is ")).unwrap();
    assert!(sum.starts_with("Pending reason summary: published "), "{sum}");
    assert!(
        sum.contains(&format!("\nSummarizing 1 pending jobs in cluster ({cluster}):\n")),
        "{sum}"
    );
    let line = format!("\n    {:<64} 1 jobs\n", "Job was suspended by the user while pending:");
    assert!(sum.ends_with(&line), "{sum}");
    // jobs of other tests start and stop between the two
    let names = |out: &str| {
        let name = |l: &str| l.split_whitespace().next().map(str::to_owned);
        out.lines().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(&ok("bhosts", &[cluster])), names(&ok("bhosts", &[])));
    ok("bkill", &[&id]);
}

#[test]
fn listings_without_o_are_json_with_keys_in_capitals_and_text_values() {
    let record = |applet: &str, args: &[&str], command: &str, counted: &str| {
        let text = ok(applet, args);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["COMMAND"], command, "{text}");
        let records = json["RECORDS"].as_array().unwrap().clone();
        assert_eq!(json[counted].as_u64(), Some(records.len() as u64), "{text}");
        for (key, value) in records.iter().flat_map(|r| r.as_object().unwrap()) {
            assert_eq!(*key, key.to_uppercase(), "{text}");
            assert!(value.is_string(), "{text}");
        }
        records.first().cloned().unwrap_or_default()
    };
    let master = record("lsid", &["-json"], "lsid", "CLUSTERS");
    let lines = ok("lsid", &[]);
    let name = master["MASTER_NAME"].as_str().unwrap();
    assert!(lines.contains(&format!("My master name is {name}\n")), "{lines}");
    assert!(lines.starts_with(master["VERSION"].as_str().unwrap()), "{lines}");
    let parameters = record("bparams", &["-json"], "bparams", "PARAMETERS");
    let value = parameters["MBD_SLEEP_TIME"].as_str().unwrap();
    assert!(ok("bparams", &["-a"]).contains(&format!("MBD_SLEEP_TIME = {value} (seconds)\n")));
    record("bugroup", &["-json"], "bugroup", "GROUPS");
    record("bmgroup", &["-json"], "bmgroup", "GROUPS");
    let status = record("badmin", &["showstatus", "-json"], "badmin showstatus", "CLUSTERS");
    assert_eq!(status["MASTER"], master["MASTER_NAME"]);
    assert!(status["SLOTS"].as_str().is_some_and(|slots| slots.contains('/')), "{status}");
    let said = run("badmin", &["showstatus", "json"]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
}
