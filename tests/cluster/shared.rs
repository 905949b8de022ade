//! File systems as sites share them: one that lets root do nothing, one whose server of locks is
//! away. Operations that cannot work are refused with words; after a failure of the server the
//! others go on by themselves.

use super::install::installed;
use super::nodes::Nodes;
use super::rig::{PATIENCE, Rig, Said, job_id, kill, skipped, wait_for};
use super::site::{ADMIN, uid};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The means by which root is kept out.
#[derive(Clone, Copy, PartialEq)]
enum Denied {
    /// A mount of the administrator's own, which the kernel keeps for that user.
    Mount,
    /// Modes, for a root without the capabilities that overrule them.
    Modes,
}

/// Whether this can be had here; counts the test as skipped where not.
fn can(name: &str, how: Denied) -> bool {
    if !Nodes::possible(name) {
        return false;
    }
    let bindfs = Command::new("bindfs").arg("-V").output().is_ok();
    let open = std::fs::File::options().read(true).write(true).open("/dev/fuse");
    if how == Denied::Mount && !(bindfs && open.is_ok()) {
        skipped(&format!("{name}: needs bindfs and /dev/fuse"));
        return false;
    }
    true
}

/// A host whose root cannot look into these directories of the tree.
fn denying(name: &str, how: Denied, dirs: &[&str]) -> Nodes {
    let nodes = installed(name, &["hosta"]);
    nodes.ok("root", "hosta", &format!("cp {0}/top/bin/lsf {0}/bin/lsf", nodes.dir.display()));
    for dir in dirs {
        let dir = nodes.path(dir).display().to_string();
        let admin = uid(ADMIN);
        let caps = "+sys_admin,+dac_override";
        let line = match how {
            Denied::Mount => format!(
                "chown -R {admin} {dir} && setpriv --reuid={admin} --regid={admin} \
                 --clear-groups --inh-caps={caps} --ambient-caps={caps} bindfs --no-allow-other {dir} {dir}"
            ),
            Denied::Modes => format!("chown -R {admin} {dir} && chmod 700 {dir}"),
        };
        nodes.ok("root", "hosta", &line);
        let look = nodes.run("root", "hosta", &format!("{} ls {dir}", root(how)));
        assert!(
            look.code != 0 && look.err.contains("Permission denied"),
            "{}{}",
            look.out,
            look.err
        );
    }
    nodes
}

/// Runs what follows as the root that is kept out.
fn root(how: Denied) -> &'static str {
    match how {
        Denied::Mount => "",
        Denied::Modes => "setpriv --bounding-set=-dac_override,-dac_read_search",
    }
}

fn refuses(name: &str, how: Denied) {
    if !can(name, how) {
        return;
    }
    let nodes = denying(name, how, &["top"]);
    let dir = nodes.dir.display();
    let line = format!("{} {dir}/bin/lsf launcher -d {dir}/top/conf", root(how));
    let s = nodes.run("root", "hosta", &format!("timeout 20 {line}"));
    let want = format!("{dir}/top/conf/lsf.conf: ");
    let told = s.err.contains(&want) && s.err.contains("Permission denied");
    assert!(s.code != 0 && s.code != 124 && told, "{}: {}", s.code, s.err);
}

#[test]
fn a_mount_that_denies_root_is_refused_where_root_must_read() {
    refuses("a_mount_that_denies_root_is_refused_where_root_must_read", Denied::Mount);
}

#[test]
fn modes_that_deny_root_are_refused_where_root_must_read() {
    refuses("modes_that_deny_root_are_refused_where_root_must_read", Denied::Modes);
}

fn serves(name: &str, how: Denied) {
    if !can(name, how) {
        return;
    }
    let nodes = denying(name, how, &["top/work", "top/log"]);
    let dir = nodes.dir.display();
    let line = format!("{} {dir}/bin/lsf launcher -d {dir}/top/conf", root(how));
    let mut launcher = nodes.shell("root", "hosta", &format!("exec {line} 2> {dir}/said"));
    let mut launcher = launcher.spawn().unwrap();
    wait_for("the host to be ready", || {
        nodes.run(ADMIN, "hosta", "LSB_NTRIES=1 bhosts -w").out.contains(" ok ")
    });
    let out = nodes.ok("ann", "hosta", "bsub -o out -m hosta 'id -un'");
    let job = job_id(&out).unwrap();
    assert_eq!(nodes.end_of("hosta", job), "DONE");
    let out = std::fs::read_to_string(nodes.path("home/ann/out")).unwrap();
    assert!(out.ends_with("The output (if any) follows:\n\nann\n\n"), "{out}");
    // root cannot write there: its log is opened by a process of the administrator's, or is told
    // on standard error where root may not have that file even so
    let log = nodes.run(ADMIN, "hosta", &format!("cat {dir}/top/log/launcher.log.hosta")).out;
    let said = std::fs::read_to_string(nodes.path("said")).unwrap();
    let elsewhere = said.contains("LSF_LOGDIR cannot be written, this log is here: ");
    assert_eq!(elsewhere, how == Denied::Mount, "{said}");
    let log = if elsewhere { said } else { log };
    assert!(log.contains("sbatchd is pid"), "{log}");
    // nsenter, and with it the launcher
    let _ = launcher.kill();
    let _ = launcher.wait();
}

#[test]
fn cluster_on_a_mount_that_denies_root_runs_jobs() {
    serves("cluster_on_a_mount_that_denies_root_runs_jobs", Denied::Mount);
}

#[test]
fn cluster_with_modes_that_deny_root_runs_jobs() {
    serves("cluster_with_modes_that_deny_root_runs_jobs", Denied::Modes);
}

/// A tracer of the test's own.
struct Tracer(Child);

impl Drop for Tracer {
    fn drop(&mut self) {
        // it lets its tracees go on
        kill(self.0.id(), 2);
        let _ = self.0.wait();
    }
}

#[test]
fn a_log_whose_locks_fail_is_refused_until_they_work() {
    let name = "a_log_whose_locks_fail_is_refused_until_they_work";
    let rig = Rig::up("nolock", 1);
    rig.ready();
    let job = rig.bsub(&["-o", "/dev/null", "sleep 1000"]);
    wait_for("the job to run", || rig.stat(job) == "RUN");
    let launcher = rig.pid("launcher", "host1").unwrap().to_string();
    let lock = rig.logdir().join("lsb.events.lock").display().to_string();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-p", &launcher, "-P", &lock, "-o", "/dev/null"]);
    strace.args(["-e", "inject=fcntl,flock:error=ENOLCK"]).stderr(Stdio::piped());
    let Ok(mut child) = strace.spawn() else {
        return skipped(&format!("{name}: strace is not installed"));
    };
    let mut first = [0; 64];
    let told = std::io::Read::read(child.stderr.as_mut().unwrap(), &mut first).unwrap_or(0);
    let words = String::from_utf8_lossy(&first[..told]).into_owned();
    let tracer = Tracer(child);
    if !words.contains("attached") {
        return skipped(&format!("{name}: strace may not attach: {words}"));
    }
    let log = || rig.read("log/mbatchd.log.host1");
    let refusals = || log().matches("file locks do not work there (No locks available").count();
    assert_eq!(refusals(), 0);
    assert!(rig.kill9("mbatchd", "host1"));
    // it is tried again and again
    let from = Instant::now();
    while refusals() < 2 {
        assert!(from.elapsed() < PATIENCE, "{} refusals: {}", refusals(), log());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(log().contains("mount the file system with locking or move LSB_SHAREDIR"));
    let mut ask = rig.cmd("bqueues");
    let said = Said::from(ask.env("LSB_NTRIES", "1").output().unwrap());
    assert!(said.code != 0, "{}", said.out);
    drop(tracer);
    rig.ready();
    assert_eq!(rig.stat(job), "RUN");
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
}
