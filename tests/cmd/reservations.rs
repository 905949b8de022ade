//! Advance reservations on a real cluster: output, a job that runs in one, refusals (brsvadd(1),
//! brsvmod(1), brsvdel(1), brsvs(1)).

use crate::common::*;

fn said(code: i32, out: &str, err: &str) -> Said {
    Said { code, out: out.into(), err: err.into() }
}

fn host() -> String {
    ok("bhosts", &["-noheader", "-o", "hname"]).lines().next().unwrap().to_string()
}

/// Makes a reservation of this name for the caller, a slot for an hour of Monday night that nobody
/// else takes, and gives the name.
pub fn reservation<'a>(name: &'a str, window: &str) -> &'a str {
    let (host, user) = (host(), field(&bsub(&["-H", "true"]), "user").trim().to_string());
    let words = ["-N", name, "-n", "1", "-m", &host, "-u", &user, "-t", window];
    let made = format!("Reservation \"{name}\" is created\n");
    assert_eq!(run("brsvadd", &words), said(0, &made, ""));
    name
}

#[test]
fn reservation_is_made_shown_changed_and_deleted() {
    let name = reservation("rsv-shown", "1:3:00-1:4:00");
    let table = ok("brsvs", &[name]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>().join(" "),
        "RSVID TYPE USER NCPUS RSV_HOSTS TIME_WINDOW"
    );
    assert!(lines[1].starts_with("rsv-shown   user"), "{table}");
    assert!(lines[1].ends_with("1:3:00-1:4:00 *"), "{table}");
    let changed = run("brsvmod", &["-d", "a slot", "-o", name]);
    assert_eq!(changed, said(0, "Reservation \"rsv-shown\" is modified\n", ""));
    let long = ok("brsvs", &["-l", name]);
    for line in ["Reservation Status: Inactive", "Reservation Type: OPEN", "Description: a slot"] {
        assert!(long.lines().any(|l| l == line), "{line}: {long}");
    }
    let job = bsub(&["-U", name, "true"]);
    assert_eq!(field(&job, "rsvid").trim(), name);
    wait_for("the reason", || {
        ok("bjobs", &["-l", &job]).contains("The specified advance reservation is not active")
    });
    assert!(ok("brsvs", &["-l", name]).contains(&format!("PEND Jobs: {job}")));
    let gone = run("brsvdel", &[name]);
    assert_eq!(gone, said(0, "Reservation rsv-shown is being deleted\n", ""));
    let none = said(255, "", "rsv-shown: Advance reservation does not exist\n");
    assert_eq!(run("brsvs", &[name]), none);
    ok("bkill", &[&job]);
}

#[test]
fn jobs_of_a_reservation_are_shown_in_the_long_format() {
    let name = reservation("rsv-jobs", "1:3:00-1:4:00");
    let none = said(0, "", "No job found\n");
    assert_eq!(run("brsvjob", &[name]), none);
    let (of_it, other) = (bsub(&["-U", name, "true"]), bsub(&["-H", "true"]));
    let shown = ok("brsvjob", &[name]);
    assert!(shown.contains(&format!("Job <{of_it}>")), "{shown}");
    assert!(shown.contains("SCHEDULING PARAMETERS:"), "{shown}");
    assert!(!shown.contains(&format!("Job <{other}>")), "{shown}");
    ok("bkill", &[&of_it, &other]);
    wait_for("the end of the job", || ok("brsvjob", &[name]).contains("Status <EXIT>"));
    ok("brsvdel", &[name]);
    assert!(ok("brsvjob", &[name]).contains(&format!("Job <{of_it}>")));
    let unknown = said(255, "", "nosuch: Advance reservation does not exist\n");
    assert_eq!(run("brsvjob", &["nosuch"]), unknown);
}

#[test]
fn wrong_reservations_are_refused_with_the_word_that_is_wrong() {
    let host = host();
    let window = ["-t", "1:5:00-1:6:00"];
    let rows: Vec<(Vec<&str>, &str)> = vec![
        (
            vec!["-n", "1", "-m", "nosuch", "-u", "x"],
            "nosuch: Bad host name, host group name or cluster name",
        ),
        (vec!["-n", "0", "-m", &host, "-u", "x"], "0: Bad argument for option -n."),
        (
            vec!["-n", "1", "-m", &host, "-u", "x", "-unit", "rack"],
            "rack: slot or host is wanted for -unit.",
        ),
        (
            vec!["-n", "1", "-m", &host, "-u", "x", "-N", "1st"],
            "1st: Bad name of an advance reservation",
        ),
        (vec!["-n", "1", "-m", &host, "-g", "nosuch"], "nosuch: Bad user group name"),
        (vec!["-n", "1", "-m", &host, "-u", "x", "-q", "nosuch"], "nosuch: No such queue"),
        (vec!["-n", "1", "-R", "select[", "-u", "x"], "select[: Bad resource requirement syntax"),
        (vec!["-s", "-n", "1", "-m", &host], "A system reservation is of whole hosts"),
        (vec!["-n", "1", "-m", &host, "-u", "x", "-g", "y"], "-u and -g cannot be combined."),
    ];
    for (words, want) in rows {
        let words: Vec<&str> = words.iter().chain(&window).copied().collect();
        assert_eq!(run("brsvadd", &words), said(255, "", &format!("{want}\n")), "{words:?}");
    }
    let of = ["-n", "1", "-m", &host, "-u", "x"];
    for (window, want) in [
        (vec!["-t", "9-9"], "The time window never closes"),
        (vec!["-t", "x"], "x: Bad time window specification"),
        (vec!["-t", "1:5:00-1:5:05"], "An advance reservation lasts ten minutes at least"),
        (
            vec!["-b", "2020:1:1:0:0", "-e", "2020:1:1:1:0"],
            "The begin of the reservation is in the past",
        ),
    ] {
        let words: Vec<&str> = of.iter().chain(&window).copied().collect();
        assert_eq!(run("brsvadd", &words), said(255, "", &format!("{want}\n")), "{words:?}");
    }
    let none = "nosuch: Advance reservation does not exist";
    for words in
        [vec!["brsvdel", "nosuch"], vec!["brsvmod", "-o", "nosuch"], vec!["brsvs", "nosuch"]]
    {
        assert_eq!(run(words[0], &words[1..]), said(255, "", &format!("{none}\n")), "{words:?}");
    }
    let submitted = run("bsub", &["-U", "nosuch", "true"]);
    assert_eq!(submitted, said(255, "", &format!("{none}. Job not submitted.\n")));
    let policy = run("brsvs", &["-c", "nosuch"]);
    assert_eq!(policy, said(255, "", "nosuch: No such advance reservation policy\n"));
}
