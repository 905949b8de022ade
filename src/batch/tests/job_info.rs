//! Access to the jobs of others: SECURE_JOB_INFO_LEVEL, ENABLE_JOB_INFO_BY_ADMIN_ROLE,
//! GROUP_ADMIN and STRICT_UG_CONTROL, against lsb.params(5), lsb.users(5) and lsb.hosts(5).

use super::cluster::{ADMINISTRATOR, Cluster, cluster};
use crate::model::JobRef;
use crate::model::reason::err;
use crate::proto::Msg;
use crate::proto::client::{AdminOp, ClientMsg, Col, JobQuery, JobSelect, Verb, Which};
use crate::proto::dependency::DependencyRequest;
use crate::proto::job_message::{MessageRequest, OneJob, PostMessage};

/// ann and bob are of chip, carl and bob of lab; dan administers chip, and eve is of no group.
const GROUPS: &str = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER GROUP_ADMIN\n\
    chip (ann bob) (dan[full])\nlab (carl bob) ()\nEnd UserGroup\n";

fn up(params: &str) -> Cluster {
    cluster().hosts(1, 8).param(params).lsb_users(GROUPS).up()
}

/// The rows that a user gets of all jobs.
fn rows(c: &mut Cluster, user: &str, detail: bool) -> Vec<Vec<serde_json::Value>> {
    let select = JobSelect { user: "all".to_owned(), ..JobSelect::default() };
    let which = Which { all: true, ..Which::default() };
    let cols = vec![Col::Job, Col::Cwd];
    let query = JobQuery { select, which, cols, detail, ..JobQuery::default() };
    let answers = c.ask(user, ClientMsg::Jobs(Box::new(query)));
    let rows = |msg: &Msg| match msg {
        Msg::Client(ClientMsg::Rows { rows, .. }) => {
            serde_json::from_str::<Vec<Vec<serde_json::Value>>>(rows.get()).unwrap()
        }
        other => panic!("{other:?}"),
    };
    answers.iter().flat_map(rows).collect()
}

/// The part of these jobs that a user sees: `d` all, `s` a summary, `-` nothing.
fn seen(c: &mut Cluster, user: &str, jobs: &[JobRef]) -> String {
    let (all, detailed) = (rows(c, user, false), rows(c, user, true));
    let of = |job: &JobRef| {
        let is = |row: &&Vec<serde_json::Value>| row[0].as_u64() == Some(job.job.into());
        let whole = detailed.iter().any(|row| is(&row));
        match all.iter().find(is).map(|row| row[1].is_null()) {
            Some(blank) => {
                assert_eq!(blank, !whole, "{user} {job:?}");
                if whole { 'd' } else { 's' }
            }
            None => '-',
        }
    };
    jobs.iter().map(of).collect()
}

#[test]
fn jobs_of_others_are_seen_as_the_level_says() {
    for (level, bob, eve) in [
        (0, "dddd", "dddd"),
        (1, "dddd", "sssd"),
        (2, "dddd", "---d"),
        (3, "sdsd", "---d"),
        (4, "-d--", "---d"),
        (5, "sdss", "sssd"),
    ] {
        let mut c = up(&format!("SECURE_JOB_INFO_LEVEL = {level}"));
        let jobs = ["ann", "bob", "carl", "eve"].map(|user| c.submit(user, ""));
        // bob shares no group with eve
        let bob = match level {
            1 => "ddds",
            2 | 3 => &format!("{}-", &bob[..3]),
            _ => bob,
        };
        assert_eq!(seen(&mut c, "bob", &jobs), bob, "level {level}");
        assert_eq!(seen(&mut c, "eve", &jobs), eve, "level {level}");
        assert_eq!(seen(&mut c, ADMINISTRATOR, &jobs), "dddd", "level {level}");
    }
}

#[test]
fn job_that_was_submitted_to_a_group_belongs_to_no_other() {
    let mut c = up("SECURE_JOB_INFO_LEVEL = 2");
    let jobs = [c.submit("bob", "-G chip"), c.submit("bob", "")];
    assert_eq!(seen(&mut c, "ann", &jobs), "dd");
    assert_eq!(seen(&mut c, "carl", &jobs), "-d");
}

#[test]
fn administrator_of_a_group_or_queue_sees_its_jobs_where_the_role_is_named() {
    let level = "SECURE_JOB_INFO_LEVEL = 4";
    for (roles, dan, quinn) in [("", "--", "--"), ("usergroup", "d-", "--"), ("queue", "--", "dd")]
    {
        let site = cluster().hosts(1, 8).param(level).lsb_users(GROUPS);
        let site = match roles {
            "" => site,
            _ => site.param(&format!("ENABLE_JOB_INFO_BY_ADMIN_ROLE = {roles}")),
        };
        let mut c = site.queue("normal", "PRIORITY = 30; ADMINISTRATORS = quinn").up();
        let jobs = [c.submit("ann", "-q normal"), c.submit("eve", "-q normal")];
        assert_eq!(seen(&mut c, "dan", &jobs), dan, "{roles}");
        assert_eq!(seen(&mut c, "quinn", &jobs), quinn, "{roles}");
    }
}

#[test]
fn dependencies_of_a_job_that_a_user_may_not_see_are_not_told() {
    let mut c = up("SECURE_JOB_INFO_LEVEL = 1");
    let first = c.submit("ann", "-H");
    let second = c.submit("eve", &format!("-w 'done({first})'"));
    let mut ask = |user: &str, at: JobRef, children: bool| {
        let request = DependencyRequest { at, children, level: 1, ..Default::default() };
        match c.ask(user, ClientMsg::Dependencies(Box::new(request))).pop() {
            Some(Msg::Client(ClientMsg::DependencyRows(found))) => Ok(found.rows.len()),
            Some(Msg::Refused(why)) => Err(why.code),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask("bob", first, true), Ok(0));
    assert_eq!(ask(ADMINISTRATOR, first, true), Ok(1));
    assert_eq!(ask("carl", first, true), Err(err::NO_JOB));
    assert_eq!(ask("eve", second, false), Ok(0));
}

#[test]
fn administrator_of_a_user_group_controls_the_jobs_of_its_members() {
    for (params, all) in [
        ("STRICT_UG_CONTROL = N", [true, true, false]),
        ("STRICT_UG_CONTROL = Y", [true, false, false]),
    ] {
        let mut c = up(params);
        let jobs = [c.submit("bob", "-G chip"), c.submit("ann", ""), c.submit("eve", "")];
        for (at, may) in jobs.into_iter().zip(all) {
            let codes = c.control("dan", Verb::Stop, at);
            assert_eq!(codes, [if may { 0 } else { err::PERMISSION }], "{params} {at:?}");
        }
    }
}

#[test]
fn administrator_of_a_group_of_all_users_needs_strict_control() {
    let groups = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER GROUP_ADMIN\n\
        every (all) (dan)\nEnd UserGroup\n";
    for (strict, may) in [("N", false), ("Y", true)] {
        let site = cluster().hosts(1, 8).param(&format!("STRICT_UG_CONTROL = {strict}"));
        let mut c = site.lsb_users(groups).up();
        let at = c.submit("ann", "-G every");
        let codes = c.control("dan", Verb::Stop, at);
        assert_eq!(codes, [if may { 0 } else { err::PERMISSION }], "{strict}");
    }
}

#[test]
fn administrator_of_a_host_group_opens_and_closes_its_hosts() {
    let hosts = "Begin HostGroup\nGROUP_NAME GROUP_MEMBER GROUP_ADMIN\nrack (h1) (hugo)\n\
        End HostGroup\n";
    let mut c = cluster().hosts(2, 8).file("lsb.hosts", hosts).up();
    let mut close = |user: &str, word: &str| {
        let (hosts, text) = (vec![word.to_owned()], String::new());
        let op = AdminOp::HostCtrl { open: false, hosts, comment: text.clone(), lock: text };
        match c.ask(user, ClientMsg::Admin(op)).pop() {
            Some(Msg::Client(ClientMsg::AdminDone { lines })) => {
                lines.iter().map(|line| line.code).collect::<Vec<_>>()
            }
            Some(Msg::Refused(why)) => vec![why.code],
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(close("ann", "h1"), [err::PERMISSION]);
    assert_eq!(close("hugo", "h2"), [err::PERMISSION]);
    assert_eq!(close("hugo", "all"), [0, err::PERMISSION]);
    assert_eq!(close("hugo", "rack"), [0]);
    assert_eq!(["h1", "h2"].map(|name| c.host(name).status), ["closed_Adm", "ok"]);
}

#[test]
fn messages_of_a_job_are_read_by_those_alone_who_may_see_it_whole() {
    let mut c = up("SECURE_JOB_INFO_LEVEL = 3");
    let at = c.submit("bob", "-H");
    let job = || OneJob { at, name: String::new() };
    let post = PostMessage { job: job(), text: "half done".into(), ..PostMessage::default() };
    c.ask("bob", ClientMsg::Message(Box::new(MessageRequest::Post(post))));
    let mut read = |user: &str| {
        let request = MessageRequest::Read { job: job(), index: 0 };
        match c.ask(user, ClientMsg::Message(Box::new(request))).pop() {
            Some(Msg::Client(ClientMsg::Messages(rows))) => Ok(rows[0].text.clone()),
            Some(Msg::Refused(why)) => Err(why.code),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read("bob").as_deref(), Ok("half done"));
    assert_eq!(read(ADMINISTRATOR).as_deref(), Ok("half done"));
    assert_eq!(["ann", "eve"].map(read), [Err(err::NO_JOB), Err(err::NO_JOB)]);
}
