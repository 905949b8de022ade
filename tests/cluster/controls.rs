//! JOB_STARTER and JOB_CONTROLS of lsb.queues(5), brun and bmig with real processes.

use super::rig::{Rig, program, wait_for};

/// Adds queues to the cluster; each with its lines.
fn with_queues(rig: &Rig, queues: &[(&str, &str)]) {
    let path = rig.configdir().join("lsb.queues");
    let mut text = std::fs::read_to_string(&path).unwrap();
    for (name, lines) in queues {
        text += &format!("\nBegin Queue\nQUEUE_NAME = {name}\nPRIORITY = 20\n{lines}\nEnd Queue\n");
    }
    std::fs::write(&path, text).unwrap();
    let path = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&path).unwrap();
    let more = "JOB_TERMINATE_INTERVAL = 1\nEnd Parameters";
    std::fs::write(&path, text.replace("End Parameters", more)).unwrap();
    let said = rig.run("badmin", &["reconfig", "-f"]);
    assert_eq!(said.code, 0, "{said:?}");
}

/// The text of a file, empty where there is none.
fn text_of(rig: &Rig, file: &str) -> String {
    std::fs::read_to_string(rig.path(file)).unwrap_or_default()
}

#[test]
fn a_job_starter_gets_commands_and_scripts_whole_and_passes_their_end_on() {
    let rig = Rig::up("starter", 1);
    let before = rig.path("before");
    program(
        &before,
        "#!/bin/sh\necho \"started as $LSB_JOB_STARTER\"\nexport FROM=starter\n\"$@\"\n",
    );
    let before = before.display();
    let queues = [
        ("plain", format!("JOB_STARTER = {before}")),
        ("placed", "JOB_STARTER = /bin/sh -c \"echo first; %USRCMD\"".into()),
        ("shell", "JOB_STARTER = /bin/sh".into()),
    ];
    with_queues(&rig, &queues.each_ref().map(|(name, lines)| (*name, lines.as_str())));
    let out = rig.path("out");
    let run = |queue: &str, command: &str| {
        let _ = std::fs::remove_file(&out);
        let job = rig.bsub(&["-q", queue, "-o", out.to_str().unwrap(), command]);
        let end = rig.end_of(job);
        (end, rig.field(&job.to_string(), "exit_code"), text_of(&rig, "out"))
    };
    let command = "echo \"a  'b'\" $FROM '$HOME' `echo c`; exit 3";
    let (end, code, said) = run("plain", command);
    assert_eq!((end.as_str(), code.as_str()), ("EXIT", "3"));
    let want = format!("started as {before}\na  'b' starter $HOME c\n");
    assert!(said.contains(&want), "{said}");
    // the report shows the command as it was submitted
    assert!(said.contains("exit 3") && !said.contains("/.lsbatch/"), "{said}");
    let (end, _, said) = run("placed", command);
    assert_eq!(end, "EXIT");
    assert!(said.contains("first\na  'b' $HOME c\n"), "{said}");
    // a program without a shell's characters is started by it, too
    assert!(run("plain", "/bin/echo words").2.contains("started as"));
    // a script from standard input, with an interpreter of its own or none
    for (queue, script) in [("plain", "#!/bin/bash\necho $BASH_VERSION $0\n"), ("shell", "echo x")]
    {
        let _ = std::fs::remove_file(&out);
        let said = rig.feed("bsub", &["-q", queue, "-o", out.to_str().unwrap()], script);
        let job = super::rig::job_id(&said.out).unwrap();
        assert_eq!(rig.end_of(job), "DONE", "{}", text_of(&rig, "out"));
    }
    // other queues know nothing of it
    let other = rig.bsub(&["-o", "/dev/null", "test -z \"$LSB_JOB_STARTER\""]);
    assert_eq!(rig.end_of(other), "DONE");
}

#[test]
fn actions_of_the_queue_control_jobs_and_one_that_hangs_does_not_keep_a_job() {
    let rig = Rig::up("controls", 1);
    let log = rig.path("actions").display().to_string();
    let lines = format!(
        "JOB_CONTROLS = SUSPEND[echo susp $LSB_JOBID $LSB_SUSP_REASONS $LS_EXEC_T >> {log}; \
         kill -STOP $LSB_JOBPIDS] RESUME[echo res >> {log}; kill -CONT $LSB_JOBPIDS] \
         TERMINATE[echo term >> {log}; sleep 4321]"
    );
    let gentle =
        format!("JOB_CONTROLS = TERMINATE[echo gentle >> {log}; kill -USR1 $LSB_JOBPGIDS]");
    with_queues(&rig, &[("ctl", &lines), ("gentle", &gentle)]);
    let shown = rig.ok("bqueues", &["-l", "gentle"]);
    assert!(shown.contains("JOB_CONTROLS:\n    TERMINATE:  [echo gentle"), "{shown}");
    let job = rig.bsub(&["-q", "ctl", "-o", "/dev/null", "sleep 4000"]);
    wait_for("the job", || rig.stat(job) == "RUN");
    let id = job.to_string();
    let pid: u32 = {
        let mut pids = String::new();
        wait_for("its process", || {
            pids = rig.field(&id, "pids");
            pids.trim().split([',', ' ']).next().is_some_and(|p| p.parse::<u32>().is_ok())
        });
        pids.trim().split([',', ' ']).next().unwrap().parse().unwrap()
    };
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().chars().next().unwrap()
    };
    rig.ok("bstop", &[&id]);
    wait_for("USUSP", || rig.stat(job) == "USUSP");
    assert_eq!(text_of(&rig, "actions"), format!("susp {id} 2 JOB_CONTROLS\n"));
    wait_for("stopped", || state() == 'T');
    rig.ok("bresume", &[&id]);
    wait_for("RUN", || rig.stat(job) == "RUN");
    wait_for("going on", || state() != 'T');
    assert!(text_of(&rig, "actions").ends_with("res\n"));
    // six intervals of a second, and the usual signals
    rig.ok("bkill", &[&id]);
    wait_for("the command", || text_of(&rig, "actions").ends_with("term\n"));
    assert_eq!(rig.stat(job), "RUN");
    assert_eq!(rig.end_of(job), "EXIT");
    let sleeps = || {
        let all = lsf::sys::procs::all().into_iter();
        let cmdline = |pid: u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        all.filter(|p| cmdline(p.pid) == b"sleep\x004321\0").count()
    };
    wait_for("the end of the command", || sleeps() == 0);
    // a job that ends as it was asked to
    let trap = "trap 'exit 7' USR1; touch ready; while :; do sleep 0.1; done";
    let command = format!("cd {} && {trap}", rig.path("").display());
    let job = rig.bsub(&["-q", "gentle", "-o", "/dev/null", &command]);
    wait_for("the job", || rig.path("ready").exists() && rig.stat(job) == "RUN");
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    let why = rig.ok("bjobs", &["-l", &job.to_string()]);
    assert!(why.contains("Exited with exit code 7"), "{why}");
    assert!(why.contains("TERM_OWNER"), "{why}");
    assert!(text_of(&rig, "actions").ends_with("gentle\n"));
}

#[test]
fn a_job_is_forced_onto_a_closed_host_and_migrates_from_there_over_a_restart_of_mbatchd() {
    let rig = Rig::up("migrate", 2);
    let runs = rig.path("runs").display().to_string();
    let command = format!("echo $LSB_HOSTS $LSB_RESTART >> {runs}; exec sleep 4000");
    let job = rig.bsub(&["-H", "-r", "-o", "/dev/null", &command]);
    let id = job.to_string();
    rig.ok("badmin", &["hclose", "host2"]);
    assert_eq!(
        rig.ok("brun", &["-m", "host2", &id]),
        format!("Job <{id}> is being forced to run.\n")
    );
    wait_for("the first run", || text_of(&rig, "runs") == "host2\n");
    wait_for("RUN", || rig.stat(job) == "RUN");
    rig.kill9("mbatchd", "host1");
    wait_for("mbatchd", || rig.run("bjobs", &[]).code == 0);
    assert_eq!(rig.field(&id, "exec_host"), "host2");
    // host2 takes no job by itself
    let said = rig.ok("bmig", &["-m", "host2"]);
    assert_eq!(said, format!("Job <{id}> is being migrated\n"));
    wait_for("the second run", || text_of(&rig, "runs") == "host2\nhost1 Y\n");
    wait_for("RUN", || rig.stat(job) == "RUN");
    rig.run("bkill", &[&id]);
    assert_eq!(rig.end_of(job), "EXIT");
}
