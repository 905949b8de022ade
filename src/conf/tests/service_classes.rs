//! lsb.serviceclasses and the guaranteed pools of lsb.resources: their values, and what is wrong
//! with others.

use super::super::Diags;
use super::super::testing::MapFiles;
use super::super::types::{
    BatchResources, GoalKind, PackageConf, PoolAmount, PoolType, ResourceDef, ResourceKind,
    ServiceClassConf, Shared,
};
use super::super::{lsb_resources, lsb_serviceclasses};
use super::*;

fn classes(text: &str) -> (Vec<ServiceClassConf>, Vec<String>) {
    let mut diags = Diags::new();
    let files = MapFiles::one("/classes", text);
    let found = lsb_serviceclasses::parse(&files, "/classes", &mut diags).unwrap();
    (found, diags.list().iter().map(|d| d.to_string()).collect())
}

fn class(lines: &str) -> (Vec<ServiceClassConf>, Vec<String>) {
    let lines = lines.replace("; ", "\n");
    classes(&format!("Begin ServiceClass\n{lines}\nEnd ServiceClass\n"))
}

fn pools(lines: &str) -> (BatchResources, Vec<String>) {
    pools_of(&Shared::default(), lines)
}

fn pools_of(shared: &Shared, lines: &str) -> (BatchResources, Vec<String>) {
    let text = format!(
        "Begin GuaranteedResourcePool\n{}\nEnd GuaranteedResourcePool\n",
        lines.replace("; ", "\n")
    );
    let mut diags = Diags::new();
    let files = MapFiles::one("/pools", text);
    let of = (shared, 1.0);
    let found = lsb_resources::parse(&files, "/pools", of, &mut diags).unwrap();
    (found, diags.list().iter().map(|d| d.to_string()).collect())
}

#[test]
fn service_class_is_read_with_all_its_values() {
    let (found, told) = class(
        "NAME = night; PRIORITY = 20; DESCRIPTION = over night; USER_GROUP = ann chip; \
         GOALS = [DEADLINE timeWindow (16:30-8:30)] [VELOCITY 10 timeWindow (8:30-16:30)] \
         [THROUGHPUT 6 timeWindow ()]",
    );
    assert_eq!(told, Vec::<String>::new());
    let night = &found[0];
    assert_eq!((night.name.as_str(), night.priority, night.users.len()), ("night", 20, 2));
    let goals: Vec<(GoalKind, &str)> =
        night.goals.iter().map(|goal| (goal.kind, goal.window.as_str())).collect();
    let want = [
        (GoalKind::Deadline, "16:30-8:30"),
        (GoalKind::Velocity(10), "8:30-16:30"),
        (GoalKind::Throughput(6), ""),
    ];
    assert_eq!(goals, want);
    let action = "CONTROL_ACTION = violation_period[ 10 ] cmd [logger [late] $(date)]";
    let (found, told) = class(&format!("NAME = a; GOALS = [VELOCITY 1]; {action}"));
    assert_eq!(told, Vec::<String>::new());
    let action = found[0].control_action.as_ref().unwrap();
    assert_eq!((action.minutes, action.command.as_str()), (10, "logger [late] $(date)"));
    let access = "ACCESS_CONTROL = QUEUES[normal night] USERS[chip/] APPS[sim]";
    let (found, told) = class(&format!("NAME = g; GOALS = [GUARANTEE]; AUTO_ATTACH = Y; {access}"));
    assert_eq!(told, Vec::<String>::new());
    let gold = &found[0];
    assert!(gold.guarantee && gold.auto_attach && gold.priority == 1);
    let names = |list: &[super::super::types::UserTerm]| {
        list.iter().map(|word| word.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&gold.access.queues), ["normal", "night"]);
    assert_eq!(
        (names(&gold.access.users), names(&gold.access.apps)),
        (vec!["chip".into()], vec!["sim".into()])
    );
}

#[test]
fn mistakes_of_service_classes_are_told_with_their_places() {
    let action = |text: &str| format!("NAME = a; GOALS = [VELOCITY 1]; CONTROL_ACTION = {text}");
    let rows: [(&str, &str); 26] = [
        ("GOALS = [GUARANTEE]", "1:7: service class without NAME"),
        ("NAME = a", "1:7: service class without GOALS"),
        ("NAME = a b; GOALS = [GUARANTEE]", "2:8: bad value <a b> of NAME: at most 60 letters"),
        ("NAME = a; GOALS = [GARANTEE]", "3:10: unknown goal <GARANTEE>; did you mean <GUARANTEE>"),
        ("NAME = a; GOALS = [VELOCITY timeWindow ()]", "3:10: bad value <VELOCITY timeWindow ()>"),
        ("NAME = a; GOALS = [VELOCITY 0]", "3:10: bad value <VELOCITY 0> of GOALS"),
        ("NAME = a; GOALS = [DEADLINE timeWindow ()]", "3:10: bad value <DEADLINE timeWindow ()>"),
        ("NAME = a; GOALS = [DEADLINE]", "3:10: bad value <DEADLINE> of GOALS: DEADLINE needs"),
        ("NAME = a; GOALS = [VELOCITY 2 window (8-9)]", "3:10: bad value <VELOCITY 2 window"),
        ("NAME = a; GOALS = [VELOCITY 2 timeWindow (8-25)]", "3:33: bad value <8-25> of GOALS"),
        ("NAME = a; GOALS = [GUARANTEE] [VELOCITY 1]", "3:9: bad value <[GUARANTEE] [VELOCITY 1]>"),
        ("NAME = a; GOALS = [VELOCITY 1] [VELOCITY 2 timeWindow (8-9)]", "3:10: a goal without"),
        ("NAME = a; GOALS = [VELOCITY 1", "3:9: bad value <[VELOCITY 1> of GOALS"),
        ("NAME = a; GOALS = [GUARANTEE]; PRIORITY = 2", "4:12: PRIORITY does not go with"),
        ("NAME = a; GOALS = [VELOCITY 1]; PRIORITY = 0", "4:12: bad value <0> of PRIORITY"),
        ("NAME = a; GOALS = [GUARANTEE]; ACCESS_CONTROL = QUEUS[a]", "4:18: unknown word <QUEUS>"),
        ("NAME = a; GOALS = [GUARANTEE]; ACCESS_CONTROL = QUEUES", "4:18: bad value <QUEUES>"),
        ("NAME = a; GOALS = [GUARANTEE]; AUTO_ATACH = Y", "4:1: unknown keyword <AUTO_ATACH>"),
        ("NAME = a; GOALS = [GUARANTEE]; AUTO_ATTACH = ja", "4:15: bad value <ja> of AUTO_ATTACH"),
        ("NAME = a; GOALS = [GUARANTEE]; CONTROL_ACTION = VIOLATION_PERIOD[5] CMD[x]", "4:18: "),
        (&action("VIOLATION_PERIOD[5]"), "4:18: bad value <VIOLATION_PERIOD[5]> of CONTROL_ACTION"),
        (&action("VIOLATION_PERIOD[0] CMD[x]"), "4:35: bad value <0> of CONTROL_ACTION: minutes"),
        (&action("VIOLATION_PERIOD[x] CMD[x]"), "4:35: bad value <x> of CONTROL_ACTION: minutes"),
        (&action("VIOLATION_PERIOD[5] CMD[]"), "4:18: bad value <VIOLATION_PERIOD[5] CMD[]>"),
        (&action("VIOLATION_PERIOD[5] RUN[x]"), "4:18: bad value <VIOLATION_PERIOD[5] RUN[x]>"),
        (&action("VIOLATION_PERIOD[5] CMD[x"), "4:18: bad value <VIOLATION_PERIOD[5] CMD[x>"),
    ];
    for (lines, told) in rows {
        let all = class(lines).1;
        let want = format!("/classes:{told}");
        assert!(all.iter().any(|one| one.starts_with(&want)), "{lines}: {all:?}");
    }
    let twice = "Begin ServiceClass\nNAME = a\nGOALS = [GUARANTEE]\nEnd ServiceClass\n".repeat(2);
    assert_eq!(classes(&twice).1, ["/classes:6:8: service class <a> is already defined in line 1"]);
}

#[test]
fn guaranteed_pool_is_read_with_all_its_values() {
    let (found, told) = pools(
        "NAME = p; TYPE = slots; HOSTS = h1 ~h2; DISTRIBUTION = ([gold, 25%] [silver,3]); \
         LOAN_POLICIES = QUEUES[a !b] RETAIN[10%] DURATION[30] CLOSE_ON_DEMAND; \
         SLOTS_PER_HOST = 4; RES_SELECT = mem>100",
    );
    assert_eq!(told, Vec::<String>::new());
    let pool = &found.pools[0];
    assert_eq!((pool.kind.clone(), pool.slots_per_host), (PoolType::Slots, Some(4)));
    assert_eq!((pool.hosts.len(), pool.res_select.as_str()), (2, "select[mem>100]"));
    let amounts: Vec<PoolAmount> = pool.distribution.iter().map(|of| of.amount).collect();
    assert_eq!(amounts, [PoolAmount::Percent(25.0), PoolAmount::Fixed(3)]);
    let loans = pool.loans.as_ref().unwrap();
    assert_eq!(loans.queues.iter().map(|q| q.exclude).collect::<Vec<_>>(), [false, true]);
    assert_eq!(loans.retain, Some(PoolAmount::Percent(10.0)));
    assert_eq!((loans.duration, loans.close_on_demand), (Some(30), true));
}

#[test]
fn type_of_a_guaranteed_pool_is_a_package_or_a_number_of_lsf_shared() {
    let resource =
        |name: &str, kind| ResourceDef { name: name.into(), kind, ..ResourceDef::default() };
    let resources =
        vec![resource("lic", ResourceKind::Numeric), resource("big", ResourceKind::Boolean)];
    let shared = Shared { resources, ..Shared::default() };
    let kind = |text: &str| {
        let lines = format!("NAME = p; DISTRIBUTION = [a,1]; TYPE = {text}");
        let (found, told) = pools_of(&shared, &lines);
        (found.pools[0].kind.clone(), told)
    };
    let none = Vec::<String>::new;
    let package = |slots, mem| PoolType::Package(PackageConf { slots, mem });
    assert_eq!(kind("package[slots=2:mem=100]"), (package(2, 100), none()));
    assert_eq!(kind("package [ mem = 5 ]"), (package(0, 5), none()));
    assert_eq!(kind("resource[lic]"), (PoolType::Resource("lic".into()), none()));
    let (unknown, told) = kind("resource[big]");
    assert_eq!((unknown, told.len()), (PoolType::Unknown, 1));
}

#[test]
fn mistakes_of_guaranteed_pools_are_told_with_their_places() {
    let rows = [
        ("TYPE = slots; DISTRIBUTION = [a,1]", "1:7: NAME is missing"),
        ("NAME = p; DISTRIBUTION = [a,1]", "1:7: TYPE is missing"),
        ("NAME = p; TYPE = slots", "1:7: DISTRIBUTION is missing"),
        ("NAME = p; TYPE = slot", "3:8: bad value <slot> of TYPE: slots, hosts"),
        ("NAME = p; TYPE = slots; DISTRIBUTION = [a,120%]", "4:17: bad value <a,120%>"),
        ("NAME = p; TYPE = slots; DISTRIBUTION = [a]", "4:17: bad value <a> of DISTRIBUTION"),
        ("NAME = p; TYPE = slots; DISTRIBUTION = a,1", "4:16: bad value <a,1> of DISTRIBUTION"),
        ("NAME = p; TYPE = slots; DISTRIBUTION = [a,1", "4:16: bad value <[a,1> of DISTRIBUTION"),
        ("NAME = p; TYPE = slots; DISTRIBUTION = [a,1] [a,2]", "4:23: service class <a> is given"),
        ("NAME = p; TYPE = slots; LOAN_POLICIES = RETAIN[1]", "4:17: bad value <RETAIN[1]>"),
        ("NAME = p; TYPE = slots; LOAN_POLICIES = QUEUES[a] RETAIN[x]", "4:34: bad value <x>"),
        ("NAME = p; TYPE = slots; LOAN_POLICIES = QUEUES[a] DURATION[0]", "4:36: bad value <0>"),
        ("NAME = p; TYPE = slots; LOAN_POLICIES = QUEUES[a] KLOSE", "4:27: unknown word <KLOSE>"),
        ("NAME = p; TYPE = slots; SLOTS_PER_HOST = 0", "4:18: bad value <0> of SLOTS_PER_HOST"),
        ("NAME = p; TYPE = slots; RES_SELECT = mem >", "4:14: bad value <mem >> of RES_SELECT"),
        ("NAME = p; TYPE = package[slots=0]", "3:16: bad value <slots=0> of TYPE: slots=n, mem=n"),
        ("NAME = p; TYPE = package[mem=1:cpu=2]", "3:22: bad value <cpu=2> of TYPE"),
        ("NAME = p; TYPE = package[mem=1:mem=2]", "3:22: bad value <mem=2> of TYPE"),
        ("NAME = p; TYPE = package[]", "3:16: bad value <> of TYPE"),
        ("NAME = p; TYPE = package", "3:8: bad value <package> of TYPE"),
        ("NAME = p; TYPE = slots[2]", "3:8: bad value <slots[2]> of TYPE"),
        ("NAME = p; TYPE = resource[]", "3:8: bad value <resource[]> of TYPE"),
        ("NAME = p; TYPE = resource[lic]", "3:17: <lic> is not a numeric resource of lsf.shared"),
        ("NAME = p; KIND = slots", "3:1: unknown keyword <KIND>"),
    ];
    for (lines, told) in rows {
        let all = pools(lines).1;
        let want = format!("/pools:{told}");
        assert!(all.iter().any(|one| one.starts_with(&want)), "{lines}: {all:?}");
    }
}

#[test]
fn names_of_guarantees_that_other_files_do_not_have_are_mistakes() {
    let pool = |lines: &str| {
        let section = format!(
            "Begin GuaranteedResourcePool\nNAME = p\nTYPE = slots\n{lines}\n\
             End GuaranteedResourcePool\n# Begin"
        );
        said("lsb.resources", "# Begin", &section)
    };
    assert_eq!(
        pool("DISTRIBUTION = [gold,1]"),
        ["error lsb.resources DISTRIBUTION:17 <gold> is not a service class"]
    );
    assert_eq!(
        pool("DISTRIBUTION =\nLOAN_POLICIES = QUEUES[normla]").last().unwrap(),
        "error lsb.resources LOAN_POLICIES:24 <normla> is not a queue ~normal"
    );
    let mut files = site();
    let class = "Begin ServiceClass\nNAME = solver\nGOALS = [VELOCITY 1]\n\
        ACCESS_CONTROL = QUEUES[nrmal]\nEnd ServiceClass\n";
    files.put(&format!("{BATCH}/lsb.serviceclasses"), class);
    let pool = "Begin GuaranteedResourcePool\nNAME = p\nTYPE = slots\n\
        DISTRIBUTION = [solver,1]\nEnd GuaranteedResourcePool\n";
    files.put(&format!("{BATCH}/lsb.resources"), pool);
    let told: Vec<String> = check_batch(&files, ENVDIR)
        .iter()
        .filter(|d| d.severity == Severity::Error)
        .map(|d| d.text.clone())
        .collect();
    let want = [
        "<nrmal> is not a queue",
        "<solver> is also the name of a user group",
        "service class <solver> has not the goal GUARANTEE",
    ];
    for text in want {
        assert!(told.iter().any(|one| one.starts_with(text)), "{text}: {told:?}");
    }
}
