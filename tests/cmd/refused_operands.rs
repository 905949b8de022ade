//! Commands about one job or some, called with operands or options that they cannot take: the first
//! words of standard error, exit code 255, nothing on standard output, nothing logged.

use crate::common::*;
use crate::quiet::quiet_cluster;

/// Words that no accepted request contains.
const MARK: &str = "refused-operand-mark";

/// Calls that end at the command line itself, with the usage behind these words.
const WRONG_USAGE: &[(&[&str], &str)] = &[
    (&["battach"], "One job at a time."),
    (&["battach", "1", "2"], "One job at a time."),
    (&["bkill"], "Job ID or one of '-m', '-u' '-q' and '-J' must be specified."),
    (&["bkill", "-s"], "bkill: option requires an argument -- s"),
    (&["bstop"], "Job ID or one of '-m', '-u' '-q' and '-J' must be specified."),
    (&["bresume"], "Job ID or one of '-m', '-u' '-q' and '-J' must be specified."),
    (&["bmod"], "Job ID must be specified."),
    (&["bswitch"], "The destination queue must be specified."),
    (&["btop"], "Job ID must be specified."),
    (&["bbot"], "Job ID must be specified."),
    (&["brequeue"], "Job ID or one of '-u' and '-J' must be specified."),
    (&["brun"], "One job must be specified."),
    (&["brun", "1"], "The hosts must be specified with -m."),
    (&["bresize"], "release, request or cancel must be given."),
    (&["bresize", "frob", "1"], "frob: release, request or cancel is wanted."),
    (&["bresize", "cancel"], "One job must be specified."),
    (&["bpost"], "One job must be specified, by its ID or with -J."),
    (&["bread"], "One job must be specified, by its ID or with -J."),
    (&["bstatus"], "One job must be specified, by its ID or with -J."),
    (&["bwait"], "A condition must be given with -w."),
    (&["bjdepinfo"], "One job must be specified."),
    (&["bjdepinfo", "-l", "-c", "1"], "Option -c cannot be combined with -l and -p."),
    (&["brsvadd"], "Either -b and -e, or -t, must be specified."),
    (&["brsvadd", "-b", "6:0", "-e", "25:0"], "25:0: Bad time specification."),
    (&["brsvdel"], "Reservation ID must be specified."),
    (&["brsvjob"], "One reservation must be specified."),
    (&["brsvjob", "a", "b"], "One reservation must be specified."),
    (&["brsvmod", "-o"], "One reservation must be specified."),
    (&["brsvmod", "x"], "What is to be changed must be specified."),
    (&["brsvsub", "-n", "1"], "-n and -D must be specified."),
    (&["bgadd"], "One job group must be specified, by its full path."),
    (&["bgmod", "-Ln"], "One job group must be specified, by its full path."),
];

/// Calls that are refused in one line; MISSING is the ID of no job.
const REFUSED: &[(&[&str], &str)] = &[
    (&["battach", "MISSING"], "Job <MISSING>: No matching job found"),
    (&["battach", "abc"], "abc: Illegal job ID."),
    (&["bkill", "-q", "nosuch", "0"], "nosuch: No such queue"),
    (&["bkill", "-app", "nosuch", "0"], "No unfinished job found"),
    (&["bkill", "-J", MARK], "Job <refused-operand-mark> is not found"),
    (&["bstop", "-g", "/nosuch", "0"], "No unfinished job found"),
    (&["bstop", "-J", MARK], "Job <refused-operand-mark> is not found"),
    (&["bresume", "-J", MARK], "Job <refused-operand-mark> is not found"),
    (&["bmod", "-J", MARK, "MISSING"], "MISSING: No matching job found. Job not modified."),
    (&["bmod", "-g", "/a", "MISSING"], "MISSING: No matching job found. Job not modified."),
    (&["bmod", "MISSING"], "MISSING: No matching job found. Job not modified."),
    (&["bmig", "MISSING"], "Job <MISSING>: No matching job found"),
    (&["bmig", "-J", MARK], "No matching job found"),
    (&["bmig", "-u", "nosuch", "0"], "nosuch: Unknown user"),
    (&["bmig", "abc"], "abc: Illegal job ID."),
    (&["brun", "-m", "host1", "MISSING"], "Failed to run the job: No matching job found"),
    (&["brun", "-m", "host1#x", "MISSING"], "host1#x: Bad host specification"),
    (&["brequeue", "-H", "MISSING"], "Job <MISSING>: No matching job found"),
    (&["brequeue", "abc"], "abc: Illegal job ID."),
    (&["bresize", "release", "all", "MISSING"], "Job <MISSING>: No matching job found"),
    (&["bresize", "request", "4", "MISSING"], "Job <MISSING>: No matching job found"),
    (&["bresize", "cancel", "MISSING"], "Job <MISSING>: No matching job found"),
    (&["bresize", "cancel", "abc"], "abc: Illegal job ID."),
    (&["bpeek", "-m", "nosuch"], "nosuch: Bad host name, host group name or cluster name"),
    (&["bpeek", "-q", "nosuch"], "nosuch: No such queue"),
    (&["bpeek", "abc"], "abc: Illegal job ID."),
    (&["bpost", "-d", MARK, "MISSING"], "Job <MISSING>: No matching job found"),
    (&["bpost", "-J", MARK], "Job <refused-operand-mark>: No matching job found"),
    (&["bpost", "abc"], "abc: Illegal job ID."),
    (&["bread", "MISSING"], "Job <MISSING>: No matching job found"),
    (&["bread", "-i", "x", "MISSING"], "x: Bad message index"),
    (&["bstatus", "-d", MARK, "MISSING"], "Job <MISSING>: No matching job found"),
    (&["bstatus", "MISSING"], "Job <MISSING>: No matching job found"),
    (&["bjdepinfo", "MISSING"], "Job <MISSING> is not found"),
    (&["bjdepinfo", "-r", "0", "MISSING"], "0: Bad argument for option -r."),
    (&["bjdepinfo", "abc"], "abc: Illegal job ID."),
    (&["bwait", "-w", "done(MISSING)"], "MISSING: No matching job found"),
    (&["bwait", "-w", "done(MISSING)", "-t", "x"], "bwait: Bad argument for option -t."),
    (&["bwait", "-w", "done(MISSING)", "-r", "x"], "bwait: Bad argument for option -r."),
];

#[test]
fn calls_without_what_they_need_are_answered_by_the_usage() {
    let quiet = quiet_cluster();
    quiet.settle();
    for (words, first) in WRONG_USAGE {
        let said = quiet.run_unlogged(words[0], &words[1..]);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{words:?}");
        let want = format!("{first}\nUsage: {} [-h] [-V]", words[0]);
        assert!(said.err.starts_with(&want), "{words:?}: {}", said.err);
    }
}

#[test]
fn operands_that_name_nothing_are_refused_and_not_logged() {
    let quiet = quiet_cluster();
    quiet.settle();
    let missing = "8765431";
    for (words, want) in REFUSED {
        let words: Vec<String> = words.iter().map(|w| w.replace("MISSING", missing)).collect();
        let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let err = format!("{}\n", want.replace("MISSING", missing));
        let want = Said { code: 255, out: String::new(), err };
        assert_eq!(quiet.run_unlogged(&words[0], &args), want, "{words:?}");
    }
}

#[test]
fn states_that_do_not_allow_a_request_are_named_and_nothing_is_logged() {
    let quiet = quiet_cluster();
    let held = bsub(&["-H", "-J", "refused-operand-held", "-o", "/dev/null", "true"]);
    let array = bsub(&["-H", "-J", "refused-operand-array[1-3]", "true"]);
    let runs = bsub(&["-o", "/dev/null", "sleep", "300"]);
    until(&runs, "RUN");
    let talks = bsub(&["-o", "/dev/null", "true"]);
    end_of(&talks);
    quiet.settle();
    let about = |id: &str, words: &str| format!("Job <{id}>: {words}");
    let not_started = "Job has not started yet";
    let finished = "Job has already finished";
    let size = format!("done({array}[*])");
    let long = "x".repeat(600);
    let rows: Vec<(Vec<&str>, String)> = vec![
        (vec!["battach", &held], about(&held, not_started)),
        (vec!["battach", &talks], about(&talks, finished)),
        (vec!["bmig", &held], about(&held, not_started)),
        (vec!["bmig", &talks], about(&talks, finished)),
        (vec!["bmig", &runs], about(&runs, "Job is not checkpointable")),
        (vec!["bresize", "cancel", &runs], about(&runs, "Job is not resizable")),
        (vec!["bresize", "request", "4", &held], about(&held, not_started)),
        (vec!["brequeue", "-p", &runs], about(&runs, "Job has already started")),
        (vec!["bread", &held], about(&held, "No message at index 0")),
        (vec!["bread", "-i", "5", &held], about(&held, "No message at index 5")),
        (vec!["bread", "-a", "/tmp/x", &held], about(&held, "No message at index 0")),
        (vec!["bstatus", &held], about(&held, "No message at index 0")),
        (
            vec!["bpost", "-d", &long, &held],
            about(&held, "the message has 600 characters; the limit is 512"),
        ),
        (
            vec!["bsub", "-J", "x[1-2]", "-w", &size, "true"],
            "Dependent arrays do not have the same size. Job not submitted.".to_string(),
        ),
        (vec!["bmod", "-Z", "", &held], "Empty job. Job not modified.".to_string()),
        (
            vec!["bmod", &held],
            "Modified parameters have not been used. Job not modified.".to_string(),
        ),
        (vec!["bmod", "-W", "5", &talks], format!("{finished}. Job not modified.")),
        (
            vec!["bmod", "-J", "x", &runs],
            "Only the following parameters can be used to modify a running job: -c, -M, -W, -o, \
             -e, -r. Job not modified."
                .to_string(),
        ),
    ];
    for (words, want) in rows {
        let want = Said { code: 255, out: String::new(), err: format!("{want}\n") };
        assert_eq!(quiet.run_unlogged(words[0], &words[1..]), want, "{words:?}");
    }
    ok("bkill", &[&held, &array, &runs]);
}

#[test]
fn job_that_is_being_requeued_is_not_requeued_once_more() {
    let ready = std::env::temp_dir().join(format!("lsf-requeued-{}", std::process::id()));
    let _ = std::fs::remove_file(&ready);
    let line = format!("trap '' INT TERM; touch {}; while :; do sleep 1; done", ready.display());
    let job = bsub(&["-o", "/dev/null", &line]);
    until(&job, "RUN");
    while !ready.exists() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let logged = || {
        let of = format!("\"10.1\" {job} ");
        event_log().lines().filter(|l| l.starts_with("\"JOB_SIG") && l.contains(&of)).count()
    };
    ok("brequeue", &[&job]);
    let before = logged();
    let err = format!("Job <{job}>: Job has already been requeued\n");
    let want = Said { code: 255, out: String::new(), err };
    assert_eq!(run("brequeue", &[&job]), want);
    assert_eq!(logged(), before, "something was logged");
    ok("bkill", &["-r", &job]);
    let _ = std::fs::remove_file(&ready);
}
