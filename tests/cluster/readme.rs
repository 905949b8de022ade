//! The three-host site of the README, its lines as they stand there, and what an administrator
//! does with such a site: stopping and starting daemons, here and elsewhere, under jobs.

use super::nodes::Nodes;
use super::rig::{binary, job_id, wait_for};
use super::site::{ADMIN, uid};
use std::process::Command;

const HOSTS: [&str; 3] = ["hosta", "hostb", "hostc"];

/// The site, as the README makes it.
pub fn site(name: &str) -> Nodes {
    let nodes = Nodes::new(name, &HOSTS);
    let readme = include_str!("../../README.md");
    let (_, rest) = readme.split_once("## A site of several hosts").unwrap();
    let block = rest.lines().skip_while(|l| !l.starts_with("    "));
    let lines: Vec<&str> =
        block.take_while(|l| l.starts_with("    ")).map(str::trim_start).collect();
    assert_eq!(lines.len(), 10, "ten lines");
    assert_eq!(lines[0], "make install");
    // what `make install` does, without building anew
    let copied = Command::new("cp").arg(binary()).arg(nodes.path("bin/lsf")).status().unwrap();
    assert!(copied.success());
    nodes.ok("root", "hosta", &format!("{0}/lsf --install {0}", nodes.path("bin").display()));
    let top = nodes.path("top").display().to_string();
    let text = lines[1..].join("\n").replace("/share/lsf", &top);
    let out = nodes.ok("root", "hosta", &text);
    assert!(out.contains("\nhosta   "), "{out}");
    nodes
}

fn ready(nodes: &Nodes, hosts: usize) {
    wait_for("the hosts to be ready", || {
        nodes.run(ADMIN, "hosta", "bhosts -w").out.matches(" ok ").count() == hosts
    });
}

fn stat(nodes: &Nodes, job: u32) -> String {
    nodes.run(ADMIN, "hosta", &format!("bjobs -a -noheader -o stat {job}")).out.trim().to_owned()
}

fn run(nodes: &Nodes, host: &str, what: &str) -> u32 {
    let out = nodes.ok("ann", "hosta", &format!("bsub -m {host} {what}"));
    let job = job_id(&out).unwrap();
    wait_for("the job to start", || stat(nodes, job) != "PEND");
    job
}

#[test]
fn site_of_the_readme_runs_jobs_and_restarts_its_daemons() {
    if !Nodes::possible("site_of_the_readme_runs_jobs_and_restarts_its_daemons") {
        return;
    }
    let nodes = site("readme");
    ready(&nodes, 3);
    for host in HOSTS {
        let job = run(&nodes, host, &format!("-o {host}.out 'hostname; id -u'"));
        assert_eq!(nodes.end_of("hosta", job), "DONE");
        let text = std::fs::read_to_string(nodes.path(&format!("home/ann/{host}.out"))).unwrap();
        assert!(text.contains(&format!("{host}\n{}\n", uid("ann"))), "{text}");
    }
    let status = |host: &str| nodes.run("root", host, "lsf_daemons status");
    let s = status("hostc");
    assert!(s.code == 0 && s.out.starts_with("Show status of the LSF subsystem\n"), "{}", s.out);
    assert_eq!(s.out.matches("is running...").count(), 4, "{}", s.out);
    let job = run(&nodes, "hostc", "'sleep 4; exit 7'");
    // one daemon, from another host
    let s = nodes.run("root", "hosta", "badmin hshutdown -f hostc hostb");
    let want = "Shut down slave batch daemon on <hostc> ...... done\n\
                Shut down slave batch daemon on <hostb> ...... done\n";
    assert_eq!((s.code, s.err.as_str()), (0, want));
    let s = status("hostc");
    assert!(s.code == 3 && s.out.contains("sbatchd is stopped..."), "{}", s.out);
    assert!(s.out.contains("lim (pid "), "{}", s.out);
    nodes.ok("root", "hosta", "badmin hstartup hostb hostc && badmin hrestart all");
    nodes.ok("root", "hosta", "lsadmin limrestart all && lsadmin limshutdown hostb");
    assert!(status("hostb").out.contains("lim is stopped..."));
    nodes.ok("root", "hosta", "lsadmin limstartup hostb");
    assert_eq!(nodes.end_of("hosta", job), "EXIT");
    let code = nodes.ok(ADMIN, "hosta", &format!("bjobs -a -noheader -o exit_code {job}"));
    assert_eq!(code.trim(), "7", "the end was kept for sbatchd");
    // the administrator's LSF_RSH is the administrator's to use, not root's
    let conf = nodes.path("top/conf/lsf.conf");
    let good = std::fs::read_to_string(&conf).unwrap();
    let trap = nodes.path("home/lsfadm/trap").display().to_string();
    std::fs::write(&conf, format!("{good}LSF_RSH=\"sh -c 'id -un >> {trap}'\"\n")).unwrap();
    nodes.ok("root", "hosta", "badmin hrestart hostb");
    nodes.ok(ADMIN, "hosta", "badmin hrestart hostb");
    assert_eq!(std::fs::read_to_string(&trap).unwrap(), format!("{ADMIN}\n"));
    std::fs::write(&conf, good).unwrap();
    let s = nodes.run("root", "hosta", "badmin hrestart hostx");
    assert_eq!((s.code, s.err.as_str()), (255, "badmin: hostx: No such host\n"));
}

#[test]
fn reload_keeps_all_jobs_and_restart_names_the_lost_ones() {
    if !Nodes::possible("reload_keeps_all_jobs_and_restart_names_the_lost_ones") {
        return;
    }
    let nodes = site("reload");
    ready(&nodes, 3);
    let exit = |job: u32| {
        let line = format!("bjobs -a -noheader -o 'stat exit_code' {job}");
        nodes.ok(ADMIN, "hosta", &line).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // the host that is also the master: every process becomes another
    let pids = || nodes.ok("root", "hosta", "lsf_daemons status");
    let before = pids();
    let job = run(&nodes, "hosta", "'sleep 4; exit 9'");
    nodes.ok("root", "hosta", "lsf_daemons reload");
    let after = pids();
    assert_eq!(after.matches("is running...").count(), 5, "{after}");
    assert_eq!(before.matches("is running...").count(), 5, "{before}");
    let same = before.lines().skip(1).filter(|l| after.contains(*l)).count();
    assert_eq!(same, 0, "{before}{after}");
    ready(&nodes, 3);
    assert_eq!(nodes.end_of("hosta", job), "EXIT");
    assert_eq!(exit(job), "EXIT 9");
    // all hosts down: jobs go on; what the launchers had started ends unseen
    let job = run(&nodes, "hostc", "-o out 'sleep 6; touch made'");
    let s = nodes.run("root", "hosta", "lsfshutdown -f");
    let want = HOSTS.map(|h| format!("Shut down the daemons on <{h}> ...... done\n")).concat();
    assert_eq!((s.code, s.err), (0, want));
    for host in HOSTS {
        let s = nodes.run("root", host, "lsf_daemons status");
        assert!(s.code == 3 && !s.out.contains("running"), "{}", s.out);
    }
    assert!(nodes.ok("root", "hostc", "pgrep -c sleep").trim() != "0", "the job goes on");
    // the kernel is to spare daemons, not jobs
    let spare = "echo -500 > /proc/self/oom_score_adj";
    let spared = nodes.run("root", "hostc", spare).code == 0;
    if spared {
        nodes.ok("root", "hostc", &format!("{spare} && lsf_daemons start"));
    } else {
        super::rig::skipped("jobs_begin_with_oom_score_adj_0: this root may not lower it");
    }
    nodes.ok("root", "hosta", "lsfstartup");
    ready(&nodes, 3);
    assert_eq!(nodes.end_of("hosta", job), "EXIT");
    assert!(nodes.path("home/ann/made").exists(), "it ran to its end");
    let long = nodes.ok(ADMIN, "hosta", &format!("bjobs -a -UF {job}"));
    let lost =
        "TERM_LOST_STATUS: exit status unknown, the launcher on the execution host was lost.";
    assert!(long.contains(lost), "{long}");
    let job = run(&nodes, "hostc", "-o score 'cat /proc/self/oom_score_adj'");
    assert_eq!(nodes.end_of("hosta", job), "DONE");
    let text = std::fs::read_to_string(nodes.path("home/ann/score")).unwrap();
    assert!(text.ends_with("The output (if any) follows:\n\n0\n\n"), "{text}");
}

#[test]
fn users_start_daemons_only_when_root_named_them() {
    if !Nodes::possible("users_start_daemons_only_when_root_named_them") {
        return;
    }
    let nodes = site("startup");
    // what sudo tells of its caller
    let sudo = |user: &str, line: &str| {
        let s = nodes.run("root", "hostb", &format!("SUDO_USER={user} lsf_daemons {line}"));
        (s.code, s.err)
    };
    let refused = |user: &str, why: &str| {
        let want = format!("lsf_daemons: {user} may not: {why} of /etc/lsf.sudoers\n");
        assert_eq!(sudo(user, "stop"), (255, want));
    };
    refused("bob", "LSF_STARTUP_USERS is not set");
    let file = nodes.path("etc.hostb/lsf.sudoers");
    let put = |text: &str| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    };
    put("LSF_STARTUP_USERS=\"ann\"\n");
    refused("bob", "not among the LSF_STARTUP_USERS");
    refused(ADMIN, "not among the LSF_STARTUP_USERS");
    put("LSF_STARTUP_USERS=\"ann\"\nLSF_STARTUP_PATH=/usr/bin\n");
    refused("ann", "this program is not in the LSF_STARTUP_PATH");
    put(&format!("LSF_STARTUP_USERS=ann\nLSF_STARTUP_PATH={}/top/bin\n", nodes.dir.display()));
    assert_eq!(sudo("ann", "stop"), (0, String::new()));
    put("LSF_STARTUP_USERS=all_admins\n");
    refused("bob", "not among the LSF_STARTUP_USERS");
    assert_eq!(sudo(ADMIN, "start"), (0, String::new()));
    // without sudo, and without root
    let s = nodes.run("bob", "hostb", "lsf_daemons stop lim");
    assert!(
        s.code == 255 && s.err.contains("only root can do this, and sudo failed: No such file"),
        "{}",
        s.err
    );
    nodes.ok(ADMIN, "hostb", "lsf_daemons restart lim");
    nodes.ok("root", "hostb", "lsf_daemons stop");
    nodes.write("bin/sudo", "#!/bin/sh\necho \"sudo $*\"\n");
    nodes.ok("root", "hostb", &format!("chmod 755 {}", nodes.path("bin/sudo").display()));
    let top = nodes.path("top").display().to_string();
    let said = nodes.ok("bob", "hostb", "lsf_daemons start");
    assert_eq!(said, format!("sudo -n {top}/bin/lsf_daemons -d {top}/conf start\n"));
}
