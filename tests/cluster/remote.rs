//! lsrun and res: a remote task is as one that runs here; input, output, signals, ends, and what
//! is left when one of the ends goes.

use super::rig::{Rig, Said, job_id, kill, program, wait_for};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn res_ready(rig: &Rig, host: &str) {
    wait_for("res to answer", || rig.run("lsrun", &["-L", "-m", host, "true"]).code == 0);
}

fn up(name: &str) -> Rig {
    let rig = Rig::up(name, 2);
    res_ready(&rig, "host2");
    rig
}

fn sh(rig: &Rig, script: &str) -> Said {
    rig.run("lsrun", &["-m", "host2", "sh", "-c", script])
}

/// Starts lsrun with pipes.
fn start(rig: &Rig, args: &[&str]) -> Child {
    let mut c: Command = rig.cmd("lsrun");
    c.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    c.spawn().unwrap()
}

fn stop(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Processes whose arguments contain this word.
fn running(word: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for e in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = e.file_name().to_string_lossy().parse::<u32>() else { continue };
        let text = std::fs::read(e.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = text.split(|b| *b == 0).collect();
        let own = words.first().is_some_and(|w| w.ends_with(b"lsf"));
        if !own && words.contains(&word.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

#[test]
fn output_that_cannot_be_written_is_told_and_the_task_has_not_ended_well() {
    let rig = up("lsrunfull");
    let words = "standard output: No space left on device\n";
    let args: [&[&str]; 5] = [
        &["lsrun", "-m", "host2", "sh", "-c", "echo x"],
        &["lsrun", "-m", "host2", "sh", "-c", "echo x; exit 7"],
        &["lsrun", "-m", "host2", "sh", "-c", "echo x; kill -13 $$"],
        &["lsgrun", "-m", "host2", "sh", "-c", "echo x"],
        &["lsgrun", "-p", "-m", "host2", "sh", "-c", "echo x"],
    ];
    for (args, code) in args.into_iter().zip([246; 5]) {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let said = Said::from(rig.cmd(args[0]).args(&args[1..]).stdout(full).output().unwrap());
        assert_eq!((said.code, said.err), (code, format!("{}: {words}", args[0])), "{args:?}");
    }
}

/// A closed output is one that cannot be written, for the task that writes to it.
#[test]
fn closed_standard_descriptors_are_missed_by_the_task_that_uses_them() {
    let rig = up("lsrunclosed");
    let sh = |line: &str| {
        let mut c = Command::new("sh");
        rig.dress(&mut c);
        Said::from(c.args(["-c", line]).output().unwrap())
    };
    let words = |command: &str| format!("{command}: standard output: Bad file descriptor\n");
    for (line, code, out, err) in [
        ("lsrun -m host2 sh -c 'echo x' >&-", 246, "", words("lsrun")),
        ("lsrun -m host2 sh -c 'echo x; exit 7' >&-", 246, "", words("lsrun")),
        ("lsgrun -m host2 sh -c 'echo x' >&-", 246, "", words("lsgrun")),
        ("lsgrun -p -m host2 sh -c 'echo x' >&-", 246, "", words("lsgrun")),
        ("lsrun -m host2 sh -c 'exit 7' >&- <&- 2>&-", 7, "", String::new()),
        ("lsgrun -p -m host2 true >&- <&- 2>&-", 0, "", String::new()),
        ("lsrun -m host2 sh -c 'cat; echo x' <&-", 0, "x\n", String::new()),
        ("lsrun -m host2 sh -c 'echo x; echo y >&2' 2>&-", 246, "x\n", String::new()),
        // what runs here has the closed descriptor itself
        ("lsrun -m host1 sh -c 'echo x 2> /dev/null' >&-", 1, "", String::new()),
        // nobody waits for what a command of its own has to show
        ("lsid >&-", 0, "", String::new()),
        ("lsid > /dev/null 2>&-", 0, "", String::new()),
    ] {
        let said = sh(line);
        assert_eq!((said.code, said.out.as_str(), said.err), (code, out, err), "{line}");
    }
}

#[test]
fn remote_task_has_the_surroundings_of_a_local_one() {
    let rig = up("lsrun");
    let said = sh(&rig, "pwd; umask; ulimit -n; ulimit -c; echo $MARK $LSF_LOCAL_HOST; echo e >&2");
    assert_eq!((said.code, said.err.as_str()), (0, "e\n"), "{said:?}");
    let lsf = super::rig::binary();
    let script = format!(
        "umask 027; ulimit -n 77; ulimit -c 0; cd conf; MARK=here exec {} lsrun -m host2 sh -c \
         'pwd; umask; ulimit -n; ulimit -c; echo $MARK $LSF_LOCAL_HOST; exit 9'",
        lsf.display()
    );
    let mut c = Command::new("sh");
    rig.dress(&mut c);
    let said = Said::from(c.args(["-c", &script]).output().unwrap());
    let want = format!("{}\n0027\n77\n0\nhere host2\n", rig.path("conf").display());
    assert_eq!((said.code, said.out), (9, want), "{}", said.err);

    // the best host is one of the cluster, and -v says which
    let said = rig.run("lsrun", &["-v", "echo", "x"]);
    assert_eq!((said.code, said.out.as_str()), (0, "x\n"));
    assert!(said.err.starts_with("<<Execute echo on remote host host"), "{}", said.err);
    // what is to run here runs here, without RES but with -L
    let parent = |args: &[&str]| {
        let more = ["-m", "host1", "sh", "-c", "cat /proc/$PPID/comm"];
        rig.ok("lsrun", &[args, &more].concat())
    };
    let me = std::fs::read_to_string(format!("/proc/{}/comm", std::process::id())).unwrap();
    assert_ne!(parent(&["-L"]), me);
    assert_eq!(parent(&[]), me);
    let said = rig.run("lsrun", &["-R", "select[mem<0]", "true"]);
    assert_eq!(said.code, 1, "{}", said.err);
    let said = rig.run("lsrun", &["-m", "nosuch", "true"]);
    assert_eq!(said.code, 246, "{}", said.err);
    // ends
    assert_eq!(sh(&rig, "kill -TERM $$").code, 128 + 15);
    assert_eq!(rig.run("lsrun", &["-m", "host2", "/no/such/program"]).code, 127);
    // the job starter takes the command as one word
    let mut c = rig.cmd("lsrun");
    c.env("LSF_JOB_STARTER", "/bin/sh -c").args(["-m", "host2", "echo", "a;", "echo", "b"]);
    assert_eq!(Said::from(c.output().unwrap()).out, "a\nb\n");
    lists_and_fallbacks(&rig);
    // a directory that is not there
    let dir = rig.path("gone");
    std::fs::create_dir(&dir).unwrap();
    let mut c = Command::new("sh");
    rig.dress(&mut c);
    let line = format!("rmdir {0}; exec {1} lsrun -m host2 pwd", dir.display(), lsf.display());
    let said = Said::from(c.current_dir(&dir).args(["-c", &line]).output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
}

/// The list of remote tasks says where a task may run; -l has it run here where it cannot there.
fn lists_and_fallbacks(rig: &Rig) {
    let home = rig.path("home");
    std::fs::create_dir(&home).unwrap();
    let run = |args: &[&str]| {
        let mut c = rig.cmd("lsrun");
        Said::from(c.env("HOME", &home).args(args).output().unwrap())
    };
    rig.write(
        "conf/lsf.task",
        "Begin RemoteTasks\n+ printenv/select[hname==host2]\n\
                                + pwd/select[mem<0]\nEnd RemoteTasks\n",
    );
    let name = ["printenv", "LSF_LOCAL_HOST"];
    assert_eq!(run(&name).out, "host2\n");
    // by its last name; -R stands above the list
    assert_eq!(run(&["/usr/bin/printenv", "LSF_LOCAL_HOST"]).out, "host2\n");
    let here = [&["-R", "select[hname==host1]"], &name[..]].concat();
    assert_eq!(run(&here).out, "host1\n");
    assert_eq!(run(&["pwd"]).code, 1, "no host meets it");
    rig.write(
        "home/.lsftask",
        "Begin RemoteTasks\n+ printenv/select[hname==host1]\n\
                                End RemoteTasks\n",
    );
    assert_eq!(run(&name).out, "host1\n");
    let said = run(&["-l", "-m", "nosuch", "echo", "done"]);
    assert_eq!((said.code, said.out.as_str()), (0, "done\n"), "{said:?}");
    assert!(said.err.contains("executed on this host"), "{said:?}");
    let said = run(&["-m", "nosuch", "true"]);
    assert_eq!((said.code, said.err.as_str()), (246, "lsrun: nosuch: Bad host name\n"));
    let none = ["-R", "select[mem>99999999]", "echo", "done"];
    let (said, here) = (run(&none), run(&[&["-l"], &none[..]].concat()));
    assert_eq!((said.code, here.code, here.out.as_str()), (1, 0, "done\n"), "{said:?} {here:?}");
    assert!(here.err.contains("Not enough host(s) currently eligible; executed"), "{here:?}");
}

#[test]
fn input_and_output_of_a_task_arrive_whole_and_in_order() {
    let rig = up("bytes");
    let mut data = Vec::with_capacity(3 << 20);
    let mut x = 7u32;
    while data.len() < 3 << 20 {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        data.push((x >> 24) as u8);
    }
    let mut child = start(&rig, &["-m", "host2", "cat"]);
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let sent = data.clone();
    let writer = std::thread::spawn(move || to.write_all(&sent));
    let mut got = Vec::new();
    from.read_to_end(&mut got).unwrap();
    writer.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(got == data, "{} bytes of {}", got.len(), data.len());

    // a reader that goes away ends the task, wherever it is
    for _ in 0..8 {
        let mut child = start(&rig, &["-m", "host2", "yes", "lsf-yes-mark"]);
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut [0u8; 26]).unwrap();
        drop(out);
        assert!(!child.wait().unwrap().success());
    }
    wait_for("yes to end", || running("lsf-yes-mark").is_empty());
}

#[test]
fn input_of_a_task_is_sent_no_faster_than_it_is_read() {
    let rig = up("feed");
    let mut child = start(&rig, &["-m", "host2", "sleep", "8"]);
    let mut to = child.stdin.take().unwrap();
    let (tx, rx) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let piece = [b'x'; 4096];
        for n in 1u64.. {
            if to.write_all(&piece).is_err() {
                return;
            }
            let _ = tx.send(n * 4096);
        }
    });
    let mut took = 0;
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        took = rx.try_iter().last().unwrap_or(took);
        std::thread::sleep(Duration::from_millis(20));
    }
    // the window, the task's pipe, our own
    assert!(took <= (512 + 256 + 320) << 10, "{took} bytes were taken");
    // and a signal does not wait behind it
    let at = Instant::now();
    kill(child.id(), 15);
    assert!(!child.wait().unwrap().success());
    assert!(at.elapsed() < Duration::from_secs(2), "{:?}", at.elapsed());
}

#[test]
fn signals_reach_the_task_and_its_children() {
    let rig = up("signals");
    let script = "trap 'echo got USR2' USR2; trap 'echo got INT; exit 4' INT; echo ready; \
                  while :; do sleep 0.05; done";
    let mut child = start(&rig, &["-m", "host2", "sh", "-c", script]);
    let mut out = child.stdout.take().unwrap();
    let mut said = String::new();
    let mut until = |word: &str| {
        let mut buf = [0u8; 256];
        while !said.contains(word) {
            let n = out.read(&mut buf).unwrap();
            assert!(n > 0, "{word} did not come: {said}");
            said.push_str(&String::from_utf8_lossy(&buf[..n]));
        }
    };
    until("ready");
    kill(child.id(), 12);
    until("got USR2");
    kill(child.id(), 2);
    until("got INT");
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

#[test]
fn tasks_end_when_their_command_or_all_that_keeps_them_dies() {
    let rig = Rig::up("cut", 2);
    let conf = rig.read("conf/lsf.conf") + "\nLSF_RES_TIMEOUT=1\n";
    rig.write("conf/lsf.conf", &conf);
    rig.kill9("res", "host2");
    res_ready(&rig, "host2");
    // hung up at once
    let mut child = start(&rig, &["-m", "host2", "sleep", "917"]);
    wait_for("the task", || running("917").len() == 1);
    kill(child.id(), 9);
    child.wait().unwrap();
    wait_for("the task to end", || running("917").is_empty());
    // killed where it does not mind
    let script = "trap '' HUP PIPE; echo on; while :; do sleep 0.1; done";
    let mut child = start(&rig, &["-m", "host2", "sh", "-c", script, "lsf-cut-mark"]);
    child.stdout.take().unwrap().read_exact(&mut [0u8; 3]).unwrap();
    let at = Instant::now();
    kill(child.id(), 9);
    child.wait().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    // (a child that the shell forks has its words until exec)
    assert!(!running("lsf-cut-mark").is_empty(), "it had no second to end");
    wait_for("the task to be killed", || running("lsf-cut-mark").is_empty());
    assert!(at.elapsed() < Duration::from_secs(6), "{:?}", at.elapsed());
    // res is silent: the command gives it up
    let conf = rig.read("conf/lsf.conf") + "\nLSF_NIOS_RES_HEARTBEAT=0.01\n";
    rig.write("conf/lsf.conf", &conf);
    let mut child = start(&rig, &["-m", "host2", "sleep", "929"]);
    wait_for("the task", || running("929").len() == 1);
    std::thread::sleep(Duration::from_millis(1500));
    assert!(child.try_wait().unwrap().is_none(), "a res that answers is waited for");
    let res = rig.pid("res", "host2").unwrap();
    stop(res, rustix::process::Signal::STOP);
    assert_eq!(child.wait().unwrap().code(), Some(246));
    stop(res, rustix::process::Signal::CONT);
    wait_for("the task to end", || running("929").is_empty());
    // res dies and nobody keeps the task: the command says so, the task does not stay
    let mut child = start(&rig, &["-m", "host2", "sleep", "918"]);
    wait_for("the task", || running("918").len() == 1);
    rig.kill9("reskeeper", "host2");
    rig.kill9("res", "host2");
    assert_eq!(child.wait().unwrap().code(), Some(246));
    wait_for("the task to end", || running("918").is_empty());
    res_ready(&rig, "host2");
    // batch jobs are none of its business
    let job = rig.bsub(&["-m", "host2", "-o", "/dev/null", "sleep", "3"]);
    wait_for("the job to run", || rig.stat(job) == "RUN");
    rig.kill9("res", "host2");
    res_ready(&rig, "host2");
    assert_eq!(rig.end_of(job), "DONE");
}

#[test]
fn res_is_stopped_and_started_by_lsadmin() {
    let rig = up("resadmin");
    let said = rig.run("lsadmin", &["resshutdown", "-f", "host2"]);
    assert_eq!((said.code, said.err.as_str()), (0, "Shut down RES on <host2> ...... done\n"));
    wait_for("res to end", || rig.pid("res", "host2").is_none());
    assert_eq!(rig.run("lsrun", &["-m", "host2", "true"]).code, 246);
    // with LSF_RES_CONNECT_RETRY a command waits for it
    let conf = rig.read("conf/lsf.conf");
    rig.write("conf/lsf.conf", &format!("{conf}LSF_RES_CONNECT_RETRY=20\n"));
    let mut waits = rig.cmd("lsrun").args(["-m", "host2", "true"]).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(waits.try_wait().unwrap(), None);
    let said = rig.run("lsadmin", &["resstartup", "-f", "host2"]);
    assert_eq!((said.code, said.err.as_str()), (0, "Starting up RES on <host2> ...... done\n"));
    assert!(waits.wait().unwrap().success());
    rig.write("conf/lsf.conf", &conf);
    res_ready(&rig, "host2");
    let before = rig.pid("res", "host2");
    assert_eq!(rig.run("lsadmin", &["resrestart", "-f", "host2"]).code, 0);
    wait_for("another res", || rig.pid("res", "host2").is_some_and(|p| Some(p) != before));
    res_ready(&rig, "host2");
}

#[test]
fn esub_tells_eexec_before_the_task_begins() {
    let rig = up("eexec");
    let dir = rig.path("etc");
    std::fs::create_dir_all(&dir).unwrap();
    let put = |name: &str, text: &str| program(&dir.join(name), text);
    put("esub", "#!/bin/sh\necho \"ticket of $LSF_INVOKE_CMD\"\n");
    put("eexec", "#!/bin/sh\n{ cat; echo \"$LS_EXEC_T $MARK $LS_JOBPID\"; } > $OUT\n");
    rig.set_conf("LSF_SERVERDIR", dir.to_str().unwrap());
    rig.kill9("res", "host2");
    res_ready(&rig, "host2");
    let out = rig.path("eexec.out");
    let mut c = rig.cmd("lsrun");
    let show = "sed s/$$/me/ $OUT";
    c.env("OUT", &out).env("MARK", "m1").args(["-m", "host2", "sh", "-c", show]);
    let said = Said::from(c.output().unwrap());
    assert_eq!(said.out, "ticket of lsrun\nSTART m1 me\n", "{}", said.err);
    // for a task on this host too, and with the name of each command
    let mut c = rig.cmd("lsgrun");
    c.env("OUT", &out).args(["-m", "host2", "sh", "-c", "head -1 $OUT"]);
    assert_eq!(Said::from(c.output().unwrap()).out, "ticket of lsgrun\n");
    put("esub", "#!/bin/sh\nexit $LSB_SUB_ABORT_VALUE\n");
    let said = rig.run("lsrun", &["-m", "host2", "true"]);
    assert!(said.code == 246 && said.err.contains("Request aborted by esub"), "{said:?}");
}

/// The eexec hears of a checkpoint before echkpnt begins.
fn eexec_of_a_checkpoint(rig: &Rig, submit: &dyn Fn(&[&str]) -> u32) {
    let said = rig.path("eexec.out.CHKPNT");
    let echkpnt = format!("#!/bin/sh\nexec test -s {}\n", said.display());
    program(&rig.path("etc/echkpnt"), &echkpnt);
    let dir = rig.path("checkpoints").display().to_string();
    let id = submit(&["-k", &dir, "-o", "/dev/null", "sleep 300"]);
    wait_for("the job", || rig.stat(id) == "RUN");
    rig.ok("bchkpnt", &[&id.to_string()]);
    let history = || rig.ok("bhist", &["-l", &id.to_string()]);
    wait_for("the checkpoint", || history().contains("Checkpoint succeeded"));
    let text = std::fs::read_to_string(&said).unwrap();
    assert!(text.contains("ticket0of bsub\n") && text.contains(&format!("CHKPNT {id} m1 ")));
    rig.ok("bkill", &[&id.to_string()]);
}

#[test]
fn esub_tells_eexec_when_a_job_begins_and_when_it_has_ended() {
    let rig = up("eexecjob");
    let dir = rig.path("etc");
    std::fs::create_dir_all(&dir).unwrap();
    let put = |name: &str, text: &str| program(&dir.join(name), text);
    // bytes that no variable could hold
    put("esub", "#!/bin/sh\nprintf 'ticket\\000of %s\\n' $LSF_INVOKE_CMD\n");
    put("esub.more", "#!/bin/sh\necho \"and more: $1\"\n");
    let eexec = "#!/bin/sh\n{ cat | tr '\\000' 0; pwd; \
                 echo \"$LS_EXEC_T $LSB_JOBID $MARK $LS_JOBPID $LSB_JOBEXIT_STAT\"; } >> $OUT.$LS_EXEC_T\n";
    put("eexec", eexec);
    rig.set_conf("LSF_SERVERDIR", dir.to_str().unwrap());
    rig.kill9("sbatchd", "host2");
    let out = rig.path("eexec.out");
    let submit = |args: &[&str]| {
        let mut c = rig.cmd("bsub");
        c.env("OUT", &out).env("MARK", "m1").current_dir(rig.path("conf"));
        c.args(["-m", "host2", "-a", "more(x)"]).args(args);
        let said = Said::from(c.output().unwrap());
        job_id(&said.out).unwrap_or_else(|| panic!("{said:?}"))
    };
    let job = rig.path("job.out");
    let show = "echo $$; cat $OUT.START; env | grep ^LSB_EEXEC; test ! -e $OUT.END; exit $?";
    let id = submit(&["-H", "-oo", job.to_str().unwrap(), show]);
    // what esub said outlives the master
    rig.kill9("mbatchd", "host1");
    rig.ready();
    let env = rig.ok("bjobs", &["-env", &id.to_string()]);
    assert!(env.contains("MARK=m1\n") && !env.contains("EEXEC"), "{env}");
    rig.ok("bresume", &[&id.to_string()]);
    assert_eq!(rig.end_of(id), "DONE", "{}", std::fs::read_to_string(&job).unwrap());
    let text = std::fs::read_to_string(&job).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let cwd = rig.path("conf").display().to_string();
    let start = format!("START {id} m1 {} ", lines[0]);
    assert_eq!(lines[1..5], ["ticket0of bsub", "and more: x", cwd.as_str(), start.as_str()]);
    assert!(lines[5].is_empty(), "{text}");
    let end = || std::fs::read_to_string(out.with_extension("out.END")).unwrap_or_default();
    wait_for("the end", || end().ends_with(" 0\n"));
    assert!(end().starts_with(&format!("ticket0of bsub\nand more: x\n{cwd}\nEND {id} m1 ")));
    let log = std::fs::read(rig.logdir().join("lsb.events")).unwrap();
    let log = String::from_utf8_lossy(&log);
    // neither it nor its base64: others can read the log
    for word in ["ticket", "dGlja2V0", "EEXEC_DATA"] {
        assert!(!log.contains(word), "{word}");
    }
    eexec_of_a_checkpoint(&rig, &submit);
    // without the program there is nothing to run
    std::fs::remove_file(dir.join("eexec")).unwrap();
    std::fs::remove_file(out.with_extension("out.END")).unwrap();
    let id = submit(&["-o", "/dev/null", "true"]);
    assert_eq!(rig.end_of(id), "DONE");
    assert_eq!(end(), "");
}

#[test]
fn a_command_on_a_host_outside_the_cluster_says_so_and_ends() {
    let rig = Rig::up("outside", 1);
    for (applet, words) in [
        ("bjobs", vec![]),
        ("bsub", vec!["true"]),
        ("bhosts", vec![]),
        ("lsload", vec![]),
        ("lsrun", vec!["-m", "host1", "true"]),
    ] {
        let mut c = Command::new("timeout");
        c.arg("60").arg(super::rig::binary()).arg(applet).args(&words);
        rig.dress(&mut c);
        let said = Said::from(c.env("LSF_LOCAL_HOST", "elsewhere").output().unwrap());
        assert!(said.code != 0 && said.code != 124, "{applet}: {said:?}");
        let words = "host <elsewhere> is not in cluster <personal>";
        assert!(said.err.contains(words) && said.out.is_empty(), "{applet}: {said:?}");
    }
}
