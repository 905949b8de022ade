//! lsf up, down and status: twice, over what was killed, with a port taken, from one directory.
//! These know no other LSF and always run on clusters of their own.

use crate::common::Said;
use crate::rig::{Rig, alive, binary, kill, wait_for};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn lsf(args: &[&str]) -> Said {
    let mut c = Command::new(binary());
    c.args(args).env_remove("LSF_ENVDIR").stdin(std::process::Stdio::null());
    c.output().unwrap().into()
}

fn word<'a>(w: &'a str, dir: &'a Path) -> [&'a str; 3] {
    [w, "--dir", dir.to_str().unwrap()]
}

/// Launchers by host.
fn launchers(rig: &Rig) -> Vec<(String, u32)> {
    rig.pids("launcher").into_iter().collect()
}

#[test]
fn up_and_down_done_twice_change_nothing_the_second_time() {
    let rig = Rig::up("personal", 2);
    let profile = format!(". {}/conf/profile.lsf", rig.dir.display());
    let again = lsf(&word("up", &rig.dir));
    assert_eq!(again.code, 0, "{}", again.err);
    assert_eq!(again.out, format!("{profile}\n"));
    assert!(again.err.contains(&format!("{}: already running\n", rig.dir.display())));
    let more = lsf(&["up", "--dir", rig.dir.to_str().unwrap(), "--hosts", "5"]);
    assert!(more.code == 0 && more.err.contains("has 2 host(s)"), "{more:?}");
    let status = lsf(&word("status", &rig.dir));
    assert_eq!(status.code, 0);
    for (host, pid) in launchers(&rig) {
        let line = status.out.lines().find(|l| l.starts_with(&host)).unwrap();
        assert!(line.contains(&format!(" {pid} ")), "{line}");
    }
    let daemons: Vec<u32> = ["launcher", "authd", "lim", "sbatchd", "mbatchd"]
        .iter()
        .flat_map(|d| rig.pids(d).into_values())
        .collect();
    assert!(daemons.len() >= 9, "{daemons:?}");
    rig.bsub(&["sleep", "3600"]);
    let down = rig.down();
    assert_eq!(down.code, 0, "{}", down.err);
    assert!(daemons.iter().all(|&p| !alive(p)), "{daemons:?}");
    assert_eq!(lsf(&word("status", &rig.dir)).code, 255);
    let again = lsf(&word("down", &rig.dir));
    assert_eq!((again.code, again.err.as_str()), (0, ""));
    assert!(again.out.ends_with(": not running\n"), "{}", again.out);
}

/// `lsf up` says what is up on standard error, and the line for the shell alone on standard output.
#[test]
fn up_says_what_to_type_next_and_which_lines_it_runs_without() {
    let rig = Rig::up("next", 1);
    let again = lsf(&word("up", &rig.dir));
    let slots = rig.ok("bhosts", &["-w"]);
    let slots = slots.lines().nth(1).unwrap().split_whitespace().nth(3).unwrap();
    let up = format!("the cluster is up: 1 host(s), {slots} slot(s); queues: ");
    for part in [&up, "normal (default)", "\nbsub -o ", "\nbjobs -a\n"] {
        assert!(again.err.contains(part), "{part}: {}", again.err);
    }
    assert_eq!(again.out, format!(". {}/profile.lsf\n", rig.path("conf").display()));
    assert!(!again.err.contains("configuration errors"), "{}", again.err);
    let path = "conf/lsbatch/personal/configdir/lsb.queues";
    rig.write(path, &rig.read(path).replacen("\nPRIORITY", "\nPRIORTIY", 1));
    let again = lsf(&word("up", &rig.dir));
    assert_eq!(again.code, 0, "{}", again.err);
    let wrong = "unknown keyword <PRIORTIY> in section Queue; did you mean <PRIORITY>?";
    assert!(again.err.contains("configuration errors; these lines are ignored"), "{}", again.err);
    assert!(again.err.contains("lsb.queues:") && again.err.contains(wrong), "{}", again.err);
}

/// A command does not start a personal cluster that is down; it fails at once.
#[test]
fn commands_of_a_cluster_that_is_down_end_at_once() {
    let rig = Rig::up("ended", 2);
    assert_eq!(rig.down().code, 0);
    let dir = rig.dir.display();
    let words = format!("The cluster in {dir} is not running; `lsf up --dir {dir}` starts it");
    for (name, args) in [
        ("bjobs", &["--watch"][..]),
        ("bsub", &["true"]),
        ("bhosts", &[]),
        ("lsload", &[]),
        ("lshosts", &[]),
    ] {
        let mut command = rig.cmd(name);
        command.args(args).env_remove("LSB_NTRIES").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let said = Said::from(child.wait_with_output().unwrap());
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{name}");
        assert!(said.err.contains(&words) && !said.err.contains("wait"), "{name}: {}", said.err);
    }
}

#[test]
fn a_start_that_fails_shows_the_line_that_tells_why() {
    let rig = Rig::up("telling", 1);
    assert_eq!(rig.down().code, 0);
    let key = rig.path("conf/lsf.key");
    let kept = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    // an error of an earlier start is not the one looked for
    let log = rig.path("log/melim.log.host1");
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(log).unwrap();
    file.write_all(b"9999-01-01T00:00:00.000Z melim[1] ERROR of an earlier start\n").unwrap();
    let up = lsf(&word("up", &rig.dir));
    assert_eq!((up.code, up.out.as_str()), (255, ""));
    let last = up.err.lines().last().unwrap();
    assert!(last.contains(" ERROR ") && last.contains("lsf.key"), "{}", up.err);
    std::fs::write(&key, kept).unwrap();
}

#[test]
fn lsf_down_ends_the_jobs_of_the_cluster() {
    let rig = Rig::up("jobs", 1);
    let pids = rig.path("pids");
    let job = format!("echo $$ > {0}; setsid sleep 3600 & echo $! >> {0}; wait", pids.display());
    rig.bsub(&[&job]);
    let read = || -> Vec<u32> {
        let text = std::fs::read_to_string(&pids).unwrap_or_default();
        text.lines().filter_map(|l| l.parse().ok()).collect()
    };
    wait_for("the job to run", || read().len() == 2);
    assert_eq!(rig.down().code, 0);
    assert!(read().iter().all(|&p| !alive(p)), "{:?}", read());
}

#[test]
fn up_takes_over_the_remains_of_a_killed_cluster() {
    let rig = Rig::up("killed", 2);
    let id = rig.bsub(&["-m", "host1", "sleep", "3600"]).to_string();
    wait_for("the job to run", || rig.field(&id, "stat") == "RUN");
    let old = launchers(&rig);
    for (_, pid) in &old {
        kill(*pid, 9);
    }
    wait_for("the launchers to be gone", || old.iter().all(|(_, p)| !alive(*p)));
    let up = lsf(&word("up", &rig.dir));
    assert_eq!(up.code, 0, "{}", up.err);
    rig.ready();
    assert_eq!(rig.field(&id, "stat"), "RUN");
    for (_, pid) in launchers(&rig) {
        kill(pid, 9);
        wait_for("the launcher to be gone", || !alive(pid));
    }
    let sleeps = rig.field(&id, "pids");
    let down = lsf(&word("down", &rig.dir));
    assert_eq!(down.code, 0, "{}", down.err);
    assert!(down.err.contains("no launcher: one is started"), "{}", down.err);
    // a process whose first thread has ended counts as gone, while others of it may still end
    let gone = || rig.pids("mbatchd").is_empty() && rig.pids("sbatchd").is_empty();
    wait_for("the daemons to be gone", gone);
    let left: Vec<&str> = sleeps.split([',', ' ']).filter(|p| p.parse().is_ok_and(alive)).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A launcher that is killed after it was asked to end its daemons leaves them running, here those
/// of a predecessor, which are not below it: `lsf down` sees it, and has another one end them.
#[test]
fn launchers_killed_while_the_cluster_goes_down_leave_no_daemons() {
    let rig = Rig::up("dies", 2);
    rig.bsub(&["-m", "host2", "-o", "/dev/null", "echo $$ > job.pid; exec sleep 3600"]);
    wait_for("the job to run", || rig.read("job.pid").ends_with('\n'));
    let job: u32 = rig.read("job.pid").trim().parse().unwrap();
    let launcher = || rig.pid("launcher", "host2");
    let first = launcher().unwrap();
    kill(first, 9);
    wait_for("the launcher to be gone", || !alive(first));
    assert_eq!(lsf(&word("up", &rig.dir)).code, 0);
    // the cluster may be ready before its launcher is
    let socket = rig.path("run/host2/launcher.sock");
    wait_for("the launcher", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    let pid = launcher().unwrap();
    kill(pid, 19);
    let mut down = Command::new(binary());
    down.args(word("down", &rig.dir)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let down = down.spawn().unwrap();
    // SIGINT waits for a process that is stopped
    wait_for("the launcher to be asked", || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let pending = status.lines().filter_map(|l| l.split_once("Pnd:"));
        pending.into_iter().any(|(_, set)| u64::from_str_radix(set.trim(), 16).unwrap() & 2 != 0)
    });
    kill(pid, 9);
    let down = Said::from(down.wait_with_output().unwrap());
    assert_eq!(down.code, 0, "{}", down.err);
    assert!(down.err.contains("host2: no launcher: one is started"), "{}", down.err);
    for daemon in ["launcher", "authd", "lim", "res", "sbatchd", "mbatchd"] {
        assert!(rig.pids(daemon).is_empty(), "{daemon}");
    }
    assert!(!alive(job));
}

#[test]
fn launchers_that_others_restarted_or_stopped_are_found_and_go_down_with_their_jobs() {
    let rig = Rig::up("others", 2);
    let old = launchers(&rig);
    let restarted = rig.run("lsfrestart", &["-f"]);
    assert_eq!(restarted.code, 0, "{}", restarted.err);
    let new = launchers(&rig);
    assert!(new.len() == 2 && new.iter().all(|l| !old.contains(l)), "{old:?} {new:?}");
    let status = lsf(&word("status", &rig.dir));
    assert_eq!(status.code, 0, "{}", status.out);
    assert!(status.out.lines().next().unwrap().ends_with(": running"), "{}", status.out);
    for (host, pid) in &new {
        let line = status.out.lines().find(|l| l.starts_with(host)).unwrap();
        assert!(line.contains(&format!(" {pid} ")), "{line}");
    }
    let up = lsf(&word("up", &rig.dir));
    assert!(up.code == 0 && up.err.contains("already running"), "{up:?}");
    rig.ready();
    let job = "echo $$ > job.pid; exec sleep 3600";
    rig.bsub(&["-m", "host2", "-o", "/dev/null", job]);
    wait_for("the job to run", || rig.read("job.pid").ends_with('\n'));
    let job: u32 = rig.read("job.pid").trim().parse().unwrap();
    // its launcher is stopped, and the job goes on
    let mut stop = rig.cmd("lsf_daemons");
    stop.arg("stop").env("LSF_LOCAL_HOST", "host2");
    assert!(stop.status().unwrap().success() && alive(job));
    let status = lsf(&word("status", &rig.dir));
    assert_eq!(status.code, 255);
    assert!(status.out.contains(": 1 of 2 hosts running"), "{}", status.out);
    let down = rig.down();
    assert!(down.code == 0 && down.out.ends_with(": stopped\n"), "{down:?}");
    assert!(down.err.contains("host2: no launcher: one is started"), "{}", down.err);
    assert!(!alive(job) && launchers(&rig).is_empty() && rig.pids("lim").is_empty());
    assert!(lsf(&word("down", &rig.dir)).out.ends_with(": not running\n"));
}

#[test]
fn a_taken_port_is_named_with_what_to_do() {
    let rig = Rig::up("port", 1);
    assert_eq!(rig.down().code, 0);
    let conf = rig.read("conf/lsf.conf");
    let value = |name: &str| {
        let line = conf.lines().find_map(|l| l.strip_prefix(&format!("{name}="))).unwrap();
        line.parse::<u16>().unwrap()
    };
    let hosts = rig.read("conf/hosts");
    let addr = hosts.lines().find(|l| l.ends_with("host1")).unwrap();
    let addr = addr.split_whitespace().next().unwrap();
    let taken = std::net::TcpListener::bind((addr, value("LSB_MBD_PORT"))).unwrap();
    let up = lsf(&word("up", &rig.dir));
    assert_eq!((up.code, up.out.as_str()), (255, ""));
    for part in ["LSB_MBD_PORT", addr, "is taken", "--new-ports", rig.dir.to_str().unwrap()] {
        assert!(up.err.contains(part), "{part}: {}", up.err);
    }
    let up = lsf(&["up", "--new-ports", "--dir", rig.dir.to_str().unwrap()]);
    assert_eq!(up.code, 0, "{}", up.err);
    assert_ne!(rig.read("conf/lsf.conf"), conf);
    rig.bsub(&["true"]);
    drop(taken);
}

#[test]
fn down_and_status_without_a_cluster_say_so() {
    let dir = PathBuf::from(format!("/tmp/lsf-none-{}", std::process::id()));
    for w in ["down", "status"] {
        let said = lsf(&word(w, &dir));
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{w}");
        assert!(said.err.starts_with(&format!("lsf {w}: {}: no cluster here", dir.display())));
    }
    assert!(!dir.exists());
    let said = lsf(&["up", "--hosts", "0"]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    let said = lsf(&["statsu"]);
    assert_eq!(said.code, 255);
    assert!(said.err.contains("did you mean status"), "{}", said.err);
}

#[test]
fn a_broken_configuration_is_told_before_anything_starts() {
    let rig = Rig::up("broken", 1);
    assert_eq!(rig.down().code, 0);
    let path = "conf/lsf.cluster.personal";
    let text = rig.read(path);
    rig.write(path, &text.replace("End Host", "End Hots"));
    let up = lsf(&word("up", &rig.dir));
    assert_eq!((up.code, up.out.as_str()), (255, ""));
    assert!(up.err.contains("lsf.cluster.personal:"), "{}", up.err);
    assert!(rig.pids("launcher").is_empty());
    rig.write(path, &text);
    assert_eq!(lsf(&word("up", &rig.dir)).code, 0);
}

/// A failed `lsf up` leaves nothing behind, and existing files unchanged.
#[test]
fn failed_creation_of_a_cluster_leaves_no_files() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::process::CommandExt;
    let top = std::env::temp_dir().join(format!("lsf-unmade-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&top);
    std::fs::create_dir(&top).unwrap();
    let names = |dir: &Path| {
        let all = std::fs::read_dir(dir).unwrap().flatten();
        all.map(|e| e.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let up = |change: &dyn Fn(&mut Command)| {
        let mut c = Command::new(binary());
        c.arg("up").env_remove("LSF_ENVDIR").stdin(std::process::Stdio::null());
        change(&mut c);
        let said = Said::from(c.output().unwrap());
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{}", said.err);
        said.err
    };
    let home = top.join(std::ffi::OsStr::from_bytes(b"\xff/deep"));
    let err = up(&|c| _ = c.env("HOME", &home));
    assert_eq!(err, "lsf up: the directory's name is not UTF-8\n");
    assert_eq!(names(&top), Vec::<String>::new());
    std::fs::create_dir_all(home.join(".lsf/log")).unwrap();
    std::fs::write(home.join(".lsf/log/mine"), "").unwrap();
    up(&|c| _ = c.env("HOME", &home));
    assert_eq!(names(&home.join(".lsf")), ["log"]);
    assert!(home.join(".lsf/log/mine").exists());

    let err = up(&|c| _ = c.args(["--dir", "/proc/lsf"]));
    let words = "cannot create the cluster directory /proc/lsf: No such file or directory; name a \
                 directory that you may write to with --dir";
    assert_eq!(err, format!("lsf up: {words}\n"));

    if lsf::sys::euid() != 0 {
        return crate::rig::skipped("failed_creation_of_a_cluster_leaves_no_files: needs root");
    }
    const NOBODY: u32 = 54_321;
    let theirs = top.join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
    let err = up(&|c| _ = c.arg("--dir").arg(theirs.join("new")).uid(NOBODY).gid(NOBODY));
    assert_eq!(err, "lsf up: user 54321 has no name: a cluster needs one\n");
    assert_eq!(names(&theirs), Vec::<String>::new());
    std::fs::remove_dir_all(&top).unwrap();
}
