//! Hosts without a file system in common: each has its own copy of everything, the key alone is the
//! same. Differences between the copies are reported with file and host.

use super::install::{HOSTS, installed};
use super::nodes::Nodes;
use super::rig::{job_id, wait_for};
use super::site::ADMIN;

/// Gives each host a tree of its own at the place of the common one.
fn part(nodes: &Nodes) {
    let top = nodes.path("top").display().to_string();
    let setup = format!("{top}/bin/hostsetup --key=- --check < /etc/lsf.key");
    for host in HOSTS {
        if host != HOSTS[0] {
            nodes.ok("root", HOSTS[0], &format!("ssh {host} {setup}"));
        }
        let own = nodes.path(&format!("copy.{host}")).display().to_string();
        nodes.ok("root", host, &format!("cp -a {top} {own} && mount --bind {own} {top}"));
    }
}

fn log(nodes: &Nodes) -> String {
    let log = nodes.path("copy.hosta/log/lim.log.hosta");
    std::fs::read_to_string(log).unwrap_or_default()
}

fn check(nodes: &Nodes, host: &str) -> String {
    let s = nodes.run(ADMIN, host, "lsadmin ckconfig -v");
    assert_eq!(s.code, 0, "{}", s.err);
    s.err
}

#[test]
fn copies_of_the_configuration_that_differ_are_named_by_file_and_host() {
    if !Nodes::possible("copies_of_the_configuration_that_differ_are_named_by_file_and_host") {
        return;
    }
    let nodes = installed("apart", &HOSTS);
    let cluster = nodes.path("top/conf/lsf.cluster.c1");
    let text = std::fs::read_to_string(&cluster).unwrap();
    std::fs::write(&cluster, text.replace("EXINTERVAL = 5", "EXINTERVAL = 1")).unwrap();
    part(&nodes);
    for host in HOSTS {
        nodes.ok("root", host, "lsf_daemons start");
    }
    wait_for("the hosts to be ready", || {
        nodes.run(ADMIN, "hostc", "bhosts -w").out.matches(" ok ").count() == HOSTS.len()
    });
    for host in ["hostb", "hostc"] {
        let out = nodes.ok("ann", host, &format!("bsub -m {host} -o /dev/null true"));
        assert_eq!(nodes.end_of(host, job_id(&out).unwrap()), "DONE");
    }
    assert!(check(&nodes, "hostc").contains("No errors found."));
    // hostb may become master, hostc may not: its lsb.queues is of no concern
    let queues = "conf/lsbatch/c1/configdir/lsb.queues";
    let files = [
        "copy.hostb/conf/lsf.shared".to_owned(),
        format!("copy.hostb/{queues}"),
        format!("copy.hostc/{queues}"),
    ];
    let good: Vec<String> =
        files.iter().map(|f| std::fs::read_to_string(nodes.path(f)).unwrap()).collect();
    for (file, text) in files.iter().zip(&good) {
        nodes.write(file, &format!("{text}# later\n"));
    }
    let differs = |file: &str| format!("{file} of host hostb differs from that of host hosta");
    let both = ["lsf.shared", "lsb.queues"].map(differs);
    wait_for("the differences", || both.iter().all(|line| log(&nodes).contains(line)));
    let said = check(&nodes, "hostc");
    for file in ["lsf.shared", "lsb.queues"] {
        let line = format!("warning: hostb: {file}: differs from that of the master host\n");
        assert!(said.contains(&line), "{said}");
    }
    assert!(said.contains("No fatal errors found."), "{said}");
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(log(&nodes).matches(" differs from ").count(), 2, "{}", log(&nodes));
    for (file, text) in files.iter().zip(&good) {
        nodes.write(file, text);
    }
    let again = "lsf.shared of host hostb is as that of host hosta again";
    wait_for("the copies to be alike", || log(&nodes).contains(again));
    assert!(check(&nodes, "hosta").contains("No errors found."));
}
