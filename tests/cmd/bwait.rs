//! bwait: conditions that come true, never do, or not in time.

use crate::common::*;

#[test]
fn bwait_ends_when_the_condition_holds() {
    let id = bsub(&["-o", "/dev/null", "sleep", "1"]);
    let said = run("bwait", &["-w", &format!("done({id})"), "-t", "5"]);
    assert_eq!(said, Said { code: 0, out: String::new(), err: String::new() });
    assert_eq!(field(&id, "stat"), "DONE");
}

#[test]
fn bwait_ends_when_the_condition_can_never_hold() {
    let id = bsub(&["-o", "/dev/null", "false"]);
    assert_eq!(end_of(&id), "EXIT");
    let said = run("bwait", &["-w", &format!("done({id})")]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert!(said.err.contains("never satisfied"), "{}", said.err);
}

#[test]
fn bwait_refuses_wrong_conditions_and_options() {
    for (args, words) in [
        (&["-w", "foo("][..], "foo(: Dependency condition syntax error\n"),
        (&["-w", "done(99999)"], "99999: No matching job found\n"),
        (&["-w", "done(1)", "-t", "x"], "bwait: Bad argument for option -t.\n"),
        (&["-w", "done(1)", "-t", "0"], "bwait: Bad argument for option -t.\n"),
        (&["-w", "done(1)", "-t", "-1"], "bwait: Bad argument for option -t.\n"),
        (&["-w", "done(1)", "-t", "99999999999"], "bwait: Bad argument for option -t.\n"),
        (&["-w", "done(1)", "-r", "x"], "bwait: Bad argument for option -r.\n"),
        (&["-w", ""], ": Dependency condition syntax error\n"),
        (&["-w", "done(1) &&"], "done(1) &&: Dependency condition syntax error\n"),
        (&["-w", "done(\"no_such_name\")"], "no_such_name: No matching job found\n"),
        (&["-w", "started(99999) || done(99998)"], "99999: No matching job found\n"),
    ] {
        let said = run("bwait", args);
        let want = Said { code: 255, out: String::new(), err: words.into() };
        assert_eq!(said, want, "bwait {args:?}");
    }
    assert_eq!(run("bwait", &[]).code, 255);
}

#[test]
fn bwait_in_a_job_is_refused_when_the_site_forbids_it() {
    let id = bsub(&["-o", "/dev/null", "true"]);
    end_of(&id);
    for (value, job, code) in [("N", Some("1"), 255), ("N", None, 0), ("Y", Some("1"), 0)] {
        let mut c = cmd("bwait");
        c.env_remove("LSB_JOBID").env("LSB_BWAIT_IN_JOBS", value);
        job.map(|job| c.env("LSB_JOBID", job));
        let said: Said = c.args(["-w", &format!("done({id})")]).output().unwrap().into();
        assert_eq!(said.code, code, "{value} {job:?}: {}", said.err);
        assert_eq!(said.err.contains("LSB_BWAIT_IN_JOBS"), code != 0, "{}", said.err);
    }
}
