//! Job groups on a real cluster: output, limits, control by group, refusals (bgadd(1), bgmod(1),
//! bgdel(1), bjgroup(1)).

use crate::common::*;

fn said(code: i32, out: &str, err: &str) -> Said {
    Said { code, out: out.into(), err: err.into() }
}

#[test]
fn groups_are_made_shown_limited_and_deleted() {
    let user = "bjgroup-1";
    assert_eq!(
        run("bgadd", &["-L", "1", "-sla", "gold", "/bjgroup-1/a"]),
        said(0, "Job group </bjgroup-1/a> was added.\n", "")
    );
    let jobs = ["-n 1", "-n 1"].map(|_| bsub(&["-g", "/bjgroup-1/a/b/", "sleep", "300"]));
    until(&jobs[0], "RUN");
    wait_for("the reason", || {
        ok("bjobs", &["-l", &jobs[1]]).contains("The specified job group has reached its job limit")
    });
    assert_eq!(field(&jobs[1], "job_group").trim(), "/bjgroup-1/a/b");
    let owner = field(&jobs[0], "user");
    let table = ok("bjgroup", &["-s", "/bjgroup-1"]);
    let lines: Vec<Vec<&str>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
    let head = "GROUP_NAME NJOBS PEND RUN SSUSP USUSP FINISH SLA JLIMIT OWNER";
    assert_eq!(lines[0].join(" "), head);
    let of = |n: usize| lines[n].join(" ");
    assert_eq!(of(1), format!("/{user} 2 1 1 0 0 0 () 1/- {}", owner.trim()));
    assert_eq!(of(2), format!("/{user}/a 2 1 1 0 0 0 gold 1/1 {}", owner.trim()));
    assert_eq!(of(3), format!("/{user}/a/b 2 1 1 0 0 0 () 1/- {}", owner.trim()));
    assert!(ok("bjgroup", &["-N", "/bjgroup-1"]).contains("NSLOTS"));
    assert_eq!(
        run("bgmod", &["-L", "2", "/bjgroup-1/a"]),
        said(0, "Job group </bjgroup-1/a> was modified.\n", "")
    );
    until(&jobs[1], "RUN");
    assert_eq!(
        run("bgdel", &["/bjgroup-1"]),
        said(255, "", "Job group </bjgroup-1>: Job group has jobs\n")
    );
    let stopped = ok("bstop", &["-g", "/bjgroup-1/a/b", "0"]);
    assert_eq!(stopped.lines().count(), 2, "{stopped}");
    ok("bkill", &["-g", "/bjgroup-1/a/b", "0"]);
    jobs.iter().for_each(|job| drop(end_of(job)));
    wait_for("the counters", || {
        let table = ok("bjgroup", &["/bjgroup-1/a"]);
        table.lines().nth(1).is_some_and(|l| l.contains(" 0/2 "))
    });
    ok("bgadd", &["/bjgroup-1/empty/below"]);
    let gone = "Job group </bjgroup-1/empty/below> was deleted.\n\
                Job group </bjgroup-1/empty> was deleted.\n";
    assert_eq!(run("bgdel", &["-c", "/bjgroup-1"]), said(0, gone, ""));
    assert_eq!(run("bgdel", &["-c", "/bjgroup-1"]), said(255, "", "No job group is deleted\n"));
}

#[test]
fn group_of_a_submission_comes_from_the_environment_and_changes_with_bmod() {
    let mut c = cmd("bsub");
    c.env("LSB_DEFAULT_JOBGROUP", "/bjgroup-2/%p").args(["-H", "-P", "chip", "sleep", "300"]);
    let out: Said = c.output().unwrap().into();
    let id = job_id(&out.out).unwrap().to_string();
    assert_eq!(field(&id, "job_group").trim(), "/bjgroup-2/chip");
    ok("bmod", &["-g", "/bjgroup-2/other", &id]);
    assert_eq!(field(&id, "job_group").trim(), "/bjgroup-2/other");
    let listed = ok("bjobs", &["-g", "/bjgroup-2/other", "-noheader", "-o", "jobid"]);
    assert_eq!(listed.trim(), id);
    ok("bmod", &["-gn", &id]);
    assert_eq!(field(&id, "job_group").trim(), "-");
    // a running job and a suspended one
    ok("bresume", &[&id]);
    until(&id, "RUN");
    ok("bmod", &["-g", "/bjgroup-2/run/below", &id]);
    ok("bstop", &[&id]);
    until(&id, "USUSP");
    ok("bmod", &["-g", "/bjgroup-2/run", &id]);
    let line = |path: &str| {
        let table = ok("bjgroup", &["-s", path]);
        let lines: Vec<&str> = table.lines().collect();
        (lines.len(), lines[1].split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let owner = field(&id, "user");
    let want = format!("/bjgroup-2/run 1 0 0 0 1 0 () 1/- {}", owner.trim());
    assert_eq!(line("/bjgroup-2/run"), (3, want.clone()));
    assert_eq!(line("/bjgroup-2/run/"), (2, want));
    let told = ok("bhist", &["-l", &id]);
    let told = told.replace("\n                     ", "");
    assert_eq!(told.matches("Parameters of Job are changed: Job Group").count(), 4, "{told}");
    assert!(told.contains("are changed: Job Group </bjgroup-2/run/below>;"), "{told}");
    ok("bkill", &[&id]);
}

#[test]
fn requests_about_job_groups_that_are_refused_are_not_logged() {
    ok("bgadd", &["-L", "3", "/bjgroup-3/low"]);
    let bad = "Bad/empty job group name";
    let of = |path: &str, words: &str| format!("Job group <{path}>: {words}");
    let above = "the limit 4 is above that of job group </bjgroup-3/low>, 3";
    let below = "the limit 2 is below that of job group </bjgroup-3/low>, 3";
    let rows: &[(&str, &[&str], &str)] = &[
        ("bgadd", &["/bjgroup-3/low"], &of("/bjgroup-3/low", "Job group exists")),
        ("bgadd", &["a"], &of("a", bad)),
        ("bgadd", &["/"], &of("/", bad)),
        ("bgadd", &["/a//b"], &of("/a//b", bad)),
        ("bgadd", &["/a b"], &of("/a b", bad)),
        ("bgadd", &["-L", "x", "/bjgroup-3/new"], "x: Bad argument for option -L."),
        ("bgadd", &["-L", "-1", "/bjgroup-3/new"], "-1: Bad argument for option -L."),
        ("bgadd", &["-L", "4", "/bjgroup-3/low/x"], &of("/bjgroup-3/low/x", above)),
        (
            "bgmod",
            &["-L", "1", "/bjgroup-3/none"],
            &of("/bjgroup-3/none", "Job group does not exist"),
        ),
        ("bgmod", &["-L", "2", "/bjgroup-3"], &of("/bjgroup-3", below)),
        ("bgdel", &["/bjgroup-3/none"], &of("/bjgroup-3/none", "Job group does not exist")),
        ("bgdel", &["a"], &of("a", bad)),
        ("bgdel", &["-d", "soon"], "soon: Bad argument for option -d."),
        ("bgdel", &["-d", "-1"], "-1: Bad argument for option -d."),
        ("bgdel", &["-d", "1:2:3"], "1:2:3: Bad argument for option -d."),
        ("bgdel", &["-d", "99999:0"], "No job group is deleted"),
        ("bjgroup", &["/bjgroup-3/none"], &of("/bjgroup-3/none", "Job group does not exist")),
        ("bsub", &["-g", "/", "true"], "Bad/empty job group name. Job not submitted."),
        ("bsub", &["-g", "/a//b", "true"], "Bad/empty job group name. Job not submitted."),
    ];
    let logged = || {
        let log = event_log();
        let of_group = |l: &&str| l.starts_with("\"JGRP_") && l.contains("/bjgroup-3");
        log.lines().filter(of_group).count()
    };
    let before = logged();
    for (applet, args, words) in rows {
        assert_eq!(run(applet, args), said(255, "", &format!("{words}\n")), "{applet} {args:?}");
    }
    for (applet, args, words) in [
        ("bgadd", &[][..], "One job group must be specified, by its full path."),
        ("bgadd", &["/a", "/b"], "One job group must be specified, by its full path."),
        ("bgmod", &["/bjgroup-3"], "One of -L, -Ln and -u must be specified."),
        ("bgmod", &["-Ln", "-L", "1", "/a"], "Options -L and -Ln cannot be combined."),
        ("bgdel", &["-c", "0"], "Option -c needs the path of a job group."),
        ("bgdel", &["-d", "5", "/a"], "Option -d takes no job group."),
        ("bgdel", &[], "One job group must be specified, by its full path."),
        ("bjgroup", &["/a", "/b"], "One job group must be specified, by its full path."),
    ] {
        let said = run(applet, args);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{applet} {args:?}");
        assert!(said.err.contains(words), "{applet} {args:?}: {}", said.err);
    }
    assert_eq!(logged(), before, "something was logged");
    ok("bgdel", &["/bjgroup-3"]);
}
