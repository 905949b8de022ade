//! bmig on a real cluster: the words of each outcome, and nothing logged where it is refused.

use crate::common::*;

/// The records that a job was to be migrated.
fn migrations(id: &str) -> usize {
    let log = event_log();
    let of = |line: &&str| line.starts_with("\"MIG\"") && line.split(' ').nth(3) == Some(id);
    log.lines().filter(of).count()
}

#[test]
fn bmig_runs_a_rerunnable_job_again_and_bhist_tells_of_it() {
    let dir = scratch("bmig");
    let file = dir.join("runs").display().to_string();
    let command = format!("echo run $LSB_RESTART >> {file}; exec sleep 300");
    let id = bsub(&["-r", "-o", "/dev/null", &command]);
    let runs = |want: &str| {
        for _ in 0..200 {
            if std::fs::read_to_string(&file).unwrap_or_default() == want {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("not {want}");
    };
    runs("run\n");
    until(&id, "RUN");
    assert_eq!(ok("bmig", &[&id]), format!("Job <{id}> is being migrated\n"));
    runs("run\nrun Y\n");
    until(&id, "RUN");
    let told = ok("bhist", &["-l", &id]);
    let words: String = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Migration requested by user or administrator <"), "{told}");
    assert_eq!(migrations(&id), 1);
    ok("bkill", &[&id]);
    end_of(&id);
    let said = run("bmig", &[&id]);
    assert_eq!((said.code, said.err), (255, format!("Job <{id}>: Job has already finished\n")));
}

#[test]
fn bmig_refuses_in_the_documented_words_and_logs_nothing() {
    let held = bsub(&["-H", "-r", "-o", "/dev/null", "true"]);
    let once = bsub(&["-o", "/dev/null", "sleep", "300"]);
    until(&once, "RUN");
    let element = format!("{once}[1]");
    for (operand, why) in [
        (&held, "Job has not started yet"),
        (&once, "Job is not checkpointable"),
        (&"99999".to_string(), "No matching job found"),
        (&element, "No matching job found"),
    ] {
        let said = run("bmig", &[operand]);
        let want = format!("Job <{operand}>: {why}\n");
        assert_eq!((said.code, said.err, said.out.as_str()), (255, want, ""));
    }
    for (args, want) in [
        (&["-m", "nosuch", "0"][..], "nosuch: Bad host name, host group name or cluster name\n"),
        (&["-u", "no-such-user", "0"], "no-such-user: Unknown user\n"),
        (&["-J", "nojob"], "No matching job found\n"),
        (&["abc"], "abc: Illegal job ID.\n"),
    ] {
        let said = run("bmig", args);
        assert_eq!((said.code, said.err.as_str(), said.out.as_str()), (255, want, ""), "{args:?}");
    }
    assert_eq!((migrations(&held), migrations(&once)), (0, 0));
    ok("bkill", &[&held, &once]);
}
