//! A site put on bare hosts: what lsfinstall writes, and what hosts do with it.

use super::nodes::Nodes;
use super::rig::{Said, binary};
use super::site::{ADMIN, uid};
use std::os::unix::fs::MetadataExt;

pub const HOSTS: [&str; 3] = ["hosta", "hostb", "hostc"];

fn config(nodes: &Nodes) -> String {
    format!(
        "LSF_TOP={}/top\nLSF_ADMINS={ADMIN}\nLSF_CLUSTER_NAME=c1\nLSF_MASTER_LIST=\"hosta hostb\"\n\
         LSF_ADD_SERVERS=hostc\n",
        nodes.dir.display()
    )
}

/// Runs lsfinstall on the first host.
fn install(nodes: &Nodes, user: &str) -> Said {
    let line = format!("{} lsfinstall -f {}", binary().display(), "install.config");
    let line = format!("cd {} && {line}", nodes.dir.display());
    nodes.run(user, HOSTS[0], &line)
}

fn modes(nodes: &Nodes, rel: &str) -> (u32, u32) {
    let meta = std::fs::metadata(nodes.path(rel)).unwrap();
    (meta.uid(), meta.mode() & 0o7777)
}

#[test]
fn lsfinstall_run_again_writes_no_second_tree() {
    if !Nodes::possible("lsfinstall_run_again_writes_no_second_tree") {
        return;
    }
    let nodes = Nodes::new("tree", &HOSTS[..1]);
    nodes.write("install.config", &config(&nodes).replace("hosta", "b;d"));
    let s = install(&nodes, "root");
    let want = "error: install.config:4:18: <b;d> cannot name a host\n";
    assert_eq!((s.code, s.err.as_str()), (255, want));
    nodes.write("install.config", &config(&nodes));
    let s = install(&nodes, "bob");
    assert!(
        s.err.ends_with("run it as root, or as the primary administrator lsfadm\n"),
        "{}",
        s.err
    );
    assert!(!nodes.path("top").exists());
    let s = install(&nodes, "root");
    assert_eq!((s.code, s.err.as_str()), (0, ""), "{}", s.out);
    let (root, admin) = (0, uid(ADMIN));
    for rel in ["top", "top/bin", "top/etc", "top/bin/lsf"] {
        assert_eq!(modes(&nodes, rel), (root, 0o755), "{rel}");
    }
    for rel in ["top/conf", "top/log", "top/conf/lsbatch/c1/configdir"] {
        assert_eq!(modes(&nodes, rel), (admin, 0o755), "{rel}");
    }
    for rel in ["top/conf/lsf.conf", "top/conf/lsbatch/c1/configdir/lsb.queues"] {
        assert_eq!(modes(&nodes, rel), (admin, 0o644), "{rel}");
    }
    assert_eq!(modes(&nodes, "etc.hosta/lsf.key"), (admin, 0o600));
    for line in ["hostsetup --top=", "systemctl start lsfd", "/etc/lsf.key", "hosta hostb hostc"] {
        assert!(s.out.contains(line), "{line}: {}", s.out);
    }
    nodes.ok(ADMIN, "hosta", "badmin ckconfig -v && lsadmin ckconfig");
    // a second time, and where one file alone is there
    let before = std::fs::read(nodes.path("top/conf/lsf.conf")).unwrap();
    let s = install(&nodes, "root");
    let want = format!(
        "lsfinstall: {}/top/conf/lsf.conf: exists; nothing was changed\n",
        nodes.dir.display()
    );
    assert_eq!((s.code, s.err), (255, want));
    std::fs::remove_file(nodes.path("top/conf/lsf.conf")).unwrap();
    let queues = nodes.path("top/conf/lsbatch/c1/configdir/lsb.queues");
    std::fs::write(&queues, "# mine\n").unwrap();
    let s = install(&nodes, "root");
    assert!(
        s.code == 255 && s.err.contains("lsb.queues: exists; nothing was changed"),
        "{}",
        s.err
    );
    assert_eq!(std::fs::read_to_string(&queues).unwrap(), "# mine\n");
    assert!(!nodes.path("top/conf/lsf.conf").exists() && !before.is_empty());
}

#[test]
fn lsfinstall_of_the_administrator_writes_a_tree() {
    if !Nodes::possible("lsfinstall_of_the_administrator_writes_a_tree") {
        return;
    }
    let nodes = Nodes::new("admtree", &HOSTS[..1]);
    nodes.write("install.config", &config(&nodes));
    let top = nodes.path("top");
    std::fs::create_dir(&top).unwrap();
    std::os::unix::fs::chown(&top, Some(uid(ADMIN)), None).unwrap();
    // root does not follow where others can put links
    let s = install(&nodes, "root");
    assert!(s.code == 255 && s.err.contains("run lsfinstall as the primary admin"), "{}", s.err);
    let s = install(&nodes, ADMIN);
    assert_eq!((s.code, s.err.as_str()), (0, ""), "{}", s.out);
    assert!(s.out.contains("hostsetup --top") && s.out.contains("--newkey"), "{}", s.out);
    for rel in ["top/bin", "top/conf", "top/conf/lsf.conf"] {
        assert_eq!(modes(&nodes, rel).0, uid(ADMIN), "{rel}");
    }
    assert!(!nodes.path("etc.hosta/lsf.key").exists());
}

/// A site of these hosts whose tree, and the first host's key, are there.
pub fn installed(name: &str, hosts: &[&str]) -> Nodes {
    let nodes = Nodes::new(name, hosts);
    nodes.write("install.config", &config(&nodes));
    let s = install(&nodes, "root");
    assert_eq!(s.code, 0, "{}{}", s.out, s.err);
    nodes
}

#[test]
fn hostsetup_names_problems_and_installs_the_service() {
    if !Nodes::possible("hostsetup_names_problems_and_installs_the_service") {
        return;
    }
    let nodes = installed("setup", &HOSTS);
    let setup = format!("{}/top/bin/hostsetup", nodes.dir.display());
    let says = |host: &str, want: &str| {
        let s = nodes.run("root", host, &setup);
        assert_eq!(s.code, 255, "{want}: {}", s.out);
        assert!(s.err.contains(want), "{want}: {}", s.err);
        assert!(s.err.ends_with("amiss; nothing was installed\n"), "{}", s.err);
        assert!(!nodes.path(&format!("etc.{host}/systemd/system/lsfd.service")).exists());
    };
    says("hostb", "/etc/lsf.key: No such file or directory: bring the cluster's key");
    let give = format!("ssh hostb {setup} --key=- --check < /etc/lsf.key");
    nodes.ok("root", "hosta", &give);
    assert_eq!(modes(&nodes, "etc.hostb/lsf.key"), (uid(ADMIN), 0o600));
    nodes.ok("root", "hosta", &give);
    let s = nodes.run("root", "hostb", &format!("echo k1 {} | {setup} --key=-", "ab12".repeat(16)));
    assert!(s.code == 255 && s.err.contains("holds another key"), "{}", s.err);
    nodes.ok("root", "hostb", "chmod 644 /etc/lsf.key");
    says("hostb", "mode is 0644, must be 0600");
    nodes.ok("root", "hostb", "chmod 600 /etc/lsf.key; chown ann /etc/lsf.key");
    says("hostb", "owner is uid 70002, must be 70001");
    nodes.ok("root", "hostb", &format!("chown {ADMIN} /etc/lsf.key"));
    names(&nodes, &says);
    // a port that another program has
    let take = "use IO::Socket::INET; $s = IO::Socket::INET->new(Listen => 1, \
                LocalAddr => '10.99.0.2:6882') or die; sleep 1000";
    nodes.ok(
        "root",
        "hostb",
        &format!("perl -e \"{}\" > /dev/null 2>&1 & sleep 0.5", take.replace('$', "\\$")),
    );
    says("hostb", "port 6882 on 10.99.0.2 (LSB_SBD_PORT) is taken");
    nodes.ok("root", "hostb", "pkill perl; while pgrep perl; do sleep 0.1; done");
    // what root must not start
    let own = nodes.path("home/lsfadm/bin");
    nodes.ok(ADMIN, "hostb", &format!("mkdir bin; cp {}/top/bin/lsf bin/lsf", nodes.dir.display()));
    let mine = format!("{}/lsf hostsetup --top={}/top", own.display(), nodes.dir.display());
    let s = nodes.run("root", "hostb", &mine);
    assert!(s.code == 255 && s.err.contains("root must not run"), "{}", s.err);
    // lsf.conf, which others write, does not choose what root writes
    let conf = nodes.path("top/conf/lsf.conf");
    let good = std::fs::read_to_string(&conf).unwrap();
    std::fs::write(&conf, format!("{good}LSF_KEY_FILE=/etc/cron.d/x\n")).unwrap();
    let s = nodes.run("root", "hostb", &format!("{setup} --newkey"));
    assert!(s.code == 255 && s.err.contains("root writes no key but to a file named"), "{}", s.err);
    assert!(!nodes.path("etc.hostb/cron.d/x").exists());
    std::fs::write(&conf, good).unwrap();
    // all is well
    let line = format!("{setup} --boot=y --profile=y");
    let s = nodes.ok("root", "hostb", &line);
    assert!(s.contains("hostb: nothing is amiss\n"), "{s}");
    let unit = std::fs::read_to_string(nodes.path("etc.hostb/systemd/system/lsfd.service"));
    let start = format!("ExecStart={0}/top/bin/launcher -d {0}/top/conf\n", nodes.dir.display());
    assert!(unit.unwrap().contains(&start));
    let wants = "etc.hostb/systemd/system/multi-user.target.wants/lsfd.service";
    assert!(nodes.path(wants).is_symlink() && nodes.path("etc.hostb/profile.d/lsf.sh").exists());
    let elsewhere = format!("{setup} --destdir={}/root", nodes.dir.display());
    nodes.ok("root", "hostb", &elsewhere);
    assert!(nodes.path("root/etc/systemd/system/lsfd.service").exists());
}

#[test]
fn hostsetup_of_a_personal_cluster_installs_nothing() {
    let rig = super::rig::Rig::up("nosetup", 1);
    let root = rig.path("root");
    let destdir = format!("--destdir={}", root.display());
    assert_eq!(rig.down().code, 0);
    for more in [&["--boot=y", "--profile=y"][..], &["--newkey"]] {
        let args: Vec<&str> = [&[destdir.as_str()], more].concat();
        let s = rig.run("hostsetup", &args);
        let want = format!(
            "hostsetup: LSF_PERSONAL=Y in {}: a personal cluster has no service; start it with `lsf \
             up`\n",
            rig.path("conf/lsf.conf").display()
        );
        assert_eq!((s.code, s.out.as_str(), s.err), (255, "", want));
        assert!(!root.exists(), "something was installed");
    }
}

/// Names that lead astray, one at a time.
fn names(nodes: &Nodes, says: &dyn Fn(&str, &str)) {
    let hosts = nodes.path("etc.hostb/hosts");
    let good = std::fs::read_to_string(&hosts).unwrap();
    let put = |from: &str, to: &str| std::fs::write(&hosts, good.replace(from, to)).unwrap();
    put("10.99.0.3 hostc", "10.99.0.2 hostc");
    says("hostb", "hostc is 10.99.0.2, but 10.99.0.2 is hostb");
    put("10.99.0.1 hosta\n", "");
    says("hostb", "host hosta has no address");
    put("10.99.0.2 hostb", "10.99.0.77 hostb");
    says("hostb", "10.99.0.77 is not an address of this machine");
    std::fs::write(&hosts, &good).unwrap();
    nodes.ok("root", "hostb", "hostname hostx");
    says("hostb", "this host is called hostx, which is not in lsf.cluster.c1");
    nodes.ok("root", "hostb", "hostname hostb");
}

#[test]
fn hostsetup_names_file_systems_without_locks() {
    let name = "hostsetup_names_file_systems_without_locks";
    if !Nodes::possible(name) {
        return;
    }
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        return super::rig::skipped(&format!("{name}: strace is not installed"));
    }
    let nodes = installed("nolocks", &HOSTS);
    let top = nodes.path("top").display().to_string();
    let lock = format!("{top}/{}/logdir/lsb.events.lock", "work/c1");
    std::fs::write(&lock, "").unwrap();
    std::os::unix::fs::chown(&lock, Some(uid(ADMIN)), None).unwrap();
    // the kernel's answer where a server of locks is missing
    let strace = format!("strace -f -o /dev/null -P {lock} -e inject=fcntl,flock:error=ENOLCK");
    let s = nodes.run("root", "hosta", &format!("{strace} {top}/bin/hostsetup"));
    let want = "file locks do not work there (No locks available";
    assert!(s.code == 255 && s.err.contains(want), "{}{}", s.out, s.err);
    nodes.ok("root", "hosta", &format!("{top}/bin/hostsetup --check"));
}

#[test]
fn service_file_passes_the_check_of_systemd() {
    let name = "service_file_passes_the_check_of_systemd";
    let mut verify = std::process::Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]);
    let dir = std::env::temp_dir().join(format!("lsf-unit-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let unit = dir.join("lsfd.service");
    let text = include_str!("../../conf-examples/systemd/lsfd.service");
    let exec = format!("ExecStart={} launcher", binary().display());
    std::fs::write(&unit, text.replace("ExecStart=/usr/local/bin/launcher", &exec)).unwrap();
    let out = verify.arg(&unit).output();
    std::fs::remove_dir_all(&dir).unwrap();
    let Ok(out) = out else {
        return super::rig::skipped(&format!("{name}: systemd-analyze is not installed"));
    };
    let said = Said::from(out);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    let want = [
        "KillMode=process",
        "Delegate=yes",
        "OOMPolicy=continue",
        "TasksMax=infinity",
        "LimitMEMLOCK=infinity",
        "ExecReload=/bin/kill -USR2 $MAINPID",
    ];
    for line in want {
        assert!(text.lines().any(|l| l == line), "{line}");
    }
}
