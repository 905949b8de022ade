//! Which job starts next, and where: slots, priorities, limits of arrays. What waits for other jobs
//! is in depend.rs, what waits for a time of day in windows.rs.

use super::*;

#[test]
fn slots_and_queue_priority_act() {
    let mut r = Rig::new();
    for _ in 0..4 {
        r.submit(spec("x")).unwrap();
    }
    assert_eq!(r.starts().len(), 4);
    let low = r.submit(spec("low")).unwrap();
    let high = r.submit(JobSpec { queue: "high".into(), ..spec("high") }).unwrap();
    assert!(r.starts().is_empty());
    let (conn, key) = {
        let run = r.mbd.st.job(1).unwrap().elem(0).unwrap().run().unwrap();
        let i = r.mbd.first_host(run).unwrap();
        (r.mbd.net.hosts[i].up().unwrap(), run.key)
    };
    r.report(conn, key, done());
    let next = r.starts();
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].1.job, high);
    assert_eq!(r.stat(low, 0), "PEND");
}

#[test]
fn the_first_execution_host_is_the_one_asked_for() {
    let mut r = Rig::new();
    let mut ask = |hosts: &[&str], slots: u32| {
        let hosts = hosts.iter().map(|h| h.to_string()).collect();
        let id = r.submit(JobSpec { hosts, min_slots: slots, max_slots: slots, ..spec("x") });
        let id = id.unwrap();
        let run = r.mbd.st.job(id).unwrap().elem(0).unwrap().run();
        let hosts = run.map_or(Vec::new(), |run| {
            run.hosts.iter().map(|h| r.mbd.st.names.host(h.0).to_string()).collect::<Vec<_>>()
        });
        (id, hosts.join(" "))
    };
    // two slots each
    assert_eq!(ask(&["h1", "h2!"], 1).1, "h2");
    assert_eq!(ask(&["h1+9", "h2!"], 2).1, "h2 h1");
    // h2 is full, and what is free of h1 does not do
    let (id, hosts) = ask(&["h1", "h2!"], 1);
    assert_eq!(hosts, "");
    assert_eq!(r.reason(id), crate::model::reason::pend::FIRST_HOST);
}

#[test]
fn an_array_is_limited_and_its_dependent_waits() {
    let mut r = Rig::new();
    let a = r.submit(JobSpec { name: "a[1-3]%2".into(), ..spec("x") }).unwrap();
    let d = r.submit(JobSpec { depend: "done(a)".into(), ..spec("merge") }).unwrap();
    let first = r.starts();
    assert_eq!(first.len(), 2);
    for (conn, key) in first {
        r.report(conn, key, done());
    }
    assert_eq!(r.stat(d, 0), "PEND");
    let (conn, key) = r.starts()[0];
    assert_eq!((key.job, key.idx), (a, 3));
    r.report(conn, key, done());
    assert_eq!(r.starts()[0].1.job, d);
}
