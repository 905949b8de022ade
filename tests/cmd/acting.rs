//! The further options of bkill, bstop and bresume (bkill(1), bstop(1)), and help of the categories
//! of options.

use crate::common::*;

fn said(job: &str, names: &str) -> String {
    field(job, &format!("{names} delimiter='^'"))
}

#[test]
fn bjobs_shows_reason_and_host_of_the_last_control_actions() {
    let host = ok("lsid", &[]);
    let host = host.lines().find_map(|l| l.strip_prefix("My master name is ")).unwrap().to_owned();
    let hosts = "kill_issue_host suspend_issue_host resume_issue_host";
    let reasons = "kill_reason suspend_reason resume_reason";
    let id = bsub(&["-J", "why", "-o", "/dev/null", "sleep", "300"]);
    until(&id, "RUN");
    assert_eq!(said(&id, hosts), "-^-^-");
    ok("bstop", &["-C", "a disk is changed", &id]);
    until(&id, "USUSP");
    assert_eq!(said(&id, reasons), "-^a disk is changed^-");
    ok("bresume", &["-C", "it is in", &id]);
    until(&id, "RUN");
    assert_eq!(said(&id, reasons), "-^a disk is changed^it is in");
    ok("bstop", &[&id]);
    until(&id, "USUSP");
    assert_eq!(said(&id, reasons), "-^The job was suspended by user^it is in");
    ok("bkill", &["-C", "nobody wants it", &id]);
    assert_eq!(end_of(&id), "EXIT");
    assert_eq!(said(&id, reasons), "nobody wants it^-^it is in");
    assert_eq!(said(&id, hosts), format!("{host}^{host}^{host}"));
    let long = ok("bhist", &["-UF", &id]);
    for words in [
        "Signal <STOP> requested by user or administrator <USER>; Reason <a disk is changed>;\n",
        "Signal <CONT> requested by user or administrator <USER>; Reason <it is in>;\n",
        "Signal <STOP> requested by user or administrator <USER>;\n",
        "Signal <KILL> requested by user or administrator <USER>; Reason <nobody wants it>;\n",
    ] {
        let words = words.replace("USER", &field(&id, "user"));
        assert!(long.contains(&words), "{words}{long}");
    }
    let held = bsub(&["-H", "-J", "why", "true"]);
    ok("bresume", &["-C", "go", &held.to_string()]);
    assert_eq!(said(&held, "resume_reason"), "go");
    let long = "x".repeat(4096);
    for name in ["bkill", "bstop", "bresume"] {
        let words = "Bad argument: more than 4095 characters for option -C\n";
        let want = Said { code: 255, out: String::new(), err: words.into() };
        assert_eq!(run(name, &["-C", &long, "1"]), want, "{name}");
    }
}

#[test]
fn job_killed_with_bkill_d_is_done() {
    let id = bsub(&["-o", "/dev/null", "sleep", "300"]);
    let next = bsub(&["-w", &format!("done({id})"), "-o", "/dev/null", "true"]);
    until(&id, "RUN");
    assert_eq!(ok("bkill", &["-d", &id]), format!("Job <{id}> is being terminated\n"));
    assert_eq!((end_of(&id), end_of(&next)), ("DONE".into(), "DONE".into()));
}

#[test]
fn bkill_b_ends_running_jobs_and_removes_pending_ones() {
    let run_id = bsub(&["-J", "bulk", "-o", "/dev/null", "sleep", "300"]);
    until(&run_id, "RUN");
    bsub(&["-H", "-J", "bulk", "true"]);
    assert_eq!(ok("bkill", &["-b", "-J", "bulk", "0"]), "Operation is in progress\n");
    assert_eq!(end_of(&run_id), "EXIT");
    assert_eq!(field(&run_id, "exit_reason"), "TERM_BUCKET_KILL: job killed with bkill -b");
    let known = ok("bjobs", &["-a", "-noheader", "-o", "jobid", "-J", "bulk"]);
    assert_eq!(known.trim(), run_id, "not the one that had waited");
    let said = run("bkill", &["-b", "-J", "bulk", "0"]);
    assert_eq!((said.code, said.err.as_str()), (255, "Job <bulk> is not found\n"));
    // -r says already how
    let held = bsub(&["-H", "-J", "bulk", "true"]);
    assert_eq!(ok("bkill", &["-b", "-r", &held]), format!("Job <{held}> is being terminated\n"));
    let said = run("bkill", &["-b", "-stat", "run"]);
    assert!(said.err.starts_with("Options -b and -stat exclude each other.\nUsage: bkill"));
}

#[test]
fn bkill_stat_ends_only_jobs_of_the_given_state() {
    let run_id = bsub(&["-J", "of_state", "-o", "/dev/null", "sleep", "300"]);
    let held = bsub(&["-H", "-J", "of_state", "true"]);
    until(&run_id, "RUN");
    let killed = |id: &str| format!("Job <{id}> is being terminated\n");
    assert_eq!(ok("bkill", &["-J", "of_state", "-stat", "susp", "0"]), killed(&held));
    assert_eq!(ok("bkill", &["-J", "of_state", "-stat", "run", "0"]), killed(&run_id));
    let said = run("bkill", &["-stat", "done", "1"]);
    assert!(said.err.starts_with("-stat: one of run, pend and susp must be specified.\n"));
    let said = run("bkill", &["-stat", "run", &held]);
    assert_eq!(said.err, format!("Job <{held}>: No matching job found\n"));
}

#[test]
fn bstop_a_stops_all_jobs_and_names_finished_ones() {
    let id = bsub(&["-J", "every", "-o", "/dev/null", "sleep", "300"]);
    let other = bsub(&["-J", "every", "-o", "/dev/null", "true"]);
    until(&id, "RUN");
    assert_eq!(end_of(&other), "DONE");
    let all = run("bstop", &["-a", "-J", "every"]);
    let over = format!("Job <{other}>: Job has already finished\n");
    assert_eq!(all.out, format!("Job <{id}> is being stopped\n"));
    assert_eq!((all.code, &all.err), (0, &over));
    let done = run("bstop", &["-d", "-J", "every", "0"]);
    assert_eq!(done, Said { code: 255, out: String::new(), err: over });
    ok("bkill", &[&id]);
}

#[test]
fn help_of_a_category_lists_the_options_of_that_category() {
    let words = |args: &[&str]| {
        let said = run(args[0], &args[1..]);
        assert_eq!((said.code, said.out.as_str()), (0, ""), "{args:?}");
        let own = said.err.lines().filter_map(|l| l.strip_prefix("  -"));
        own.map(|l| l.split_whitespace().next().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(words(&["bsub", "-h", "notify"]), ["u", "N", "Ne", "B"]);
    assert_eq!(words(&["bsub", "-h", "pack", "-W"]), ["W", "pack"]);
    let state = words(&["bjobs", "-h", "state"]);
    for option in ["a", "d", "p", "psum", "r", "s"] {
        assert!(state.iter().any(|w| w == option), "{option}: {state:?}");
    }
    assert!(!state.iter().any(|w| w == "u" || w == "o"), "{state:?}");
    let all = words(&["bsub", "-h"]);
    assert_eq!(words(&["bsub", "-h", "all"]), all);
    assert!(all.len() > 50);
    // what is neither an option nor a category of this command
    for (command, word) in
        [("bsub", "nosuch"), ("bsub", "state"), ("bsub", "-nosuch"), ("bjobs", "io")]
    {
        let said = run(command, &["-h", "all", word]);
        assert_eq!(said.code, 0, "all stands above the rest");
        let said = run(command, &["-h", if command == "bsub" { "io" } else { "state" }, word]);
        let why = format!("{command}: {word}: No such option or category of options\n");
        assert_eq!((said.code, said.out, said.err), (255, String::new(), why));
    }
    let said = run("bjobs", &["-h", "description"]);
    assert_eq!(said.code, 0);
    assert!(said.err.starts_with("bjobs: ") && said.err.contains("\n\nUsage: bjobs "), "{said:?}");
    assert!(said.err.lines().all(|l| l.len() < 80), "{}", said.err);
    // commands without categories say all that they have to say
    assert_eq!(words(&["bkill", "-h", "nosuch"]), words(&["bkill", "-h"]));
}
