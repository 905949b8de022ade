//! bkill: which jobs, what it says, its exit codes.

use crate::common::*;

#[test]
fn bkill_of_known_and_unknown_jobs_ends_the_known_and_names_the_others() {
    let (a, b) = (bsub(&["-H", "sleep", "300"]), bsub(&["-H", "sleep", "300"]));
    let said = run("bkill", &[&a, &b, "99999"]);
    let out = format!("Job <{a}> is being terminated\nJob <{b}> is being terminated\n");
    assert_eq!((said.code, said.out), (0, out));
    assert_eq!(said.err, "Job <99999>: No matching job found\n");
    until(&a, "EXIT");
    let said = run("bkill", &[&a]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert_eq!(said.err, format!("Job <{a}>: Job has already finished\n"));
}

#[test]
fn bkill_without_a_matching_job_says_so() {
    for (args, words) in [
        (&["99999"][..], "Job <99999>: No matching job found\n"),
        (&["-J", "no_such_name", "0"], "Job <no_such_name> is not found\n"),
        (&["-J", "no_such_name"], "Job <no_such_name> is not found\n"),
        (&["-q", "idle", "0"], "No unfinished job found\n"),
        (&["abc"], "abc: Illegal job ID.\n"),
        (&["-q", "nosuch", "0"], "nosuch: No such queue\n"),
        (&["-m", "nosuch", "0"], "nosuch: Bad host name, host group name or cluster name\n"),
        (&["-u", "no-such-user", "0"], "no-such-user: Unknown user\n"),
        (&["-s", "NOSUCH", "1"], "NOSUCH: Illegal signal value\n"),
    ] {
        let said = run("bkill", args);
        let want = Said { code: 255, out: String::new(), err: words.into() };
        assert_eq!(said, want, "bkill {args:?}");
    }
    let said = run("bkill", &[]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    let words = "Job ID or one of '-m', '-u' '-q' and '-J' must be specified.\nUsage: bkill";
    assert!(said.err.starts_with(words), "{}", said.err);
}

#[test]
fn bkill_of_elements_ends_only_these() {
    let id = bsub(&["-H", "-J", "kill_arr[1-5]", "sleep", "300"]);
    let said = run("bkill", &[&format!("{id}[2-3]")]);
    let out = format!("Job <{id}[2]> is being terminated\nJob <{id}[3]> is being terminated\n");
    assert_eq!((said.code, said.out), (0, out));
    wait_for("two ended", || {
        field(&id, "stat").lines().filter(|l| l.trim() == "EXIT").count() == 2
    });
    let said = run("bkill", &[&format!("{id}[9]")]);
    assert_eq!(said.err, format!("Job <{id}[9]>: No matching job found\n"));
    assert_eq!(ok("bkill", &[&id]), format!("Job <{id}> is being terminated\n"));
    until(&id, "EXIT");
}

#[test]
fn bkill_j_ends_the_last_of_a_name_and_with_0_all() {
    let ids: Vec<String> = (0..3).map(|_| bsub(&["-H", "-J", "several", "sleep", "300"])).collect();
    let last = format!("Job <{}> is being terminated\n", ids[2]);
    assert_eq!(ok("bkill", &["-J", "several"]), last);
    until(&ids[2], "EXIT");
    let out = ok("bkill", &["-J", "sever*", "0"]);
    assert_eq!(out.lines().count(), 2, "{out}");
    until(&ids[0], "EXIT");
    until(&ids[1], "EXIT");
}

#[test]
fn bkill_s_delivers_signals_and_stops_and_resumes() {
    let dir = scratch("bkill_s_delivers_signals_and_stops_and_resumes");
    let file = dir.join("got");
    let script = format!(
        "trap 'echo usr1 >> {0}' USR1; echo ready >> {0}; while :; do sleep 0.1; done",
        file.display()
    );
    let id = bsub(&["-o", "/dev/null", &script]);
    let holds = |word: &str| std::fs::read_to_string(&file).is_ok_and(|t| t.contains(word));
    wait_for("the trap", || holds("ready"));
    assert_eq!(ok("bkill", &["-s", "USR1", &id]), format!("Job <{id}> is being signaled\n"));
    wait_for("the signal", || holds("usr1"));
    assert_eq!(ok("bkill", &["-s", "STOP", &id]), format!("Job <{id}> is being stopped\n"));
    until(&id, "USUSP");
    assert_eq!(ok("bkill", &["-s", "SIGCONT", &id]), format!("Job <{id}> is being resumed\n"));
    until(&id, "RUN");
    assert_eq!(ok("bkill", &["-s", "9", &id]), format!("Job <{id}> is being terminated\n"));
    assert_eq!(end_of(&id), "EXIT");
    assert_eq!(field(&id, "exit_code"), "137");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn bkill_l_lists_the_names_of_signals() {
    let out = ok("bkill", &["-l"]);
    assert!(out.starts_with("HUP INT QUIT ILL TRAP ") && out.contains(" USR1 USR2"), "{out}");
}

#[test]
fn bkill_by_the_owner_ends_a_running_job_with_term_owner() {
    let id = bsub(&["-o", "/dev/null", "sleep", "300"]);
    until(&id, "RUN");
    ok("bkill", &[&id]);
    assert_eq!(end_of(&id), "EXIT");
    assert_eq!(field(&id, "exit_reason").split(':').next(), Some("TERM_OWNER"));
}

#[test]
fn bstop_m_stops_only_elements_on_the_host() {
    let words = ["-m", "host1 host2", "-J", "spread[1-3]", "-o", "/dev/null", "sleep", "300"];
    let id = bsub(&words);
    let on = |host: &str| {
        let rows = run("bjobs", &["-noheader", "-o", "jobindex stat exec_host", &id]).out;
        let here = rows.lines().filter(|l| l.ends_with(&format!("RUN {host}")));
        here.map(|l| l.split(' ').next().unwrap().to_string()).collect::<Vec<_>>()
    };
    // three elements are more than the slots of one host
    until(&id, "RUN");
    let (one, two) = (on("host1"), on("host2"));
    assert!(!one.is_empty() && !two.is_empty(), "{one:?} {two:?}");
    let out = ok("bstop", &["-m", "host1", "-J", "spread", "0"]);
    let said = |idx: &String| format!("Job <{id}[{idx}]> is being stopped\n");
    assert_eq!(out, one.iter().map(said).collect::<String>());
    wait_for("a stop", || field(&format!("{id}[{}]", one[0]), "stat") == "USUSP");
    assert_eq!(on("host2"), two);
    ok("bkill", &[&id]);
}
