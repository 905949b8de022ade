//! busers, bugroup, bmgroup, bparams on a real cluster.

use crate::common::*;

#[test]
fn busers_counts_the_jobs_of_the_caller() {
    let id = bsub(&["-H", "-n", "2", "-o", "/dev/null", "true"]);
    let me = ok("bjobs", &["-noheader", "-o", "user", &id]).trim().to_string();
    let own = ok("busers", &[]);
    let lines: Vec<&str> = own.lines().collect();
    let head = "USER/GROUP          JL/P    MAX  NJOBS   PEND    RUN  SSUSP  USUSP    RSV ";
    assert_eq!((lines.len(), lines[0]), (2, head));
    assert!(lines[1].starts_with(&me), "{own}");
    let all = ok("busers", &["-noheader", "-o", "user pend pjobs", "all"]);
    let mine = all.lines().find(|l| l.split(' ').next() == Some(&me)).expect("a row");
    let pend: u32 = mine.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap();
    assert!(pend >= 2, "{mine}");
    assert_eq!(all.lines().next(), Some("default - -"), "{all}");
    ok("bkill", &[&id]);
    let said = run("busers", &["no-such-user"]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert_eq!(said.err, "no-such-user: Unknown user\n");
    let said = run("busers", &[""]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (255, "", ": Unknown user\n"));
}

#[test]
fn bugroup_and_bmgroup_of_unknown_groups_say_so() {
    let said = run("bugroup", &["nosuch"]);
    assert_eq!((said.code, said.err.as_str()), (255, "nosuch: Bad user group name\n"));
    let said = run("bmgroup", &["nosuch"]);
    let words = "nosuch: Bad host name, host group name or cluster name\n";
    assert_eq!((said.code, said.err.as_str()), (255, words));
}

#[test]
fn bparams_prints_the_parameters_in_force() {
    let short = ok("bparams", &[]);
    assert!(short.starts_with("Default Queues:  "), "{short}");
    assert!(short.ends_with("Job Accepting Interval:  0 seconds\n"), "{short}");
    let long = ok("bparams", &["-l"]);
    assert!(long.contains("\n    MBD_SLEEP_TIME = "), "{long}");
    let all = ok("bparams", &["-a"]);
    assert!(all.contains("MAX_JOB_ARRAY_SIZE = ") && !all.contains("MASTER"), "{all}");
}
