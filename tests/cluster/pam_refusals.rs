//! Words that pam and TaskStarter refuse, and callers that pam does not believe (pam(1),
//! TaskStarter(1)).

use super::pam::{run, script, submit, up};
use super::rig::{Rig, wait_for};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The exit code of a command outside a job, and the first line of its error output.
fn said(rig: &Rig, applet: &str, words: &[&str]) -> (i32, String) {
    let said = rig.run(applet, words);
    assert_eq!(said.out, "", "{applet} {words:?}");
    (said.code, said.err.lines().next().unwrap_or_default().to_owned())
}

#[test]
fn words_that_do_not_fit_are_refused_with_their_reason() {
    let rig = Rig::up("pam-words", 1);
    let pam: [(&[&str], &str); 12] = [
        (&[], "-g is wanted"),
        (&["./a.out"], "./a.out: no option of pam; -g is wanted"),
        (&["-g"], "-g: the PJL is missing"),
        (&["-g", "0", "a", "b"], "-g 0: the PJL has at least one word, its name"),
        (&["-g", "-1", "a", "b"], "-g -1: the PJL has at least one word, its name"),
        (&["-g", "2", "a", "b"], "-g 2: 2 words follow, and an application is wanted"),
        (&["-n", "0", "-g", "a"], "-n 0: not a number of tasks"),
        (&["-n", "x", "-g", "a"], "-n x: not a number of tasks"),
        (&["-m", " ", "-g", "a"], "-m names no host"),
        (&["-mpi", "a"], "pam: -mpi: this build has no vendor MPI; use -g"),
        (&["-auto_place", "a"], "pam: -auto_place: this build has no vendor MPI; use -g"),
        (&["-g", "a", "b"], "pam: not inside a batch job"),
    ];
    for (words, why) in pam {
        assert_eq!(said(&rig, "pam", words), (255, why.to_owned()), "{words:?}");
    }
    let starter: [(&[&str], &str); 5] = [
        (&[], "-p is wanted, or LSF_TS_OPTIONS"),
        (&["-p", "host1", "a"], "-p host1: not host:port"),
        (&["-p", "host1:x", "a"], "-p host1:x: not host:port"),
        (&["-p", "host1:0", "a"], "-p host1:0: not host:port"),
        (&["-p", "host1:5"], "no program"),
    ];
    for (words, why) in starter {
        assert_eq!(said(&rig, "TaskStarter", words), (255, why.to_owned()), "{words:?}");
    }
}

#[test]
fn starter_that_finds_no_pam_of_its_user_starts_nothing() {
    let rig = Rig::up("pam-none", 1);
    let address = address(&rig, "host1");
    let free = TcpListener::bind((address.as_str(), 0)).unwrap().local_addr().unwrap().port();
    // a server that is none of the cluster's
    let other = TcpListener::bind((address.as_str(), 0)).unwrap();
    let port = other.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut sock, _)) = other.accept() {
            let _ = sock.write_all(b"SSH-2.0-other\r\n");
            let _ = std::io::Read::read(&mut sock, &mut [0; 100]);
        }
    });
    let (outside, called) = listener_outside();
    let res = rig.read("conf/lsf.conf");
    let res = res.lines().find_map(|line| line.strip_prefix("LSF_RES_PORT=")).unwrap().trim();
    let reach = |at: &str, why: &str| format!("TaskStarter: cannot reach pam at {at}: {why}");
    let touched = rig.path("touched");
    let file = touched.to_str().unwrap();
    for (at, why) in [
        (format!("host1:{free}"), "Connection refused"),
        (format!("host1:{res}"), "External authentication failed"),
        (format!("host1:{port}"), ""),
        ("nowhere.invalid:5".to_owned(), "no host of the cluster"),
        // another server on this machine, whose host is none of the cluster's
        (format!("127.0.0.1:{outside}"), "no host of the cluster"),
        (format!("localhost:{outside}"), "no host of the cluster"),
    ] {
        let (code, line) = said(&rig, "TaskStarter", &["-p", &at, "touch", file]);
        assert_eq!(code, 125, "{at}: {line}");
        assert!(line.starts_with(&reach(&at, why)) || at.ends_with(res), "{at}: {line}");
    }
    assert_eq!(called.load(Ordering::Relaxed), 0, "nothing is told to a host outside");
    std::fs::create_dir(rig.path("empty")).unwrap();
    rig.write("empty/lsf.conf", "");
    for (dir, why) in [
        ("/nowhere", "/nowhere/lsf.conf: "),
        (file, "touched/lsf.conf: "),
        ("/etc/passwd", "/etc/passwd/lsf.conf: "),
        // a lsf.conf without a cluster
        (rig.path("empty").to_str().unwrap(), "cannot reach pam at host1:5: unknown host"),
    ] {
        let words = ["-p", "host1:5", "-c", dir, "touch", file];
        let (code, line) = said(&rig, "TaskStarter", &words);
        assert_eq!(code, 125, "{dir}: {line}");
        assert!(line.starts_with("TaskStarter: ") && line.contains(why), "{dir}: {line}");
    }
    assert!(!touched.exists());
}

/// A server on this machine's own address, which is that of no host of a cluster; its port, and how
/// often it was called.
fn listener_outside() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let called = Arc::new(AtomicUsize::new(0));
    let count = called.clone();
    std::thread::spawn(move || {
        while listener.accept().is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    (port, called)
}

/// The address of a host of the cluster.
fn address(rig: &Rig, host: &str) -> String {
    let hosts = rig.read("conf/hosts");
    let line = hosts.lines().find(|line| line.split_whitespace().skip(1).any(|word| word == host));
    line.unwrap_or_else(|| panic!("{hosts}")).split_whitespace().next().unwrap().to_owned()
}

/// Lines with settings that do not fit: the exit code, and what pam says.
fn settings() -> Vec<(String, &'static str, String)> {
    let unused = |value: &str| {
        format!("pam: LSF_HPC_PJL_LOADENV_TIMEOUT={value}: not a number of seconds; 300 is used\n")
    };
    let no_delay = |value: &str| {
        format!("pam: LSF_PAM_CLEAN_JOB_DELAY={value}: not a number of seconds; 0 is used\n")
    };
    let bad = "Validation failed: the host is not allocated to the job";
    let plain = "pam -t -g 1 ./pjl1.sh true";
    vec![
        (format!("LSF_HPC_PJL_LOADENV_TIMEOUT=0 {plain}"), "0", unused("0")),
        (format!("LSF_HPC_PJL_LOADENV_TIMEOUT=-1 {plain}"), "0", unused("-1")),
        (format!("LSF_HPC_PJL_LOADENV_TIMEOUT=x {plain}"), "0", unused("x")),
        (
            format!("LSF_PAM_RUSAGE_UPD_FACTOR=-1 {plain}"),
            "0",
            "pam: LSF_PAM_RUSAGE_UPD_FACTOR=-1: not a number of seconds from 0 to 100; 0.01 is \
             used\n"
                .to_owned(),
        ),
        (format!("LSF_HPC_PJL_LOADENV_TIMEOUT=31536001 {plain}"), "0", unused("31536001")),
        (format!("LSF_PAM_CLEAN_JOB_DELAY=-1 {plain}"), "0", no_delay("-1")),
        (format!("LSF_PAM_CLEAN_JOB_DELAY=1m {plain}"), "0", no_delay("1m")),
        (
            format!("LSF_ENVDIR=/nowhere {plain}"),
            "255",
            "pam: /nowhere/lsf.conf: Unable to open file lsf.conf; no cluster was found: `lsf up` \
             makes and starts one of your own, `. DIR/conf/profile.lsf` selects the one in DIR"
                .to_owned(),
        ),
        (
            "pam -t -n 9 -g 1 ./pjl1.sh true".to_owned(),
            "0",
            "pam: -n 9: the job has 3 slots; 3 tasks are expected\n".to_owned(),
        ),
        ("pam -m host9 -g 1 ./pjl1.sh true".into(), "255", format!("pam: host9: {bad}\n")),
        (
            "LSF_BINDIR='/a b' pam -g 1 ./pjl1.sh true".to_owned(),
            "125",
            "pam: /a b/TaskStarter: a path with a blank; a PJL would split it\n".to_owned(),
        ),
        ("pam -g ./dies.sh 9".to_owned(), "137", String::new()),
        ("pam -g ./dies.sh TERM".to_owned(), "143", String::new()),
    ]
}

#[test]
fn settings_that_do_not_fit_are_told_and_the_job_runs_or_does_not() {
    let rig = up("pam-set");
    script(&rig, "nest.sh", "pam -g 1 ./pjl1.sh true");
    script(&rig, "dies.sh", "kill -$1 $$");
    script(&rig, "local.sh", "echo inherited > data; exec 9< data\n$LSF_TS $LSF_TS_OPTIONS \"$@\"");
    for (line, code, err) in settings() {
        let ran = run(&rig, &line);
        // of a signal the shell tells, too
        let own: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("pam: ")).collect();
        let said = (ran.code.as_str(), own.join("\n"));
        assert_eq!(said, (code, err.trim_end().to_owned()), "{line}: {}{}", ran.out, ran.err);
    }
    // one pam inside another has its own tasks
    let ran = run(&rig, "pam -t -g ./nest.sh");
    assert_eq!((ran.code.as_str(), ran.err.as_str()), ("0", "pam: no task registered\n"));
    assert_eq!(ran.out.matches(" Done ").count(), 3, "{}", ran.out);
    // open descriptors reach the application
    let ran = run(&rig, "pam -v -n 1 -g ./local.sh sh -c 'cat <&9'");
    assert!(ran.code == "0" && ran.out.starts_with("inherited\nTID "), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains(": registered\n") && ran.err.contains(": Done\n"), "{}", ran.err);
    // a TaskStarter of a host that is left out
    let line = "set -- $LSB_HOSTS; pam -n 1 -m $2 -g 1 ./pjl1.sh true";
    let ran = run(&rig, line);
    assert_eq!((ran.code.as_str(), ran.out.matches(" Done ").count()), ("0", 1), "{}", ran.out);
    assert_eq!(ran.err.matches(" is not for tasks of this pam\n").count(), 2, "{}", ran.err);
    // not on the first host
    let line = "set -- $LSB_HOSTS; blaunch $2 pam -g 1 ./pjl1.sh true; echo $? $1";
    let ran = run(&rig, line);
    let first = ran.out.trim().strip_prefix("255 ").unwrap_or_else(|| panic!("{}", ran.out));
    assert_eq!(ran.err, format!("pam: pam runs on the first host of the job, {first}\n"));
}

/// A PJL, an application, a directory and words with blanks; the PJL runs on the first host.
#[test]
fn blanks_in_the_names_of_pjl_and_application_stay() {
    let rig = up("pam-blanks");
    std::fs::create_dir(rig.path("a dir")).unwrap();
    script(&rig, "a dir/the pjl", "\"$@\"; exit ${PJL:-0}");
    script(&rig, "a dir/the app", "echo \"$0|$1|$2|$#\"");
    script(&rig, "a dir/second pjl", "$LSF_TS $LSF_TS_OPTIONS \"$@\"");
    let (app, words) = ("'./a dir/the app'", "'x  y' ''");
    let said = "./a dir/the app|x  y||2\n";
    for (line, code) in [
        (format!("PJL=3 pam -n 1 -g 1 './a dir/the pjl' {app} {words}"), "3"),
        (format!("pam -n 1 -g './a dir/second pjl' {app} {words}"), "0"),
        (format!("PATH=\"$PATH:$PWD/a dir\"; pam -n 1 -g 1 'the pjl' {app} {words}"), "0"),
    ] {
        let ran = run(&rig, &line);
        assert_eq!((ran.code.as_str(), ran.err.as_str()), (code, ""), "{line}: {}", ran.out);
        assert!(ran.out.starts_with(&format!("{said}TID ")), "{line}: {}", ran.out);
        assert_eq!(ran.out.matches(" Done ").count(), 1, "{line}: {}", ran.out);
    }
    let line = "cd 'a dir'; pam -t -n 1 -g './second pjl' './the app' 1";
    let ran = run(&rig, line);
    assert_eq!((ran.code.as_str(), ran.out.as_str()), ("0", "./the app|1||1\n"), "{}", ran.err);
    // a name that is not there is told as it is
    let ran = run(&rig, "pam -n 1 -g 1 './a dir/no pjl' true");
    let told = "pam: cannot start ./a dir/no pjl: No such file or directory\n";
    assert_eq!((ran.code.as_str(), ran.err.as_str()), ("127", told));
}

/// A pam that waits for `go` before it starts its tasks: its job, host, address and port.
pub(super) fn waiting_pam(rig: &Rig) -> (u32, String, (String, u16)) {
    let wait =
        "echo $LSF_TS_OPTIONS > ts.new; mv ts.new ts; while ! test -e go; do sleep 0.1; done";
    script(rig, "slow.sh", &format!("{wait}; exec ./pjl2.sh \"$@\""));
    let job = submit(rig, "pam -g ./slow.sh true");
    wait_for("pam", || rig.path("ts").exists());
    let options = rig.read("ts");
    let at = options.split_whitespace().nth(1).unwrap();
    let (host, port) = at.split_once(':').unwrap();
    (job, host.to_owned(), (address(rig, host), port.parse().unwrap()))
}

/// A way to a port by another one of the same address, whose number is returned.
fn way_round((address, port): (String, u16)) -> u16 {
    let listener = TcpListener::bind((address.as_str(), 0)).unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((from, _)) = listener.accept() {
            let to = TcpStream::connect((address.as_str(), port)).unwrap();
            let (back, on) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            for (mut from, mut to) in [(from, to), (on, back)] {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    own
}

/// A server that is slow or not yet there is tried for 30 seconds; pam's own no is not.
#[test]
fn starter_that_pam_refuses_ends_at_once_with_the_reason() {
    let rig = up("pam-refuses");
    let (job, host, at) = waiting_pam(&rig);
    let port = at.1;
    // its proof is for another port than the one of pam: as that of another user, it is none
    let other = way_round(at);
    let file = rig.path("touched");
    let starter = |port: u16, of: u32| {
        let mut c = rig.cmd("TaskStarter");
        c.env("LSB_JOBID", of.to_string()).args(["-p", &format!("{host}:{port}"), "touch"]);
        let began = std::time::Instant::now();
        let said = c.arg(&file).output().unwrap();
        let err = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(began.elapsed().as_secs() < 15, "{:?}: {err}", began.elapsed());
        assert_eq!(said.status.code(), Some(125), "{err}");
        err
    };
    let words =
        |port: u16, why: &str| format!("TaskStarter: cannot reach pam at {host}:{port}: {why}\n");
    let denied = starter(other, job);
    assert_eq!(denied, words(other, "User permission denied (refused: User permission denied)"));
    let foreign = starter(port, job + 1);
    assert_eq!(foreign, words(port, &format!("this pam is in job <{job}>")));
    assert!(!file.exists());
    std::fs::write(rig.path("go"), "").unwrap();
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("err"));
    assert_eq!(rig.read("out").matches(" Done ").count(), 3, "{}", rig.read("out"));
}

#[test]
fn connections_that_prove_nothing_keep_no_starter_out() {
    let rig = up("pam-flood");
    let (job, _, (address, port)) = waiting_pam(&rig);
    let mut open = Vec::new();
    for n in 0..400 {
        let sock = TcpStream::connect((address.as_str(), port));
        let Ok(mut sock) = sock else { continue };
        if n % 2 == 0 {
            let _ = sock.write_all(b"nonsense that is no frame at all");
        }
        open.push(sock);
    }
    std::fs::write(rig.path("go"), "").unwrap();
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("err"));
    assert_eq!(rig.read("out").matches(" Done ").count(), 3, "{}", rig.read("out"));
}
