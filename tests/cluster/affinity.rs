//! Jobs that ask for processor units, with real processes on the units of this machine, whatever
//! these are (affinity[] in bsub(1), AFFINITY in lsb.hosts(5)).

use super::rig::{Rig, skipped, wait_for};

/// A cluster of one host that offers its units.
fn up(name: &str) -> Rig {
    let rig = Rig::up(name, 1);
    let rows = "Begin Host\nHOST_NAME MXJ AFFINITY\ndefault 64 Y\nEnd Host\n";
    std::fs::write(rig.configdir().join("lsb.hosts"), rows).unwrap();
    rig.ok("badmin", &["reconfig"]);
    rig
}

/// The CPUs that a kernel's list names: `0-2,5`.
fn numbers(list: &str) -> Vec<u32> {
    let mut all = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<u32>().unwrap()..=last.parse().unwrap());
    }
    all
}

#[test]
fn job_with_a_core_is_bound_to_it_and_knows_it() {
    let rig = up("affinity");
    let tree = || rig.ok("bhosts", &["-aff"]);
    wait_for("an answer", || tree().contains("Host["));
    if !tree().contains("core0(") {
        return skipped("the kernel shows no processor units");
    }
    assert!(!tree().contains('*'), "{}", tree());
    let said = rig.path("said");
    let script = format!(
        "(grep Cpus_allowed_list /proc/self/status; env | grep -E '^(LSB_BIND|RM_CPUTASK)'; \
         cat $LSB_AFFINITY_HOSTFILE) > {0}.tmp; mv {0}.tmp {0}; sleep 300",
        said.display()
    );
    let ask = "affinity[core(1):membind=localprefer]";
    let job = rig.bsub(&["-R", ask, "-o", "/dev/null", &script]);
    wait_for("the words of the job", || said.exists());
    let text = std::fs::read_to_string(&said).unwrap();
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} is missing: {text}")).trim().to_owned()
    };
    let bound = numbers(&value("LSB_BIND_CPU_LIST="));
    assert_eq!(numbers(&value("Cpus_allowed_list:")), bound);
    assert_eq!(numbers(&value("RM_CPUTASK1=")), bound);
    assert_eq!(value("LSB_BIND_MEM_POLICY="), "localprefer");
    let nodes = value("LSB_BIND_MEM_LIST=");
    let list = value("LSB_BIND_CPU_LIST=");
    assert!(text.ends_with(&format!(" {list} {nodes} 2\n")), "{text}");
    // the listings say the same
    let long = rig.ok("bjobs", &["-l", "-aff", &job.to_string()]);
    let row =
        long.lines().skip_while(|line| !line.starts_with(" HOST ")).nth(1).unwrap_or_default();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[1..5], ["core", "-", "-", cells[4]], "{long}");
    assert_eq!(cells[5..7], ["pref", nodes.as_str()], "{long}");
    assert_eq!(tree().matches('*').count(), bound.len(), "{}", tree());
    // all other cores are for others, and no more
    let cores = tree().matches("core").count();
    let rest: Vec<u32> = (0..cores)
        .map(|_| rig.bsub(&["-R", "affinity[core(1)]", "-o", "/dev/null", "sleep 300"]))
        .collect();
    let (last, others) = rest.split_last().unwrap();
    wait_for("the others", || others.iter().all(|job| rig.stat(*job) == "RUN"));
    let why = "not enough processor units to satisfy the job affinity request";
    let pending = || rig.ok("bjobs", &["-p", &last.to_string()]).replace(['\n', ' '], "");
    wait_for("the reason", || pending().contains(&why.replace(' ', "")));
    // they are known to the next mbatchd, and given back
    assert!(rig.kill9("mbatchd", &rig.pids("mbatchd").into_keys().next().unwrap()));
    wait_for("mbatchd", || rig.run("bhosts", &["-aff"]).out.contains('*'));
    let all: usize = tree().matches('*').count();
    assert!(all >= cores, "{}", tree());
    assert_eq!(rig.stat(*last), "PEND");
    rig.run("bkill", &[&job.to_string()]);
    wait_for("the core of the first", || rig.stat(*last) == "RUN");
    rig.run("bkill", &["0"]);
    wait_for("free units", || !tree().contains('*'));
}

/// BIND_JOB of lsb.applications(5).
#[test]
fn job_of_a_profile_that_binds_is_bound_to_one_processor_and_knows_it() {
    if !std::path::Path::new("/sys/devices/system/cpu/cpu0/topology/core_id").exists() {
        return skipped("the kernel shows no processor units");
    }
    let rig = Rig::up("bindjob", 1);
    let profile = "Begin Application\nNAME = one\nBIND_JOB = ANY\nEnd Application\n";
    std::fs::write(rig.configdir().join("lsb.applications"), profile).unwrap();
    rig.ok("badmin", &["reconfig"]);
    let said = rig.path("said");
    let script = format!(
        "(grep Cpus_allowed_list /proc/self/status; env | grep ^LSB_BIND) > {0}.tmp; mv {0}.tmp {0}",
        said.display()
    );
    rig.bsub(&["-app", "one", "-o", "/dev/null", &script]);
    wait_for("the words of the job", || said.exists());
    let text = std::fs::read_to_string(&said).unwrap();
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let cpus = value("LSB_BIND_CPU_LIST=");
    assert_eq!(cpus.map(|list| numbers(list).len()), Some(1), "{text}");
    assert_eq!((value("Cpus_allowed_list:"), value("LSB_BIND_JOB=")), (cpus, Some("ANY")));
}
