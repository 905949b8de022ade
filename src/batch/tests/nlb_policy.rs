//! NLB_POLICY: the hosts that a policy of the load balancer chooses for jobs, and their order.

use super::cluster::{Cluster, ClusterBuilder, cluster};
use crate::model::reason::PendReason;
use crate::proto::client::Col;

/// Three hosts of two slots, a queue with a policy, and one without.
fn site(policy: &str) -> ClusterBuilder {
    let site = cluster().hosts(3, 2).queue("normal", "PRIORITY = 30");
    site.queue("cad", &format!("NLB_POLICY = {policy}")).file("nqeinfo", "NLB_SERVER = h1:6883\n")
}

fn ranked(hosts: &[&str]) -> Cluster {
    let mut c = site("CPU").up();
    let hosts: Vec<(&str, &str)> = hosts.iter().map(|host| (*host, "")).collect();
    c.ranks(&hosts);
    c
}

#[test]
fn hosts_of_the_list_take_jobs_in_its_order_and_others_none() {
    let mut c = ranked(&["h3", "h1"]);
    let jobs: Vec<_> = (0..5).map(|_| c.submit("ann", "-q cad")).collect();
    let on: Vec<_> = jobs[..4].iter().map(|job| c.running_on(*job)).collect();
    assert_eq!(on, [["h3"], ["h3"], ["h1"], ["h1"]]);
    let reasons = c.reasons(jobs[4]);
    assert!(reasons.contains(&(PendReason::NlbExcluded, vec!["h2".into()])), "{reasons:?}");
    // one list for all: the policy looks at nothing of them
    let asked = c.queries();
    assert_eq!((asked.len(), &*asked[0].policy, asked[0].attributes.len()), (1, "CPU", 0));
    // another queue knows nothing of it
    let other = c.submit("ann", "-q normal");
    assert_eq!(c.running_on(other), ["h2"]);
}

#[test]
fn preference_stands_before_the_list_and_an_order_of_the_job_instead_of_it() {
    let mut c = ranked(&["h3", "h2"]);
    let job = c.submit("ann", "-q cad -m 'h1+5 h2+1 others'");
    assert_eq!(c.running_on(job), ["h2"], "h1 is not in the list");
    // h2 is as good as h3 to the job itself, and comes first in the order of the names
    let job = c.submit("ann", "-q cad -R order[-maxmem]");
    assert_eq!(c.running_on(job), ["h2"]);
    let job = c.submit("ann", "-q cad -m h1");
    let reasons = c.reasons(job);
    assert!(reasons.contains(&(PendReason::NlbExcluded, vec!["h1".into()])), "{reasons:?}");
}

#[test]
fn parallel_job_takes_the_best_hosts_of_the_list_first() {
    let mut c = ranked(&["h2", "h3", "h1"]);
    let job = c.submit("ann", "-q cad -n 3");
    assert_eq!(c.running_on(job), ["h2", "h2", "h3"]);
}

#[test]
fn list_is_read_again_by_age_and_when_other_policies_are_in_force() {
    let mut c = ranked(&["h1"]);
    let first: Vec<_> = (0..3).map(|_| c.submit("ann", "-q cad")).collect();
    assert_eq!((c.queries().len(), c.state(first[2])), (1, "PEND".into()));
    c.ranks(&[("h2", "")]);
    c.advance(9);
    assert_eq!((c.queries().len(), c.state(first[2])), (0, "PEND".into()));
    c.advance(2);
    assert_eq!((c.queries().len(), c.running_on(first[2])), (1, vec!["h2".into()]));
    // what was decided before stands
    assert_eq!(c.running_on(first[0]), ["h1"]);
    let more: Vec<_> = (0..2).map(|_| c.submit("ann", "-q cad")).collect();
    c.ranks(&[("h3", "")]);
    c.policies_change();
    assert_eq!(c.running_on(more[1]), ["h3"]);
    // nobody waits: nobody is asked
    c.queries();
    c.advance(60);
    assert_eq!(c.queries().len(), 0);
}

#[test]
fn jobs_without_an_answer_are_placed_after_30_seconds_or_wait_where_the_queue_holds() {
    for (policy, holds) in [("CPU", false), ("CPU hold", true)] {
        let mut c = site(policy).up();
        c.ranks(&[("h3", "")]);
        c.balancer_down(true);
        let job = c.submit("ann", "-q cad");
        let other = c.submit("ann", "-q normal");
        assert_eq!(c.running_on(other).len(), 1, "no other queue waits");
        assert_eq!(c.reasons(job)[0].0, PendReason::NlbUnanswered);
        c.advance(28);
        assert_eq!(c.state(job), "PEND");
        c.advance(4);
        assert_eq!(c.state(job), if holds { "PEND" } else { "RUN" }, "{policy}");
        c.advance(60);
        let told = c.complaints();
        let told: Vec<_> = told.iter().filter(|line| line.contains("answer")).collect();
        assert!((2..=3).contains(&told.len()), "{told:?}");
        c.balancer_down(false);
        c.advance(4);
        let next = c.submit("ann", "-q cad");
        assert_eq!(c.running_on(next), ["h3"]);
        assert_eq!(c.state(job), "RUN");
    }
}

#[test]
fn server_that_does_not_answer_leaves_the_list_in_force_for_30_seconds() {
    let mut c = ranked(&["h2"]);
    let first = c.submit("ann", "-q cad");
    assert_eq!(c.running_on(first), ["h2"]);
    let more: Vec<_> = (0..2).map(|_| c.submit("ann", "-q cad")).collect();
    assert_eq!((c.running_on(more[0]), c.state(more[1])), (vec!["h2".into()], "PEND".into()));
    c.balancer_silent(true);
    c.advance(30);
    assert_eq!(c.state(more[1]), "PEND");
    c.advance(30);
    assert_eq!(c.running_on(more[1]), ["h1"]);
}

#[test]
fn restart_and_reconfiguration_ask_anew() {
    let mut c = ranked(&["h2"]);
    let jobs: Vec<_> = (0..3).map(|_| c.submit("ann", "-q cad")).collect();
    assert_eq!(c.state(jobs[2]), "PEND");
    c.queries();
    c.ranks(&[("h3", "")]);
    c.restart();
    assert_eq!(c.running_on(jobs[2]), ["h3"]);
    let more: Vec<_> = (0..2).map(|_| c.submit("ann", "-q cad")).collect();
    assert_eq!(c.state(more[1]), "PEND");
    c.reconfigure(site("OTHER"));
    c.advance(1);
    assert_eq!(c.queries().last().map(|q| q.policy.clone()), Some("OTHER".into()));
}

#[test]
fn jobs_share_a_list_where_the_policy_looks_at_nothing_in_which_they_differ() {
    let mut c = ranked(&["h1"]);
    c.ranks_where("JOB_NASTRAN", &[("h2", "")]);
    c.policies_use(&["JOB_NASTRAN"]);
    // the first answer tells what the policy looks at
    let [a, b] = [1, 2].map(|n| c.submit("ann", &format!("-q cad -M {n}000 -J j{n}")));
    let [d, e] =
        [3, 4].map(|n| c.submit("ann", &format!("-q cad -M {n}000 -nlbattr JOB_NASTRAN=1")));
    let on = [a, b, d, e].map(|job| c.running_on(job));
    assert_eq!(on, [["h1"], ["h1"], ["h2"], ["h2"]]);
    let asked = c.queries();
    let about =
        |name: &str| asked.iter().filter(|q| q.attributes.iter().any(|a| a.0 == name)).count();
    assert_eq!((about("JOB_NASTRAN"), about("JOB_PRMEMSIZE"), about("JOB_REQNAME")), (1, 0, 0));
    // another set of policies looks at memory: from now on it is told
    c.policies_use(&["JOB_PRMEMSIZE"]);
    c.policies_change();
    let f = c.submit("ann", "-q cad -M 5000");
    assert_eq!(c.state(f), "PEND");
    let asked = c.queries();
    assert!(asked.iter().any(|q| q.attributes.iter().any(|a| a.0 == "JOB_PRMEMSIZE")), "{asked:?}");
}

#[test]
fn policy_of_a_job_stands_before_that_of_its_queue_and_may_be_unknown() {
    let mut c = ranked(&["h2"]);
    let job = c.submit("ann", "-q normal -nlb FAST");
    assert_eq!(c.running_on(job), ["h2"]);
    assert_eq!(c.queries().last().map(|q| q.policy.clone()), Some("FAST".into()));
    let job = c.submit("ann", "-q cad -nlb FAST -M 7");
    assert_eq!(c.running_on(job), ["h2"]);
    assert!(c.queries().iter().all(|q| q.policy == "FAST"));
}

#[test]
fn policy_or_attribute_that_the_server_does_not_know_is_refused() {
    let mut c = ranked(&["h2"]);
    c.policies_use(&["JOB_NASTRAN"]);
    // nobody has told of any yet: it is taken as it is
    let job = c.submit("ann", "-q normal -nlb NOSUCH -H");
    assert_eq!(c.state(job), "PSUSP");
    let job = c.submit("ann", "-q cad");
    assert_eq!(c.running_on(job), ["h2"]);
    c.policies_change();
    let refused = |c: &mut Cluster, options: &str| {
        c.try_submit("ann", options).map_err(|refusal| refusal.words().to_string()).unwrap_err()
    };
    assert_eq!(refused(&mut c, "-q normal -nlb NOSUCH"), "<NOSUCH>: No such NLB policy");
    let words = "<nastram>: no such attribute; did you mean <nastran>?";
    assert_eq!(refused(&mut c, "-q cad -nlbattr JOB_NASTRAM=1"), words);
    assert_eq!(refused(&mut c, "-q cad -nlbattr JOB_QQ=1"), "<qq>: no such attribute");
    let words = "<job_nastran>: no such attribute; did you mean <nastran>?";
    assert_eq!(refused(&mut c, "-q cad -nlbattr JOB_JOB_NASTRAN=1"), words);
    // a word that names no policy may be an attribute
    c.queries();
    let job = c.submit("ann", "-q cad -nlb nastran");
    assert_eq!(c.running_on(job), ["h2"]);
    let asked = c.queries();
    let told = |q: &crate::proto::nlb::NlbQuery| (q.policy.clone(), q.attributes.len());
    assert_eq!(asked.last().map(told), Some(("CPU".into(), 1)), "{asked:?}");
    // once the server is lost, nothing is known again
    c.balancer_down(true);
    c.submit("ann", "-q normal -nlb NOSUCH -H");
}

#[test]
fn start_says_by_which_choice_of_a_list_and_bqueues_which_list_is_in_force() {
    let mut c = ranked(&["h3", "h1"]);
    let shown = |c: &mut Cluster| {
        let params = c.queue("cad").params;
        params.into_iter().find(|p| p.0 == "NLB_POLICY").unwrap().1
    };
    assert_eq!(shown(&mut c), "CPU (not read yet)");
    let jobs = c.submit_together("ann", &["-q cad", "-q cad", "-q cad", "-q cad", "-q cad"]);
    let placed = |c: &mut Cluster, n: usize| c.column(jobs[n], Col::NlbPlacement);
    assert_eq!(placed(&mut c, 0), "CPU 2.000000 1 2");
    assert_eq!(placed(&mut c, 2), "CPU 1.000000 2 2");
    assert_eq!(placed(&mut c, 4), "");
    c.restart();
    assert_eq!(placed(&mut c, 2), "CPU 1.000000 2 2");
    let list = shown(&mut c);
    assert!(list.starts_with("CPU (read ") && list.ends_with(", 2 of 3 hosts)"), "{list}");
    let other = c.submit("ann", "-q normal");
    assert_eq!(c.column(other, Col::NlbPlacement), "");
}

#[test]
fn jobs_of_very_many_sets_of_attributes_all_get_their_list() {
    let mut c = cluster()
        .hosts(1, 1000)
        .queue("cad", "NLB_POLICY = CPU")
        .file("nqeinfo", "NLB_SERVER = h1:6883\n")
        .up();
    c.ranks(&[("h1", "")]);
    c.policies_use(&["JOB_PRMEMSIZE"]);
    // all at once: one after the other each would get its list
    let first = c.submit("ann", "-q cad -H");
    let after = |n: u32| format!("-q cad -M {n} -w done({})", first.job);
    let jobs: Vec<_> = (1..=700).map(|n| c.submit("ann", &after(n))).collect();
    c.resume("ann", first);
    c.end(first, 0);
    c.advance(8);
    let pending = jobs.iter().filter(|job| c.state(**job) == "PEND").count();
    assert_eq!(pending, 0);
}

#[test]
fn policy_that_is_no_name_and_very_many_attributes_are_refused() {
    let mut c = ranked(&["h2"]);
    let refused = |c: &mut Cluster, options: &str| {
        c.try_submit("ann", options).map_err(|refusal| refusal.words().to_string()).unwrap_err()
    };
    // what nobody has checked goes to the log by its name
    assert_eq!(refused(&mut c, "-q normal -nlb 'a\nb'"), "<a b>: No such NLB policy");
    let many = |n: usize| format!("-q cad -H -nlbattr '{}'", "JOB_A=1 ".repeat(n));
    let words = "more than 256 attributes for the load balancer";
    assert_eq!(refused(&mut c, &many(257)), words);
    assert!(c.try_submit("ann", &many(256)).is_ok());
}

/// Many jobs of a kind that are given out together look at each host of their list about once.
#[test]
fn jobs_of_one_list_look_no_further_than_their_hosts() {
    const HOSTS: usize = 50;
    let site = cluster().hosts(HOSTS, 2).queue("cad", "NLB_POLICY = CPU");
    let mut c = site.file("nqeinfo", "NLB_SERVER = h1:6883\n").up();
    let names: Vec<String> = (1..=HOSTS).rev().map(|n| format!("h{n}")).collect();
    c.ranks(&names.iter().map(|name| (&**name, "")).collect::<Vec<_>>());
    let first = c.submit("ann", "-q cad");
    assert_eq!((c.running_on(first), c.started()), (vec!["h50".into()], vec![first]));
    let parts = "-q cad -n 2 -R '1*{select[type==any]}+1*{rusage[mem=1]}'";
    for options in ["-q cad", "-q cad -n 2", parts] {
        c.badmin("qinact cad");
        let jobs = c.submit_together("ann", &[options; 15]);
        c.host_looks();
        c.badmin("qact cad");
        assert_eq!(c.started(), jobs, "{options}");
        let looks = c.host_looks();
        assert!(looks <= 3 * jobs.len() + 2 * HOSTS, "{options}: {looks} looks");
    }
}
