//! An LSF_ENVDIR as another LSF 10.1 site left it (tests/oldsite): daemons start on it as it is.

use super::nodes::Nodes;
use super::rig::{binary, job_id, wait_for};
use super::site::ADMIN;
use std::path::Path;

fn copy(from: &Path, to: &Path, top: &str) {
    std::fs::create_dir_all(to).unwrap();
    for e in std::fs::read_dir(from).unwrap().flatten() {
        let to = to.join(e.file_name());
        if e.path().is_dir() {
            copy(&e.path(), &to, top);
        } else {
            let text = std::fs::read_to_string(e.path()).unwrap();
            std::fs::write(to, text.replace("@TOP@", top)).unwrap();
        }
    }
}

#[test]
fn configuration_of_another_lsf_starts_unchanged() {
    if !Nodes::possible("configuration_of_another_lsf_starts_unchanged") {
        return;
    }
    let nodes = Nodes::new("oldsite", &["hosta", "hostb", "hostc"]);
    let top = nodes.path("top").display().to_string();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oldsite");
    copy(&from, &nodes.path("top/conf"), &top);
    let arch = "top/10.1/linux3.10-glibc2.17-x86_64";
    std::fs::create_dir_all(nodes.path(arch)).unwrap();
    let sub = |s: &str| nodes.path(arch).join(s).display().to_string();
    nodes.ok("root", "hosta", &format!("mkdir -p {} {} {top}/log", sub("bin"), sub("etc")));
    nodes.ok("root", "hosta", &format!("cd {top} && mkdir -p work/galaxy/logdir"));
    nodes.ok("root", "hosta", &format!("chown -R {ADMIN} {top}/work {top}/log {top}/conf"));
    nodes.ok("root", "hosta", &format!("cp {} {}/lsf", binary().display(), sub("bin")));
    for dir in ["bin", "etc"] {
        nodes.ok("root", "hosta", &format!("{}/lsf --install {}", sub("bin"), sub(dir)));
    }
    let env = format!("export LSF_ENVDIR={top}/conf PATH={}:$PATH;", sub("bin"));
    let root = |host: &str, line: &str| nodes.ok("root", host, &format!("{env} {line}"));
    // each parameter and each file that changes nothing is told once, and nothing is an error
    let s = nodes.run(ADMIN, "hosta", &format!("{env} badmin ckconfig -v"));
    assert!(s.code == 0 && s.err.contains("There are warning errors."), "{}", s.err);
    let whole = ["lsb.modules", "lsb.globalpolicies"];
    let batch = s.err.clone();
    let warned: Vec<&str> = batch.lines().filter(|l| l.ends_with("(warning)")).collect();
    assert!(warned.len() == 1 && warned[0].contains("<GALAXY_SCRATCH>"), "{warned:?}");
    for file in whole.into_iter().chain(["lsb.threshold", "conf/lsf.task"]) {
        let told = format!("/{file}: is known and not acted on (notice)\n");
        assert_eq!(batch.matches(&told).count(), 1, "{file}: {}", s.err);
    }
    let told = ": LSF_PIM_INFODIR is known and not acted on (notice)\n";
    assert_eq!(batch.matches(told).count(), 1, "{batch}");
    root("hosta", "hostsetup --newkey --check");
    for host in ["hostb", "hostc"] {
        root(
            "hosta",
            &format!("ssh {host} {}/hostsetup --top={top} --key=- < /etc/lsf.key", sub("bin")),
        );
    }
    root("hosta", "lsfstartup");
    let run = |user: &str, line: &str| nodes.run(user, "hosta", &format!("{env} {line}"));
    // the others have thresholds of load, which this machine may be above
    wait_for("the hosts to be ready", || {
        let s = run(ADMIN, "bhosts -w").out;
        let hostc = s.lines().find(|l| l.starts_with("hostc "));
        !s.contains("unavail") && hostc.is_some_and(|l| l.contains(" ok "))
    });
    let units = "CU_NAME      TYPE         HOSTS\nrack1        rack         hosta hostb \n";
    assert_eq!(run("ann", "bmgroup -cu").out, units);
    let shares = "\nUSER_SHARES:  [default, 1] \n\nSHARE_INFO_FOR: normal/\n";
    assert!(run("ann", "bqueues -r normal").out.contains(shares));
    let s = run("ann", "bsub -m hostc -o out hostname");
    let job = job_id(&s.out).unwrap_or_else(|| panic!("{}{}", s.out, s.err));
    wait_for("the job", || {
        run("ann", &format!("bjobs -a -noheader -o stat {job}")).out.trim() == "DONE"
    });
}
