//! File validation: who looks, what is answered, and that a home which hangs holds up nobody else.

use super::*;
use crate::exec::sbatchd::validation_table::{
    VALIDATION_MOST, VALIDATIONS_AT_ONCE, VALIDATIONS_MAX,
};
use crate::proto::validation::{Validate, Verdict};

fn question(number: u64, uid: u32) -> Validate {
    Validate { number, user: "u".into(), uid, gid: 5, hosts: vec!["cool".into()] }
}

fn ask(r: &mut Rig, number: u64) {
    r.order(SbdMsg::Validate(Box::new(question(number, 9))));
}

fn answers(r: &mut Rig) -> Vec<(u64, Verdict)> {
    let of = |msg| match msg {
        SbdMsg::Validated { number, verdict } => Some((number, verdict)),
        _ => None,
    };
    std::mem::take(&mut r.told).into_iter().filter_map(of).collect()
}

/// The starter that looks now tells this.
fn tells(r: &mut Rig, setup: Setup) {
    let id = r.plans.last().unwrap().0;
    let told = r.feed_launcher(Input::Os(OsInput::Setup { id, setup, ended: false }));
    r.pass(told);
}

fn ready(kept: bool, note: &str) -> Setup {
    Setup::Ready(Box::new(Ready { kept, note: note.into(), ..Ready::default() }))
}

#[test]
fn starter_looks_as_the_user_and_its_answer_is_passed_on() {
    let failed = |why: &str| Setup::Failed {
        at: crate::proto::launch::SetupStage::User,
        why: why.into(),
        exit: 0,
        begun: None,
    };
    for (setup, want) in [
        (ready(true, ""), Verdict::Accepted),
        (ready(false, ""), Verdict::NoLine(String::new())),
        (
            ready(false, ".rhosts is not used: no"),
            Verdict::NoLine(".rhosts is not used: no".into()),
        ),
        (failed("user u is not known here"), Verdict::NotRead("user u is not known here".into())),
    ] {
        let mut r = Rig::new();
        r.copying = true;
        ask(&mut r, 7);
        let (id, plan) = r.plans[0].clone();
        assert_eq!((plan.uid, plan.gid, plan.user.as_str()), (9, 5, "u"));
        let TaskPlan::Finish(finish) = plan.what else { panic!("no plan of a finish") };
        assert_eq!(*finish, FinishPlan { validate: vec!["cool".into()], ..FinishPlan::default() });
        assert_eq!(answers(&mut r), []);
        tells(&mut r, setup);
        assert_eq!(answers(&mut r), [(7, want)]);
        r.exits(501, 0);
        assert!(answers(&mut r).is_empty() && r.lau.tasks().all(|task| task.id != id));
    }
}

#[test]
fn questions_about_one_user_are_looked_into_one_after_another() {
    let mut r = Rig::new();
    r.copying = true;
    ask(&mut r, 1);
    ask(&mut r, 2);
    assert_eq!(r.plans.len(), 1);
    tells(&mut r, ready(true, ""));
    r.exits(501, 0);
    assert_eq!(r.plans.len(), 2);
    tells(&mut r, ready(false, ""));
    assert_eq!(answers(&mut r), [(1, Verdict::Accepted), (2, Verdict::NoLine(String::new()))]);
}

#[test]
fn look_that_hangs_is_ended_and_what_waits_behind_it_is_answered() {
    let mut r = Rig::new();
    r.copying = true;
    ask(&mut r, 1);
    r.wait(1);
    ask(&mut r, 2);
    r.wait(VALIDATION_MOST / US - 2);
    assert_eq!(answers(&mut r), []);
    r.wait(2);
    let no = Verdict::NotRead("no answer in 10 s".into());
    assert_eq!(answers(&mut r), [(1, no)]);
    assert!(!r.procs.contains_key(&501), "the starter goes on");
    tells(&mut r, ready(true, ""));
    assert_eq!(answers(&mut r), [(2, Verdict::Accepted)]);
}

/// A process that waits for a file server does not end when it is killed.
#[test]
fn user_whose_look_does_not_end_has_no_second_one_and_others_have_theirs() {
    let mut r = Rig::new();
    r.copying = true;
    r.template.ignores = vec![SIGKILL];
    ask(&mut r, 1);
    r.wait(11);
    let no = Verdict::NotRead("no answer in 10 s".into());
    assert_eq!(answers(&mut r), [(1, no)]);
    ask(&mut r, 2);
    r.wait(11);
    let no = "an earlier look into the files of the user has not ended";
    assert_eq!((answers(&mut r), r.plans.len()), (vec![(2, Verdict::NotRead(no.into()))], 1));
    // it ends at last, and is no answer to anything
    tells(&mut r, ready(true, ""));
    r.exits(501, 0);
    assert_eq!(answers(&mut r), []);
    ask(&mut r, 3);
    tells(&mut r, ready(false, ""));
    assert_eq!(answers(&mut r), [(3, Verdict::NoLine(String::new()))]);
}

#[test]
fn look_that_a_launcher_which_was_replaced_does_not_know_of_is_answered() {
    let mut r = Rig::new();
    r.copying = true;
    ask(&mut r, 1);
    r.lau = Launcher::new(launcher_conf(), vec![]);
    r.feed_launcher(Input::Start);
    r.feed(Input::Closed { conn: LAUNCHER });
    r.wait(1);
    assert_eq!(answers(&mut r), [(1, Verdict::NotRead("its starter is gone".into()))]);
    ask(&mut r, 2);
    tells(&mut r, ready(true, ""));
    assert_eq!(answers(&mut r), [(2, Verdict::Accepted)]);
}

#[test]
fn refused_start_and_empty_question_are_answered_at_once() {
    let mut r = Rig::new();
    // the launcher of a personal cluster starts nothing for another user
    r.order(SbdMsg::Validate(Box::new(question(1, 77))));
    let no = Verdict::NotRead("uid 77 in a cluster of uid 9 alone".into());
    assert_eq!(answers(&mut r), [(1, no)]);
    r.order(SbdMsg::Validate(Box::new(Validate { hosts: vec![], ..question(2, 9) })));
    let no = Verdict::NotRead("no host of submission is named".into());
    assert_eq!(answers(&mut r), [(2, no)]);
    assert!(r.plans.is_empty());
}

#[test]
fn flood_of_questions_is_bounded() {
    let mut r = Rig::new();
    r.copying = true;
    for n in 0..VALIDATIONS_MAX as u64 + 2 {
        ask(&mut r, n);
    }
    let told = answers(&mut r);
    let no = format!("{VALIDATIONS_MAX} requests wait for it");
    assert_eq!(told, [(VALIDATIONS_MAX as u64 + 1, Verdict::NotRead(no))]);
    assert_eq!(r.plans.len(), 1);
    r.wait(11);
    assert!(answers(&mut r).len() >= VALIDATIONS_MAX);
    const { assert!(VALIDATIONS_AT_ONCE < VALIDATIONS_MAX) };
}

#[test]
fn another_mbatchd_hears_no_answer_to_what_the_one_before_has_asked() {
    let mut r = Rig::new();
    r.copying = true;
    ask(&mut r, 1);
    ask(&mut r, 2);
    r.greet(2);
    r.told.clear();
    tells(&mut r, ready(true, ""));
    r.exits(501, 0);
    assert_eq!(answers(&mut r), []);
    ask(&mut r, 1);
    tells(&mut r, ready(false, ""));
    assert_eq!(answers(&mut r), [(1, Verdict::NoLine(String::new()))]);
}

#[test]
fn look_that_a_new_sbatchd_finds_is_forgotten_when_it_ends() {
    let mut r = Rig::new();
    r.copying = true;
    ask(&mut r, 1);
    r.crash();
    r.boot(true);
    r.greet(2);
    assert!(r.states().is_empty());
    // another question waits for its end: this look may be for another host
    ask(&mut r, 1);
    tells(&mut r, ready(true, ""));
    assert_eq!((answers(&mut r), r.plans.len()), (vec![], 1));
    r.exits(501, 0);
    assert_eq!((answers(&mut r), r.plans.len()), (vec![], 2));
    tells(&mut r, ready(false, ""));
    assert_eq!(answers(&mut r), [(1, Verdict::NoLine(String::new()))]);
    r.exits(502, 0);
    assert_eq!(r.lau.tasks().count(), 0);
}
