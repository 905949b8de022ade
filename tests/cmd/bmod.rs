//! bmod on a real cluster (samples/job-control.txt).

use crate::common::*;

#[test]
fn a_pending_job_is_changed_and_set_back() {
    let id = bsub(&["-H", "-q", "normal", "-J", "old", "-o", "/dev/null", "sleep", "5"]);
    let changed = format!("Parameters of job <{id}> are being changed\n");
    assert_eq!(ok("bmod", &["-J", "new", "-R", "mem>1", "-W", "5", &id]), changed);
    assert_eq!(field(&id, "job_name"), "new");
    assert_eq!(ok("bmod", &["-q", "idle", "-n", "2", "-Z", "sleep 6", &id]), changed);
    assert_eq!((field(&id, "queue"), field(&id, "command")), ("idle".into(), "sleep 6".into()));
    let long = ok("bjobs", &["-l", &id]).replace("\n                     ", "");
    assert!(long.contains("Requested Resources <mem>1>") && long.contains("RUNLIMIT"), "{long}");
    assert_eq!(ok("bmod", &["-Jn", "-Rn", "-qn", "-nn", "-Wn", &id]), changed);
    assert_eq!((field(&id, "job_name"), field(&id, "queue")), ("sleep 6".into(), "normal".into()));
    let long = ok("bjobs", &["-l", &id]).replace("\n                     ", "");
    assert!(!long.contains("Requested Resources") && !long.contains("RUNLIMIT"), "{long}");
    let said = run("bmod", &["-b", "23:59", &id]);
    assert_eq!((said.code, said.out), (0, changed));
    assert!(said.err.starts_with("Job will be scheduled after "), "{}", said.err);
    let history = ok("bhist", &["-l", &id]).replace("\n                     ", "");
    assert!(history.contains("Parameters of Job are changed: Job Name <new>"), "{history}");
    assert!(event_log().contains("\"JOB_MODIFY2\""));
    ok("bkill", &[&id]);
}

#[test]
fn what_cannot_be_changed_is_said() {
    let id = bsub(&["-o", "/dev/null", "sleep", "300"]);
    until(&id, "RUN");
    let said = run("bmod", &["-W", "5", &id]);
    let words = "Job parameters cannot be changed now; non-repetitive job is running. \
                 Job not modified.\n";
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (255, "", words));
    ok("bkill", &[&id]);
    end_of(&id);
    let row = |args: &[&str]| {
        let said = run("bmod", args);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{args:?}");
        said.err
    };
    assert_eq!(row(&["-J", "z", &id]), "Job has already finished. Job not modified.\n");
    for nobody in [&["-J", "z", "99999"][..], &["99999"]] {
        assert_eq!(row(nobody), "99999: No matching job found. Job not modified.\n");
    }
    let held = bsub(&["-H", "-o", "/dev/null", "true"]);
    let bad = row(&["-q", "nosuch", &held]);
    assert_eq!(bad, "nosuch: No such queue. Job not modified.\n");
    let bad = row(&["-R", "badres>1", &held]);
    assert_eq!(bad, "Bad resource requirement syntax. Job not modified.\n");
    assert_eq!(
        row(&["-n", "0", &held]).lines().next(),
        Some("The number of processors must be a positive integer. Job not modified.",)
    );
    assert_eq!(row(&["sleep 6", &held]), format!("sleep 6/{held}: Illegal job ID.\n"));
    assert!(row(&["-J", "x"]).contains("Usage: bmod"));
    let unused = "Modified parameters have not been used. Job not modified.\n";
    assert_eq!(row(&[&held]), unused);
    ok("bkill", &[&held]);
}
