//! How each kind of program that is started here takes signals: none blocked, none ignored,
//! whatever those who started it do.

use super::rig::{program, wait_for};
use super::site::{ADMIN, MultiUserSite};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

/// Signals 32 and 33 are the C library's own and out of reach.
const RESERVED: u64 = 0x1_8000_0000;

/// A set of signals from the status of a process.
fn set(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The signals that a daemon may block: it reads these as data.
const READ_AS_DATA: u64 = bit(1) | bit(2) | bit(12) | bit(15) | bit(17);

/// A line of a script that writes down how it takes signals. Bash has what it starts take them as
/// it was given them; other shells clear what is blocked.
fn probe(site: &MultiUserSite, kind: &str) -> String {
    let to = site.path("seen").join(kind);
    let to = to.display();
    format!("grep -h ^Sig /proc/self/status > {to}.$$ && mv {to}.$$ {to}\n")
}

fn script(site: &MultiUserSite, path: &str, kind: &str, rest: &str) {
    program(&site.path(path), &format!("#!/bin/bash\n{}{rest}", probe(site, kind)));
}

/// The programs of the site, each with its probe, and a cluster that uses them all.
fn prepare() -> MultiUserSite {
    let mut site = MultiUserSite::new("children", 1);
    std::fs::create_dir(site.path("seen")).unwrap();
    std::fs::set_permissions(site.path("seen"), PermissionsExt::from_mode(0o1777)).unwrap();
    script(&site, "srv/elim", "elim", "while :; do echo 1 probed 1; sleep 1; done\n");
    let server = probe(&site, "eauth-s");
    let client = probe(&site, "eauth-c");
    let eauth = format!(
        "#!/bin/bash\n[ \"$1\" = -c ] && {{ {client} echo pass; exit; }}\n{server}\
         while read -r line; do echo 1; done\n"
    );
    program(&site.path("srv/eauth"), &eauth);
    script(&site, "srv/esub", "esub", "");
    script(&site, "srv/eexec", "eexec", "cat > /dev/null\n");
    script(&site, "mailer", "mail", "cat > /dev/null\n");
    let real = site.path("getent.real");
    std::fs::copy("/usr/bin/getent", &real).unwrap();
    script(&site, "getent", "getent", &format!("exec {} \"$@\"\n", real.display()));
    site.instead.push(("getent".into(), "/usr/bin/getent".into()));
    for kind in ["job", "pre", "post", "task", "starter", "login"] {
        script(&site, &format!("srv/probe.{kind}"), kind, "[ $# = 0 ] || exec \"$@\"\n");
    }
    let edit = |path: &str, f: &dyn Fn(String) -> String| {
        let text = std::fs::read_to_string(site.path(path)).unwrap();
        site.write(path, &f(text));
    };
    let numeric = "probed Numeric 15 Y (test)\nEnd Resource\n";
    edit("conf/lsf.shared", &|t| t.replace("End Resource\n", numeric));
    let map = "Begin ResourceMap\nRESOURCENAME LOCATION\nprobed [default]\nEnd ResourceMap\n";
    edit("conf/lsf.cluster.personal", &|t| t + map);
    let queue = "Begin Queue\nQUEUE_NAME = few\nUSERS = nosuchgroup\nEnd Queue\n";
    edit("conf/lsbatch/personal/configdir/lsb.queues", &|t| t + queue);
    site.lsf_conf(&format!(
        "LSF_SERVERDIR={}\nLSB_MAILPROG={}\nLSB_JOB_REPORT_MAIL=Y",
        site.path("srv").display(),
        site.path("mailer").display()
    ));
    site.prelude = "trap '' HUP INT QUIT USR1 TERM ALRM".into();
    site
}

#[test]
fn every_kind_of_child_begins_with_no_signal_blocked_or_ignored() {
    if !MultiUserSite::possible("every_kind_of_child_begins_with_no_signal_blocked_or_ignored") {
        return;
    }
    let mut site = prepare();
    site.start();
    let srv = |kind: &str| site.path("srv").join(format!("probe.{kind}")).display().to_string();
    let args = format!("-E {} -Ep {} {}", srv("pre"), srv("post"), srv("job"));
    let job = site.bsub("ann", &args);
    assert_eq!(site.end_of(job), "DONE");
    assert_eq!(site.end_of(site.bsub("ann", &format!("-L /bin/sh {}", srv("login")))), "DONE");
    wait_for("res to run a task", || {
        site.run("ann", &format!("lsrun -m host1 {}", srv("task"))).code == 0
    });
    site.ok("ann", &format!("LSF_JOB_STARTER={} lsrun -m host1 true", srv("starter")));
    let kinds = [
        "elim", "eauth-s", "eauth-c", "esub", "eexec", "mail", "getent", "job", "pre", "post",
        "task", "starter", "login",
    ];
    let own = set(&std::fs::read_to_string("/proc/self/status").unwrap(), "SigIgn:");
    let mut bad = Vec::new();
    for kind in kinds {
        let path = site.path("seen").join(kind);
        wait_for(kind, || path.exists());
        let status = std::fs::read_to_string(path).unwrap();
        let (blocked, ignored) = (set(&status, "SigBlk:"), set(&status, "SigIgn:") & !RESERVED);
        // what a command starts for its user may have what the user's shell has, such as nohup's
        let given = if ["esub", "eauth-c"].contains(&kind) { own } else { 0 };
        if (blocked, ignored & !given) != (0, 0) {
            bad.push(format!("{kind} blocks {blocked:x} and ignores {ignored:x}"));
        }
    }
    assert_eq!(bad, [""; 0]);
    // the daemons: what they wait for they read, and a peer that is gone is no reason to end
    let mut seen = BTreeSet::new();
    for (name, pid, _) in site.processes() {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let ours = ["launcher", "starter", "authd", "lim", "melim", "sbatchd", "res", "mbatchd"];
        if !ours.contains(&name.as_str()) || status.is_empty() {
            continue;
        }
        let (blocked, ignored) = (set(&status, "SigBlk:"), set(&status, "SigIgn:"));
        assert_eq!(blocked & !READ_AS_DATA, 0, "{name} blocks signals:\n{status}");
        assert_eq!(ignored & !RESERVED, bit(13), "{name} ignores signals:\n{status}");
        seen.insert(name);
    }
    for name in ["launcher", "authd", "lim", "melim", "sbatchd", "res", "mbatchd"] {
        assert!(seen.contains(name), "{name} was not looked at: {seen:?}");
    }
    let elim = site.processes().into_iter().find(|p| p.0 == "melim").unwrap().1;
    let below = lsf::sys::procs::below(elim);
    assert!(!below.is_empty());
    // its elims go with a melim that is told to end
    super::rig::kill(elim, 15);
    wait_for("the elims to end", || below.iter().all(|p| !p.alive()));
    site.ok(ADMIN, "bqueues");
}
