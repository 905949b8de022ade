//! Limits of lsb.resources: their values in both forms, and what is wrong with others.

use super::super::Diags;
use super::super::lsb_resources;
use super::super::testing::MapFiles;
use super::super::types::{BatchResources, LimitNumber, Limited, Shared};
use super::*;

fn read(text: &str, unit_mb: f64) -> (BatchResources, Vec<String>) {
    let mut diags = Diags::new();
    let files = MapFiles::one("/lsb.resources", text);
    let of = (&Shared::default(), unit_mb);
    let found = lsb_resources::parse(&files, "/lsb.resources", of, &mut diags).unwrap();
    (found, diags.list().iter().map(|d| d.to_string()).collect())
}

/// A limit of these lines, the first of which is line 2; what is told of it.
fn told_of(lines: &str) -> Vec<String> {
    let text = format!("Begin Limit\n{}\nEnd Limit\n", lines.replace("; ", "\n"));
    read(&text, 1.0).1
}

#[test]
fn limit_has_the_values_of_its_lines() {
    let text = "Begin Limit\nNAME = few\nPER_USER = all ~eve chip\nQUEUES = normal night\n\
        PER_HOST = rack1 ~h3\nSLOTS = 3\nSLOTS_PER_PROCESSOR = 0.5\nMEM = 10%\nTMP = 5\n\
        JOBS = 2\nRESOURCE = [lic,2] ([tok, 0.5])\nEnd Limit\n";
    let (found, told) = read(text, 1024.0);
    assert_eq!(told, Vec::<String>::new());
    let [limit] = &found.limits[..] else { panic!("{found:?}") };
    assert_eq!((limit.name.as_str(), limit.ineligible), ("few", false));
    let users = limit.users.as_ref().unwrap();
    let words: Vec<(&str, bool)> =
        users.words.iter().map(|word| (word.name.as_str(), word.exclude)).collect();
    assert_eq!((users.each, words), (true, vec![("all", false), ("eve", true), ("chip", false)]));
    assert!(!limit.queues.as_ref().unwrap().each);
    assert_eq!(limit.hosts.as_ref().unwrap().text, "rack1 ~h3");
    let amounts: Vec<(Limited, LimitNumber)> =
        limit.amounts.iter().map(|amount| (amount.what.clone(), amount.number)).collect();
    let named = |name: &str| Limited::Resource(name.to_owned());
    assert_eq!(
        amounts,
        [
            (Limited::Slots, LimitNumber::Fixed(3.0)),
            (Limited::Slots, LimitNumber::PerProcessor(0.5)),
            (Limited::Mem, LimitNumber::Percent(10.0)),
            // in the unit of the cluster
            (Limited::Tmp, LimitNumber::Fixed(5120.0)),
            (Limited::Jobs, LimitNumber::Fixed(2.0)),
            (named("lic"), LimitNumber::Fixed(2.0)),
            (named("tok"), LimitNumber::Fixed(0.5)),
        ]
    );
}

#[test]
fn rows_of_a_table_are_limits() {
    let text = "Begin Limit\nNAME USERS QUEUES PER_HOST SLOTS MEM RESOURCE\n\
        one (ann bob) - all ! 50% ([lic,2] [tok,1])\n- - normal - 4 () -\nEnd Limit\n\
        Begin Limit\nJOBS = 1\nEnd Limit\n";
    let (found, told) = read(text, 1.0);
    assert_eq!(told, Vec::<String>::new());
    let names: Vec<&str> = found.limits.iter().map(|limit| limit.name.as_str()).collect();
    assert_eq!(names, ["one", "NONAME000", "NONAME001"]);
    let numbers: Vec<LimitNumber> = found.limits[0].amounts.iter().map(|a| a.number).collect();
    let fixed = LimitNumber::Fixed;
    let want = [LimitNumber::PerProcessor(1.0), LimitNumber::Percent(50.0), fixed(2.0), fixed(1.0)];
    assert_eq!(numbers, want);
    assert_eq!(found.limits[1].users, None);
    assert_eq!(found.limits[1].amounts[0].number, fixed(4.0));
}

#[test]
fn mistakes_in_a_limit_are_told_with_their_place() {
    let rows = [
        ("SLOTS = x", "2:9: bad value <x> of SLOTS: a number from 0 to 2147483647 is wanted"),
        ("SLOTS = -1", "2:9: bad value <-1> of SLOTS: a number from 0 to 2147483647 is wanted"),
        ("JOBS = 3.5", "2:8: bad value <3.5> of JOBS: a number from 0 to 2147483647 is wanted"),
        (
            "USERS = ann; PER_USER = bob; SLOTS = 1",
            "3:12: USERS and PER_USER cannot be in one limit",
        ),
        ("PER_HOST = h1; HOSTS = h2; SLOTS = 1", "3:9: HOSTS and PER_HOST cannot be in one limit"),
        (
            "USERS = ann",
            "1:7: the limit limits nothing: SLOTS, SLOTS_PER_PROCESSOR, JOBS, MEM, TMP, SWP or \
             RESOURCE is wanted",
        ),
        (
            "HOSTS = h1; SLOTS_PER_PROCESSOR = 1",
            "3:23: slots for each processor are those of one host: PER_HOST is wanted",
        ),
        ("MEM = 10%", "2:7: a percentage is those of one host: PER_HOST is wanted"),
        (
            "PER_HOST = all; MEM = 101%",
            "3:7: bad value <101%> of MEM: a number of MB (LSF_UNIT_FOR_LIMITS), or a \
             percentage, is wanted",
        ),
        (
            "SWP = 4G",
            "2:7: bad value <4G> of SWP: a number of MB (LSF_UNIT_FOR_LIMITS), or a percentage, \
             is wanted",
        ),
        ("RESOURCE = lic,4", "2:12: bad value <lic,4> of RESOURCE: [name,amount] is wanted"),
        ("RESOURCE = [lic]", "2:13: bad value <lic> of RESOURCE: [name,amount] is wanted"),
        ("RESOURCE = [lic,x]", "2:13: bad value <lic,x> of RESOURCE: [name,amount] is wanted"),
        (
            "RESOURCE = [lic,5%]",
            "2:13: bad value <lic,5%> of RESOURCE: MEM, TMP and SWP alone take a percentage",
        ),
        ("RESOURCE = [lic,1] [lic,2]", "2:21: resource <lic> is limited twice"),
        (
            "USERS = ~ann; SLOTS = 1",
            "2:9: bad value <~ann> of USERS: before what is left out, `all` or names are wanted",
        ),
        (
            "USERS = chip@; SLOTS = 1",
            "2:9: bad value <chip@> of USERS: PER_USER gives each member of a group a limit of \
             its own",
        ),
        (
            "NAME = a b; SLOTS = 1",
            "2:8: bad value <a b> of NAME: a word of at most 40 characters is wanted",
        ),
        (
            "INELIGIBLE = Y; PER_HOST = all; SLOTS = 1",
            "2:14: INELIGIBLE has no effect in a limit of hosts, nor without SLOTS or JOBS",
        ),
        (
            "INELIGIBLE = maybe; SLOTS = 1",
            "2:14: bad value <maybe> of INELIGIBLE: Y or N is wanted",
        ),
        ("SLOT = 1; JOBS = 1", "2:1: unknown keyword <SLOT> in section Limit"),
    ];
    for (lines, told) in rows {
        let all = told_of(lines);
        let want = format!("/lsb.resources:{told}");
        assert!(all.iter().any(|one| one.starts_with(&want)), "{lines}: {all:?}");
    }
}

#[test]
fn empty_limits_and_names_given_twice_are_told() {
    let empty = read("Begin Limit\nEnd Limit\n", 1.0).1;
    assert_eq!(empty, ["/lsb.resources:1:7: section Limit is empty"]);
    let twice = "Begin Limit\nNAME SLOTS\na 1\na 2\nEnd Limit\n";
    assert_eq!(read(twice, 1.0).1, ["/lsb.resources:4:1: NAME <a> is given twice"]);
}

#[test]
fn keywords_that_nothing_acts_on_are_told() {
    let all = told_of("CLUSTERS = c1; SLOTS = 1; FWD_SLOTS = 2");
    let want = [
        "/lsb.resources:2:1: CLUSTERS is known and not acted on",
        "/lsb.resources:4:1: FWD_SLOTS is known and not acted on",
    ];
    assert_eq!(all.len(), 2, "{all:?}");
    for (one, want) in all.iter().zip(want) {
        assert!(one.starts_with(want), "{one}");
    }
}

#[test]
fn names_that_other_files_do_not_have_are_mistakes() {
    let with = |lines: &str| {
        let section = format!("Begin Limit\n{lines}\nSLOTS = 1\nEnd Limit\n# Begin");
        said("lsb.resources", "# Begin", &section)
    };
    assert_eq!(
        with("QUEUES = normla"),
        ["error lsb.resources QUEUES:10 <normla> is not a queue ~normal"]
    );
    assert_eq!(
        with("PER_HOST = all ~alhpa"),
        ["warning lsb.resources PER_HOST:16 <alhpa> is neither a host nor a host group; ignored \
          ~alpha"]
    );
    assert_eq!(
        with("APPS = nosuch"),
        ["error lsb.resources APPS:8 <nosuch> is not an application profile"]
    );
    assert_eq!(
        with("RESOURCE = [licenc,3]"),
        ["error lsb.resources RESOURCE:13 <licenc> is not a resource of lsf.shared ~licence"]
    );
    assert_eq!(with("USERS = nobody_knows"), Vec::<String>::new());
    let usage = "Begin ReservationUsage\nRESOURCE METHOD\nlicenc PER_JOB\nEnd ReservationUsage\n# \
                 Begin";
    assert_eq!(
        said("lsb.resources", "# Begin", usage),
        [
            "warning lsb.resources licenc:1 <licenc> is not a resource of lsf.shared; ignored ~licence"
        ]
    );
    let usage = "Begin ReservationUsage\nRESOURCE METHOD\nlicence PER_JOB\nlicence PER_HOST\n\
                 End ReservationUsage\n# Begin";
    let said = said("lsb.resources", "# Begin", usage);
    assert!(matches!(&said[..], [one] if one.contains("this one prevails")), "{said:?}");
}

#[test]
fn reservation_usage_is_read_and_its_mistakes_told() {
    let text = "Begin ReservationUsage\nRESOURCE METHOD RESERVE\nlic PER_JOBS maybe\n\
        tok PER_HOST Y\nEnd ReservationUsage\n";
    let (found, told) = read(text, 1.0);
    assert_eq!(found.reservation_usage.len(), 2);
    let methods: Vec<&str> =
        found.reservation_usage.iter().map(|row| row.method.as_str()).collect();
    assert_eq!(methods, ["PER_JOBS", "PER_HOST"]);
    let has = |text: &str| told.iter().any(|one| one.contains(text));
    assert!(has("3:5: bad value <PER_JOBS> of METHOD"), "{told:?}");
    assert!(has("3:14: bad value <maybe> of RESERVE: Y or N is wanted"), "{told:?}");
    assert!(has("RESERVE is known and not acted on"), "{told:?}");
}
