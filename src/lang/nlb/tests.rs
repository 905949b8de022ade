//! The language against its vectors, its words for faults, and a second, plain evaluator.

use super::*;
use crate::conf::diag::Diags;
use crate::model::nlb::{AttrId, Kind, Value};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The attributes of the tests: name, owner, kind and number.
const NAMES: [(&str, Owner, Kind, u32); 31] = {
    use Kind::{Float, Integer, Str};
    use Owner::{Host, Request};
    [
        ("NLB_OSNAME", Host, Str, 1),
        ("NLB_HARDWARE", Host, Str, 4),
        ("NLB_QUEUE_NAME", Host, Str, 5),
        ("NLB_APPLICATIONS", Host, Str, 999),
        ("NLB_IDLECPU", Host, Float, 1),
        ("NLB_A_IDLECPU", Host, Float, 11),
        ("NLB_A_RUNQLEN", Host, Float, 12),
        ("NLB_A_SYSCPU", Host, Float, 14),
        ("NLB_SITE_CPUNORM", Host, Float, 8192),
        ("NLB_PHYSMEM", Host, Integer, 1),
        ("NLB_FREEMEM", Host, Integer, 2),
        ("NLB_NCPUS", Host, Integer, 4),
        ("NLB_SWAPSIZE", Host, Integer, 9),
        ("NLB_SWAPFREE", Host, Integer, 10),
        ("NLB_A_FREEMEM", Host, Integer, 11),
        ("NLB_SYSCPU_LIMIT", Host, Integer, 8200),
        ("NLB_RUNQLEN_LIMIT", Host, Integer, 8201),
        ("host_nastran", Host, Integer, 8192),
        ("host_oracle", Host, Integer, 8193),
        ("host_unichem", Host, Integer, 8194),
        ("job_nastran", Request, Integer, 8192),
        ("job_oracle", Request, Integer, 8193),
        ("job_unichem", Request, Integer, 8194),
        ("JOB_PRMEMSIZE", Request, Float, 6),
        ("JOB_REQNAME", Request, Str, 1),
        ("P", Host, Float, 9001),
        ("Q", Host, Float, 9002),
        ("R", Host, Float, 9003),
        ("S", Host, Str, 9004),
        ("JP", Request, Float, 9005),
        ("JS", Request, Str, 9006),
    ]
};

struct TestNames;

impl Names for TestNames {
    fn attribute(&self, name: &str) -> Option<Known<'_>> {
        if name.eq_ignore_ascii_case("NJS_QUENAM") {
            return Some(Known::Other("NJS"));
        }
        let found = NAMES.iter().find(|(n, ..)| n.eq_ignore_ascii_case(name));
        found.map(|(_, owner, kind, number)| Known::Of(*owner, AttrId::new(*kind, *number)))
    }

    fn all(&self) -> Vec<&str> {
        NAMES.iter().map(|(n, ..)| *n).collect()
    }
}

/// A host or a request of the tests.
#[derive(Clone, Debug, Default)]
struct Object {
    name: String,
    age: Option<f64>,
    values: BTreeMap<AttrId, Value>,
}

impl Attributes for Object {
    fn number(&self, id: AttrId) -> Option<f64> {
        self.values.get(&id).and_then(Value::number)
    }

    fn text(&self, id: AttrId) -> Option<&str> {
        self.values.get(&id).and_then(Value::text)
    }
}

fn object(name: &str, age: Option<f64>, values: &[(&str, &str)]) -> Object {
    let mut object = Object { name: name.into(), age, values: BTreeMap::new() };
    for (name, text) in values {
        let found = TestNames.attribute(name);
        let Some(Known::Of(_, id)) = found else { panic!("{name}") };
        let value = match id.kind {
            Kind::Float => Value::Float(text.parse().unwrap()),
            Kind::Integer => Value::Integer(text.parse().unwrap()),
            _ => Value::Str(Arc::from(*text)),
        };
        object.values.insert(id, value);
    }
    object
}

fn hosts() -> Vec<Object> {
    let cool = [
        ("NLB_HARDWARE", "CRAY J90"),
        ("NLB_NCPUS", "8"),
        ("NLB_A_SYSCPU", "4"),
        ("NLB_A_IDLECPU", "50"),
        ("NLB_SITE_CPUNORM", "0.1"),
    ];
    let cloudy = [
        ("NLB_HARDWARE", "sun4u"),
        ("NLB_PHYSMEM", "65536"),
        ("NLB_NCPUS", "2"),
        ("NLB_A_IDLECPU", "40"),
    ];
    let gust = [
        ("NLB_HARDWARE", "x86_64"),
        ("NLB_NCPUS", "4"),
        ("NLB_A_RUNQLEN", "0"),
        ("NLB_A_IDLECPU", "90"),
        ("NLB_SITE_CPUNORM", "0.01"),
    ];
    vec![
        object("cool", Some(10.0), &cool),
        object("cloudy", Some(70.0), &cloudy),
        object("hot", None, &[("NLB_SITE_CPUNORM", "2"), ("host_oracle", "1")]),
        object("gust", Some(400.0), &gust),
    ]
}

/// Reads a file: the policies, and all that was said.
fn read(text: &str) -> (Option<Policies>, Vec<String>) {
    let mut diags = Diags::new();
    let policies = parse(&Arc::from("policies"), text.as_bytes(), &TestNames, &mut diags);
    (policies, diags.list().iter().map(ToString::to_string).collect())
}

fn good(text: &str) -> Policies {
    let (policies, said) = read(text);
    policies.unwrap_or_else(|| panic!("{text}: {said:?}"))
}

fn apply(policies: &Policies, hosts: &[Object], request: &Object) -> Vec<(String, Option<f64>)> {
    let policy = policies.choose(None).unwrap().policy;
    let candidates: Vec<_> =
        hosts.iter().map(|h| Candidate { name: &h.name, age: h.age, attributes: h }).collect();
    let ranked = rank(policy, &candidates, request);
    ranked.into_iter().map(|r| (hosts[r.candidate].name.clone(), r.value)).collect()
}

#[test]
fn expressions_yield_what_their_vectors_say() {
    let mut vectors = 0;
    for line in include_str!("vectors.txt").lines().filter(|l| !l.starts_with('#')) {
        // `||` is an operator, ` | ` alone is none
        let parts: Vec<_> = line.splitn(2, " | ").collect();
        let (kind, rest) = (parts[0], parts[1]);
        let (rest, result) = rest.rsplit_once("| ").unwrap();
        let (text, request) = rest.rsplit_once(" | ").unwrap_or((rest, ""));
        let values: Vec<_> = request.split_whitespace().filter_map(|w| w.split_once('=')).collect();
        let policies = good(&format!("policy: x {kind}: {text}"));
        let got = apply(&policies, &hosts(), &object("", None, &values));
        let shown = |(name, value): (String, Option<f64>)| match (kind, value) {
            ("constraint", _) => name,
            (_, Some(value)) => format!("{name}={value}"),
            (_, None) => format!("{name}=-"),
        };
        let got: Vec<_> = got.into_iter().map(shown).collect();
        let got = if got.is_empty() { "none".into() } else { got.join(" ") };
        assert_eq!(got, result.trim(), "{line}");
        vectors += 1;
    }
    assert_eq!(vectors, 40);
}

#[test]
fn a_policy_without_a_sort_gives_each_host_zero_and_its_name_decides() {
    let got = apply(&good("policy: x"), &hosts(), &Object::default());
    let zero = ["cloudy", "cool", "gust", "hot"].map(|n| (n.to_owned(), Some(0.0)));
    assert_eq!(got, zero);
    assert_eq!(good("policy: x count: 2").list()[0].count(), Some(2));
}

#[test]
fn many_hosts_are_ranked_as_each_of_them_alone() {
    let policies = good(
        "policy: x\nconstraint: NLB_NCPUS > 2 && (P < 5 || [S == \"b\"])\n\
         constraint: exists(JP) => Q - P >= -4\nsort: P * (Q + NLB_NCPUS) - -R",
    );
    let hosts: Vec<Object> = (0..300)
        .map(|n| {
            let number = |by: usize| (n * by % 11).to_string();
            let (cpus, p, q) = (number(1), number(3), number(7));
            let mut values = vec![("NLB_NCPUS", cpus.as_str()), ("P", &p), ("Q", &q)];
            values.extend((n % 3 > 0).then_some(("R", "1.5")));
            values.push(("S", ["a", "ABC", "c"][n % 3]));
            object(&format!("h{n:03}"), None, &values)
        })
        .collect();
    let request = object("", None, &[("JP", "1")]);
    let alone = |host: &Object| apply(&policies, std::slice::from_ref(host), &request);
    let mut wanted: Vec<_> = hosts.iter().flat_map(alone).collect();
    wanted.sort_by(|(m, a), (n, b)| b.partial_cmp(a).unwrap().then_with(|| m.cmp(n)));
    assert!((100..250).contains(&wanted.len()), "{}", wanted.len());
    assert_eq!(apply(&policies, &hosts, &request), wanted);
}

#[test]
fn the_policies_of_the_manual_are_read() {
    for line in include_str!("manual.txt").lines() {
        if !line.starts_with('#') {
            good(line);
        }
    }
    let (policies, said) = read(include_str!("manual.txt"));
    let names = policies.unwrap().list().iter().map(|p| p.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names.len(), 15, "{names:?}");
    assert_eq!(said, Vec::<String>::new());
    let on_many_lines = "# c\npolicy:\n second # name\r\nconstraint:\n\t[ NLB_APPLICATIONS == \
                         \"Unichem\" ]\\\n|| \\\r\n[NLB_APPLICATIONS==\"TurboKiva\"]\n\
                         sort:(NLB_A_IDLECPU+5)/10000";
    let second = good(on_many_lines);
    assert_eq!(Some(&second.list()[0]), good(include_str!("manual.txt")).named("SECOND"));
}

#[test]
fn applications_are_matched_as_the_manual_shows_it() {
    let host = |name, idle, applications| {
        object(name, None, &[("NLB_A_IDLECPU", idle), ("NLB_APPLICATIONS", applications)])
    };
    let hosts = [
        host("gust", "87.25", "Unichem TurboKiva Nastran"),
        host("wind", "27.13", "Nastran"),
        host("rain", "44.5", "Unichem"),
        host("frost", "0", "TurboKiva"),
    ];
    let of = |name: &str| {
        let all = good(include_str!("manual.txt"));
        let one = Policies { list: vec![all.named(name).unwrap().clone()] };
        let got = apply(&one, &hosts, &Object::default());
        got.into_iter().map(|(n, v)| format!("{n} {:.6}", v.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(of("first"), ["gust 0.009225", "wind 0.003213"]);
    assert_eq!(of("second"), ["gust 0.009225", "rain 0.004950", "frost 0.000500"]);
}

#[test]
fn each_fault_has_its_place_and_words() {
    let mut faults = 0;
    for line in include_str!("faults.txt").lines().filter(|l| !l.starts_with('#')) {
        let (file, said) = line.split_once(" -> ").unwrap();
        let file = file.replace('|', "\n").replace("PIPE", "|");
        let (policies, got) = read(&file);
        assert!(policies.is_none(), "{line}");
        let wanted: Vec<String> = said
            .split("|policies")
            .enumerate()
            .map(|(n, s)| if n > 0 { format!("policies{s}") } else { s.to_owned() })
            .collect();
        assert_eq!(got, wanted, "{line}");
        faults += 1;
    }
    assert_eq!(faults, 41);
    assert_eq!(read("").1, ["policies: no policy is defined"]);
    assert_eq!(read("# nothing\n").1, ["policies: no policy is defined"]);
}

#[test]
fn doubtful_policies_are_read_with_a_warning() {
    let said = |text: &str| {
        let (policies, said) = read(text);
        assert!(policies.is_some(), "{said:?}");
        said
    };
    assert_eq!(
        said("policy: idlecpu\npolicy: nqs"),
        ["policies:2:9: policy <nqs> is the default though <idlecpu> is the first"]
    );
    assert_eq!(
        said("policy: a constraint: 1 < 2 < 3"),
        ["policies:1:29: <<> compares the 1 or 0 of the comparison before it"]
    );
    assert_eq!(
        said(
            "policy: a constraint: JOB_PRMEMSIZE < 3 constraint: exists(JOB_PRMEMSIZE) => \
              JOB_PRMEMSIZE < 3 sort: JOB_PRMEMSIZE constraint: [JOB_REQNAME == \"x\"]"
        ),
        ["policies:1:23: JOB_PRMEMSIZE is there only for requests that ask for it: write \
          exists(JOB_PRMEMSIZE) => ..."]
    );
}

#[test]
fn the_default_is_nqs_and_else_the_first() {
    let with = good("policy: b policy: NQS policy: c");
    let name = |p: &Policies, asked| {
        let choice = p.choose(asked).unwrap();
        (choice.policy.name().to_owned(), choice.unknown)
    };
    assert_eq!(name(&with, None), ("NQS".into(), false));
    assert_eq!(name(&with, Some("C")), ("c".into(), false));
    assert_eq!(name(&with, Some("d")), ("NQS".into(), true));
    assert_eq!(name(&good("policy: b policy: c"), Some("d")), ("b".into(), true));
    assert_eq!(name(&good(BUILT_IN), None), ("nqs".into(), false));
}

#[test]
fn every_limit_of_a_file_is_told() {
    let one = |text: String| {
        let (policies, said) = read(&text);
        assert!(policies.is_none());
        said.into_iter().next().unwrap()
    };
    let nested = |n: usize| format!("policy: a sort: {}1{}", "(".repeat(n), ")".repeat(n));
    good(&nested(64));
    assert_eq!(one(nested(65)), "policies:1:81: nested deeper than 64");
    let sum = |n: usize| format!("policy: a sort: 1{}", "+1".repeat(n));
    good(&sum(999));
    let terms = "policies:1:11: more than 2000 operators and operands in one clause";
    assert_eq!(one(sum(1_000)), terms);
    assert_eq!(one(format!("policy: a sort: {}1", "!".repeat(5_000))), terms);
    assert_eq!(one(format!("policy: a sort: 1{}", " => 1".repeat(1_500))), terms);
    let policies = |n: usize| (0..n).map(|n| format!("policy: p{n}\n")).collect::<String>();
    good(&policies(1_000));
    assert_eq!(one(policies(1_001)), "policies:1001:9: more than 1000 policies");
    let constraints = |n: usize| format!("policy: p\n{}", "constraint: 1\n".repeat(n));
    good(&constraints(100));
    assert_eq!(one(constraints(101)), "policies:102:1: more than 100 constraints");
    let name = "n".repeat(60);
    assert_eq!(
        one(format!("policy: {name}")),
        format!("policies:1:9: <{name}> is longer than 59 characters")
    );
    assert_eq!(one("#".repeat((1 << 20) + 1)), "policies: larger than 1 MB");
    assert_eq!(read(&"policy: p sort: x\n".repeat(500)).1.len(), 100);
    let mut diags = Diags::new();
    let file = Arc::from("policies");
    assert!(parse(&file, b"policy: a\n sort: \xff", &TestNames, &mut diags).is_none());
    assert!(parse(&file, b"policy: a\n sort: 1\x00", &TestNames, &mut diags).is_none());
    let said: Vec<_> = diags.list().iter().map(ToString::to_string).collect();
    assert_eq!(said, ["policies:2:8: not UTF-8", "policies:2:9: control character 0x00"]);
}

/// An expression as a tree, evaluated by plain recursion: the second evaluator.
#[derive(Clone, Debug)]
enum Tree {
    Number(f64),
    Name(&'static str),
    Age,
    Exists(&'static str),
    Match(&'static str, &'static str),
    Not(Box<Tree>),
    Minus(Box<Tree>),
    Both(&'static str, Box<Tree>, Box<Tree>),
}

impl Tree {
    /// With all parentheses, so that no precedence is needed to read it.
    fn text(&self) -> String {
        match self {
            Tree::Number(x) => x.to_string(),
            Tree::Name(name) => (*name).to_owned(),
            Tree::Age => "age".to_owned(),
            Tree::Exists(name) => format!("exists({name})"),
            Tree::Match(name, part) => format!("[{name} == \"{part}\"]"),
            Tree::Not(a) => format!("!({})", a.text()),
            Tree::Minus(a) => format!("-({})", a.text()),
            Tree::Both(op, a, b) => format!("({}) {op} ({})", a.text(), b.text()),
        }
    }

    fn value(&self, host: &Object, request: &Object) -> Option<f64> {
        let of = |name: &str| match TestNames.attribute(name) {
            Some(Known::Of(Owner::Host, id)) => host.values.get(&id).cloned(),
            Some(Known::Of(Owner::Request, id)) => request.values.get(&id).cloned(),
            _ => None,
        };
        let flag = |is: bool| f64::from(u8::from(is));
        let present = |x: f64| (!x.is_nan()).then_some(x);
        match self {
            Tree::Number(x) => Some(*x),
            Tree::Name(name) => of(name)?.number(),
            Tree::Age => host.age,
            Tree::Exists(name) => Some(flag(of(name).is_some())),
            // the parts are letters: the text contains them, or does not
            Tree::Match(name, part) => Some(flag(of(name)?.text()?.contains(part))),
            Tree::Not(a) => Some(flag(a.value(host, request)? == 0.0)),
            Tree::Minus(a) => Some(-a.value(host, request)?),
            Tree::Both(op, a, b) => {
                let (a, b) = (a.value(host, request), b.value(host, request));
                let (is, no) = (Some(1.0), Some(0.0));
                let holds = |x: Option<f64>| x.map(|x| x != 0.0);
                match (*op, holds(a), holds(b)) {
                    ("&&", Some(false), _) | ("&&", _, Some(false)) => return no,
                    ("||", Some(true), _) | ("||", _, Some(true)) => return is,
                    ("=>", Some(false), _) | ("=>", _, Some(true)) => return is,
                    _ => {}
                }
                let (a, b) = (a?, b?);
                match *op {
                    "+" => present(a + b),
                    "-" => present(a - b),
                    "*" => present(a * b),
                    "/" => present(a / b),
                    "<" => Some(flag(a < b)),
                    "<=" => Some(flag(a <= b)),
                    ">" => Some(flag(a > b)),
                    ">=" => Some(flag(a >= b)),
                    "==" => Some(flag(a == b)),
                    "!=" => Some(flag(a != b)),
                    "^" => Some(flag((a != 0.0) != (b != 0.0))),
                    "&&" => is,
                    _ => no,
                }
            }
        }
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let names = prop_oneof![Just("P"), Just("Q"), Just("R"), Just("JP")];
    let leaf = prop_oneof![
        (0u8..4).prop_map(|n| Tree::Number(f64::from(n) / 2.0)),
        names.clone().prop_map(Tree::Name),
        Just(Tree::Age),
        prop_oneof![names, Just("S"), Just("JS")].prop_map(Tree::Exists),
        (prop_oneof![Just("S"), Just("JS")], prop_oneof![Just("a"), Just("bc")])
            .prop_map(|(name, part)| Tree::Match(name, part)),
    ];
    let ops = ["=>", "||", "&&", "^", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/"];
    leaf.prop_recursive(6, 40, 2, move |e| {
        prop_oneof![
            e.clone().prop_map(|a| Tree::Not(Box::new(a))),
            e.clone().prop_map(|a| Tree::Minus(Box::new(a))),
            (0..ops.len(), e.clone(), e).prop_map(move |(op, a, b)| Tree::Both(
                ops[op],
                Box::new(a),
                Box::new(b)
            )),
        ]
    })
}

fn values() -> impl Strategy<Value = Object> {
    let number = || proptest::option::of((-2i8..5).prop_map(f64::from));
    let text = || proptest::option::of("[abc]{0,3}");
    (number(), number(), number(), text(), proptest::option::of(0.0..9.0f64)).prop_map(
        |(p, q, r, s, age)| {
            let mut values = Vec::new();
            let [p, q, r] = [p, q, r].map(|x| x.map(|x| x.to_string()));
            for (name, value) in
                [("P", &p), ("JP", &p), ("Q", &q), ("R", &r), ("S", &s), ("JS", &s)]
            {
                values.extend(value.as_deref().map(|v| (name, v)));
            }
            object("h", age, &values)
        },
    )
}

/// Random policies of a test.
fn cases() -> ProptestConfig {
    let full = std::env::var_os("LSF_TEST_FULL").is_some();
    ProptestConfig::with_cases(if full { 1_000_000 } else { 500 })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_second_evaluator_yields_the_same_and_printing_parses_back(
        tree in tree(),
        hosts in proptest::collection::vec(values(), 1..4),
        request in values(),
    ) {
        let policies = good(&format!("policy: x sort: {}", tree.text()));
        for host in &hosts {
            let got = apply(&policies, std::slice::from_ref(host), &request);
            // a zero has no sign in a listing
            let plain = |x: Option<f64>| x.map(|x| if x == 0.0 { 0.0 } else { x });
            prop_assert_eq!(plain(got[0].1), plain(tree.value(host, &request)), "{}", tree.text());
            let kept = apply(
                &good(&format!("policy: x constraint: {}", tree.text())),
                std::slice::from_ref(host),
                &request,
            );
            let holds = tree.value(host, &request).is_some_and(|x| x != 0.0);
            prop_assert_eq!(kept.len(), usize::from(holds), "{}", tree.text());
        }
        let shown = policies.to_string();
        prop_assert_eq!(good(&shown), policies, "{}", shown);
    }

    #[test]
    fn any_file_is_read_without_panic_and_what_is_read_prints_the_same_again(
        text in "(\\PC|policy: ?x|policy:y |constraint:|sort:|count: 3|NLB_NCPUS|JP|age|exists\\(P\\)|\
                 \\[S ?== ?\"a[*]?\"\\]|[-+*/^!()\\[\\]]|&&|\\|\\||==|!=|[<>]=?|=>|1\\.5|3e2|\n| |#|\\\\){0,25}",
        prefix in prop_oneof![Just("policy: p "), Just("policy: p sort: "), Just("")],
    ) {
        let (policies, said) = read(&format!("{prefix}{text}"));
        match policies {
            Some(policies) => {
                let shown = policies.to_string();
                let again = good(&shown);
                prop_assert_eq!(&again, &policies, "{}", shown);
                prop_assert_eq!(again.to_string(), shown);
                apply(&policies, &hosts(), &Object::default());
            }
            None => prop_assert!(!said.is_empty()),
        }
    }
}
