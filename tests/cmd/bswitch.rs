//! bswitch, btop, bbot, brequeue on a real cluster.

use crate::common::*;

#[test]
fn bswitch_moves_a_pending_job_to_another_queue() {
    let id = bsub(&["-H", "-q", "normal", "-o", "/dev/null", "true"]);
    let said = ok("bswitch", &["idle", &id]);
    assert_eq!(said, format!("Job <{id}> is switched to queue <idle>\n"));
    assert_eq!(field(&id, "queue"), "idle");
    let said = run("bswitch", &["nosuch", &id]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert_eq!(said.err, "nosuch: No such queue\n");
    let said = run("bswitch", &["idle", "99999"]);
    assert_eq!((said.code, said.err.as_str()), (255, "Job <99999>: No matching job found\n"));
    let said = run("bswitch", &[]);
    assert!(said.code == 255 && said.err.contains("Usage: bswitch"), "{}", said.err);
    ok("bkill", &[&id]);
    end_of(&id);
    let said = run("bswitch", &["normal", &id]);
    assert_eq!((said.code, said.err), (255, format!("Job <{id}>: Job has already finished\n")));
    assert!(event_log().contains("\"JOB_SWITCH\""));
}

#[test]
fn btop_and_bbot_move_a_pending_job() {
    let ids: Vec<String> =
        (0..3).map(|_| bsub(&["-H", "-q", "idle", "-o", "/dev/null", "true"])).collect();
    let listed = || -> Vec<String> {
        let all = ok("bjobs", &["-noheader", "-q", "idle", "-o", "jobid"]);
        all.lines().map(|l| l.trim().to_string()).filter(|l| ids.contains(l)).collect()
    };
    let said = run("btop", &[&ids[2]]);
    assert_eq!((said.code, said.out.as_str()), (0, ""));
    assert_eq!(said.err, format!("Job <{}> has been moved to position 1 from top.\n", ids[2]));
    assert_eq!(listed(), [&*ids[2], &ids[0], &ids[1]]);
    let said = run("bbot", &[&ids[2], "2"]);
    assert_eq!(said.err, format!("Job <{}> has been moved to position 2 from bottom.\n", ids[2]));
    assert_eq!(listed(), [&*ids[0], &ids[2], &ids[1]]);
    let said = run("btop", &[&ids[1], "999999"]);
    let warning = "Warning: position value <999999> is beyond movable range.\n";
    assert!(said.code == 0 && said.err.starts_with(warning), "{}", said.err);
    for bad in ["0", "-1", "x"] {
        assert_eq!(run("btop", &[&ids[1], bad]).code, 255, "{bad}");
    }
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    ok("bkill", &all);
    let id = bsub(&["-o", "/dev/null", "sleep", "300"]);
    until(&id, "RUN");
    let said = run("btop", &[&id]);
    assert_eq!((said.code, said.err), (255, format!("{id}: Job has already started\n")));
    ok("bkill", &[&id]);
}

#[test]
fn brequeue_runs_a_started_job_again() {
    let dir = scratch("brequeue");
    let file = dir.join("runs").display().to_string();
    let id = bsub(&["-o", "/dev/null", &format!("echo x >> {file}; exec sleep 300")]);
    let runs = |n: usize| {
        for _ in 0..200 {
            if std::fs::read_to_string(&file).unwrap_or_default().lines().count() == n {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("not {n} runs");
    };
    runs(1);
    assert_eq!(ok("brequeue", &[&id]), format!("Job <{id}> is being requeued \n"));
    runs(2);
    until(&id, "RUN");
    ok("bkill", &[&id]);
    assert_eq!(end_of(&id), "EXIT");
    let said = run("brequeue", &[&id]);
    assert_eq!((said.code, said.err), (255, format!("Job <{id}>: Job has already finished\n")));
    ok("brequeue", &["-e", "-H", &id]);
    until(&id, "PSUSP");
    ok("bresume", &[&id]);
    runs(3);
    let history = ok("bhist", &["-l", &id]).replace("\n                     ", "");
    assert!(history.contains("Job has been requeued;"), "{history}");
    ok("bkill", &[&id]);
    end_of(&id);
}
