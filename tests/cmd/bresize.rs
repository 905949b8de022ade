//! bresize on a real cluster: a job gives a slot back; the words of each refusal, exit code 255,
//! nothing logged (bresize(1)).

use crate::common::*;

/// The records of changes of a job's slots.
fn resized(id: &str) -> Vec<String> {
    let log = event_log();
    let of = |line: &&str| line.contains("_RESIZE_") && line.split(' ').nth(3) == Some(id);
    log.lines().filter(of).map(str::to_string).collect()
}

#[test]
fn bresize_releases_a_slot_and_bhist_tells_of_it() {
    let id = bsub(&["-n", "2", "-ar", "-o", "/dev/null", "sleep", "300"]);
    // RUN is shown at dispatch, before the host has confirmed the start
    crate::rig::wait_for("the start", || field(&id, "pids") != "-");
    let long = |id: &str| ok("bhist", &["-l", id]).replace("\n                     ", "");
    assert!(long(&id).contains(", Autoresizable"), "{}", long(&id));
    assert_eq!(ok("bresize", &["release", "all", &id]), format!("Job <{id}> is being resized\n"));
    crate::rig::wait_for("one slot", || field(&id, "nalloc_slot") == "1");
    let host = field(&id, "exec_host");
    let words = long(&id);
    for want in [
        "Release of 1 Hosts/Processors <",
        "> requested by user or administrator <",
        "Release allocation on 1 Hosts/Processors <",
        "Resize notification accepted;",
        "Resize notification completed (Exit Status 0);",
    ] {
        assert!(words.contains(want), "{want}: {words}");
    }
    assert_eq!(resized(&id).len(), 4);
    let job = format!("Job <{id}>");
    for (args, words) in [
        (&["release", "all", &id][..], format!("{job}: No slot to release")),
        (&["cancel", &id], format!("{job}: Job has no active pending resize request")),
        (
            &["release", "nosuch", &id],
            format!("{job}: Bad host name, host group name or cluster name"),
        ),
        (
            &["release", &host, &id],
            format!("{job}: Cannot release the last slot of the first execution host"),
        ),
        (&["release", "0*x", &id], "0*x: Bad host specification for bresize release".into()),
        (&["request", "3,2", &id], "3,2: Too few or too many slots requested".into()),
        (&["release", "all", "x"], "x: Illegal job ID.".into()),
    ] {
        let said = run("bresize", args);
        let want = Said { code: 255, out: String::new(), err: format!("{words}\n") };
        assert_eq!(said, want, "{args:?}");
    }
    assert_eq!(
        ok("bresize", &["request", "9999", &id]),
        format!("{job}: Resize request is submitted\n")
    );
    let shown = ok("bjobs", &["-l", &id]);
    assert!(shown.contains(" RESIZE REQUEST:\n 9999-9999 further slots\n"), "{shown}");
    let said = run("bresize", &["request", "1", &id]);
    assert_eq!(said.err, format!("{job}: Job has a pending resize request\n"));
    let said = ok("bresize", &["cancel", &id]);
    assert_eq!(said, format!("{job}: Pending resize request is canceled\n"));
    assert_eq!(resized(&id).len(), 6);
    ok("bkill", &[&id]);
}

#[test]
fn bresize_refuses_jobs_that_cannot_be_resized() {
    let plain = bsub(&["-o", "/dev/null", "sleep", "300"]);
    until(&plain, "RUN");
    let held = bsub(&["-H", "-ar", "-o", "/dev/null", "true"]);
    for (id, words) in [
        (&plain, "Job is not resizable"),
        (&held, "Job has not started yet"),
        (&"999999".to_string(), "No matching job found"),
    ] {
        let said = run("bresize", &["release", "all", id]);
        assert_eq!((said.code, said.err), (255, format!("Job <{id}>: {words}\n")));
    }
    assert!(resized(&plain).is_empty() && resized(&held).is_empty());
    for args in [&["release"][..], &["release", "1"], &["cancel"], &["grow", "1"], &[]] {
        let said = run("bresize", args);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{args:?}: {said:?}");
    }
    for id in [&plain, &held] {
        ok("bkill", &[id]);
    }
}
