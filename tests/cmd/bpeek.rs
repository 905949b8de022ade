//! bpeek on a real cluster.

use crate::common::*;
use std::io::Read;
use std::process::Stdio;

#[test]
fn bpeek_prints_what_a_job_has_written() {
    let dir = scratch("bpeek");
    let (out, err) = (dir.join("o.%J").display().to_string(), dir.join("e").display().to_string());
    let id = bsub(&["-J", "peek", "-o", &out, "-e", &err, "echo one; echo bad >&2; sleep 300"]);
    until(&id, "RUN");
    let want = "<< output from stdout >>\none\n<< output from stderr >>\nbad\n";
    let mut said = String::new();
    for _ in 0..100 {
        said = run("bpeek", &[&id]).out;
        if said == want {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(said, want);
    // The newest job of that name is meant.
    assert_eq!(ok("bpeek", &["-J", "peek"]), want);
    ok("bkill", &[&id]);
    end_of(&id);
    let said = run("bpeek", &[&id]);
    assert_eq!((said.code, said.err), (255, format!("Job <{id}> : Already finished.\n")));
    let held = bsub(&["-H", "true"]);
    let said = run("bpeek", &[&held]);
    assert_eq!((said.code, said.err), (255, format!("Job <{held}> : Not yet started.\n")));
    ok("bkill", &[&held]);
    // of an array the element that was dispatched last
    let out = dir.join("p.%I").display().to_string();
    let array = bsub(&["-J", "peeks[1-2]", "-o", &out, "echo $LSB_JOBINDEX; sleep 300"]);
    until(&array, "RUN");
    wait_for("its output", || run("bpeek", &[&array]).out == "<< output from stdout >>\n2\n");
    ok("bkill", &[&array]);
    // in a directory of -outdir, by its pattern
    let dir = dir.join("made").display().to_string();
    for host in ["host1", "host2"] {
        let made = format!("{dir}-%J");
        let id = bsub(&["-m", host, "-outdir", &made, "-o", "o", "-e", "e", "echo $0; sleep 300"]);
        until(&id, "RUN");
        let want = "<< output from stdout >>\n/bin/sh\n<< output from stderr >>\n";
        wait_for("its output", || run("bpeek", &[&id]).out == want);
        ok("bkill", &[&id]);
    }
    // nothing to see, here and on another host
    for host in ["host1", "host2"] {
        let id = bsub(&["-m", host, "-o", "/dev/null", "sleep 300"]);
        wait_for("it to have started", || {
            let said = run("bpeek", &[&id]);
            (said.code, said.out.as_str()) == (0, "<< output from stdout >>\n")
        });
        ok("bkill", &[&id]);
    }
    let held = bsub(&["-H", "-J", "held[1-2]", "true"]);
    let said = run("bpeek", &[&held]);
    assert_eq!((said.code, said.err), (255, format!("Job <{held}> : Not yet started.\n")));
    ok("bkill", &[&held]);
    let said = run("bpeek", &["99999"]);
    assert_eq!((said.code, said.err.as_str()), (255, "Job <99999>: No matching job found\n"));
    let said = run("bpeek", &["-J", "no-such-job"]);
    assert_eq!((said.code, said.err.as_str()), (255, "Job <no-such-job> is not found\n"));
}

#[test]
fn bpeek_f_follows_the_output_to_the_end_of_the_job() {
    // The job runs on this host, and on another one, through res.
    for host in ["host1", "host2"] {
        let dir = scratch(&format!("bpeek-f-{host}"));
        let go = dir.join("go");
        let wait = format!("while [ ! -e {} ]; do sleep 0.1; done", go.display());
        let id = bsub(&["-m", host, &format!("echo first; {wait}; echo last")]);
        until(&id, "RUN");
        // The host must first say where the job runs.
        for _ in 0..100 {
            if run("bpeek", &[&id]).code == 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let mut child = cmd("bpeek").args(["-f", &id]).stdout(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(500));
        std::fs::write(&go, "").unwrap();
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success());
        let want = "<< output from stdout >>\nfirst\nlast\n";
        assert!(text.starts_with(want), "{host}: {text}");
    }
}

#[test]
fn bpeek_f_follows_a_truncated_file_from_its_beginning() {
    let dir = scratch("bpeek-cut");
    let [out, go, end] = ["out", "go", "end"].map(|n| dir.join(n).display().to_string());
    let wait = |file: &str| format!("while [ ! -e {file} ]; do sleep 0.1; done");
    let first = "a line that is longer than the next";
    let script = format!("echo {first}; {}; : > {out}; echo anew; {}", wait(&go), wait(&end));
    let id = bsub(&["-m", "host1", "-o", &out, &script]);
    wait_for("its first line", || run("bpeek", &[&id]).out.contains(first));
    let mut c = cmd("bpeek");
    c.args(["-f", &id]);
    let (mut child, lines) = lines_of(c);
    let next = || lines.recv_timeout(std::time::Duration::from_secs(30));
    assert_eq!(next().as_deref(), Ok("<< output from stdout >>"));
    assert_eq!(next().as_deref(), Ok(first));
    std::fs::write(&go, "").unwrap();
    let anew = next();
    // the job ends, and with it what follows it, whatever that has shown
    std::fs::write(&end, "").unwrap();
    assert_eq!(anew.as_deref(), Ok("anew"));
    assert!(child.wait().unwrap().success());
}
