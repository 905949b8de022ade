//! bjobs --watch: who is told of changes, when, and how often.

use super::*;

fn watch(r: &mut Rig, conn: ConnId, select: JobSelect) -> Option<Msg> {
    let wait = Wait { watch: Some(Box::new(select)), ..Wait::default() };
    r.ask(conn, ClientMsg::Wait(wait))
}

/// Words to this connection since it last asked.
fn told(r: &Rig, conn: ConnId) -> usize {
    let is_word = |m: &Msg| matches!(m, Msg::Client(ClientMsg::Waited(Waited::True)));
    r.sent.iter().filter(|(c, m)| *c == conn && is_word(m)).count()
}

fn of(job: u32) -> JobSelect {
    JobSelect { ids: vec![IdSel { job, elems: vec![] }], ..JobSelect::default() }
}

fn held() -> JobSpec {
    JobSpec {
        command: "true".into(),
        options2: crate::model::job::opt2::HOLD,
        ..JobSpec::default()
    }
}

fn resume(r: &mut Rig, job: u32) {
    let select = of(job);
    let c = Control::of(Verb::Resume, select);
    r.ask(USER, ClientMsg::Control(Box::new(c)));
}

#[test]
fn a_change_is_told_once_until_asked_again() {
    let mut r = Rig::new();
    r.connect();
    let (mine, other) = (r.submit(held()).unwrap(), r.submit(held()).unwrap());
    assert!(watch(&mut r, OTHER, of(mine)).is_none());
    resume(&mut r, other);
    assert_eq!(told(&r, OTHER), 0, "of another job");
    resume(&mut r, mine);
    assert_eq!(told(&r, OTHER), 1);
    // more changes are not told before it asks again, but then at once
    let select = of(mine);
    let stop = Control::of(Verb::Stop, select);
    r.ask(USER, ClientMsg::Control(Box::new(stop)));
    resume(&mut r, mine);
    assert_eq!(told(&r, OTHER), 1);
    assert!(matches!(
        watch(&mut r, OTHER, of(mine)),
        Some(Msg::Client(ClientMsg::Waited(Waited::True)))
    ));
    assert!(watch(&mut r, OTHER, of(mine)).is_none(), "nothing changed since");
}

#[test]
fn filters_and_ends_of_connections() {
    let mut r = Rig::new();
    r.connect();
    let all = JobSelect { user: "all".into(), queue: "normal".into(), ..JobSelect::default() };
    assert!(watch(&mut r, OTHER, all.clone()).is_none());
    r.submit(held()).unwrap();
    assert_eq!(told(&r, OTHER), 1);
    // one's own jobs only, where no user is given
    assert!(watch(&mut r, ADMIN, JobSelect::default()).is_none());
    r.submit(held()).unwrap();
    assert_eq!(told(&r, ADMIN), 0);
    let none = JobSelect { queue: "nosuch".into(), ..JobSelect::default() };
    assert!(matches!(watch(&mut r, OTHER, none), Some(Msg::Refused(_))));
    assert!(watch(&mut r, OTHER, all).is_some(), "the job submitted meanwhile");
    r.step(Input::Closed { conn: OTHER });
    r.sent.clear();
    r.submit(held()).unwrap();
    assert_eq!(told(&r, OTHER), 0);
}

#[test]
fn a_wait_with_a_limit_ends_at_it_and_not_before() {
    let mut r = Rig::new();
    r.connect();
    let id = r.submit(held()).unwrap();
    let wait =
        |timeout| ClientMsg::Wait(Wait { expr: format!("done({id})"), timeout, ..Wait::default() });
    assert!(r.ask(OTHER, wait(60)).is_none());
    assert!(r.ask(ADMIN, wait(0)).is_none(), "for ever");
    let answers = |r: &Rig, conn: ConnId| {
        let of = |(c, m): &(ConnId, Msg)| match m {
            Msg::Client(ClientMsg::Waited(w)) if *c == conn => Some(w.clone()),
            _ => None,
        };
        r.sent.iter().filter_map(of).collect::<Vec<_>>()
    };
    let later = |r: &mut Rig, us: u64| {
        r.now.mono_us += us;
        r.step(Input::Tick);
    };
    later(&mut r, 59_999_999);
    assert_eq!(answers(&r, OTHER), []);
    later(&mut r, 1);
    assert_eq!(answers(&r, OTHER), [Waited::Timeout]);
    later(&mut r, 3_600_000_000);
    assert_eq!((answers(&r, OTHER).len(), answers(&r, ADMIN).len()), (1, 0));
}
