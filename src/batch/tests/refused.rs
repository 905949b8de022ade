//! What is not done: orders of those who may not give them, submissions that are wrong. The whole
//! matrix of verbs and roles is in perm_tests.rs.

use super::*;

#[test]
fn only_owner_and_administrators_control() {
    let mut r = Rig::new();
    let id = r.submit(spec("x")).unwrap();
    assert_eq!(r.kill(OTHER, id), crate::model::reason::err::PERMISSION);
    assert_eq!(r.kill(ADMIN, id), 0);
    assert_eq!(r.kill(USER, 99), crate::model::reason::err::NO_JOB);
    let held = r.submit(JobSpec { options2: 1, ..spec("y") }).unwrap();
    assert_eq!(r.stat(held, 0), "PSUSP");
    assert_eq!(r.kill(USER, held), 0);
    assert_eq!(r.kill(USER, held), crate::model::reason::err::JOB_FINISH);
}

#[test]
fn bad_submissions_change_nothing() {
    use crate::model::reason::err;
    let mut r = Rig::new();
    let rows: Vec<(JobSpec, i32)> = vec![
        (JobSpec { queue: "nosuch".into(), ..spec("x") }, err::BAD_QUEUE),
        (JobSpec { res_req: "select[".into(), ..spec("x") }, err::BAD_RESREQ),
        (JobSpec { res_req: "badres>1".into(), ..spec("x") }, err::BAD_RESREQ),
        (JobSpec { hosts: vec!["nosuch".into()], ..spec("x") }, err::BAD_HOST),
        (JobSpec { depend: "done(99999)".into(), ..spec("x") }, err::NO_JOB),
        (JobSpec { depend: "foo(".into(), ..spec("x") }, err::DEPEND_SYNTAX),
        (JobSpec { name: "x[1-2000]".into(), ..spec("x") }, err::ARRAY_LARGE),
        (JobSpec { name: "x[1-".into(), ..spec("x") }, err::BAD_JOB),
        (JobSpec { name: "a\nb".into(), ..spec("x") }, err::BAD_JOB),
        (spec(""), err::BAD_CMD),
    ];
    let before = r.log.len();
    for (s, code) in rows {
        let got = r.submit(s.clone()).map_err(|e| e.code);
        assert_eq!(got, Err(code), "{s:?}");
    }
    assert_eq!(r.log.len(), before);
}

#[test]
fn groups_of_the_operating_system_count() {
    use crate::conf::types::UserTerm;
    use crate::conf::unix::UnixGroup;
    use crate::model::reason::err;
    let mut c = conf();
    let term = |name: &str| UserTerm { name: name.into(), ..Default::default() };
    c.batch.queues[0].users = vec![term("staff")];
    c.batch.queues[0].admins = vec!["wheel".into()];
    c.unix.unknown = vec!["staff".into(), "wheel".into()];
    let mut r = Rig::of(c.clone());
    assert_eq!(r.submit(spec("x")).map_err(|e| e.code), Err(err::QUEUE_USE));
    let group = |name: &str, gid: u32, member: &str| UnixGroup {
        name: name.into(),
        gid,
        members: vec![member.into()],
    };
    let asked = c.unix.unknown.clone();
    // ann is listed; the credential of bob (1002) says that it is his primary group.
    let found = vec![group("staff", 1002, "ann"), group("wheel", 7, "bob")];
    r.step(Input::Groups { asked: asked.clone(), found });
    let id = r.submit(spec("x")).unwrap();
    let s = Submit { spec: spec("y"), ..Default::default() };
    let answer = r.ask(OTHER, ClientMsg::Submit(Box::new(s)));
    assert!(matches!(answer, Some(Msg::Client(ClientMsg::Submitted { .. }))), "{answer:?}");
    assert_eq!(r.kill(OTHER, id), 0, "bob administers the queue");
    // A reconfiguration keeps the answers until the new ones come.
    r.step(Input::Config { conf: Some(Box::new(c)), diags: vec![] });
    assert!(r.submit(spec("z")).is_ok());
    r.step(Input::Groups { asked, found: vec![] });
    assert_eq!(r.submit(spec("x")).map_err(|e| e.code), Err(err::QUEUE_USE));
}
