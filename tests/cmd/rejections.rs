//! Refusals of bsub, bmod, bswitch, btop, bbot, brequeue, bkill, bstop and bresume: the words of
//! the command line, standard error, exit code 255, nothing on standard output, nothing logged
//! (bsub(1), bmod(1), bkill(1)).

use crate::common::*;
use crate::quiet::{QuietCluster, quiet_cluster};

/// A command that no other test runs.
const MARK: &str = "refused-by-the-table";

/// The name of a job that the table cannot change.
const HELD: &str = "unchanged-by-the-table";

type RejectedOptions<'a> = (&'a [&'a str], &'a str);

fn refused(
    quiet: &QuietCluster,
    applet: &str,
    rows: &[RejectedOptions<'_>],
    end: &str,
    more: &[&str],
) {
    for (args, words) in rows {
        let args: Vec<&str> = args.iter().chain(more).copied().collect();
        let said = quiet.run_unlogged(applet, &args);
        let want = Said { code: 255, out: String::new(), err: format!("{words}{end}\n") };
        assert_eq!(said, want, "{applet} {args:?}");
    }
}

#[test]
fn bsub_rejects_submissions_that_mbatchd_refuses() {
    let quiet = quiet_cluster();
    quiet.settle();
    let rows: &[RejectedOptions<'_>] = &[
        (&["-q", "short", "-W", "9999"], "RUNLIMIT: Cannot exceed queue's hard limit(s)"),
        (&["-q", ""], "Queue name must be specified"),
        (
            &["-b", "2035:1:2:3:4", "-t", "2034:1:1:1:1"],
            "Start time is later than termination time",
        ),
        (&["-c", "x"], "x: Bad CPULIMIT specification"),
        (&["-W", "10/nosuch"], "nosuch: Bad host specification"),
        (&["-c", "10/nosuch"], "nosuch: Bad host specification"),
        (&["-p", "0"], "0: PROCESSLIMIT value should be a positive integer"),
        (&["-n", "1048577"], "Too many processors requested"),
        (&["-J", "x[1-3]", "-w", "done(99999[1])"], "99999[1]: No matching job found"),
        (&["-m", "host1@other"], "host1@other: Bad host name, host group name or cluster name"),
        (&["-g", "a"], "Bad/empty job group name"),
        (&["-f", "a"], "a: Bad argument for option -f"),
        (&["-We", "x"], "x: Bad ESTIMATED_RUNTIME specification"),
        (&["-k", "/c init=x"], "init=x: Bad argument for option -k"),
        (&["-Q", "256"], "256: Bad argument for option -Q"),
        (&["-wa", "CHKPNT"], "CHKPNT: Job is not checkpointable"),
        (&["-wa", "SIGNONE"], "SIGNONE: Bad or invalid action specification"),
        (&["-wa", "99"], "99: Bad or invalid action specification"),
        (&["-wa", ""], ": Bad or invalid action specification"),
        (&["-s", "BAD"], "BAD: Illegal signal value"),
        (&["-s", "99"], "99: Illegal signal value"),
        (&["-wt", "x"], "x: Bad argument for option -wt"),
        (&["-ptl", "x"], "x: Bad argument for option -ptl"),
        (&["-mig", "-1"], "-1: Bad argument for option -mig"),
        (&["-mig", "soon"], "soon: Bad argument for option -mig"),
        (&["-eptl", "0"], "0: Bad argument for option -eptl"),
        (&["-outdir", ""], ": Bad argument for option -outdir"),
    ];
    refused(&quiet, "bsub", rows, ". Job not submitted.", &["sleep", MARK]);
    refused(&quiet, "bsub", &[(&[""], "No command is specified")], ". Job not submitted.", &[]);
}

#[test]
fn changes_that_a_job_does_not_allow_are_refused_and_not_logged() {
    let quiet = quiet_cluster();
    let held = bsub(&["-H", "-J", HELD, "-o", "/dev/null", "sleep", "300"]);
    let array = bsub(&["-H", "-J", "refused[1-3]", "sleep", "300"]);
    let over = bsub(&["-o", "/dev/null", "true"]);
    end_of(&over);
    let element = format!("{array}[2]");
    quiet.settle();
    let modify: &[RejectedOptions<'_>] = &[
        (&["-n", "x"], "Bad argument for option -n"),
        (&["-w", "done("], "done(: Dependency condition syntax error"),
        (&["-w", "done(99999)"], "99999: No matching job found"),
        (&["-b", "25:00"], "25:00: Bad time specification"),
        (&["-W", "10/nosuch"], "nosuch: Bad host specification"),
        (&["-M", "abc"], "abc: MEMLIMIT value should be a positive integer"),
        (&["-m", "nosuch"], "nosuch: Bad host name, host group name or cluster name"),
        (&["-x"], "normal: Queue does not accept EXCLUSIVE jobs"),
        (&["-sp", "abc"], "abc: Illegal job priority"),
        (&["-g", "a"], "Bad/empty job group name"),
        (&["-W", "9999", "-q", "short"], "RUNLIMIT: Cannot exceed queue's hard limit(s)"),
        (&["-J", "b[1-2]"], "Change job name is not allowed for job array"),
    ];
    refused(&quiet, "bmod", modify, ". Job not modified.", &[&held]);
    let array_rows: &[RejectedOptions<'_>] = &[
        (&["-J", "b[1-2]", &array], "Change job name is not allowed for job array"),
        (&["-J", "y", &element], "Change job name is not allowed for job array"),
        (&["-w", "done(1)", &element], "Cannot operate on element job"),
    ];
    refused(&quiet, "bmod", array_rows, ". Job not modified.", &[]);
    refused_by_state(&quiet, &held, &array, &over);
    ok("bkill", &[&held, &array]);
}

/// Requests that a held job, an array or a finished job does not allow.
fn refused_by_state(quiet: &QuietCluster, held: &str, array: &str, over: &str) {
    let missing = "99999";
    let of = |id: &str, words: &str| format!("Job <{id}>: {words}");
    let plain = |applet: &str, args: &[&str], words: &str| {
        refused(quiet, applet, &[(args, words)], "", &[]);
    };
    plain("bmod", &["-K", held], "bmod: option -K is not supported yet");
    plain("bmod", &["abc"], "abc: Illegal job ID.");
    let finished = of(over, "Job has already finished");
    let nothing = of(missing, "No matching job found");
    let none = format!("{array}[7]");
    plain("bswitch", &["short", &none], &of(&none, "No matching job found"));
    plain("bswitch", &["idle", missing], &nothing);
    plain("bswitch", &["nosuch", held], "nosuch: No such queue");
    plain("bswitch", &["idle", over], &finished);
    plain("bswitch", &["-J", "nojob", "idle"], "No matching job found");
    plain("bswitch", &["-q", "nosuch", "idle", "0"], "nosuch: No such queue");
    // a job that is no array has no elements
    let element = format!("{held}[1]");
    for applet in ["bkill", "bstop", "bresume", "brequeue"] {
        plain(applet, &[&element], &of(&element, "No matching job found"));
    }
    plain("bswitch", &["short", &element], &of(&element, "No matching job found"));
    for applet in ["btop", "bbot"] {
        plain(applet, &[&element], &format!("{element}: No matching job found"));
        plain(applet, &[over], &format!("{over}: Job has already finished"));
        plain(applet, &[missing], "99999: No matching job found");
        plain(applet, &[&none], &format!("{none}: No matching job found"));
        plain(applet, &[held, "0"], "0: Illegal position value.");
        plain(applet, &["abc"], "abc: Illegal job ID.");
    }
    plain("brequeue", &[held], &of(held, "Job has not started yet"));
    plain("brequeue", &[over], &finished);
    plain("brequeue", &[missing], &nothing);
    plain("brequeue", &["-J", "nojob"], "No matching job found");
    plain("bkill", &["-s", "USR1", held], &of(held, "Job has not started yet"));
    plain("bkill", &["-s", "99", held], "99: Illegal signal value");
    plain("bkill", &["-r", over], &finished);
    plain("bkill", &["-g", "/no/such", "0"], "No unfinished job found");
    for applet in ["bstop", "bresume"] {
        plain(applet, &[over], &finished);
        plain(applet, &[missing], &nothing);
        plain(applet, &["-u", "no-such-user", "0"], "no-such-user: Unknown user");
        plain(applet, &["abc"], "abc: Illegal job ID.");
    }
}
