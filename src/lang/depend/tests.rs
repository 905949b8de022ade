//! Tests of dependency expressions.

use super::*;
use crate::lang::jobname::{ArraySpec, JobName};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A small world: jobs by (id, index), arrays, names.
#[derive(Default)]
struct World {
    facts: BTreeMap<(u64, u32), DepFacts>,
    names: Vec<(String, u64)>,
    arrays: BTreeMap<u64, ArraySpec>,
    external: BTreeMap<u64, String>,
    groups: BTreeMap<String, Vec<u64>>,
}

impl World {
    fn group(mut self, path: &str, jobs: &[u64]) -> World {
        self.groups.insert(path.to_string(), jobs.to_vec());
        self
    }

    fn job(mut self, id: u64, name: &str, state: DepState) -> World {
        let started = !matches!(state, DepState::Pend | DepState::Held);
        self.facts.insert((id, 0), DepFacts { state, started, post: PostState::None });
        self.names.push((name.to_string(), id));
        self
    }

    fn array(mut self, id: u64, name: &str, states: &[DepState]) -> World {
        let list = format!("{name}[1-{}]", states.len());
        self.arrays.insert(id, JobName::parse(&list).unwrap().array.map(|a| *a).unwrap());
        for (i, &state) in states.iter().enumerate() {
            let started = !matches!(state, DepState::Pend | DepState::Held);
            let facts = DepFacts { state, started, post: PostState::None };
            self.facts.insert((id, i as u32 + 1), facts);
        }
        self.names.push((name.to_string(), id));
        self
    }

    fn all(&self, id: u64) -> impl Iterator<Item = &DepFacts> {
        self.facts.range((id, 0)..=(id, u32::MAX)).map(|(_, f)| f)
    }

    fn value(&self, text: &str) -> DepValue {
        self.value_for(text, None, None)
    }

    fn value_for(&self, text: &str, own: Option<&ArraySpec>, index: Option<u32>) -> DepValue {
        let r = DepExpr::parse(text).unwrap().resolve(self, own).unwrap();
        assert_eq!(Resolved::parse(&r.to_string()).unwrap(), r, "{text}");
        r.eval(self, index)
    }
}

impl Resolver for World {
    fn by_id(&self, id: u64) -> Option<NamedJob<'_>> {
        self.all(id).next().map(|_| NamedJob { id, array: self.arrays.get(&id) })
    }
    fn by_name(&self, name: &str, prefix: bool) -> Vec<NamedJob<'_>> {
        let hit = |n: &str| if prefix { n.starts_with(name) } else { n == name };
        let jobs = self.names.iter().filter(|(n, _)| hit(n));
        jobs.map(|&(_, id)| NamedJob { id, array: self.arrays.get(&id) }).collect()
    }
    fn job_group(&self, path: &str) -> bool {
        self.groups.contains_key(path)
    }
}

impl JobLookup for World {
    fn group(&self, group: &Group, func: &Func) -> Truth {
        let all = group.members.iter().map(|id| of_job(func, u64::from(*id), self));
        let all: Vec<Truth> = all.collect();
        let holds = all.iter().all(|t| t.holds);
        Truth { holds, fixed: all.iter().any(|t| !t.holds && t.fixed) }
    }
    fn facts(&self, id: u64, index: Option<u32>) -> DepFacts {
        *self.facts.get(&(id, index.unwrap_or(0))).unwrap_or(&DepFacts::GONE)
    }
    fn job_group(&self, path: &str) -> Option<DepCounts> {
        let jobs = self.groups.get(path)?;
        Some(jobs.iter().fold(DepCounts::default(), |all, id| {
            let c = self.counts(*id);
            DepCounts {
                total: all.total + c.total,
                pend: all.pend + c.pend,
                held: all.held + c.held,
                run: all.run + c.run,
                susp: all.susp + c.susp,
                done: all.done + c.done,
                exit: all.exit + c.exit,
                ..all
            }
        }))
    }
    fn jobs_of_group(&self, path: &str, each: &mut dyn FnMut(u64) -> bool) -> bool {
        self.groups.get(path).into_iter().flatten().all(|id| each(*id))
    }
    fn counts(&self, id: u64) -> DepCounts {
        let mut sum = DepCounts::default();
        for f in self.all(id) {
            let c = DepCounts::one(f);
            sum.total += 1;
            sum.pend += c.pend;
            sum.held += c.held;
            sum.run += c.run;
            sum.susp += c.susp;
            sum.done += c.done;
            sum.exit += c.exit;
            sum.exit_unstarted += c.exit_unstarted;
            sum.gone += c.gone;
            sum.post_done += c.post_done;
            sum.post_err += c.post_err;
        }
        sum
    }
    fn exit_codes(&self, id: u64, f: &mut dyn FnMut(Option<i32>, u32)) {
        for facts in self.all(id) {
            if let DepState::Exit(code) = facts.state {
                f(code, 1);
            }
        }
    }
    fn external(&self, id: u64, _: Option<u32>) -> Option<String> {
        self.external.get(&id).cloned()
    }
}

use DepState::{Done, Exit, Gone, Held, Pend, Run, Susp};
use DepValue::{False, Never, True};

#[test]
fn the_functions_on_single_jobs() {
    let cases: &[(&str, [DepValue; 8])] = &[
        // state:     Pend   Held   Run    Susp   Done   Exit 3 unknown Gone
        ("done(7)", [False, False, False, False, True, Never, Never, Never]),
        ("7", [False, False, False, False, True, Never, Never, Never]),
        ("ended(7)", [False, False, False, False, True, True, True, True]),
        ("exit(7)", [False, False, False, False, Never, True, True, Never]),
        ("exit(7,3)", [False, False, False, False, Never, True, Never, Never]),
        ("exit(7, >= 3)", [False, False, False, False, Never, True, Never, Never]),
        ("exit(7,!=3)", [False, False, False, False, Never, Never, Never, Never]),
        ("started(7)", [False, False, True, True, True, True, True, Never]),
        ("!done(7)", [True, True, True, True, Never, True, True, True]),
        ("numrun(7,1)", [False, False, True, False, Never, Never, Never, Never]),
    ];
    let states = [Pend, Held, Run, Susp, Done, Exit(Some(3)), Exit(None), Gone];
    for (text, want) in cases {
        for (state, want) in states.iter().zip(want) {
            let world = World::default().job(7, "a", *state);
            assert_eq!(world.value(text), *want, "{text} on {state:?}");
        }
    }
}

#[test]
fn a_job_killed_while_pending_never_started() {
    let mut w = World::default().job(7, "a", Exit(Some(130)));
    w.facts.get_mut(&(7, 0)).unwrap().started = false;
    assert_eq!(w.value("started(7)"), Never);
    assert_eq!(w.value("ended(7) && exit(7,130)"), True);
}

#[test]
fn post_execution_and_external_status() {
    let mut w = World::default().job(7, "a", Done);
    assert_eq!(w.value("post_done(7)"), False);
    w.facts.get_mut(&(7, 0)).unwrap().post = PostState::Err;
    assert_eq!((w.value("post_done(7)"), w.value("post_err(7)")), (Never, True));
    // a job that has ended takes no status any more
    assert_eq!(w.value("external(7, \"half way\")"), Never);
    let mut w = World::default().job(7, "a", Run);
    assert_eq!(w.value("external(7, \"half way\")"), False);
    w.external.insert(7, "half way".into());
    assert_eq!(w.value("external(7, \"half way\")"), True);
    assert_eq!(w.value("external(7, \"half\")"), True);
    assert_eq!(w.value("external(7, \"way\")"), False);
}

#[test]
fn precedence_is_not_and_or() {
    let w = World::default().job(1, "a", Done).job(2, "b", Pend).job(3, "c", Exit(Some(1)));
    assert_eq!(w.value("done(1) || done(2) && done(3)"), True);
    assert_eq!(w.value("(done(1) || done(2)) && done(3)"), Never);
    assert_eq!(w.value("!done(3) && done(1)"), True);
    assert_eq!(w.value("!(done(3) && done(1))"), True);
    assert_eq!(w.value("done(3) || done(2)"), False);
    assert_eq!(w.value("done(2) && done(3)"), Never);
    let e = DepExpr::parse("!(a||b)&&c||d").unwrap();
    let shown = r#"!(done("a") || done("b")) && done("c") || done("d")"#;
    assert_eq!(e.expr().to_string(), shown);
    assert_eq!(e.text(), "!(a||b)&&c||d");
}

#[test]
fn names_mean_every_job_that_bears_them() {
    let w = World::default().job(1, "a", Done).job(2, "a", Run).job(3, "ab", Done);
    assert_eq!(w.value("done(a)"), False);
    assert_eq!(w.value("done(\"ab\")"), True);
    assert_eq!(w.value("started(a*)"), True);
    assert_eq!(w.value("!ended('a')"), True);
    let r = DepExpr::parse("done(a*)").unwrap().resolve(&w, None).unwrap();
    assert_eq!(r.to_string(), "done(1) && done(2) && done(3)");
    assert_eq!(r.job_ids(), [1, 2, 3]);
}

#[test]
fn unknown_references_are_named() {
    let w = World::default().array(5, "arr", &[Done, Pend]);
    for (text, shown) in [
        ("done(99999)", "99999: No matching job found"),
        ("done(nojob)", "nojob: No matching job found"),
        ("ended(\"5x\")", "5x: No matching job found"),
        ("5[33]", "5[33]: No matching job found"),
        ("arr[3]", "arr[3]: No matching job found"),
    ] {
        let e = DepExpr::parse(text).unwrap().resolve(&w, None).unwrap_err();
        assert_eq!(e.to_string(), shown);
    }
}

#[test]
fn arrays_whole_element_and_element_by_element() {
    let w = World::default().array(5, "arr", &[Done, Exit(Some(2)), Run]);
    assert_eq!(w.value("done(arr)"), Never);
    assert_eq!(w.value("ended(arr)"), False);
    assert_eq!(w.value("started(5)"), True);
    assert_eq!(w.value("done(arr[1])"), True);
    assert_eq!(w.value("exit(\"arr[2]\", 2)"), True);
    let own = JobName::parse("x[1-3]").unwrap().array.map(|a| *a).unwrap();
    let values = [1, 2, 3].map(|i| w.value_for("done(arr[*])", Some(&own), Some(i)));
    assert_eq!(values, [True, Never, False]);
    let e = DepExpr::parse("done(5[*])").unwrap();
    assert!(e.resolve(&w, Some(&own)).unwrap().per_element());
    let other = JobName::parse("x[1-4]").unwrap().array.map(|a| *a).unwrap();
    for own in [None, Some(&other)] {
        let refused = e.resolve(&w, own).unwrap_err().to_string();
        assert_eq!(refused, "Dependent arrays do not have the same size");
    }
}

#[test]
fn counts_over_an_array() {
    let w = World::default().array(5, "arr", &[Done, Exit(Some(2)), Run, Pend, Held]);
    for (text, want) in [
        ("numdone(5,1)", True),
        ("numdone(5,>=3)", False),
        ("numdone(arr,>4)", Never),
        ("numdone(arr,*)", Never),
        ("numended(arr,*)", False),
        ("numended(arr,>=2)", True),
        ("numexit(5,==0)", Never),
        ("numhold(5,1)", True),
        ("numpend(5,<2)", True),
        ("numpend(5,>2)", Never),
        ("numrun(5,!=1)", False),
        ("numstart(5,2)", True),
        ("!(numdone(5,>4))", True),
    ] {
        assert_eq!(w.value(text), want, "{text}");
    }
}

#[test]
fn malformed_condition_is_refused() {
    for bad in [
        "",
        "foo(",
        "foo(1)",
        "done(",
        "done()",
        "done(1",
        "done(1))",
        "1 2",
        "1 &&",
        "|| 1",
        "!",
        "done(1,2)",
        "exit(1,)",
        "exit(1,x)",
        "numdone(5)",
        "numdone(5,)",
        "numdone(5[1],*)",
        "external(1)",
        "done(\"a)",
        "done(a[)",
        "done(a[x])",
        "done(a[0])",
        "1a",
        "a & b",
        "a | b",
        "exit(1,=>3)",
        "done(-)&&",
        "0",
        "done(a*b)",
    ] {
        let e = DepExpr::parse(bad).expect_err(bad);
        assert_eq!(e.to_string(), "Dependency condition syntax error");
    }
    assert!(DepExpr::parse(&"(".repeat(5000)).is_err());
    assert!(DepExpr::parse(&"!".repeat(5000)).is_err());
    assert!(DepExpr::parse(&"1&&".repeat(5000)).is_err());
}

fn any_expr() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (1u64..99).prop_map(|id| format!("done({id})")),
        "[a-z][a-z0-9_.-]{0,5}",
        (1u64..99, 0i32..300).prop_map(|(id, c)| format!("exit({id}[2],>{c})")),
        "numrun\\([a-z]{1,4}, *(\\*|<=[0-9])\\)",
    ];
    leaf.prop_recursive(4, 32, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|e| format!("!({e})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) && {b}")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("{a} || ({b})")),
        ]
    })
}

proptest! {
    #[test]
    fn print_then_parse_is_the_same(text in any_expr()) {
        let e = DepExpr::parse(&text).unwrap();
        let again = DepExpr::parse(&e.expr().to_string()).unwrap();
        prop_assert_eq!(again.expr().to_string(), e.expr().to_string());
    }

    #[test]
    fn any_condition_is_read_without_panic(text in "\\PC{0,40}|[a1()!&|,<>=\\[\\]*\" ]{0,30}") {
        if let Ok(e) = DepExpr::parse(&text) {
            prop_assert!(DepExpr::parse(&e.expr().to_string()).is_ok(), "{}", e.expr());
        }
    }

    #[test]
    fn condition_that_is_never_true_stays_so(before in 0usize..4, after in 2usize..7) {
        let lives = [Pend, Held, Run, Susp, Done, Exit(Some(3)), Exit(None)];
        let (a, b) = (lives[before], lives[after]);
        let world = |s| World::default().job(1, "a", s);
        for func in ["done(1)", "exit(1,3)", "started(1)", "numexit(1,>0)", "!ended(1)"] {
            if world(a).value(func) == Never {
                prop_assert_eq!(world(b).value(func), Never, "{} {:?} {:?}", func, a, b);
            }
        }
    }
}

#[test]
fn condition_in_quotes_of_its_own_is_a_name_or_else_a_condition() {
    let inner =
        |text: &str| DepExpr::parse(text).unwrap().in_quotes().map(|e| e.expr().to_string());
    assert_eq!(inner("\"done(12)\"").as_deref(), Some("done(12)"));
    assert_eq!(inner("'done(12) && exit(b)'").as_deref(), Some("done(12) && exit(\"b\")"));
    assert_eq!(inner("done(\"12\")"), None);
    assert_eq!(inner("\"done(12)\" && \"done(13)\""), None);
    // no name has this form
    let counted = DepExpr::parse("\"numdone(12,*)\"").unwrap();
    assert_eq!(counted.expr().to_string(), "numdone(12,*)");
    assert_eq!(counted.text(), "\"numdone(12,*)\"");
    assert!(DepExpr::parse("\"numdone(1*2\"").is_err());
}

#[test]
fn counting_functions_over_a_job_group_compare_its_counters() {
    let states = [Pend, Held, Run, Susp, Done, Exit(Some(3))];
    let mut world = World::default().array(8, "x", &[Done, Done]).group("/empty", &[]);
    for (n, state) in states.into_iter().enumerate() {
        world = world.job(n as u64 + 1, "one", state);
    }
    let world = world.group("/a/b", &[1, 2, 3, 4, 5, 6, 8]).group("/all", &[5, 8]);
    for (text, value) in [
        ("numdone(/a/b, >= 3)", True),
        ("numdone(/a/b, 3)", True),
        ("numdone(/a/b/, > 3)", False),
        ("numended(\"/a/b\", == 4)", True),
        ("numexit('/a/b', 1)", True),
        ("numhold(/a/b,1) && numpend(/a/b,1) && numrun(/a/b,1)", True),
        ("numstart(/a/b, 5)", True),
        ("numdone(/a/b, *)", False),
        ("numdone(/all, *)", True),
        ("!numdone(/all, *)", False),
        // jobs may still come
        ("numexit(/all, > 0)", False),
        ("numdone(/empty, *)", False),
        ("numpend(/empty, 0)", True),
    ] {
        assert_eq!(world.value(text), value, "{text}");
    }
    // a group that was deleted
    let gone = |text: &str| Resolved::parse(text).unwrap().eval(&world, None);
    assert_eq!(gone("numdone(/gone, >= 1)"), Never);
    assert_eq!(gone("numdone(/gone, *)"), Never);
    assert_eq!(gone("numpend(/gone, 0)"), True);
}

#[test]
fn job_groups_are_named_in_counting_functions_alone() {
    let parsed = |text: &str| DepExpr::parse(text).map(|e| e.expr().to_string());
    assert_eq!(parsed("numdone( /a/b/ , >= 10)").unwrap(), "numdone(/a/b,>=10)");
    assert_eq!(parsed("numrun('/a(1)', *)").unwrap(), "numrun(\"/a(1)\",*)");
    assert_eq!(parsed("numrun('/a\"1', *)").unwrap(), "numrun('/a\"1',*)");
    // elsewhere it is the name of a job
    assert_eq!(parsed("done(/a)").unwrap(), "done(\"/a\")");
    for bad in ["numdone(/, 1)", "numdone(/a//b, 1)", "numdone(/a[1], 1)", "numdone(/a)"] {
        assert!(parsed(bad).is_err(), "{bad}");
    }
    let unknown = DepExpr::parse("numdone(/x, 1)").unwrap().resolve(&World::default(), None);
    assert_eq!(unknown.unwrap_err(), ResolveError::NoJobGroup("/x".into()));
}
