//! brun on a real cluster: a job starts at once; the words of each refusal, exit code 255, nothing
//! logged.

use crate::common::*;

/// The records that a job was forced.
fn forced(id: &str) -> Vec<String> {
    let log = event_log();
    let of = |line: &&str| line.starts_with("\"JOB_FORCE\"") && line.split(' ').nth(3) == Some(id);
    log.lines().filter(of).map(str::to_string).collect()
}

#[test]
fn brun_starts_a_held_job_and_bhist_tells_of_it() {
    let host = ok("bhosts", &["-noheader", "-o", "host_name"]);
    let host = host.lines().next().unwrap().trim();
    let id = bsub(&["-H", "-o", "/dev/null", "sleep", "300"]);
    assert_eq!(ok("brun", &["-m", host, &id]), format!("Job <{id}> is being forced to run.\n"));
    until(&id, "RUN");
    assert_eq!(field(&id, "exec_host"), host);
    let told = ok("bhist", &["-l", &id]);
    let words: String = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let want = "Job is forced to run or forwarded by user or administrator <";
    assert!(words.contains(want), "{told}");
    let records = forced(&id);
    assert!(records.len() == 1 && records[0].contains(&format!(" 1 \"{host}\" \"")), "{records:?}");
    let said = run("brun", &["-m", host, &id]);
    let started = "Failed to run the job: Job has already started\n";
    assert_eq!((said.code, said.err.as_str(), said.out.as_str()), (255, started, ""));
    ok("bstop", &[&id]);
    until(&id, "USUSP");
    let said = run("brun", &["-f", "-m", host, &id]);
    let stopped = "Failed to run the job: Operation not supported for a suspended job\n";
    assert_eq!((said.code, said.err.as_str()), (255, stopped));
    ok("bkill", &[&id]);
    end_of(&id);
    // a finished job runs once more
    assert_eq!(
        ok("brun", &["-f", "-m", host, &id]),
        format!("Job <{id}> is being forced to run.\n")
    );
    until(&id, "RUN");
    ok("bkill", &[&id]);
    end_of(&id);
}

#[test]
fn brun_refuses_in_the_documented_words_and_logs_nothing() {
    let host = ok("bhosts", &["-noheader", "-o", "host_name"]);
    let host = host.lines().next().unwrap().trim();
    let id = bsub(&["-H", "-n", "2000", "-o", "/dev/null", "true"]);
    let array = bsub(&["-H", "-J", "forced[1-3]", "-o", "/dev/null", "true"]);
    let (element, few) = (format!("{array}[9]"), format!("{host}#1"));
    let bad_host = "Bad host name, host group name or cluster name";
    for (args, why) in [
        ([host, "99999"], "No matching job found"),
        ([host, &element], "No matching job found"),
        ([host, &array], "Cannot operate on job array"),
        (["nosuch", &id], bad_host),
        ([&few, &id], "Not enough host(s) currently eligible"),
    ] {
        let said = run("brun", &["-m", args[0], args[1]]);
        let want = format!("Failed to run the job: {why}\n");
        assert_eq!((said.code, said.err, said.out.as_str()), (255, want, ""), "{args:?}");
    }
    for args in [&["27"][..], &["-m", host], &["-m", "", "27"], &["-m", host, "27", "28"]] {
        let said = run("brun", args);
        assert!(said.code == 255 && said.err.contains("Usage: brun"), "{args:?} {said:?}");
    }
    for bad in ["h1#0", "h1#x", "#2"] {
        let said = run("brun", &["-m", bad, &id]);
        let want = format!("{bad}: Bad host specification\n");
        assert_eq!((said.code, said.err), (255, want));
    }
    assert_eq!(run("brun", &["-m", host, "x"]).code, 255);
    assert_eq!((forced(&id), forced(&array)), (vec![], vec![]));
    ok("bkill", &[&id, &array]);
}
