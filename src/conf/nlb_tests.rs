//! Name maps and object data files: the examples of the manual, each fault with its place, and that
//! a written file reads back the same.

use super::diag::Diags;
use super::nlb_map::NameMaps;
use super::nlb_objects::{ObjectData, date, dump, dump_maps, read_objects, store, value_text};
use crate::lang::nlb::{self, Names, Policies};
use crate::model::nlb::{AttrId, Kind, NJS, NLB, NLB_JOB, Value};
use jiff::tz::TimeZone;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

fn lines(diags: &Diags) -> Vec<String> {
    diags.list().iter().map(ToString::to_string).collect()
}

/// The maps with the file `text` put into them, and all that was said.
fn put(maps: &NameMaps, text: &str) -> (Option<NameMaps>, Vec<String>) {
    let mut diags = Diags::new();
    let new = maps.put(&Arc::from("name_map"), text.as_bytes(), &mut diags);
    (new, lines(&diags))
}

/// The shipped map of a type with further attributes.
fn with(maps: &NameMaps, number: u16, further: &str) -> NameMaps {
    let text = maps.numbered(number).unwrap().text();
    let text = text.replacen("{\n", &format!("{{ {further}\n"), 1);
    let (new, said) = put(maps, &text);
    new.unwrap_or_else(|| panic!("{said:?}"))
}

/// The maps of the manual's examples.
fn site() -> NameMaps {
    let hosts = "NLB_SITE_CPUNORM \"CPU Normalization Factor\" float(8200); \
                 NLB_APPLICATIONS \"Resident Applications\" string(8201); \
                 host_nastran \"Host supports nastran\" integer(8192); \
                 host_oracle \"Host supports oracle\" integer(8193); \
                 host_unichem \"Host requires unichem\" integer(8194);";
    let requests = "job_nastran \"Job requires nastran\" integer(8192); \
                    job_oracle \"Job requires oracle\" integer(8193); \
                    job_unichem \"Job requires unichem\" integer(8194);";
    with(&with(&NameMaps::shipped(), NLB, hosts), NLB_JOB, requests)
}

fn objects(text: &str, only: Option<u16>) -> (Option<Vec<ObjectData>>, Vec<String>) {
    let mut diags = Diags::new();
    let file = Arc::from("obj_defs");
    let found = read_objects(&file, text.as_bytes(), &site(), only, &mut diags);
    (found, lines(&diags))
}

fn policies(text: &str, maps: &NameMaps) -> Policies {
    let mut diags = Diags::new();
    let found = nlb::parse(&Arc::from("policies"), text.as_bytes(), maps, &mut diags);
    found.unwrap_or_else(|| panic!("{:?}", lines(&diags)))
}

#[test]
fn the_shipped_maps_have_the_attributes_of_the_manual() {
    let maps = NameMaps::shipped();
    let counts = [(NLB, 45), (NLB_JOB, 20), (NJS, 36)];
    for (number, count) in counts {
        assert_eq!(maps.numbered(number).unwrap().attributes().len(), count, "{number}");
    }
    let idle = maps.named("nlb").unwrap().named("nlb_a_idlecpu").unwrap();
    assert_eq!(
        (idle.id, idle.description.as_str()),
        (AttrId::new(Kind::Float, 11), "Ave Idle cpu")
    );
    let all: String = maps.list().iter().map(|m| m.text()).collect();
    assert_eq!(put(&NameMaps::default(), &all), (Some(maps), Vec::new()));
    policies(nlb::BUILT_IN, &NameMaps::shipped());
}

#[test]
fn a_map_of_the_manual_is_taken_and_the_other_maps_stay() {
    let (new, said) = put(
        &NameMaps::shipped(),
        "map NLB=1024 { NLB_SITE_CPUNORM \"CPU Normalization Factor\" integer(1000); }",
    );
    let new = new.unwrap();
    assert_eq!(
        said,
        [
            "name_map:1:16: <NLB_SITE_CPUNORM> integer(1000): numbers below 8192 are reserved",
            "name_map:1:5: 45 reserved attributes of NLB are left out",
        ]
    );
    assert_eq!(new.named("NLB").unwrap().attributes().len(), 1);
    assert_eq!(new.named("NJS"), NameMaps::shipped().named("NJS"));
    let (own, _) = put(&new, "# own\nmap Licences = 7 { LIC_FREE \"Free\" integer(1); }");
    assert_eq!(own.unwrap().list().len(), 4);
}

#[test]
fn each_fault_of_a_map_has_its_place_and_nothing_is_taken() {
    let maps = NameMaps::shipped();
    let faults = [
        ("", "name_map: no map is defined"),
        ("mop NLB = 1024 { }", "name_map:1:1: <mop> is unknown: map is wanted"),
        ("map A = 5 {", "name_map:1:12: an attribute or <}> is wanted before the end of the file"),
        ("map A 5 { }", "name_map:1:7: <=> is wanted before <5>"),
        ("map A = 70000 { }", "name_map:1:9: <70000> is above 65535"),
        ("map A = 0 { }", "name_map:1:9: the number of a type is from 1"),
        ("map NLB = 7 { }", "name_map:1:5: type <NLB> has the number 1024"),
        ("map HOSTS = 1024 { }", "name_map:1:5: number 1024 is that of type <NLB>"),
        ("map A = 5 { } map a = 6 { }", "name_map:1:19: type <a> is already defined in line 1"),
        ("map A = 5 { } map B = 5 { }", "name_map:1:19: number 5 is that of type <A>, in line 1"),
        ("map A = 5 { X 5 }", "name_map:1:15: a description in quotes is wanted before <5>"),
        ("map A = 5 { X \"x }", "name_map:1:15: <\"> is wanted before the end of the line"),
        (
            "map A = 5 { X \"x\" flout(1); }",
            "name_map:1:19: <flout> is no kind: float, integer, string or time is wanted; \
             did you mean <float>?",
        ),
        ("map A = 5 { X \"x\" float 1; }", "name_map:1:25: <(> is wanted before <1>"),
        ("map A = 5 { X \"x\" float(1) }", "name_map:1:28: <;> is wanted before <}>"),
        (
            "map A = 5 { X \"x\" float(1);\n x \"\" float(2); }",
            "name_map:2:2: <x> is already defined in line 1",
        ),
        (
            "map A = 5 { X \"x\" float(1);\n Y \"\" float(1); }",
            "name_map:2:2: <Y>: float(1) is <X> already, in line 1",
        ),
        (
            "map A = 5 { Age \"\" float(1); }",
            "name_map:1:13: <Age> is a word of the policy language",
        ),
        ("map A = 5 { 5x \"\" float(1); }", "name_map:1:13: <5x> is no name"),
    ];
    for (text, words) in faults {
        let (new, said) = put(&maps, text);
        assert!(new.is_none(), "{text}");
        assert!(said.iter().any(|s| s == words), "{text}: {said:?}");
    }
    let both =
        maps.named("NLB_JOB").unwrap().text().replacen("{", "{ NLB_NCPUS \"\" float(9000);", 1);
    let (new, said) = put(&maps, &both);
    assert!(new.is_none());
    assert_eq!(said, ["name_map:1:22: <NLB_NCPUS> is an attribute of both NLB and NLB_JOB"]);
    let (own, _) = put(&maps, "map A = 5 { }");
    let (new, said) = put(&own.unwrap(), "map A = 6 { }");
    assert!(new.is_none());
    assert_eq!(said, ["name_map:1:5: type <A> has the number 5"]);
    let name = "n".repeat(60);
    let (_, said) = put(&maps, &format!("map {name} = 5 {{ }}"));
    assert_eq!(said, [format!("name_map:1:5: <{name}> is longer than 59 characters")]);
    let many: String = (0..4_097).map(|n| format!("a{n} \"\" float({n});\n")).collect();
    let (_, said) = put(&maps, &format!("map A = 5 {{\n{many}}}"));
    assert!(said.contains(&"name_map:4098:1: more than 4096 attributes of A".to_owned()));
    let many: String = (1..=65).map(|n| format!("map t{n} = {n} {{ }}\n")).collect();
    assert_eq!(put(&maps, &many).1, ["name_map:65:5: more than 64 object types"]);
    assert_eq!(put(&maps, &"#".repeat((1 << 20) + 1)).1, ["name_map: larger than 1 MB"]);
}

#[test]
fn a_map_without_an_attribute_that_a_policy_uses_is_refused() {
    let maps = site();
    let used =
        policies("policy: nqs\n\npolicy: idlecpu\nsort: NLB_IDLECPU * NLB_SITE_CPUNORM", &maps);
    let said = |changed: &NameMaps| {
        let mut diags = Diags::new();
        changed.check_used(&used, "policies", &Arc::from("name_map"), &mut diags);
        lines(&diags)
    };
    assert_eq!(said(&maps), Vec::<String>::new());
    let words = "name_map: attribute <NLB_SITE_CPUNORM> is used by policy <idlecpu> \
                 (policies:4:21); change the policies first";
    assert_eq!(said(&NameMaps::shipped()), [words]);
    let other = "NLB_SITE_CPUNORM \"\" integer(9000);";
    assert_eq!(said(&with(&NameMaps::shipped(), NLB, other)), [words]);
    let same = "NLB_SITE_CPUNORM \"\" float(9000);";
    assert_eq!(said(&with(&NameMaps::shipped(), NLB, same)), Vec::<String>::new());
}

#[test]
fn a_dump_of_the_maps_has_the_head_of_the_manual() {
    let maps = site();
    let text = dump_maps(
        maps.list().iter().map(|m| (m, 795_527_512)),
        "ljgm",
        795_885_488,
        &TimeZone::UTC,
    );
    let head = "###############################################\n\
                # creation date: Wed Mar 22 15:18:08 1995\n\
                # created by: ljgm\n\
                # object timestamp: Sat Mar 18 11:51:52 1995\n\
                ########\n\
                map NLB = 1024 {\n";
    assert_eq!(&text[..head.len()], head);
    assert!(text.contains("\n\tNLB_SITE_CPUNORM \"CPU Normalization Factor\" float(8200);\n"));
    assert_eq!(put(&NameMaps::default(), &text).0, Some(maps));
    assert_eq!(date(0, &TimeZone::UTC), "Thu Jan  1 00:00:00 1970");
}

#[test]
fn object_data_of_the_manual_is_read() {
    let (found, said) = objects(
        "object NLB (cloudy) { NLB_SITE_CPUNORM = 10; NLB_APPLICATIONS = \"UniChem dbase\"; }\n\
         object nlb (\"gust x\") { float(8200) = -2.5; NLB_APPLICATIONS = Nastran; host_oracle = 010; }\n\
         object NLB (hot.site-1_a) { nlb_site_cpunorm = 7.; NLB_APPLICATIONS = \"\"; integer(9999) = -010;}",
        None,
    );
    assert_eq!(said, Vec::<String>::new());
    let found = found.unwrap();
    let shown: Vec<_> = found
        .iter()
        .map(|o| {
            let values: Vec<_> =
                o.values.iter().map(|(id, v)| format!("{id}={}", value_text(v))).collect();
            format!("{} {} {}", o.object_type, o.name, values.join(" "))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "1024 cloudy float(8200)=10.0 string(8201)=\"UniChem dbase\"",
            "1024 gust x float(8200)=-2.5 integer(8193)=8 string(8201)=\"Nastran\"",
            "1024 hot.site-1_a float(8200)=7.0 integer(9999)=-8 string(8201)=\"\"",
        ]
    );
}

#[test]
fn each_value_that_is_refused_has_its_place_and_words() {
    let refused = [
        ("NLB_SITE_CPUNORM = 3.5e4", "<3.5e4>: a float is written in fixed point"),
        ("NLB_SITE_CPUNORM = 0x10", "<0x10>: a float is written in fixed point"),
        ("NLB_SITE_CPUNORM = nan", "<nan>: a float is written in fixed point"),
        ("NLB_SITE_CPUNORM = inf", "<inf>: a float is written in fixed point"),
        ("NLB_SITE_CPUNORM = --1", "<--1>: a float is written in fixed point"),
        ("NLB_SITE_CPUNORM = \"1\"", "\"1\": a number stands without quotes"),
        ("host_oracle      = 09", "<09> is no octal number"),
        ("host_oracle      = 1.5", "<1.5> is no whole number"),
        ("host_oracle      = 0x10", "<0x10> is no whole number"),
        ("host_oracle      = 9223372036854775808", "<9223372036854775808> is beyond 64 bits"),
        (
            "NLB_APPLICATIONS = a-b",
            "<a-b>: a string with other characters than letters and digits stands in quotes",
        ),
    ];
    for (text, words) in refused {
        let (found, said) = objects(&format!("object NLB (a) {{ {text}; }}"), None);
        assert!(found.is_none());
        assert_eq!(said, [format!("obj_defs:1:37: {words}")]);
    }
    let long = format!("object NLB (a) {{ NLB_APPLICATIONS = \"{}\"; }}", "x".repeat(4_097));
    assert_eq!(objects(&long, None).1, ["obj_defs:1:37: longer than 4096 bytes"]);
    let least = "object NLB (a) { integer(8193) = -9223372036854775808; }";
    assert!(objects(least, None).0.is_some());
}

#[test]
fn each_fault_of_an_object_file_has_its_place_and_nothing_is_taken() {
    let faults = [
        ("objet NLB (a) { }", None, "obj_defs:1:1: <objet> is unknown: object is wanted"),
        ("object NBL (a) { }", None, "obj_defs:1:8: <NBL> is no object type; did you mean <NLB>?"),
        ("object NLB () { }", None, "obj_defs:1:13: the name of an object is wanted before <)>"),
        ("object NLB a { }", None, "obj_defs:1:12: <(> is wanted before <a>"),
        (
            "object NLB (a) { NLB_SITE_CPUNROM = 1; }",
            None,
            "obj_defs:1:18: no attribute <NLB_SITE_CPUNROM> in the map of NLB; did you mean \
             <NLB_SITE_CPUNORM>?",
        ),
        ("object NLB (a) { host_oracle = 1 }", None, "obj_defs:1:34: <;> is wanted before <}>"),
        ("object NLB (a) { host_oracle = ; }", None, "obj_defs:1:32: a value is wanted before <;>"),
        ("object NLB (a) { host_oracle 1; }", None, "obj_defs:1:30: <=> is wanted before <1>"),
        (
            "object NLB (a) { NLB_APPLICATIONS = \"a\n\"; }",
            None,
            "obj_defs:1:37: <\"> is wanted before the end of the line",
        ),
        (
            "object NLB_JOB (a) { }",
            Some(NLB),
            "obj_defs:1:8: an object of type NLB_JOB: only those of NLB are wanted",
        ),
        ("object NLB (a) {\n\t\u{1}", None, "obj_defs:2:2: control character 0x01"),
    ];
    for (text, only, words) in faults {
        let (found, said) = objects(text, only);
        assert!(found.is_none(), "{text}");
        assert_eq!(said, [words], "{text}");
    }
    let (none, said) = objects(&format!("object NLB ({}) {{ }}", "h".repeat(256)), None);
    assert!(none.is_none() && said[0].ends_with("is longer than 255 bytes"), "{said:?}");
    let values: String = (0..4_097).map(|n| format!("float({n}) = 1;")).collect();
    let (none, said) = objects(&format!("object NJS (a) {{ {values} }}"), None);
    assert!(none.is_none() && said[0].ends_with("more than 4096 attributes of <a>"), "{said:?}");
}

#[test]
fn attributes_that_the_server_sets_are_skipped_and_a_second_object_is_merged() {
    let (found, said) = objects(
        "object NLB (a) { NLB_POLICY = 5.0; NLB_TIMESTAMP = 12;  # Thu\nNLB_HOST = \"b\"; }\n\
         object NLB (A) { host_oracle = 1; NLB_POLICY = 6.0; }",
        None,
    );
    let found = found.unwrap();
    let skipped = ["NLB_POLICY", "NLB_TIMESTAMP", "NLB_HOST"]
        .map(|n| format!("{n} is set by the server: skipped"));
    assert_eq!(
        said,
        [
            format!("obj_defs:1:18: {}", skipped[0]),
            format!("obj_defs:1:36: {}", skipped[1]),
            format!("obj_defs:2:1: {}", skipped[2]),
            "obj_defs:3:13: object <A> is in line 1 already: later values win".to_owned(),
        ]
    );
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].values.len(), 1);
}

fn value(kind: Kind) -> BoxedStrategy<Value> {
    match kind {
        Kind::Float => proptest::num::f64::NORMAL.prop_map(Value::Float).boxed(),
        Kind::Integer => any::<i64>().prop_map(Value::Integer).boxed(),
        Kind::Str => {
            "[^\\p{Cc}]{0,12}|[a\"\\\\ #;}]{0,8}".prop_map(|s| Value::Str(s.into())).boxed()
        }
        Kind::Time => any::<i32>().prop_map(|n| Value::Time(n.into())).boxed(),
    }
}

fn some_values() -> impl Strategy<Value = BTreeMap<AttrId, Value>> {
    let ids: Vec<AttrId> = site().named("NLB").unwrap().attributes().iter().map(|a| a.id).collect();
    let one = proptest::sample::select(ids).prop_flat_map(|id| (Just(id), value(id.kind)));
    proptest::collection::btree_map(0u32..99, one, 0..6).prop_map(|all| all.into_values().collect())
}

proptest! {
    #[test]
    fn a_dump_reads_back_and_dumps_the_same(
        values in some_values(),
        name in "[a-zA-Z0-9._-]{1,9}|[^\\p{Cc}]{1,9}",
    ) {
        let maps = site();
        let map = maps.named("NLB").unwrap();
        let given: BTreeMap<AttrId, Value> = values
            .iter()
            .filter(|(id, _)| !super::nlb_objects::SET_BY_SERVER.contains(id))
            .map(|(id, v)| (*id, v.clone()))
            .collect();
        for text in [dump(map, &name, &values, &TimeZone::UTC), store(map, &name, &values)] {
            let (found, said) = objects(&text, Some(NLB));
            let found = found.unwrap_or_else(|| panic!("{text}: {said:?}"));
            prop_assert_eq!(&found[0].name, &name);
            prop_assert_eq!(&found[0].values, &given, "{}", text);
        }
        let again = dump(map, &name, &given, &TimeZone::UTC);
        let (found, _) = objects(&again, None);
        prop_assert_eq!(dump(map, &name, &found.unwrap()[0].values, &TimeZone::UTC), again);
    }

    #[test]
    fn any_map_and_object_file_is_read_without_panic(
        text in "(\\PC|map|object| NLB|=| 1024|[{}();]|\"x\"|float|\\(1\\)|cool|NLB_NCPUS|\n|#|-?[0-9]\\.?){0,25}",
    ) {
        for begin in ["", "object NLB (a) {", "map A = 5 {"] {
            let text = format!("{begin}{text}");
            let (new, said) = put(&site(), &text);
            prop_assert!(new.is_some() || !said.is_empty());
            let (found, said) = objects(&text, None);
            prop_assert!(found.is_some() || !said.is_empty());
        }
    }
}

#[test]
fn the_packages_of_the_manual_are_named_by_requests_and_hosts() {
    let all = site().all().len();
    let text = "policy: packages constraint: exists(job_nastran) => exists(host_nastran)";
    assert_eq!(policies(text, &site()).list()[0].attributes().len(), 2);
    assert_eq!(all, 45 + 5 + 20 + 3);
}
