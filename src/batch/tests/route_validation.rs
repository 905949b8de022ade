//! File validation of requests in pipe queues: who is asked, what the answers do, and that nobody
//! else waits for them.

use super::cluster::{Cluster, ClusterBuilder, cluster};
use crate::model::JobRef;
use crate::model::reason::PendReason;
use crate::proto::client::Col;
use crate::proto::validation::Verdict;

/// Two hosts with two slots each; `set validation file`, and a pipe queue to h1 and then h2.
fn validating() -> ClusterBuilder {
    with("create batch_queue b\ncreate pipe_queue p server=(pipeclient) destination=(b@h1,b@h2)\n")
}

fn with(queues: &str) -> ClusterBuilder {
    let site = cluster().hosts(2, 2).queue("normal", "PRIORITY = 30");
    site.file("lsb.nqs", &format!("{queues}set validation file\n"))
}

fn why(c: &mut Cluster, at: JobRef) -> String {
    let told = c.reason_about(at, PendReason::PipeQueue).unwrap_or_default();
    told.split("; next try").next().unwrap_or_default().to_owned()
}

fn queue_of(c: &mut Cluster, at: JobRef) -> String {
    c.column(at, Col::Queue).as_str().unwrap().to_owned()
}

fn no_line() -> Option<Verdict> {
    Some(Verdict::NoLine(String::new()))
}

#[test]
fn destination_whose_files_accept_the_user_takes_the_request() {
    let mut c = validating().up();
    c.files_say("h1", no_line());
    c.files_say("h2", Some(Verdict::Accepted));
    let job = c.submit("ann", "-q p");
    assert_eq!(c.running_on(job), ["h2"]);
    let (asked, again) = (c.validated("h1"), c.validated("h2"));
    assert_eq!((asked.len(), again.len()), (1, 1));
    assert_eq!((asked[0].user.as_str(), &asked[0].hosts), ("ann", &vec!["h1".to_owned()]));
    assert_ne!(asked[0].uid, 0);
    // both answers hold for a minute
    let more = c.submit("ann", "-q p");
    assert_eq!(c.running_on(more), ["h2"]);
    assert!(c.validated("h1").is_empty() && c.validated("h2").is_empty());
    // not for another user
    c.submit("bob", "-q p");
    assert_eq!(c.validated("h1")[0].user, "bob");
    c.advance(61);
    c.files_say("h1", Some(Verdict::Accepted));
    let late = c.submit("ann", "-q p");
    assert_eq!(c.running_on(late), ["h1"]);
    assert_eq!(c.validated("h1").len(), 1);
}

#[test]
fn refusal_names_user_submission_host_and_destination() {
    let mut c = validating().up();
    c.files_say("h1", no_line());
    let unused = ".nqshosts is not used: longer\n than 65536 bytes";
    c.files_say("h2", Some(Verdict::NoLine(unused.to_owned())));
    let job = c.submit("ann", "-q p");
    let no = |host: &str| {
        format!("b@{host} (user ann has no line for h1 in .nqshosts or .rhosts on {host}")
    };
    let unused = unused.replace('\n', "?");
    let told = format!("no destination accepted: {}), {}; {unused})", no("h1"), no("h2"));
    assert_eq!(why(&mut c, job), told);
    c.files_say("h1", Some(Verdict::NotRead("user ann is not known here".to_owned())));
    c.advance(300);
    let told = "b@h1 (.nqshosts is not read on h1: user ann is not known here)";
    assert!(why(&mut c, job).contains(told), "{}", why(&mut c, job));
    // a closed host is not asked, nor one where the request does not fit
    c.badmin("hclose h1");
    c.validated("h1");
    c.submit("eve", "-q p");
    assert!(c.validated("h1").is_empty());
    c.badmin("hopen h1");
    c.submit("joe", "-q p -n 3");
    assert!(c.validated("h1").is_empty());
}

#[test]
fn host_that_does_not_answer_holds_up_its_own_requests_for_fifteen_seconds() {
    let mut c = validating().up();
    c.files_say("h2", Some(Verdict::Accepted));
    let job = c.submit("ann", "-q p");
    let killed = c.submit("ann", "-q p");
    c.kill("ann", killed);
    assert_eq!((queue_of(&mut c, job), why(&mut c, job)), ("p".into(), String::new()));
    // others are dispatched and routed meanwhile
    let other = c.submit("ann", "-q normal");
    assert_eq!(c.state(other), "RUN");
    c.advance(14);
    assert_eq!(queue_of(&mut c, job), "p");
    c.advance(2);
    assert_eq!(c.running_on(job), ["h2"]);
    assert_eq!(c.validated("h1").len(), 1, "one question for both");
    // its silence is remembered for a while
    let next = c.submit("ann", "-q p");
    assert_eq!(c.running_on(next), ["h2"]);
    assert_eq!(c.state(killed), "EXIT");
}

#[test]
fn host_that_is_lost_while_it_is_asked_is_not_waited_for() {
    let mut c = validating().up();
    c.files_say("h2", Some(Verdict::Accepted));
    let job = c.submit("ann", "-q p");
    assert_eq!(queue_of(&mut c, job), "p");
    c.lose("h1");
    c.advance(1);
    assert_eq!(c.running_on(job), ["h2"]);
}

#[test]
fn older_sbatchd_is_not_asked_and_accepts_nothing() {
    let mut c = validating().up();
    for host in ["h1", "h2"] {
        c.becomes_older(host);
    }
    c.advance(10);
    let job = c.submit("ann", "-q p");
    let told = "b@h1 (sbatchd of h1 is of an older release, which reads no .nqshosts)";
    assert!(why(&mut c, job).contains(told), "{}", why(&mut c, job));
    assert!(c.validated("h1").is_empty());
}

#[test]
fn validation_that_is_switched_off_routes_what_waits_for_an_answer() {
    let mut c = validating().up();
    let job = c.submit("ann", "-q p");
    assert_eq!(queue_of(&mut c, job), "p");
    let site = cluster().hosts(2, 2).queue("normal", "PRIORITY = 30");
    let queues =
        "create batch_queue b\ncreate pipe_queue p server=(pipeclient) destination=(b@h1,b@h2)\n";
    c.reconfigure(site.file("lsb.nqs", queues));
    c.advance(1);
    assert_eq!(c.running_on(job), ["h1"]);
}

#[test]
fn request_for_any_host_is_bound_to_one_whose_files_accept_it() {
    let mut c =
        with("create batch_queue b\ncreate pipe_queue p server=(pipeclient) destination=(b)\n")
            .up();
    c.files_say("h1", None);
    c.files_say("h2", Some(Verdict::Accepted));
    let jobs: Vec<JobRef> = (0..3).map(|_| c.submit("ann", "-q p")).collect();
    // h1 says nothing, and need not
    assert_eq!(
        (c.running_on(jobs[0]), c.running_on(jobs[1])),
        (vec!["h2".into()], vec!["h2".into()])
    );
    // the third one waits for h2: h1 has not accepted it
    assert!(c.waits_for(jobs[2], PendReason::NotAskedHost));
    // one that has free slots goes before
    c.files_say("h1", Some(Verdict::Accepted));
    c.advance(70);
    let next = c.submit("ann", "-q p");
    assert_eq!(c.running_on(next), ["h1"]);
}

#[test]
fn load_only_queue_validates_before_it_looks_for_a_slot() {
    let mut c = with(
        "create batch_queue b loadonly\ncreate pipe_queue p server=(pipeclient) destination=(b@h1)\n",
    )
    .up();
    let fill = c.submit("ann", "-q normal -m h1 -n 2");
    c.files_say("h1", no_line());
    let job = c.submit("ann", "-q p");
    assert!(why(&mut c, job).contains("has no line for h1"));
    c.files_say("h1", Some(Verdict::Accepted));
    c.advance(301);
    assert_eq!(why(&mut c, job), "no destination accepted: b@h1 (no free slot now)");
    c.end(fill, 0);
    c.advance(2);
    assert_eq!(c.running_on(job), ["h1"]);
}

#[test]
fn many_silent_hosts_do_not_keep_a_request_from_its_last_destination() {
    let mut c = cluster().hosts(10, 1).queue("normal", "");
    let list: Vec<String> = (1..=10).map(|n| format!("b@h{n}")).collect();
    let queues = format!(
        "create batch_queue b\ncreate pipe_queue p server=(pipeclient) destination=({})\n\
         set validation file\n",
        list.join(",")
    );
    c = c.file("lsb.nqs", &queues);
    let mut c = c.up();
    c.files_say("h10", Some(Verdict::Accepted));
    let job = c.submit("ann", "-q p");
    c.advance(9 * 15 + 9);
    assert_eq!(c.running_on(job), ["h10"]);
}
