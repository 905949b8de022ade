//! Tests of resource requirement strings.

use super::*;
use proptest::prelude::*;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The built-in names, a Boolean, a licence and a string resource.
struct Names;

impl ResNames for Names {
    fn kind(&self, name: &str) -> Option<ResKind> {
        match name {
            "fast" | "old_one" => Some(ResKind::Boolean),
            "lic" | "lic2" => Some(ResKind::Numeric { increasing: false }),
            "os" => Some(ResKind::String),
            _ => Builtins.kind(name),
        }
    }
}

#[derive(Default)]
struct TestHost {
    nums: BTreeMap<&'static str, f64>,
    texts: BTreeMap<&'static str, &'static str>,
    booleans: Vec<&'static str>,
}

impl HostView for TestHost {
    fn num(&self, name: &str) -> Option<f64> {
        self.nums.get(name).copied()
    }
    fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).copied()
    }
    fn boolean(&self, name: &str) -> Option<bool> {
        self.booleans.contains(&name).then_some(true)
    }
}

fn host() -> TestHost {
    TestHost {
        nums: [("mem", 4096.0), ("ut", 0.25), ("r1m", 1.5), ("ncpus", 8.0), ("swp", 0.0)].into(),
        texts: [("type", "LINUX"), ("hname", "hosta.x.org"), ("os", "deb-12.1")].into(),
        booleans: vec!["fast"],
    }
}

fn parse(text: &str) -> ResReq {
    ResReq::parse(text, &Syntax::new(&Names)).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

fn error(text: &str) -> ResReqError {
    match ResReq::parse(text, &Syntax::new(&Names)) {
        Ok(r) => panic!("{text}: accepted as {r}"),
        Err(e) => e,
    }
}

fn simple(text: &str) -> Simple {
    match parse(text) {
        ResReq::Simple(s) => *s,
        other => panic!("{other}"),
    }
}

fn selects(text: &str) -> bool {
    simple(text).selects(&host(), &SelectContext { local_type: "LINUX", local_model: "PC" })
}

#[test]
fn select_speaks_of_the_host() {
    for yes in [
        "mem>1000",
        "mem>=4096 && swp<1",
        "mem>3G",
        "mem > 3GB",
        "mem<4.5g",
        "select[mem>500M&&fast]",
        "!old_one && !lic>3 || fast",
        "defined(fast) && !defined(lic) && defined(mem)",
        "type==local",
        "type == any",
        "type!=\"HPPA\"",
        "hname==HostA.x.org",
        "os == deb-12.1",
        "os>='deb-12'",
        "ut<50%",
        "cpu<2",
        "mem/ncpus >= 512",
        "-swp == 0",
        "2*r1m - 1 == 2",
        "1+2*3==7",
        "(1+2)*3==9",
        "1 < 2 == 1",
        "fast || lic>3",
    ] {
        assert!(selects(yes), "{yes}");
    }
    for no in [
        "mem>5000",
        "lic>3",
        "!(lic>3)",
        "old_one",
        "type==HPPA",
        "type!=local",
        "type!=any",
        "model==local",
        "mem/swp>0",
        "fast && lic>3",
        "0",
        "ncpus-8",
        "os==deb",
    ] {
        assert!(!selects(no), "{no}");
    }
}

#[test]
fn requirement_without_sections_is_a_selection() {
    assert!(selects("mem=1000:fast:-old_one"));
    assert!(selects("type=any:ut=0.5:r1m=2"));
    assert!(!selects("r1m=1"));
    assert!(!selects("-fast"));
    assert_eq!(parse("select[mem=10:fast]").to_string(), "select[mem>=10M && fast]");
    for bad in ["mem=", "mem=10:lic", "fast=1", "mem=1 && fast", "mem=1:", "foo=1"] {
        error(bad);
    }
}

/// Requirements with one mistake each.
const BAD: &[&str] = &[
    "",
    "  ",
    "select[",
    "select[]",
    "select]",
    "badres>1",
    "rusage[foo=1]",
    "span[hosts=2]",
    "select[mem>1] foo[1]",
    "mem>",
    "mem>1 swp>1",
    "mem 1",
    "(mem>1",
    "mem>1)",
    "mem>1 &&",
    "type",
    "!type",
    "type+1",
    "type==",
    "mem=='a'",
    "'a'",
    "mem>1M5",
    "r1m>5G",
    "1e999>mem",
    "defined(foo)",
    "defined(mem",
    "order[]",
    "order[foo]",
    "order[mem:]",
    "order[--mem]",
    "order[type]",
    "order[1]",
    "rusage[]",
    "rusage[mem]",
    "rusage[mem=]",
    "rusage[mem=-1]",
    "rusage[fast=1]",
    "rusage[lic=1G]",
    "rusage[mem=1:duration=]",
    "rusage[mem=1:decay=2]",
    "rusage[duration=1]",
    "rusage[mem=1,mem=2]",
    "rusage[mem=1||]",
    "rusage[mem=(1 2 3)]",
    "rusage[mem=(1 2):duration=(1 2 3)]",
    "rusage[mem=1/box]",
    "span[]",
    "span[hosts=1:ptile=2]",
    "span[ptile=0]",
    "span[ptile=x]",
    "same[]",
    "same[foo]",
    "cu[pref=x]",
    "cu[]",
    "affinity[]",
    "affinity[node]",
    "affinity[core(1,same=core)]",
    "affinity[socket(1,exclusive=(core))]",
    "affinity[core(1,exclusive=(socket,injob|all))]",
    "affinity[core(1):membind=local]",
    "affinity[core(1):cpubind=cores]",
    "affinity[core(0)]",
    "affinity[core(1]",
    "select[mem>1] select[mem>2]",
    "mem>1 select[mem>2]",
    "order[mem] order[swp]",
    "{mem>1",
    "2*{mem>1} + ",
    "{mem>1} + 2*{swp>1}",
    "0*{mem>1}",
    "{mem>1} || 2*{swp>1}",
    "{mem>1}@x",
    "{{{{mem>1}}}}",
    "mem>1\u{7}",
];

#[test]
fn malformed_requirement_is_refused_with_its_place() {
    for bad in BAD {
        assert_eq!(error(bad).to_string(), "Bad resource requirement syntax");
    }
    let e = error("select[mem>1] rusage[foo=1]");
    assert_eq!(e.reason, "foo: unknown resource");
    assert_eq!(e.offset, 25);
    for (text, offset, reason) in [
        ("affinity[cores(1)]", 9, "expected numa, socket, core or thread"),
        ("affinity[core(2,same=thread)]", 21, "the level of same must be larger than core"),
        (
            "affinity[core(1,exclusive=(thread))]",
            27,
            "the level of exclusive must be no smaller than core",
        ),
        ("mem>1 affinity[core:membind=near]", 28, "expected localonly or localprefer in affinity"),
        ("affinity[core:bind=core]", 14, "expected cpubind or membind or distribute in affinity"),
    ] {
        let e = error(text);
        assert_eq!((e.offset, e.reason.as_str()), (offset, reason), "{text}");
    }
    assert!(ResReq::parse(&"(".repeat(3000), &Syntax::new(&Names)).is_err());
    assert!(ResReq::parse(&"mem+".repeat(2000), &Syntax::new(&Names)).is_err());
    assert!(ResReq::parse(&format!("1{}", "+1".repeat(400)), &Syntax::new(&Names)).is_ok());
}

#[test]
fn order_sorts_best_first() {
    let mut idle = host();
    idle.nums.extend([("r1m", 0.5), ("mem", 1024.0)]);
    let order = |text: &str| simple(text).order.unwrap();
    assert_eq!(order("order[r1m]").compare(&idle, &host()), Ordering::Less);
    assert_eq!(order("order[-r1m]").compare(&idle, &host()), Ordering::Greater);
    assert_eq!(order("order[mem]").compare(&idle, &host()), Ordering::Greater);
    assert_eq!(order("order[-!mem]").compare(&idle, &host()), Ordering::Less);
    assert_eq!(order("order[ut:r1m]").compare(&idle, &host()), Ordering::Less);
    assert_eq!(order("order[ut]").compare(&idle, &host()), Ordering::Equal);
    assert_eq!(order("order[lic:-r1m]").compare(&idle, &host()), Ordering::Greater);
    assert_eq!(order("order[mem/ncpus]").compare(&idle, &host()), Ordering::Greater);
    assert_eq!(order("order[ - mem : cpu ]").to_string(), "-mem:r1m");
    let mut bare = host();
    bare.nums.remove("r1m");
    for text in ["order[r1m]", "order[-r1m]"] {
        assert_eq!(order(text).compare(&host(), &bare), Ordering::Less, "{text}: lacking is last");
    }
}

#[test]
fn rusage_is_read_with_durations_and_units() {
    let r = simple("rusage[mem=2G/job:swp=10:duration=1h:decay=1:lic=1, tmp=5 || lic2=3]");
    let rusage = r.rusage.unwrap();
    let terms = rusage.terms();
    assert_eq!(terms.len(), 4);
    assert_eq!((terms[0].amount(), terms[0].per), (2048.0, Per::Job));
    let phase = RusagePhase { amount: 10.0, duration: Some(3600), decay: true };
    assert_eq!(terms[1].phases, [phase]);
    assert_eq!(terms[1].amount_at(900), 7.5);
    assert_eq!(terms[1].amount_at(3600), 0.0);
    assert_eq!(terms[2].phases[0].duration, None);
    assert_eq!(rusage.alternatives[1][0].res, "lic2");
    let text = "mem=2048.00/job:duration=60:decay=1,swp=10.00:duration=60:decay=1,lic=1.00,\
                tmp=5.00 || lic2=3.00";
    assert_eq!(rusage.to_string(), text);

    let phased = simple("rusage[mem=(400 300 200):duration=(10 15):decay=1]").rusage.unwrap();
    let term = &phased.terms()[0];
    assert_eq!(
        [0, 300, 600, 1050, 9999].map(|t| term.amount_at(t)),
        [400., 200., 300., 150., 200.]
    );
    let shown = "mem=(400.00 300.00 200.00):duration=(10 15):decay=(1 1 1)";
    assert_eq!(phased.to_string(), shown);
}

#[test]
fn sizes_count_in_the_unit_for_limits() {
    let syntax = Syntax { names: &Names, size_unit_mb: 1024.0 };
    let r = ResReq::parse("select[mem>2 && ncpus>2] rusage[mem=3,lic=1,swp=5M]", &syntax).unwrap();
    let s = r.first().unwrap();
    let amounts: Vec<f64> = s.rusage.as_ref().unwrap().terms().iter().map(|t| t.amount()).collect();
    assert_eq!(amounts, [3072.0, 1.0, 5.0]);
    assert_eq!(s.select.as_ref().unwrap().expr.to_string(), "mem>2048M && ncpus>2");
}

#[test]
fn sizes_printed_in_another_unit_mean_the_same_when_read_again() {
    for size_unit_mb in [1.0 / 1024.0, 1.0, 1024.0] {
        let syntax = Syntax { names: &Names, size_unit_mb };
        let text = "select[swp>3] rusage[mem=(1536 7):duration=(10),swp=2K/task,tmp=1,lic=2]";
        let read = ResReq::parse(text, &syntax).unwrap();
        assert_eq!(ResReq::parse(&read.to_string(), &syntax).unwrap(), read, "{read}");
    }
    let kb = Syntax { names: &Names, size_unit_mb: 1.0 / 1024.0 };
    let read = ResReq::parse("rusage[mem=1536,tmp=2048,lic=2]", &kb).unwrap();
    assert_eq!(read.to_string(), "rusage[mem=1.50M,tmp=2.00M,lic=2.00]");
}

#[test]
fn sections_that_do_not_act_are_named_once() {
    let named = |text: &str| parse(text).not_acted_on().join(", ");
    assert_eq!(named("select[mem>1] order[mem] rusage[mem=5] span[hosts=1]"), "");
    assert_eq!(named("same[type] cu[type=rack] affinity[core(1)]"), "");
    let twice = named("2*{span[gtile=2] affinity[core]}+3*{span[gtile=1]}");
    assert_eq!(twice, "gtile of section span[]");
    assert_eq!(named("{mem>1} || {mem>2}"), "");
}

#[test]
fn placement_sections_are_read_with_their_values() {
    for text in [
        "span[hosts=1]",
        "span[hosts=-1]",
        "span[ptile=4]",
        "span[ptile='!']",
        "span[block=2]",
        "span[ptile='!,m1:4,m2:8']",
        "span[stripe]",
        "span[stripe=2]",
        "span[hosts=1:gtile='!']",
        "same[type:model]",
        "cu[type=rack:pref=maxavail:maxcus=3:balance]",
        "affinity[core(1)]",
        "cu[usablepercu=2:excl]",
        "affinity[thread(2,same=numa,exclusive=(core,injob))*3:cpubind=socket:\
         membind=localonly:distribute=pack(socket=1)]",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
    assert_eq!(parse("span[ptile=!,HP:8,SGI:4]").to_string(), "span[ptile='!,HP:8,SGI:4']");
    assert_eq!(parse("affinity[core*2]").to_string(), "affinity[core(1)*2]");
    assert_eq!(
        parse("affinity[cpu( 2, same = mcm )]").to_string(),
        "affinity[thread(2,same=numa)]"
    );
    let scopes = "affinity[core(1,exclusive=(socket,alljobs | intask))]";
    let shown = "affinity[core(1,exclusive=(socket,intask|alljobs))]";
    assert_eq!(parse(scopes).to_string(), shown);
    assert!(simple("span[hosts=1]").span.unwrap().one_host());
}

#[test]
fn compound_and_alternative_requirements_are_read() {
    let r = parse("2*{mem>1 rusage[mem=5]}+ 3*{order[mem]} +{span[ptile=1]}");
    let ResReq::Compound(terms) = &r else { panic!("{r}") };
    assert_eq!(terms.iter().map(|t| t.tasks).collect::<Vec<_>>(), [Some(2), Some(3), None]);
    let text = "2*{select[mem>1] rusage[mem=5.00]} + 3*{order[mem]} + {span[ptile=1]}";
    assert_eq!(r.to_string(), text);
    let text = "{select[mem>1]} || {1*{select[fast]} + {select[mem>2]}}@120";
    assert_eq!(parse(text).to_string(), text);
    let ResReq::Alternatives(alts) = parse(text) else { panic!() };
    assert_eq!((alts[0].delay, alts[1].delay), (0, 120));
    assert_eq!(parse(text).simples().len(), 3);
    assert_eq!(parse("{mem>1}").to_string(), "select[mem>1]");
}

#[test]
fn combined_as_bjobs_shows_it() {
    let job = |texts: &[&str]| {
        let r = ResReq::parse_many(texts, &Syntax::new(&Names)).unwrap().unwrap_or_default();
        move |queue: &str, hosts: bool| {
            let queue = if queue.is_empty() { ResReq::default() } else { parse(queue) };
            r.clone().over(&queue).with_defaults(hosts).to_string()
        }
    };
    assert_eq!(job(&[])("", false), "select[type == local] order[r15s:pg]");
    assert_eq!(job(&["order[mem]"])("", true), "select[type == any] order[mem]");
    assert_eq!(
        job(&[])("select[mem>10]", false),
        "select[(mem>10) && (type == local)] order[r15s:pg]"
    );
    assert_eq!(
        job(&["mem>88888888"])("select[mem>10]", false),
        "select[((mem>88888888) && (mem>10)) && (type == local)] order[r15s:pg]"
    );
    assert_eq!(
        job(&["select[mem>10] rusage[mem=50] span[hosts=1]"])("", false),
        "select[(mem>10) && (type == local)] order[r15s:pg] rusage[mem=50.00] span[hosts=1]"
    );
    assert_eq!(job(&["type==any"])("", false), "select[type==any] order[r15s:pg]");
    assert_eq!(job(&["fast"])("", false), "select[(fast) && (type == any)] order[r15s:pg]");
    assert_eq!(
        job(&["mem>1 rusage[mem=1,lic=2] order[mem]", "swp>1", "rusage[lic=3] order[swp]"])(
            "rusage[mem=9,tmp=4] span[ptile=2] same[type] order[pg]",
            false
        ),
        "select[((mem>1) && (swp>1)) && (type == local)] order[swp] \
         rusage[mem=1.00,lic=3.00,tmp=4.00] span[ptile=2] same[type]"
    );
    assert_eq!(
        job(&["1*{mem>1} + {swp>1}"])("rusage[lic=1]", true),
        "1*{select[(mem>1) && (type == any)] order[r15s:pg] rusage[lic=1.00]} + \
         {select[(swp>1) && (type == any)] order[r15s:pg] rusage[lic=1.00]}"
    );
    let two = ResReq::parse_many(&["mem>1", "{mem>1} || {swp>1}"], &Syntax::new(&Names));
    assert!(two.is_err());
}

fn expr() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("mem>10".to_string()),
        Just("type==any".to_string()),
        Just("fast".to_string()),
        Just("os != 'a b'".to_string()),
        (0u32..9999, 0usize..4).prop_map(|(n, u)| format!("swp<={n}{}", ["", "K", "GB", "t"][u])),
        (0u32..99).prop_map(|n| format!("r1m*{n}.5-2<ncpus/3")),
        Just("defined(lic)".to_string()),
    ];
    leaf.prop_recursive(4, 24, 2, |e| {
        prop_oneof![
            e.clone().prop_map(|e| format!("!({e})")),
            (e.clone(), e.clone()).prop_map(|(a, b)| format!("({a}) && {b}")),
            (e.clone(), e).prop_map(|(a, b)| format!("{a} || ({b})")),
        ]
    })
}

proptest! {
    #[test]
    fn printing_parses_back(
        e in expr(),
        order in "(-?(mem|r1m|ut|\\(mem\\+swp\\)|mem/ncpus)){1}(:-?!?(pg|lic)){0,2}",
        n in 1u32..9, d in 1u64..9999,
    ) {
        let text = format!("select[{e}] order[{order}] rusage[mem={n}G:duration={d}s,lic={n}/task]");
        let req = parse(&text);
        let again = parse(&req.to_string());
        prop_assert_eq!(&again, &req);
        // The tree's own text means the same.
        let s = simple(&text);
        let tree = s.select.unwrap().expr;
        let reread = simple(&format!("select[{tree}]")).select.unwrap().expr;
        let cx = SelectContext { local_type: "LINUX", local_model: "" };
        prop_assert_eq!(reread.holds(&host(), &cx), tree.holds(&host(), &cx), "{}", tree);
        prop_assert_eq!(reread, tree);
    }

    #[test]
    fn any_requirement_is_read_without_panic(
        text in "\\PC{0,40}|(select|rusage|span|mem|[0-9]|[\\[\\]{}()*+|&!=<>:,.@'\" /-]|type|\
                 duration|ptile|affinity|core|\u{e9}|order){0,14}",
    ) {
        if let Ok(r) = ResReq::parse(&text, &Syntax::new(&Names)) {
            let shown = r.to_string();
            let again = ResReq::parse(&shown, &Syntax::new(&Names));
            prop_assert!(again.is_ok(), "{} -> {}", text, shown);
            prop_assert_eq!(again.unwrap().to_string(), shown);
            for s in r.simples() {
                s.selects(&host(), &SelectContext::default());
            }
        }
    }
}
