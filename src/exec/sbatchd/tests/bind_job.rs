//! LSF_BIND_JOB and BIND_JOB: jobs are bound to processors, and those of running jobs are counted.

use super::*;

fn alone(n: u32, slots: u32, policy: &str) -> StartJob {
    let (hosts, bind_job) = ([("h1".into(), slots)].into(), policy.into());
    StartJob { hosts, bind_job, ..order(n) }
}

/// The processors that each job was bound to, and the variables that it has of them.
fn bound(r: &Rig) -> Vec<(String, Vec<String>)> {
    let jobs = r.plans.iter().filter_map(|(_, plan)| match &plan.what {
        TaskPlan::Job(job) => Some(job),
        _ => None,
    });
    jobs.map(|job| {
        let env = job.env.lossy().into_owned();
        let own = env.split('\0').filter(|v| v.starts_with("LSB_BIND_")).map(str::to_owned);
        (job.binding.as_ref().map_or(String::new(), |b| b.cpus.clone()), own.collect())
    })
    .collect()
}

#[test]
fn processors_of_running_jobs_are_left_to_them_and_a_restart_knows_them() {
    let mut r = Rig::new();
    r.topology = Topology::parse("N0=64000 S0 0,2 1,3").unwrap();
    r.crash();
    r.boot(true);
    r.greet(1);
    r.start(alone(1, 1, "ANY"));
    r.start(alone(2, 2, "PACK"));
    r.start(alone(3, 1, ""));
    let told = |cpus: &str, policy: &str, list: &str| {
        let vars = [("LSB_BIND_JOB", policy), ("LSB_BIND_CPU_LIST", list)];
        let vars = vars.map(|(name, value)| format!("{name}={value}")).to_vec();
        (cpus.to_owned(), vars)
    };
    let want = vec![told("0", "ANY", "0"), told("1-2", "PACK", "1,2"), (String::new(), vec![])];
    assert_eq!(bound(&r), want);
    r.crash();
    r.boot(true);
    r.greet(1);
    r.start(alone(4, 1, "ANY"));
    assert_eq!(bound(&r)[3], told("3", "ANY", "3"));
    // the processor of a job that has ended is free again
    r.exits(501, 0);
    r.start(alone(5, 1, "ANY"));
    assert_eq!(bound(&r)[4], told("0", "ANY", "0"));
}
