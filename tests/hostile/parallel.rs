//! Parallel jobs under attack: another user's blaunch, TaskStarter and pam with the identity of a
//! job that is not theirs, and a compute node turned against the cluster, which speaks to the
//! sbatchd of another one. Each is refused with words, and starts nothing.

use crate::rig::{Rig, wait_for};
use crate::script::{Script, speak_from};
use crate::site::{ADMIN, MultiUserSite};
use lsf::model::JobKey;
use lsf::model::reason::err;
use lsf::proto::machine::Endpoint;
use lsf::proto::member::MemberMsg;
use lsf::proto::sbd::{Act, SbdMsg, StartJob};
use lsf::proto::{Daemon, Msg};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A pam of a job on three hosts whose PJL waits for the file `$1.go`; what it tells TaskStarters,
/// and its environment, are in files that everybody reads.
const PJL: &str = "#!/bin/sh\n\
    mark=$1; shift\n\
    env > $mark.env; echo $LSF_TS_OPTIONS > $mark.new; mv $mark.new $mark.ts\n\
    while [ ! -e $mark.go ]; do sleep 0.1; done\n\
    for h in $LSB_HOSTS; do blaunch $h $LSF_TS $LSF_TS_OPTIONS \"$@\" & done; wait\n";

struct Attacked {
    site: MultiUserSite,
    /// A directory in which everybody may write.
    open: String,
}

impl Attacked {
    fn new(name: &str) -> Attacked {
        let site = MultiUserSite::up(name, 3);
        let open = site.path("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o1777)).unwrap();
        let open = open.to_str().unwrap().to_owned();
        let pjl = format!("{open}/pjl.sh");
        std::fs::write(&pjl, PJL).unwrap();
        std::fs::set_permissions(&pjl, PermissionsExt::from_mode(0o755)).unwrap();
        Attacked { site, open }
    }

    /// A job of this user under pam, which waits; its job ID and where its pam listens.
    fn job(&self, user: &str) -> (u32, String) {
        let open = &self.open;
        let line = format!(
            "-n 3 -R 'span[ptile=1]' -o {open}/{user}.out \
             pam -g {open}/pjl.sh {open}/{user} touch {open}/{user}.done"
        );
        let job = self.site.bsub(user, &line);
        let told = format!("{open}/{user}.ts");
        wait_for("pam", || Path::new(&told).exists());
        let options = std::fs::read_to_string(told).unwrap();
        (job, options.split_whitespace().nth(1).unwrap().to_owned())
    }

    /// The variables of a user's job, for another user's shell.
    fn identity(&self, user: &str) -> String {
        let env = std::fs::read_to_string(format!("{}/{user}.env", self.open)).unwrap();
        let of_job = |line: &&str| line.starts_with("LSB_") || line.starts_with("LSF_");
        let quoted = |line: &str| {
            let (name, value) = line.split_once('=')?;
            Some(format!("export {name}='{value}'; "))
        };
        env.lines().filter(of_job).filter_map(quoted).collect()
    }

    /// Has a user try something that would make the file `x`: the exit code, and the words.
    fn refused(&self, user: &str, line: &str) -> (i32, String) {
        let said = self.site.run(user, line);
        assert!(!Path::new(&format!("{}/x", self.open)).exists(), "{user}: {line}");
        (said.code, said.err)
    }

    /// A job goes on as if nothing had been.
    fn ends_well(&self, user: &str, job: u32) {
        let open = &self.open;
        assert_eq!(self.site.stat(job), "RUN");
        std::fs::write(format!("{open}/{user}.go"), "").unwrap();
        assert_eq!(self.site.end_of(job), "DONE");
        let out = std::fs::read_to_string(format!("{open}/{user}.out")).unwrap();
        // three tasks in the table, and no other
        assert_eq!(out.lines().filter(|line| line.starts_with("0000")).count(), 3, "{out}");
        assert_eq!(out.matches(" Done ").count(), 3, "{out}");
    }
}

#[test]
fn another_user_has_no_task_in_a_parallel_job_by_blaunch_taskstarter_or_pam() {
    let name = "another_user_has_no_task_in_a_parallel_job_by_blaunch_taskstarter_or_pam";
    if !MultiUserSite::possible(name) {
        return;
    }
    let a = Attacked::new("foreign-tasks");
    let open = &a.open;
    let (job, at) = a.job("ann");
    let identity = a.identity("ann");
    let fails = |host: &str, why: &str| {
        format!("blaunch: {host}: {why}\nlsb_launch(): Failed while executing tasks.\n")
    };
    let wrong = |host: &str| fails(host, "Validation failed: wrong user");
    // with the whole environment of the job, from any host; administrators and root likewise
    for host in ["host1", "host2", "host3"] {
        let line = format!("{identity} blaunch {host} touch {open}/x");
        for user in ["bob", ADMIN] {
            assert_eq!(a.refused(user, &line), (255, wrong(host)), "{user}");
        }
        let root = fails(host, "Root user can't run remote tasks");
        assert_eq!(a.refused("root", &line), (255, root));
    }
    // from a job of their own on the same hosts, and by a pam that says it is of the job
    let (other, port) = a.job("bob");
    let own = a.identity("bob");
    let line = format!("{own} LSB_JOBID={job} blaunch host2 touch {open}/x");
    assert_eq!(a.refused("bob", &line), (255, wrong("host2")));
    std::fs::write(format!("{open}/no.go"), "").unwrap();
    std::fs::set_permissions(open, PermissionsExt::from_mode(0o777)).unwrap();
    let line = format!("{identity} pam -t -g {open}/pjl.sh {open}/no touch {open}/x");
    let (_, words) = a.refused("bob", &line);
    for host in ["host1", "host2", "host3"] {
        assert!(words.contains(wrong(host).lines().next().unwrap()), "{words}");
    }
    // a TaskStarter is believed by its uid alone, whatever it says of its job; nor does one of the
    // job go to the pam of another user
    let starts = |user: &str, at: &str| {
        let line = format!("{identity} TaskStarter -p {at} -c $LSF_ENVDIR touch {open}/x");
        let (code, words) = a.refused(user, &line);
        let reach = format!("TaskStarter: cannot reach pam at {at}: ");
        assert!(code == 125 && words.starts_with(&reach), "{user}: {code} {words}");
    };
    std::thread::scope(|all| {
        for user in ["bob", ADMIN, "root"] {
            all.spawn({
                let (starts, at) = (&starts, &at);
                move || starts(user, at)
            });
        }
        all.spawn(|| starts("ann", &port));
    });
    a.ends_well("ann", job);
    a.ends_well("bob", other);
}

/// The orders and questions of a host that is none of the job, for the sbatchd of another.
fn orders(key: JobKey) -> Vec<(&'static str, Msg)> {
    let order = || Box::new(StartJob { key, ..StartJob::default() });
    let act = Act::Terminate { exit_info: 1 };
    vec![
        ("Start", Msg::Sbd(SbdMsg::Start(order()))),
        ("Join", Msg::Sbd(SbdMsg::Join(order()))),
        ("Leave", Msg::Sbd(SbdMsg::Leave { key })),
        ("Act", Msg::Sbd(SbdMsg::Act { key, seq: u32::MAX, order: u64::MAX, act, why: 0 })),
        ("Ask", Msg::Member(MemberMsg::Ask { job: key.job_ref() })),
    ]
}

/// The refusal, which ends the connection.
fn refusal(script: &Arc<Mutex<Script>>) -> Option<i32> {
    let script = script.lock().unwrap();
    let code = |msg: &Msg| if let Msg::Refused(why) = msg { Some(why.code) } else { None };
    assert!(script.heard.iter().all(|msg| code(msg).is_some()), "{:?}", script.heard);
    script.heard.iter().find_map(code)
}

#[test]
fn lost_node_has_the_sbatchd_of_another_start_join_and_end_nothing() {
    let rig = Rig::up("lost-node", 4);
    rig.ready();
    wait_for("all hosts", || rig.run("bhosts", &["-w"]).out.matches(" ok ").count() == 4);
    let masters = rig.read("conf/lsf.conf");
    let masters = masters.lines().find(|line| line.starts_with("LSF_MASTER_LIST=")).unwrap();
    assert!(!masters.contains("host4"), "{masters}");
    let all = ["-n", "2", "-R", "span[ptile=1]", "-m", "host1! host2", "-o", "/dev/null"];
    let job = rig.bsub(&[&all[..], &["blaunch -z \"$LSB_HOSTS\" sleep 600"]].concat());
    let two = || rig.field(&job.to_string(), "pids").split(',').count() >= 2;
    wait_for("the job to run", || rig.stat(job) == "RUN" && two());
    let there = JobKey { job, idx: 0, attempt: 1 };
    let made_up = JobKey { job: 4_000_000, idx: 0, attempt: 1 };
    // the other hosts of the job are attacked, its first one and one that it is not on
    for host in ["host1", "host2", "host3"] {
        for daemon in [Daemon::Mbatchd, Daemon::Sbatchd, Daemon::Res] {
            for key in [there, made_up] {
                for (what, msg) in orders(key) {
                    let to = Endpoint::Tcp { host: host.into(), daemon: Daemon::Sbatchd };
                    let script = speak_from(&rig, daemon, "host4", to, msg);
                    let mut code = None;
                    wait_for(&format!("{what} to {host} as {daemon:?} to be refused"), || {
                        code = refusal(&script);
                        code.is_some()
                    });
                    assert_eq!(code, Some(err::PERMISSION), "{what} to {host} as {daemon:?}");
                }
            }
        }
    }
    assert_eq!(rig.stat(job), "RUN");
    assert!(two(), "{}", rig.field(&job.to_string(), "pids"));
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
}
