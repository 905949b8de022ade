//! A host whose daemons are all gone, or that was restarted: what becomes of its jobs, and what is
//! true when it is back.

use crate::rig::{Rig, alive, kill, wait_for};

/// Three hosts of many slots; two tries of a second.
pub(super) fn up(name: &str) -> Rig {
    let rig = Rig::up(name, 3);
    let edit = |file: &str, change: &dyn Fn(String) -> String| {
        let path = rig.configdir().join(file);
        std::fs::write(&path, change(std::fs::read_to_string(&path).unwrap())).unwrap();
    };
    let tries = "MAX_SBD_FAIL = 2\nMBD_SLEEP_TIME = 1\nEnd Parameters";
    edit("lsb.params", &|t| {
        let others = t.lines().filter(|l| !l.starts_with("MBD_SLEEP_TIME"));
        let others: String = others.flat_map(|l| [l, "\n"]).collect();
        others.replace("End Parameters", tries)
    });
    edit("lsb.hosts", &|t| {
        let wide = |l: &str| match l.starts_with("default") {
            true => l.replacen('!', "32", 1) + "\n",
            false => l.to_owned() + "\n",
        };
        t.lines().map(wide).collect()
    });
    rig.ok("badmin", &["reconfig"]);
    wait_for("all hosts", || ["host1", "host2", "host3"].iter().all(|h| host(&rig, h) == "ok"));
    rig
}

pub(super) fn host(rig: &Rig, name: &str) -> String {
    let said = rig.run("bhosts", &["-w", name]).out;
    let row = said.lines().find(|l| l.starts_with(name)).unwrap_or_default();
    row.split_whitespace().nth(1).unwrap_or_default().to_owned()
}

/// A job that writes down its process, once a run.
fn job(rig: &Rig, name: &str, args: &[&str]) -> (u32, u32) {
    let line = format!("echo $$ >> {}; exec sleep 600", rig.path(name).display());
    let mut all = args.to_vec();
    all.extend(["-o", "/dev/null", &line]);
    let id = rig.bsub(&all);
    wait_for("the job to run", || rig.stat(id) == "RUN" && !rig.read(name).is_empty());
    assert_eq!(rig.field(&id.to_string(), "exec_host"), "host2", "{args:?}");
    (id, pids(rig, name)[0])
}

fn pids(rig: &Rig, name: &str) -> Vec<u32> {
    rig.read(name).lines().map(|l| l.trim().parse().unwrap()).collect()
}

/// kill -9 of all of a host's daemons, the one that would start the others first.
pub(super) fn kill_daemons(rig: &Rig, host: &str) {
    for daemon in ["launcher", "lim", "sbatchd", "reskeeper", "res", "authd"] {
        rig.kill9(daemon, host);
    }
}

/// Ends the processes that jobs of this test still have, whatever became of it.
struct Strays(Vec<u32>);

impl Drop for Strays {
    fn drop(&mut self) {
        self.0.iter().filter(|pid| alive(**pid)).for_each(|pid| kill(*pid, 9));
    }
}

#[test]
fn jobs_of_a_host_without_daemons_are_unkwn_or_rerun_until_it_is_back() {
    let rig = up("hostdeath");
    let (plain, plain_pid) = job(&rig, "plain", &["-m", "host2"]);
    let (killed, killed_pid) = job(&rig, "killed", &["-m", "host2"]);
    let (removed, removed_pid) = job(&rig, "removed", &["-m", "host2"]);
    let (rerun, rerun_pid) = job(&rig, "rerun", &["-r", "-m", "host2+5 host3"]);
    let (ends, ends_pid) = job(&rig, "ends", &["-r", "-m", "host2"]);
    let (waits, waits_pid) = job(&rig, "waits", &["-r", "-m", "host2"]);
    let first = [plain_pid, killed_pid, removed_pid, rerun_pid, ends_pid, waits_pid];
    let mut strays = Strays(first.to_vec());
    kill_daemons(&rig, "host2");
    wait_for("unreach", || host(&rig, "host2") == "unreach");
    for id in [plain, killed, removed, rerun, ends] {
        wait_for("UNKWN", || matches!(rig.stat(id).as_str(), "UNKWN" | "PEND"));
    }
    assert_eq!(rig.ok("bkill", &[&killed.to_string()]).lines().count(), 1);
    rig.ok("bkill", &[&ends.to_string()]);
    assert_eq!(rig.stat(killed), "ZOMBI");
    rig.ok("bkill", &["-r", &removed.to_string()]);
    assert_eq!(rig.stat(removed), "EXIT");
    let reason = rig.field(&removed.to_string(), "exit_reason");
    assert!(reason.starts_with("TERM_FORCE_"), "{reason}");
    // neither LIM nor sbatchd: the host is given up
    wait_for("unavail", || host(&rig, "host2") == "unavail");
    let of = |id: u32, what: &str| rig.field(&id.to_string(), what);
    wait_for("the rerun", || rig.stat(rerun) == "RUN" && pids(&rig, "rerun").len() == 2);
    strays.0.push(pids(&rig, "rerun")[1]);
    assert_eq!(of(rerun, "exec_host"), "host3");
    wait_for("the end of what was killed", || rig.stat(ends) == "EXIT");
    assert_eq!(rig.stat(waits), "PEND");
    assert_eq!((rig.stat(plain), rig.stat(killed)), ("UNKWN".into(), "ZOMBI".into()));
    assert!(rig.ok("bhist", &["-l", &plain.to_string()]).contains("Unknown; unable to reach"));
    // the processes know nothing of it
    assert!(first.iter().all(|pid| alive(*pid)));
    // the host is back with all that ran there
    rig.start();
    wait_for("the host", || host(&rig, "host2") == "ok");
    wait_for("what is known again", || rig.stat(plain) == "RUN");
    assert_eq!(pids(&rig, "plain"), [plain_pid]);
    assert_eq!(rig.end_of(killed), "EXIT");
    for pid in [killed_pid, removed_pid, rerun_pid, ends_pid, waits_pid] {
        wait_for("what was given up to be killed", || !alive(pid));
    }
    // it is started there anew once the old one is over
    wait_for("the second run", || rig.stat(waits) == "RUN" && pids(&rig, "waits").len() == 2);
    strays.0.push(pids(&rig, "waits")[1]);
    assert_eq!((rig.stat(rerun), pids(&rig, "rerun").len()), ("RUN".into(), 2));
    assert!(alive(pids(&rig, "rerun")[1]) && alive(plain_pid));
    for id in [plain, rerun, waits] {
        rig.ok("bkill", &[&id.to_string()]);
        assert_eq!(rig.end_of(id), "EXIT");
    }
    let all = rig.ok("bacct", &["-l", &rerun.to_string()]);
    assert_eq!(all.matches(&format!("Job <{rerun}>")).count(), 1, "{all}");
}

/// The launcher's journal outlives a restart of its host: rerunnable jobs run again all the same.
#[test]
fn rerunnable_jobs_run_again_after_a_restart_of_their_host_that_the_journal_survived() {
    let rig = up("reboot");
    let (plain, plain_pid) = job(&rig, "plain", &["-m", "host2"]);
    let (rerun, rerun_pid) = job(&rig, "rerun", &["-r", "-m", "host2"]);
    let mut strays = Strays(vec![plain_pid, rerun_pid]);
    kill_daemons(&rig, "host2");
    for pid in [plain_pid, rerun_pid] {
        kill(pid, 9);
        wait_for("it to be dead", || !alive(pid));
    }
    // written under another boot of the kernel
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut found = Vec::new();
    crate::rig::find(&rig.dir, "launcher.journal", &mut found);
    let journal = found.into_iter().find(|p| p.to_string_lossy().contains("host2")).unwrap();
    let text = std::fs::read_to_string(&journal).unwrap();
    assert!(text.contains(boot.trim()), "{text}");
    std::fs::write(&journal, text.replace(boot.trim(), "another")).unwrap();
    rig.start();
    wait_for("the second run", || rig.stat(rerun) == "RUN" && pids(&rig, "rerun").len() == 2);
    strays.0.push(pids(&rig, "rerun")[1]);
    assert_eq!(rig.end_of(plain), "EXIT");
    let reason = rig.field(&plain.to_string(), "exit_reason");
    assert!(reason.starts_with("TERM_HOST_RESTART"), "{reason}");
    rig.ok("bkill", &[&rerun.to_string()]);
    assert_eq!(rig.end_of(rerun), "EXIT");
}

/// The master's host dies with a job on it: the next master has it run again.
#[test]
fn a_rerunnable_job_of_the_master_host_runs_again_under_the_next_master() {
    let rig = up("masterdeath");
    let line = format!("echo $$ >> {}; exec sleep 600", rig.path("rerun").display());
    let id = rig.bsub(&["-r", "-m", "host1+5 host2 host3", "-o", "/dev/null", &line]);
    wait_for("the job to run", || pids(&rig, "rerun").len() == 1);
    let mut strays = Strays(pids(&rig, "rerun"));
    assert_eq!(rig.field(&id.to_string(), "exec_host"), "host1");
    kill_daemons(&rig, "host1");
    rig.kill9("mbatchd", "host1");
    // the host is dead, and its jobs with it
    kill(strays.0[0], 9);
    let on = |applet: &str, args: &[&str]| {
        let mut c = rig.cmd(applet);
        c.args(args).env("LSF_LOCAL_HOST", "host2").env("LSB_NTRIES", "1");
        crate::rig::Said::from(c.output().unwrap()).out.trim().to_owned()
    };
    let job = id.to_string();
    wait_for("the second run", || pids(&rig, "rerun").len() == 2);
    strays.0.push(pids(&rig, "rerun")[1]);
    wait_for("it to be known", || on("bjobs", &["-noheader", "-o", "stat", &job]) == "RUN");
    let host = on("bjobs", &["-noheader", "-o", "exec_host", &job]);
    assert!(host == "host2" || host == "host3", "{host}");
    on("bkill", &[&job]);
    wait_for("its end", || on("bjobs", &["-noheader", "-o", "stat", &job]) == "EXIT");
}
