//! Rules of a configuration: whom they concern, and by what they divide their amount.

use super::*;
use crate::batch::site::Site;
use crate::batch::site::user_limits::LimitsAboutUser;
use crate::batch::state::names::{Id, Names};
use crate::batch::tests::cluster::cluster;
use crate::model::reason::PendReason;

/// The site of files with every limit, and the names that it knows.
fn limited() -> (Site, Names) {
    let queue = "PRIORITY = 30; QJOB_LIMIT = 9; UJOB_LIMIT = 8; HJOB_LIMIT = 7; PJOB_LIMIT = 1.5";
    let hosts = "Begin Host\nHOST_NAME MXJ JL/U\nh1 4 3\nh2 ! -\ndefault () 2\nEnd Host\n";
    let users = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\nchip (bob eve)\nEnd UserGroup\n\
        Begin User\nUSER_NAME MAX_JOBS JL/P\nann 6 0.5\nchip@ 5 -\ndefault 4 -\nEnd User\n";
    let files = cluster().hosts(4, 4).queue("normal", queue).queue("free", "PRIORITY = 20");
    let mut names = Names::default();
    let site = Site::new(files.lsb_hosts(hosts).lsb_users(users).read(), &mut names);
    (site, names)
}

fn rules_of(site: &Site, names: &mut Names, queue: &str, user: &str) -> ConsumerRules {
    let consumer = Consumer::new(names.find_queue(queue).unwrap(), names.user_id(user));
    site.consumer_rules(consumer, user, &mut LimitsAboutUser::default())
}

/// A rule in a few words.
fn told(rule: &Rule) -> (&'static str, Amount, PendReason) {
    (rule.name, rule.amount, rule.reason)
}

#[test]
fn limits_of_a_queue_become_rules_at_its_section() {
    let (site, mut names) = limited();
    let queue = names.find_queue("normal").unwrap();
    let whole = site.queue(queue).unwrap().limits.iter().map(|c| c.rule);
    let ann = rules_of(&site, &mut names, "normal", "ann");
    let all: Vec<&Rule> = whole
        .chain(ann.user.iter().map(|c| c.rule))
        .chain(ann.host.iter().copied())
        .map(|id| site.rules.get(id))
        .collect();
    let fixed = Amount::Fixed;
    let want = [
        ("QJOB_LIMIT", fixed(9), PendReason::QueueJobLimit),
        ("UJOB_LIMIT", fixed(8), PendReason::QueueUserJobLimit),
        ("MAX_JOBS", fixed(6), PendReason::UserJobLimit),
        ("HJOB_LIMIT", fixed(7), PendReason::QueueHostLimit),
        ("PJOB_LIMIT", Amount::PerProcessor(1.5), PendReason::QueueCpuLimit),
        ("JL/P", Amount::PerProcessor(0.5), PendReason::UserCpuLimit),
    ];
    assert_eq!(all.iter().map(|rule| told(rule)).collect::<Vec<_>>(), want);
    let at = |rule: &Rule| (rule.pos.file.rsplit('/').next().unwrap().to_owned(), rule.pos.line);
    let places: Vec<_> = all.iter().map(|rule| at(rule)).collect();
    let of_queue = site.find_queue("normal").unwrap().conf.pos.line;
    assert_eq!(places[0], ("lsb.queues".into(), of_queue));
    assert_eq!([&places[2], &places[5]], [&("lsb.users".into(), 7); 2]);
    // a queue without limits has none
    assert!(site.rules.of_queue(names.find_queue("free").unwrap()).is_empty());
    let free = rules_of(&site, &mut names, "free", "ann");
    assert_eq!((free.user.len(), free.host.len()), (1, 1));
}

#[test]
fn row_of_lsb_hosts_is_one_rule_about_each_host_that_it_applies_to() {
    let (site, names) = limited();
    let host = |name: &str| names.find_host(name).unwrap();
    let on = |name: &str| -> Vec<_> {
        site.rules.on_host(host(name)).iter().map(|own| told(site.rules.get(own.rule))).collect()
    };
    let (slots, each_user) = (("MXJ", PendReason::HostFull), ("JL/U", PendReason::HostUserLimit));
    let of = |(name, reason), amount| (name, amount, reason);
    assert_eq!(on("h1"), [of(slots, Amount::Fixed(4)), of(each_user, Amount::Fixed(3))]);
    assert_eq!(on("h2"), [of(slots, Amount::PerProcessor(1.0))]);
    assert_eq!(on("h3"), [of(each_user, Amount::Fixed(2))]);
    // h3 and h4 have the row of default in common
    let first = |name: &str| site.rules.on_host(host(name))[0].rule;
    assert_eq!(first("h3"), first("h4"));
    assert_ne!(first("h1"), first("h2"));
    let slots = |name: &str| site.rules.slots_of_host(host(name)).map(|slots| slots.0);
    assert_eq!((slots("h1"), slots("h3")), (Some(Amount::Fixed(4)), None));
    assert_eq!(site.rules.slots_of_each_user(host("h2")), None);
    assert_eq!(Amount::PerProcessor(0.5).on(|| 3), 2);
}

#[test]
fn user_is_limited_by_the_own_row_else_that_of_a_group_else_default() {
    let (site, mut names) = limited();
    for (user, amount) in [("ann", 6), ("bob", 5), ("eve", 5), ("mia", 4)] {
        let rules = rules_of(&site, &mut names, "free", user);
        let [counter] = rules.user[..] else { panic!("{user}: {rules:?}") };
        assert_eq!(site.rules.get(counter.rule).amount, Amount::Fixed(amount), "{user}");
        assert_eq!(counter.member.user, names.find_user(user).unwrap());
    }
}

#[test]
fn words_of_preempt_for_make_limits_ignore_preempted_jobs() {
    let hosts = "Begin Host\nHOST_NAME MXJ JL/U\nh1 4 3\nEnd Host\n";
    let users = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\nchip (bob eve)\nEnd UserGroup\n\
        Begin User\nUSER_NAME MAX_JOBS JL/P\nann 6 0.5\nchip 5 1\nEnd User\n";
    let ignoring = |preemption: &str, words: &str| -> Vec<(&'static str, bool)> {
        let queue = format!("PRIORITY = 30; UJOB_LIMIT = 8{preemption}");
        let files = cluster().hosts(1, 4).queue("low", "PRIORITY = 20").queue("normal", &queue);
        let files =
            files.lsb_hosts(hosts).lsb_users(users).param(&format!("PREEMPT_FOR = {words}"));
        let site = Site::new(files.read(), &mut Names::default());
        let ignoring = site.rules.iter().filter(|(_, rule)| rule.ignores_preempted);
        let of_group = |rule: &Rule| matches!(rule.scope.users.set(), Some(Users::Named(_)));
        ignoring.map(|(_, rule)| (rule.name, of_group(rule))).collect()
    };
    let preempts = "; PREEMPTION = PREEMPTIVE[low]";
    let all = "GROUP_MAX GROUP_JLP USER_JLP HOST_JLU";
    let (own, of_group) = (("MAX_JOBS", false), ("MAX_JOBS", true));
    assert_eq!(ignoring("", all), []);
    assert_eq!(ignoring(preempts, "0"), [own]);
    assert_eq!(ignoring(preempts, "GROUP_MAX"), [own, of_group]);
    assert_eq!(ignoring(preempts, "GROUP_JLP"), [own, ("JL/P", true)]);
    assert_eq!(ignoring(preempts, "USER_JLP"), [own, ("JL/P", false)]);
    assert_eq!(ignoring(preempts, "HOST_JLU"), [("JL/U", false), own]);
    assert_eq!(ignoring(preempts, all).len(), 5);
}

fn id<I: Id>(n: usize) -> I {
    I::from_index(n)
}

/// A rule of this scope.
fn scoped(scope: Scope) -> Rule {
    let (name, what, amount) = ("Limit", LimitedQuantity::Jobs, Amount::Fixed(1));
    Rule {
        name,
        scope,
        what,
        amount,
        reason: PendReason::New,
        with_given_up: false,
        ignores_preempted: false,
        pos: Pos::default(),
        limit: None,
        ineligible: false,
    }
}

#[test]
fn rule_concerns_consumers_that_are_among_the_members_of_every_dimension() {
    let jobs = Consumer {
        queue: id(1),
        user: id(2),
        project: Some(id(3)),
        application: Some(id(4)),
        license_project: Some(id(5)),
        user_group: None,
    };
    fn one<I: Id + Ord>(n: usize) -> Members<Set<I>> {
        Members::Shared(Set::These([id(n)].into()))
    }
    let word = |name: &str| {
        let term = UserTerm { name: name.to_owned(), ..UserTerm::default() };
        Members::Shared(Users::Named(vec![term]))
    };
    let with = |change: &dyn Fn(&mut Scope, bool)| {
        [true, false].map(|own| {
            let mut scope = Scope::default();
            change(&mut scope, own);
            let means = |words: &[UserTerm]| words[0].name == "ann";
            scoped(scope).concerns(&jobs, Some(7), means)
        })
    };
    let of = |own: bool, n: usize| if own { n } else { 9 };
    type NarrowScope<'a> = &'a dyn Fn(&mut Scope, bool);
    let dimensions: [NarrowScope; 6] = [
        &|scope, own| scope.queues = one(of(own, 1)),
        &|scope, own| scope.users = Members::Each(Users::Row(of(own, 7))),
        &|scope, own| scope.users = word(if own { "ann" } else { "bob" }),
        &|scope, own| scope.projects = one(of(own, 3)),
        &|scope, own| scope.applications = one(of(own, 4)),
        &|scope, own| scope.license_projects = one(of(own, 5)),
    ];
    for (n, change) in dimensions.iter().enumerate() {
        assert_eq!(with(change), [true, false], "dimension {n}");
    }
    // a job of no project is among no projects, not even any
    let any = scoped(Scope { projects: Members::Each(Set::Any), ..Scope::default() });
    assert!(any.concerns(&jobs, None, |_| false));
    assert!(!any.concerns(&Consumer { project: None, ..jobs }, None, |_| false));
    let mut hosts = HostSet::default();
    for n in [1, 3] {
        hosts.insert(id(n));
    }
    let hosts = Members::Shared(Hosts::These(hosts));
    let some = scoped(Scope { hosts, ..Scope::default() });
    assert_eq!([1, 2, 3].map(|n| some.counts_on(id(n))), [true, false, true]);
}

#[test]
fn rule_divides_by_each_member_and_not_by_shared_ones() {
    let member = |scope: Scope, queue: usize, user: usize, project: usize, host: usize| {
        let (queue, user, project) = (id(queue), id(user), Some(id(project)));
        let consumer = Consumer { queue, user, project, ..Consumer::default() };
        scoped(scope).member(&consumer, id(host))
    };
    let each = || Scope {
        users: Members::Each(Users::Any),
        hosts: Members::Each(Hosts::Any),
        projects: Members::Each(Set::Any),
        queues: Members::Shared(Set::Any),
        ..Scope::default()
    };
    let one = member(each(), 1, 1, 1, 1);
    assert_eq!(one, member(each(), 2, 1, 1, 1), "queues share");
    for (user, project, host) in [(2, 1, 1), (1, 2, 1), (1, 1, 2)] {
        assert_ne!(one, member(each(), 1, user, project, host), "{user} {project} {host}");
    }
    assert_eq!(member(Scope::default(), 1, 1, 1, 1), member(Scope::default(), 2, 2, 2, 2));
}
