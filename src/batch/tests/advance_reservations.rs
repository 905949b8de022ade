//! Advance reservations: slots are kept from others from the begin, and from jobs that would run
//! into it; jobs of the reservation run there alone, and end with it; others are suspended for
//! them and go on afterwards (brsvadd(1), brsvmod(1)). Tests begin at 22:13:20.

use super::cluster::{ADMINISTRATOR, Cluster, cluster};
use super::*;
use crate::batch::state::State;
use crate::model::reason::{PendReason, err, susp};
use crate::model::specfield::SpecField;

#[test]
fn slots_of_an_active_reservation_are_kept_for_its_jobs() {
    let mut c = cluster().hosts(1, 4).up();
    let id = c.brsvadd("-n 3 -m h1 -u ann -b 22:20 -e 23:00");
    assert_eq!((id.as_str(), c.reserved("ann#0")), ("ann#0", "h1:0/3".to_owned()));
    let early = c.submit("ann", "-U ann#0");
    assert_eq!(c.reason(early), PendReason::ReservationInactive);
    c.advance(7 * 60);
    assert_eq!(c.state(early), "RUN");
    let others = [c.submit("bob", ""), c.submit("bob", "")];
    assert_eq!(c.state(others[0]), "RUN");
    assert_eq!(c.reason(others[1]), PendReason::ReservedSlots);
    let own = c.submit("ann", "-U ann#0 -n 2");
    assert_eq!(c.running_on(own), ["h1", "h1"]);
    assert_eq!(c.reserved("ann#0"), "h1:3/3");
    let more = c.submit("ann", "-U ann#0");
    assert!(matches!(c.reason(more), PendReason::HostFull | PendReason::NotEnoughReserved));
    c.end(own, 0);
    assert_eq!(c.state(more), "RUN");
    assert_eq!(c.state(others[1]), "PEND");
}

#[test]
fn each_period_of_a_reservation_is_accounted_for_once() {
    let mut c = cluster().hosts(1, 4).up();
    let begin = c.secs();
    c.brsvadd("-n 1 -m h1 -u ann -b 22:20 -e 22:40 -N once");
    c.brsvadd("-n 1 -m h1 -u ann -t 22:20-22:30 -N daily");
    c.brsvadd("-n 1 -m h1 -u ann -b 22:20 -e 23:40 -N cut");
    c.brsvadd("-n 1 -m h1 -u ann -b 23:20 -e 23:40 -N never");
    c.brsvdel("never");
    assert_eq!(c.periods(), []);
    // 22:13:20
    let at = |minutes: i64| begin - 800 + minutes * 60;
    c.advance(3600);
    let of = |id: &str, end: i64, secs: i64| (id.to_owned(), end, secs);
    assert_eq!(c.periods(), [of("daily", at(30), 600), of("once", at(40), 1200)]);
    c.brsvdel("cut");
    assert_eq!(c.periods(), [of("cut", begin + 3600, begin + 3600 - at(20))]);
    c.advance(24 * 3600);
    assert_eq!(c.periods(), [of("daily", at(30) + 24 * 3600, 600)]);
}

#[test]
fn job_of_a_reservation_runs_on_its_hosts_alone() {
    let mut c = cluster().hosts(2, 2).up();
    c.brsvadd("-n 1 -m h2 -u ann -b 22:14 -e 23:00");
    c.advance(60);
    let first = c.submit("ann", "-U ann#0");
    assert_eq!(c.running_on(first), ["h2"]);
    let second = c.submit("ann", "-U ann#0");
    assert!(c.waits_for(second, PendReason::NotReservedHost));
    assert!(c.waits_for(second, PendReason::NotEnoughReserved));
}

#[test]
fn job_whose_run_limit_reaches_into_a_reservation_does_not_get_its_slots() {
    let mut c = cluster().hosts(1, 4).queue("short", "PRIORITY = 20").up();
    c.brsvadd("-n 3 -m h1 -u ann -q short -b 22:40 -e 23:00");
    let long = [c.submit("bob", "-W 60"), c.submit("bob", "-W 60")];
    assert_eq!(c.state(long[0]), "RUN");
    assert_eq!(c.reason(long[1]), PendReason::WholeDuration);
    let before = c.submit("bob", "-W 20");
    assert_eq!(c.state(before), "RUN", "it ends before the begin");
    let of_queue = c.submit("bob", "-W 60 -q short");
    assert_eq!(c.state(of_queue), "RUN", "its queue is one of the reservation's");
    let open = c.submit("bob", "");
    assert_eq!(c.state(open), "RUN", "without a run limit nothing is known of its end");
}

#[test]
fn jobs_of_others_are_suspended_for_a_reservation_and_go_on_after_it() {
    let mut c = cluster().hosts(1, 4).up();
    let old: Vec<JobRef> = (0..2).map(|_| c.submit("bob", "")).collect();
    c.advance(60);
    let young: Vec<JobRef> = (0..2).map(|_| c.submit("bob", "")).collect();
    c.brsvadd("-n 2 -m h1 -u ann -b 22:20 -e 22:40");
    c.advance(10 * 60);
    assert!(old.iter().chain(&young).all(|at| c.state(*at) == "RUN"), "nobody needs the slots");
    let own = c.submit("ann", "-U ann#0");
    assert_eq!(c.state(own), "RUN");
    let states = |c: &mut cluster::Cluster, all: &[JobRef]| {
        all.iter().map(|at| c.state(*at)).collect::<Vec<_>>()
    };
    assert_eq!(states(&mut c, &old), ["RUN", "RUN"], "the one started last first");
    assert_eq!(states(&mut c, &young), ["RUN", "SSUSP"]);
    assert_eq!(c.suspended_for(young[1]), susp::RESERVED);
    let next = c.submit("ann", "-U ann#0");
    assert_eq!(states(&mut c, &[next, young[0]]), ["RUN", "SSUSP"]);
    // 22:40: the jobs of the reservation end, and the others go on
    c.advance(17 * 60);
    assert_eq!(states(&mut c, &[own, next]), ["EXIT", "EXIT"]);
    assert_eq!(states(&mut c, &young), ["RUN", "RUN"]);
    assert!(c.brsvs().is_empty(), "a reservation that is over is forgotten");
}

#[test]
fn suspended_job_does_not_go_on_while_its_slots_are_reserved() {
    let mut c = cluster().hosts(1, 2).up();
    let other = c.submit("bob", "-n 2");
    c.brsvadd("-n 1 -m h1 -u ann -b 22:14 -e 22:40");
    c.advance(60);
    let own = c.submit("ann", "-U ann#0");
    assert_eq!((c.state(own), c.state(other)), ("RUN".into(), "SSUSP".into()));
    c.end(own, 0);
    assert_eq!(c.state(other), "SSUSP");
    c.advance(27 * 60);
    assert_eq!(c.state(other), "RUN");
}

#[test]
fn nobody_is_suspended_for_a_reservation_with_nosusp() {
    let mut c = cluster().hosts(1, 2).up();
    let other = c.submit("bob", "-n 2");
    c.brsvadd("-n 1 -m h1 -u ann -nosusp -b 22:14 -e 22:40");
    c.advance(60);
    let own = c.submit("ann", "-U ann#0");
    assert_eq!((c.state(own), c.state(other)), ("PEND".into(), "RUN".into()));
    c.end(other, 0);
    assert_eq!(c.state(own), "RUN");
}

#[test]
fn jobs_of_an_open_reservation_go_on_after_its_end() {
    let mut c = cluster().hosts(1, 2).up();
    c.brsvadd("-n 1 -m h1 -u ann -o -b 22:14 -e 22:30");
    c.brsvadd("-n 1 -m h1 -u ann -b 22:14 -e 22:30");
    c.advance(60);
    let [open, closed] = [c.submit("ann", "-U ann#0"), c.submit("ann", "-U ann#1")];
    c.advance(16 * 60);
    assert_eq!((c.state(open), c.state(closed)), ("RUN".into(), "EXIT".into()));
    let late = c.submit("bob", "");
    assert_eq!(c.state(late), "RUN");
}

#[test]
fn job_with_a_termination_time_ahead_outlives_its_reservation() {
    let mut c = cluster().hosts(1, 2).up();
    c.brsvadd("-n 1 -m h1 -u ann -b 22:14 -e 22:30");
    c.advance(60);
    let job = c.submit("ann", "-U ann#0 -t 7200");
    c.advance(17 * 60);
    assert_eq!(c.state(job), "RUN");
}

#[test]
fn system_reservation_keeps_every_job_from_its_hosts() {
    let mut c = cluster().hosts(2, 2).up();
    let runs = c.submit("bob", "-m h1");
    assert_eq!(c.brsvadd("-s -m h1 -b 22:20 -e 23:00"), "system#0");
    let long = c.submit("bob", "-m h1 -W 30");
    assert!(c.waits_for(long, PendReason::WholeDuration));
    c.advance(8 * 60);
    let waits = c.submit("bob", "-m h1");
    assert!(c.waits_for(waits, PendReason::ReservedSlots));
    assert_eq!(c.state(runs), "RUN", "what runs goes on");
    c.advance(40 * 60);
    assert_eq!((c.state(long), c.state(waits)), ("RUN".into(), "PEND".into()));
}

#[test]
fn recurring_reservation_comes_again_unless_it_is_disabled() {
    let mut c = cluster().hosts(1, 2).up();
    c.brsvadd("-n 2 -m h1 -u ann -t 23:00-1:00");
    let [first, second] = [c.submit("ann", "-U ann#0"), c.submit("ann", "-U ann#0 -b 80000")];
    assert_eq!(c.reason(first), PendReason::ReservationInactive);
    c.advance(3600);
    assert_eq!(c.state(first), "RUN");
    // 1:00: over midnight it was one period
    c.advance(2 * 3600);
    assert_eq!(c.state(first), "EXIT");
    // Wednesday 23:00
    c.brsvmod("ann#0", "disable -td 24:00-48:00");
    c.advance(22 * 3600);
    assert_eq!(c.reason(second), PendReason::ReservationInactive);
    c.advance(24 * 3600);
    assert_eq!(c.state(second), "RUN");
    let refused = c.try_brsvmod(ADMINISTRATOR, "ann#0", "disable -td 48:00-72:00");
    assert_eq!(refused.unwrap_err().code, err::RSV_DISABLE_ACTIVE);
}

#[test]
fn reservation_is_found_after_a_restart_and_at_the_head_of_a_new_log() {
    let mut c = cluster().hosts(1, 2).up();
    c.brsvadd("-n 1 -m h1 -u 'ann bob' -d night -b 22:14 -e 22:40");
    c.brsvadd("-n 1 -m h1 -u ann -t 5:18:00-1:8:00 -N weekend");
    c.advance(60);
    let own = c.submit("ann", "-U ann#0");
    let before = c.brsvs();
    c.restart();
    assert_eq!(c.brsvs(), before);
    assert_eq!(c.reserved("ann#0"), "h1:1/1");
    let other = c.submit("eve", "-n 2");
    assert_eq!(c.state(other), "PEND");
    let mut anew = State::new();
    c.switch_head().iter().for_each(|record| drop(anew.apply(record)));
    let ids: Vec<&str> = anew.reservations().each().map(|r| r.id.as_str()).collect();
    assert_eq!(ids, ["ann#0", "weekend"]);
    c.brsvdel("ann#0");
    let mut anew = State::new();
    c.switch_head().iter().for_each(|record| drop(anew.apply(record)));
    assert_eq!(anew.reservations().next_id("ann"), "ann#1", "no number is given twice");
    assert_eq!(c.state(own), "RUN", "its jobs go on");
}

#[test]
fn reservation_that_ended_while_mbatchd_was_down_ends_its_jobs() {
    let mut c = cluster().hosts(1, 2).up();
    c.brsvadd("-n 1 -m h1 -u ann -b 22:14 -e 22:30");
    c.advance(60);
    let own = c.submit("ann", "-U ann#0");
    let pending = c.submit("ann", "-U ann#0");
    c.restart_later(3600);
    c.advance(60);
    assert_eq!(c.state(own), "EXIT");
    assert_eq!(c.reason(pending), PendReason::NoReservation);
    assert!(c.brsvs().is_empty());
}

#[test]
fn hosts_and_slots_are_chosen_in_the_order_given_and_as_far_as_they_are_free() {
    let mut c = cluster().hosts(3, 4).up();
    let first = c.brsvadd("-n 6 -m 'h2 h1' -u ann -b 22:20 -e 23:00");
    assert_eq!(c.reserved(&first), "h2:0/4 h1:0/2");
    let second = c.brsvadd("-n 3 -m 'h1 h3' -u bob -b 22:30 -e 22:50");
    assert_eq!(c.reserved(&second), "h1:0/2 h3:0/1");
    let full = c.try_brsvadd(ADMINISTRATOR, "-n 1 -m h2 -u eve -b 22:50 -e 23:10");
    assert_eq!(full.unwrap_err().code, err::RSV_HOST_NOT_FREE);
    let few = c.try_brsvadd(ADMINISTRATOR, "-n 4 -m h3 -u eve -b 22:20 -e 22:40");
    assert_eq!(few.unwrap_err().code, err::FEWER_RESERVABLE);
    let whole = c.brsvadd("-unit host -n 1 -R 'select[mem>1]' -u eve -b 23:00 -e 23:30");
    assert_eq!(c.reserved(&whole), "h1:0/4");
    let soon = c.brsvadd("-n 8 -D 30 -u ann");
    let row = c.brsvs().into_iter().find(|row| row.id == soon).unwrap();
    let begins = row.period.unwrap().0 - c.secs();
    assert_eq!(begins, 46 * 60 + 40, "the first time with so many free");
    assert_eq!(row.hosts.iter().map(|of| of.2).sum::<u64>(), 8);
}

#[test]
fn reservation_is_modified_as_a_whole_or_not_at_all() {
    let mut c = cluster().hosts(2, 4).up();
    let id = c.brsvadd("-n 2 -m h1 -u ann -b 22:20 -e 23:00");
    c.brsvadd("-n 4 -m h1 -u bob -b 23:00 -e 23:30");
    let code = |c: &mut cluster::Cluster, options: &str| {
        c.try_brsvmod(ADMINISTRATOR, "ann#0", options).unwrap_err().code
    };
    assert_eq!(code(&mut c, "-e +10"), err::RSV_TIME);
    c.brsvmod(&id, "-b +10 -e 22:50");
    let period = c.brsvs()[0].period.unwrap();
    assert_eq!(period.1 - period.0, 20 * 60);
    c.brsvmod(&id, "addhost -n 3 -m 'h1 h2'");
    assert_eq!(c.reserved(&id), "h1:0/4 h2:0/1");
    c.brsvmod(&id, "rmhost -n 2 -m 'h1 h2'");
    assert_eq!(c.reserved(&id), "h1:0/3");
    assert_eq!(code(&mut c, "rmhost -m h2"), err::RSV_NOT_ITS_HOST);
    assert_eq!(code(&mut c, "rmhost -m h1"), err::RSV_EMPTY);
    c.brsvmod(&id, "adduser -u 'bob eve'");
    c.brsvmod(&id, "rmuser -u ann");
    assert_eq!(c.brsvs()[0].users, ["bob", "eve"]);
    assert_eq!(code(&mut c, "rmuser -u ann"), err::UNKNOWN_USER);
    assert_eq!(code(&mut c, "disable -td 24:00-48:00"), err::RSV_NOT_RECURRING);
    c.advance(20 * 60);
    let own = c.submit("eve", "-U ann#0 -n 2");
    assert_eq!(c.state(own), "RUN");
    assert_eq!(code(&mut c, "-b 22:40"), err::RSV_HAS_BEGUN);
    assert_eq!(code(&mut c, "rmhost -n 2 -m h1"), err::RSV_HOST_USED);
    c.brsvmod(&id, "-e 22:55");
    c.brsvmod(&id, "-o");
    c.advance(35 * 60);
    assert_eq!(c.state(own), "RUN", "it is open now");
}

#[test]
fn reservations_are_made_by_administrators_and_by_whom_a_policy_permits_it() {
    let policy = "Begin ResourceReservation\nNAME = dayPolicy\nUSERS = ann bob\nHOSTS = h1 h2\n\
                  TIME_WINDOW = 20:00-23:59\nEnd ResourceReservation\n";
    let site = cluster().hosts(3, 2).file("lsb.resources", policy);
    let mut c = site.up();
    let mut add =
        |user: &str, options: &str| c.try_brsvadd(user, options).map_err(|refusal| refusal.code);
    let time = "-b 22:20 -e 23:00";
    assert_eq!(add("eve", &format!("-n 1 -m h1 -u eve {time}")), Err(err::RSV_PERMISSION));
    assert_eq!(add("ann", &format!("-n 1 -m h3 -u ann {time}")), Err(err::RSV_POLICY_HOST));
    assert_eq!(add("ann", "-n 1 -m h1 -u ann -b 23:00 -e 24:30"), Err(err::RSV_POLICY_WINDOW));
    assert_eq!(add("ann", "-n 1 -m h1 -u ann -t 8:00-9:00"), Err(err::RSV_POLICY_WINDOW));
    assert_eq!(add("ann", &format!("-n 1 -m 'h3 h2' -u eve {time}")), Ok("eve#0".into()));
    assert_eq!(c.reserved("eve#0"), "h2:0/1");
    let refused = c.try_brsvdel("bob", "eve#0").unwrap_err().code;
    assert_eq!(refused, err::PERMISSION, "another one's");
    let refused = c.try_brsvmod("ann", "eve#0", "addhost -n 1 -m h3").unwrap_err().code;
    assert_eq!(refused, err::RSV_POLICY_HOST);
    c.try_brsvdel("ann", "eve#0").unwrap();
    let mut c = cluster().hosts(1, 1).up();
    let refused = c.try_brsvadd("ann", &format!("-n 1 -m h1 -u ann {time}")).unwrap_err();
    assert_eq!(refused.code, err::PERMISSION);
}

#[test]
fn wrong_reservations_are_refused_and_change_nothing() {
    let mut c = cluster().hosts(1, 4).param("ADVRSV_USER_LIMIT = 2").up();
    let time = "-b 22:20 -e 23:00";
    let rows = [
        (format!("-n 1 -m nosuch -u ann {time}"), err::BAD_HOST),
        ("-n 1 -m h1 -u ann -b 23:00 -e 22:20".into(), err::BAD_TIME),
        ("-n 1 -m h1 -u ann -b 22:00 -e 23:00".into(), err::BAD_TIME),
        ("-n 1 -m h1 -u ann -b 22:20 -e 22:29".into(), err::BAD_TIME),
        ("-n 1 -m h1 -u ann -t 8:00-8:05".into(), err::BAD_TIME),
        ("-n 1 -m h1 -u ann -t 8:00-8:00".into(), err::BAD_TIME),
        ("-n 1 -m h1 -u ann -t '8-9 10-11'".into(), err::BAD_TIME),
        ("-n 1 -m h1 -u ann -t x".into(), err::BAD_TIME),
        (format!("-n 5 -m h1 -u ann {time}"), err::FEWER_RESERVABLE),
        (format!("-m h1 -u ann {time}"), err::BAD_ARG),
        (format!("-n 1 -m h1 {time}"), err::BAD_ARG),
        (format!("-n 1 -u ann {time}"), err::RSV_NO_HOST),
        (format!("-n 1 -R 'select[' -u ann {time}"), err::BAD_RESREQ),
        (format!("-n 1 -R 'select[mem>1000000]' -u ann {time}"), err::RSV_NO_HOST),
        (format!("-s -n 1 -m h1 {time}"), err::RSV_SYSTEM_UNITS),
        (format!("-n 1 -m h1 -g nosuch {time}"), err::BAD_USER_GROUP),
        (format!("-n 1 -m h1 -u ann -q nosuch {time}"), err::BAD_QUEUE),
        (format!("-n 1 -m h1 -u ann -N '1a' {time}"), err::RSV_NAME),
        (format!("-n 1 -m h1 -u ann -d 'a\u{1b}[2J' {time}"), err::BAD_ARG),
    ];
    for (options, code) in rows {
        let refused = c.try_brsvadd(ADMINISTRATOR, &options).expect_err(&options);
        assert_eq!(refused.code, code, "{options}: {}", refused.words());
    }
    assert!(c.brsvs().is_empty());
    c.brsvadd(&format!("-n 1 -m h1 -u ann -N night {time}"));
    let again = c.try_brsvadd(ADMINISTRATOR, &format!("-n 1 -m h1 -u bob -N night {time}"));
    assert_eq!(again.unwrap_err().code, err::RSV_NAME_TAKEN);
    c.brsvadd(&format!("-n 1 -m h1 -u ann {time}"));
    let third = c.try_brsvadd(ADMINISTRATOR, &format!("-n 1 -m h1 -u ann {time}"));
    assert_eq!(third.unwrap_err().code, err::OVER_LIMIT);
    assert_eq!(c.try_brsvdel(ADMINISTRATOR, "nosuch").unwrap_err().code, err::NO_RSVID);
    assert_eq!(c.try_submit("ann", "-U nosuch").unwrap_err().code, err::NO_RSVID);
    assert_eq!(c.try_submit("bob", "-U night").unwrap_err().code, err::BAD_RSVID);
}

#[test]
fn job_is_taken_into_a_reservation_and_out_of_it_by_bmod() {
    let mut c = cluster().hosts(1, 2).up();
    c.brsvadd("-n 2 -m h1 -u ann -b 22:14 -e 23:00");
    c.advance(60);
    let job = c.submit("ann", "");
    assert_eq!(c.reason(job), PendReason::ReservedSlots);
    let field = [SpecField::Reservation];
    assert_eq!(c.modify("ann", job, &field, "-U nosuch"), err::NO_RSVID);
    assert_eq!(c.modify("ann", job, &field, "-U ann#0"), 0);
    assert_eq!(c.state(job), "RUN");
    let of_bob = c.submit("bob", "");
    assert_eq!(c.modify("bob", of_bob, &field, "-U ann#0"), err::BAD_RSVID);
    let late = c.submit("ann", "-U ann#0 -n 2");
    assert_eq!(c.modify("ann", late, &field, ""), 0);
    assert!(c.waits_for(late, PendReason::ReservedSlots), "{:?}", c.reasons(late));
}

#[test]
fn windows_of_bslots_end_where_advance_reservations_begin() {
    let mut c = cluster().hosts(2, 4).up();
    c.brsvadd("-n 3 -m h1 -u ann -b 23:13 -e 23:30");
    type Window = (Option<u64>, Vec<(String, u64)>);
    let rows = |c: &mut Cluster| -> Vec<Window> {
        c.slot_windows().into_iter().map(|row| (row.secs, row.hosts)).collect()
    };
    let on = |slots: u64| vec![("h1".to_string(), slots), ("h2".to_string(), 4)];
    // until 23:13 all slots of h1 are free
    let secs = 59 * 60 + 40;
    assert_eq!(rows(&mut c), [(None, on(1)), (Some(secs), on(4))]);
    c.submit("bob", "-m h1 -W 10");
    assert_eq!(rows(&mut c), [(None, vec![("h2".to_string(), 4)]), (Some(secs), on(3))]);
    c.advance(secs);
    assert_eq!(rows(&mut c), [(None, vec![("h2".to_string(), 4)])]);
}
