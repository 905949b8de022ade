//! A cluster for tests of the scheduler, built and driven as its users and hosts see it.
//!
//! ```text
//! let mut c = cluster().hosts(4, 8).queue("night", "PRIORITY = 40").up();
//! let job = c.submit("ann", "-q night -n 4 -R 'span[hosts=1]'");
//! assert_eq!(c.running_on(job), ["h1", "h1", "h1", "h1"]);
//! c.advance(10);
//! c.end(job, 0);
//! ```
//!
//! Configuration goes in as text, all else as messages and time; results come out as listings and
//! orders to hosts. No field of the machine is read, so that a test says what the product does, not
//! how it is built. Hosts are answered for: they come up, take every start and obey every order,
//! until a test says otherwise.

mod balancer;
mod builder;
mod hosts;
mod limits;
mod options;
pub mod random;
mod reservations;
mod rows;
mod shares;

pub use builder::{ClusterBuilder, cluster};

use super::audits::Audits;
use super::*;
use crate::model::affinity::{JobUnits, TaskUnits};
use crate::model::event::Finish;
use crate::model::exception::Exceptions;
use crate::model::reason::PendReason;
use crate::model::reservation::ReservationFinish;
use crate::model::specfield::SpecField;
use crate::proto::sbd::StartJob;
use hosts::TestHost;
use std::collections::{BTreeMap, VecDeque};

/// When a test begins: a Tuesday, 22:13:20 in UTC.
pub const START_SECS: i64 = 1_700_000_000;
/// Steps that one input may lead to before the machine is taken to be in a circle.
const MOST_STEPS: usize = 100_000;
/// Bits of the number of a connection that count connections.
const FIRST_CLIENT: ConnId = crate::proto::machine::INCOMING;
pub const ADMINISTRATOR: &str = "admin";

pub struct Cluster {
    site: ClusterBuilder,
    machine: Mbatchd,
    now: Now,
    hosts: Vec<TestHost>,
    lim: Option<ConnId>,
    users: BTreeMap<String, ConnId>,
    next_client: ConnId,
    /// Inputs that the machine has not taken yet.
    inputs: VecDeque<Input>,
    answers: Vec<(ConnId, Msg)>,
    started: Vec<StartJob>,
    mails: Vec<String>,
    /// The service classes whose CONTROL_ACTION was run, and the commands.
    pub actions: Vec<(String, String)>,
    pub exceptions: Vec<Exceptions>,
    pub archived: Vec<crate::proto::machine::AcctArchive>,
    balancer: balancer::Balancer,
    accounted: Vec<Finish>,
    periods: Vec<ReservationFinish>,
    orders: Vec<(JobRef, Act)>,
    log: Vec<Record>,
    said: Vec<(log::Level, String)>,
    configuration_asked: usize,
    /// Hosts say at once that a job runs, and obey orders; see [`Cluster::hosts_wait`].
    answering: bool,
    audits: Audits,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.audits.at_end(&self.machine);
    }
}

impl Cluster {
    fn start(site: ClusterBuilder) -> Cluster {
        let now = Now { mono_us: 1_000_000, wall_us: START_SECS * 1_000_000 };
        let conf = site.read();
        let hosts = TestHost::all(&site, &conf);
        Cluster::with(site, conf, hosts, Recovered { epoch: 1, ..Recovered::default() }, now)
    }

    fn with(
        site: ClusterBuilder,
        conf: ClusterConf,
        hosts: Vec<TestHost>,
        found: Recovered,
        now: Now,
    ) -> Cluster {
        let mut cluster = Cluster {
            machine: Mbatchd::new(conf, "h1", found),
            site,
            now,
            hosts,
            lim: None,
            users: BTreeMap::new(),
            next_client: FIRST_CLIENT,
            inputs: VecDeque::new(),
            answers: Vec::new(),
            started: Vec::new(),
            mails: Vec::new(),
            actions: Vec::new(),
            exceptions: Vec::new(),
            archived: Vec::new(),
            balancer: balancer::Balancer::default(),
            accounted: Vec::new(),
            periods: Vec::new(),
            orders: Vec::new(),
            log: Vec::new(),
            said: Vec::new(),
            configuration_asked: 0,
            answering: true,
            audits: Audits::default(),
        };
        cluster.tell(Input::Start);
        cluster
    }

    /// Audits seldom count anew: for a test of very many steps.
    pub fn audit_seldom(&mut self) {
        const PAUSE: usize = 1000;
        self.audits.pause(PAUSE);
    }

    /// A cluster with one more policy, behind those of the product.
    pub(crate) fn with_policy(
        mut self,
        policy: Box<dyn crate::batch::sched::policy::Policy>,
    ) -> Self {
        self.machine.sched.use_policy(policy);
        self
    }

    /// One input, and all that follows from it at this moment.
    fn tell(&mut self, input: Input) {
        self.inputs.push_back(input);
        let asked = matches!(&self.inputs[0], Input::Msg { msg: Msg::Client(_), .. });
        let logged = self.log.len();
        for _ in 0..MOST_STEPS {
            let mut out = Vec::new();
            if let Some(input) = self.inputs.pop_front() {
                self.machine.step(self.now, input, &mut out);
            } else if self.machine.has_work() {
                self.machine.work(self.now, &mut out);
            } else if self.machine.deadline().is_some_and(|at| at <= self.now.mono_us) {
                self.machine.step(self.now, Input::Tick, &mut out);
            } else {
                // a query changes nothing
                if !asked || self.log.len() > logged {
                    let overlooked = self.machine.overlooked();
                    assert_eq!(overlooked, None, "hosts have room for a job, and no pass is due");
                    self.audits.after_step(&self.machine);
                }
                return;
            }
            out.into_iter().for_each(|effect| self.carry_out(effect));
        }
        panic!("no end of what follows from one input");
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send { conn, msg } | Effect::SendDurable { conn, msg } => self.sent(conn, msg),
            Effect::Connect { conn, to } => self.dialled(conn, to),
            Effect::Append(record) => self.log.push(*record),
            Effect::Exceptions { all, .. } => self.exceptions.push(*all),
            Effect::ControlAction { class, command } => self.actions.push((class, command)),
            Effect::Mail { to, text } => self.mails.push(format!("To: {to}\n{text}")),
            Effect::Account(finish) => self.accounted.push(*finish),
            Effect::AccountReservation(finish) => self.periods.push(*finish),
            Effect::AccountElements(f, elems) => self.accounted.extend(each_of(&f, &elems)),
            Effect::Say { level, text } => self.said.push((level, text)),
            Effect::ArchiveAcct(due) => self.archived.push(due),
            Effect::LoadConfig => self.configuration_asked += 1,
            Effect::Switch { .. } => self.inputs.push_back(Input::Switched { ok: true }),
            _ => {}
        }
    }

    fn sent(&mut self, conn: ConnId, msg: Msg) {
        match msg {
            Msg::Ping { n } => {
                self.inputs.push_back(Input::Msg { conn, msg: Msg::Pong { n } });
            }
            Msg::Sbd(msg) => self.tell_host(conn, msg),
            Msg::Nlb(msg) => self.tell_balancer(conn, msg),
            Msg::Client(ClientMsg::Rows { more: true, .. }) => {
                self.answers.push((conn, msg));
                self.inputs.push_back(Input::Drained { conn });
            }
            Msg::Client(_) | Msg::Refused(_) => self.answers.push((conn, msg)),
            _ => {}
        }
    }

    // ---- time ----

    /// Somebody puts the clock back.
    pub fn clock_back(&mut self, secs: i64) {
        self.now.wall_us -= secs * 1_000_000;
    }

    /// Seconds since the epoch.
    pub fn secs(&self) -> i64 {
        self.now.secs()
    }

    /// Lets seconds pass; what falls due meanwhile is done at its own instant.
    pub fn advance(&mut self, secs: u64) {
        let end = self.now.mono_us + secs * 1_000_000;
        for _ in 0..MOST_STEPS {
            let due = self.machine.deadline().filter(|at| *at < end);
            let next = due.map_or(end, |at| at.max(self.now.mono_us));
            self.now.wall_us += (next - self.now.mono_us) as i64;
            self.now.mono_us = next;
            self.tell(Input::Tick);
            if next == end {
                return;
            }
        }
        panic!("no end of what falls due within {secs} s");
    }

    // ---- users ----

    /// Sends a request as this user and gives every message of the answer.
    pub fn ask(&mut self, user: &str, request: ClientMsg) -> Vec<Msg> {
        let conn = self.connection(user);
        self.answers.retain(|answer| answer.0 != conn);
        self.tell(Input::Msg { conn, msg: Msg::Client(request) });
        self.answers.iter().filter(|a| a.0 == conn).map(|a| a.1.clone()).collect()
    }

    fn connection(&mut self, user: &str) -> ConnId {
        if let Some(conn) = self.users.get(user) {
            return *conn;
        }
        self.next_client += 1;
        let (conn, uid) = (self.next_client, 1000 + self.users.len() as u32);
        let peer = Peer::User { uid, gid: uid, user: user.to_owned(), host: "h1".to_owned() };
        self.users.insert(user.to_owned(), conn);
        self.tell(Input::Opened { conn, peer });
        conn
    }

    /// bsub with these options; what became of it.
    pub fn try_submit(&mut self, user: &str, options: &str) -> Result<JobRef, Refusal> {
        let spec = options::spec(options, self.now.secs());
        let submit = Submit { spec, ..Submit::default() };
        match self.ask(user, ClientMsg::Submit(Box::new(submit))).as_slice() {
            [Msg::Client(ClientMsg::Submitted { job, .. })] => Ok(JobRef { job: *job, idx: 0 }),
            [Msg::Refused(refusal)] => Err(refusal.clone()),
            other => panic!("{other:?}"),
        }
    }

    /// bsub with these options.
    pub fn submit(&mut self, user: &str, options: &str) -> JobRef {
        self.try_submit(user, options).unwrap_or_else(|why| panic!("{options}: {why:?}"))
    }

    /// Takes these submissions in one turn of the loop, before the scheduler has its turn.
    pub fn submit_together(&mut self, user: &str, all: &[&str]) -> Vec<JobRef> {
        let conn = self.connection(user);
        self.answers.retain(|answer| answer.0 != conn);
        for options in all {
            let spec = options::spec(options, self.now.secs());
            let submit = ClientMsg::Submit(Box::new(Submit { spec, ..Submit::default() }));
            self.inputs.push_back(Input::Msg { conn, msg: Msg::Client(submit) });
        }
        self.tell(Input::Tick);
        let id = |answer: &(ConnId, Msg)| match &answer.1 {
            Msg::Client(ClientMsg::Submitted { job, .. }) => JobRef { job: *job, idx: 0 },
            other => panic!("{other:?}"),
        };
        self.answers.iter().filter(|answer| answer.0 == conn).map(id).collect()
    }

    /// bkill, bstop, bresume and their like; the lsberrno of each job or element.
    pub fn control(&mut self, user: &str, verb: Verb, at: impl Selected) -> Vec<i32> {
        let select = JobSelect { ids: vec![at.selected()], ..JobSelect::default() };
        let control = ClientMsg::Control(Box::new(Control::of(verb, select)));
        let answers = self.ask(user, control);
        let codes = |msg: &Msg| match msg {
            Msg::Client(ClientMsg::Controlled { outcomes, .. }) => {
                outcomes.iter().map(|outcome| outcome.code).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        answers.iter().flat_map(codes).collect()
    }

    pub fn kill(&mut self, user: &str, at: JobRef) {
        assert_eq!(self.control(user, Verb::Kill, at), [0], "bkill {at}");
    }

    pub fn stop(&mut self, user: &str, at: JobRef) {
        assert_eq!(self.control(user, Verb::Stop, at), [0], "bstop {at}");
    }

    pub fn resume(&mut self, user: &str, at: JobRef) {
        assert_eq!(self.control(user, Verb::Resume, at), [0], "bresume {at}");
    }

    /// brequeue of a job that runs.
    pub fn requeue(&mut self, user: &str, at: JobRef) {
        let running = Requeue { run: true, ..Requeue::default() };
        self.control(user, Verb::Requeue(running), at);
    }

    pub fn switch(&mut self, user: &str, at: JobRef, queue: &str) {
        let to = Verb::Switch { queue: queue.to_owned() };
        assert_eq!(self.control(user, to, at), [0], "bswitch {at}");
    }

    /// badmin: `qopen`, `qclose`, `qact`, `qinact` of a queue, `hopen`, `hclose` of a host.
    pub fn badmin(&mut self, command: &str) {
        let (verb, name) = command.split_once(' ').unwrap_or_else(|| panic!("{command}"));
        let (names, comment) = (vec![name.to_owned()], String::new());
        let host = |open| AdminOp::HostCtrl {
            open,
            hosts: names.clone(),
            comment: comment.clone(),
            lock: String::new(),
        };
        let queue = |op| AdminOp::QueueCtrl { op, queues: names.clone(), comment: comment.clone() };
        let op = match verb {
            "hopen" => host(true),
            "hclose" => host(false),
            "qopen" => queue(QueueOp::Open),
            "qclose" => queue(QueueOp::Close),
            "qact" => queue(QueueOp::Activate),
            "qinact" => queue(QueueOp::Inactivate),
            _ => panic!("{command}"),
        };
        match self.ask(ADMINISTRATOR, ClientMsg::Admin(op)).as_slice() {
            [Msg::Client(ClientMsg::AdminDone { lines })] => {
                assert!(lines.iter().all(|line| line.code == 0), "{command}: {lines:?}");
            }
            other => panic!("{other:?}"),
        }
    }

    /// bmod: these fields become what the options say; the lsberrno.
    pub fn modify(
        &mut self,
        user: &str,
        at: impl Selected,
        fields: &[SpecField],
        options: &str,
    ) -> i32 {
        self.try_modify(user, at, fields, options).unwrap_or_else(|refusal| refusal.code)
    }

    /// Changes jobs; returns the exit code or the refusal.
    pub fn try_modify(
        &mut self,
        user: &str,
        at: impl Selected,
        fields: &[SpecField],
        options: &str,
    ) -> Result<i32, Refusal> {
        let spec = options::spec(options, self.now.secs());
        let (id, fields) = (at.selected(), fields.to_vec());
        let modify = Modify { id, spec, fields, ..Modify::default() };
        match self.ask(user, ClientMsg::Modify(Box::new(modify))).as_slice() {
            [Msg::Client(ClientMsg::Controlled { outcomes, .. })] => Ok(outcomes[0].code),
            [Msg::Refused(refusal)] => Err(refusal.clone()),
            other => panic!("{other:?}"),
        }
    }

    /// badmin reconfig with other files.
    pub fn reconfigure(&mut self, site: ClusterBuilder) {
        let conf = site.read();
        self.hosts = TestHost::reconfigured(std::mem::take(&mut self.hosts), &site, &conf);
        self.site = site;
        self.configured(conf);
        self.report_loads();
    }

    /// The configuration was read and is this.
    pub fn configured(&mut self, conf: ClusterConf) {
        self.tell(Input::Config { conf: Some(Box::new(conf)), diags: Vec::new() });
    }

    /// The configuration was read and has errors.
    pub fn configuration_refused(&mut self) {
        self.tell(Input::Config { conf: None, diags: Vec::new() });
    }

    /// The first records of a log that begins now.
    pub fn switch_head(&self) -> Vec<Record> {
        self.machine.switch_head(self.now.secs())
    }

    /// How often a pass came to a host for a class since this was asked last.
    pub fn host_looks(&mut self) -> usize {
        self.machine.sched.take_host_looks()
    }

    /// How often an absolute priority was worked out for the order of dispatch since this was asked
    /// last.
    pub fn take_ranks(&mut self) -> usize {
        self.machine.sched.take_ranks()
    }

    /// How many sums of reservations were changed or worked out since this was asked last, and the
    /// hosts on which something was given back.
    pub fn reservations_changed(&mut self) -> (usize, Vec<String>) {
        let (touched, hosts) = self.machine.reserve.take_touched();
        let name = |host| self.machine.state.names().host(host).to_string();
        (touched, hosts.into_iter().map(name).collect())
    }

    /// Is anything kept of what a job reserves?
    pub fn holds_reservation(&self, at: JobRef) -> bool {
        self.machine.reserve.holder(at).is_some()
    }

    /// Sets the memory use of a job as its host would report it, without a report to mbatchd.
    pub fn uses_untold(&mut self, at: JobRef, mem: u64) -> Result<(), String> {
        let (_, key) = self.attempt(at);
        self.machine.state.set_memory(key, mem << 10);
        self.machine.reserve_audit()
    }

    /// The log cannot be written.
    pub fn log_fails(&mut self) {
        self.tell(Input::LogFailed { why: "no space left".into() });
    }

    /// The log can be written again.
    pub fn log_is_back(&mut self) {
        self.tell(Input::LogBack);
    }

    /// How often mbatchd wanted the configuration to be read since this was asked last.
    pub fn configuration_asked(&mut self) -> usize {
        std::mem::take(&mut self.configuration_asked)
    }

    fn found(&self) -> Recovered {
        Recovered { records: read_back(&self.log), epoch: 2, ..Recovered::default() }
    }

    /// Another cluster with what this one's log holds, and no host that could say more.
    pub fn recovered(&self) -> Cluster {
        let (site, conf) = (self.site.clone(), self.site.read());
        Cluster::with(site, conf, Vec::new(), self.found(), self.now)
    }

    /// Restarts mbatchd with other configuration files.
    pub fn restart_with(&mut self, site: ClusterBuilder) {
        self.site = site;
        self.restart();
    }

    /// Damage takes all events of a kind out of the log; a restart reads what is left.
    pub fn lose_records(&mut self, kind: impl Fn(&Event) -> bool) {
        self.log.retain(|record| !kind(&record.event));
    }

    /// mbatchd ends and another one begins with what the log holds; the hosts go on.
    pub fn restart(&mut self) {
        self.restart_after_damage(&[]);
    }

    /// Restarts like [`Cluster::restart`], so many seconds after the end.
    pub fn restart_later(&mut self, secs: u64) {
        self.now.mono_us += secs * 1_000_000;
        self.now.wall_us += secs as i64 * 1_000_000;
        self.restart();
    }

    /// Restarts like [`Cluster::restart`]; the log lost a record of each of these jobs.
    pub fn restart_after_damage(&mut self, lost: &[JobRef]) {
        let mut found = self.found();
        found.damaged = lost.iter().map(|at| (*at, "its JOB_START is lost".to_string())).collect();
        self.machine = Mbatchd::new(self.site.read(), "h1", found);
        self.hosts.iter_mut().for_each(|host| host.link = None);
        self.lim = None;
        self.users.clear();
        self.inputs.clear();
        self.tell(Input::Start);
    }

    // ---- what can be seen ----

    /// A column of bjobs.
    pub fn column(&mut self, at: JobRef, column: Col) -> serde_json::Value {
        let all = self.columns(at, &[column]);
        all.into_iter().next().unwrap_or_else(|| panic!("job {at} is not listed"))
    }

    /// Columns of bjobs -a, of an array its first element's; none: there is no such job.
    pub fn columns(&mut self, at: JobRef, columns: &[Col]) -> Vec<serde_json::Value> {
        let (ids, user) = (vec![at.selected()], "all".to_owned());
        let select = JobSelect { ids, user, ..JobSelect::default() };
        self.rows(select, columns).into_iter().next().unwrap_or_default()
    }

    /// The given columns of every job.
    pub fn listing(&mut self, columns: &[Col]) -> Vec<Vec<serde_json::Value>> {
        let select = JobSelect { user: "all".to_owned(), ..JobSelect::default() };
        self.rows(select, columns)
    }

    fn rows(&mut self, select: JobSelect, columns: &[Col]) -> Vec<Vec<serde_json::Value>> {
        let which = Which { all: true, ..Which::default() };
        let query = JobQuery { select, which, cols: columns.to_vec(), ..JobQuery::default() };
        let answers = self.ask(ADMINISTRATOR, ClientMsg::Jobs(Box::new(query)));
        let rows = |msg: &Msg| match msg {
            Msg::Client(ClientMsg::Rows { rows, .. }) => {
                serde_json::from_str::<Vec<Vec<serde_json::Value>>>(rows.get()).unwrap()
            }
            _ => Vec::new(),
        };
        answers.iter().flat_map(rows).collect()
    }

    /// PEND, RUN and so on.
    pub fn state(&mut self, at: JobRef) -> String {
        self.column(at, Col::Stat).as_str().unwrap_or_default().to_owned()
    }

    /// The host of each slot, first execution host first; none: it does not run.
    pub fn running_on(&mut self, at: JobRef) -> Vec<String> {
        let hosts = self.column(at, Col::ExecHosts);
        let hosts: Vec<(String, usize)> = serde_json::from_value(hosts).unwrap();
        hosts.into_iter().flat_map(|(host, slots)| vec![host; slots]).collect()
    }

    /// The host and the CPUs of each task, as its hosts were told at the start: `h1:0,4 h2:1`.
    pub fn bound_to(&mut self, at: JobRef) -> String {
        let text = self.column(at, Col::ProcessorUnits);
        let units = JobUnits::parse(text.as_str().unwrap_or_default()).unwrap_or_default();
        let task = |task: &TaskUnits| format!("{}:{}", task.host, task.bound.each());
        units.tasks().map(|(_, of)| task(of)).collect::<Vec<_>>().join(" ")
    }

    /// Why it waits: the reasons, with the hosts they hold for (none: all).
    pub fn reasons(&mut self, at: JobRef) -> Vec<(PendReason, Vec<String>)> {
        let reasons = self.column(at, Col::PendReasons);
        let hosts = |reason: &serde_json::Value| {
            let names = reason[2].as_array().into_iter().flatten();
            names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
        };
        let number = |reason: &serde_json::Value| reason[0].as_u64().unwrap_or(0) as u32;
        let told = |r| (PendReason::of_number(number(r)), hosts(r));
        reasons.as_array().into_iter().flatten().map(told).collect()
    }

    /// Is this one of the reasons for which it waits?
    pub fn waits_for(&mut self, at: JobRef, why: PendReason) -> bool {
        self.reasons(at).iter().any(|reason| reason.0 == why)
    }

    /// The first reason for which it waits.
    pub fn reason(&mut self, at: JobRef) -> PendReason {
        let first = self.reasons(at).first().map(|reason| reason.0);
        first.unwrap_or_else(|| panic!("{at} does not wait"))
    }

    /// The words that go with a reason: the name of a resource, why a start failed.
    pub fn reason_about(&mut self, at: JobRef, why: PendReason) -> Option<String> {
        let reasons = self.column(at, Col::PendReasons);
        let mut all = reasons.as_array().into_iter().flatten();
        let reason = all.find(|reason| reason[0] == why.number())?;
        Some(reason[3].as_str()?.to_owned())
    }

    /// Why the system has suspended it; 0 none.
    pub fn suspended_for(&mut self, at: JobRef) -> u32 {
        self.column(at, Col::SuspReason).as_u64().unwrap_or(0) as u32
    }

    /// Jobs and elements that were started since this was asked last, in order.
    pub fn started(&mut self) -> Vec<JobRef> {
        let orders = self.start_orders();
        orders.iter().map(|order| JobRef { job: order.key.job, idx: order.key.idx }).collect()
    }

    /// The start orders that hosts got since this was asked last.
    pub fn start_orders(&mut self) -> Vec<StartJob> {
        std::mem::take(&mut self.started)
    }

    /// The mails to owners of jobs that hosts were asked to send since this was asked last.
    pub fn mails(&mut self) -> Vec<String> {
        std::mem::take(&mut self.mails)
    }

    /// The periods of reservations that were accounted for since this was asked last: the ID, when
    /// that was, and the seconds that each lasted.
    pub fn periods(&mut self) -> Vec<(String, i64, i64)> {
        let all = std::mem::take(&mut self.periods).into_iter();
        all.map(|of| (of.reservation.id, of.time, of.duration)).collect()
    }

    /// The records of lsb.acct since this was asked last.
    pub fn accounted(&mut self) -> Vec<Finish> {
        std::mem::take(&mut self.accounted)
    }

    /// How many events of a kind are in the log.
    pub fn logged(&self, kind: impl Fn(&Event) -> bool) -> usize {
        self.log.iter().filter(|record| kind(&record.event)).count()
    }

    /// The jobs of mbatchd, for reading.
    pub fn state_of_jobs(&self) -> &crate::batch::state::State {
        &self.machine.state
    }

    /// mbatchd as it would be after a restart, before its first step.
    pub fn read_log(&self) -> Mbatchd {
        Mbatchd::new(self.site.read(), "h1", self.found())
    }

    /// The records of a kind in the log.
    pub fn records(&self, kind: impl Fn(&Event) -> bool) -> Vec<Event> {
        let all = self.log.iter().map(|record| &record.event);
        all.filter(|event| kind(event)).cloned().collect()
    }

    /// The orders about running jobs since this was asked last, in order.
    pub fn orders(&mut self) -> Vec<(JobRef, Act)> {
        std::mem::take(&mut self.orders)
    }

    /// Errors and warnings of mbatchd's log since this was asked last.
    pub fn complaints(&mut self) -> Vec<String> {
        let said = std::mem::take(&mut self.said);
        said.into_iter().filter(|s| s.0 <= log::Level::Warn).map(|s| s.1).collect()
    }

    /// bhosts of one host.
    pub fn host(&mut self, name: &str) -> HostInfo {
        self.host_rows(vec![name.to_owned()]).remove(0)
    }

    /// bhosts of all hosts.
    pub fn hosts(&mut self) -> Vec<HostInfo> {
        self.host_rows(Vec::new())
    }

    fn host_rows(&mut self, names: Vec<String>) -> Vec<HostInfo> {
        match self.ask(ADMINISTRATOR, ClientMsg::Hosts { names, res_req: String::new() }).pop() {
            Some(Msg::Client(ClientMsg::HostRows { rows })) => rows,
            other => panic!("{other:?}"),
        }
    }

    /// bqueues of one queue.
    pub fn queue(&mut self, name: &str) -> QueueInfo {
        let (names, user, host) = (vec![name.to_owned()], String::new(), String::new());
        match self.ask(ADMINISTRATOR, ClientMsg::Queues { names, user, host }).pop() {
            Some(Msg::Client(ClientMsg::QueueRows { mut rows })) => rows.remove(0),
            other => panic!("{other:?}"),
        }
    }
}

/// An element of an array.
pub fn element(array: JobRef, idx: u32) -> JobRef {
    JobRef { idx, ..array }
}

/// Elements of an array, from the first to the last.
pub fn elements(array: JobRef, first: u32, last: u32) -> IdSel {
    IdSel { job: array.job, elems: vec![(first, last, 1)] }
}

/// A job, an element or elements, as an operand names them.
pub trait Selected {
    fn selected(self) -> IdSel;
}

impl Selected for JobRef {
    fn selected(self) -> IdSel {
        let elems = if self.idx > 0 { vec![(self.idx, self.idx, 1)] } else { Vec::new() };
        IdSel { job: self.job, elems }
    }
}

impl Selected for IdSel {
    fn selected(self) -> IdSel {
        self
    }
}
