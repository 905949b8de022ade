//! The server as its callers see it: messages drive the machine, and its files are held here.

use super::{NlbConf, NlbServer, StartFiles, start};
use crate::conf::HostTable;
use crate::lang::nlb::BUILT_IN;
use crate::model::Now;
use crate::proto::lim::{HostFacts, HostLoad, LimMsg, status};
use crate::proto::machine::INCOMING;
use crate::proto::nlb::{
    AttributeValue, NlbEffect, NlbFile, NlbInput, NlbMsg, NlbObjects, NlbOutcome, NlbQuery,
    NlbRanking, NlbReport, NlbStored, SortValue,
};
use crate::proto::{Daemon, Effect, Endpoint, Input, Machine, Msg, Peer};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;

mod access;
mod pieces;
mod reports;

/// A server with its disk.
struct Rig {
    server: NlbServer,
    disk: BTreeMap<&'static str, String>,
    policies: Result<Vec<u8>, String>,
    config: Result<Option<Vec<u8>>, String>,
    /// Writes fail with these words.
    full: Option<String>,
    now: u64,
    callers: u64,
}

/// The connection of an administrator.
const ADMIN: u64 = INCOMING;
/// The connection of a user who is none.
const USER: u64 = INCOMING + 1;

const SECOND: u64 = 1_000_000;

impl Rig {
    fn files(files: &StartFiles) -> Rig {
        let hosts = ["cool", "gust", "hot"];
        let table = HostTable::new(hosts, &["site".to_owned()]);
        let conf = NlbConf {
            host: "cool".into(),
            dir: "/nlbdir".into(),
            admins: vec!["adm".into()],
            servers: hosts.map(str::to_owned).to_vec(),
            hosts: table,
            queue: "normal".into(),
            zone: TimeZone::UTC,
        };
        let begins = start("/nlbdir", files).unwrap();
        let now = Now { mono_us: 100 * SECOND, wall_us: 1_000_000_000_000_000 };
        let mut rig = Rig {
            server: NlbServer::new(conf, begins, now),
            disk: BTreeMap::new(),
            policies: Ok(BUILT_IN.as_bytes().to_vec()),
            config: Ok(files.config.clone()),
            full: None,
            now: 100 * SECOND,
            callers: 2,
        };
        rig.step(Input::Start);
        for (conn, uid, user) in [(ADMIN, 1000, "adm"), (USER, 1001, "ann")] {
            let peer = Peer::User { uid, gid: uid, user: user.into(), host: "cool".into() };
            rig.step(Input::Opened { conn, peer });
        }
        rig
    }

    fn new() -> Rig {
        let policies = Ok(BUILT_IN.as_bytes().to_vec());
        let mut rig = Rig::files(&StartFiles { policies, ..StartFiles::default() });
        rig.wait(5);
        rig
    }

    /// The answers sent while this input, and what follows from it, is processed.
    fn step(&mut self, input: Input) -> Vec<(u64, Msg)> {
        let mut sent = Vec::new();
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let now = Now { mono_us: self.now, wall_us: 999_999_900_000_000 + self.now as i64 };
            let mut out = Vec::new();
            self.server.step(now, input, &mut out);
            for effect in out {
                match effect {
                    Effect::Send { conn, msg } => {
                        let more = msg.goes_on();
                        sent.push((conn, msg));
                        if more {
                            inputs.push(Input::Drained { conn });
                        }
                    }
                    Effect::Connect { conn, to } => {
                        let Endpoint::Tcp { host, .. } = to else { panic!() };
                        let peer = Peer::Daemon { daemon: Daemon::Lim, host };
                        inputs.push(Input::Opened { conn, peer });
                    }
                    Effect::Nlb(NlbEffect::Write { n, files }) => {
                        if self.full.is_none() {
                            self.disk.extend(files.into_iter().map(|(f, text)| (f.name(), text)));
                        }
                        let failed = self.full.clone();
                        inputs.push(Input::Nlb(NlbInput::Written { n, failed }));
                    }
                    Effect::Nlb(NlbEffect::ReadConfig { n }) => {
                        let read = self.config.clone();
                        inputs.push(Input::Nlb(NlbInput::Config { n, read }));
                    }
                    Effect::Nlb(NlbEffect::ReadPolicies { n }) => {
                        let read = self.policies.clone();
                        inputs.push(Input::Nlb(NlbInput::Policies { n, read }));
                    }
                    _ => {}
                }
            }
        }
        sent
    }

    /// The answers to a message.
    fn say(&mut self, conn: u64, msg: NlbMsg) -> Vec<Msg> {
        let sent = self.step(Input::Msg { conn, msg: Msg::Nlb(msg) });
        sent.into_iter().filter(|(to, _)| *to == conn).map(|(_, msg)| msg).collect()
    }

    fn text(&mut self, msg: NlbMsg) -> String {
        let pieces = self.say(USER, msg);
        let text = pieces.into_iter().map(|m| match m {
            Msg::Nlb(NlbMsg::Text { text, .. }) => text,
            other => panic!("{other:?}"),
        });
        text.collect()
    }

    fn change(&mut self, msg: NlbMsg) -> NlbOutcome {
        match self.say(ADMIN, msg).pop() {
            Some(Msg::Nlb(NlbMsg::Outcome(outcome))) => outcome,
            other => panic!("{other:?}"),
        }
    }

    fn put(&mut self, text: &str) -> NlbOutcome {
        self.change(NlbMsg::Put(file("obj_defs", text)))
    }

    fn put_map(&mut self, further: &str, of: &str) -> NlbOutcome {
        let text = self.text(NlbMsg::Map { object_type: of.into() });
        let text = text.replacen("{\n", &format!("{{ {further}\n"), 1);
        self.change(NlbMsg::MapPut(file("name_map", &text)))
    }

    fn read_policies(&mut self, text: &str) -> NlbOutcome {
        self.policies = Ok(text.as_bytes().to_vec());
        self.change(NlbMsg::Reload)
    }

    fn query(&mut self, query: NlbQuery) -> NlbRanking {
        match self.say(USER, NlbMsg::Query(query)).into_iter().next() {
            Some(Msg::Nlb(NlbMsg::Ranked(ranking))) => ranking,
            other => panic!("{other:?}"),
        }
    }

    /// The hosts that a policy chooses, with their values.
    fn hosts(&mut self, policy: &str) -> Vec<String> {
        let ranking = self.query(NlbQuery { policy: policy.into(), ..NlbQuery::default() });
        ranking.rows.iter().map(|r| format!("{} {:?}", r.host, r.value)).collect()
    }

    fn wait(&mut self, secs: u64) -> Vec<(u64, Msg)> {
        self.now += secs * SECOND;
        self.step(Input::Tick)
    }

    /// The master LIM reports.
    fn loads(&mut self, hosts: Vec<HostLoad>) -> Vec<(u64, Msg)> {
        // this host's LIM is connection 1, the master's the next
        let master = Msg::Lim(LimMsg::Master { cluster: "c".into(), master: "cool".into() });
        self.step(Input::Msg { conn: 1, msg: master });
        self.step(Input::Msg { conn: 2, msg: Msg::Lim(LimMsg::Loads { hosts }) })
    }

    /// A new connection of a user.
    fn caller(&mut self) -> u64 {
        self.callers += 1;
        let conn = INCOMING + self.callers;
        let peer = Peer::User { uid: 1002, gid: 1, user: "bob".into(), host: "hot".into() };
        self.step(Input::Opened { conn, peer });
        conn
    }
}

fn file(name: &str, text: &str) -> NlbFile {
    NlbFile { name: name.into(), text: text.into(), ..NlbFile::default() }
}

fn load(host: &str, ut: f32) -> HostLoad {
    let facts = HostFacts {
        host_type: "LINUX".into(),
        model: "INTEL".into(),
        ncpus: 4,
        max_mem: 8_000,
        max_swp: 500,
        server: true,
        resources: vec![("fs".into(), None), ("speed".into(), Some("7".into()))],
        ..HostFacts::default()
    };
    HostLoad {
        host: host.into(),
        index: [0.5, 0.0, 0.0, ut, 2.0, 30.0, 0.0, 9.0, 700.0, 400.0, 6_000.0],
        external: vec![("scratch".into(), "12".into())],
        facts: Some(facts),
        ..HostLoad::default()
    }
}

#[test]
fn the_example_of_the_manual_for_cpu_normalisation_holds_word_by_word() {
    let mut rig = Rig::new();
    rig.loads(vec![load("cool", 0.5), load("gust", 0.1), load("hot", 0.0)]);
    let map = "NLB_SITE_CPUNORM \"CPU Normalization Factor\" integer(1000);";
    let outcome = rig.put_map(map, "NLB");
    assert!(outcome.taken, "{outcome:?}");
    let place = outcome.lines[0].rsplit_once(": <").unwrap().1;
    assert_eq!(place, "NLB_SITE_CPUNORM> integer(1000): numbers below 8192 are reserved");
    let objects = "object NLB (cool) { NLB_SITE_CPUNORM = 1000; } object NLB (hot.site) { NLB_SITE_CPUNORM = 1; }";
    assert_eq!(rig.put(objects), NlbOutcome { taken: true, ..NlbOutcome::default() });
    let policy = "policy: idlecpu sort: NLB_IDLECPU * NLB_SITE_CPUNORM";
    assert!(rig.read_policies(policy).taken);
    assert_eq!(rig.hosts("idlecpu"), ["cool Number(50000.0)", "hot Number(100.0)", "gust Missing"]);
    let stored = "object NLB (cool) {\n\tinteger(1000) = 1000;  # NLB_SITE_CPUNORM\n}\n\
                  object NLB (hot) {\n\tinteger(1000) = 1;  # NLB_SITE_CPUNORM\n}\n";
    assert_eq!(rig.disk["objects"], stored);
    assert_eq!(rig.disk["policies.last"], policy);
    // a server that begins with these files answers the same
    let bytes = |name: &str| Some(rig.disk[name].clone().into_bytes());
    let files = StartFiles {
        name_map: bytes("name_map"),
        objects: bytes("objects"),
        policies: Ok(policy.into()),
        ..StartFiles::default()
    };
    let mut again = Rig::files(&files);
    again.loads(vec![load("cool", 0.5), load("gust", 0.1), load("hot", 0.0)]);
    assert_eq!(again.hosts(""), ["cool Number(50000.0)", "hot Number(100.0)", "gust Missing"]);
}

#[test]
fn packages_are_asked_for_by_the_request_as_the_manual_shows_it() {
    let mut rig = Rig::new();
    let job = "job_nastran \"Job requires nastran\" integer(8192); job_oracle \"\" integer(8193);";
    let host =
        "host_nastran \"Host supports nastran\" integer(8192); host_oracle \"\" integer(8193);";
    assert!(rig.put_map(job, "NLB_JOB").taken);
    assert!(rig.put_map(host, "NLB").taken);
    assert!(
        rig.put("object NLB (cool) { host_nastran = 1; } object NLB (gust) { host_oracle = 1; }")
            .taken
    );
    let policy = "policy: a constraint: exists(job_nastran) => exists(host_nastran) \
                  constraint: exists(job_oracle) => exists(host_oracle)";
    assert!(rig.read_policies(policy).taken);
    let mut ask = |names: &[&str]| {
        let one = |n: &&str| ((*n).to_owned(), AttributeValue::Number(1.0));
        let attributes = names.iter().map(one).collect();
        let r = rig.query(NlbQuery { attributes, ..NlbQuery::default() });
        (r.rows.iter().map(|r| r.host.to_string()).collect::<Vec<_>>(), r.dropped, r.used)
    };
    let used = vec!["JOB_NASTRAN".to_owned(), "JOB_ORACLE".to_owned()];
    assert_eq!(ask(&[]), (vec!["cool".into(), "gust".into()], vec![], used.clone()));
    assert_eq!(ask(&["JOB_NASTRAN"]), (vec!["cool".into()], vec![], used.clone()));
    assert_eq!(ask(&["JOB_NASTRAN", "JOB_ORACLE"]), (vec![], vec![], used.clone()));
    let nosuch = ask(&["JOB_NOSUCH"]);
    assert_eq!((nosuch.0.len(), nosuch.1), (2, vec!["JOB_NOSUCH".to_owned()]));
}

#[test]
fn hosts_without_a_collector_are_fed_from_lim() {
    let mut rig = Rig::new();
    rig.put_map(
        "NLB_LIM_scratch \"\" float(8200); NLB_LIM_FS \"\" integer(8201); \
                 NLB_LIM_SPEED \"\" string(8202); NLB_LIM_UT \"\" float(8203);",
        "NLB",
    );
    rig.loads(vec![load("cool", 0.25), HostLoad { status: status::UNAVAIL, ..load("gust", 0.0) }]);
    rig.now += 10 * SECOND;
    rig.loads(vec![HostLoad { facts: None, status: status::LOCK_U, ..load("cool", 0.75) }]);
    rig.now += 7 * SECOND;
    assert_eq!(rig.hosts(""), ["cool Number(50.0)"]);
    let dump = rig.text(NlbMsg::Dump(NlbObjects {
        object_type: "nlb".into(),
        names: vec!["COOL.site".into()],
    }));
    let has = |line: &str| assert!(dump.contains(&format!("\n\t{line}")), "{line} in {dump}");
    let lines = [
        "NLB_LIM_scratch = 12.0;",
        "NLB_LIM_FS = 1;",
        "NLB_LIM_SPEED = \"7\";",
        "NLB_LIM_UT = 0.75;",
        "NLB_OSNAME = \"Linux\";",
        "NLB_HARDWARE = \"LINUX INTEL\";",
        "NLB_QUEUE_NAME = \"normal\";",
        "NLB_TMPNAME = \"/tmp\";",
        "NLB_IDLECPU = 25.0;",
        "NLB_A_IDLECPU = 50.0;",
        "NLB_POLICY = 50.0;",
        "NLB_RUNQLEN = 0.5;",
        "NLB_SWAPPING = 8.0;",
        "NLB_PHYSMEM = 8192000;",
        "NLB_FREEMEM = 6144000;",
        "NLB_NCPUS = 4;",
        "NLB_FREETMP = 700;",
        "NLB_KEYIDLE = 9;",
        "NLB_SWAPSIZE = 500;",
        "NLB_SWAPFREE = 400;",
        "NLB_IOTOTAL = 30;",
        "NLB_NQS_UP = 0;",
        "NLB_HOST = \"cool\";",
        "NLB_TIMESTAMP = 1000000015;  # Sun Sep  9 01:46:55 2001",
    ];
    lines.iter().for_each(|l| has(l));
    assert!(!dump.contains("NLB_SYSCPU"), "{dump}");
    // who is silent grows old
    rig.now += 300 * SECOND;
    assert_eq!(rig.hosts("nqs"), Vec::<String>::new());
}

#[test]
fn a_value_of_an_administrator_goes_before_that_of_lim_whoever_wrote_last() {
    let mut rig = Rig::new();
    rig.read_policies("policy: cpus sort: NLB_NCPUS");
    rig.put("object NLB (gust) { NLB_NCPUS = 99; }");
    rig.loads(vec![load("cool", 0.0), load("gust", 0.0)]);
    assert_eq!(rig.hosts(""), ["gust Number(99.0)", "cool Number(4.0)"]);
    let replace =
        NlbFile { replace: true, ..file("obj_defs", "object NLB (gust) { NLB_CLOCK = 1; }") };
    assert!(rig.change(NlbMsg::Put(replace)).taken);
    assert_eq!(rig.hosts(""), ["cool Number(4.0)", "gust Number(4.0)"]);
}

#[test]
fn a_bad_policies_file_changes_nothing_and_says_what_stays_in_force() {
    let mut rig = Rig::new();
    rig.put("object NLB (a) { } object NLB (b) { }");
    rig.read_policies("policy: day sort: 1 count: 1");
    let before = rig.query(NlbQuery::default());
    let outcome = rig.read_policies("policy: night\n\n\n\n\n\nconstraint: NLB_FREEMEN > 1");
    assert_eq!(
        outcome,
        NlbOutcome {
            taken: false,
            lines: vec![
                "/nlbdir/policies:7:13: no attribute <NLB_FREEMEN> in the maps of NLB and \
                         NLB_JOB; did you mean <NLB_FREEMEM>?"
                    .into()
            ],
            words: "policies not taken; those read at Sun Sep  9 01:46:45 2001 stay in force"
                .into(),
        }
    );
    rig.policies = Err("Permission denied".into());
    let outcome = rig.change(NlbMsg::Reload);
    assert_eq!(outcome.lines, ["/nlbdir/policies: Permission denied"]);
    rig.full = Some("/nlbdir/policies.last: No space left on device".into());
    let outcome = rig.read_policies("policy: night");
    assert_eq!(outcome.lines, ["/nlbdir/policies.last: No space left on device"]);
    assert!(!outcome.taken);
    assert_eq!(rig.query(NlbQuery::default()), before);
    assert_eq!(rig.disk["policies.last"], "policy: day sort: 1 count: 1");
    rig.full = None;
    assert!(rig.read_policies("policy: night").taken);
    let after = rig.query(NlbQuery { policy: "day".into(), ..NlbQuery::default() });
    assert_eq!((after.policy.as_str(), after.unknown, after.rows.len()), ("night", true, 2));
    assert!(after.generation > before.generation);
}

#[test]
fn a_change_that_cannot_be_stored_changes_nothing() {
    let mut rig = Rig::new();
    rig.put("object NLB (a) { NLB_CLOCK = 1; }");
    rig.full = Some("/nlbdir/objects: No space left on device".into());
    let outcome = rig.put("object NLB (b) { }");
    assert_eq!(outcome.lines, ["/nlbdir/objects: No space left on device"]);
    assert!(!outcome.taken);
    let gone = NlbObjects { object_type: "NLB".into(), names: vec!["a".into()] };
    assert!(!rig.change(NlbMsg::Delete(gone.clone())).taken);
    assert!(!rig.put_map("X \"\" float(9000);", "NLB").taken);
    assert_eq!(rig.text(NlbMsg::List(NlbObjects::default())), "object NLB (a)\n");
    assert!(!rig.text(NlbMsg::Map { object_type: "NLB".into() }).contains("float(9000)"));
    rig.full = None;
    assert!(rig.change(NlbMsg::Delete(gone.clone())).taken);
    assert_eq!(rig.text(NlbMsg::List(NlbObjects::default())), "");
    assert_eq!(rig.disk["objects"], "");
    assert_eq!(rig.change(NlbMsg::Delete(gone)).lines, ["no object <a>"]);
}

#[test]
fn a_map_without_an_attribute_that_runs_is_refused_and_a_renamed_type_of_number_acts() {
    let mut rig = Rig::new();
    let bare = "map NLB = 1024 { NLB_QUEUE_NAME \"\" string(5); }";
    let outcome = rig.change(NlbMsg::MapPut(file("name_map", bare)));
    assert!(!outcome.taken);
    let words = "name_map: attribute <NLB_A_IDLECPU> is used by policy <nqs> (/nlbdir/policies:5:7); \
                 change the policies first";
    assert_eq!(outcome.lines.last().unwrap(), words);
    // the same name with another number: the running policy follows it
    let moved = "map NLB = 1024 { NLB_QUEUE_NAME \"\" string(5); NLB_A_IDLECPU \"\" float(9000); }";
    assert!(rig.change(NlbMsg::MapPut(file("name_map", moved))).taken);
    rig.put("object NLB (cool) { float(9000) = 7.5; }");
    rig.loads(vec![load("cool", 0.0)]);
    assert_eq!(rig.hosts(""), ["cool Number(7.5)"]);
}

/// The rows of permissions.txt that are ours, each in the roles that there are here.
#[test]
fn the_matrix_of_message_and_role() {
    let rows =
        include_str!("../batch/site/permissions.txt").lines().filter(|l| l.starts_with("Nlb."));
    let rows: Vec<Vec<&str>> = rows.map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 13);
    let which = || NlbObjects { object_type: "NLB".into(), names: Vec::new() };
    let message = |name: &str| match name {
        "Nlb.Query" => NlbMsg::Query(NlbQuery::default()),
        "Nlb.Map" => NlbMsg::Map { object_type: String::new() },
        "Nlb.List" => NlbMsg::List(which()),
        "Nlb.Dump" => NlbMsg::Dump(which()),
        "Nlb.Status" => NlbMsg::Status,
        "Nlb.Watch" => NlbMsg::Watch,
        "Nlb.Report" => NlbMsg::Report(NlbReport::default()),
        "Nlb.Check" => NlbMsg::Check(file("f", "policy: a")),
        "Nlb.Conf" => NlbMsg::Conf,
        "Nlb.Reload" => NlbMsg::Reload,
        "Nlb.MapPut" => NlbMsg::MapPut(file("m", "map A = 5 { }")),
        "Nlb.Put" => NlbMsg::Put(file("o", "object NLB (a) { }")),
        "Nlb.Delete" => NlbMsg::Delete(which()),
        other => panic!("no message {other}"),
    };
    for row in &rows {
        let root = INCOMING + 90;
        for (conn, want) in [(USER, row[1]), (ADMIN, row[4]), (root, row[5])] {
            let mut rig = Rig::new();
            let peer = Peer::User { uid: 0, gid: 0, user: "root".into(), host: "hot".into() };
            rig.step(Input::Opened { conn: root, peer });
            let answers = rig.say(conn, message(row[0]));
            let refused = matches!(answers.as_slice(), [Msg::Refused(_)]);
            assert_eq!(refused, want == "-", "{row:?}: {answers:?}");
        }
    }
}

#[test]
fn a_user_outside_the_master_list_reads_and_changes_nothing() {
    let mut rig = Rig::new();
    let changes = [
        NlbMsg::Reload,
        NlbMsg::MapPut(file("m", "map A = 5 { }")),
        NlbMsg::Put(file("o", "object NLB (a) { }")),
        NlbMsg::Delete(NlbObjects { object_type: "NLB".into(), names: vec!["a".into()] }),
    ];
    let words = "User permission denied: <ann> is not in the master list of the NLB server on <cool> \
                 (root and the administrators of the cluster)";
    for msg in changes {
        let answers = rig.say(USER, msg.clone());
        let [Msg::Refused(refusal)] = answers.as_slice() else { panic!("{msg:?}: {answers:?}") };
        assert_eq!(refusal.words(), words);
    }
    assert!(rig.disk.is_empty());
    let root = INCOMING + 90;
    let peer = Peer::User { uid: 0, gid: 0, user: "root".into(), host: "hot".into() };
    rig.step(Input::Opened { conn: root, peer });
    let answers = rig.say(root, NlbMsg::Reload);
    assert!(matches!(answers.as_slice(), [Msg::Nlb(NlbMsg::Outcome(o))] if o.taken));
    let daemon = INCOMING + 91;
    let peer = Peer::Daemon { daemon: Daemon::Mbatchd, host: "hot".into() };
    rig.step(Input::Opened { conn: daemon, peer });
    assert!(matches!(rig.say(daemon, NlbMsg::Reload).as_slice(), [Msg::Refused(_)]));
    assert_eq!(rig.say(daemon, NlbMsg::Query(NlbQuery::default())).len(), 1);
}

#[test]
fn files_are_checked_against_the_maps_and_nothing_is_taken() {
    let mut rig = Rig::new();
    let mut check = |text: &str| {
        let answers = rig.say(USER, NlbMsg::Check(file("f", text)));
        let [Msg::Nlb(NlbMsg::Outcome(o))] = answers.as_slice() else { panic!("{answers:?}") };
        (o.taken, o.lines.clone(), o.words.clone())
    };
    let good = |words: &str| (true, vec![], words.to_owned());
    assert_eq!(check("policy: b\npolicy: c"), good("2 policies, the default is <b>"));
    assert_eq!(check("# one\nobject NLB (x) { }"), good("1 object"));
    assert_eq!(check("map A = 5 { }"), good("4 name maps, those of the server included"));
    assert_eq!(
        check("policy: b sort: x").1,
        ["f:1:17: no attribute <x> in the maps of NLB and NLB_JOB"]
    );
    assert!(!check("object NLB (x) { y = 1; }").0);
    assert!(rig.disk.is_empty());
    assert_eq!(rig.text(NlbMsg::List(NlbObjects::default())), "");
}

#[test]
fn queries_wait_for_the_first_reports_and_no_longer_than_five_seconds() {
    let files = || StartFiles { policies: Ok(BUILT_IN.into()), ..StartFiles::default() };
    let all = || vec![load("cool", 0.0), load("gust", 0.0), load("hot", 0.0)];
    let mut rig = Rig::files(&files());
    assert_eq!(rig.say(USER, NlbMsg::Query(NlbQuery::default())).len(), 0);
    rig.loads(vec![load("cool", 0.0)]);
    let sent = rig.loads(all());
    assert!(matches!(&sent[..], [(USER, Msg::Nlb(NlbMsg::Ranked(r)))] if r.rows.len() == 3));
    let mut rig = Rig::files(&files());
    assert_eq!(rig.say(USER, NlbMsg::Query(NlbQuery::default())).len(), 0);
    assert_eq!(rig.server.deadline(), Some(105 * SECOND));
    assert_eq!(rig.wait(4).len(), 0);
    assert_eq!(rig.wait(1).len(), 1);
    let mut rig = Rig::files(&files());
    let busy = (0..70).filter(|_| !rig.say(USER, NlbMsg::Query(NlbQuery::default())).is_empty());
    assert_eq!(busy.count(), 6);
    let gone = rig.caller();
    rig.say(gone, NlbMsg::Query(NlbQuery::default()));
    rig.step(Input::Closed { conn: gone });
    assert_eq!(rig.wait(5).len(), 64);
}

#[test]
fn long_answers_come_in_pieces_and_read_as_one() {
    let mut rig = Rig::new();
    let name = |n: usize| format!("host{n:05}");
    let objects: String = (0..5_000).map(|n| format!("object NLB ({}) {{ }}\n", name(n))).collect();
    assert!(rig.put(&objects).taken);
    rig.read_policies("policy: all");
    let query = NlbQuery { objects: true, count: 4_500, ..NlbQuery::default() };
    let answers = rig.say(USER, NlbMsg::Query(query));
    let (mut rows, mut text) = (Vec::new(), String::new());
    for (n, msg) in answers.iter().enumerate() {
        assert_eq!(msg.goes_on(), n + 1 < answers.len());
        match msg {
            Msg::Nlb(NlbMsg::Ranked(r)) => rows.extend(r.rows.iter().map(|r| r.host.to_string())),
            Msg::Nlb(NlbMsg::Text { text: piece, .. }) => text.push_str(piece),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(rows, (0..4_500).map(name).collect::<Vec<_>>());
    assert_eq!(text.matches("object NLB (").count(), 4_500);
    assert!(answers.len() >= 4);
    assert_eq!(rig.text(NlbMsg::List(NlbObjects::default())).lines().count(), 5_000);
}

#[test]
fn hosts_of_a_query_are_cut_to_the_acceptable_ones_and_the_count() {
    let mut rig = Rig::new();
    rig.read_policies("policy: a sort: NLB_CLOCK count: 2");
    rig.put("object NLB (a) { NLB_CLOCK = 1; } object NLB (b) { NLB_CLOCK = 2; } object NLB (c) { NLB_CLOCK = 3; } \
             object NLB (cool) { NLB_CLOCK = 0; }");
    let mut ask = |hosts: &[&str], count| {
        let hosts = hosts.iter().map(|h| (*h).to_owned()).collect();
        let r = rig.query(NlbQuery { hosts, count, ..NlbQuery::default() });
        (r.rows.into_iter().map(|r| r.host.to_string()).collect::<Vec<_>>(), r.strangers)
    };
    assert_eq!(ask(&[], 0).0, ["c", "b"]);
    assert_eq!(ask(&[], 1).0, ["c"]);
    assert_eq!(ask(&[], 9).0, ["c", "b"]);
    assert_eq!(
        ask(&["A", "cool.site", "zz"], 0),
        (vec!["a".into(), "cool".into()], vec!["zz".into()])
    );
    assert_eq!(ask(&["zz"], 0).0, Vec::<String>::new());
    let many = NlbQuery { hosts: vec!["x".into(); 4_097], ..NlbQuery::default() };
    assert!(matches!(rig.say(USER, NlbMsg::Query(many)).as_slice(), [Msg::Refused(_)]));
}

#[test]
fn damaged_files_hinder_a_start_and_bad_policies_do_not() {
    let good = || StartFiles { policies: Ok(BUILT_IN.into()), ..StartFiles::default() };
    let bad = |files: StartFiles| start("/d", &files).unwrap_err();
    let faults = bad(StartFiles { name_map: Some(b"map NLB".to_vec()), ..good() });
    assert_eq!(
        faults,
        [
            "/d/name_map:1:8: <=> is wanted before the end of the file",
            "put back name_map.prev, or take the file away for the default map",
        ]
    );
    let faults =
        bad(StartFiles { objects: Some(b"object NLB (x) {\n y = 1; }".to_vec()), ..good() });
    assert_eq!(
        faults,
        [
            "/d/objects:2:2: no attribute <y> in the map of NLB",
            "put back objects.prev, or take the file away",
        ]
    );
    let names = |policies: Result<Vec<u8>, String>, last: Option<Vec<u8>>| {
        let mut rig = Rig::files(&StartFiles { policies, last, ..StartFiles::default() });
        rig.wait(5);
        let status = rig.text(NlbMsg::Status);
        status.lines().find_map(|l| l.strip_prefix("POLICIES: ")).unwrap().to_owned()
    };
    assert_eq!(names(Ok(b"policy: a policy: b".to_vec()), None), "a b");
    assert_eq!(names(Ok(b"policy: a sort: x".to_vec()), Some(b"policy: last".to_vec())), "last");
    assert_eq!(names(Ok(b"policy: a sort: x".to_vec()), None), "nqs");
    assert_eq!(names(Err("gone".into()), Some(b"policy: last".to_vec())), "last");
    assert_eq!(names(Err("gone".into()), Some(b"poli".to_vec())), "nqs");
}

#[test]
fn policies_accepted_at_a_start_are_kept_as_the_last_ones() {
    let new = |policies: Result<Vec<u8>, String>, last: Option<&str>| {
        let last = last.map(|text| text.as_bytes().to_vec());
        let files = StartFiles { policies, last, ..StartFiles::default() };
        let begins = start("/d", &files).unwrap();
        begins.new_policies.then(|| begins.policies_text().to_owned())
    };
    let good = || Ok(b"policy: a".to_vec());
    assert_eq!(new(good(), None).as_deref(), Some("policy: a"));
    assert_eq!(new(good(), Some("policy: b")).as_deref(), Some("policy: a"));
    assert_eq!(new(good(), Some("policy: a")), None);
    assert_eq!(new(Ok(b"policy: a sort: x".to_vec()), Some("policy: b")), None);
    assert_eq!(new(Err("gone".into()), Some("policy: b")), None);
    assert_eq!(new(Err("gone".into()), None), None);
}

#[test]
fn an_infinite_sort_value_is_sent_as_such() {
    let mut rig = Rig::new();
    rig.read_policies("policy: a sort: 1 / NLB_CLOCK");
    rig.put(
        "object NLB (a) { NLB_CLOCK = 0; } object NLB (b) { NLB_CLOCK = 2; } object NLB (c) { }",
    );
    let r = rig.query(NlbQuery::default());
    let values: Vec<_> = r.rows.iter().map(|r| r.value).collect();
    assert_eq!(values, [SortValue::Infinity, SortValue::Number(0.5), SortValue::Missing]);
    assert!(rig.disk.contains_key(NlbStored::Objects.name()));
}
