//! Post-execution and host files (-hostfile), as users see them.

use super::rig::{Rig, Said, wait_for};

#[test]
fn post_execution_is_awaited_by_dependencies_and_shown() {
    let rig = Rig::up("post", 1);
    let go = rig.path("go");
    let hold =
        |code: u32| format!("while [ ! -e {} ]; do sleep 0.1; done; exit {code}", go.display());
    let good = rig.bsub(&["-Ep", &hold(0), "true"]);
    let bad = rig.bsub(&["-Ep", &hold(3), "false"]);
    let next: Vec<u32> = [("post_done", good), ("post_err", bad), ("post_err", good)]
        .map(|(f, job)| rig.bsub(&["-w", &format!("{f}({job})"), "true"]))
        .into();
    assert_eq!((rig.end_of(good), rig.end_of(bad)), ("DONE".into(), "EXIT".into()));
    for job in &next {
        assert_eq!(rig.stat(*job), "PEND");
    }
    let said = |job: u32| rig.ok("bhist", &["-l", &job.to_string()]);
    assert!(!said(good).contains("Post job"), "{}", said(good));
    std::fs::write(&go, "").unwrap();
    assert_eq!(rig.end_of(next[0]), "DONE");
    assert_eq!(rig.end_of(next[1]), "DONE");
    let ok = "Done successfully. The CPU time used is 0.0 seconds;\n";
    let told = said(good);
    let at = told.find(ok).unwrap_or_else(|| panic!("{told}"));
    assert!(told[at..].contains(": Post job process done successfully;\n"), "{told}");
    assert!(said(bad).contains(": Post job process failed;\n"), "{}", said(bad));
    let long = |job: u32| rig.ok("bjobs", &["-l", &job.to_string()]);
    assert!(long(good).contains(": Post job process done successfully.\n"), "{}", long(good));
    assert!(long(bad).contains(": Post job process failed.\n"), "{}", long(bad));
    let never = "Dependency condition invalid or never satisfied";
    wait_for(never, || long(next[2]).contains(never));
    let log = std::fs::read_to_string(rig.logdir().join("lsb.events")).unwrap();
    let status = |job: u32, bits: u32| {
        let line = format!(" {job} {bits} ");
        log.lines().any(|l| l.starts_with("\"JOB_STATUS\"") && l.contains(&line))
    };
    assert!(status(good, 0xc0) && status(bad, 0x120), "{log}");
    // all of it is known after a restart
    rig.kill9("mbatchd", "host1");
    wait_for("mbatchd", || rig.run("bjobs", &[]).code == 0);
    assert!(long(bad).contains(": Post job process failed.\n"), "{}", long(bad));
}

#[test]
fn post_execution_is_part_of_the_job_when_the_site_says_so() {
    let rig = Rig::up("postproc", 1);
    let path = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&path).unwrap();
    let more = "JOB_INCLUDE_POSTPROC = Y\nEnd Parameters";
    std::fs::write(&path, text.replace("End Parameters", more)).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
    let go = rig.path("go");
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let hold = |name: &str| {
        let (go, name) = (go.display(), rig.path(name).display().to_string());
        format!("touch {name}; {burn}; while [ ! -e {go} ]; do sleep 0.1; done")
    };
    let job = rig.bsub(&["-o", "/dev/null", "-Ep", &hold("in"), "true"]);
    let next = ["done", "post_done"]
        .map(|f| rig.bsub(&["-o", "/dev/null", "-w", &format!("{f}({job})"), "true"]));
    wait_for("what runs after it", || rig.path("in").exists());
    // one of the submitter's own mind
    let mut c = rig.cmd("bsub");
    c.args(["-o", "/dev/null", "-Ep", &hold("other"), "true"]);
    let said = Said::from(c.env("LSB_JOB_INCLUDE_POSTPROC", "N").output().unwrap());
    let other = super::rig::job_id(&said.out).unwrap();
    assert_eq!(rig.end_of(other), "DONE");
    wait_for("what runs after the other", || rig.path("other").exists());
    assert_eq!(rig.stat(job), "RUN");
    assert_eq!(next.map(|n| rig.stat(n)), ["PEND", "PEND"]);
    // the daemons may come and go
    rig.kill9("sbatchd", "host1");
    rig.kill9("mbatchd", "host1");
    rig.ready();
    assert_eq!(rig.stat(job), "RUN");
    rig.run("bkill", &[&job.to_string()]);
    std::fs::write(&go, "").unwrap();
    assert_eq!(next.map(|n| rig.end_of(n)), ["DONE", "DONE"]);
    assert_eq!(rig.stat(job), "DONE");
    let long = rig.ok("bhist", &["-l", &job.to_string()]);
    let (end, post) = (long.find(": Done successfully."), long.find(": Post job process done"));
    assert!(end.is_some() && end < post, "{long}");
    assert!(!long.contains("CPU time used is 0.0 seconds"), "{long}");
}

/// POST_EXEC undoes the work of PRE_EXEC: it runs after each attempt whose -E failed.
#[test]
fn post_exec_of_the_queue_runs_where_the_pre_exec_of_the_job_failed() {
    let rig = Rig::up("postpre", 1);
    let path = rig.configdir().join("lsb.queues");
    let text = std::fs::read_to_string(&path).unwrap();
    let (said, bad) = (rig.path("said"), rig.path("bad"));
    let queue = format!(
        "\nBegin Queue\nQUEUE_NAME = both\nPRIORITY = 50\n\
         PRE_EXEC = test ! -e {bad} && echo pre >> {said}\n\
         POST_EXEC = echo post $LSB_JOBEXIT_STAT $LSB_JOBPEND $USER >> {said}\nEnd Queue\n",
        said = said.display(),
        bad = bad.display()
    );
    std::fs::write(&path, text + &queue).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
    let id = std::process::Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8(id.stdout).unwrap();
    let job =
        rig.bsub(&["-q", "both", "-E", "exit 99", "-Ep", "touch own", "-o", "/dev/null", "true"]);
    assert_eq!(rig.end_of(job), "EXIT");
    wait_for("the commands", || said.exists() && rig.read("said").lines().count() == 2);
    assert_eq!(rig.read("said"), format!("pre\npost 25344 {user}"));
    std::fs::remove_file(&said).unwrap();
    let job =
        rig.bsub(&["-q", "both", "-E", "exit 3", "-Ep", "touch own", "-o", "/dev/null", "true"]);
    wait_for("an attempt", || said.exists() && rig.read("said").lines().count() >= 2);
    assert!(rig.read("said").starts_with(&format!("pre\npost 0 1 {user}")), "{}", rig.read("said"));
    wait_for("it to be back", || rig.stat(job) == "PEND");
    rig.ok("bkill", &[&job.to_string()]);
    wait_for("its end", || rig.stat(job) == "EXIT");
    // where PRE_EXEC of the queue itself fails there is nothing to undo
    rig.write("bad", "");
    std::fs::remove_file(&said).unwrap();
    let job = rig.bsub(&["-q", "both", "-o", "/dev/null", "true"]);
    let words = "The queue's pre-exec command exited with non-zero status";
    wait_for(words, || rig.run("bjobs", &["-p", &job.to_string()]).out.contains(words));
    assert!(!said.exists() && !rig.path("own").exists());
}

/// A job that is killed while its -E runs never ran, but PRE_EXEC of its queue has.
#[test]
fn post_exec_of_the_queue_runs_where_the_job_is_killed_in_its_pre_exec() {
    let rig = Rig::up("postkill", 1);
    let path = rig.configdir().join("lsb.queues");
    let text = std::fs::read_to_string(&path).unwrap();
    let said = rig.path("said").display().to_string();
    let queue = format!(
        "\nBegin Queue\nQUEUE_NAME = both\nPRIORITY = 50\n\
         PRE_EXEC = echo pre >> {said}; test -z \"$HOLD\" || sleep 1000\n\
         POST_EXEC = echo post $LSB_JOBEXIT_STAT $LSB_JOBPEND $HOME >> {said}\nEnd Queue\n",
    );
    std::fs::write(&path, text + &queue).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
    let home = std::env::var("HOME").unwrap_or_default();
    let hold = format!("echo job >> {said}; sleep 1000");
    let own = rig.path("own");
    let after = format!("touch {}", own.display());
    for (options, status) in [(&["-r"][..], 9), (&[], 2)] {
        let job = rig.bsub(&["-q", "both", "-E", &hold, "-Ep", &after, "-o", "/dev/null", "true"]);
        wait_for("its command", || rig.read("said").ends_with("job\n"));
        rig.ok("bkill", &[options, &[&job.to_string()]].concat());
        assert_eq!(rig.end_of(job), "EXIT");
        wait_for("POST_EXEC", || rig.read("said").lines().count() == 3);
        assert_eq!(rig.read("said"), format!("pre\njob\npost {status} {home}\n"));
        std::fs::remove_file(rig.path("said")).unwrap();
        assert!(!own.exists());
    }
    // PRE_EXEC has not succeeded: there is nothing to undo
    let job = rig.bsub(&["-q", "both", "-env", "all,HOLD=1", "-o", "/dev/null", "true"]);
    wait_for("PRE_EXEC", || rig.read("said") == "pre\n");
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    assert_eq!((rig.stat(job).as_str(), rig.read("said").as_str()), ("EXIT", "pre\n"));
}

/// A signal of bkill -s while the -E of a job runs is meant for the job, which is not tried again.
#[test]
fn job_that_is_sent_a_signal_in_its_pre_exec_ends_by_it() {
    let rig = Rig::up("presignal", 1);
    let said = rig.path("said").display().to_string();
    let traps = format!("trap 'exit 1' HUP; echo pre >> {said}; while :; do sleep 0.1; done");
    let waits = format!("echo pre >> {said}; sleep 1000");
    for (signal, pre, status) in [("INT", &waits, 2), ("USR1", &waits, 10), ("HUP", &traps, 1)] {
        let job = rig.bsub(&["-E", pre, "-o", "/dev/null", "true"]);
        wait_for("its command", || rig.read("said") == "pre\n");
        // a signal that ends nothing changes nothing
        rig.ok("bkill", &["-s", "WINCH", &job.to_string()]);
        rig.ok("bkill", &["-s", signal, &job.to_string()]);
        assert_eq!(rig.end_of(job), "EXIT");
        let long = rig.ok("bhist", &["-l", &job.to_string()]);
        assert!(long.contains(&format!("Exited by signal {status}.")), "{long}");
        assert_eq!(rig.read("said"), "pre\n");
        std::fs::remove_file(rig.path("said")).unwrap();
    }
}

/// -hostfile: the job gets what its file says.
#[test]
fn job_with_a_host_file_runs_on_its_hosts() {
    let rig = Rig::up("hostfile", 2);
    rig.write("hosts.txt", "# mine\nhost2\nhost1 2   # two\nhost2 1\n");
    let file = rig.path("hosts.txt");
    let file = file.to_str().unwrap();
    let job = rig.bsub(&["-hostfile", file, "-o", "/dev/null", "cat $LSB_DJOB_HOSTFILE > said"]);
    assert_eq!(rig.end_of(job), "DONE");
    let said = rig.read("said");
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["host2", "host2", "host1", "host1"]);
    // ranks have the order of its lines, in a file that goes with the job
    let show = "echo $LSB_DJOB_RANKFILE > name; cat $LSB_DJOB_RANKFILE > ranks";
    let ranked = rig.bsub(&["-hostfile", file, "-o", "/dev/null", show]);
    assert_eq!(rig.end_of(ranked), "DONE");
    let ranks = rig.read("ranks");
    assert_eq!(ranks.split_whitespace().collect::<Vec<_>>(), ["host2", "host1", "host1", "host2"]);
    let ranks = rig.read("name");
    assert!(ranks.ends_with(".rankfile\n"), "{ranks}");
    wait_for("it to go", || !std::path::Path::new(ranks.trim()).exists());
    let told = rig.ok("bjobs", &["-l", "-hostfile", &job.to_string()]);
    let block = "\nUSER-SPECIFIED HOST FILE:\nHOST            SLOTS\nhost2             1\n\
                 host1             2\nhost2             1\n";
    assert!(told.contains(block), "{told}");
    assert!(!rig.ok("bjobs", &["-l", &job.to_string()]).contains("USER-SPECIFIED"));
    assert_eq!(rig.field(&job.to_string(), "host_file"), file);
    for (args, words) in [
        (["-n", "2"], "Option -hostfile cannot be combined with option -n. Job not submitted.\n"),
        (
            ["-m", "host1"],
            "Option -hostfile cannot be combined with option -m. Job not submitted.\n",
        ),
        (
            ["-R", "mem>1"],
            "Option -hostfile cannot be combined with option -R. Job not submitted.\n",
        ),
    ] {
        let s = rig.run("bsub", &["-hostfile", file, args[0], args[1], "true"]);
        assert_eq!((s.code, s.err.as_str()), (255, words));
    }
    rig.write("hosts.txt", "host1 many\n");
    let s = rig.run("bsub", &["-hostfile", file, "true"]);
    let words =
        format!("{file}: line 1: <host1 many> is not a host and its slots. Job not submitted.\n");
    assert_eq!((s.code, s.err), (255, words));
    rig.write("hosts.txt", "nosuch 1\n");
    let s = rig.run("bsub", &["-hostfile", file, "true"]);
    let words = "nosuch: Bad host name, host group name or cluster name. Job not submitted.\n";
    assert_eq!((s.code, s.err.as_str()), (255, words));
}
