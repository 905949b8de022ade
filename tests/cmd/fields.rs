//! Fields of -o of real jobs in each state: a table of job, field and value.
//! applets/bjobs/field_tests.rs checks that every field has a row for hand-made jobs of each state.

use crate::common::*;
use serde_json::Value;

/// A value as the table has it: `INT`, `DATE`, `HOST`, `SIZE` and `PERCENT` stand for any, `*`
/// before a text for what it ends with; else it is the value.
fn fits(value: &str, want: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.parse::<f64>().is_ok();
    match want {
        "INT" => value.parse::<u64>().is_ok(),
        "DATE" => {
            let words: Vec<&str> = value.split_whitespace().collect();
            words.len() == 3 && words[0].len() == 3 && words[2].len() == 5
        }
        "HOST" => value.starts_with(char::is_alphabetic) && !value.contains(':'),
        "SIZE" => value
            .split_once(' ')
            .is_some_and(|(n, unit)| number(n) && matches!(unit, "Kbytes" | "Mbytes" | "Gbytes")),
        "PERCENT" => value.strip_suffix('%').is_some_and(number),
        "SECONDS" => value.strip_suffix(" second(s)").is_some_and(number),
        "PIDS" => value.split(',').all(|pid| pid.parse::<u32>().is_ok()),
        want => match want.strip_prefix('*') {
            Some(end) => value.ends_with(end),
            None => value == want,
        },
    }
}

/// Looks the rows up in the JSON of the job, and in its text: the two must agree.
fn check(state: &str, id: &str, rows: &[(&str, &str)]) {
    let text = ok("bjobs", &["-json", "-o", "all", id]);
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["JOBS"], 1, "{state}");
    let record = &read["RECORDS"][0];
    assert!(record.as_object().unwrap().len() > 110, "{state}");
    for (name, want) in rows {
        let value = record[name.to_uppercase()].as_str().unwrap_or("(missing)");
        let shown = if *want == "-" { "" } else { want };
        assert!(fits(value, shown), "{state}: {name} is {value:?}, not {want}");
    }
    let steady = "jobid stat user queue job_name command exec_host nreq_slot exit_code mem:8 sla";
    let format = format!("{steady} delimiter='^'");
    let text = ok("bjobs", &["-noheader", "-o", &format, id]);
    let words: Vec<&str> = text.trim_end_matches('\n').split('^').collect();
    for (word, name) in words.iter().zip(["JOBID", "STAT", "USER", "QUEUE", "JOB_NAME", "COMMAND"])
    {
        assert_eq!(record[name], *word, "{state}: {name}");
    }
    assert_eq!((words.len(), words[9].len()), (11, 8), "{text}");
}

/// Fields of no job here.
const NEVER: &[&str] = &[
    "kill_reason",
    "resume_reason",
    "kill_issue_host",
    "suspend_issue_host",
    "resume_issue_host",
    "charged_saap",
    "interactive",
    "estimated_start_time",
    "estimated_sim_start_time",
    // these three while TRACK_ELIGIBLE_PENDINFO is off
    "ependtime",
    "ipendtime",
    "eplimit_remain",
    "gpu_num",
    "gpu_mode",
    "j_exclusive",
    "gpu_alloc",
    "hrusage",
    "forward_cluster",
    "forward_time",
    "srcjobid",
    "dstjobid",
    "source_cluster",
    "energy",
    "gpfsio",
];

/// Fields that are empty before a job has been started.
const BEFORE: &[(&str, &str)] = &[
    ("exec_host", "-"),
    ("first_host", "-"),
    ("nexec_host", "-"),
    ("alloc_slot", "-"),
    ("nalloc_slot", "-"),
    ("start_time", "-"),
    ("finish_time", "-"),
    ("time_left", "-"),
    ("%complete", "-"),
    ("run_time", "0 second(s)"),
    ("cpu_used", "-"),
    ("ru_utime", "-"),
    ("ru_stime", "-"),
    ("idle_factor", "-"),
    ("mem", "-"),
    ("max_mem", "-"),
    ("avg_mem", "-"),
    ("swap", "-"),
    ("nthreads", "-"),
    ("pids", "-"),
    ("exit_code", "-"),
    ("exit_reason", "-"),
    ("exec_home", "-"),
    ("exec_cwd", "-"),
    ("effective_resreq", "-"),
    ("exception_status", "-"),
    ("cpu_peak", "-"),
    ("cpu_peak_efficiency", "-"),
    ("average_cpu_efficiency", "-"),
    ("cpu_peak_reached_duration", "-"),
    ("mem_efficiency", "-"),
];

/// Options of a pending job, besides its dependency and its host.
const OPTIONS: &[(&str, &str)] = &[
    ("-J", "full"),
    ("-Jd", "a run"),
    ("-P", "proj"),
    ("-G", "chip"),
    ("-app", "sim"),
    ("-sla", "gold"),
    ("-g", "/a/b"),
    ("-Lp", "lp"),
    ("-U", "rsv-fields"),
    ("-q", "normal"),
    ("-n", "2,4"),
    ("-W", "2:00"),
    ("-M", "2GB"),
    ("-v", "3GB"),
    ("-F", "512MB"),
    ("-C", "0"),
    ("-S", "8MB"),
    ("-p", "20"),
    ("-i", "/etc/hostname"),
    ("-o", "out.%J"),
    ("-e", "err.%J"),
    ("-outdir", "o/%J"),
    ("-E", "/bin/true"),
    ("-Ep", "/bin/echo x"),
    ("-We", "1:30"),
    ("-ptl", "60"),
    ("-eptl", "10"),
    ("-wa", "URG"),
    ("-wt", "5"),
    ("-R", "rusage[mem=100]"),
    ("-b", "23:59"),
    ("-t", "23:59"),
];

/// Fields of a pending job with these options.
const WITH_OPTIONS: &[(&str, &str)] = &[
    ("jobindex", "0"),
    ("stat", "PEND"),
    ("user_group", "chip"),
    ("queue", "normal"),
    ("job_name", "full"),
    ("job_description", "a run"),
    ("proj_name", "proj"),
    ("application", "sim"),
    ("service_class", "gold"),
    ("job_group", "/a/b"),
    ("rsvid", "rsv-fields"),
    ("pend_reason", "The job has a specified start time;"),
    ("command", "./b sim"),
    ("pre_exec_command", "/bin/true"),
    ("post_exec_command", "/bin/echo x"),
    ("from_host", "HOST"),
    ("exclusive", "N"),
    ("nreq_slot", "2"),
    ("slots", "2"),
    ("min_req_proc", "2"),
    ("max_req_proc", "4"),
    ("submit_time", "DATE"),
    ("specified_start_time", "*23:59"),
    ("specified_terminate_time", "*23:59"),
    ("estimated_run_time", "5400 second(s)"),
    ("warning_action", "URG"),
    ("action_warning_time", "5.0"),
    ("pend_time", "INT"),
    ("pendstate", "IPEND"),
    ("plimit", "3600"),
    ("effective_plimit", "3600"),
    ("plimit_remain", "INT"),
    ("eplimit", "600"),
    ("effective_eplimit", "600"),
    ("memlimit", "2 G"),
    ("swaplimit", "3 G"),
    ("filelimit", "512 M"),
    ("corelimit", "0 K"),
    ("stacklimit", "8 M"),
    ("processlimit", "20"),
    ("runtimelimit", "120.0"),
    ("input_file", "/etc/hostname"),
    ("output_file", "out.%J"),
    ("error_file", "err.%J"),
    ("output_dir", "o/%J"),
    ("licproject", "lp"),
    ("combined_resreq", "*rusage[mem=100.00]"),
];

#[test]
fn fields_of_a_pending_job_with_every_option_have_its_values() {
    let free = bsub(&["-H", "-J", "before", "true"]);
    let depend = format!("ended({free})");
    crate::reservations::reservation("rsv-fields", "1:1:00-1:2:00");
    let host = ok("bhosts", &["-noheader", "-o", "hname"]).lines().next().unwrap().to_string();
    let mut words = vec!["-w", &depend, "-m", &host];
    words.extend(OPTIONS.iter().flat_map(|(option, value)| [*option, *value]));
    words.push("./b sim");
    let id = bsub(&words);
    check("PEND", &id, BEFORE);
    let never: Vec<(&str, &str)> = NEVER.iter().map(|name| (*name, "-")).collect();
    check("PEND", &id, &never);
    check("PEND", &id, WITH_OPTIONS);
    check("PEND", &id, &[("jobid", &id), ("dependency", &depend), ("ask_hosts", &host)]);
    // the limits are of waiting
    ok("bkill", &[&id, &free]);
    until(&id, "EXIT");
    check(
        "killed while pending",
        &id,
        &[
            ("plimit", "3600"),
            ("effective_plimit", "-"),
            ("plimit_remain", "-"),
            ("effective_eplimit", "-"),
            ("exit_reason", "TERM_OWNER: job killed by owner"),
            ("exec_host", "-"),
            ("start_time", "-"),
            ("finish_time", "DATE"),
            ("pendstate", "NOTPEND"),
        ],
    );
}

#[test]
fn fields_of_a_held_job_say_that_it_was_suspended_while_pending() {
    let held = bsub(&["-H", "-J", "held", "true"]);
    check("PSUSP", &held, BEFORE);
    let rows = [
        ("stat", "PSUSP"),
        ("pendstate", "IPEND"),
        ("pend_reason", "Job was suspended by the user while pending;"),
        ("suspend_reason", "-"),
        ("slots", "1"),
        ("job_priority", "-"),
        ("esub", "-"),
        ("host_file", "-"),
        ("network_req", "-"),
        ("resize_notification_command", "-"),
    ];
    check("PSUSP", &held, &rows);
    ok("bkill", &[&held]);
}

/// Fields of a running job, and of the same job suspended.
const STARTED: &[(&str, &str)] = &[
    ("exec_host", "HOST"),
    ("first_host", "HOST"),
    ("nexec_host", "1"),
    ("alloc_slot", "HOST"),
    ("nalloc_slot", "1"),
    ("start_time", "DATE"),
    ("run_time", "SECONDS"),
    ("cpu_used", "SECONDS"),
    ("mem", "SIZE"),
    ("max_mem", "SIZE"),
    ("avg_mem", "SIZE"),
    ("swap", "SIZE"),
    ("nthreads", "INT"),
    ("pids", "PIDS"),
    ("exit_code", "-"),
    ("exit_reason", "-"),
    ("pend_reason", "-"),
    ("pendstate", "NOTPEND"),
    ("pend_time", "INT"),
    ("runtimelimit", "60.0"),
    ("%complete", "* L"),
    ("effective_resreq", "*rusage[mem=50.00]"),
    ("mem_efficiency", "PERCENT"),
    ("average_cpu_efficiency", "PERCENT"),
    ("cpu_peak_efficiency", "PERCENT"),
    ("cpu_peak_reached_duration", "SECONDS"),
    ("exec_home", "*"),
    ("exec_cwd", "*"),
];

#[test]
fn fields_of_a_started_job_say_where_and_since_when_it_runs() {
    let run = bsub(&["-o", "/dev/null", "-W", "60", "-R", "rusage[mem=50]", "sleep 120"]);
    until(&run, "RUN");
    crate::rig::wait_for("usage to be told", || !matches!(&*field(&run, "mem"), "" | "-"));
    check("RUN", &run, STARTED);
    let running = [("stat", "RUN"), ("finish_time", "* L"), ("suspend_reason", "-")];
    check("RUN", &run, &running);
    let left = field(&run, "time_left");
    assert!(matches!(&*left, "0:59 L" | "1:0 L"), "{left}");
    ok("bstop", &[&run]);
    until(&run, "USUSP");
    check("USUSP", &run, STARTED);
    let words = "The job was suspended by user";
    check("USUSP", &run, &[("finish_time", "-"), ("suspend_reason", words), ("stat", "USUSP")]);
    ok("bkill", &[&run]);
    until(&run, "EXIT");
    let killed = [
        ("stat", "EXIT"),
        ("exit_reason", "TERM_OWNER: job killed by owner"),
        ("exit_code", "INT"),
        ("finish_time", "DATE"),
        ("time_left", "-"),
        ("%complete", "-"),
        ("suspend_reason", "-"),
        ("exec_host", "HOST"),
    ];
    check("killed", &run, &killed);
}

#[test]
fn fields_of_finished_parallel_and_array_jobs_have_their_values() {
    let done = bsub(&["-o", "/dev/null", "-n", "2", "-R", "span[hosts=1]", "true"]);
    let failed = bsub(&["-o", "/dev/null", "exit 3"]);
    until(&done, "DONE");
    let host = field(&done, "first_host");
    let both = format!("2*{host}");
    let rows = [
        ("stat", "DONE"),
        ("exit_code", "0"),
        ("exit_reason", "-"),
        ("exec_host", both.as_str()),
        ("first_host", "HOST"),
        ("nexec_host", "1"),
        ("alloc_slot", &format!("{host}:{host}")),
        ("nalloc_slot", "2"),
        ("slots", "2"),
        ("nreq_slot", "2"),
        ("start_time", "DATE"),
        ("finish_time", "DATE"),
        ("cpu_used", "SECONDS"),
        ("mem", "-"),
        ("pids", "-"),
        ("time_left", "-"),
        ("%complete", "-"),
        ("pendstate", "NOTPEND"),
        ("pend_reason", "-"),
    ];
    check("DONE", &done, &rows);
    until(&failed, "EXIT");
    check("EXIT", &failed, &[("stat", "EXIT"), ("exit_code", "3"), ("exit_reason", "-")]);

    let array = bsub(&["-H", "-J", "arr[2-4:2]", "true"]);
    let elem = format!("{array}[4]");
    check("element", &elem, BEFORE);
    let rows = [("jobid", array.as_str()), ("jobindex", "4"), ("job_name", "arr[4]")];
    check("element", &elem, &rows);
    ok("bkill", &[&array]);
}

#[test]
fn fields_of_a_real_job_obey_widths_and_delimiters() {
    let id = bsub(&["-H", "-J", "a_name_of_more", "-M", "1536MB", "true"]);
    let show = |words: &[&str], format: &str| ok("bjobs", &[words, &["-o", format, &id]].concat());
    assert_eq!(show(&["-noheader"], "name: stat:-7 memlimit:8:G"), "*e_of_more   PSUSP 1.5G    \n");
    assert_eq!(show(&["-noheader"], "stat memlimit::M delimiter='^'"), "PSUSP^1536M     \n");
    assert_eq!(
        show(&[], "STAT Name:-20"),
        "STAT             JOB_NAME\nPSUSP       a_name_of_more\n"
    );
    assert_eq!(show(&["-noheader"], "sla exit_code:4 %complete"), "- -    -\n");
    let year = Said::from(
        cmd("bjobs")
            .env("LSB_DISPLAY_YEAR", "Y")
            .args(["-noheader", "-o", "submit_time", &id])
            .output()
            .unwrap(),
    );
    let words: Vec<&str> = year.out.split_whitespace().collect();
    assert!(words.len() == 4 && words[2].len() == 8 && words[3].len() == 4, "{}", year.out);
    let unit = Said::from(
        cmd("bjobs")
            .env("LSB_UNIT_FOR_JOBS_DISPLAY", "G")
            .args(["-noheader", "-o", "memlimit", &id])
            .output()
            .unwrap(),
    );
    assert_eq!(unit.out, "1.5G\n");
    for (bad, why) in [
        ("jobid:4097", "<jobid:4097> in the format string is not a valid output width."),
        ("mem:5:Q", "<mem:5:Q> in the format string is not a valid output width."),
        ("foo", "<foo> in the format string is not a valid field name."),
    ] {
        let want = Said { code: 255, out: String::new(), err: format!("{why}\n") };
        assert_eq!(run("bjobs", &["-o", bad, &id]), want);
    }
    ok("bkill", &[&id]);
}
