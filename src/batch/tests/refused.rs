//! Refusals: orders of users without permission, wrong submissions. The whole matrix of verbs and
//! roles is in permissions.rs.

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
    use crate::conf::UnixGroup;
    use crate::conf::types::UserTerm;
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

#[test]
fn members_that_egroup_names_later_count_at_once() {
    use crate::conf::external_groups::{ExternalGroup, GroupKind};
    use crate::conf::types::{UserGroup, UserTerm};
    use crate::model::reason::err;
    let mut c = conf();
    c.batch.users.groups.push(UserGroup {
        name: "chip".into(),
        external: true,
        ..Default::default()
    });
    c.batch.queues[0].users = vec![UserTerm { name: "chip".into(), ..Default::default() }];
    let mut r = Rig::of(c);
    assert_eq!(r.submit(spec("x")).map_err(|e| e.code), Err(err::QUEUE_USE));
    let named = |members: &[&str]| {
        let group = ExternalGroup { kind: GroupKind::Users, name: "chip".into() };
        let members = members.iter().map(|name| name.to_string()).collect();
        Input::ExternalGroups { groups: vec![(group, members)] }
    };
    r.step(named(&["bob", "ann"]));
    assert!(r.submit(spec("y")).is_ok());
    r.step(named(&["bob"]));
    assert_eq!(r.submit(spec("z")).map_err(|e| e.code), Err(err::QUEUE_USE));
}

#[test]
fn submission_beyond_a_threshold_may_be_repeated_if_it_can_ever_fit() {
    let mut c = conf();
    c.batch.params.max_pend_jobs = Some(3);
    c.batch.params.max_pend_slots = Some(8);
    c.batch.params.sub_try_interval = 7;
    let own = crate::conf::types::UserPolicy {
        name: "ann".into(),
        max_pend_jobs: Some(2),
        ..Default::default()
    };
    c.batch.users.users.push(own);
    let mut r = Rig::of(c);
    let held = |name: &str, n: u32| JobSpec {
        name: name.into(),
        min_slots: n,
        max_slots: n,
        options2: opt2::HOLD,
        ..spec("x")
    };
    r.submit(held("", 1)).unwrap();
    let mut again = |spec: JobSpec| r.submit(spec).unwrap_err();
    let refusal = |again: u64| Refusal { again, ..Refusal::new(err::PJOB_LIMIT) };
    assert_eq!(again(held("x[1-2]", 1)), refusal(7));
    assert_eq!(again(held("x[1-3]", 1)), refusal(0), "more than the user may have");
    assert_eq!(again(held("", 8)), refusal(7));
    assert_eq!(again(held("", 9)), refusal(0), "more than the cluster may have");
    r.submit(held("", 7)).unwrap();
}

#[test]
fn members_of_a_group_share_its_threshold() {
    use crate::conf::types::{UserGroup, UserPolicy, UserTerm};
    let mut c = conf();
    let member = |name: &str| UserTerm { name: name.into(), ..UserTerm::default() };
    let members = vec![member("ann"), member("bob")];
    let group = UserGroup { name: "chip".into(), members, ..UserGroup::default() };
    c.batch.users.groups.push(group);
    let row = UserPolicy { name: "chip".into(), max_pend_jobs: Some(3), ..UserPolicy::default() };
    c.batch.users.users.push(row);
    c.batch.params.sub_try_interval = 7;
    let mut r = Rig::of(c);
    let mut submit = |conn: ConnId, name: &str| {
        let spec = JobSpec { name: name.into(), options2: opt2::HOLD, ..spec("x") };
        let s = Submit { spec, ..Submit::default() };
        match r.ask(conn, ClientMsg::Submit(Box::new(s))) {
            Some(Msg::Client(ClientMsg::Submitted { .. })) => Ok(()),
            Some(Msg::Refused(r)) => Err((r.code, r.again)),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(submit(USER, "a[1-2]"), Ok(()));
    assert_eq!(submit(OTHER, "b"), Ok(()));
    assert_eq!(submit(OTHER, "c"), Err((err::PJOB_LIMIT, 7)));
    assert_eq!(submit(USER, "d"), Err((err::PJOB_LIMIT, 7)));
    assert_eq!(submit(USER, "e[1-4]"), Err((err::PJOB_LIMIT, 0)));
    assert_eq!(submit(ADMIN, "f[1-4]"), Ok(()), "not of the group");
}

#[test]
fn a_bad_requirement_is_told_with_its_place() {
    let mut r = Rig::new();
    for (bad, place) in [
        ("select[mem>1] rusage[foo=1]", "foo: unknown resource at column 22 of <"),
        ("badres>1", "badres: unknown resource at column 1 of <badres>1>"),
    ] {
        let e = r.submit(JobSpec { res_req: bad.into(), ..spec("x") }).unwrap_err();
        assert!(e.words().starts_with(place), "{}", e.words());
        assert!(e.words().ends_with(": Bad resource requirement syntax"), "{}", e.words());
    }
}
