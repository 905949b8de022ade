//! The election, driven by hand: who takes over when, and who yields.

use super::*;
use crate::conf::{HostDef, HostTable};

fn base(list: &str) -> BaseConf {
    let names = [("client", false), ("h1", true), ("h2.eng", true), ("h3", true)];
    let mut base = BaseConf {
        hosts: HostTable::new(names.map(|(n, _)| n), &["eng".to_string()]),
        ..BaseConf::default()
    };
    base.cluster.hosts = names
        .map(|(name, server)| HostDef { name: name.into(), server, ..HostDef::default() })
        .to_vec();
    base.lsf.set("LSF_MASTER_LIST", list);
    base
}

/// The election as this host sees it, begun at 0.
fn on(host: &str) -> (Election, Vec<Effect>) {
    let mut out = Vec::new();
    let mut e = Election::new(&base("")).on(host, &Election::default(), &mut out);
    assert_eq!(e.start(0, &mut out), host == "h1");
    (e, out)
}

fn at(us: u64) -> Now {
    Now { mono_us: us, wall_us: us as i64 }
}

/// The connection last asked for.
fn dialled(out: &[Effect]) -> ConnId {
    let conn = |e: &Effect| match e {
        Effect::Connect { conn, .. } => Some(*conn),
        _ => None,
    };
    out.iter().rev().find_map(conn).expect("a connection")
}

/// Runs the clock from deadline to deadline; connections are answered by `answer`. The instant
/// at which it takes over.
fn run(e: &mut Election, until: u64, answer: impl Fn(u64) -> Option<bool>) -> Option<u64> {
    let mut out = Vec::new();
    while let Some(t) = e.deadline().filter(|t| *t <= until) {
        if e.tick(at(t), &mut out) {
            return Some(t);
        }
        let conns: Vec<ConnId> = out
            .drain(..)
            .filter_map(|x| if let Effect::Connect { conn, .. } = x { Some(conn) } else { None })
            .collect();
        for conn in conns {
            if let Some(refused) = answer(t)
                && e.failed(t, conn, refused, &mut out)
            {
                return Some(t);
            }
        }
    }
    None
}

#[test]
fn the_list_rules_then_the_cluster_file() {
    assert_eq!(Election::new(&base("")).master(), Some("h1"));
    assert_eq!(Election::new(&base("h2 h1")).master(), Some("h2.eng"));
    assert_eq!(Election::new(&base("client nosuch H3")).master(), Some("h3"));
    assert_eq!(Election::new(&base("client nosuch")).master(), Some("h1"));
    assert_eq!(Election::default().master(), None);
}

#[test]
fn silence_by_the_documented_formula_and_its_defaults() {
    // (5 + k x 2) x 15 s, then a question of 2 s that nobody answers
    for (host, k) in [("h2.eng", 1), ("h3", 2)] {
        let (mut e, mut out) = on(host);
        assert!(e.announced(7 * US, "h1", &mut out));
        let due = 7 * US + (5 + 2 * k) * 15 * US;
        assert_eq!(run(&mut e, 1000 * US, |_| None), Some(due + 2 * US), "{host}");
        assert!(e.is_master());
    }
}

#[test]
fn candidates_come_one_after_the_other_without_steps() {
    // as `lsf up` writes it: 1 x 5 s, then a question of 2 s
    for (host, secs) in [("h2.eng", 7), ("h3", 8)] {
        let mut base = base("");
        let p = &mut base.cluster.params;
        (p.exinterval, p.host_inactivity_limit) = (5, 1);
        (p.master_inactivity_limit, p.retry_limit) = (0, 0);
        let mut out = Vec::new();
        let mut e = Election::new(&base).on(host, &Election::default(), &mut out);
        e.start(0, &mut out);
        e.announced(3 * US, "h1", &mut out);
        assert_eq!(run(&mut e, 1000 * US, |_| None), Some((3 + secs) * US), "{host}");
    }
}

#[test]
fn a_master_that_answers_the_last_question_stays() {
    let (mut e, mut out) = on("h2.eng");
    e.announced(0, "h1", &mut out);
    let due = 105 * US;
    assert_eq!(run(&mut e, due - 1, |_| None), None);
    out.clear();
    assert!(!e.tick(at(due), &mut out));
    let conn = dialled(&out);
    e.opened(conn, &mut out);
    assert!(!e.answered(due + US, conn, "h1", &mut out));
    assert_eq!(e.due(), Some(due + US + due));
    // one that is there but follows somebody else is no master
    let (mut e, mut out) = on("h2.eng");
    run(&mut e, due - 1, |_| None);
    out.clear();
    e.tick(at(due), &mut out);
    let conn = dialled(&out);
    assert!(e.answered(due, conn, "h3", &mut out) && e.is_master());
}

#[test]
fn refused_connections_make_it_quick_and_in_order() {
    for (host, secs) in [("h2.eng", 2), ("h3", 3)] {
        let (mut e, mut out) = on(host);
        assert!(e.tick(at(0), &mut out) || !out.is_empty());
        let conn = dialled(&out);
        e.opened(conn, &mut out);
        assert!(e.answered(0, conn, "h1", &mut out));
        // the daemon is killed at 10 s
        assert!(!e.failed(10 * US, conn, false, &mut out));
        let took = run(&mut e, 60 * US, |_| Some(true)).unwrap();
        assert_eq!(took, (10 + secs) * US, "{host}");
    }
    // one that is back within that time keeps its place
    let (mut e, mut out) = on("h2.eng");
    assert_eq!(run(&mut e, 3 * US / 2, |_| Some(true)), None);
    e.announced(3 * US / 2, "h1", &mut out);
    assert_eq!(run(&mut e, 3 * US, |t| (t < 2 * US).then_some(true)), None);
}

#[test]
fn the_better_candidate_wins() {
    let mut out = Vec::new();
    // a master hears a better one, and yields
    let (mut e, _) = on("h3");
    run(&mut e, 1000 * US, |_| Some(true));
    assert!(e.is_master());
    assert!(e.announced(1000 * US, "h2.eng", &mut out));
    assert_eq!((e.is_master(), e.master()), (false, Some("h2.eng")));
    assert!(e.announced(1001 * US, "h1", &mut out));
    assert_eq!(e.master(), Some("h1"));
    // a live master is not left for a worse one, a silent one is
    assert!(!e.announced(1002 * US, "h2.eng", &mut out));
    assert!(e.announced(1020 * US, "h2.eng", &mut out));
    // a returning candidate takes over from a worse one
    let (mut e, _) = on("h2.eng");
    assert!(e.announced(US, "h3", &mut out) && e.is_master());
    assert!(!e.announced(2 * US, "h3", &mut out) && e.is_master());
    // a host that is no candidate follows
    let mut e = Election::new(&base("h1 h2")).on("h3", &Election::default(), &mut out);
    e.start(0, &mut out);
    assert!(e.announced(0, "h2.eng", &mut out));
    assert_eq!((e.told(0), e.told(500 * US)), (Some("h2.eng"), None));
    assert!(run(&mut e, 1000 * US, |_| Some(true)).is_none());
}

#[test]
fn a_master_that_stands_back_leaves_its_place_and_comes_back() {
    let mut out = Vec::new();
    let (mut e, _) = on("h1");
    assert!(e.stand_back(10 * US, &mut out));
    // whoever asks it is told the next one, who then does not wait
    assert_eq!((e.is_master(), e.told(10 * US)), (false, Some("h2.eng")));
    assert!(!e.stand_back(10 * US, &mut out) && !e.claim(10 * US, &mut out));
    let (mut next, _) = on("h2.eng");
    next.announced(9 * US, "h1", &mut out);
    out.clear();
    next.tick(at(9 * US), &mut out);
    let conn = dialled(&out);
    assert!(!next.answered(10 * US, conn, "h2.eng", &mut out));
    let took = run(&mut next, 60 * US, |_| Some(true)).unwrap();
    assert!(took <= 13 * US, "{took}");
    // while there is another master it stays away for its time, whatever the configuration does
    assert!(e.announced(12 * US, "h2.eng", &mut out));
    let mut e = Election::new(&base("")).on("h1", &e, &mut out);
    for secs in (20..=600).step_by(10) {
        e.announced(secs * US, "h2.eng", &mut out);
        assert!(!e.tick(at(secs * US), &mut out) && !e.is_master(), "{secs}");
    }
    e.tick(at(611 * US), &mut out);
    assert!(e.announced(612 * US, "h2.eng", &mut out) && e.is_master());
    // where nobody takes its place it does not wait so long
    assert!(e.stand_back(700 * US, &mut out));
    let back = run(&mut e, 1200 * US, |_| None).unwrap();
    assert!((775 * US..900 * US).contains(&back), "{back}");
    // alone it stays
    let mut alone = Election::new(&base("h1")).on("h1", &Election::default(), &mut out);
    assert!(alone.start(0, &mut out) && !alone.stand_back(US, &mut out) && alone.is_master());
}

#[test]
fn the_search_asks_candidates_until_it_knows() {
    let (mut e, mut out) = on("h2.eng");
    let asked = |e: &Election, now| e.to_ask(now, 0).cloned().collect::<Vec<_>>();
    assert_eq!(asked(&e, 0), ["h1", "h3"]);
    e.announced(0, "h1", &mut out);
    assert!(asked(&e, 74 * US).is_empty());
    assert_eq!(asked(&e, 75 * US), ["h1", "h3"]);
}
