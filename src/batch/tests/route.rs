//! Pipe queues: who accepts, when requests are tried, and what becomes of them.

use super::cluster::{Cluster, ClusterBuilder, cluster, element};

use crate::model::JobRef;
use crate::model::event::Event;
use crate::model::reason::PendReason;
use crate::model::specfield::SpecField;
use crate::proto::client::Col;

/// Two hosts, batch queues, and a destination-selection queue.
fn selecting(batch: &str) -> ClusterBuilder {
    let site = cluster().hosts(2, 2).queue("normal", "PRIORITY = 30").queue("batch", batch);
    site.queue("nlb", "NQS_QUEUES = CRI_DS CPU").file("nqeinfo", "NLB_SERVER = h1:6883\n")
}

/// Why a request has found no destination.
fn why(c: &mut Cluster, at: JobRef) -> String {
    let told = c.reason_about(at, PendReason::PipeQueue).unwrap_or_default();
    told.split("; next try").next().unwrap_or_default().to_owned()
}

fn queue_of(c: &mut Cluster, at: JobRef) -> String {
    c.column(at, Col::Queue).as_str().unwrap().to_owned()
}

#[test]
fn request_goes_to_the_first_destination_that_accepts_it() {
    let mut c = selecting("PRIORITY = 20").up();
    c.ranks(&[("h2", "batch"), ("h1", "normal")]);
    let job = c.submit("ann", "-q nlb -J prod");
    assert_eq!((queue_of(&mut c, job), c.running_on(job)), ("batch".into(), vec!["h2".into()]));
    let switches = c.records(|e| matches!(e, Event::JobSwitch { .. }));
    let [Event::JobSwitch { route: Some(route), .. }] = switches.as_slice() else { panic!() };
    assert_eq!(route.text(), "h2 CPU 2.000000 1 2 nlb generation=1");
    // the binding outlives mbatchd
    c.restart();
    assert_eq!(c.running_on(job), ["h2"]);
    let asked = c.queries();
    assert_eq!(asked[0].policy, "CPU");
    assert!(asked[0].attributes.iter().any(|a| a.0 == "JOB_REQNAME"), "{asked:?}");
    // both slots of h2 are taken: the third one waits there, and goes nowhere else
    let more: Vec<_> = (0..2).map(|_| c.submit("ann", "-q nlb")).collect();
    assert_eq!(c.running_on(more[0]), ["h2"]);
    assert!(c.waits_for(more[1], PendReason::NotAskedHost));
}

/// In a destination-selection queue only the attributes of -nlb count (bsub(1)).
#[test]
fn policy_of_a_request_itself_does_not_keep_it_from_the_host_that_it_was_routed_to() {
    let mut c = selecting("PRIORITY = 20").up();
    c.ranks(&[("h2", "batch")]);
    let first = c.submit("ann", "-q nlb");
    assert_eq!(c.running_on(first), ["h2"]);
    let job = c.submit("ann", "-q nlb -nlb FAST");
    assert_eq!((queue_of(&mut c, job), c.running_on(job)), ("batch".into(), vec!["h2".into()]));
    assert!(c.queries().iter().all(|query| query.policy == "CPU"));
}

#[test]
fn destination_that_does_not_accept_says_why() {
    let rows: [(&str, &str, &str, &str); 9] = [
        ("nosuch", "batch", "", "batch@nosuch (no host of this cluster)"),
        ("h1", "", "", "h1 (has no NLB_QUEUE_NAME)"),
        ("h1", "nosuch", "", "nosuch@h1 (no such queue)"),
        ("h1", "nlb", "", "nlb@h1 (is a pipe queue)"),
        ("h1", "closed", "", "closed@h1 (queue closed)"),
        ("h1", "bobs", "", "bobs@h1 (User cannot use the queue: bobs)"),
        ("h1", "h2only", "", "h2only@h1 (no host of the queue)"),
        ("h1", "batch", "-m h2", "batch@h1 (not among the hosts that the request names)"),
        ("h1", "batch", "-n 3", "batch@h1 (needs 3 slots, h1 has 2)"),
    ];
    for (host, queue, options, want) in rows {
        let site = selecting("PRIORITY = 20").queue("closed", "").queue("bobs", "USERS = bob");
        let mut c = site.queue("h2only", "HOSTS = h2").up();
        c.badmin("qclose closed");
        c.ranks(&[(host, queue)]);
        let job = c.submit("ann", &format!("-q nlb {options}"));
        let told = why(&mut c, job).replace("User cannot use the queue:", "USER");
        let want = want.replace("User cannot use the queue:", "USER");
        let want = want.replace("(USER bobs)", "(User cannot use the queue)");
        assert_eq!(told, format!("no destination accepted: {want}"), "{queue}@{host} {options}");
    }
}

#[test]
fn closed_or_lost_host_accepts_nothing_until_it_is_back() {
    let mut c = selecting("PRIORITY = 20").up();
    c.ranks(&[("h1", "batch")]);
    c.badmin("hclose h1");
    let job = c.submit("ann", "-q nlb");
    assert_eq!(why(&mut c, job), "no destination accepted: batch@h1 (host closed)");
    c.badmin("hopen h1");
    c.advance(2);
    assert_eq!(c.running_on(job), ["h1"]);
}

#[test]
fn request_waits_five_minutes_and_is_given_up_after_72_hours_with_one_mail() {
    let mut c = selecting("PRIORITY = 20").up();
    let job = c.submit("ann", "-q nlb -J prod");
    assert_eq!(why(&mut c, job), "no host meets the policy <CPU>");
    assert_eq!(c.queries().len(), 1);
    c.advance(299);
    assert_eq!(c.queries().len(), 0, "tried too early");
    c.advance(2);
    assert_eq!(c.queries().len(), 1);
    // half of the time, another mbatchd, and the rest: the clock goes on
    c.advance(36 * 3600);
    assert!(c.queries().len() > 400);
    c.restart();
    c.advance(36 * 3600 - 700);
    assert_eq!(c.state(job), "PEND");
    c.advance(700);
    assert_eq!(c.state(job), "EXIT");
    let mails = c.mails();
    assert_eq!(mails.len(), 1, "{mails:?}");
    let mail = &mails[0];
    assert!(mail.starts_with("To: ann\nSubject: NQS request: 1.h1 deleted\n\n"), "{mail}");
    assert!(mail.contains("Request name:   prod\nRequest owner:  ann\n"), "{mail}");
    let last = "No destination of queue <nlb> accepted the request within 72 hours. The last \
                answer: no host meets the policy <CPU>\n\nRequest deleted.\n";
    assert!(mail.ends_with(last), "{mail}");
    c.restart();
    c.advance(3600);
    assert!(c.mails().is_empty(), "a second mail");
}

#[test]
fn request_is_given_up_no_later_after_the_clock_was_set_back() {
    let mut c = selecting("PRIORITY = 20").up();
    let job = c.submit("ann", "-q nlb");
    c.clock_back(1000 * 3600);
    c.advance(72 * 3600 - 700);
    assert_eq!(c.state(job), "PEND");
    c.advance(1400);
    assert_eq!(c.state(job), "EXIT");
}

#[test]
fn request_of_a_queue_without_destinations_is_deleted_with_mail() {
    let site = cluster().hosts(1, 1).queue("normal", "");
    let nqs = "create pipe_queue bad server=(pipeclient)\nset default batch_request queue bad\n";
    let mut c = site.file("lsb.nqs", nqs).up();
    let job = c.submit("ann", "");
    assert_eq!(c.state(job), "EXIT");
    let mails = c.mails();
    let words = "The request was submitted to queue <bad>, which has no destinations.\n";
    assert!(mails.len() == 1 && mails[0].contains(words), "{mails:?}");
}

#[test]
fn load_only_queue_accepts_what_can_start_and_routes_as_soon_as_a_slot_is_free() {
    let site = cluster().hosts(2, 1).queue("normal", "");
    let nqs = "create batch_queue lo loadonly pipeonly\n\
               create pipe_queue p server=(pipeclient) destination=(lo@h1,lo@h2)\n";
    let mut c = site.file("lsb.nqs", nqs).up();
    let jobs: Vec<JobRef> = (0..3).map(|_| c.submit("ann", "-q p")).collect();
    assert_eq!(c.running_on(jobs[0]), ["h1"]);
    assert_eq!(c.running_on(jobs[1]), ["h2"]);
    let full = "no destination accepted: lo@h1 (no free slot now), lo@h2 (no free slot now)";
    assert_eq!(why(&mut c, jobs[2]), full);
    c.end(jobs[1], 0);
    c.advance(1);
    assert_eq!(c.running_on(jobs[2]), ["h2"]);
    let refused = c.try_submit("ann", "-q lo").unwrap_err();
    assert_eq!(refused.words(), "queue <lo> takes requests from pipe queues only");
}

#[test]
fn dead_server_is_told_and_asked_again_as_soon_as_it_is_back() {
    let mut c = selecting("PRIORITY = 20").up();
    c.ranks(&[("h1", "batch")]);
    c.balancer_down(true);
    let job = c.submit("ann", "-q nlb");
    let words = "no NLB server answers at h1:6883 (Connection refused)";
    assert_eq!(why(&mut c, job), words);
    c.advance(20);
    assert_eq!(c.state(job), "PEND");
    c.balancer_down(false);
    c.advance(4);
    assert_eq!(c.running_on(job), ["h1"]);
    // one that hangs is as good as dead after 5 seconds; the pass is not held up by it
    c.balancer_silent(true);
    let job = c.submit("ann", "-q nlb");
    assert_eq!(why(&mut c, job), "");
    let other = c.submit("ann", "-q normal -m h2");
    assert_eq!(c.running_on(other), ["h2"]);
    c.advance(6);
    assert_eq!(why(&mut c, job), "no NLB server answers at h1:6883 (no answer in 5 s)");
}

#[test]
fn other_policies_are_a_reason_to_try_again() {
    let mut c = selecting("PRIORITY = 20").up();
    let job = c.submit("ann", "-q nlb");
    assert_eq!(why(&mut c, job), "no host meets the policy <CPU>");
    c.ranks(&[("h2", "batch")]);
    c.policies_change();
    c.advance(2);
    assert_eq!(c.running_on(job), ["h2"]);
}

#[test]
fn held_later_and_dependent_requests_are_not_routed() {
    let mut c = selecting("PRIORITY = 20").up();
    c.ranks(&[("h2", "batch")]);
    let held = c.submit("ann", "-q nlb -H");
    let first = c.submit("ann", "-q normal -m h1");
    let after = c.submit("ann", &format!("-q nlb -w done({})", first.job));
    assert_eq!(c.queries().len(), 0);
    c.resume("ann", held);
    assert_eq!(c.running_on(held), ["h2"]);
    c.end(first, 0);
    assert_eq!(c.running_on(after), ["h2"]);
    // a stopped queue routes nothing
    c.badmin("qinact nlb");
    let job = c.submit("ann", "-q nlb");
    assert_eq!(c.reason(job), PendReason::QueueInactive);
    c.end(held, 0);
    c.badmin("qact nlb");
    c.advance(2);
    assert_eq!(c.running_on(job), ["h2"]);
}

#[test]
fn switch_or_new_hosts_end_the_binding() {
    let mut c = selecting("PRIORITY = 20").up();
    c.ranks(&[("h2", "batch")]);
    let fill: Vec<_> = (0..2).map(|_| c.submit("ann", "-q normal -m h2")).collect();
    let bound: Vec<_> = (0..2).map(|_| c.submit("ann", "-q nlb")).collect();
    assert_eq!(c.bound_to(bound[0]), "");
    assert!(c.waits_for(bound[0], PendReason::NotAskedHost));
    c.switch("ann", bound[0], "normal");
    assert_eq!(c.running_on(bound[0]), ["h1"]);
    assert_eq!(c.modify("ann", bound[1], &[SpecField::Hosts], "-m h1"), 0);
    assert_eq!(c.running_on(bound[1]), ["h1"]);
    assert_eq!(c.running_on(fill[0]), ["h2"]);
}

#[test]
fn elements_of_an_array_are_routed_one_by_one() {
    let site = cluster().hosts(2, 1).queue("normal", "");
    let nqs = "create batch_queue lo loadonly\n\
               create pipe_queue p server=(pipeclient) destination=(lo@h1,lo@h2)\n";
    let mut c = site.file("lsb.nqs", nqs).up();
    let array = c.submit("ann", "-q p -J 'a[1-3]'");
    assert_eq!(c.running_on(element(array, 1)), ["h1"]);
    assert_eq!(c.running_on(element(array, 2)), ["h2"]);
    assert_eq!(c.state(element(array, 3)), "PEND");
    c.end(element(array, 1), 0);
    c.advance(2);
    assert_eq!(c.running_on(element(array, 3)), ["h1"]);
}

#[test]
fn requests_that_the_policy_cannot_tell_apart_are_asked_about_together() {
    let mut c = selecting("PRIORITY = 20").up();
    c.policies_use(&["JOB_NASTRAN"]);
    c.submit("ann", "-q nlb -J a");
    c.queries();
    c.badmin("qinact nlb");
    for n in 0..20 {
        c.submit("ann", &format!("-q nlb -J b{n}"));
    }
    c.ranks(&[("h1", "batch"), ("h2", "batch")]);
    c.badmin("qact nlb");
    c.advance(2);
    assert_eq!(c.queries().len(), 1);
    let routed = c.logged(|e| matches!(e, Event::JobSwitch { route: Some(_), .. }));
    assert_eq!(routed, 21);
}

#[test]
fn queue_that_becomes_a_batch_queue_starts_its_requests() {
    let mut c = selecting("PRIORITY = 20").up();
    let job = c.submit("ann", "-q nlb");
    assert_eq!(c.reason(job), PendReason::PipeQueue);
    let site = cluster().hosts(2, 2).queue("normal", "").queue("batch", "").queue("nlb", "");
    c.reconfigure(site);
    assert_eq!(c.running_on(job), ["h1"]);
    c.badmin("hopen h1");
}
