//! bresize, and jobs that ask for further slots while they run.

use super::cluster::{ADMINISTRATOR, Cluster, cluster};
use super::*;
use crate::model::event::{Event, ResizeStep};
use crate::model::reason::err;
use crate::model::resize::{NotifyCommand, ReleasedHosts, ResizeOrder, ResizeRequest, ResizeTold};
use crate::proto::sbd::Act;

fn release(hosts: &str) -> Verb {
    let (hosts, notify) = (ReleasedHosts::parse(hosts).unwrap(), NotifyCommand::OfJob);
    Verb::Resize(ResizeRequest::Release { hosts, cancel: false, notify })
}

fn request(least: u32, slots: u32) -> Verb {
    let (cancel, notify) = (false, NotifyCommand::OfJob);
    Verb::Resize(ResizeRequest::Grow { least, slots, cancel, notify })
}

const CANCEL: Verb = Verb::Resize(ResizeRequest::Cancel);

/// The orders that hosts were given since this was asked last.
fn ordered(c: &mut Cluster, at: JobRef) -> Vec<ResizeOrder> {
    let of = |(to, act)| match act {
        Act::Resize(order) if to == at => Some(*order),
        _ => None,
    };
    c.orders().into_iter().filter_map(of).collect()
}

/// `+h1 2 h2 1 of h1 3 h2 1`: what an order does, and the allocation with it.
fn shown(order: &ResizeOrder) -> String {
    let words = |hosts: &crate::model::event::NamedHosts| {
        let words: Vec<String> = hosts.iter().map(|(host, n)| format!("{host} {n}")).collect();
        words.join(" ")
    };
    let sign = if order.grows { '+' } else { '-' };
    format!("{sign}{} of {}", words(&order.hosts), words(&order.allocation))
}

fn only(c: &mut Cluster, at: JobRef) -> String {
    let orders = ordered(c, at);
    assert_eq!(orders.len(), 1, "{orders:?}");
    shown(&orders[0])
}

fn done(c: &mut Cluster, at: JobRef, number: u32, status: i32) {
    c.resized(at, ResizeTold { number, pid: 9, status: Some(status) });
}

#[test]
fn an_autoresizable_job_grows_to_its_maximum_as_slots_become_free() {
    let mut c = cluster().hosts(2, 2).up();
    let other = c.submit("bob", "-n 3");
    let job = c.submit("ann", "-n 1,4 -ar");
    assert_eq!(c.running_on(job), ["h2"]);
    assert!(ordered(&mut c, job).is_empty());
    c.end(other, 0);
    assert_eq!(only(&mut c, job), "+h2 1 h1 2 of h2 2 h1 2");
    // the slots are its own at once, and nobody else's
    assert_eq!(c.queue("normal").run, 4);
    let third = c.submit("bob", "");
    assert_eq!(c.state(third), "PEND");
    c.advance(60);
    done(&mut c, job, 1, 0);
    let resized = c.secs();
    assert_eq!(c.running_on(job), ["h2", "h2", "h1", "h1"]);
    assert!(ordered(&mut c, job).is_empty(), "it has its maximum");
    c.advance(60);
    c.accounted();
    c.end(job, 0);
    let [end] = &c.accounted()[..] else { panic!() };
    assert_eq!((end.start_time, end.last_resize), (resized - 60, resized));
    assert_eq!(c.queue("normal").run, 1);
    assert_eq!(c.state(third), "RUN");
}

#[test]
fn slots_that_the_notification_command_does_not_take_are_given_back_and_offered_again_later() {
    let mut c = cluster().hosts(1, 4).up();
    let (first, other) = (c.submit("bob", ""), c.submit("bob", ""));
    let job = c.submit("ann", "-n 1,4 -ar -rnc '/bin/tell me'");
    c.end(first, 0);
    assert_eq!(ordered(&mut c, job)[0].command, "/bin/tell me");
    done(&mut c, job, 1, 1);
    assert_eq!(c.running_on(job), ["h1", "h1"]);
    c.end(other, 0);
    assert!(ordered(&mut c, job).is_empty(), "not at once again");
    let next = c.submit("bob", "-n 2");
    assert_eq!(c.state(next), "RUN");
    c.end(next, 0);
    c.advance(61);
    assert_eq!(only(&mut c, job), "+h1 2 of h1 4");
}

#[test]
fn released_slots_go_when_the_host_has_taken_the_release_and_do_not_come_back() {
    let mut c = cluster().hosts(3, 2).up();
    let job = c.submit("ann", "-n 2,6 -ar");
    assert_eq!(c.running_on(job).len(), 6);
    assert_eq!(c.control("ann", release("h2 1*h3"), job), [0]);
    assert_eq!(only(&mut c, job), "-h2 2 h3 1 of h1 2 h3 1");
    let next = c.submit("bob", "");
    assert_eq!(c.state(next), "PEND", "the job still has them");
    assert_eq!(c.control("ann", release("h3"), job), [err::RESIZING]);
    done(&mut c, job, 1, 0);
    assert_eq!(c.running_on(job), ["h1", "h1", "h3"]);
    assert_eq!(c.state(next), "RUN");
    assert_eq!(c.queue("normal").run, 4);
    c.advance(600);
    assert!(ordered(&mut c, job).is_empty(), "they are not asked for again");
    assert_eq!(c.control("ann", release("all"), job), [0]);
    assert_eq!(only(&mut c, job), "-h1 1 h3 1 of h1 1");
    done(&mut c, job, 2, 1);
    assert_eq!(c.running_on(job).len(), 3, "the command did not take the release");
    assert_eq!(c.control("ann", release("all ~h3"), job), [0]);
    done(&mut c, job, 3, 0);
    assert_eq!(c.running_on(job), ["h1", "h3"]);
    c.restart();
    assert_eq!(c.running_on(job), ["h1", "h3"]);
    assert_eq!(c.queue("normal").run, 3);
}

#[test]
fn user_without_room_has_some_again_once_a_job_of_the_user_has_released_slots() {
    let users = "Begin User\nUSER_NAME MAX_JOBS\nann 4\nEnd User\n";
    let mut c = cluster().hosts(3, 2).lsb_users(users).up();
    let job = c.submit("ann", "-n 2,4 -ar -m 'h1 h2'");
    let next = c.submit("ann", "");
    // walks come to a user without room, and pass the user over
    for _ in 0..2 {
        let other = c.submit("bob", "");
        c.end(other, 0);
    }
    assert_eq!((c.running_on(job).len(), c.state(next)), (4, "PEND".to_owned()));
    let last = c.running_on(job).pop().unwrap();
    assert_eq!(c.control("ann", release(&last), job), [0]);
    assert_eq!(c.state(next), "PEND");
    done(&mut c, job, 1, 0);
    assert_eq!(c.state(next), "RUN");
}

#[test]
fn a_change_under_way_outlives_a_restart_and_ends_once() {
    let mut c = cluster().hosts(2, 2).up();
    let job = c.submit("ann", "-n 4 -ar");
    assert_eq!(c.control(ADMINISTRATOR, release("h2"), job), [0]);
    assert_eq!(only(&mut c, job), "-h2 2 of h1 2");
    c.restart();
    assert_eq!(only(&mut c, job), "-h2 2 of h1 2");
    assert_eq!(c.running_on(job).len(), 4);
    c.resized(job, ResizeTold { number: 1, pid: 9, status: None });
    done(&mut c, job, 1, 0);
    done(&mut c, job, 1, 0);
    assert_eq!(c.running_on(job), ["h1", "h1"]);
    let steps = |c: &Cluster, of: fn(&ResizeStep) -> bool| {
        c.logged(|e| matches!(e, Event::JobResize(r) if of(&r.step)))
    };
    assert_eq!(steps(&c, |s| matches!(s, ResizeStep::Accepted { pid: 9, .. })), 1);
    assert_eq!(steps(&c, |s| matches!(s, ResizeStep::Done { .. })), 1);
    c.restart();
    assert!(ordered(&mut c, job).is_empty());
    assert_eq!(c.running_on(job), ["h1", "h1"]);
}

#[test]
fn the_end_of_a_job_ends_the_change_that_is_under_way() {
    let mut c = cluster().hosts(1, 4).up();
    let other = c.submit("bob", "-n 2");
    let job = c.submit("ann", "-n 1,4 -ar -r");
    c.end(other, 0);
    assert_eq!(ordered(&mut c, job).len(), 1);
    c.requeue("ann", job);
    // the request of the submission is what it starts with again
    assert_eq!(c.running_on(job).len(), 4);
    assert_eq!(c.queue("normal").run, 4);
    done(&mut c, job, 1, 1);
    assert_eq!(c.running_on(job).len(), 4);
    c.end(job, 0);
    assert_eq!(c.queue("normal").run, 0);
}

#[test]
fn a_request_for_slots_waits_until_its_least_number_is_free() {
    let mut c = cluster().hosts(1, 4).queue("y", "PRIORITY = 30; RESIZABLE_JOBS = Y").up();
    let job = c.submit("ann", "-q y");
    let other = c.submit("bob", "-n 2");
    assert_eq!(c.control("ann", request(2, 3), job), [0]);
    assert!(ordered(&mut c, job).is_empty(), "one slot is free");
    assert_eq!(c.control("ann", request(1, 1), job), [err::RESIZE_PENDING]);
    c.end(other, 0);
    assert_eq!(only(&mut c, job), "+h1 3 of h1 4");
    done(&mut c, job, 1, 0);
    assert_eq!(c.control("ann", CANCEL, job), [err::NO_RESIZE_REQUEST]);
    assert_eq!(c.control("ann", request(1, 9), job), [0]);
    c.restart();
    assert_eq!(c.control("ann", CANCEL, job), [0]);
    assert_eq!(c.control("ann", CANCEL, job), [err::NO_RESIZE_REQUEST]);
}

#[test]
fn a_canceled_request_is_not_made_again() {
    let mut c = cluster().hosts(1, 4).up();
    let other = c.submit("bob", "-n 3");
    let job = c.submit("ann", "-n 1,4 -ar");
    assert_eq!(c.control("bob", CANCEL, job), [err::PERMISSION]);
    assert_eq!(c.control("ann", CANCEL, job), [0]);
    c.end(other, 0);
    c.restart();
    assert!(ordered(&mut c, job).is_empty());
}

#[test]
fn growing_obeys_the_limits_of_queue_user_and_host() {
    for (what, want) in [
        ("UJOB_LIMIT = 3", 3),
        ("QJOB_LIMIT = 4", 4),
        ("HJOB_LIMIT = 1", 2),
        ("TASKLIMIT = 1 1 6", 6),
    ] {
        let queue = format!("PRIORITY = 30; RESIZABLE_JOBS = auto; {what}");
        let mut c = cluster().hosts(2, 4).queue("auto", &queue).up();
        let all: Vec<JobRef> = (0..8).map(|_| c.submit("bob", "")).collect();
        let job = c.submit("ann", "-q auto -n 1,6");
        c.end(all[0], 0);
        assert_eq!(c.running_on(job).len(), 1, "{what}");
        for other in &all[1..] {
            c.end(*other, 0);
            let last = ordered(&mut c, job).last().map(|order| order.number);
            last.into_iter().for_each(|number| done(&mut c, job, number, 0));
        }
        assert_eq!(c.running_on(job).len(), want, "{what}");
    }
}

#[test]
fn pending_jobs_of_the_queue_come_before_those_that_grow() {
    let mut c = cluster().hosts(1, 2).queue("low", "PRIORITY = 1").up();
    let other = c.submit("bob", "");
    let job = c.submit("ann", "-n 1,2 -ar");
    let (low, own) = (c.submit("bob", "-q low"), c.submit("bob", ""));
    c.end(other, 0);
    assert_eq!((c.state(own).as_str(), c.state(low).as_str()), ("RUN", "PEND"));
    c.end(own, 0);
    assert_eq!(only(&mut c, job), "+h1 1 of h1 2");
    assert_eq!(c.state(low), "PEND", "its queue is of lower priority");
}

#[test]
fn requests_that_do_not_fit_the_job_are_refused_and_leave_no_record() {
    let mut c = cluster().hosts(2, 2).up();
    let plain = c.submit("ann", "-n 1");
    let job = c.submit("ann", "-n 3 -ar");
    let pending = c.submit("ann", "-n 4 -ar");
    let before = c.logged(|_| true);
    for (verb, at, want) in [
        (release("all"), plain, err::NOT_RESIZABLE),
        (release("all"), pending, err::NOT_STARTED),
        (release("h9"), job, err::BAD_HOST),
        (release("3*h2"), job, err::RESIZE_SLOTS),
        (release("all ~h1 ~h2"), job, err::RELEASE_NOTHING),
        (request(2, 1), job, err::RESIZE_SLOTS),
        (request(0, 0), job, err::RESIZE_SLOTS),
        (CANCEL, job, err::NO_RESIZE_REQUEST),
    ] {
        assert_eq!(c.control("ann", verb.clone(), at), [want], "{verb:?}");
    }
    let first = c.running_on(job)[0].clone();
    assert_eq!(c.control("ann", release(&first), job), [err::RELEASE_FIRST_HOST]);
    assert_eq!(c.logged(|_| true), before);
    c.stop("ann", job);
    assert_eq!(c.control("ann", release("all"), job), [err::SUSPENDED]);
}

#[test]
fn reservations_follow_the_slots_of_a_job() {
    let mut c = cluster().hosts(2, 2).up();
    let job = c.submit("ann", "-n 4 -ar -R 'rusage[mem=30000]'");
    assert_eq!(c.control("ann", release("h2"), job), [0]);
    let next = c.submit("bob", "-R 'rusage[mem=50000]'");
    assert_eq!(c.state(next), "PEND");
    done(&mut c, job, 1, 0);
    assert_eq!(c.running_on(next), ["h2"]);
}

#[test]
fn an_element_of_an_array_grows_by_itself() {
    let mut c = cluster().hosts(1, 3).up();
    let array = c.submit("ann", "-J a[1-2] -n 1,2 -ar");
    let [one, two] = [1, 2].map(|idx| super::cluster::element(array, idx));
    assert_eq!((c.running_on(one).len(), c.running_on(two).len()), (2, 1));
    c.end(one, 0);
    assert_eq!(only(&mut c, two), "+h1 1 of h1 2");
    done(&mut c, two, 1, 0);
    assert_eq!(c.control("ann", release("1*h1"), two), [0]);
    done(&mut c, two, 2, 0);
    assert_eq!(c.queue("normal").run, 1);
    c.restart();
    assert_eq!(c.running_on(two).len(), 1);
}

#[test]
fn host_that_gave_further_slots_before_a_restart_waits_for_the_accept_interval() {
    let site = cluster().hosts(2, 2).param("JOB_ACCEPT_INTERVAL = 2").param("MBD_SLEEP_TIME = 10");
    let mut c = site.up();
    let other = c.submit("bob", "-n 3");
    let job = c.submit("ann", "-n 1,4 -ar");
    c.advance(20);
    assert_eq!(c.running_on(job), ["h2"]);
    c.advance(5);
    c.end(other, 0);
    assert_eq!(only(&mut c, job), "+h1 2 of h2 1 h1 2");
    done(&mut c, job, 1, 0);
    c.end(job, 0);
    let next = c.submit("bob", "-m h1");
    c.restart_later(5);
    c.advance(14);
    assert_eq!(c.state(next), "PEND");
    c.advance(1);
    assert_eq!(c.state(next), "RUN");
}
