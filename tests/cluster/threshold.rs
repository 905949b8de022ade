//! A bsub beyond MAX_PEND_JOBS or MAX_PEND_SLOTS asks again every SUB_TRY_INTERVAL seconds,
//! LSB_NTRIES times or for ever.

use super::rig::{Rig, Said, kill, wait_for};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Stdio};

const TOLD: &str = "Pending job threshold reached. Retrying in 1 seconds...";
const HELD: &[&str] = &["-H", "-o", "/dev/null", "true"];

/// A bsub that is beyond the threshold, once it has said so.
fn waiting(rig: &Rig, args: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let mut c = rig.cmd("bsub");
    c.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = c.spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), TOLD);
    (child, err)
}

fn pending(rig: &Rig) -> usize {
    rig.run("bjobs", &["-noheader", "-p", "-o", "jobid"]).out.lines().count()
}

fn names(rig: &Rig) -> Vec<String> {
    let out = rig.ok("bjobs", &["-noheader", "-o", "job_name"]);
    out.split_whitespace().map(str::to_string).collect()
}

#[test]
fn bsub_waits_while_max_pend_jobs_is_reached() {
    let rig = Rig::up("threshold", 1);
    let path = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&path).unwrap();
    let more = "MAX_PEND_JOBS = 2\nSUB_TRY_INTERVAL = 1\nEnd Parameters";
    std::fs::write(&path, text.replace("End Parameters", more)).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
    let first = rig.bsub(HELD);
    rig.bsub(HELD);

    // it goes on until there is room
    let (mut child, mut err) = waiting(&rig, HELD);
    rig.ok("bkill", &[&first.to_string()]);
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert!(rest.lines().all(|l| l == TOLD), "{rest}");
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(out.starts_with("Job <3> is submitted to default queue <"), "{out}");
    assert_eq!(pending(&rig), 2);

    // as often as LSB_NTRIES says, and no more
    let given_up = "Pending job threshold reached. Job not submitted.\n";
    for (tries, told) in [(1, 0), (3, 2)] {
        let mut c = rig.cmd("bsub");
        c.args(HELD).env("LSB_NTRIES", tries.to_string());
        let said = Said::from(c.output().unwrap());
        let want = format!("{}{given_up}", format!("{TOLD}\n").repeat(told));
        assert_eq!((said.code, said.out, said.err), (255, String::new(), want), "{tries}");
    }

    // ^C ends it
    let (mut child, _err) = waiting(&rig, HELD);
    kill(child.id(), 2);
    wait_for("bsub to end", || child.try_wait().unwrap().is_some());
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(child.wait().unwrap().signal(), Some(2));

    // a file of submissions waits likewise, and keeps its order
    rig.write("pack", "-H -J p1 true\n-H -J p2 true\n-H -J p3 true\n");
    rig.ok("bkill", &["0"]);
    let (mut child, mut err) = waiting(&rig, &["-pack", "pack"]);
    assert_eq!(names(&rig), ["p1", "p2"]);
    rig.ok("bkill", &["-J", "p1"]);
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert!(rest.lines().all(|l| l == TOLD), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(names(&rig), ["p2", "p3"]);
    let mut c = rig.cmd("bsub");
    let said = Said::from(c.args(["-pack", "pack"]).env("LSB_NTRIES", "2").output().unwrap());
    let all = "0 jobs submitted, 1 errors found.\n";
    assert_eq!((said.code, said.out), (255, format!("1 lines parsed, {all}")));
    assert_eq!(said.err, format!("{TOLD}\nline 1: {given_up}"));

    // what never fits is not asked for twice
    let said = rig.run("bsub", &["-H", "-J", "x[1-3]", "true"]);
    assert_eq!((said.code, said.err.as_str()), (255, given_up));
    assert_eq!(pending(&rig), 2);
}
