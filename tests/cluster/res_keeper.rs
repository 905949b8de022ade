//! Tasks and interactive jobs outlive the res of their host, killed or told to end: their input is
//! whole, what may be missing of their output is said, and they end as they would have (res(8)).

use super::interactive::Bsub;
use super::rig::{Rig, kill, wait_for};
use super::terminal::Terminal;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The words for output that the last res had and did not send.
const DOUBT: &str = "output may be incomplete";

fn up(name: &str, hosts: usize) -> Rig {
    let rig = Rig::up(name, hosts);
    rig.ready();
    for n in 1..=hosts {
        let host = format!("host{n}");
        wait_for("res", || rig.run("lsrun", &["-L", "-m", &host, "true"]).code == 0);
    }
    rig
}

fn lsrun(rig: &Rig, args: &[&str]) -> Child {
    let mut c = rig.cmd("lsrun");
    c.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    c.spawn().unwrap()
}

/// Kills a res and waits for the next one.
fn replace(rig: &Rig, host: &str, signal: i32) {
    let before = rig.pid("res", host).unwrap();
    kill(before, signal);
    wait_for("the next res", || rig.pid("res", host).is_some_and(|pid| pid != before));
}

/// Numbered lines, so that no piece is like another.
fn lines(count: usize) -> Vec<u8> {
    (0..count).flat_map(|n| format!("line {n} of the input\n").into_bytes()).collect()
}

#[test]
fn input_is_whole_though_res_is_killed_or_told_to_end_while_it_flows() {
    let rig = up("keep-in", 2);
    let input = lines(1_000_000);
    let mut child = lsrun(&rig, &["-m", "host2", "sh", "-c", "cat > whole; sleep 1; exit 5"]);
    let mut to = child.stdin.take().unwrap();
    let len = || std::fs::metadata(rig.path("whole")).map_or(0, |m| m.len());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for piece in input.chunks(1 << 20) {
                to.write_all(piece).unwrap();
                std::thread::sleep(Duration::from_millis(50));
            }
            drop(to);
        });
        for (part, signal) in [(1, 9), (2, 15), (3, 9)] {
            wait_for("a part of it", || len() > input.len() as u64 * part / 5);
            replace(&rig, "host2", signal);
        }
    });
    let said = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(5), "{err}");
    // a res may be killed between the writing of a piece and the note of that
    if !err.contains("input may be incomplete") {
        assert!(std::fs::read(rig.path("whole")).unwrap() == input, "{err}");
    }
}

#[test]
fn output_is_whole_or_its_loss_is_said() {
    let rig = up("keep-out", 2);
    let output = lines(1_000_000);
    std::fs::write(rig.path("all"), &output).unwrap();
    for signal in [9, 15] {
        // slow enough for three of them to be replaced meanwhile
        let slowly = "for n in $(seq 80); do head -c 400000; sleep 0.05; done < all";
        let mut child = lsrun(&rig, &["-m", "host2", "sh", "-c", slowly]);
        drop(child.stdin.take());
        let mut from = child.stdout.take().unwrap();
        let count = AtomicUsize::new(0);
        let got = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let (mut got, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
                loop {
                    match from.read(&mut chunk).unwrap() {
                        0 => return got,
                        some => got.extend_from_slice(&chunk[..some]),
                    }
                    count.store(got.len(), Ordering::Relaxed);
                }
            });
            for part in 1..=3 {
                let enough = || count.load(Ordering::Relaxed) > output.len() * part / 5;
                wait_for("a part of it", enough);
                replace(&rig, "host2", signal);
            }
            reader.join().unwrap()
        });
        let said = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(0), "{err}");
        assert!(got == output || err.contains(DOUBT), "{}: {err}", got.len());
        // one that is told to end sends what it has
        assert!(signal == 9 || got == output && err.is_empty(), "{}: {err}", got.len());
    }
}

#[test]
fn task_hears_signals_and_ends_while_there_is_no_res() {
    let rig = up("keep-gap", 2);
    let script = "trap 'echo got TERM; exit 6' TERM; echo on; while :; do sleep 0.1; done";
    let mut child = lsrun(&rig, &["-m", "host2", "sh", "-c", script]);
    let mut from = child.stdout.take().unwrap();
    from.read_exact(&mut [0; 3]).unwrap();
    // the launcher stands still: no res follows
    let launcher = rig.pid("launcher", "host2").unwrap();
    let gap = |then: &dyn Fn()| {
        kill(launcher, 19);
        rig.kill9("res", "host2");
        std::thread::sleep(Duration::from_millis(500));
        then();
        kill(launcher, 18);
    };
    gap(&|| kill(child.id(), 15));
    let mut rest = String::new();
    from.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("got TERM\n", Some(6)));
    // a task that ends meanwhile, and says something last
    let mut child = lsrun(&rig, &["-m", "host2", "sh", "-c", "echo on; read x; echo last; exit 9"]);
    let mut from = child.stdout.take().unwrap();
    from.read_exact(&mut [0; 3]).unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    gap(&|| ());
    let mut rest = String::new();
    from.read_to_string(&mut rest).unwrap();
    let said = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(9), "{err}");
    assert!(rest == "last\n" || err.contains(DOUBT), "{rest:?} {err}");
}

#[test]
fn tasks_of_a_parallel_job_outlive_the_res_of_every_host() {
    let rig = up("keep-djob", 3);
    let script = "blaunch -z 'host1 host2 host3' 'echo on >> up; while ! test -e go; do sleep 0.1; \
                  done; echo end of $LSF_PM_TASKID'; echo code $?";
    let line = format!("{{ {script}; }} > said 2>&1");
    let args = ["-n", "6", "-R", "span[ptile=2]", "-m", "host1! host2 host3", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &[&line]].concat());
    let ups = || std::fs::read_to_string(rig.path("up")).unwrap_or_default().lines().count();
    wait_for("the tasks", || ups() == 3);
    for signal in [9, 15] {
        for host in ["host1", "host2", "host3"] {
            replace(&rig, host, signal);
        }
        // all are back before the next end
        std::thread::sleep(Duration::from_secs(1));
    }
    rig.write("go", "");
    assert_eq!(rig.end_of(job), "DONE");
    let said = rig.read("said");
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["code 0", "end of 1", "end of 2", "end of 3"], "{said}");
}

#[test]
fn interactive_jobs_and_terminals_go_on_with_the_next_res() {
    let rig = up("keep-inter", 1);
    let mut b = Bsub::start(&rig, &["-I", "echo on; read x; echo got $x; cat; exit 7"]);
    b.line("on");
    replace(&rig, "host1", 9);
    b.child.stdin.as_mut().unwrap().write_all(b"it\n").unwrap();
    b.line("got it");
    replace(&rig, "host1", 15);
    b.child.stdin.as_mut().unwrap().write_all(b"more\n").unwrap();
    b.line("more");
    let job = b.job;
    let said = b.end();
    assert_eq!(said.code, 7, "{said:?}");
    assert_eq!(rig.end_of(job), "EXIT");
    let mut t = Terminal::new(&rig);
    t.line("$L bsub -Is 'stty size; cat; tty; stty size'", "30 90");
    replace(&rig, "host1", 9);
    t.line("typed", "typed");
    t.keys("\x04");
    t.until("/dev/pts");
    t.until("30 90");
}

/// A task whose input has ended sees that, though the keeper that has the other end, too, does not
/// let go of it.
#[test]
fn keeper_that_stands_still_keeps_no_task_from_its_end() {
    let rig = up("keep-still", 2);
    let mut child = lsrun(&rig, &["-m", "host2", "sh", "-c", "echo on; cat; echo end; exit 4"]);
    let mut from = child.stdout.take().unwrap();
    from.read_exact(&mut [0; 3]).unwrap();
    let keeper = rig.pid("reskeeper", "host2").unwrap();
    kill(keeper, 19);
    child.stdin.take().unwrap().write_all(b"last words\n").unwrap();
    let (began, mut rest) = (std::time::Instant::now(), String::new());
    from.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("last words\nend\n", Some(4)));
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    let log = std::fs::read_to_string(rig.path("log/res.log.host2")).unwrap();
    assert!(log.contains("it has stood still for 5 seconds"), "{log}");
    // another follows with the next task
    assert_eq!(rig.run("lsrun", &["-m", "host2", "sh", "-c", "exit 6"]).code, 6);
    let next = rig.pid("reskeeper", "host2").unwrap();
    assert_ne!(next, keeper);
    // the next res cannot take its tasks over: their commands end with words
    let mut child = lsrun(&rig, &["-m", "host2", "sh", "-c", "echo on; cat; exit 4"]);
    child.stdout.take().unwrap().read_exact(&mut [0; 3]).unwrap();
    kill(next, 19);
    replace(&rig, "host2", 9);
    let said = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.code().is_some_and(|code| code != 0) && !err.is_empty(), "{said:?}");
    wait_for("the keeper to go", || rig.pid("reskeeper", "host2") != Some(next));
}

/// The keeper is no daemon: it is there with the first task, and ends with its last res where it
/// holds nothing.
#[test]
fn keeper_of_a_res_comes_with_a_task_and_goes_with_nothing_to_keep() {
    let rig = Rig::up("keep-idle", 1);
    rig.ready();
    assert_eq!(rig.pid("reskeeper", "host1"), None);
    wait_for("res", || rig.run("lsrun", &["-L", "-m", "host1", "true"]).code == 0);
    let keeper = rig.pid("reskeeper", "host1").unwrap();
    rig.ok("lsrun", &["-L", "-m", "host1", "true"]);
    assert_eq!(rig.pid("reskeeper", "host1"), Some(keeper));
    replace(&rig, "host1", 15);
    wait_for("the keeper to end", || rig.pid("reskeeper", "host1").is_none());
    // one that is killed is followed by another
    wait_for("res", || rig.run("lsrun", &["-L", "-m", "host1", "true"]).code == 0);
    assert!(rig.kill9("reskeeper", "host1"));
    rig.ok("lsrun", &["-L", "-m", "host1", "sh", "-c", "exit 0"]);
    assert!(rig.pid("reskeeper", "host1").is_some());
}
