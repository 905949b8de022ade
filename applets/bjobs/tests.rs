//! Rendering of hand-made rows against the texts of tests/cmd/expected, which were written by hand
//! from the documented layouts.

use super::long;
use super::opts::{ListingParams, plan};
use super::show::Show;
use super::table::{Sum, TableKind};
use lsf::cli::clock::Clock;
use lsf::cli::job_rows::{Cols, each_row};
use lsf::proto::client::Col;
use serde_json::{Value, json};
use std::ffi::OsString;

/// 2026-11-20 09:30:13 UTC.
pub const T: i64 = 1_795_167_013;

pub fn show() -> Show {
    Show {
        host_file: false,
        affinity: false,
        clock: Clock::utc(),
        wide: false,
        id_width: 7,
        short_hosts: false,
        hpc: false,
        short_pids: false,
        unwrapped: false,
        hms: false,
        unit: None,
        level: 0,
        expand: true,
        whole_reasons: false,
        host_names: false,
        factor: None,
        now: T + 600,
    }
}

/// The slice that mbatchd would send: `base` overlaid with each of `jobs`.
pub fn slice(cols: &Cols, base: &Value, jobs: &[Value]) -> String {
    let rows: Vec<Vec<Value>> = jobs
        .iter()
        .map(|job| {
            let pick = |c: &Col| {
                let name = serde_json::to_value(c).unwrap();
                let name = name.as_str().unwrap();
                // of hosts in no condensed group
                let name = if name == "CondensedHosts" && job.get(name).is_none() {
                    "ExecHosts"
                } else {
                    name
                };
                let found = [job, base].iter().find_map(|o| o.get(name)).cloned();
                // on hosts of the speed that the limit was given for
                let own = job.get("Limits").and_then(|limits| limits.get("run"));
                let own = own.filter(|_| name == "RunLimit").map(|secs| json!([secs, true]));
                found.or(own).unwrap_or(Value::Null)
            };
            cols.list().iter().map(pick).collect()
        })
        .collect();
    serde_json::to_string(&rows).unwrap()
}

pub fn base() -> Value {
    json!({
        "Job": 101, "Idx": 0, "Stat": "PEND", "User": "alice", "Queue": "normal",
        "Name": "b_sim", "GivenName": "b_sim", "Project": "default", "Command": "./b_sim.sh",
        "FromHost": "login1", "ExecHosts": [], "MinSlots": 1, "MaxSlots": 1, "SubmitTime": T,
        "StartTime": 0, "EndTime": 0, "Cwd": "/home/alice/w", "Home": "/home/alice",
        "PendReasons": [], "SuspReason": 0, "ExitInfo": 0, "Limits": {}, "Options": 0,
        "Options2": 0, "Priority": 50, "Pids": [], "UsageTime": 0,
        "CombinedResReq": "select[type == local] order[r15s:pg]", "Thresholds": [],
    })
}

/// Jobs of every state and shape that a table can meet.
fn zoo() -> Vec<Value> {
    vec![
        json!({"Job": 101, "Stat": "RUN", "ExecHosts": [["hosta", 1]], "Name": "my_b_sim.sh"}),
        json!({"Job": 102, "Idx": 1, "Name": "t[1]"}),
        json!({"Job": 103, "Stat": "PSUSP", "Name": "held", "User": "averylongname"}),
        json!({"Job": 104, "Stat": "RUN", "ExecHosts": [["hosta", 2], ["hostb", 1]],
               "Queue": "averylongqueue", "FromHost": "login1.example.com"}),
        json!({"Job": 105, "Stat": "USUSP", "ExecHosts": [["hostwithlongname", 1]],
               "Name": "exactly10c"}),
        json!({"Job": 106, "Stat": "SSUSP", "ExecHosts": [["hosta", 1]], "Name": "exactly_11c"}),
        json!({"Job": 12345678, "Stat": "DONE", "ExecHosts": [["hosta", 1]],
               "Name": "é\u{1b}[1m\u{9b}x"}),
        json!({"Job": 108, "Stat": "EXIT", "ExecHosts": []}),
        json!({"Job": 109, "Stat": "UNKWN", "ExecHosts": [["hosta", 1]],
               "Name": {"b64": "/2E="}}),
        json!({"Job": 110, "Stat": "ZOMBI", "ExecHosts": [["hosta", 1]], "Name": "a\nb\tc"}),
    ]
}

pub fn table(kind: TableKind, s: &Show, jobs: &[Value]) -> String {
    let hosts = if s.expand { Col::ExecHosts } else { Col::CondensedHosts };
    let cols = Cols::new(&kind.cols(hosts));
    let mut out = String::new();
    kind.head(&mut out, s);
    each_row(&slice(&cols, &base(), jobs), &cols, |r| kind.row(&mut out, &r, s)).unwrap();
    out
}

#[test]
fn bjobs_shows_the_default_table() {
    let want = include_str!("../../tests/cmd/expected/bjobs.txt");
    assert_eq!(table(TableKind::Plain, &show(), &zoo()), want);
}

#[test]
fn bjobs_w_shows_the_wide_table() {
    let want = include_str!("../../tests/cmd/expected/bjobs-w.txt");
    assert_eq!(table(TableKind::Plain, &Show { wide: true, ..show() }, &zoo()), want);
}

#[test]
fn hosts_condense_where_the_site_says_so() {
    let s = Show { short_hosts: true, id_width: 10, ..show() };
    let got = table(TableKind::Plain, &s, &zoo()[3..4]);
    let lines: Vec<&str> = got.lines().collect();
    assert_eq!(lines[0].find("EXEC_HOST"), Some(48));
    assert_eq!(lines[1].find("2*hosta "), Some(48));
    assert_eq!(lines[2].find("hostb"), Some(48));
    assert_eq!(lines.len(), 3);
    let one = json!({"Stat": "RUN", "ExecHosts": [["hosta", 128]]});
    assert_eq!(table(TableKind::Plain, &s, &[one]).lines().count(), 2);
    assert!(table(TableKind::Plain, &s, &zoo()[6..7]).contains("\n12345678   alice"));
}

#[test]
fn reasons_under_each_job() {
    let want = include_str!("../../tests/cmd/expected/bjobs-p.txt");
    let jobs = [
        json!({"PendReasons": [[1001, 2, []], [1301, 1, []], [3, 0, []]]}),
        json!({"Job": 102, "Stat": "PSUSP", "PendReasons": [[607, 0, []]],
               "Name": "a_name_of_nineteen_", "Queue": "q_of_twelve_",
               "FromHost": "from_fifteen_ch"}),
        json!({"Job": 103, "Stat": "USUSP", "SuspReason": 1}),
        json!({"Job": 104, "Stat": "RUN", "ExecHosts": [["hosta", 1]]}),
    ];
    assert_eq!(table(TableKind::Reasons, &show(), &jobs), want);
}

#[test]
fn a_reason_tells_what_a_host_said_and_the_resource_that_is_missing() {
    let said = "input file </root/in>: Permission denied\u{1b}[2J";
    let jobs = [
        json!({"PendReasons": [[10, 0, [], said], [1305, 1, ["hosta"], ""]]}),
        json!({"Job": 102, "Stat": "PSUSP", "PendReasons": [[9004, 0, [], "no such shell"]]}),
        json!({"Job": 103, "PendReasons": [[2612, 2, [], "lic1"], [2612, 1, []], [2611, 1, []]]}),
        json!({"Job": 104, "PendReasons": [[2012, 2, [], "tok"], [2012, 1, []]]}),
    ];
    let shown = table(TableKind::Reasons, &show(), &jobs);
    for want in [
        " Unable to open job's I/O buffers: input file </root/in>: Permission denied?[2J;\n",
        " Job slot limit reached: 1 host;\n",
        " The job has reached its start retry limit: no such shell;\n",
        " Job's requirements for reserving resource (lic1) not satisfied: 2 hosts;\n",
        // of a mbatchd that does not tell which
        " Job's requirements for resource reservation not satisfied: 1 host;\n",
        " Job requirements for reserving resource (mem) not satisfied: 1 host;\n",
        " External load index (tok) is beyond threshold: 2 hosts;\n",
        " An external load index is beyond threshold: 1 host;\n",
    ] {
        assert!(shown.contains(want), "{want}{shown}");
    }
}

#[test]
fn usage_columns_are_never_blank() {
    let want = include_str!("../../tests/cmd/expected/bjobs-W.txt");
    let jobs = [
        json!({"Stat": "RUN", "ExecHosts": [["hosta", 4]], "StartTime": T + 1, "CpuUsed": 3661.25,
               "MemKb": 122_880, "SwapKb": 0, "Pids": [4242, 4243]}),
        json!({"Job": 102, "MinSlots": 2}),
    ];
    assert_eq!(table(TableKind::Usage, &show(), &jobs), want);
}

#[test]
fn bjobs_a_shows_sums_of_arrays() {
    let want = include_str!("../../tests/cmd/expected/bjobs-A.txt");
    let jobs = [
        json!({"GivenName": "t[1-5]", "Counters": [5, 1, 2, 1, 1, 0, 0, 0]}),
        json!({"Job": 102, "GivenName": "long_name[1-1000]%10",
               "Counters": [1000, 990, 0, 10, 0, 0, 0, 0]}),
    ];
    assert_eq!(table(TableKind::Arrays, &show(), &jobs), want);
}

#[test]
fn bjobs_sum_adds_up_slots() {
    let cols = Cols::new(&Sum::COLS);
    let mut sum = Sum::default();
    each_row(&slice(&cols, &base(), &zoo()), &cols, |r| sum.add(&r)).unwrap();
    let mut out = String::new();
    sum.lines(&mut out, true);
    assert_eq!(out, include_str!("../../tests/cmd/expected/bjobs-sum.txt"));
}

pub fn long_of(s: &Show, job: Value) -> String {
    let cols = Cols::new(long::COLS);
    let mut out = String::new();
    each_row(&slice(&cols, &base(), &[job]), &cols, |r| long::job(&mut out, &r, s)).unwrap();
    out
}

fn running() -> Value {
    json!({
        "Stat": "RUN", "ExecHosts": [["hosta", 4]], "MinSlots": 4, "MaxSlots": 4,
        "StartTime": T + 1, "OutFile": "o.%J", "ResReq": "rusage[mem=1000]",
        "Limits": {"run": 3600, "rss": 2_097_152}, "LimitSpec": "hosta", "RunTime": 63,
        "ExecHome": "/home/alice", "ExecCwd": "/tmp",
        "UsageTime": T + 64, "CpuUsed": 62.4, "MemKb": 122_880, "SwapKb": 0, "NThreads": 6,
        "Pgid": 4242, "Pids": [4242, 4243, 4250], "MaxMemKb": 122_880, "AvgMemKb": 100_352,
        "CpuPeak": 3.5, "CpuPeakSecs": 54,
        "Thresholds": [["r15s", null, null], ["r1m", 20.0, 40.0]],
        "EffectiveResReq": "select[type == local] order[r15s:pg] rusage[mem=1000.00]",
        "CombinedResReq":
            "select[(mem > 1000) && (type == local)] order[r15s:pg] \
             rusage[mem=1000.00] span[hosts=1]",
    })
}

#[test]
fn a_running_job_at_length() {
    let want = include_str!("../../tests/cmd/expected/bjobs-l-run.txt");
    assert_eq!(long_of(&show(), running()), want);
}

#[test]
fn a_running_job_unwrapped() {
    let want = include_str!("../../tests/cmd/expected/bjobs-UF.txt");
    let s = Show { unwrapped: true, short_hosts: true, ..show() };
    assert_eq!(long_of(&s, running()), want);
}

#[test]
fn requirements_are_shown_as_the_cluster_has_it() {
    let shown = |levels: Value| {
        let mut job = running();
        job["ResReqLevels"] = levels;
        let got = long_of(&Show { unwrapped: true, ..show() }, job);
        let (_, after) = got.split_once("\n RESOURCE REQUIREMENT DETAILS:\n").unwrap_or_default();
        after.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let brief = shown(Value::Null);
    assert_eq!(brief.len(), 2);
    assert_eq!(shown(json!(["none"])), Vec::<String>::new());
    let full = shown(json!(["full", "", "select[type == any] rusage[mem=5\u{1b}]"]));
    assert_eq!(full[..2], brief[..]);
    assert_eq!(
        full[2..],
        [
            " Job-level: rusage[mem=1000]",
            " App-level: -",
            " Queue-level: select[type == any] rusage[mem=5?]"
        ]
    );
}

#[test]
fn bjobs_l_shows_the_note_of_the_execution_host() {
    let mut job = running();
    job["ExecNote"] = json!("current \u{1b}x; </tmp> is used");
    let s = Show { unwrapped: true, ..show() };
    let got = long_of(&s, job);
    let line = "\nFri Nov 20 09:30:14: Current ?x; </tmp> is used;\nFri Nov 20 09:31:17: Resource";
    assert!(got.contains(line), "{got}");
}

#[test]
fn tasks_are_worded_as_the_site_says() {
    let s = Show { unwrapped: true, hpc: true, ..show() };
    let got = long_of(&s, running());
    assert!(got.contains(", 4 Task(s), Requested"), "{got}");
    assert!(got.contains(
        ": Started 4 Task(s) on Host(s) <4*hosta>, Allocated 4 Slot(s) on Host(s) <4*hosta>, Exec"
    ));
}

#[test]
fn a_pending_job_with_every_option() {
    let want = include_str!("../../tests/cmd/expected/bjobs-l-pend.txt");
    let job = json!({
        "Idx": 5, "Name": "b_sim[5]", "GivenName": "b_sim[1-9]", "MailUser": "alice@x",
        "UserGroup": "chip", "Description": "a \u{1b}[1mbold\u{1b}[0m job",
        "Command": "line1\nline2", "BeginTime": T + 3600, "TermTime": T + 7200,
        "InFile": "in", "OutFile": "o", "ErrFile": "e",
        "Options": 0x40 | 0x80 | 0x100 | 0x4000, "Options2": 0x01 | 0x04,
        "MinSlots": 2, "MaxSlots": 4, "LoginShell": "/bin/sh", "PreExec": "/bin/true",
        "PostExec": "/bin/false", "AskedHosts": ["hosta+2", "hostb"], "Depend": "done(23)",
        "Cwd": "/homes/w", "Home": "/home", "Priority": 0,
        "PendReasons": [[1001, 2, []], [38, 0, []]],
    });
    assert_eq!(long_of(&show(), job), want);
}

#[test]
fn bjobs_l_shows_the_submission_and_its_estimates() {
    let s = Show { unwrapped: true, ..show() };
    let submitted = |more: Value| {
        let got = long_of(&s, more);
        let from = got.find("Submitted from host <login1>").unwrap();
        got[from..got.find(" SCHEDULING").unwrap()].to_string()
    };
    // the order of a real job of 10.1
    let real = json!({"Extra": {"subcwd": "/home/alice/playground"},
        "Cwd": "/home/alice/playground/test_5", "OutFile": "lsf_output_121002.log",
        "ErrFile": "lsf_error_121002.err", "Options2": 0x04 | 0x08, "Options": 0x4000,
        "MinSlots": 6, "MaxSlots": 6, "ResReq": " rusage[mem=50000] span[hosts=1]"});
    assert_eq!(
        submitted(real),
        "Submitted from host <login1>, CWD <$HOME/playground>, Specified CWD \
         <$HOME/playground/test_5>, Output File (overwrite) <lsf_output_121002.log>, Error File \
         (overwrite) <lsf_error_121002.err>, Re-runnable, 6 Processors Requested, Requested \
         Resources < rusage[mem=50000] span[hosts=1]>;\n\n"
    );
    let files = json!({"Extra": {"f": "a > b c < d"}, "UserPriority": 10});
    assert_eq!(
        submitted(files),
        "Submitted from host <login1>, CWD <$HOME/w>, Copy Files \"a > b\" \"c < d\", User \
         Priority <10>;\n\n"
    );
    // -We: "Plan-based scheduling run time"
    let estimate = |text: &str, more: Value| {
        let mut j = json!({"Extra": {"We": text},
            "PendReasons": [[1311, 1, []]]});
        j.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        submitted(j)
    };
    assert_eq!(
        estimate("10/intel4", json!({})),
        "Submitted from host <login1>, CWD <$HOME/w>;\n ESTIMATED_RUNTIME:\n 10.0 min of intel4 \
         based on user provided runtime estimation.\n\n PENDING REASONS:\n Not specified in job \
         submission: 1 host;\n\n"
    );
    assert_eq!(
        estimate("1:30", json!({"Limits": {"run": 7200}})),
        "Submitted from host <login1>, CWD <$HOME/w>;\n ESTIMATED_RUNTIME:\n 90.0 min based on \
         user provided runtime estimation.\n\n RUNLIMIT                \n 120.0 min\n PENDING \
         REASONS:\n Not specified in job submission: 1 host;\n\n"
    );
}

#[test]
fn bjobs_l_shows_the_execution_user_and_external_thresholds() {
    let run = |more: Value| {
        let mut j = json!({"Stat": "RUN", "ExecHosts": [["hosta", 1]], "StartTime": T,
            "ExecHome": "/home/b", "ExecCwd": "/w"});
        j.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        long_of(&Show { unwrapped: true, ..show() }, j)
    };
    let started = |user: &str| {
        format!(": Started on <hosta>, Execution Home </home/b>, Execution CWD </w>{user};\n")
    };
    assert!(run(json!({"ExecUser": "alice"})).contains(&started("")));
    let other = run(json!({"ExecUser": "lsfbob"}));
    assert!(other.contains(&started(", Execution user name <lsfbob>")), "{other}");
    // external indices in a block of their own
    let got = run(json!({"ExternalThresholds": [["lic", "5/"], ["scratchspace", "/0.5"]]}));
    let want = " loadStop    -     -     -     -       -     -    -     -     -      -      -  \n\n\
                \x20             lic scratchspace\n loadSched    5.0            -\n loadStop       \
                -          0.5\n\n RESOURCE REQUIREMENT DETAILS:\n";
    assert!(got.contains(want), "{got}");
}

#[test]
fn process_groups_stand_by_themselves() {
    // the job of six tasks whose listing was published
    let job = json!({"Stat": "RUN", "ExecHosts": [["cn809", 6]], "StartTime": T,
        "UsageTime": T + 60, "Pgid": 1487356, "Pids": [1487356, 1487374, 1498850, 1498962],
        "PidGroups": [1487356, 1487356, 1498850, 1498850]});
    let got = long_of(&show(), job);
    let want = "\n                     PGID: 1487356;  PIDs: 1487356 1487374 \n                     \
                PGID: 1498850;  PIDs: 1498850 1498962 \n";
    assert!(got.contains(want), "{got}");
}

#[test]
fn every_way_to_end() {
    let end = |job: Value| {
        let mut all = json!({"ExecHosts": [["hosta", 1]], "StartTime": T, "EndTime": T + 9,
            "CpuUsed": 0.26, "Stat": "EXIT", "WaitStatus": null});
        let over = job.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(over);
        let got = long_of(&Show { unwrapped: true, ..show() }, all);
        let from = got.find("Fri Nov 20 09:30:22: ").unwrap();
        let to = from + got[from..].find("\n\n").unwrap();
        got[from..to].replace("Fri Nov 20 09:30:22: ", "").replace('\n', "|")
    };
    assert_eq!(
        end(json!({"Stat": "DONE", "WaitStatus": 0})),
        "Done successfully. The CPU time used is 0.3 seconds."
    );
    assert_eq!(
        end(json!({"WaitStatus": 3 << 8})),
        "Exited with exit code 3. The CPU time used is 0.3 seconds."
    );
    assert_eq!(
        end(json!({"WaitStatus": 9, "ExitInfo": 14})),
        "Exited by signal 9. The CPU time used is 0.3 seconds.|\
         Completed <exit>; TERM_OWNER: job killed by owner."
    );
    assert_eq!(
        end(json!({"WaitStatus": 130 << 8, "ExitInfo": 5})),
        "Exited with exit code 130. The CPU time used is 0.3 seconds.|\
         Completed <exit>; TERM_RUNLIMIT: job killed after reaching LSF run time limit."
    );
    let lost = end(json!({"ExitInfo": 9001}));
    assert_eq!(
        lost,
        "Exited. The CPU time used is 0.3 seconds.|Completed <exit>; TERM_LOST_STATUS: exit \
         status unknown, the launcher on the execution host was lost."
    );
    assert!(!lost.contains("code"));
    assert_eq!(
        end(json!({"ExecHosts": [], "StartTime": 0, "CpuUsed": 0, "ExitInfo": 14})),
        "Exited. The CPU time used is unknown.|Completed <exit>; TERM_OWNER: job killed by owner."
    );
}

#[test]
fn a_suspended_job_says_why() {
    let job = json!({"Stat": "USUSP", "SuspReason": 1, "ExecHosts": [["hosta", 1]],
        "StartTime": T});
    let got = long_of(&show(), job);
    assert!(got.contains(
        ">;\n SUSPENDING REASONS:\n The job was suspended by user;\n\n SCHEDULING PARAMETERS:\n"
    ));
    assert!(!long_of(&show(), json!({"Stat": "RUN"})).contains("REASONS"));
}

/// The layout is that of published output of LSF 10.1 (a bug report on a pending job, and one on
/// a running job of six tasks).
#[test]
fn waiting_time_of_a_job_is_shown() {
    let pend = json!({"PendTime": 5, "IneligibleTime": 0, "PendReasons": [[1, 0, []]]});
    let got = long_of(&show(), pend);
    let want = "\n PENDING REASONS:\n New job is waiting for scheduling;\n\n\n \
                PENDING TIME DETAILS:\n Eligible pending time (seconds):       5\n Ineligible \
                pending time (seconds):     0\n\n SCHEDULING PARAMETERS:\n";
    assert!(got.contains(want), "{got}");
    let run = json!({"Stat": "RUN", "PendTime": 2, "IneligibleTime": 0, "StartTime": T,
        "ExecHosts": [["hosta", 1]], "MaxMemKb": 2048, "AvgMemKb": 1024, "CpuUsed": 0.0});
    let got = long_of(&show(), run);
    let want = "CPU PEAK EFFICIENCY: 0.00%\n\n PENDING TIME DETAILS:\n Eligible pending time \
                (seconds):       2\n Ineligible pending time (seconds):     0\n\n SCHEDULING";
    assert!(got.contains(want), "{got}");
    // not tracked, but limited: by the job, and where that says nothing by its queue
    let limits = json!({"Extra": {"ptl": "600"}, "PendLimits": [60, 120], "PendTime": 5});
    let got = long_of(&show(), limits.clone());
    let want = "\n PENDING TIME DETAILS:\n Pending time limit (seconds):          600\n Eligible \
                pending time limit (seconds): 120\n\n SCHEDULING";
    assert!(got.contains(want), "{got}");
    let mut none = limits;
    none["Stat"] = json!("RUN");
    assert!(!long_of(&show(), none).contains("PENDING"));
}

#[test]
fn elements_start_by_index() {
    let job = json!({"Stat": "RUN", "Idx": 3, "Name": "b_sim[3]", "ExecHosts": [["hosta", 1]],
        "StartTime": T + 5});
    let got = long_of(&show(), job);
    assert!(got.starts_with("\nJob <101[3]>, Job Name <b_sim[3]>, User <alice>"), "{got}");
    assert!(got.contains("Fri Nov 20 09:30:18: [3] started on <hosta>;\n"), "{got}");
}

/// The factor that an operand of -N names.
fn factor(spec: &str) -> Result<f64, String> {
    spec.parse().map_err(|_| format!("{spec}: Bad host specification"))
}

/// The output of a call for these jobs: stdout, stderr and the exit code.
pub fn call(words: &[&str], site: &[(&str, &str)], jobs: &[Value]) -> (String, String, i32) {
    let args: Vec<OsString> = words.iter().map(OsString::from).collect();
    let get = |name: &str| site.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
    let site = ListingParams::new(get);
    let mut l = match plan(&args, &site, Clock::utc(), T, factor) {
        Ok(l) => l,
        Err(e) => return (e.out, e.err, e.code),
    };
    if let Some(name) = l.cluster() {
        *name = "c1".to_string();
    }
    let cols = Cols::new(&l.query().cols);
    let mut out = String::new();
    // Two slices, so that nothing depends on where one ends.
    let (a, b) = jobs.split_at(jobs.len() / 2);
    for part in [a, b] {
        out.push_str(l.slice(&slice(&cols, &base(), part)).unwrap());
    }
    out.push_str(&l.end());
    let (err, code) = l.verdict(site.consistent);
    (out, err, code)
}

#[test]
fn nothing_matched_is_told_on_stderr() {
    for (words, said, code) in [
        (&[][..], "No unfinished job found\n", 0),
        (&["-a"], "No job found\n", 0),
        (&["-d"], "No DONE/EXIT job found\n", 0),
        (&["-p"], "No pending job found\n", 0),
        (&["-r"], "No running job found\n", 0),
        (&["-s"], "No suspended job found\n", 0),
        (&["-pr"], "No pending job found\n", 0),
        (&["-dp"], "No DONE/EXIT job found\n", 0),
        (&["-sr"], "No suspended job found\n", 0),
        (&["-ad"], "No job found\n", 0),
        (&["-m", "h"], "No unfinished job found on host/group <h>\n", 0),
        (
            &["-a", "-q", "night", "-m", "h"],
            "No job found in queue <night> and on host/group <h>\n",
            0,
        ),
        (&["-q", "night", "9"], "Job <9> is not found in queue <night>\n", 255),
        (&["-J", "x", "-m", "h"], "Job <x> is not found on host/group <h>\n", 255),
        (&["-A"], "Job array is not found\n", 0),
        (&["-A", "-q", "night"], "Job array is not found in queue <night>\n", 0),
        (&["-A", "9"], "Job array <9> is not found\n", 255),
        (&["-A", "-l", "-q", "n", "9"], "Job array <9> is not found in queue <n>\n", 255),
        (&["-A", "9[2-4]"], "Job <9[2-4]> is not a job array\n", 255),
        (&["-A", "-J", "x"], "Job array <x> is not found\n", 255),
        (&["-A", "-J", "x[3]"], "Job <x[3]> is not a job array\n", 255),
        (&["-q", "night"], "No unfinished job found in queue <night>\n", 0),
        (&["-J", "nojob"], "Job <nojob> is not found\n", 255),
        (&["99999"], "Job <99999> is not found\n", 255),
        (&["99999[1-4,6]"], "Job <99999[1-4,6]> is not found\n", 255),
        (&["-l", "99999"], "Job <99999> is not found\n", 255),
        (&["-o", "stat", "9"], "Job <9> is not found\n", 255),
    ] {
        assert_eq!(call(words, &[], &[]), (String::new(), said.to_string(), code), "{words:?}");
    }
    let strict = [("LSB_BJOBS_CONSISTENT_EXIT_CODE", "Y")];
    assert_eq!(call(&["-p"], &strict, &[]).2, 255);
    assert_eq!(call(&["-p"], &strict, &[json!({})]).2, 0);
}

#[test]
fn known_and_unknown_jobs_in_one_call() {
    let jobs = [json!({}), json!({"Job": 102, "Idx": 3, "Name": "t[3]"})];
    let (out, err, code) = call(&["101", "102[1-2]", "102[3]", "7"], &[], &jobs);
    assert_eq!(out.lines().count(), 3);
    assert_eq!(err, "Job <102[1-2]> is not found\nJob <7> is not found\n");
    assert_eq!(code, 255);
}

#[test]
fn bjobs_o_shows_the_given_fields() {
    let jobs = [
        json!({}),
        json!({"Job": 102, "Stat": "RUN", "ExecHosts": [["h1", 4]],
        "MemKb": 3_670_016, "Name": "a_long_name_x"}),
    ];
    let (out, err, code) = call(&["-o", "ID stat EXEC_HOST:-12 name:8"], &[], &jobs);
    assert_eq!(
        out,
        "JOBID STAT    EXEC_HOST JOB_NAME\n101 PEND            - b_sim   \n\
         102 RUN         4*h1 *_name_x\n"
    );
    assert_eq!((err.as_str(), code), ("", 0));
    let (out, ..) = call(&["-noheader", "-o", "stat delimiter='^' id mem:6:G"], &[], &jobs);
    assert_eq!(out, "PEND^101^-     \nRUN^102^3.5G  \n");
    let site = [("LSB_BJOBS_FORMAT", "stat")];
    assert_eq!(call(&["-noheader"], &site, &jobs).0, "PEND\nRUN\n");
    assert!(call(&["-w"], &site, &jobs).0.starts_with("JOBID   USER "));
    assert_eq!(
        call(&["-o", "jobid foo"], &[], &jobs),
        (String::new(), "<foo> in the format string is not a valid field name.\n".into(), 255)
    );
}

#[test]
fn bjobs_json_shows_records() {
    let read = |words: &[&str], jobs: &[Value]| {
        let (out, err, code) = call(words, &[], jobs);
        assert_eq!(err, "");
        (serde_json::from_str::<Value>(&out).unwrap(), code)
    };
    let (v, code) = read(
        &["-json", "-o", "jobid stat exit_code command", "101", "9"],
        &[json!({"Command": "a\"\u{1b}\n", "ExitCode": 3})],
    );
    assert_eq!(code, 255);
    assert_eq!(
        v,
        json!({"COMMAND": "bjobs", "JOBS": 2, "RECORDS": [
            {"JOBID": "101", "STAT": "PEND", "EXIT_CODE": "3", "COMMAND": "a\"\u{1b}\n"},
            {"JOBID": "9", "ERROR": "Job <9> is not found"},
        ]})
    );
    let (v, code) = read(&["-json"], &[]);
    assert_eq!((&v["RECORDS"], &v["JOBS"], code), (&json!([]), &json!(0), 0));
    let (v, _) = read(&["-json"], &[json!({})]);
    for key in ["JOBID", "STAT", "JOB_NAME"] {
        assert!(v["RECORDS"][0][key].is_string(), "{key}");
    }
    assert_eq!(v["RECORDS"][0]["EXEC_HOST"], "");
}

#[test]
fn records_of_long_listings_are_ruled_off() {
    let (out, ..) = call(&["-l"], &[], &[json!({}), json!({"Job": 102}), json!({"Job": 103})]);
    let rule = "-".repeat(78);
    assert_eq!(out.matches(&format!("\n{rule}\n\nJob <10")).count(), 2);
    assert!(out.starts_with("\nJob <101>") && out.ends_with(" Effective: -\n\n"), "{out}");
    assert_eq!(call(&["-UF", "-noheader"], &[], &[json!({})]).0.lines().count(), 13);
}

#[test]
fn only_the_columns_shown_are_asked_for() {
    let plan = |words: &[&str]| {
        let args: Vec<OsString> = words.iter().map(OsString::from).collect();
        plan(&args, &ListingParams::new(|_| None), Clock::utc(), T, factor)
            .unwrap_or_else(|e| panic!("{e:?}"))
    };
    assert_eq!(plan(&["-o", "stat stat"]).query().cols, [Col::Job, Col::Idx, Col::Stat]);
    assert!(!plan(&[]).query().cols.contains(&Col::PendReasons));
    let q = plan(&["-A", "-uall", "-aJ", "x*", "-P p", "-m", "h", "0"]).query();
    assert!(q.arrays && q.which.all && q.select.all);
    assert_eq!((q.select.user.as_str(), q.select.name.as_str()), ("all", "x*"));
    let words = ["-G", "g", "-g/a", "-app", "s", "-sla", "x", "-Lp", "l", "-Jd", "d*", "-U", "u#1"];
    let q = plan(&words).query();
    let given: Vec<String> = q.select.given.iter().map(|(o, v)| format!("{o}={v}")).collect();
    assert_eq!(given, ["G=g", "g=/a", "app=s", "sla=x", "Lp=l", "Jd=d*", "U=u#1"]);
    let q = plan(&["-A", "-uall", "-aJ", "x*", "-P p", "-m", "h", "0"]).query();
    assert_eq!((q.select.project.as_str(), q.select.host.as_str()), ("p", "h"));
    // -N is of finished jobs, and of those that are named
    for (words, done, run) in [
        (&["-N", "2"][..], true, false),
        (&["-N", "2", "-r"], true, true),
        (&["-N", "2", "7"], false, false),
    ] {
        let q = plan(words).query();
        assert_eq!((q.which.done, q.which.run), (done, run), "{words:?}");
    }
    // names of hosts are for reasons of the long form alone
    for (words, counts) in [
        (&[][..], true),
        (&["-p"], true),
        (&["-p3"], true),
        (&["-psum"], true),
        (&["-l", "-p"], false),
        (&["-UF", "-p3"], false),
    ] {
        assert_eq!(plan(words).query().reason_counts, counts, "{words:?}");
    }
    let q = plan(&["-p2", "-s"]).query();
    assert!(q.which.pend && q.which.susp && q.cols.contains(&Col::PendReasons));
}

#[test]
fn unsupported_options_are_refused() {
    let said = call(&["-bucket"], &[], &[]);
    assert_eq!(said, (String::new(), "bjobs: option -bucket is not supported yet\n".into(), 255));
    assert_eq!(call(&["abc"], &[], &[]).1, "abc: Illegal job ID.\n");
    assert_eq!(call(&["-h"], &[], &[]).2, 0);
}

#[test]
fn processor_units_of_a_running_job_are_listed_one_by_one() {
    let units = "core,socket,socket,localonly hosta:/0/0/0:0-3:0-1:0=17 hosta:/0/1/0+/0/1/1:4-7::0=17 \
                 | thread,-,-,- hostb:/1/1/0/9:9::1=0";
    let job = json!({"Stat": "RUN", "ProcessorUnits": units});
    let got = long_of(&Show { affinity: true, ..show() }, job.clone());
    assert!(got.ends_with(include_str!("../../tests/cmd/expected/bjobs-aff.txt")), "{got}");
    assert!(!long_of(&show(), job).contains("AFFINITY"));
}

#[test]
fn pending_job_ends_with_what_would_let_it_start() {
    let needs = json!([
        [["hosta", [[1, ""], [2048, "mem"]]]],
        [[null, [[-303, ""]]], ["hostb", [[-1301, ""]]]]
    ]);
    let got = long_of(&show(), json!({"Stat": "PEND", "StartNeeds": needs}));
    let end = "\n TO START NOW:\n hosta: 1 free slot, 2048 MB more of mem;\n or no longer \"The \
               queue has reached its job slot limit\"; and hostb: no longer \"Closed by LSF \
               administrator\";\n";
    assert!(got.ends_with(end), "{got}");
    let got = long_of(&show(), json!({"Stat": "RUN", "StartNeeds": []}));
    assert!(!got.contains("TO START NOW"), "{got}");
}
