//! Signals to the processes of a parallel job on three hosts, each counted by its program: those of
//! bkill, and those that come to blaunch or to the launcher of an MPI (blaunch(1)).

use super::mpi::Mpi;
use super::pam::script;
use super::rig::{Rig, kill, wait_for};
use std::time::Duration;

/// Counts USR1, TERM and CONT, and ends with 0 once `go` is there.
const COUNT: &str = "id=${PMI_RANK:-$LSF_PM_TASKID}\n\
    for s in USR1 TERM CONT; do trap \"echo $s >> $s.$id\" $s; done\n\
    echo up > up.$id; while ! test -e go; do sleep 0.1; done; exit 0";
/// The numbers of the tasks, and of the ranks.
const TASKS: [u32; 3] = [1, 2, 3];
const RANKS: [u32; 3] = [0, 1, 2];

/// A job on three hosts whose script goes on after signals; the process ID of its command is in
/// `cmd.pid`.
fn counting(rig: &Rig, command: &str, ids: [u32; 3]) -> u32 {
    script(rig, "count.sh", COUNT);
    // a trap that does nothing is not handed on, as an ignored signal is
    let line = format!(
        "trap : USR1 TERM CONT; {command} > said 2>&1 & pid=$!; echo $pid > cmd.pid\n\
         while :; do wait $pid; code=$?; kill -0 $pid 2> /dev/null || break; done; exit $code"
    );
    rig.write("job.sh", &line);
    let args = ["-n", "3", "-R", "span[ptile=1]", "-m", "host1! host2 host3", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &["exec sh job.sh"]].concat());
    wait_for("the programs", || ids.iter().all(|id| rig.path(&format!("up.{id}")).exists()));
    // the last trap is set before that; the process group of each stands, too
    std::thread::sleep(Duration::from_millis(300));
    job
}

/// How often each program has had a signal.
fn had(rig: &Rig, signal: &str, ids: [u32; 3]) -> [usize; 3] {
    ids.map(|id| rig.read(&format!("{signal}.{id}")).lines().count())
}

/// Each has the signal so often, and not once more.
fn each_has(rig: &Rig, (signal, times): (&str, usize), ids: [u32; 3], from: &str) {
    let has = || had(rig, signal, ids);
    wait_for(&format!("{signal} of {from}"), || has().iter().all(|n| *n >= times));
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(has(), [times; 3], "{signal} of {from}: {}", rig.read("said"));
}

#[test]
fn signals_of_bkill_and_to_blaunch_come_to_each_task_once() {
    let rig = Rig::up("count-blaunch", 3);
    let command = "blaunch -no-shell -z 'host1 host2 host3' ./count.sh";
    let job = counting(&rig, command, TASKS);
    let id = job.to_string();
    let pid: u32 = rig.read("cmd.pid").trim().parse().unwrap();
    for (name, number) in [("USR1", 10), ("TERM", 15), ("CONT", 18)] {
        rig.ok("bkill", &["-s", name, &id]);
        each_has(&rig, (name, 1), TASKS, "bkill");
        kill(pid, number);
        each_has(&rig, (name, 2), TASKS, "a process to blaunch");
    }
    for name in ["USR1", "TERM", "CONT"] {
        assert_eq!(had(&rig, name, TASKS), [2; 3], "{name}");
    }
    rig.write("go", "");
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("said"));
}

/// The launcher of MPICH and its proxies are processes of the job, too. The launcher forwards USR1
/// by itself, so that one of bkill is none to count.
#[test]
fn signals_of_bkill_and_to_mpiexec_come_to_each_rank_once() {
    let Some(rig) = Mpi::Mpich.up("count", 3) else { return };
    let job = counting(&rig, "mpiexec -n 3 ./count.sh", RANKS);
    let id = job.to_string();
    rig.ok("bkill", &["-s", "CONT", &id]);
    each_has(&rig, ("CONT", 1), RANKS, "bkill");
    let pid: u32 = rig.read("cmd.pid").trim().parse().unwrap();
    kill(pid, 10);
    each_has(&rig, ("USR1", 1), RANKS, "a process to mpiexec");
    rig.ok("bkill", &["-s", "CONT", &id]);
    each_has(&rig, ("CONT", 2), RANKS, "bkill");
    rig.write("go", "");
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("said"));
}
