//! mbatchd's machine as a value, driven by input from outside alone: configuration, submissions,
//! reports of hosts, ends of jobs, time. The decisions of the scheduler are read from the start
//! orders it sends. Nothing here knows how the machine is built, so that the same program measures
//! another one.

use super::site::{self, SLOTS, SiteFiles, Size};
use lsf::batch::{Mbatchd, Recovered};
use lsf::model::event::Event;
use lsf::model::job::{End, JobSpec};
use lsf::model::{JobKey, Now};
use lsf::proto::Daemon;
use lsf::proto::Msg;
use lsf::proto::client::{ClientMsg, Col, IdSel, JobQuery, JobSelect, Submit, Which};
use lsf::proto::lim::LimMsg;
use lsf::proto::machine::{ConnId, Effect, Endpoint, INCOMING, Input, Machine, Peer};
use lsf::proto::nlb::{NlbMsg, NlbQuery, NlbRanking, NlbRow};
use lsf::proto::sbd::{AttemptPhase, SbdMsg, TaskState};
use std::time::{Duration, Instant};

/// Virtual time that passes in a turn, microseconds.
const TURN_US: u64 = 100;
/// Turns and messages until every host is up, before it is given up.
const MOST_TURNS: usize = 1_000;

/// A start order: to which host, for which attempt.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    pub host: ConnId,
    pub key: JobKey,
}

pub struct Scheduler {
    machine: Mbatchd,
    now: Now,
    /// The effects of the last step.
    effects: Vec<Effect>,
    dialled: Vec<(ConnId, Endpoint)>,
    pinged: Vec<ConnId>,
    lim: Option<ConnId>,
    clients: ConnId,
    /// Start orders since this was emptied.
    pub started: Vec<Started>,
    /// The last refusal of a submission.
    pub refused: Option<String>,
    pub accepted: usize,
    /// The answer of the load balancer to every query.
    pub ranked: Vec<NlbRow>,
    /// The queries are not answered yet.
    pub holds: bool,
    queries: Vec<(ConnId, NlbQuery)>,
    /// The calls of the load balancer that are not answered yet.
    balancers: Vec<(ConnId, String)>,
    /// Bytes of the rows of jobs that were listed, and whether the last ones came.
    pub listed: (usize, bool),
    /// Requests that were routed.
    pub routed: usize,
}

impl Scheduler {
    /// Reads the configuration, starts the machine and has every host report.
    pub fn up(size: &Size) -> Result<Scheduler, String> {
        Scheduler::of(size, &size.files())
    }

    /// Does so with these files.
    pub fn of(size: &Size, files: &SiteFiles) -> Result<Scheduler, String> {
        let (conf, diags) = lsf::conf::load(files, site::ENVDIR);
        let conf = conf.ok_or_else(|| {
            let all: Vec<String> = diags.iter().map(|d| d.to_string()).collect();
            all.join("\n")
        })?;
        let found = Recovered { epoch: 1, ..Recovered::default() };
        let machine = Mbatchd::new(conf, &site::host_name(0), found);
        let mut scheduler = Scheduler {
            machine,
            now: Now { mono_us: 1_000_000, wall_us: 1_700_000_000_000_000 },
            effects: Vec::new(),
            dialled: Vec::new(),
            pinged: Vec::new(),
            lim: None,
            clients: INCOMING,
            started: Vec::new(),
            refused: None,
            accepted: 0,
            ranked: Vec::new(),
            holds: false,
            queries: Vec::new(),
            balancers: Vec::new(),
            listed: (0, false),
            routed: 0,
        };
        scheduler.input(Input::Start);
        for _ in 0..MOST_TURNS {
            scheduler.turn();
            if scheduler.answer_dials(size) == 0 && !scheduler.due() {
                return Ok(scheduler);
            }
        }
        Err("the hosts do not come up".to_owned())
    }

    /// Answers for the daemons that the machine has called; how many it were.
    fn answer_dials(&mut self, size: &Size) -> usize {
        let dialled = std::mem::take(&mut self.dialled);
        let count = dialled.len();
        for (conn, to) in dialled {
            let Endpoint::Tcp { host, daemon } = to else { continue };
            self.input(Input::Opened { conn, peer: Peer::Daemon { daemon, host } });
            let msg = match daemon {
                Daemon::Lim => {
                    self.lim = Some(conn);
                    let hosts = (0..size.hosts).map(site::first_load).collect();
                    Msg::Lim(LimMsg::Loads { hosts })
                }
                _ => {
                    let (boot_id, tasks) = ("boot".into(), Vec::new());
                    Msg::Sbd(SbdMsg::Inventory {
                        boot_id,
                        tasks,
                        more: false,
                        members: None,
                        validates: false,
                        unjoined: Vec::new(),
                        member_slots: Vec::new(),
                    })
                }
            };
            self.input(Input::Msg { conn, msg });
        }
        count
    }

    fn input(&mut self, input: Input) {
        self.machine.step(self.now, input, &mut self.effects);
        self.carry_out();
    }

    /// Reads what the machine wants done; the rest of it is dropped, as a runner does with what it
    /// has sent.
    fn carry_out(&mut self) {
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Send { conn, msg } | Effect::SendDurable { conn, msg } => match msg {
                    Msg::Sbd(SbdMsg::Start(order)) => {
                        self.started.push(Started { host: conn, key: order.key });
                    }
                    Msg::Client(ClientMsg::Submitted { .. }) => self.accepted += 1,
                    Msg::Refused(why) => self.refused = Some(format!("{why:?}")),
                    Msg::Client(ClientMsg::Rows { rows, more }) => {
                        self.listed = (self.listed.0 + rows.get().len(), !more);
                    }
                    Msg::Ping { .. } => self.pinged.push(conn),
                    Msg::Nlb(NlbMsg::Query(query)) => self.queries.push((conn, query)),
                    _ => {}
                },
                Effect::Append(record) => {
                    let is = matches!(record.event, Event::JobSwitch { route: Some(_), .. });
                    self.routed += usize::from(is);
                }
                Effect::Connect { conn, to: Endpoint::Nlb { host, .. } } => {
                    self.balancers.push((conn, host));
                }
                Effect::Connect { conn, to } => self.dialled.push((conn, to)),
                _ => {}
            }
        }
    }

    /// Is there anything for the machine to do now?
    pub fn due(&self) -> bool {
        let tick = self.machine.deadline().is_some_and(|at| at <= self.now.mono_us);
        tick || self.machine.has_work()
    }

    /// One turn of the loop: time passes, the machine does what is due.
    pub fn turn(&mut self) {
        self.now.mono_us += TURN_US;
        self.now.wall_us += TURN_US as i64;
        self.input(Input::Tick);
        if self.machine.has_work() {
            self.machine.work(self.now, &mut self.effects);
            self.carry_out();
        }
        for conn in std::mem::take(&mut self.pinged) {
            self.input(Input::Msg { conn, msg: Msg::Pong { n: 0 } });
        }
        self.answer_queries();
    }

    /// Answers for the load balancer.
    fn answer_queries(&mut self) {
        for (conn, host) in std::mem::take(&mut self.balancers) {
            let peer = Peer::Daemon { daemon: Daemon::NlbServer, host };
            self.input(Input::Opened { conn, peer });
        }
        if self.holds {
            return;
        }
        for (conn, query) in std::mem::take(&mut self.queries) {
            let (policy, rows) = (query.policy, self.ranked.clone());
            let used = vec!["JOB_REQNAME".to_owned()];
            let told = NlbRanking { policy, generation: 1, used, rows, ..NlbRanking::default() };
            self.input(Input::Msg { conn, msg: Msg::Nlb(NlbMsg::Ranked(told)) });
        }
    }

    /// A user connects.
    pub fn connect(&mut self, user: &str, uid: u32) -> ConnId {
        self.clients += 1;
        let conn = self.clients;
        let (user, host) = (user.to_owned(), site::host_name(0));
        self.input(Input::Opened { conn, peer: Peer::User { uid, gid: uid, user, host } });
        conn
    }

    pub fn disconnect(&mut self, conn: ConnId) {
        self.input(Input::Closed { conn });
    }

    /// One submission; the turn in which it is considered is the caller's.
    pub fn submit(&mut self, conn: ConnId, spec: JobSpec) {
        let env = format!("HOME={}\0", String::from_utf8_lossy(spec.home.as_bytes()));
        let submit = Submit { spec, env: env.as_str().into(), ..Submit::default() };
        self.input(Input::Msg { conn, msg: Msg::Client(ClientMsg::Submit(Box::new(submit))) });
    }

    /// `bjobs -p3` of one job, or `bjobs -p -u all`; false: it has no end within `limit`.
    pub fn lists_reasons(&mut self, job: Option<u32>, limit: Duration) -> bool {
        let from = Instant::now();
        self.listed = (0, false);
        let user = if job.is_none() { "all".to_owned() } else { String::new() };
        let ids = job.map(|job| IdSel { job, ..IdSel::default() }).into_iter().collect();
        let select = JobSelect { ids, user, ..JobSelect::default() };
        let which = Which { pend: true, ..Which::default() };
        let cols = vec![Col::Job, Col::Idx, Col::User, Col::Stat, Col::Queue, Col::FromHost];
        let more = [Col::ExecHosts, Col::Name, Col::SubmitTime, Col::PendReasons];
        let cols = cols.into_iter().chain(more).collect();
        // one job with the names of hosts, as bjobs -l -p3 shows them
        let reason_counts = job.is_none();
        let query = JobQuery { select, which, cols, reason_counts, ..JobQuery::default() };
        let conn = self.connect(site::OPERATOR, 900);
        self.input(Input::Msg { conn, msg: Msg::Client(ClientMsg::Jobs(Box::new(query))) });
        while !self.listed.1 && from.elapsed() < limit {
            self.input(Input::Drained { conn });
        }
        self.disconnect(conn);
        self.listed.1
    }

    fn report(&mut self, job: Started, phase: AttemptPhase) {
        let time = self.now.secs();
        let task = TaskState { key: job.key, phase, pid: 7, time, ..TaskState::default() };
        let msg = Msg::Sbd(SbdMsg::State(Box::new(task)));
        self.input(Input::Msg { conn: job.host, msg });
    }

    /// The job's host says that it runs.
    pub fn runs(&mut self, job: Started) {
        self.report(job, AttemptPhase::Running);
    }

    /// The job's host says that it has ended well.
    pub fn ends(&mut self, job: Started) {
        self.report(job, AttemptPhase::Ended { end: End::Status(0), exit_info: 0 });
    }

    /// One host reports another load.
    pub fn load(&mut self, host: usize, run_queue: f32) {
        let Some(conn) = self.lim else { return };
        let msg = Msg::Lim(LimMsg::Loads { hosts: vec![site::load(host, run_queue)] });
        self.input(Input::Msg { conn, msg });
    }
}

/// Jobs of the operator that take all slots: some of one slot on hosts apart from each other, the
/// others of many.
pub fn blockers(size: &Size, singles: usize) -> Vec<JobSpec> {
    let of = |slots: usize, hosts: Vec<String>| JobSpec {
        command: "hold".into(),
        queue: site::OPERATOR.into(),
        res_req: "select[type==any]".into(),
        min_slots: slots as u32,
        max_slots: slots as u32,
        hosts,
        ..JobSpec::default()
    };
    let apart = size.hosts / singles;
    let mut specs: Vec<JobSpec> =
        (0..singles).map(|n| of(1, vec![site::host_name(n * apart)])).collect();
    let each = size.hosts * SLOTS / 100;
    let mut left = size.hosts * SLOTS - singles;
    while left > 0 {
        specs.push(of(each.min(left), Vec::new()));
        left -= each.min(left);
    }
    specs
}
