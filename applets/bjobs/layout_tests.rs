//! Whole calls against the files of tests/cmd/expected: one row a form, the texts written from the
//! documented layouts.

use super::show::Show;
use super::tests::{T, call, long_of, show};
use serde_json::{Value, json};

/// The words of a call, what lsf.conf says, the jobs there are, and what is printed.
type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a [Value], &'a str);

/// The text of a file of tests/cmd/expected.
macro_rules! expected {
    ($name:literal) => {
        include_str!(concat!("../../tests/cmd/expected/bjobs-", $name, ".txt"))
    };
}

fn check(cases: &[Case]) {
    for (words, site, jobs, want) in cases {
        let (out, err, code) = call(words, site, jobs);
        assert_eq!((out.as_str(), err.as_str(), code), (*want, "", 0), "bjobs {words:?} {site:?}");
    }
}

#[test]
fn remaining_run_times_are_shown() {
    let run = |job: u32, more: Value| {
        let mut j = json!({"Job": job, "Stat": "RUN", "ExecHosts": [["hosta", 1]],
            "StartTime": T - 600, "RunTime": 600});
        j.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        j
    };
    let jobs = [
        run(101, json!({"Limits": {"run": 3600}})),
        run(102, json!({"Extra": {"We": "5"}, "Limits": {"run": 3600}})),
        json!({"Job": 103, "Limits": {"run": 60}}),
        run(104, json!({"Stat": "DONE", "EndTime": T + 60})),
        run(105, json!({"Extra": {"We": "1:30/hosta"}})),
        // longer than estimated, and nothing ends it
        run(106, json!({"Extra": {"We": "5"}})),
        run(107, json!({"Stat": "SSUSP", "Limits": {"run": 3600}})),
        // the limit comes before the estimate, and is over
        run(108, json!({"Extra": {"We": "60"}, "Limits": {"run": 540}})),
        run(109, json!({})),
    ];
    check(&[
        (&["-WL"], &[], &jobs, expected!("WL")),
        (&["-WF"], &[], &jobs, expected!("WF")),
        (&["-WP"], &[], &jobs, expected!("WP")),
    ]);
}

#[test]
fn memory_that_a_pending_job_reserves_is_shown_behind_its_slots() {
    let slots = json!([["hosta", 2], ["hostb", 1]]);
    let job = |memory: Value| json!({"Reservation": [T - 60, T + 600, slots, memory]});
    let told = |memory: Value| call(&["-UF"], &[], &[job(memory)]).0;
    let (of_slots, of_memory) = (
        "Reserved <3> job slots on host(s) <2*hosta> <hostb>;",
        " Reserved <900> megabyte memory on host(s) <800M*hosta> <100M*hostb>;",
    );
    let out = told(json!([["hosta", 800], ["hostb", 100]]));
    assert!(out.contains(&format!("{of_slots}{of_memory}\n")), "{out}");
    let out = told(json!([]));
    assert!(out.contains(&format!("{of_slots}\n")), "{out}");
}

#[test]
fn pending_reasons_by_level() {
    let job = [json!({"PendReasons":
        [[3, 0, []], [1305, 2, ["hosta", "hostb"]], [1311, 1, ["hostc"]]]})];
    let level = |n| [("LSB_BJOBS_PENDREASON_LEVEL", n)];
    check(&[
        (&["-p"], &[], &job, expected!("p0")),
        (&["-p0"], &level("3"), &job, expected!("p0")),
        (&["-p1"], &[], &job, expected!("p1")),
        (&["-p2"], &[], &job, expected!("p2")),
        (&["-p3"], &[], &job, expected!("p3")),
        (&["-p"], &level("1"), &job, expected!("p1")),
        (&["-p"], &level("3"), &job, expected!("p3")),
        (&["-p"], &level("4"), &job, expected!("p0")),
    ]);
    let long = call(&["-lp"], &[], &job).0;
    assert!(long.contains("\n Job slot limit reached: hosta, hostb;\n"), "{long}");
    let none = json!({"PendReasons": [[1305, 5, []], [1311, 3, []]]});
    let waits = json!({"PendReasons": [[3, 0, []]]});
    let (out, err, code) = call(&["-psum"], &[], &[none, waits.clone(), waits]);
    assert_eq!((out.as_str(), err.as_str(), code), (expected!("psum"), "", 0));
    assert_eq!(call(&["-psum"], &[], &[]).1, "No pending job found\n");
    let others = [json!({"Stat": "RUN"}), json!({"Stat": "DONE"}), json!({"Stat": "PSUSP"})];
    let sum = call(&["-a", "-psum"], &[], &others).0;
    assert!(sum.contains("\nSummarizing 1 pending jobs in cluster (c1):\n"), "{sum}");
    // one of each job, and hosts that could be used alone
    let ends = |level: &str, words: &str, n: &str| {
        let sum = call(&["-psum", level], &[], &job).0;
        assert!(sum.ends_with(&format!("    {words:<64} {n}\n")), "{sum}");
    };
    ends("-p1", "Job dependency condition not satisfied:", "1 jobs");
    ends("-p2", "Job slot limit reached:", "2 occurrences");
    ends("-p3", "Not specified in job submission:", "1 occurrences");
    // hosts that are out of the question
    let out = [json!({"PendReasons": [[1301, 1, []], [1001, 1, []], [1315, 1, []],
        [1316, 1, []], [1601, 1, []], [1302, 1, []], [1318, 1, []], [1310, 1, []]]})];
    let said = call(&["-p3"], &[], &out).0;
    let head = "\n Candidate host pending reasons (0 of 8 hosts).\n\n \
                Non-candidate host pending reasons (8 of 8 hosts):\n   Closed by LSF";
    assert!(said.contains(head), "{said}");
    let elsewhere = [json!({"PendReasons": [[1311, 3, []]]})];
    let none = call(&["-psum", "-p2"], &[], &elsewhere).0;
    assert!(none.ends_with("\nSummarizing 0 pending jobs in cluster (c1):\n"), "{none}");
    let none = call(&["-p2"], &[], &elsewhere).0;
    assert!(none.ends_with("\n Candidate host pending reasons (0 of 3 hosts).\n"), "{none}");
}

#[test]
fn rows_are_looked_at_before_they_are_shown() {
    let jobs = [
        json!({"Job": 1, "PendReasons": [[3, 0, []]]}),
        json!({"Job": 2, "PendReasons": [[1305, 1, []]]}),
        json!({"Job": 3, "Stat": "PSUSP", "PendReasons": [[607, 0, []]]}),
        json!({"Job": 4, "Exceptions": "overrun idle", "Stat": "RUN",
            "CombinedResReq": "select[a] rusage[lic=1,mem=5:duration=3] span[hosts=1]"}),
    ];
    for (words, ids) in [
        (&["-pe"][..], "2\n"),
        (&["-pi"], "1\n3\n4\n"),
        (&["-pei"], "2\n1\n3\n4\n"),
        (&["-x"], "4\n"),
        (&["-rusage", "lic"], "4\n"),
        (&["-rusage", "mem,lic"], "4\n"),
    ] {
        let words = [words, &["-noheader", "-o", "id"]].concat();
        assert_eq!(call(&words, &[], &jobs), (ids.to_string(), String::new(), 0), "{words:?}");
    }
    assert_eq!(call(&["-rusage", "duration"], &[], &jobs[3..]).0, "");
    // all of them, within one alternative
    assert_eq!(call(&["-rusage", "x,mem"], &[], &jobs[3..]).0, "");
    for req in ["{rusage[a=1]} || {rusage[b=2]}", "rusage[a=1 || b=2]"] {
        let job = [json!({"CombinedResReq": req})];
        let shown = |list| call(&["-noheader", "-o", "id", "-rusage", list], &[], &job).0;
        assert_eq!([shown("a"), shown("b"), shown("a,b")], ["101\n", "101\n", ""], "{req}");
    }
    assert_eq!(call(&["-x"], &[], &jobs[..3]).1, "No unfinished job found\n");
    // a job that is named and known, but not of that kind
    let named = call(&["-x", "1"], &[], &jobs[..1]);
    assert_eq!(named, (String::new(), "No unfinished job found\n".into(), 0));
    let long = call(&["-l"], &[], &jobs[3..]).0;
    assert!(long.contains("\n loadStop "), "{long}");
    let exceptions = "  \n\n EXCEPTION STATUS:  overrun  idle\n\n RESOURCE REQUIREMENT DETAILS:\n";
    assert!(long.contains(exceptions), "{long}");
    let idle = [json!({"Exceptions": "idle", "Stat": "RUN", "ExecHosts": [["hosta", 1]],
        "StartTime": T, "RunTime": 200, "CpuUsed": 4.0, "UsageTime": T + 200, "MemKb": 6144})];
    let long = call(&["-l"], &[], &idle).0;
    let usage = "                     The CPU time used is 4 seconds.
                     IDLE_FACTOR(cputime/runtime):   0.02
                     MEM: 6 Mbytes;  SWAP: 0 Mbytes\n";
    assert!(long.contains(usage), "{long}");
}

#[test]
fn options_without_a_subject_say_that_no_job_was_found() {
    let jobs = [json!({}), json!({"Job": 102, "Stat": "PSUSP", "Name": "a_long_sim.sh"})];
    let aps = |job: u32, total: f64, system: bool, submitted: i64| {
        let factors = [0.0, -2.5, -2.5, 0.0, 0.0, 100.0, 100.0, 0.0, 0.0, 0.0, 0.0];
        let admin = if system { 0.0 } else { 11.5 };
        let cell = json!([total, system, admin, factors]);
        json!({"Job": job, "AbsolutePriority": cell, "SubmitTime": submitted})
    };
    let ranked = [
        jobs[0].clone(),
        aps(103, 99.0, false, T + 60),
        aps(104, 109.0, false, T),
        aps(105, 10.0, true, T),
        aps(106, 60.5, true, T),
        aps(107, 99.0, false, T),
    ];
    check(&[
        (&["-aps"], &[], &ranked, expected!("aps")),
        (&["-prio"], &[], &ranked[2..4], expected!("prio")),
        (&["-l", "-hostfile"], &[], &jobs[..1], &call(&["-l"], &[], &jobs[..1]).0),
    ]);
    for (words, why) in [
        (&["-plan"][..], "No pending job found\n"),
        (&["-plan", "-l"], "No pending job found\n"),
        (&["-fwd"], "No unfinished job found\n"),
        (&["-fwd", "101"], "No unfinished job found\n"),
        (&["-ss"], "No unfinished job found\n"),
        (&["-l", "-data"], "No unfinished job found\n"),
        (&["-a", "-data"], "No job found\n"),
    ] {
        assert_eq!(call(words, &[], &jobs[..1]), (String::new(), why.into(), 0), "{words:?}");
    }
}

#[test]
fn run_limits_count_in_the_factor_of_the_host() {
    let job = [json!({"Stat": "RUN", "StartTime": T, "RunTime": 3725, "CpuUsed": 100.0,
        "Utime": 90.0, "PendTime": 60, "Limits": {"run": 7200}, "HostFactor": 3.0,
        "ExecHosts": [["hosta", 2]], "Extra": {"We": "90", "ptl": "7200"}})];
    let fields = "run_time cpu_used ru_utime pend_time runtimelimit ertime plimit delimiter=','";
    let show = |words: &[&str], site: &[(&str, &str)]| {
        call(&[words, &["-noheader", "-o", fields]].concat(), site, &job).0
    };
    let plain = "3725 second(s),100.0 second(s),90.00,60,120.0,5400 second(s),7200\n";
    let hms = "01:02:05,00:01:40,00:01:30,00:01:00,02:00:00,01:30:00,02:00:00\n";
    assert_eq!(show(&[], &[]), plain);
    assert_eq!(show(&["-hms"], &[]), hms);
    assert_eq!(show(&[], &[("LSB_HMS_TIME_FORMAT", "y")]), hms);
    let cpu = |n: &str| call(&["-N", n, "-noheader", "-o", "cpu_used"], &[], &job);
    assert_eq!(cpu("1.5").0, "200.0 second(s)\n");
    assert_eq!(cpu("hostz").1, "hostz: Bad host specification\n");
    assert!(call(&["-N", "1.5", "-W"], &[], &job).0.contains(" 000:03:20.00 "));
}

#[test]
fn usage_of_run_time_is_that_of_the_limit_in_force() {
    let told = |limit: Value| {
        let job = json!({"Stat": "RUN", "ExecHosts": [["hosta", 1]], "StartTime": T,
            "RunTime": 600, "Limits": {"run": 3600}, "RunLimit": limit});
        call(&["-l"], &[], &[job]).0
    };
    for (limit, words) in [
        (json!([1800, true]), "RUNLIMIT: 1800 second(s);  RUN TIME Efficiency: 33.33%"),
        (json!([1200, false]), "RUNLIMIT: 1200 second(s);  RUN TIME Efficiency: 50.00%"),
    ] {
        let all = told(limit);
        assert!(all.contains(&format!("RUN TIME: 600 second(s);  {words}")), "{all}");
    }
    assert!(!told(Value::Null).contains("RUN TIME USAGE"));
}

#[test]
fn kept_options_are_fields_and_words() {
    let job = [json!({"Extra": {"app": "sim", "sla": "gold", "g": "/a/b", "Lp": "lp", "U": "u#1",
        "a": "esub1", "wa": "URG", "wt": "300", "outdir": "o/%J"}})];
    let fields = "app sla job_group licproject rsvid esub warn_act warn_time output_dir";
    let shown = call(&["-noheader", "-o", fields], &[], &job).0;
    assert_eq!(shown, "sim gold /a/b lp u#1 esub1 URG 5.0 o/%J\n");
    let head = call(&["-UF"], &[], &job).0;
    let words = ", Project <default>, License Project <lp>, Application <sim>, Service Class \
                 <gold>, Job Group </a/b>, Status <PEND>,";
    assert!(head.contains(words), "{head}");
    let year = call(&["-UF"], &[("LSB_DISPLAY_YEAR", "y")], &job).0;
    assert!(year.contains("\nFri Nov 20 09:30:13 2026: Submitted"), "{year}");
}

/// The 16 slots on each of a hundred hosts.
fn hundred_hosts() -> Value {
    (1..=100).map(|i| json!([format!("host{i:03}"), 16])).collect()
}

#[test]
fn every_job_state_is_shown_in_its_column() {
    const STATES: [&str; 11] = [
        "PEND", "PSUSP", "RUN", "USUSP", "SSUSP", "DONE", "EXIT", "WAIT", "PROV", "UNKWN", "ZOMBI",
    ];
    let jobs: Vec<Value> = STATES
        .iter()
        .zip(101..)
        .map(|(stat, id)| match *stat {
            "PEND" | "PSUSP" => json!({"Job": id, "Stat": stat}),
            _ => json!({"Job": id, "Stat": stat, "ExecHosts": [["hosta", 1]]}),
        })
        .collect();
    check(&[
        (&["-a"], &[], &jobs, expected!("states")),
        (&["-a", "-w"], &[], &jobs, expected!("states-w")),
    ]);
}

#[test]
fn wide_names_are_cut_unless_wide() {
    let users: Vec<Value> = (0..200)
        .map(|i| {
            let user = format!("a.user.with.a.wide.name.{i:03}");
            json!({"Job": 1000 + i, "Stat": "RUN", "User": user, "ExecHosts": [["hosta", 1]]})
        })
        .collect();
    let (from, host) = (format!("login-{}", "f".repeat(58)), format!("node-{}", "e".repeat(59)));
    let host = [json!({"Stat": "RUN", "FromHost": from, "ExecHosts": [[host, 1]]})];
    check(&[
        (&["-u", "all"], &[], &users, expected!("users")),
        (&["-wu", "all"], &[], &users, expected!("users-w")),
        (&[], &[], &host, expected!("host64")),
        (&["-w"], &[], &host, expected!("host64-w")),
    ]);
}

#[test]
fn hosts_of_a_large_job_are_condensed() {
    let job = [json!({"Stat": "RUN", "ExecHosts": hundred_hosts(), "StartTime": T + 1,
        "MinSlots": 1600, "MaxSlots": 1600, "ExecHome": "/home/alice",
        "ExecCwd": "/home/alice/w"})];
    let short = [("LSB_SHORT_HOSTLIST", "1")];
    let tasks = [("LSB_ENABLE_HPC_ALLOCATION", "Y")];
    let fields = "jobid nexec_host slots exec_host";
    check(&[
        (&[], &short, &job, expected!("100-hosts")),
        (&["-w"], &[], &job, expected!("100-hosts-w")),
        (&["-o", fields], &[], &job, expected!("100-hosts-o")),
        (&["-l"], &short, &job, expected!("100-hosts-l")),
        (&["-l"], &tasks, &job, expected!("100-hosts-l-tasks")),
    ]);
    // without LSB_SHORT_HOSTLIST a line a slot
    assert_eq!(call(&[], &[], &job).0.lines().count(), 1601);
}

#[test]
fn a_job_of_ten_years_ago() {
    // 2016-11-20 09:30:13: two leap days lie between
    let then = T - 3652 * 86400;
    let job = |more: Value| {
        let mut j = json!({"Stat": "RUN", "SubmitTime": then, "StartTime": then + 1,
            "ExecHosts": [["hosta", 1]]});
        j.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        [j]
    };
    let ran = job(json!({"RunTime": 3652 * 86400, "PendTime": 1}));
    check(&[
        (&[], &[], &job(json!({})), expected!("old")),
        (&["-l"], &[("LSB_DISPLAY_YEAR", "Y")], &job(json!({})), expected!("old-year-l")),
        (&["-hms", "-o", "start_time run_time pend_time"], &[], &ran, expected!("old-hms")),
    ]);
}

#[test]
fn elements_and_long_numbers() {
    let elem = |idx: u32, stat: &str, host: &str| {
        let hosts = if host.is_empty() { json!([]) } else { json!([[host, 1]]) };
        json!({"Job": 25, "Idx": idx, "Name": format!("arr[{idx}]"), "Stat": stat,
            "ExecHosts": hosts})
    };
    let array = [
        elem(1, "DONE", "hosta"),
        elem(2, "RUN", "hostb"),
        elem(10, "PEND", ""),
        elem(1000, "EXIT", "hosta"),
        json!({"Job": 26, "Idx": 12345, "Name": "a_long_name[12345]"}),
    ];
    let big = [json!({"Job": 12_345_678})];
    let ten = [("LSB_JOBID_DISP_LENGTH", "10")];
    check(&[
        (&["-a"], &[], &array, expected!("array")),
        (&[], &[], &big, expected!("bigid")),
        (&[], &ten, &big, expected!("bigid-10")),
    ]);
}

#[test]
fn custom_fields_and_json_show_the_same_jobs() {
    let jobs = [
        json!({"Stat": "RUN", "ExecHosts": [["hosta", 4], ["hostb", 1]], "Name": "a \"b\""}),
        json!({"Job": 102}),
    ];
    let fields = "id stat exec_host name";
    let (out, err, code) = call(&["-json", "-o", fields, "101", "102", "9"], &[], &jobs);
    assert_eq!((out.as_str(), err.as_str(), code), (expected!("json"), "", 255));
    let jobs = [
        json!({"Stat": "RUN", "ExecHosts": [["hosta", 1]], "Name": "a_long_sim_name",
            "MemKb": 1_572_864, "ExitCode": null}),
        json!({"Job": 102, "ExitCode": null}),
    ];
    let widths = "id: stat: name: exec_host:-10 mem: exit_code delimiter='|'";
    check(&[
        (&["-json"], &[], &[], expected!("json-empty")),
        (&["-o", widths], &[], &jobs, expected!("o")),
        (&[], &[("LSB_BJOBS_FORMAT", widths)], &jobs, expected!("o")),
    ]);
}

/// One line a field: its name, default width and other names, as LSF documents them.
#[test]
fn every_field_of_the_manual() {
    for line in expected!("fields").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let found = super::fields::FIELDS.iter().find(|f| f.name == words[0]);
        let f = found.unwrap_or_else(|| panic!("no field {line}"));
        assert_eq!(f.width.to_string(), words[1], "{line}");
        assert_eq!(f.alias, &words[2..], "{line}");
    }
}

/// The layout that LSF prints; two slots on one host are `2*vm` with -w, as LSF 10.1 has it.
#[test]
fn sample_of_the_documentation_is_shown_alike() {
    let job =
        |id: u32, stat: &str, queue: &str, host: &str, slots: u32, name: &str, minute: i64| {
            let hosts = if host.is_empty() { json!([]) } else { json!([[host, slots]]) };
            json!({"Job": id, "Stat": stat, "User": "user1", "Queue": queue, "ExecHosts": hosts,
            "FromHost": "vm", "Name": name, "SubmitTime": T + 60 * minute})
        };
    let jobs = [
        job(25, "RUN", "priority", "vm2", 1, "arr[1]", 0),
        job(25, "RUN", "priority", "vm2", 1, "arr[3]", 0),
        job(42, "RUN", "normal", "vm2", 1, "p1", 1),
        job(23, "RUN", "normal", "vm", 1, "sleep 300", 0),
        job(24, "RUN", "normal", "vm", 2, "myname", 0),
        job(25, "PEND", "priority", "", 0, "arr[5]", 0),
        job(26, "PSUSP", "normal", "", 0, "held", 0),
        job(30, "PEND", "night", "", 0, "sleep 5", 0),
        job(20, "EXIT", "normal", "", 0, "sleep 1", 0),
        job(32, "EXIT", "normal", "vm2", 1, "echo x; exit 3", 0),
        job(37, "DONE", "normal", "vm2", 1, "echo interactive; hostname", 1),
    ];
    check(&[
        (&["-a"], &[], &jobs, expected!("sample")),
        (&["-aw"], &[], &jobs, expected!("sample-w")),
    ]);
}

#[test]
fn each_host_of_a_job_has_its_usage_and_processes_below_those_of_the_job() {
    let job = json!({"Stat": "RUN", "ExecHosts": [["hosta", 1], ["hostb", 1]], "StartTime": T,
        "UsageTime": T + 60, "Pgid": 7, "Pids": [7, 8, 9], "PidGroups": [7, 7, 9],
        "MemKb": 3072, "HostUsage": [["hosta", 2048, 0, 2.5, [7, 8], [7, 7]],
        ["host\u{1b}b", 1024, 0, 61.0, [9], [9]]]});
    let lines = |short_pids| {
        let got = long_of(&Show { short_pids, ..show() }, job.clone());
        let from = got.find("MEM: ").unwrap();
        let to = from + got[from..].find("\n\n").unwrap();
        got[from..to].lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let want = [
        "MEM: 3 Mbytes;  SWAP: 0 Mbytes",
        "PGID: 7;  PIDs: 7 8",
        "PGID: 9;  PIDs: 9",
        "HOST: hosta",
        "MEM: 2 Mbytes;  SWAP: 0 Mbytes;  CPU_TIME: 2 seconds",
        "PGIDs: 7",
        "PIDs: 7 8",
        "HOST: host?b",
        "MEM: 1 Mbytes;  SWAP: 0 Mbytes;  CPU_TIME: 61 seconds",
        "PGIDs: 9",
        "PIDs: 9",
    ];
    assert_eq!(lines(false), want);
    let short: Vec<String> = want
        .iter()
        .filter(|l| !l.starts_with("PIDs"))
        .map(|l| l.replace(";  PIDs: 7 8", ""))
        .collect();
    let short: Vec<String> = short.iter().map(|l| l.replace(";  PIDs: 9", "")).collect();
    assert_eq!(lines(true), short);
}

#[test]
fn condensed_groups_stand_for_their_hosts_unless_hosts_are_asked_for() {
    let jobs = [json!({"Stat": "RUN", "ExecHosts": [["h1", 2], ["h9", 1], ["h2", 1]],
        "CondensedHosts": [["rack1", 3], ["h9", 1]], "StartTime": T + 1})];
    let shown = |words: &[&str]| {
        let (out, err, code) = call(words, &[], &jobs);
        assert_eq!((err.as_str(), code), ("", 0), "{words:?}");
        out
    };
    let hosts = |out: &str| -> Vec<String> {
        let word =
            |line: &str| line.get(45..).unwrap_or_default().chars().take(11).collect::<String>();
        out.lines().skip(1).map(|line| word(line).trim().to_owned()).collect()
    };
    assert_eq!(hosts(&shown(&[])), ["rack1", "rack1", "rack1", "h9"]);
    assert_eq!(hosts(&shown(&["-X"])), ["h1", "h1", "h9", "h2"]);
    assert!(shown(&["-w"]).contains("3*rack1:h9 "), "{}", shown(&["-w"]));
    assert!(shown(&["-w", "-X"]).contains("2*h1:h9:h2 "));
    assert!(shown(&["-W"]).contains("3*rack1:h9 "));
    assert!(shown(&["-o", "exec_host"]).contains("2*h1:h9:h2"));
    let long = shown(&["-l"]);
    assert!(long.contains("h2") && !long.contains("rack1"), "{long}");
}

#[test]
fn administrators_are_shown_the_reasons_that_the_site_condenses() {
    let jobs = [json!({"PendReasons": [[9046, 0, []]],
        "AllPendReasons": [[1305, 2, ["h1", "h2"]]]})];
    for (words, want) in [
        (&["-p"][..], " Individual host based reasons;\n"),
        (&["-p3"], " Individual host based reasons;\n"),
        (&["-p3", "-wholereasons"], "   Job slot limit reached: 2 hosts;\n"),
    ] {
        let (out, err, code) = call(words, &[], &jobs);
        assert_eq!((err.as_str(), code), ("", 0), "{words:?}");
        assert!(out.contains(want), "{words:?}: {out}");
        assert_eq!(out.contains("Individual"), words.len() == 1, "{words:?}: {out}");
    }
}

#[test]
fn extendable_run_limit_of_a_started_job_stands_behind_its_other_times() {
    let told = |limit: &str, more: Value| {
        let job = json!({"Stat": "RUN", "ExecHosts": [["hosta", 1]], "StartTime": T,
            "Extra": {"runLimit": limit}, "Limits": more});
        call(&["-l"], &[], &[job]).0
    };
    for (limit, words) in [
        ("600,600,0", "10.0 min"),
        ("600,900,0", "10.0 min, extended to 15.0 min"),
        ("600,600,1", "10.0 min, hard limit 10.0 min"),
        ("600,1320,1", "10.0 min, hard limit 22.0 min"),
    ] {
        let block = format!(" EXTENDABLE RUNLIMIT:\n {words}\n");
        let alone = told(limit, json!({}));
        assert!(alone.contains(&format!(";\n\n{block}")), "{alone}");
        let all = told(limit, json!({"run": 3600, "rss": 1024}));
        let whole = format!("\n\n RUNLIMIT                \n 60.0 min\n{block} MEMLIMIT\n");
        assert!(all.contains(&whole), "{all}");
    }
    assert!(!told("600", json!({})).contains("EXTENDABLE"));
}
