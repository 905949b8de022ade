//! badmin diagnose: what is noted of queries, where, and how long.

use super::*;

impl Rig {
    /// The file and the text that a query of a user has noted.
    fn noted(&mut self, conn: ConnId, msg: ClientMsg) -> Option<(String, String)> {
        let mut out = Vec::new();
        self.mbd.step(self.now, Input::Msg { conn, msg: Msg::Client(msg) }, &mut out);
        out.into_iter().find_map(|e| match e {
            Effect::Aside { file, text } => Some((file, text)),
            _ => None,
        })
    }

    fn diagnose(&mut self, conn: ConnId, on: bool, file: &str, minutes: u64) -> i32 {
        let (what, file) = ("query".into(), file.into());
        match self.ask(conn, ClientMsg::Admin(AdminOp::Diagnose { what, on, file, minutes })) {
            Some(Msg::Client(ClientMsg::AdminDone { .. })) => 0,
            Some(Msg::Refused(r)) => r.code,
            other => panic!("{other:?}"),
        }
    }
}

fn queues(name: &str) -> ClientMsg {
    let (user, host) = (String::new(), String::new());
    ClientMsg::Queues { names: vec![name.into()], user, host }
}

fn site(lines: &[(&str, &str)]) -> Rig {
    let mut c = conf();
    for (name, text) in lines {
        super::requeue::raw(&mut c.batch.params.raw, name, text);
    }
    Rig::of(c)
}

#[test]
fn queries_are_noted_line_by_line() {
    let mut r = site(&[("DIAGNOSE_LOGDIR", "/logs")]);
    assert_eq!(r.noted(USER, queues("normal")), None);
    assert_eq!(r.diagnose(USER, true, "", 0), err::PERMISSION);
    assert_eq!(r.diagnose(ADMIN, true, "", 0), 0);
    let size = serde_json::to_vec(&queues("normal")).unwrap().len();
    let told = |what: &str| format!("Tue Nov 14 22:13:20 2023 {what}\n");
    let file = "/logs/query_info.querylog.h1".to_string();
    let line = told(&format!("bqueues,ann,h1,{size},normal"));
    assert_eq!(r.noted(USER, queues("normal")), Some((file, line)));
    // whatever it asks for, it is one line of five fields
    let (_, line) = r.noted(OTHER, queues("a,b\nTue Nov 14 22:13:20 2023 bjobs,root")).unwrap();
    assert_eq!((line.matches('\n').count(), line.matches(',').count()), (1, 4), "{line}");
    let (_, line) = r.noted(OTHER, queues(&"x".repeat(9000))).unwrap();
    assert!(line.len() < 400, "{}", line.len());
    let select = JobSelect {
        ids: vec![IdSel { job: 7, elems: vec![] }],
        user: "all".into(),
        queue: "high".into(),
        ..JobSelect::default()
    };
    let which = Which { pend: true, ..Which::default() };
    let q = JobQuery { select, which, cols: vec![Col::Job], ..JobQuery::default() };
    let (_, line) = r.noted(USER, ClientMsg::Jobs(Box::new(q))).unwrap();
    assert!(line.ends_with(",-p -u all -q high 7\n"), "{line}");
    // what is no query is not noted
    let s = Submit { spec: spec("x"), ..Submit::default() };
    assert_eq!(r.noted(USER, ClientMsg::Submit(Box::new(s))), None);
    assert_eq!(r.diagnose(ADMIN, false, "", 0), 0);
    assert_eq!(r.noted(USER, queues("normal")), None);
}

#[test]
fn queries_are_noted_where_and_as_long_as_was_asked_for() {
    let mut r = site(&[("ENABLE_DIAGNOSE", "query"), ("DIAGNOSE_LOGDIR", "/logs")]);
    let file = |r: &mut Rig| r.noted(USER, queues("normal")).map(|n| n.0);
    let usual = Some("/logs/query_info.querylog.h1".to_string());
    assert_eq!(file(&mut r), usual);
    assert_eq!(r.diagnose(ADMIN, false, "", 0), 0);
    assert_eq!(file(&mut r), None, "badmin stands above lsb.params");
    assert_eq!(r.diagnose(ADMIN, true, "mine", 2), 0);
    assert_eq!(file(&mut r).as_deref(), Some("/logs/mine.querylog.h1"));
    r.now.mono_us += 119_000_000;
    assert_eq!(file(&mut r).as_deref(), Some("/logs/mine.querylog.h1"));
    r.now.mono_us += 1_000_000;
    assert_eq!(file(&mut r), usual, "lsb.params again");
    assert_eq!(r.diagnose(ADMIN, true, "/else/where", 0), 0);
    assert_eq!(file(&mut r).as_deref(), Some("/else/where.querylog.h1"));
    for bad in ["a\nb", "/dir/"] {
        assert_eq!(r.diagnose(ADMIN, true, bad, 0), err::BAD_ARG, "{bad:?}");
    }
    // without a directory there is none
    let mut r = site(&[("ENABLE_DIAGNOSE", "query")]);
    assert_eq!(file(&mut r), None);
}
