//! Jobs and elements that wait for others.

use super::cluster::{cluster, element};
use super::*;

#[test]
fn element_that_depends_on_one_element_starts_when_that_has_ended() {
    let mut c = cluster().hosts(2, 2).up();
    let first = c.submit("ann", "-J 'a[1-2]'");
    let second = c.submit("ann", "-J 'b[1-2]' -w 'done(a[*])'");
    c.started();
    c.end(element(first, 2), 0);
    assert_eq!(c.started(), [element(second, 2)]);
}

#[test]
fn elements_that_are_ready_together_start_together() {
    let mut c = cluster().hosts(2, 2).up();
    let first = c.submit("ann", "-J 'a[1-3]'");
    c.started().into_iter().for_each(|at| c.end(at, 0));
    let second = c.submit("ann", &format!("-J 'b[1-3]' -w 'done({first}[*])'"));
    let all: Vec<_> = (1..=3).map(|idx| element(second, idx)).collect();
    assert_eq!(c.started(), all);
    assert_eq!(c.complaints(), [""; 0]);
}

#[test]
fn elements_are_looked_at_when_theirs_change() {
    const N: u32 = 2_000;
    let mut c = conf();
    c.batch.params.max_job_array_size = N;
    c.batch.hosts.hosts[0].mxj = Mxj::Slots(N);
    let mut r = Rig::of(c);
    let name = |n: &str| format!("{n}[1-{N}]");
    let first = r.submit(spec("x")).unwrap();
    r.submit(JobSpec { name: name("a"), ..spec("x") }).unwrap();
    // Conditions that are the same for all elements are evaluated too, but are no reason to
    // evaluate all elements.
    let depend = format!("done(a[*]) && numdone(a, >= 0) && done({first})");
    let b = r.submit(JobSpec { name: name("b"), depend, ..spec("y") }).unwrap();
    let (conn, key) = r.starts_of(first)[0];
    let before = r.mbd.deps.looked();
    r.report(conn, key, done());
    let all = r.mbd.deps.looked() - before;
    assert!((N as usize..2 * N as usize).contains(&all), "{all}");
    let before = r.mbd.deps.looked();
    let mut started = 0;
    loop {
        let starts = r.starts();
        if starts.is_empty() {
            break;
        }
        for (conn, key) in starts {
            started += usize::from(key.job == b);
            let end = if key.idx % 2 == 0 {
                done()
            } else {
                AttemptPhase::Ended { end: End::Status(256), exit_info: 0 }
            };
            r.report(conn, key, end);
        }
    }
    assert_eq!(started, N as usize / 2);
    let looked = r.mbd.deps.looked() - before;
    assert!(looked < 12 * N as usize, "{looked} for {N} elements");
    assert_eq!(r.mbd.deps.value(b), DepValue::Never);
}

#[test]
fn an_unknown_end_is_never_done_nor_an_exit_code() {
    let mut r = Rig::new();
    let a = r.submit(spec("a")).unwrap();
    let waits: Vec<u32> = [format!("ended({a})"), format!("done({a})"), format!("exit({a},1)")]
        .into_iter()
        .map(|depend| r.submit(JobSpec { depend, ..spec("w") }).unwrap())
        .collect();
    let (conn, key) = r.starts()[0];
    r.report(conn, key, AttemptPhase::Ended { end: End::Unknown, exit_info: 9001 });
    let started: Vec<u32> = r.starts().iter().map(|s| s.1.job).collect();
    assert_eq!(started, [waits[0]]);
    assert_eq!(r.stat(a, 0), "EXIT");
}
