//! Pins the JSON of every message. An old bsub lives on inside a running job: what changes here
//! changes what it may still say, so a change of golden.txt goes with a new protocol version or is
//! an addition that old readers pass over. `LSF_GOLDEN=write cargo test golden` writes the file.

use super::client::*;
use super::dependency::*;
use super::golden_pam::{PAM_VARIANTS, pam_name, pam_samples};
use super::host_command::{HostCommandState, HostWork};
use super::job_group::*;
use super::job_message::*;
use super::launch::*;
use super::lim::*;
use super::limit_rows::*;
use super::member::{MemberMsg, Membership, ProcessLook};
use super::nlb::*;
use super::res::*;
use super::reservation::*;
use super::sbd::*;
use super::validation::{Validate, Verdict};
use super::{Daemon, Msg, Refusal};
use crate::model::job::{End, JobSpec, Limits, SpoolRef, Usage};
use crate::model::specfield::SpecField;
use crate::model::{ByteStr, JobKey, JobRef};

const GOLDEN: &str = include_str!("golden.txt");

/// Names every variant; a new one does not compile before it has a name, and the test fails
/// before it has a sample.
fn name(msg: &Msg) -> &'static str {
    match msg {
        Msg::Client(m) => client_name(m),
        Msg::Sbd(m) => sbd_name(m),
        Msg::Launch(m) => launch_name(m),
        Msg::Lim(m) => lim_name(m),
        Msg::Member(MemberMsg::Ask { .. }) => "Member.Ask",
        Msg::Member(MemberMsg::Told(_)) => "Member.Told",
        Msg::Member(MemberMsg::Unknown { .. }) => "Member.Unknown",
        Msg::Member(MemberMsg::Look(_)) => "Member.Look",
        Msg::Member(MemberMsg::Looked { .. }) => "Member.Looked",
        Msg::Res(m) => res_name(m),
        Msg::Nlb(m) => nlb_name(m),
        Msg::Pam(m) => pam_name(m),
        Msg::Data(_) => "Data",
        Msg::Refused(_) => "Refused",
        Msg::Ping { .. } => "Ping",
        Msg::Pong { .. } => "Pong",
    }
}

/// Number of variants of `NlbMsg`, beside those of all other enums.
const NLB_VARIANTS: usize = 18;

fn nlb_name(m: &NlbMsg) -> &'static str {
    match m {
        NlbMsg::Query(_) => "Nlb.Query",
        NlbMsg::Ranked(_) => "Nlb.Ranked",
        NlbMsg::Map { .. } => "Nlb.Map",
        NlbMsg::List(_) => "Nlb.List",
        NlbMsg::Dump(_) => "Nlb.Dump",
        NlbMsg::Status => "Nlb.Status",
        NlbMsg::Text { .. } => "Nlb.Text",
        NlbMsg::Reload => "Nlb.Reload",
        NlbMsg::Conf => "Nlb.Conf",
        NlbMsg::MapPut(_) => "Nlb.MapPut",
        NlbMsg::Put(_) => "Nlb.Put",
        NlbMsg::Delete(_) => "Nlb.Delete",
        NlbMsg::Check(_) => "Nlb.Check",
        NlbMsg::Outcome(_) => "Nlb.Outcome",
        NlbMsg::Watch => "Nlb.Watch",
        NlbMsg::Watched { .. } => "Nlb.Watched",
        NlbMsg::Report(_) => "Nlb.Report",
        NlbMsg::Reported { .. } => "Nlb.Reported",
    }
}

fn nlb_samples() -> Vec<NlbMsg> {
    let s = String::from;
    let file = NlbFile {
        name: s("obj_defs"),
        text: s("object NLB (h1) { }"),
        object_type: s("NLB"),
        replace: true,
    };
    let which = NlbObjects { object_type: s("NLB"), names: vec![s("h1")] };
    let values = [
        (s("JOB_PRMEMSIZE"), AttributeValue::Number(1.5)),
        (s("JOB_REQNAME"), AttributeValue::Text(s("a"))),
    ];
    let query = NlbQuery {
        policy: s("nqs"),
        attributes: values.to_vec(),
        hosts: vec![s("h1")],
        count: 2,
        objects: true,
    };
    let row = |value| NlbRow { host: "h1".into(), value, queue: Some("q".into()) };
    let all =
        [SortValue::Number(0.5), SortValue::Infinity, SortValue::MinusInfinity, SortValue::Missing];
    let ranking = NlbRanking {
        policy: s("nqs"),
        unknown: true,
        generation: 7,
        used: vec![s("JOB_REQNAME")],
        dropped: vec![s("JOB_X")],
        strangers: vec![s("h2")],
        rows: all.map(row).to_vec(),
        more: true,
    };
    let values = vec![
        (1, ReportedValue::Float(0.5)),
        (2, ReportedValue::Integer(3)),
        (5, ReportedValue::Text(s("q"))),
    ];
    let custom =
        ReportedObject { object_type: 1024, name: s("h1"), values: vec![values[1].clone()] };
    let report = NlbReport { interval: 30, collector: values, custom: vec![custom] };
    let outcome = NlbOutcome { taken: true, lines: vec![s("f:1:1: x")], words: s("kept") };
    vec![
        NlbMsg::Query(query),
        NlbMsg::Ranked(ranking),
        NlbMsg::Map { object_type: s("NLB") },
        NlbMsg::List(which.clone()),
        NlbMsg::Dump(which.clone()),
        NlbMsg::Status,
        NlbMsg::Text { text: s("map"), more: true },
        NlbMsg::Reload,
        NlbMsg::Conf,
        NlbMsg::MapPut(file.clone()),
        NlbMsg::Put(file.clone()),
        NlbMsg::Delete(which),
        NlbMsg::Check(file),
        NlbMsg::Outcome(outcome),
        NlbMsg::Watch,
        NlbMsg::Watched { generation: 7, policies: vec![s("nqs")], attributes: vec![] },
        NlbMsg::Report(report),
        NlbMsg::Reported { map: 7 },
    ]
}

fn res_name(m: &ResMsg) -> &'static str {
    match m {
        ResMsg::Run(_) => "Res.Run",
        ResMsg::Signal { .. } => "Res.Signal",
        ResMsg::Resize { .. } => "Res.Resize",
        ResMsg::Credit { .. } => "Res.Credit",
        ResMsg::Close { .. } => "Res.Close",
        ResMsg::Log { .. } => "Res.Log",
        ResMsg::Logging(_) => "Res.Logging",
        ResMsg::Join { .. } => "Res.Join",
        ResMsg::Joined => "Res.Joined",
        ResMsg::Resume { .. } => "Res.Resume",
        ResMsg::Kept { .. } => "Res.Kept",
        ResMsg::Resumed(_) => "Res.Resumed",
        ResMsg::Done => "Res.Done",
        ResMsg::Started { .. } => "Res.Started",
        ResMsg::Stopped => "Res.Stopped",
        ResMsg::Ended { .. } => "Res.Ended",
        ResMsg::Adopt(_) => "Res.Adopt",
        ResMsg::Ending(_) => "Res.Ending",
        ResMsg::Adopted { .. } => "Res.Adopted",
    }
}

fn client_name(m: &ClientMsg) -> &'static str {
    match m {
        ClientMsg::Submit(_) => "Client.Submit",
        ClientMsg::Submitted { .. } => "Client.Submitted",
        ClientMsg::Control(_) => "Client.Control",
        ClientMsg::Controlled { .. } => "Client.Controlled",
        ClientMsg::Jobs(_) => "Client.Jobs",
        ClientMsg::Queues { .. } => "Client.Queues",
        ClientMsg::QueueRows { .. } => "Client.QueueRows",
        ClientMsg::Partitions { .. } => "Client.Partitions",
        ClientMsg::PartitionRows { .. } => "Client.PartitionRows",
        ClientMsg::Applications { .. } => "Client.Applications",
        ClientMsg::ApplicationRows { .. } => "Client.ApplicationRows",
        ClientMsg::Limits(_) => "Client.Limits",
        ClientMsg::LimitRows(_) => "Client.LimitRows",
        ClientMsg::Hosts { .. } => "Client.Hosts",
        ClientMsg::HostRows { .. } => "Client.HostRows",
        ClientMsg::Rows { .. } => "Client.Rows",
        ClientMsg::Wait(_) => "Client.Wait",
        ClientMsg::Waited(_) => "Client.Waited",
        ClientMsg::Admin(_) => "Client.Admin",
        ClientMsg::AdminDone { .. } => "Client.AdminDone",
        ClientMsg::Modify(_) => "Client.Modify",
        ClientMsg::Peek(_) => "Client.Peek",
        ClientMsg::Peeked(_) => "Client.Peeked",
        ClientMsg::Stored { .. } => "Client.Stored",
        ClientMsg::Users { .. } => "Client.Users",
        ClientMsg::UserRows { .. } => "Client.UserRows",
        ClientMsg::Slots { .. } => "Client.Slots",
        ClientMsg::SlotRows { .. } => "Client.SlotRows",
        ClientMsg::Groups { .. } => "Client.Groups",
        ClientMsg::GroupRows { .. } => "Client.GroupRows",
        ClientMsg::Params => "Client.Params",
        ClientMsg::Message(_) => "Client.Message",
        ClientMsg::Messages(_) => "Client.Messages",
        ClientMsg::Dependencies(_) => "Client.Dependencies",
        ClientMsg::DependencyRows(_) => "Client.DependencyRows",
        ClientMsg::JobGroup(_) => "Client.JobGroup",
        ClientMsg::JobGroups(_) => "Client.JobGroups",
        ClientMsg::Reservation(_) => "Client.Reservation",
        ClientMsg::Reservations(_) => "Client.Reservations",
        ClientMsg::ReservationPolicies(_) => "Client.ReservationPolicies",
        ClientMsg::ParamRows { .. } => "Client.ParamRows",
    }
}

fn limit_query() -> LimitQuery {
    LimitQuery { names: vec!["few".into()], users: vec!["ann".into()], ..LimitQuery::default() }
}

fn limit_rows() -> LimitListing {
    let params = vec![("NAME".into(), "few".into()), ("SLOTS".into(), "3".into())];
    let slots = LimitedUse { what: "SLOTS".into(), external: false, used: 1.0, limit: 3.0 };
    let amounts = vec![slots];
    LimitListing {
        limits: vec![LimitInfo { name: "few".into(), params }],
        rows: vec![LimitUsage { name: "few".into(), amounts, ..LimitUsage::default() }],
        reservation_usage: vec![("lic".into(), "PER_JOB".into(), "Y".into())],
        pools: vec![PoolInfo { members: vec![PoolMember::default()], ..PoolInfo::default() }],
        service_classes: vec![ServiceClassInfo::default()],
    }
}

fn sbd_name(m: &SbdMsg) -> &'static str {
    match m {
        SbdMsg::Hello { .. } => "Sbd.Hello",
        SbdMsg::Start(_) => "Sbd.Start",
        SbdMsg::Blob { .. } => "Sbd.Blob",
        SbdMsg::Act { .. } => "Sbd.Act",
        SbdMsg::Forget { .. } => "Sbd.Forget",
        SbdMsg::Join(_) => "Sbd.Join",
        SbdMsg::Leave { .. } => "Sbd.Leave",
        SbdMsg::Joined { .. } => "Sbd.Joined",
        SbdMsg::JoinRefused { .. } => "Sbd.JoinRefused",
        SbdMsg::Left { .. } => "Sbd.Left",
        SbdMsg::HostUsage { .. } => "Sbd.HostUsage",
        SbdMsg::TaskGone { .. } => "Sbd.TaskGone",
        SbdMsg::AskUsage { .. } => "Sbd.AskUsage",
        SbdMsg::UsageTold { .. } => "Sbd.UsageTold",
        SbdMsg::Params(_) => "Sbd.Params",
        SbdMsg::Logging(_) => "Sbd.Logging",
        SbdMsg::Inventory { .. } => "Sbd.Inventory",
        SbdMsg::State(_) => "Sbd.State",
        SbdMsg::NeedBlob { .. } => "Sbd.NeedBlob",
        SbdMsg::HostCommand { .. } => "Sbd.HostCommand",
        SbdMsg::HostTold { .. } => "Sbd.HostTold",
        SbdMsg::AskHosts { .. } => "Sbd.AskHosts",
        SbdMsg::HostCommandTold { .. } => "Sbd.HostCommandTold",
        SbdMsg::Usage { .. } => "Sbd.Usage",
        SbdMsg::Validate(_) => "Sbd.Validate",
        SbdMsg::Validated { .. } => "Sbd.Validated",
    }
}

fn launch_name(m: &LaunchMsg) -> &'static str {
    match m {
        LaunchMsg::Hello => "Launch.Hello",
        LaunchMsg::Start { .. } => "Launch.Start",
        LaunchMsg::Signal { .. } => "Launch.Signal",
        LaunchMsg::Note { .. } => "Launch.Note",
        LaunchMsg::Forget { .. } => "Launch.Forget",
        LaunchMsg::Run { .. } => "Launch.Run",
        LaunchMsg::Daemons => "Launch.Daemons",
        LaunchMsg::Down { .. } => "Launch.Down",
        LaunchMsg::Tasks { .. } => "Launch.Tasks",
        LaunchMsg::Task(_) => "Launch.Task",
        LaunchMsg::Refused { .. } => "Launch.Refused",
        LaunchMsg::DaemonList { .. } => "Launch.DaemonList",
    }
}

fn lim_name(m: &LimMsg) -> &'static str {
    match m {
        LimMsg::Beat { .. } => "Lim.Beat",
        LimMsg::Announce { .. } => "Lim.Announce",
        LimMsg::Shared => "Lim.Shared",
        LimMsg::SharedRows { .. } => "Lim.SharedRows",
        LimMsg::WhoIsMaster => "Lim.WhoIsMaster",
        LimMsg::Master { .. } => "Lim.Master",
        LimMsg::Subscribe { .. } => "Lim.Subscribe",
        LimMsg::Hosts { .. } => "Lim.Hosts",
        LimMsg::Loads { .. } => "Lim.Loads",
        LimMsg::Lock { .. } => "Lim.Lock",
        LimMsg::Exclusive { .. } => "Lim.Exclusive",
        LimMsg::Adjust { .. } => "Lim.Adjust",
        LimMsg::Verbose { .. } => "Lim.Verbose",
        LimMsg::Join { .. } => "Lim.Join",
        LimMsg::NotJoined { .. } => "Lim.NotJoined",
        LimMsg::Logging(_) => "Lim.Logging",
        LimMsg::Config => "Lim.Config",
        LimMsg::Settings { .. } => "Lim.Settings",
        LimMsg::Done => "Lim.Done",
    }
}

/// Number of variants over all enums.
const VARIANTS: usize = 3 + 20 + 43 + 23 + 12 + 19 + 5;

const AT: SpoolRef = SpoolRef { spool: 3, at: 4096, len: 17 };
const KEY: JobKey = JobKey { job: 7, idx: 2, attempt: 1 };
const TASK: TaskId = TaskId { key: KEY, step: TaskStep::Job };

fn host_usage() -> SbdMsg {
    let (usage, pids, groups) = (usage().into(), vec![10], vec![10]);
    SbdMsg::HostUsage { key: KEY, usage, pids, groups, over_memory: false }
}

fn spec() -> JobSpec {
    JobSpec {
        name: "a[1-3]%2".into(),
        command: "echo \"\u{e9}\"".into(),
        queue: "night".into(),
        min_slots: 1,
        max_slots: 2,
        hosts: vec!["h1+2".into()],
        out_file: ByteStr(vec![0x2f, 0xff]),
        limits: Limits { run: Some(60), ..Limits::default() },
        further: [("sp", "3")].into_iter().collect(),
        ..JobSpec::default()
    }
}

fn usage() -> Usage {
    Usage { utime_us: 1_500_000, mem_kb: 2048, nthreads: 3, ..Usage::default() }
}

fn load() -> HostLoad {
    HostLoad {
        host: "h1".into(),
        status: status::BUSY,
        index: [0.5; 11],
        over: 2,
        external: vec![("lic".into(), "4".into())],
        facts: Some(HostFacts {
            host_type: "LINUX64".into(),
            resources: vec![("bool".into(), None), ("num".into(), Some("3".into()))],
            ..HostFacts::default()
        }),
        boot_id: "b".into(),
        copies: vec![],
    }
}

fn logging() -> super::logging::Logging {
    super::logging::Logging { level: Some(1), timing: Some(5), file: Some("f".into()) }
}

fn submit_sample() -> Submit {
    Submit {
        request: "r1".into(),
        spec: spec(),
        env: ByteStr(b"A=1\0B=2\0".to_vec()),
        env_hash: "00ff".into(),
        script: "#!/bin/sh\n".into(),
        chain: 3,
    }
}

fn submitted_sample() -> ClientMsg {
    ClientMsg::Submitted {
        job: 7,
        queue: "night".to_owned(),
        default_queue: true,
        env_kept: true,
        class_ignored: true,
        nlb_unchecked: false,
    }
}

fn client_samples() -> Vec<ClientMsg> {
    let s = String::from;
    let select = JobSelect {
        ids: vec![IdSel { job: 7, elems: vec![(1, 9, 2)] }],
        user: s("all"),
        ..JobSelect::default()
    };
    let verb = Verb::Signal { number: 10, name: s("USR1") };
    let which = Which { pend: true, ..Which::default() };
    let cols = vec![Col::Job, Col::PendReasons];
    let query = JobQuery { select: select.clone(), which, cols, ..JobQuery::default() };
    let rows = serde_json::value::to_raw_value(&serde_json::json!([[7, ["x"]]])).unwrap();
    let op = QueueOp::Inactivate;
    let (names, user, host) = (vec![s("q")], s("ann"), s("h1"));
    let admin = AdminOp::QueueCtrl { op, queues: names.clone(), comment: s("c") };
    let line = AdminLine { about: s("q"), code: 18, text: s("t") };
    let (exit_code, status, started) = (Some(3), 768, true);
    let id = IdSel { job: 7, elems: vec![] };
    let fields = vec![SpecField::Name, SpecField::Slots];
    let modify =
        Modify { id, spec: spec(), fields, script: s("true\n").into(), env: Some(s("A=1").into()) };
    let id = JobRef { job: 7, idx: 2 };
    vec![
        ClientMsg::Submit(Box::new(submit_sample())),
        submitted_sample(),
        ClientMsg::Control(Box::new(Control::of(verb, select))),
        ClientMsg::Controlled { outcomes: vec![Outcome { id, code: 0, place: 2 }], more: false },
        ClientMsg::Jobs(Box::new(query)),
        ClientMsg::Queues { names: names.clone(), user, host },
        ClientMsg::QueueRows { rows: vec![QueueInfo::default()] },
        ClientMsg::Partitions { names: names.clone() },
        ClientMsg::PartitionRows { rows: vec![PartitionInfo::default()] },
        ClientMsg::Applications { names: names.clone() },
        ClientMsg::ApplicationRows { rows: vec![ApplicationInfo::default()] },
        ClientMsg::Limits(Box::new(limit_query())),
        ClientMsg::LimitRows(Box::new(limit_rows())),
        ClientMsg::Hosts { names, res_req: s("mem>1") },
        ClientMsg::HostRows { rows: vec![HostInfo::default()] },
        ClientMsg::Rows { rows, more: true },
        ClientMsg::Wait(Wait { expr: s("done(7)"), timeout: 5, watch: None }),
        ClientMsg::Waited(Waited::Ended { exit_code, status, started }),
        ClientMsg::Admin(admin),
        ClientMsg::AdminDone { lines: vec![line] },
        ClientMsg::Params,
        ClientMsg::Message(Box::new(post_sample())),
        ClientMsg::Messages(vec![MessageInfo::default()]),
        ClientMsg::Dependencies(Box::default()),
        ClientMsg::DependencyRows(Box::new(dependency_sample())),
        ClientMsg::JobGroup(Box::new(group_sample())),
        ClientMsg::JobGroups(vec![JobGroupInfo::default()]),
        ClientMsg::Reservation(Box::new(ReservationRequest::Add(Box::default()))),
        ClientMsg::Reservations(vec![ReservationInfo::default()]),
        ClientMsg::ReservationPolicies(vec![ReservationPolicyInfo::default()]),
        ClientMsg::ParamRows { values: vec![(s("A"), s("1"))] },
        ClientMsg::Modify(Box::new(modify)),
        ClientMsg::Peek(Box::default()),
        ClientMsg::Peeked(Box::default()),
        ClientMsg::Stored { id: IdSel { job: 7, elems: vec![] }, script: true },
        ClientMsg::Users { names: vec![s("ann")] },
        ClientMsg::UserRows { rows: vec![UserInfo::default()] },
        ClientMsg::Slots { res_req: s("mem>1") },
        ClientMsg::SlotRows { rows: vec![SlotWindow::default()] },
        ClientMsg::Groups { hosts: true, names: vec![], expand: true, units: false },
        ClientMsg::GroupRows { rows: vec![GroupInfo::default()] },
    ]
}

fn dependency_sample() -> Dependencies {
    let (rows, conditions) = (vec![DependencyRow::default()], vec![ConditionInfo::default()]);
    Dependencies { rows, conditions, cut: true }
}

fn group_sample() -> JobGroupRequest {
    JobGroupRequest::Add { path: "/a".into(), limit: Some(3), sla: "gold".into() }
}

fn post_sample() -> MessageRequest {
    MessageRequest::Post(PostMessage {
        job: OneJob { at: JobRef { job: 7, idx: 2 }, name: "n".into() },
        index: 1,
        text: "t".into(),
        level: "INFO".into(),
        file: "f".into(),
        data: ByteStr(vec![0xff]),
    })
}

fn sbd_samples() -> Vec<SbdMsg> {
    let s = String::from;
    let params = SbdParams { sbd_sleep_time: 30, ..SbdParams::default() };
    let start = StartJob { key: KEY, spec: spec().into(), env: AT, ..StartJob::default() };
    let state = TaskState {
        key: KEY,
        phase: AttemptPhase::Ended { end: End::Status(768), exit_info: 14 },
        time: 1_700_000_000,
        usage: usage(),
        ..TaskState::default()
    };
    vec![
        SbdMsg::Hello { epoch: 2, cluster: s("c"), params: params.clone(), pieces: true },
        SbdMsg::Start(Box::new(start.clone())),
        SbdMsg::Blob { at: AT, data: ByteStr(vec![0xff, 0]) },
        SbdMsg::Act { key: KEY, seq: 4, order: 0, act: Act::Terminate { exit_info: 14 }, why: 0 },
        SbdMsg::Forget { key: KEY, mail: String::new() },
        SbdMsg::Params(params),
        SbdMsg::Logging(logging()),
        SbdMsg::Inventory {
            boot_id: s("b"),
            tasks: vec![state.clone()],
            more: false,
            members: None,
            validates: false,
            unjoined: Vec::new(),
            member_slots: Vec::new(),
        },
        SbdMsg::State(Box::new(TaskState { phase: AttemptPhase::Running, ..state })),
        SbdMsg::NeedBlob { at: AT },
        SbdMsg::HostCommand { work: HostWork::Before, order: Box::new(start) },
        SbdMsg::HostTold {
            key: KEY,
            host: s("h"),
            work: HostWork::After { status: 768 },
            state: HostCommandState::Running,
        },
        SbdMsg::AskHosts { key: KEY, work: HostWork::Stop },
        SbdMsg::HostCommandTold {
            key: KEY,
            work: HostWork::Before,
            state: HostCommandState::Failed { exit: 3, why: s("no") },
        },
        SbdMsg::Join(Box::new(StartJob { key: KEY, ..StartJob::default() })),
        SbdMsg::Leave { key: KEY },
        SbdMsg::Joined { key: KEY },
        SbdMsg::JoinRefused { key: KEY, why: s("full") },
        SbdMsg::Left { key: KEY, usage: usage().into() },
        host_usage(),
        SbdMsg::TaskGone { key: KEY, status: 11 },
        SbdMsg::AskUsage { key: KEY },
        SbdMsg::UsageTold { key: KEY, usage: usage().into(), without: vec![s("h2")] },
        SbdMsg::Usage {
            key: KEY,
            usage: usage().into(),
            pids: vec![10],
            pgids: vec![10],
            groups: vec![],
        },
        SbdMsg::Validate(Box::new(Validate {
            number: 3,
            user: s("u"),
            uid: 1000,
            gid: 100,
            hosts: vec![s("h")],
        })),
        SbdMsg::Validated { number: 3, verdict: Verdict::NoLine(s("no")) },
    ]
}

fn launch_samples() -> Vec<LaunchMsg> {
    let s = String::from;
    let job = JobPlan { job: 7, command: s("true").into(), umask: 18, ..JobPlan::default() };
    let what = TaskPlan::Job(Box::new(job));
    let plan = Box::new(Plan { uid: 1000, gid: 100, user: s("ann"), what });
    let (user, what) = (s("ann"), TaskPlan::Adopt { pid: 9, ticks: 5 });
    let adopted = Box::new(Plan { uid: 1000, gid: 100, user, what });
    let (end, usage) = (End::Unknown, usage());
    let info = TaskInfo {
        id: TASK,
        uid: 1000,
        pid: 10,
        started: 1_700_000_000,
        setup: Some(Setup::Failed { at: SetupStage::Cwd, why: s("gone"), exit: 0, begun: None }),
        ended: Some(TaskEnd { time: 1_700_000_001, end, usage, restarted: true }),
        note: s("n"),
        ..TaskInfo::new(TASK)
    };
    vec![
        LaunchMsg::Hello,
        LaunchMsg::Start { id: TASK, plan, note: s("n") },
        LaunchMsg::Signal { id: TASK, signal: 9 },
        LaunchMsg::Note { key: KEY, note: s("n") },
        LaunchMsg::Forget { key: KEY, over_at: 0 },
        LaunchMsg::Forget { key: KEY, over_at: 9 },
        LaunchMsg::Run { daemon: Daemon::Mbatchd, on: true },
        LaunchMsg::Daemons,
        LaunchMsg::Down { jobs: true },
        LaunchMsg::Tasks { boot_id: s("b"), tasks: vec![info.clone()], more: false },
        LaunchMsg::Task(Box::new(info)),
        LaunchMsg::Refused { id: TASK, why: s("full"), again: true },
        LaunchMsg::DaemonList { pids: vec![(Daemon::Lim, 11)], hung: vec![] },
        LaunchMsg::Start { id: TASK, plan: adopted, note: s("n") },
    ]
}

fn res_samples() -> Vec<ResMsg> {
    let pty = Pty { modes: [1, 2, 3, 4], chars: vec![3, 28], rows: 24, cols: 80, shell: true };
    let run = RunTask {
        argv: vec!["ls".into(), ByteStr(vec![0xff])],
        cwd: "/tmp".into(),
        rlimits: vec![(4, Some(0), None)],
        pty: Some(pty.clone()),
        via: "lsrun".into(),
        ..RunTask::default()
    };
    vec![
        ResMsg::Run(Box::new(run)),
        ResMsg::Signal { signal: 2 },
        ResMsg::Resize { rows: 25, cols: 81 },
        ResMsg::Credit { bytes: 4096 },
        ResMsg::Close { port: OUT },
        ResMsg::Log { cpu_ms: Some(5) },
        ResMsg::Logging(logging()),
        ResMsg::Join { job: 7, pty: Some(pty) },
        ResMsg::Joined,
        ResMsg::Resume { task: TASK },
        ResMsg::Kept { task: TASK },
        ResMsg::Resumed(TaskProgress { written: 3, read: [4, 5], in_doubt: [true, false] }),
        ResMsg::Done,
        ResMsg::Stopped,
        ResMsg::Started { pid: 10 },
        ResMsg::Ended { status: Some(768) },
        ResMsg::Adopt(AdoptProcess { job: KEY.job_ref(), pid: 9, ticks: 5, pam_ms: Some(20) }),
        ResMsg::Ending(AdoptProcess { job: KEY.job_ref(), pid: 9, ticks: 5, pam_ms: None }),
        ResMsg::Adopted { within: false, launcher: 3 },
    ]
}

fn samples() -> Vec<Msg> {
    let s = String::from;
    let (cluster, master) = (s("c"), s("h1"));
    let row = SharedRow { name: s("lic"), value: s("4"), hosts: vec![s("h1")], dynamic: false };
    let lim = [
        LimMsg::Announce { cluster: s("c"), want: true, report: vec![s("lic")], undecided: false },
        LimMsg::Shared,
        LimMsg::SharedRows { rows: vec![row] },
        LimMsg::Beat { load: Box::new(load()) },
        LimMsg::WhoIsMaster,
        LimMsg::Master { cluster, master },
        LimMsg::Subscribe { loads: true },
        LimMsg::Hosts { hosts: vec![s("h1")] },
        LimMsg::Loads { hosts: vec![load()] },
        LimMsg::Lock { host: s("h1"), on: true, secs: 5 },
        LimMsg::Exclusive { hosts: vec![s("h1")] },
        LimMsg::Adjust { hosts: vec![(s("h1"), 2)] },
        LimMsg::Verbose { level: 1 },
        LimMsg::Join { cluster: s("c"), addr: s("10.0.0.1"), resources: s("[resource fast]") },
        LimMsg::NotJoined { why: s("full") },
        LimMsg::Logging(logging()),
        LimMsg::Config,
        LimMsg::Settings { rows: vec![(s("A"), s("1"))] },
        LimMsg::Done,
    ];
    let later = Refusal { again: 60, ..Refusal::new(132) };
    let own = [
        Msg::Refused(Refusal::about(18, "q")),
        Msg::Refused(later),
        Msg::Ping { n: 1 },
        Msg::Pong { n: 1 },
    ];
    let mut out: Vec<Msg> = client_samples().into_iter().map(Msg::Client).collect();
    out.extend(sbd_samples().into_iter().map(Msg::Sbd));
    out.extend(launch_samples().into_iter().map(Msg::Launch));
    out.extend(lim.map(Msg::Lim));
    out.extend(res_samples().into_iter().map(Msg::Res));
    out.extend(nlb_samples().into_iter().map(Msg::Nlb));
    let at = JobRef { job: 7, idx: 2 };
    let membership = Membership { key: KEY, uid: 1000, hosts: vec![s("h1")], ..<_>::default() };
    let member = [
        MemberMsg::Ask { job: at },
        MemberMsg::Told(Box::new(membership)),
        MemberMsg::Unknown { job: at, settled: false },
        MemberMsg::Unknown { job: at, settled: true },
        MemberMsg::Look(ProcessLook { n: 3, uid: 7, pid: 9, ticks: 5 }),
        MemberMsg::Looked { n: 3, owner: Some(KEY), launcher: 4, why: String::new() },
        MemberMsg::Looked { n: 3, owner: None, launcher: 0, why: s("gone") },
    ];
    out.extend(member.map(Msg::Member));
    out.extend(own);
    out.extend(pam_samples().into_iter().map(Msg::Pam));
    out
}

#[test]
fn golden_messages_are_these_bytes() {
    let json = |m: &Msg| serde_json::to_string(m).unwrap();
    let lines: Vec<String> = samples().iter().map(|m| format!("{} {}", name(m), json(m))).collect();
    if std::env::var_os("LSF_GOLDEN").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/proto/golden.txt");
        std::fs::write(path, lines.join("\n") + "\n").unwrap();
        return;
    }
    for (now, then) in lines.iter().zip(GOLDEN.lines()) {
        assert_eq!(now, then, "a message has changed");
    }
    assert_eq!(lines.len(), GOLDEN.lines().count());
    let mut names: Vec<_> = samples().iter().map(name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), VARIANTS + NLB_VARIANTS + PAM_VARIANTS, "a variant has no sample");
}

#[test]
fn golden_messages_are_read_back() {
    for line in GOLDEN.lines() {
        let (_, json) = line.split_once(' ').unwrap();
        let msg: Msg = serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(serde_json::to_string(&msg).unwrap(), json);
    }
}
