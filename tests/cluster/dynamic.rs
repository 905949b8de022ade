//! Hosts that lsf.cluster does not name: one joins, one is refused; what becomes of a member when
//! the LIM that let it in ends, and when its host does.

use crate::rig::{Rig, job_id, kill, wait_for};
use std::process::{Child, Command, Stdio};

/// The launcher of a host of its own; it ends with this value, however the test does.
struct Launcher(Child);

impl Drop for Launcher {
    fn drop(&mut self) {
        kill(self.0.id(), 2);
        let _ = self.0.wait();
    }
}

/// Starts the launcher of a dynamic host, as the host would at boot.
fn boot(rig: &Rig, host: &str) -> Launcher {
    let mut c = Command::new(crate::rig::binary());
    rig.dress(&mut c);
    c.arg("launcher").env("LSF_LOCAL_HOST", host);
    Launcher(c.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// A cluster that a host at the one of these addresses may join.
fn open(rig: &Rig) {
    assert_eq!(rig.down().code, 0);
    let hosts = rig.read("conf/hosts");
    let first = hosts.lines().find_map(|l| l.strip_suffix(" host1")).unwrap().trim();
    let net = first.rsplit_once('.').unwrap().0;
    rig.write("conf/hosts", &format!("{hosts}{net}.71 dyn1\n{net}.72 dyn2\n"));
    let conf = rig.read("conf/lsf.conf");
    let own = "LSF_DYNAMIC_HOST_WAIT_TIME=1\nLSF_LOCAL_RESOURCES=\"[resource fast]\"\n\
               LSF_RES_ACTIVE_TIME=10\n";
    rig.write("conf/lsf.conf", &format!("{conf}{own}"));
    let file = "conf/lsf.cluster.personal";
    let text = rig.read(file);
    let range = format!("LSF_HOST_ADDR_RANGE = {net}.70-71\nEnd Parameters");
    rig.write(file, &text.replace("End Parameters", &range));
    let hosts = rig.configdir().join("lsb.hosts");
    let text = std::fs::read_to_string(&hosts).unwrap();
    let group = "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nfarm (host1)\nEnd HostGroup\n";
    std::fs::write(&hosts, format!("{text}\n{group}")).unwrap();
    rig.start();
    rig.ready();
}

fn farm(rig: &Rig) -> Vec<String> {
    let out = rig.ok("bmgroup", &["farm"]);
    out.lines().last().unwrap().split_whitespace().skip(1).map(str::to_owned).collect()
}

fn status(rig: &Rig, host: &str) -> String {
    let out = rig.run("lsload", &[host]).out;
    let word = out.lines().nth(1).and_then(|l| l.split_whitespace().nth(1));
    word.unwrap_or_default().to_owned()
}

fn there(rig: &Rig, host: &str) -> bool {
    status(rig, host) == "ok"
}

fn job_on_dyn1(rig: &Rig, file: &str) {
    let out = rig.path(file).display().to_string();
    let job = rig.bsub(&["-m", "dyn1", "-o", "/dev/null", &format!("echo $LSB_HOSTS > {out}")]);
    assert_eq!(rig.end_of(job), "DONE");
    assert_eq!(rig.read(file), "dyn1\n");
}

#[test]
fn host_in_the_address_range_joins_and_another_is_refused() {
    let rig = Rig::up("dynamic", 2);
    open(&rig);
    let _launchers = [boot(&rig, "dyn1"), boot(&rig, "dyn2")];
    wait_for("dyn1 to join", || there(&rig, "dyn1"));
    let row = rig.ok("lshosts", &["-w", "dyn1"]);
    assert!(row.contains(" Yes ") && row.contains("(fast)"), "{row}");
    assert!(rig.ok("lshosts", &[]).contains("dyn1"));
    wait_for("mbatchd to know it", || rig.run("bhosts", &["-w", "dyn1"]).out.contains(" ok "));
    job_on_dyn1(&rig, "first");
    joins_the_group(&rig);
    // it is a host like others: jobs are submitted there, tasks run there
    let mut c = rig.cmd("bsub");
    c.env("LSF_LOCAL_HOST", "dyn1").args(["-m", "host2", "-o", "/dev/null", "true"]);
    let out = c.output().unwrap();
    let job = job_id(&String::from_utf8_lossy(&out.stdout)).unwrap();
    assert_eq!(rig.end_of(job), "DONE");
    assert_eq!(rig.field(&job.to_string(), "from_host"), "dyn1");
    assert_eq!(rig.ok("lsrun", &["-m", "dyn1", "printenv", "LSF_LOCAL_HOST"]), "dyn1\n");
    // RES of host2 goes; its LIM finds that out by itself, see below
    rig.ok("lsadmin", &["resshutdown", "-f", "host2"]);
    // the other one is told why not, and is nobody
    let why = "host host1 does not admit this host: address";
    wait_for("a refusal", || rig.read("log/lim.log.dyn2").contains(why));
    let log = rig.read("log/lim.log.dyn2");
    assert!(log.contains("is not in LSF_HOST_ADDR_RANGE of lsf.cluster.personal"), "{log}");
    assert!(rig.read("log/lim.log.host1").contains("host dyn2 is not admitted"));
    assert_eq!(rig.run("lsload", &["dyn2"]).err, "dyn2: Bad host name\n");
    assert!(!rig.ok("bhosts", &[]).contains("dyn2"));
    // the next LIM of the master, and the next master, know it
    assert!(rig.kill9("lim", "host1"));
    wait_for("LIM again", || there(&rig, "dyn1"));
    for daemon in ["launcher", "lim", "sbatchd", "mbatchd", "authd"] {
        rig.kill9(daemon, "host1");
    }
    let on_host2 = |applet: &str, args: &[&str]| {
        let out = rig.cmd(applet).args(args).env("LSF_LOCAL_HOST", "host2").output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    wait_for("the next master", || on_host2("lsload", &["dyn1"]).contains("ok "));
    wait_for("its mbatchd", || on_host2("bhosts", &["-w", "dyn1"]).contains(" ok "));
    rig.start();
    wait_for("the first master", || there(&rig, "dyn1") && there(&rig, "host1"));
    rig.ready();
    wait_for("its mbatchd", || rig.run("bhosts", &["-w", "dyn1"]).out.contains(" ok "));
    job_on_dyn1(&rig, "second");
    assert_eq!(farm(&rig), ["host1", "dyn1"]);
    let said = rig.run("badmin", &["hghostdel", "-f", "farm", "host1"]);
    let why = "host1: Host was not added with badmin hghostadd\n";
    assert_eq!((said.code, said.err.as_str()), (255, why));
    rig.ok("badmin", &["hghostdel", "-f", "farm", "dyn1"]);
    wait_for("the files to be read again", || farm(&rig) == ["host1"]);
    wait_for("host2 to tell that RES is gone", || status(&rig, "host2") == "-ok");
    // where it runs it is seen, also long after the start, and where it comes back
    assert_eq!(status(&rig, "host1"), "ok");
    rig.ok("lsadmin", &["resstartup", "host2"]);
    wait_for("host2 to tell that RES is back", || status(&rig, "host2") == "ok");
    // its host goes
    rig.ok("lsadmin", &["limshutdown", "-f", "dyn1"]);
    wait_for("its end", || status(&rig, "dyn1") == "unavail");
}

/// dyn1 becomes a member of a group, which the next masters know, too.
fn joins_the_group(rig: &Rig) {
    assert_eq!(farm(rig), ["host1"]);
    let said = rig.run("badmin", &["hghostadd", "farm", "host1"]);
    assert_eq!((said.code, said.err.as_str()), (255, "host1: Host is already member of group\n"));
    let said = rig.run("badmin", &["hghostadd", "-C", "more", "farm", "dyn1"]);
    let done = "Add <dyn1> to host group <farm> ...... done\n";
    assert_eq!((said.code, said.err.as_str()), (0, done));
    assert_eq!(farm(rig), ["host1", "dyn1"]);
    let log = rig.ok("badmin", &["hhist", "dyn1"]).replace("\n                     ", "");
    assert!(log.contains(": Host <dyn1> added to host group <farm> by administrator <"), "{log}");
}

#[test]
fn res_accepts_hosts_that_were_added() {
    let rig = Rig::up("syncup", 1);
    rig.ready();
    let hosts = rig.read("conf/hosts");
    let first = hosts.lines().find_map(|l| l.strip_suffix(" host1")).unwrap().trim().to_owned();
    let net = first.rsplit_once('.').unwrap().0;
    rig.write("conf/hosts", &format!("{hosts}{net}.77 added\n"));
    let file = "conf/lsf.cluster.personal";
    let text = rig.read(file);
    let row = text.lines().find(|l| l.starts_with("host1 ")).unwrap();
    let own = row.replacen("host1", "added", 1);
    rig.write(file, &text.replace(row, &format!("{row}\n{own}")));
    let _launcher = boot(&rig, "added");
    wait_for("lim to know it", || rig.run("lsadmin", &["reconfig", "-f"]).code == 0);
    wait_for("the new host", || there(&rig, "added"));
    let task = || {
        let mut c = rig.cmd("lsrun");
        c.env("LSF_LOCAL_HOST", "added").args(["-m", "host1", "printenv", "LSF_LOCAL_HOST"]);
        crate::rig::Said::from(c.output().unwrap())
    };
    let said = task();
    assert!(said.code == 246 && said.err.contains("non-LSF host"), "{said:?}");
    kill(rig.pid("res", "host1").unwrap(), 1);
    wait_for("res to serve it", || task().out == "host1\n");
}
