//! Jobs and elements that wait for others.

use super::*;

#[test]
fn per_element_dependencies_go_one_by_one() {
    let mut r = Rig::new();
    let a = r.submit(JobSpec { name: "a[1-2]".into(), ..spec("x") }).unwrap();
    let b = r
        .submit(JobSpec { name: "b[1-2]".into(), depend: "done(a[*])".into(), ..spec("y") })
        .unwrap();
    let first = r.starts();
    let (conn, key) = *first.iter().find(|s| s.1.idx == 2 && s.1.job == a).unwrap();
    r.report(conn, key, done());
    let next = r.starts();
    assert_eq!(next.iter().map(|s| (s.1.job, s.1.idx)).collect::<Vec<_>>(), [(b, 2)]);
}

#[test]
fn elements_that_are_ready_together_go_in_one_pass() {
    let mut r = Rig::new();
    let a = r.submit(JobSpec { name: "a[1-3]".into(), ..spec("x") }).unwrap();
    for (conn, key) in r.starts() {
        r.report(conn, key, done());
    }
    let depend = format!("done({a}[*])");
    let b = r.submit(JobSpec { name: "b[1-3]".into(), depend, ..spec("y") }).unwrap();
    let starts: Vec<_> = r.starts().iter().map(|s| (s.1.job, s.1.idx)).collect();
    assert_eq!(starts, [(b, 1), (b, 2), (b, 3)]);
    let misfit = r.said.iter().find(|s| s.contains("does not fit"));
    assert_eq!(misfit, None);
}

#[test]
fn elements_are_looked_at_when_theirs_change() {
    const N: u32 = 10_000;
    let mut c = conf();
    c.batch.params.max_job_array_size = N;
    c.batch.hosts.hosts[0].mxj = Mxj::Slots(N);
    let mut r = Rig::of(c);
    let name = |n: &str| format!("{n}[1-{N}]");
    let first = r.submit(spec("x")).unwrap();
    r.submit(JobSpec { name: name("a"), ..spec("x") }).unwrap();
    // What says the same of all is looked at too, but is no reason to look at all.
    let depend = format!("done(a[*]) && numdone(a, >= 0) && done({first})");
    let b = r.submit(JobSpec { name: name("b"), depend, ..spec("y") }).unwrap();
    let (conn, key) = r.starts_of(first)[0];
    let before = r.mbd.deps.looked;
    r.report(conn, key, done());
    let all = r.mbd.deps.looked - before;
    assert!((N as usize..2 * N as usize).contains(&all), "{all}");
    let before = r.mbd.deps.looked;
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
                Phase::Ended { end: End::Status(256), exit_info: 0 }
            };
            r.report(conn, key, end);
        }
    }
    assert_eq!(started, N as usize / 2);
    let looked = r.mbd.deps.looked - before;
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
    r.report(conn, key, Phase::Ended { end: End::Unknown, exit_info: 9001 });
    let started: Vec<u32> = r.starts().iter().map(|s| s.1.job).collect();
    assert_eq!(started, [waits[0]]);
    assert_eq!(r.stat(a, 0), "EXIT");
}
