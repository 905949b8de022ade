//! bsub -I, -Ip, -Is: a job scheduled like any other, with the input and output of the bsub that
//! waits for it; what becomes of both when one of them, a daemon or the job's host goes.

use super::rig::{Rig, Said, kill, wait_for};
use super::terminal::Terminal;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

/// The messages about a job that starts at once.
const BEGUN: &str = "<<Waiting for dispatch ...>>\n<<Starting on host1>>\n";

fn up(name: &str) -> Rig {
    let rig = Rig::up(name, 1);
    rig.ready();
    rig
}

/// Lets the host run thirty jobs at a time.
fn more_slots(rig: &Rig) {
    let slots = "Begin Host\nHOST_NAME MXJ\ndefault 30\nEnd Host\n";
    std::fs::write(rig.configdir().join("lsb.hosts"), slots).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
}

/// A bsub that runs, and the number of its job.
pub struct Bsub {
    pub child: Child,
    out: BufReader<std::process::ChildStdout>,
    pub job: u32,
}

impl Bsub {
    pub fn start(rig: &Rig, args: &[&str]) -> Bsub {
        Bsub::with(rig, args, &[])
    }

    pub fn with(rig: &Rig, args: &[&str], env: &[(&str, &str)]) -> Bsub {
        let mut c = rig.cmd("bsub");
        c.args(args).envs(env.iter().copied());
        c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = c.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let job = super::rig::job_id(&line).unwrap_or_else(|| panic!("{line}"));
        Bsub { child, out, job }
    }

    /// Waits for this line of output.
    pub fn line(&mut self, text: &str) {
        let mut line = String::new();
        while line.trim_end() != text {
            line.clear();
            assert_ne!(self.out.read_line(&mut line).unwrap(), 0, "no line {text}");
        }
    }

    /// Waits for the end of bsub: its exit code and stderr, and what else was put out.
    pub fn end(mut self) -> Said {
        drop(self.child.stdin.take());
        let mut out = String::new();
        self.out.read_to_string(&mut out).unwrap();
        let mut said = Said::from(self.child.wait_with_output().unwrap());
        said.out = out;
        said
    }
}

#[test]
fn interactive_job_has_the_input_output_and_exit_code_of_its_bsub() {
    let rig = up("inter");
    let said = rig.run("bsub", &["-I", "pwd; echo e >&2; echo $LSB_INTERACTIVE; exit 3"]);
    let submitted = |n: u32| format!("Job <{n}> is submitted to default queue <normal>.\n");
    let here = rig.path("").display().to_string();
    let here = here.trim_end_matches('/');
    let want = format!("{}{here}\ne\nY\n", submitted(1));
    let lines = |text: &str| {
        let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
        all.sort();
        all
    };
    // output and error output are two pipes, whose order nobody knows
    assert_eq!((said.code, lines(&said.out)), (3, lines(&want)), "{said:?}");
    assert_eq!(said.err, BEGUN);
    let mut apart = rig.cmd("bsub");
    apart.env("LSF_INTERACTIVE_STDERR", "y").args(["-I", "echo o; echo e >&2"]);
    let said = Said::from(apart.output().unwrap());
    assert_eq!((said.out, said.err), (format!("{}o\n", submitted(2)), format!("{BEGUN}e\n")));
    // from a pipe, bytes of every kind, to its end
    let said = rig.feed("bsub", &["-I", "od -An -tx1; echo over"], "a\u{ff}\0b\n");
    assert_eq!(said.out, format!("{} 61 c3 bf 00 62 0a\nover\n", submitted(3)));
    // files take the place of the terminal where they are named
    std::fs::write(rig.path("in"), "from a file\n").unwrap();
    let said = rig.feed("bsub", &["-I", "-i", "in", "-e", "err", "cat; echo e >&2"], "not read");
    assert_eq!(said.out, format!("{}from a file\n", submitted(4)));
    wait_for("the error output", || std::fs::read_to_string(rig.path("err")).is_ok());
    assert_eq!(rig.read("err"), "e\n");
    // a signal ends it; a command that is not there
    assert_eq!(rig.run("bsub", &["-I", "kill -TERM $$"]).code, 143);
    assert_eq!(rig.run("bsub", &["-I", "/no/such"]).code, 127);
    // a pre-execution command has no terminal, and the job runs after it
    let said = rig.run("bsub", &["-I", "-E", "echo not shown; test -f in", "echo ran"]);
    assert_eq!((said.code, said.out), (0, format!("{}ran\n", submitted(7))));
    // -o takes output and report
    let said = rig.run("bsub", &["-I", "-o", "o", "echo into the file"]);
    assert_eq!((said.code, said.out), (0, submitted(8)));
    wait_for("the report", || rig.read("o").contains("into the file"));
    // the numbers of lsbatch in the log: QUEUE and INTERACTIVE, PTY, PTY_SHELL
    assert_eq!(rig.run("bsub", &["-Is", "true"]).code, 0);
    let log = std::fs::read_to_string(rig.logdir().join("lsb.events")).unwrap();
    let bits = |job: &str| {
        let line = log.lines().find(|l| l.starts_with("\"JOB_NEW\"") && l.contains(job)).unwrap();
        line.split(' ').nth(5).unwrap().parse::<u32>().unwrap() & 0x1c00_0000
    };
    assert_eq!((bits(" 1 0 "), bits(" 9 0 ")), (0x400_0000, 0x1c00_0000));
    let acct = rig.logdir().join("lsb.acct");
    let logged = |number: &str| {
        let text = std::fs::read_to_string(&acct).unwrap_or_default();
        let mut lines = text.lines().map(|l| l.split(' ').collect::<Vec<_>>());
        let line = lines.find(|words| words.get(3) == Some(&number))?;
        Some(line[5].parse::<u32>().unwrap() & 0x1c00_0000)
    };
    wait_for("the account", || logged("9").is_some());
    assert_eq!((logged("1"), logged("9")), (Some(0x400_0000), Some(0x1c00_0000)));
    let long = rig.ok("bjobs", &["-l", "9"]).replace("\n                     ", "");
    let head = "Queue <normal>, Interactive pseudo-terminal shell mode, Command <true>";
    assert!(long.contains(head), "{long}");
}

#[test]
fn much_output_and_input_go_through_an_interactive_job_unchanged() {
    let rig = up("much");
    let file = rig.path("data");
    let make = format!("head -c 40000000 /dev/urandom > {}", file.display());
    assert!(std::process::Command::new("sh").args(["-c", &make]).status().unwrap().success());
    let sum = |path: &std::path::Path| {
        let mut c = std::process::Command::new("cksum");
        c.stdin(std::fs::File::open(path).unwrap()).output().unwrap().stdout
    };
    let mut c = rig.cmd("bsub");
    c.env("BSUB_STDERR", "y").args(["-I", "cat"]).stdin(std::fs::File::open(&file).unwrap());
    let back = rig.path("back");
    c.stdout(std::fs::File::create(&back).unwrap()).stderr(Stdio::null());
    assert!(c.status().unwrap().success());
    assert_eq!(sum(&file), sum(&back));
    // a reader that goes away ends the job, and not with a whole terabyte
    let mut endless = Bsub::start(&rig, &["-I", "yes"]);
    endless.line("y");
    let (mut child, job) = (endless.child, endless.job);
    drop(endless.out);
    child.wait().unwrap();
    assert_eq!(rig.end_of(job), "EXIT");
}

/// The line that bsub itself has to show on a closed output is none that anybody waits for.
#[test]
fn closed_standard_descriptors_are_missed_by_the_job_that_uses_them() {
    let rig = up("interclosed");
    let sh = |line: &str| {
        let mut c = Command::new("sh");
        rig.dress(&mut c);
        Said::from(c.args(["-c", line]).env("BSUB_QUIET", "y").output().unwrap())
    };
    let words = "bsub: standard output: Bad file descriptor\n";
    for (line, code, out, err) in [
        ("bsub -I 'echo x' >&-", 246, "", words),
        ("bsub -I 'echo x; exit 3' >&-", 246, "", words),
        ("bsub -I 'exit 3' >&- <&- 2>&-", 3, "", ""),
        ("bsub -I 'cat; echo x' <&-", 0, "x\n", ""),
        ("bsub -I 'echo x' 2>&-", 0, "x\n", ""),
    ] {
        let said = sh(line);
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (code, out, err), "{line}");
    }
}

#[test]
fn bkill_ends_an_interactive_job_and_its_bsub() {
    let rig = up("bkilled");
    let mut b = Bsub::start(&rig, &["-I", "echo on; exec sleep 600"]);
    b.line("on");
    let peeked = rig.run("bpeek", &[&b.job.to_string()]);
    let words = format!("Job <{}> : Cannot bpeek an interactive job.\n", b.job);
    assert_eq!((peeked.code, peeked.err), (255, words));
    assert_eq!(rig.field(&b.job.to_string(), "interactive"), "Y");
    rig.ok("bkill", &[&b.job.to_string()]);
    let said = b.end();
    assert_eq!((said.code, said.err.as_str()), (130, BEGUN));
    // while it is pending
    let b = Bsub::start(&rig, &["-I", "-b", "23:59", "-q", "normal", "true"]);
    rig.ok("bkill", &[&b.job.to_string()]);
    let said = b.end();
    assert_eq!(said.code, 246);
    assert!(said.err.ends_with("<<Waiting for dispatch ...>>\n<<Terminated while pending>>\n"));
    // ^C while it is pending
    let b = Bsub::start(&rig, &["-I", "-H", "true"]);
    let (pid, job) = (b.child.id(), b.job);
    wait_for("bsub to listen", || rig.stat(job) == "PSUSP" && listens(pid));
    kill(pid, 2);
    let said = b.end();
    assert_eq!((said.code, rig.end_of(job).as_str()), (246, "EXIT"), "{}", said.err);
    // ^C while it runs is the job's own matter
    let mut b = Bsub::start(
        &rig,
        &["-I", "trap 'echo caught; exit 9' INT; echo on; while :; do sleep 0.1; done"],
    );
    b.line("on");
    kill(b.child.id(), 2);
    b.line("caught");
    assert_eq!(b.end().code, 9);
}

/// Whether a process has SIGINT blocked, to hear of it by a descriptor.
fn listens(pid: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = text.lines().find_map(|l| l.strip_prefix("SigBlk:")).map(str::trim);
    mask.and_then(|m| u64::from_str_radix(m, 16).ok()).is_some_and(|m| m & 2 != 0)
}

#[test]
fn suspension_and_pending_reasons_are_shown_where_the_site_wants_it() {
    let rig = up("enhanced");
    let enhanced = [("LSB_INTERACT_MSG_ENH", "Y")];
    let mut b = Bsub::with(&rig, &["-I", "-H", "echo on; read x; echo got $x"], &enhanced);
    let job = b.job.to_string();
    let mut err = BufReader::new(b.child.stderr.take().unwrap());
    let mut until = |text: &str| {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(err.read_line(&mut line).unwrap(), 0, "no line {text}");
        }
        line
    };
    let held = until("<< ");
    assert!(held.contains("suspended") && held.ends_with(" >>\n"), "{held}");
    rig.ok("bresume", &[&job]);
    until("<<Starting on host1>>");
    b.line("on");
    rig.ok("bstop", &[&job]);
    let stopped = until("<< The job");
    assert!(stopped.contains("suspended"), "{stopped}");
    rig.ok("bresume", &[&job]);
    until("<< The job was resumed >>");
    b.child.stdin.take().unwrap().write_all(b"it\n").unwrap();
    b.line("got it");
    b.child.wait().unwrap();
}

/// The processes of jobs that are being set up on host1, and the one that makes them.
fn starters(rig: &Rig) -> Vec<u32> {
    let launcher = rig.pid("launcher", "host1").unwrap().to_string();
    let ps = Command::new("ps").args(["--ppid", &launcher, "-o", "pid=,comm="]).output().unwrap();
    let text = String::from_utf8(ps.stdout).unwrap();
    let named = text.lines().filter_map(|line| line.trim().split_once(" starter"));
    named.map(|(pid, _)| pid.trim().parse().unwrap()).collect()
}

/// The state of a process: T is stopped.
fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}

#[test]
fn job_that_is_stopped_before_its_bsub_has_joined_it_goes_on() {
    let rig = up("gate");
    assert_eq!(rig.end_of(super::rig::job_id(&rig.ok("bsub", &["true"])).unwrap()), "DONE");
    let (res, before) = (rig.pid("res", "host1").unwrap(), starters(&rig));
    // the job waits for what res does not say
    kill(res, 19);
    let b = Bsub::start(&rig, &["-I", "echo on; exit 3"]);
    let new = || starters(&rig).into_iter().find(|pid| !before.contains(pid));
    wait_for("the process of the job", || new().is_some_and(|pid| state(pid) == 'S'));
    let pid = new().unwrap();
    // it is there when it has handed its output over
    let open = || std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let handed = |fd: std::fs::DirEntry| {
        std::fs::read_link(fd.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    wait_for("its connection", || open().filter_map(Result::ok).any(handed));
    kill(pid, 19);
    wait_for("its stop", || state(pid) == 'T');
    kill(pid, 18);
    wait_for("its continuation", || state(pid) == 'S');
    kill(res, 18);
    let said = b.end();
    assert_eq!((said.code, said.out.as_str()), (3, "on\n"), "{said:?}");
}

#[test]
fn job_ends_with_its_bsub() {
    let rig = up("orphan");
    for args in [&["-I"][..], &["-Ip"], &["-Is"]] {
        let command = "echo on; sleep 600";
        let mut b = Bsub::start(&rig, &[args, &[command]].concat());
        b.line("on");
        let pid = b.child.id();
        kill(pid, 9);
        b.child.wait().unwrap();
        assert_eq!(rig.end_of(b.job), "EXIT", "{args:?}");
    }
}

#[test]
fn interactive_jobs_outlive_the_daemons_but_not_all_that_keeps_them() {
    let rig = up("outlive");
    rig.set_conf("LSF_RES_TIMEOUT", "1");
    more_slots(&rig);
    let mut jobs: Vec<Bsub> = (0..20)
        .map(|_| Bsub::start(&rig, &["-I", "echo on; read x; echo got $x; exit 7"]))
        .collect();
    jobs.iter_mut().for_each(|b| b.line("on"));
    for daemon in ["mbatchd", "sbatchd", "res"] {
        assert!(rig.kill9(daemon, "host1"), "{daemon}");
        wait_for("the daemons", || rig.run("bjobs", &["-a"]).code == 0);
    }
    // the launcher replaces itself
    kill(rig.pid("launcher", "host1").unwrap(), 12);
    let last = jobs.pop().unwrap();
    for mut job in jobs {
        job.child.stdin.take().unwrap().write_all(b"it\n").unwrap();
        job.line("got it");
        assert_eq!(job.end().code, 7);
    }
    // nobody has the pipes
    let job = last.job;
    rig.kill9("reskeeper", "host1");
    rig.kill9("res", "host1");
    let said = last.end();
    assert!(said.err.contains(&format!("; job <{job}> is killed")), "{said:?}");
    assert_ne!(said.code, 0);
    assert_eq!(rig.end_of(job), "EXIT");
}

#[test]
fn requeued_interactive_job_is_waited_for_again() {
    let rig = up("again");
    let script = "test -f second || { touch second; exit 5; }; echo it is; exit 2";
    let said = rig.run("bsub", &["-I", "-Q", "5", script]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.out.ends_with("it is\n"), "{said:?}");
    assert_eq!(said.err, [BEGUN, BEGUN].concat());
}

#[test]
fn job_on_a_terminal_has_its_modes_size_and_keys() {
    let rig = up("interpty");
    let mut t = Terminal::new(&rig);
    t.line("$L bsub -Ip 'tty; stty size; echo $TERM; test -O $(tty) && echo my own'", "/dev/pts");
    t.until("30 90");
    t.until("xterm");
    t.until("my own");
    t.until("$ ");
    t.line("stty -echo; $L bsub -Ip stty -a; stty echo; echo E$((1))O", "-echo ");
    t.until("E1O");
    t.until("$ ");
    // it makes no process while the key comes: a shell that waits for the exec of its child is not
    // stopped, and the child, which is, never execs
    let draw = "trap 'echo size $(stty size)' WINCH; echo o\"\"n; \
                sleep 600 & while :; do wait; done";
    t.line(
        &format!("$L bsub -Ip \"{}\"", draw.replace('$', "\\$").replace('"', "\\\"")),
        "\non\r\n",
    );
    t.size(41, 77);
    t.until("size 41 77");
    t.keys("\x1a");
    t.until("Stopped");
    t.line("echo outside $((40+2))", "outside 42");
    t.size(42, 78);
    t.keys("fg\n");
    t.until("size 42 78");
    t.keys("\x1c");
    t.until("$ ");
    t.line("echo rc=$?", "rc=131");
    t.line("stty -a", " echo ");
}

#[test]
fn interactive_shell_has_job_control_of_its_own() {
    let rig = up("intershell");
    let mut t = Terminal::new(&rig);
    t.line("$L bsub -Is bash --norc -i", "<<Starting on host1>>");
    t.until("$ ");
    let runs = |words: &str| {
        let out = std::process::Command::new("pgrep").args(["-xf", words]).output();
        out.unwrap().status.success()
    };
    t.line("sleep 922", "sleep 922");
    wait_for("it to run", || runs("sleep 922"));
    t.keys("\x1a");
    t.until("Stopped");
    t.line("kill -9 %1; wait; echo in $((3+4)) $LSB_INTERACTIVE", "in 7 Y");
    t.until("$ ");
    t.line("sleep 923", "sleep 923");
    wait_for("it to run", || runs("sleep 923"));
    t.keys("\x03");
    t.until("^C");
    t.until("$ ");
    t.line("exit 6", "exit\r\n");
    t.until("$ ");
    t.line("echo rc=$?", "rc=6");
}

#[test]
fn battach_runs_a_shell_beside_a_running_job() {
    let rig = up("battach");
    std::fs::create_dir(rig.path("w")).unwrap();
    let job = rig.bsub(&["-cwd", "w", "sleep 600"]);
    wait_for("the job", || rig.stat(job) == "RUN");
    wait_for("its directory", || rig.field(&job.to_string(), "exec_cwd").ends_with("/w"));
    let id = job.to_string();
    let said = rig.feed("battach", &[&id], "pwd; echo in $LSB_JOBID; tty; exit 5\n");
    assert_eq!(said.code, 5, "{said:?}");
    let here = format!("{}\r\n", rig.path("w").display());
    assert!(said.out.contains(&here) && said.out.contains(&format!("in {job}\r\n")), "{said:?}");
    assert!(said.out.contains("/dev/pts/"), "{said:?}");
    // another shell, and a program that is none
    let said = rig.feed("battach", &["-L", "/bin/bash", &id], "echo v$BASH; exit\n");
    assert!(said.out.contains("v/bin/bash"), "{said:?}");
    assert_eq!(rig.run("battach", &["-L", "/bin/false", &id]).code, 1);
    let held = rig.bsub(&["-H", "true"]).to_string();
    for (args, words) in [
        (&["-L", "sh", &id][..], "sh: the shell must be an absolute path"),
        (&["-m", "nowhere", &id], "nowhere: Bad host name, host group name or cluster name"),
        (&["999"], "Job <999>: No matching job found"),
        (&[&held], &format!("Job <{held}>: Job has not started yet")),
    ] {
        let said = rig.run("battach", args);
        assert_eq!((said.code, said.err), (255, format!("{words}\n")), "{args:?}");
    }
    rig.ok("bkill", &[&id]);
    rig.end_of(job);
    let said = rig.run("battach", &[&id]);
    assert_eq!(said.err, format!("Job <{job}>: Job has already finished\n"));
}

#[test]
fn output_of_many_short_jobs_is_shown_to_the_last() {
    let rig = up("short");
    more_slots(&rig);
    // submitted together, so that ends are told before their bsubs look
    let all = "for n in $(seq 40); do \
               bsub -I \"echo all $n; exit 4\" > out.$n 2> err.$n || echo $? > code.$n & done; wait";
    for _ in 0..3 {
        let mut c = std::process::Command::new("sh");
        rig.dress(&mut c);
        assert!(c.args(["-c", all]).status().unwrap().success());
        for n in 1..=40 {
            let out = rig.read(&format!("out.{n}"));
            let said = (out.lines().nth(1), rig.read(&format!("code.{n}")));
            let want = (Some(&*format!("all {n}")), "4\n".to_string());
            assert_eq!(said, want, "{out}{}", rig.read(&format!("err.{n}")));
        }
    }
}
