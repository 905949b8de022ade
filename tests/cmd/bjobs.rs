//! bjobs: what tools read from it.

use crate::common::*;
use serde_json::{Value, json};

fn said(code: i32, out: &str, err: &str) -> Said {
    Said { code, out: out.into(), err: err.into() }
}

#[test]
fn a_job_is_visible_the_moment_bsub_has_answered() {
    for _ in 0..20 {
        let id = bsub(&["-H", "-J", "at_once", "true"]);
        assert_eq!(ok("bjobs", &["-noheader", "-o", "jobid stat", &id]), format!("{id} PSUSP\n"));
        ok("bkill", &[&id]);
    }
}

#[test]
fn bjobs_has_the_eight_columns_of_lsf() {
    let id = bsub(&["-H", "-q", "short", "-J", "a_name_of_more_than_ten", "sleep", "9"]);
    let out = ok("bjobs", &[&id]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[0],
        "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME"
    );
    assert!(lines[1].starts_with(&format!("{id:<7} ")), "{}", lines[1]);
    assert_eq!(lines[1].get(16..33), Some("PSUSP short      "));
    assert_eq!(lines[1].get(57..68), Some("*_than_ten "));
    assert_eq!(lines[1].len(), 80);
    assert_eq!(lines.len(), 2);
    let wide = ok("bjobs", &["-w", &id]);
    assert!(wide.contains("    -        a_name_of_more_than_ten "), "{wide}");
    ok("bkill", &[&id]);
}

#[test]
fn bjobs_j_selects_names_by_patterns() {
    let id = bsub(&["-H", "-J", "wf_rule:i=0,j=1___(8f7d-1)", "true"]);
    for pattern in ["*8f7d-1*", "*(8f7d-1)", "wf_rule*", "wf*i=0*___*"] {
        let want = format!("{id} PSUSP\n");
        assert_eq!(ok("bjobs", &["-noheader", "-o", "jobid stat", "-aJ", pattern]), want);
        assert!(ok("bhist", &["-J", pattern]).contains(&format!("\n{id:<8}")), "{pattern}");
    }
    assert_eq!(run("bjobs", &["-J", "*8f7d"]), said(255, "", "Job <*8f7d> is not found\n"));
    assert_eq!(ok("bkill", &["-J", "*8f7d-1*", "0"]), format!("Job <{id}> is being terminated\n"));
}

#[test]
fn bjobs_without_a_matching_job_says_so() {
    let missing = [
        (&["99999"][..], "Job <99999> is not found\n"),
        (&["99999[2-4]"], "Job <99999[2-4]> is not found\n"),
        (&["-l", "99999"], "Job <99999> is not found\n"),
        (&["-noheader", "-o", "stat", "99999"], "Job <99999> is not found\n"),
        (&["-J", "no_such_name"], "Job <no_such_name> is not found\n"),
        (&["-q", "nosuch"], "nosuch: No such queue\n"),
        (&["-m", "nosuch"], "nosuch: Bad host name, host group name or cluster name\n"),
        (&["abc"], "abc: Illegal job ID.\n"),
        (&["-o", "jobid foo"], "<foo> in the format string is not a valid field name.\n"),
    ];
    for (args, words) in missing {
        assert_eq!(run("bjobs", args), said(255, "", words), "bjobs {args:?}");
    }
    let none = [
        (&[][..], "No unfinished job found"),
        (&["-a"], "No job found"),
        (&["-d"], "No DONE/EXIT job found"),
        (&["-p"], "No pending job found"),
        (&["-r"], "No running job found"),
        (&["-s"], "No suspended job found"),
    ];
    for (args, words) in none {
        let mut args = args.to_vec();
        args.extend(["-P", "no_such_project"]);
        let words = format!("{words}\n");
        assert_eq!(run("bjobs", &args), said(0, "", &words), "bjobs {args:?}");
        let mut c = cmd("bjobs");
        c.env("LSB_BJOBS_CONSISTENT_EXIT_CODE", "Y").args(&args);
        assert_eq!(Said::from(c.output().unwrap()), said(255, "", &words));
    }
}

#[test]
fn bjobs_of_known_and_unknown_jobs_shows_the_known_and_names_the_others() {
    let id = bsub(&["-H", "true"]);
    let got = run("bjobs", &["-noheader", "-o", "jobid", &id, "99999"]);
    assert_eq!(got, said(255, &format!("{id}\n"), "Job <99999> is not found\n"));
    ok("bkill", &[&id]);
}

#[test]
fn bjobs_shows_exit_code_and_reason_of_ended_jobs() {
    let good = bsub(&["-o", "/dev/null", "exit 0"]);
    let bad = bsub(&["-o", "/dev/null", "exit 3"]);
    let killed = bsub(&["-H", "sleep", "300"]);
    ok("bkill", &[&killed]);
    let (done, exit) = (end_of(&good), end_of(&bad));
    assert_eq!((done.as_str(), exit.as_str()), ("DONE", "EXIT"));
    until(&killed, "EXIT");
    let format = "stat exit_code exit_reason delimiter='^'";
    let show = |id: &str| ok("bjobs", &["-noheader", "-o", format, id]);
    assert_eq!(show(&good), "DONE^0^-\n");
    assert_eq!(show(&bad), "EXIT^3^-\n");
    let reason = show(&killed);
    assert!(reason.starts_with("EXIT^") && reason.contains("^TERM_OWNER"), "{reason}");
    let long = |id: &str| ok("bjobs", &["-UF", id]);
    let text = long(&good);
    assert!(text.contains(": Done successfully. The CPU time used is "), "{text}");
    let text = long(&bad);
    assert!(text.contains(": Exited with exit code 3. The CPU time used is "), "{text}");
    assert!(!text.contains("TERM_"), "{text}");
    let text = long(&killed);
    assert!(text.contains(": Completed <exit>; TERM_OWNER: job killed by owner."), "{text}");
}

#[test]
fn bjobs_json_has_records_and_errors() {
    let id = bsub(&["-H", "-J", "json_job", "true"]);
    let read = |args: &[&str]| -> Value {
        serde_json::from_str(&run("bjobs", args).out).unwrap_or_else(|e| panic!("{args:?}: {e}"))
    };
    let got = read(&["-json", "-o", "JOBID stat name exec_host", &id, "99999"]);
    assert_eq!(got["COMMAND"], "bjobs");
    assert_eq!(
        got["RECORDS"],
        json!([
            {"JOBID": id, "STAT": "PSUSP", "JOB_NAME": "json_job", "EXEC_HOST": ""},
            {"JOBID": "99999", "ERROR": "Job <99999> is not found"},
        ])
    );
    let got = read(&["-json", &id]);
    for key in ["JOBID", "STAT", "JOB_NAME"] {
        assert!(got["RECORDS"][0][key].is_string(), "{key}");
    }
    let none = run("bjobs", &["-json", "-o", "jobid", "-P", "no_such_project"]);
    assert_eq!((none.code, none.err.as_str()), (0, ""));
    let none: Value = serde_json::from_str(&none.out).unwrap();
    assert_eq!((&none["JOBS"], &none["RECORDS"]), (&json!(0), &json!([])));
    ok("bkill", &[&id]);
}

#[test]
fn bjobs_shows_elements_of_arrays_and_their_sums() {
    let id = bsub(&["-H", "-J", "listed[1-5:2]%2", "true"]);
    let format = ["-noheader", "-o", "jobid jobindex job_name"];
    let show = |job: &str| ok("bjobs", &[&format[..], &[job]].concat());
    let line = |i: u32| format!("{id} {i} listed[{i}]\n");
    assert_eq!(show(&id), [line(1), line(3), line(5)].concat());
    assert_eq!(show(&format!("{id}[3-9]")), [line(3), line(5)].concat());
    let summary = ok("bjobs", &["-A", &id]);
    let head = "JOBID      ARRAY_SPEC  OWNER   NJOBS PEND DONE  RUN EXIT SSUSP USUSP PSUSP\n";
    assert!(summary.starts_with(head), "{summary}");
    assert!(summary.ends_with("    3    0    0    0    0     0     0     3\n"), "{summary}");
    let named = ok("bjobs", &["-noheader", "-o", "jobindex", "-J", "listed[5]"]);
    assert_eq!(named, "5\n");
    ok("bkill", &[&id]);
}

#[test]
fn bjobs_p_tells_why_a_job_waits() {
    let first = bsub(&["-H", "true"]);
    let second = bsub(&["-w", &format!("done({first})"), "true"]);
    let out = ok("bjobs", &["-p", &second]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[0],
        "JOBID   USER    STAT  QUEUE       FROM_HOST      JOB_NAME           SUBMIT_TIME"
    );
    assert!(lines[2].starts_with(" ") && lines[2].ends_with(';'), "{out}");
    let long = ok("bjobs", &["-l", &second]);
    let reasons = format!("\n PENDING REASONS:\n{}\n", lines[2]);
    assert!(long.contains(&reasons), "{long}");
    ok("bkill", &[&second]);
    ok("bkill", &[&first]);
}

#[test]
fn long_lines_break_with_a_constant_indent() {
    let command = format!("echo {}", "x".repeat(300));
    let id = bsub(&["-H", "-J", "wrapped", &command]);
    let long = ok("bjobs", &["-l", &id]);
    assert!(long.lines().count() > 4 && long.lines().all(|l| l.len() <= 79), "{long}");
    let joined = long.replace("\n                     ", "");
    assert!(joined.contains(&format!("Command <{command}>")), "{joined}");
    let whole = ok("bjobs", &["-UF", &id]);
    assert!(whole.contains(&format!("Command <{command}>")), "{whole}");
    ok("bkill", &[&id]);
}

#[test]
fn control_characters_of_users_do_not_reach_the_terminal() {
    let id = bsub(&["-H", "echo \u{1b}[31mred\u{7}"]);
    for form in [&["-w"][..], &["-l"], &["-o", "command job_name"], &["-A"], &["-p"]] {
        let said = run("bjobs", &[form, &[&id]].concat());
        // no array is one of them
        assert_eq!(said.out.contains("red"), form != ["-A"], "{form:?}: {said:?}");
        let out = said.out + &said.err;
        assert!(out.chars().all(|c| c == '\n' || !c.is_control()), "{form:?}: {out:?}");
    }
    ok("bkill", &[&id]);
}

#[test]
fn bjobs_l_shows_that_the_working_directory_is_gone() {
    let dir = scratch("gone");
    let mut c = cmd("bsub");
    c.current_dir(&dir).args(["-H", "-o", "/dev/null", "true"]);
    let out = Said::from(c.output().unwrap()).out;
    let id = job_id(&out).unwrap_or_else(|| panic!("{out}")).to_string();
    std::fs::remove_dir_all(&dir).unwrap();
    ok("bresume", &[&id]);
    assert_eq!(end_of(&id), "DONE");
    let long = ok("bjobs", &["-UF", &id]);
    assert!(long.contains(&format!("CWD <{}>", dir.display())), "{long}");
    assert!(long.contains("Execution CWD </tmp>"), "{long}");
    let told = format!(
        ": Current working directory <{}> is not accessible or does not exist on the execution \
         host: No such file or directory; </tmp> is used;\n",
        dir.display()
    );
    assert!(long.contains(&told), "{long}");
    let past = ok("bhist", &["-l", &id]).replace("\n                     ", "");
    assert!(past.contains(told.trim_start_matches(": ").trim_end()), "{past}");
}

#[test]
fn listing_without_a_reader_ends_without_error() {
    let id = bsub(&["-H", "-J", "piped[1-900]", "true"]);
    let mut c = cmd("bjobs");
    c.args(["-l", &id]).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = c.spawn().unwrap();
    drop(child.stdout.take());
    let got = Said::from(child.wait_with_output().unwrap());
    assert_eq!((got.code, got.err.as_str()), (0, ""));
    ok("bkill", &[&id]);
}

/// Jobs that mbatchd forgot: their records are in the logs, which the command reads itself. The
/// logs of another LSF are put where the site's are looked for.
#[test]
fn a_job_that_left_memory_is_answered_from_its_history() {
    let dir = scratch("past");
    let Some(env) = past_site(&dir) else { return };
    let past = |args: &[&str]| -> Said {
        let mut c = cmd("bjobs");
        c.env("LSF_ENVDIR", &env).args(args).env("TZ", "UTC");
        c.output().unwrap().into()
    };
    let told = |id: &str| {
        format!("Job <{id}> is no longer in the memory of mbatchd; shown from its history\n")
    };
    // from lsb.acct
    let said = past(&["900101"]);
    let want = "\
JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME
900101  alice   EXIT  normal     login1      hosta       b_sim      Nov 14 22:13
";
    assert_eq!(said, Said { code: 0, out: want.into(), err: told("900101") });
    let said = past(&["-noheader", "-o", "stat exit_code delimiter=','", "900101"]);
    assert_eq!((said.out.as_str(), said.code), ("EXIT,3\n", 0));
    // from an event log that was switched
    let long = past(&["-UF", "900013"]);
    assert_eq!((long.code, &long.err), (0, &told("900013")));
    for part in [
        "\nJob <900013>, Job Name <x[0-3]>, User <user1>, Project <default>, Status <EXIT>, Queue <normal>, ",
        "\nFri Nov 20 09:30:13: Submitted from host <vm>, CWD <$HOME>",
        "\nFri Nov 20 09:30:13: Started on <vm>, Execution Home </home/user1>, Execution CWD ",
        "\nFri Nov 20 09:30:13: Exited with exit code 130. The CPU time used is 0.0 seconds.\n",
    ] {
        assert!(long.out.contains(part), "{part}: {}", long.out);
    }
    // one that is known, one that is not, one of the past
    let id = bsub(&["-H", "true"]);
    let format = "jobid stat delimiter=','";
    let said = past(&["-noheader", "-o", format, "900101", &id, "900999"]);
    assert_eq!(said.out, format!("{id},PSUSP\n900101,EXIT\n"));
    assert_eq!(said.err, format!("{}Job <900999> is not found\n", told("900101")));
    assert_eq!(said.code, 255);
    let json = past(&["-json", "-o", "jobid stat", "900101", "900999"]);
    assert!(json.out.contains(r#""STAT":"EXIT""#), "{}", json.out);
    assert!(json.out.contains(r#""ERROR":"Job <900999> is not found""#), "{}", json.out);
    // who asks for jobs that run is not told of one that ended
    let said = past(&["-r", "900101"]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    ok("bkill", &[&id]);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// LSF_ENVDIR of the site, its logs elsewhere. `None`, reported as skipped, where it is not ours.
fn past_site(dir: &std::path::Path) -> Option<std::path::PathBuf> {
    let rig = own_cluster()?;
    let logs = rig.logdir();
    let cluster = logs.parent()?.file_name()?;
    let there = dir.join("share").join(cluster).join("logdir");
    std::fs::create_dir_all(&there).unwrap();
    let conf = rig.read("conf/lsf.conf");
    let mut lines: String =
        conf.lines().filter(|l| !l.starts_with("LSB_SHAREDIR")).map(|l| format!("{l}\n")).collect();
    lines.push_str(&format!("LSB_SHAREDIR={}\n", dir.join("share").display()));
    std::fs::write(dir.join("lsf.conf"), lines).unwrap();
    std::fs::write(there.join("lsb.events"), "#80\n").unwrap();
    std::fs::write(there.join("lsb.events.1"), include_str!("expected/past.events")).unwrap();
    std::fs::write(there.join("lsb.acct"), include_str!("expected/past.acct")).unwrap();
    Some(dir.to_path_buf())
}

#[test]
fn bjobs_watch_shows_changes_as_they_happen() {
    let id = bsub(&["-H", "-J", "watched", "sleep", "60"]);
    let mut c = cmd("bjobs");
    c.args(["--watch", "-noheader", "-o", "jobid stat delimiter=','", &id]);
    let (mut child, lines) = lines_of(c);
    let next = || lines.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    assert_eq!(next(), format!("{id},PSUSP"));
    ok("bresume", &[&id]);
    // it may be seen waiting before it runs
    let mut got = next();
    if got == format!("{id},PEND") {
        got = next();
    }
    assert_eq!(got, format!("{id},RUN"));
    ok("bkill", &[&id]);
    assert_eq!(next(), format!("{id},EXIT"));
    // all that were named have ended
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(lines.recv().is_err());
    let said = run("bjobs", &["--watch", "999999"]);
    let want = Said { code: 255, out: String::new(), err: "Job <999999> is not found\n".into() };
    assert_eq!(said, want);
}

#[test]
fn bjobs_watch_shows_a_job_once_more_when_it_ends() {
    let id = bsub(&["-H", "-J", "leaves", "sleep", "60"]);
    let mut c = cmd("bjobs");
    c.args(["--watch", "-noheader", "-o", "jobid stat delimiter=','", "-J", "leaves"]);
    let (mut child, lines) = lines_of(c);
    let next = || lines.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    assert_eq!(next(), format!("{id},PSUSP"));
    ok("bkill", &[&id]);
    assert_eq!(next(), format!("{id},EXIT"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn bjobs_env_and_script_print_those_of_the_submission() {
    let mut c = cmd("bsub");
    c.env("LSF_TEST_WORD", "two words").args(["-H", "-J", "kept[1-2]"]);
    let said = feed(c, b"#!/bin/sh\n#BSUB -P p\necho one\n\techo two\n");
    let id = job_id(&said.out).unwrap_or_else(|| panic!("{said:?}")).to_string();
    let env = ok("bjobs", &["-env", &id]);
    assert!(env.lines().any(|l| l == "LSF_TEST_WORD=two words"), "{env}");
    assert!(env.lines().all(|l| l.contains('=')), "{env}");
    assert_eq!(ok("bjobs", &["-env", &format!("{id}[2]")]), env);
    let script = ok("bjobs", &["-script", &id]);
    assert!(script.contains("echo one\n\techo two\n"), "{script}");
    assert_eq!(ok("bjobs", &["-script", &id]), script);
    let plain = bsub(&["-H", "echo", "three"]);
    assert_eq!(ok("bjobs", &["-script", &plain]), "echo three\n");
    let missing = format!("{id}[3]");
    let want = format!("Job <{missing}> is not found\n");
    assert_eq!(run("bjobs", &["-env", &missing]).err, want);
    for words in [&["-env"][..], &["-env", &id, &plain], &["-env", "-l", &id], &["-script", "0"]] {
        let said = run("bjobs", words);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{words:?}");
        assert!(said.err.contains(" takes one job or element and no other option."), "{words:?}");
    }
    ok("bkill", &[&id, &plain]);
}

#[test]
fn bjobs_l_shows_the_options_of_the_submission() {
    let words = ["-H", "-cwd", "/tmp", "-We", "1:30", "-r", "-n", "2", "-E", "/bin/true", "true"];
    let id = bsub(&words);
    let long = ok("bjobs", &["-UF", &id]);
    let want = ", Specified CWD </tmp>, Re-runnable, 2 Processors Requested, Pre-execute Command \
                </bin/true>;\n ESTIMATED_RUNTIME:\n 90.0 min based on user provided runtime \
                estimation.\n\n PENDING REASONS:\n";
    assert!(long.contains(want), "{long}");
    let submitted = long.split_once(", CWD <").unwrap().1.split_once('>').unwrap().0;
    assert_ne!(submitted, "/tmp");
    let history = ok("bhist", &["-l", "-UF", &id]);
    assert!(history.contains(&format!(", CWD <{submitted}>, Specified CWD </tmp>, ")), "{history}");
    ok("bkill", &[&id]);
}
