//! Every field of -o: its value for jobs of each state against tests/cmd/expected/bjobs-values.txt
//! (one line a field, one column a job), widths, alignment, delimiters, units and JSON.

use super::fields::FIELDS;
use super::tests::{T, base, call, show, slice};
use lsf::cli::job_rows::{Cols, each_row};
use serde_json::{Value, json};

/// The jobs of the columns: pending with every option, held, running, suspended, done on two
/// hosts, killed, an element.
fn jobs() -> Vec<Value> {
    let hosta = json!([["hosta", 1]]);
    vec![
        json!({"Job": 101, "UserGroup": "chip", "Description": "a run", "Depend": "done(9)",
            "PreExec": "/p", "PostExec": "/q", "AskedHosts": ["a", "b+1"], "MinSlots": 2,
            "MaxSlots": 4, "BeginTime": T + 3600, "TermTime": T + 7200, "PendTime": 60,
            "Options": 0x40, "PendReasons": [[3, 0, []], [1001, 2, []]], "InFile": "in",
            "OutFile": "out.%J", "ErrFile": "err", "LimitSpec": "hosta",
            "Limits": {"run": 7200, "rss": 1_048_576, "swap": 2048, "fsize": 512, "core": 0,
                "stack": 8192, "process": 20},
            "Extra": {"app": "sim", "sla": "gold", "g": "/a/b", "Lp": "lp", "U": "u#1",
                "a": "esub1", "We": "1:30", "ptl": "3600", "eptl": "600", "wa": "URG",
                "wt": "300", "outdir": "o/%J", "rnc": "/r", "hostfile": "/h",
                "network": "protocol=mpi"}}),
        json!({"Job": 102, "Stat": "PSUSP", "PendReasons": [[607, 0, []]],
            "Utime": 0.0, "Stime": 0.0}),
        json!({"Job": 103, "Stat": "RUN", "ExecHosts": hosta, "StartTime": T - 600, "RunTime": 600,
            "Limits": {"run": 3600}, "CpuUsed": 51.26, "Utime": 50.5, "Stime": 1.26,
            "MemKb": 3072, "MaxMemKb": 4096, "AvgMemKb": 2048, "SwapKb": 1024, "NThreads": 6,
            "HostUsage": [["hosta", 2048, 0, 2.5, [42], [42]], ["hostb", 1024, 1024, 48.76, [], []]],
            "Pids": [42, 43], "PendTime": 0, "Exceptions": "overrun", "ExitCode": null,
            "EffectiveResReq": "select[type == any]", "CpuPeak": 1.5, "CpuPeakSecs": 54,
            "ExecHome": "/home/alice", "ExecCwd": "/home/alice/w", "Extra": {"ptl": "7200"}}),
        json!({"Job": 104, "Stat": "USUSP", "SuspReason": 1, "ExecHosts": hosta, "StartTime": T - 300,
            "RunTime": 300, "Limits": {"run": 3600}, "CpuUsed": 0.0, "Utime": 0.0, "Stime": 0.0}),
        json!({"Job": 105, "Stat": "DONE", "ExecHosts": [["hosta", 2], ["hostb", 1]],
            "StartTime": T, "EndTime": T + 60, "RunTime": 60, "CpuUsed": 90.0, "Utime": 30.0,
            "Stime": 60.0, "ExitCode": 0, "MinSlots": 3, "MaxSlots": 3, "MaxMemKb": 1_572_864,
            "AvgMemKb": 1_048_576, "EffectiveResReq": "rusage[mem=3072.00]", "CpuPeak": 2.5,
            "CpuPeakSecs": 30, "Extra": {"wt": "10%"}}),
        json!({"Job": 106, "Stat": "EXIT", "ExecHosts": hosta, "StartTime": T,
            "EndTime": T + 60, "RunTime": 60, "CpuUsed": 0.6, "ExitCode": 130, "ExitInfo": 14}),
        json!({"Job": 107, "Idx": 3, "Name": "b_sim[3]", "PendReasons": [[1305, 2, []]]}),
    ]
}

const VALUES: &str = include_str!("../../tests/cmd/expected/bjobs-values.txt");

fn table() -> Vec<Vec<&'static str>> {
    VALUES.lines().map(|l| l.split(" | ").collect()).collect()
}

fn shown(words: &[&str], format: &str) -> String {
    let (out, err, code) = call(&[words, &["-a", "-o", format]].concat(), &[], &jobs());
    assert_eq!((err.as_str(), code), ("", 0), "{format}");
    out
}

#[test]
fn every_field_of_every_state() {
    let table = table();
    let names: Vec<&str> = table.iter().map(|row| row[0]).collect();
    let known: Vec<&str> = FIELDS.iter().map(|f| f.name).collect();
    assert_eq!(names, known, "the file has a line for each field, in the order of `all`");
    for row in &table {
        let (name, values) = (row[0], &row[1..]);
        let plain: String = values.iter().map(|v| format!("{v}\n")).collect();
        assert_eq!(shown(&["-noheader"], name), plain, "{name}");
        assert!(shown(&[], name).starts_with(&format!("{}\n", name.to_uppercase())), "{name}");
    }
    // all of them, with a delimiter
    let all = shown(&[], "all delimiter='^'");
    let mut lines = all.lines();
    assert_eq!(lines.next().unwrap(), names.join("^").to_uppercase());
    for (i, line) in lines.enumerate() {
        let want: Vec<&str> = table.iter().map(|row| row[i + 1]).collect();
        assert_eq!(line, want.join("^"));
    }
}

#[test]
fn every_field_as_json() {
    let (out, err, code) = call(&["-a", "-json", "-o", "all"], &[], &jobs());
    assert_eq!((err.as_str(), code), ("", 0));
    let read: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(read["JOBS"], 7);
    for row in table() {
        for (i, value) in row[1..].iter().enumerate() {
            let want = if *value == "-" { "" } else { value };
            assert_eq!(read["RECORDS"][i][row[0].to_uppercase()], want, "{} of job {i}", row[0]);
        }
    }
}

#[test]
fn every_field_with_its_widths() {
    for (row, f) in table().iter().zip(FIELDS) {
        let cut = |text: &str, width: usize| -> String {
            let n = text.chars().count();
            match f.name {
                "job_name" if n > width => {
                    format!("*{}", text.chars().skip(n + 1 - width).collect::<String>())
                }
                _ => text.chars().take(width).collect(),
            }
        };
        let fits = |spec: &str, width: usize, right: bool| {
            let want: String = row[1..]
                .iter()
                .map(|v| {
                    let text = cut(v, width);
                    if right { format!("{text:>width$}\n") } else { format!("{text:<width$}\n") }
                })
                .collect();
            assert_eq!(shown(&["-noheader"], &format!("{}{spec}", f.name)), want, "{spec}");
        };
        fits(":", f.width, false);
        fits(":-", f.width, true);
        fits(":4", 4, false);
        fits(":-40", 40, true);
        // other names, in any case
        for alias in f.alias {
            let plain = shown(&[], f.name);
            assert_eq!(shown(&[], &alias.to_uppercase()), plain, "{alias}");
        }
    }
}

#[test]
fn sizes_take_the_unit_that_is_asked_for() {
    let run = |format: &str, site: &[(&str, &str)]| {
        call(&["-a", "-noheader", "-o", format, "105"], site, &jobs()[4..5]).0
    };
    assert_eq!(run("max_mem::M max_mem::KB max_mem::t delimiter=,", &[]).trim_end(), {
        "1536M     ,1572864K  ,0.01T     ".trim_end()
    });
    assert_eq!(run("max_mem:6:S exit_code:4:G", &[]), "1.5G   0   \n");
    let site = [("LSB_UNIT_FOR_JOBS_DISPLAY", "MB")];
    assert_eq!(run("max_mem avg_mem:8:G run_time", &site), "1536M 1G       60 second(s)\n");
    // of every size that is limited or used
    let all = "mem max_mem avg_mem swap delimiter=,";
    let of_run =
        call(&["-noheader", "-o", all], &[("LSB_UNIT_FOR_JOBS_DISPLAY", "K")], &jobs()[2..3]);
    assert_eq!(of_run.0, "3072K,4096K,2048K,1024K\n");
    let limits = "memlimit::M swaplimit::K filelimit::K stacklimit::M";
    let got = call(&["-noheader", "-o", limits], &[], &jobs()[..1]).0;
    assert_eq!(got, "1024M      2048K      512K       8M        \n");
}

#[test]
fn time_fields_have_the_form_of_the_site() {
    let show = |words: &[&str], site: &[(&str, &str)], job: usize, format: &str| {
        let words = [words, &["-a", "-noheader", "-o", format]].concat();
        call(&words, site, &jobs()[job..=job]).0
    };
    // parts of a second count as one
    let hms = "cpu_used ru_utime ru_stime run_time";
    assert_eq!(show(&["-hms"], &[], 2, hms), "00:00:52 00:00:51 00:00:02 00:10:00\n");
    let waits = "pend_time plimit eplimit effective_plimit plimit_remain ertime runtimelimit";
    assert_eq!(
        show(&["-hms"], &[], 0, waits),
        "00:01:00 01:00:00 00:10:00 01:00:00 00:59:00 01:30:00 02:00:00\n"
    );
    let mut late = jobs()[0].clone();
    late["PendTime"] = json!(3665);
    let rest = |words: &[&str]| {
        let words = [words, &["-noheader", "-o", "plimit_remain"]].concat();
        call(&words, &[], std::slice::from_ref(&late)).0
    };
    assert_eq!([rest(&[]), rest(&["-hms"])], ["-65\n", "-00:01:05\n"]);
    // the year, and then the second
    let year = [("LSB_DISPLAY_YEAR", "Y")];
    let dates = "submit_time sstart_time finish_time delimiter=,";
    assert_eq!(show(&[], &year, 0, dates), "Nov 20 09:30:13 2026,Nov 20 10:30:13 2026,-\n");
    assert_eq!(show(&[], &year, 2, "finish_time"), "Nov 20 10:20:13 2026 L\n");
    assert_eq!(show(&[], &year, 5, "finish_time"), "Nov 20 09:31:13 2026\n");
}

#[test]
fn job_ids_have_the_width_of_the_site() {
    let id = |n: &str, format: &str| {
        let site = [("LSB_JOBID_DISP_LENGTH", n)];
        call(&["-noheader", "-o", format], &site, &[json!({"Job": 123_456_789})]).0
    };
    assert_eq!(id("10", "jobid stat"), "123456789  PEND\n");
    assert_eq!(id("10", "id:4 stat"), "1234 PEND\n");
    assert_eq!(id("7", "jobid stat"), "123456789 PEND\n");
    assert_eq!(id("12", "jobid stat"), "123456789 PEND\n");
}

/// The value of one field for one job.
fn field(name: &str, job: Value) -> String {
    let f = FIELDS.iter().find(|f| f.name == name).unwrap();
    let cols = Cols::new(f.cols);
    let mut out = String::new();
    each_row(&slice(&cols, &base(), &[job]), &cols, |r| (f.value)(&mut out, &r, &show())).unwrap();
    out
}

fn check(job: &Value, wanted: &[(&str, &str)]) {
    for (name, want) in wanted {
        assert_eq!(field(name, job.clone()), *want, "{name}");
    }
}

#[test]
fn values_of_fields_of_a_finished_job() {
    let done = json!({"Stat": "DONE", "ExitCode": 0, "EndTime": T + 60, "StartTime": T,
        "RunTime": 60, "CpuUsed": 30.04, "ExecHosts": [["h1", 4], ["h2", 4]]});
    let wanted = [
        ("jobid", "101"),
        ("jobindex", "0"),
        ("exit_code", "0"),
        ("exit_reason", ""),
        ("exec_host", "4*h1:4*h2"),
        ("first_host", "h1"),
        ("nexec_host", "2"),
        ("nalloc_slot", "8"),
        ("slots", "8"),
        ("finish_time", "Nov 20 09:31"),
        ("start_time", "Nov 20 09:30"),
        ("time_left", ""),
        ("cpu_used", "30.0 second(s)"),
        ("run_time", "60 second(s)"),
        ("idle_factor", "0.50"),
        ("pendstate", "NOTPEND"),
        ("sub_cwd", "$HOME/w"),
        ("memlimit", ""),
        ("rsvid", ""),
        ("mem", ""),
        ("exclusive", "N"),
    ];
    check(&done, &wanted);
}

#[test]
fn values_of_fields_of_a_running_job() {
    let run = json!({"Stat": "RUN", "StartTime": T, "RunTime": 600, "ExitCode": null,
        "Limits": {"run": 3600, "rss": 1_048_576}, "ExecHosts": [["h1", 1]], "MemKb": 3072,
        "LimitSpec": "hosta"});
    let wanted = [
        ("time_left", "0:50 L"),
        ("finish_time", "Nov 20 10:30 L"),
        ("%complete", "16.67% L"),
        ("runtimelimit", "60.0/hosta"),
        ("memlimit", "1 G"),
        ("mem", "3 Mbytes"),
        ("exit_code", ""),
        ("exec_host", "h1"),
    ];
    check(&run, &wanted);
}

#[test]
fn run_limit_of_a_started_job_is_the_one_that_it_reaches_first() {
    let run = |limit: Value, own: Value| {
        json!({"Stat": "RUN", "StartTime": T, "RunTime": 600, "ExecHosts": [["h1", 1]],
            "Limits": own, "LimitSpec": "hosta", "RunLimit": limit})
    };
    // on a host twice as fast
    let fast = run(json!([1800, true]), json!({"run": 3600}));
    check(
        &fast,
        &[
            ("time_left", "0:20 L"),
            ("finish_time", "Nov 20 10:00 L"),
            ("%complete", "33.33% L"),
            ("runtimelimit", "60.0/hosta"),
        ],
    );
    // EXTENDABLE_RUNLIMIT beside -W and alone
    for own in [json!({"run": 3600}), json!({})] {
        let extendable = run(json!([1200, false]), own);
        let wanted = [
            ("time_left", "0:10 L"),
            ("finish_time", "Nov 20 09:50 L"),
            ("%complete", "50.00% L"),
            ("runtimelimit", "20.0"),
        ];
        check(&extendable, &wanted);
    }
    check(&run(Value::Null, json!({})), &[("time_left", ""), ("runtimelimit", "")]);
}

#[test]
fn values_of_fields_of_a_pending_job() {
    let pend = json!({"PendReasons": [[3, 0, []], [1001, 2, []]], "AskedHosts": ["a", "b+1"]});
    let wanted = [
        ("pendstate", "IPEND"),
        ("pend_reason", "Job dependency condition not satisfied;"),
        ("ask_hosts", "a b+1"),
        ("slots", "1"),
        ("exec_host", ""),
        ("cpu_used", ""),
    ];
    check(&pend, &wanted);
    let tracked = json!({"PendTime": 100, "IneligibleTime": 30, "Extra": {"eptl": "120"},
        "PendLimits": [60, 90]});
    let wanted = [
        ("ependtime", "70"),
        ("ipendtime", "30"),
        ("effective_plimit", "60"),
        ("plimit_remain", "-40"),
        ("effective_eplimit", "120"),
        ("eplimit_remain", "50"),
        ("plimit", ""),
        ("eplimit", "120"),
    ];
    check(&tracked, &wanted);
    let limits = json!({"PendTime": 100, "PendLimits": [60, 90]});
    for name in ["ependtime", "ipendtime", "eplimit_remain"] {
        assert_eq!(field(name, limits.clone()), "", "{name}");
    }
}

#[test]
fn values_of_fields_of_an_ended_job() {
    let killed = json!({"Stat": "EXIT", "ExitInfo": 14});
    assert_eq!(field("exit_reason", killed), "TERM_OWNER: job killed by owner");
    let lost = json!({"Stat": "EXIT", "ExitInfo": 9001, "ExitCode": null});
    assert_eq!(field("exit_code", lost), "");
}

#[test]
fn no_field_or_alias_twice() {
    let mut all: Vec<&str> = Vec::new();
    for f in FIELDS {
        all.push(f.name);
        all.extend(f.alias);
        assert!(f.width > 0);
    }
    let n = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), n);
    assert!(n > 130, "{n}");
}

#[test]
fn fields_of_a_job_of_which_a_summary_alone_may_be_seen_are_empty() {
    let mut job = json!({"Job": 103, "Stat": "RUN", "ExecHosts": [["hosta", 1]],
        "StartTime": T - 600, "RunTime": 600});
    let hidden = [
        "Command",
        "Cwd",
        "Home",
        "ExecCwd",
        "ExecHome",
        "ExecUser",
        "InFile",
        "OutFile",
        "ErrFile",
        "Depend",
        "Description",
        "UserGroup",
        "PreExec",
        "PostExec",
        "ResReq",
        "CombinedResReq",
        "EffectiveResReq",
        "AskedHosts",
        "LimitSpec",
        "Options",
        "Options2",
        "ExitCode",
        "ExitInfo",
        "MaxMemKb",
        "AvgMemKb",
        "NThreads",
        "Extra",
        "GivenName",
        "Exceptions",
        "CpuPeak",
        "CpuPeakSecs",
        "Utime",
        "Stime",
        "HostUsage",
        "Priority",
    ];
    for name in hidden {
        job[name] = Value::Null;
    }
    let fields = "command exec_cwd exec_home output_file error_file input_file sub_cwd dependency \
        job_description user_group pre_exec_command post_exec_command combined_resreq \
        effective_resreq ask_hosts exit_code exit_reason max_mem avg_mem nthreads app sla ugroup \
        exceptions";
    for field in fields.split_whitespace().filter(|name| FIELDS.iter().any(|f| f.name == *name)) {
        let words = ["-noheader", "-a", "-o", field];
        let (out, err, code) = call(&words, &[], std::slice::from_ref(&job));
        assert_eq!((out.as_str(), err.as_str(), code), ("-\n", "", 0), "{field}");
    }
}
