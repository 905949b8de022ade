//! mbatchd as a pure, event-sourced state machine.
//!
//! `Mbatchd::step` decides; every change goes through [`Mbatchd::emit`], which applies the event to
//! the [`state::State`] and asks for it to be appended. What is acknowledged leaves with
//! `SendDurable`. Beside the event-sourced state there is soft state only: links to hosts, load,
//! readiness of pending jobs, open listings and waits. It is rebuilt from the state at any time.
//!
//! | room | what lives there |
//! |---|---|
//! | state | the event-sourced state, and `apply`, which alone changes it |
//! | site | the configuration, compiled |
//! | cluster | the hosts at run time: links, load, status |
//! | usage | what follows from the state: reservations, dependency conditions, closed windows |
//! | sched | which pending job goes where, and why not |
//! | query | what commands list, read or wait for |
//! | admin | requests of administrators; permissions; what mbatchd says about itself |
//! | lifecycle | what happens to jobs, by request, by report, by load and time |

pub mod admin;
pub mod cluster;
pub mod lifecycle;
pub mod query;
pub mod sched;
pub mod site;
pub mod state;
pub mod usage;

use crate::conf::{ClusterConf, Diag, Member};
use crate::model::event::{Event, Record};
use crate::model::idmap::IdMap;
use crate::model::job::SpoolRef;
use crate::model::{ByteStr, JobRef, Now};
use crate::proto::Daemon;
use crate::proto::caps;
use crate::proto::client::{ClientMsg, env_hash};
use crate::proto::machine::{ConnId, Effect, Input, Machine, Peer};
use crate::proto::{Msg, Refusal};
use sched::view::View;
use site::Site;
use state::State;
use state::change::{Applied, Change, ChangeKind};
use std::collections::HashMap;
use std::rc::Rc;
use usage::limits_ledger::LimitsLedger;
use usage::reserve::ledger::Reserve;

/// Records that one pass over eligible jobs may write before other work gets its turn.
pub const RECORDS_PER_TURN: usize = 2000;

/// What recovery found in the log.
#[derive(Debug, Default)]
pub struct Recovered {
    pub records: Vec<Record>,
    /// Jobs whose records were lost, with the words for the log.
    pub damaged: Vec<(JobRef, String)>,
    /// Control records that were lost.
    pub controls: Vec<lifecycle::lost_controls::LostControl>,
    /// IDs seen in any log.
    pub seen_ids: Vec<u32>,
    /// This run's number: larger than any before.
    pub epoch: u64,
    /// Number and length of the newest spool file.
    pub spool: u32,
    pub spool_end: u64,
}

/// Now and the effects of one step.
pub struct StepContext<'a> {
    pub now: Now,
    pub out: &'a mut Vec<Effect>,
}

impl StepContext<'_> {
    pub fn send(&mut self, conn: ConnId, msg: Msg) {
        self.out.push(Effect::Send { conn, msg });
    }
    pub fn reply(&mut self, conn: ConnId, msg: ClientMsg) {
        self.out.push(Effect::Send { conn, msg: Msg::Client(msg) });
    }
    /// Leaves when all that was appended so far is durable.
    pub fn reply_durable(&mut self, conn: ConnId, msg: ClientMsg) {
        self.out.push(Effect::SendDurable { conn, msg: Msg::Client(msg) });
    }
    pub fn refuse(&mut self, conn: ConnId, refusal: Refusal) {
        self.out.push(Effect::Send { conn, msg: Msg::Refused(refusal) });
    }
    pub fn say(&mut self, level: log::Level, text: impl Into<String>) {
        self.out.push(Effect::Say { level, text: text.into() });
    }
}

/// Where the next spooled bytes go.
#[derive(Clone, Copy, Debug, Default)]
struct SpoolEnd {
    spool: u32,
    at: u64,
}

/// The machine.
pub struct Mbatchd {
    pub(crate) site: Rc<Site>,
    pub(crate) state: State,
    /// This host, in the cluster's spelling.
    pub(crate) me: String,
    pub(crate) epoch: u64,
    spool: SpoolEnd,
    /// Environments spooled in this spool file, by uid and [`env_hash`].
    envs: HashMap<(u32, String), SpoolRef>,
    /// Jobs to hold because the log lost part of their history.
    damaged: Vec<(JobRef, String)>,
    /// Queues and hosts to close because the log lost their control records.
    lost_controls: Vec<lifecycle::lost_controls::LostControl>,
    /// Root may submit (lsf.sudoers; launchers check again).
    root_jobs: bool,
    started: bool,
    /// The log cannot be written: nothing is accepted or dispatched, with the reason.
    pub(crate) log_failed: Option<String>,
    pub(crate) peers: IdMap<ConnId, Peer>,
    /// Of connections: the chain of submissions of which one was refused.
    pub(crate) broken: IdMap<ConnId, u32>,
    pub(crate) links: cluster::hosts::Links,
    pub(crate) sched: sched::Sched,
    pub(crate) deps: usage::dependencies::Deps,
    pub(crate) waits: query::wait::Waits,
    pub(crate) watches: query::watch::Watches,
    pub(crate) listings: query::jobs::Listings,
    pub(crate) works: lifecycle::works::Works,
    pub(crate) keep: lifecycle::clean::Keep,
    pub(crate) windows: usage::windows::ClosedByWindows,
    pub(crate) overload: lifecycle::load_suspend::Overload,
    pub(crate) reserve: Reserve,
    pub(crate) limits: LimitsLedger,
    pub(crate) status: admin::status::Status,
    pub(crate) unreached: cluster::unreached::Unreached,
    pub(crate) eligible: lifecycle::pending_time::Eligible,
    pub(crate) perfmon: admin::perfmon::Perfmon,
    pub(crate) diagnose: admin::diagnose::Diagnose,
    /// Who asked for the reconfiguration under way.
    reconfig: Vec<ConnId>,
    /// The errors of a reconfiguration, answered when it is whole.
    reconfig_diags: Vec<Diag>,
}

/// Environments remembered for sharing; beyond it the table starts anew.
const MAX_ENVS: usize = 32_768;

impl Mbatchd {
    /// A machine for the host `me` with what recovery found.
    pub fn new(conf: ClusterConf, me: &str, found: Recovered) -> Self {
        let mut state = State { next_job: 1, ..State::default() };
        let site = Rc::new(Site::new(conf, &mut state.names));
        let mut mbd = Mbatchd {
            links: cluster::hosts::Links::new(&site),
            site,
            state,
            me: me.to_string(),
            epoch: 0,
            spool: SpoolEnd::default(),
            envs: HashMap::new(),
            damaged: Vec::new(),
            lost_controls: Vec::new(),
            root_jobs: false,
            started: false,
            log_failed: None,
            peers: IdMap::default(),
            broken: IdMap::default(),
            sched: sched::Sched::default(),
            deps: usage::dependencies::Deps::default(),
            waits: query::wait::Waits::default(),
            watches: query::watch::Watches::default(),
            listings: query::jobs::Listings::default(),
            works: lifecycle::works::Works::default(),
            keep: lifecycle::clean::Keep::default(),
            windows: usage::windows::ClosedByWindows::default(),
            overload: lifecycle::load_suspend::Overload::default(),
            reserve: Reserve::default(),
            limits: LimitsLedger::default(),
            status: admin::status::Status::default(),
            unreached: cluster::unreached::Unreached::default(),
            eligible: lifecycle::pending_time::Eligible::default(),
            perfmon: admin::perfmon::Perfmon::default(),
            diagnose: admin::diagnose::Diagnose::default(),
            reconfig: Vec::new(),
            reconfig_diags: Vec::new(),
        };
        mbd.reload(found);
        mbd
    }

    /// The parts below the scheduler, for reading.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            now: self.sched.now,
            state: &self.state,
            site: &self.site,
            hosts: &self.links.hosts,
            reserve: &self.reserve,
            limits: &self.limits,
            windows: &self.windows,
            depends: &self.deps,
            unreached: &self.unreached,
        }
    }

    /// The scheduler, and what it reads.
    pub(crate) fn sched_and_view(&mut self) -> (&mut sched::Sched, View<'_>) {
        let view = View {
            now: self.sched.now,
            state: &self.state,
            site: &self.site,
            hosts: &self.links.hosts,
            reserve: &self.reserve,
            limits: &self.limits,
            windows: &self.windows,
            depends: &self.deps,
            unreached: &self.unreached,
        };
        (&mut self.sched, view)
    }

    /// A job that the scheduler has overlooked: hosts have room for it, and no pass is due. For
    /// tests and the simulator.
    pub fn overlooked(&self) -> Option<u32> {
        const MOST_CLASSES: usize = 64;
        let idle = self.started && self.log_failed.is_none() && self.works.refill.is_none();
        let due = self.deadline().is_some_and(|d| d <= self.sched.now.mono_us);
        if !idle || due {
            return None;
        }
        self.sched.overlooked(&self.view(), MOST_CLASSES)
    }

    /// Are the reservations of all hosts what the started elements reserve? Else where they are
    /// not. For tests and the simulator: it looks at every started element.
    pub fn reserve_audit(&self) -> Result<(), String> {
        self.reserve.audit(&self.state, &self.site)
    }

    /// Is what is counted under each limit what the started elements hold? Else where it is not.
    /// For tests and the simulator: it looks at every started element and every limit.
    pub fn limits_audit(&self) -> Result<(), String> {
        self.limits.audit(&self.state, &self.site)
    }

    /// Says whether root may submit.
    pub fn with_root_jobs(mut self, may: bool) -> Self {
        self.root_jobs = may;
        self
    }

    /// Puts the state back to what the log holds: at start, and when records could not be
    /// written. Soft state is rebuilt.
    pub fn reload(&mut self, found: Recovered) {
        // ids go on to mean what they do in the policy and in tables of hosts
        let names = std::mem::take(&mut self.state.names);
        self.state = State { next_job: 1, names, ..State::default() };
        // each goes as its job comes, so that its memory is used again
        for rec in found.records {
            self.state.recover(&rec);
        }
        let known = &self.state.jobs;
        self.state.reserved =
            found.seen_ids.iter().copied().filter(|i| !known.contains_key(i)).collect();
        self.damaged = found.damaged;
        self.lost_controls = found.controls;
        self.epoch = found.epoch;
        self.spool = SpoolEnd { spool: found.spool, at: found.spool_end };
        self.envs.clear();
        self.note_carried();
        self.group_hosts_read();
        self.rebuild();
    }

    /// The same after a reconfiguration, while others are served: jobs are looked at unit by
    /// unit, and none is dispatched before all were.
    fn rebuild_by_units(&mut self) {
        self.sched = self.sched.anew();
        self.deps = std::mem::take(&mut self.deps).anew();
        self.works.drop_scans();
        self.sched
            .expect(self.state.counts.pending_jobs().min(self.state.jobs.len() as u64) as usize);
        self.overload = lifecycle::load_suspend::Overload::default();
        self.unreached = cluster::unreached::Unreached::default();
        self.look_left();
        self.reserve = Reserve::of_all(&self.state, &self.site, self.reserve.now());
        self.limits.recount(&self.state, &self.site);
        self.works.refill = Some(0);
        self.sched.changed();
    }

    /// Soft state from the state and the policy.
    fn rebuild(&mut self) {
        self.works.refill = None;
        self.sched = self.sched.anew();
        self.deps = usage::dependencies::Deps::default();
        // there may be very many jobs: few wait for others, and those that ended wait for nothing
        let (mut waiting, mut pending) = (Vec::new(), Vec::new());
        for job in self.state.each_job().filter(|job| job.tally.pend + job.tally.psusp > 0) {
            pending.push(job.id);
            waiting.extend(job.depend.as_ref().map(|_| job.id));
        }
        waiting.into_iter().for_each(|id| self.watch_depend(id));
        let (sched, view) = self.sched_and_view();
        sched.begins_rebuilt(&view);
        self.sched.expect(pending.len());
        pending.into_iter().for_each(|id| self.refresh(id));
        self.overload = lifecycle::load_suspend::Overload::default();
        self.unreached = cluster::unreached::Unreached::default();
        self.look_left();
        self.reserve = Reserve::of_all(&self.state, &self.site, self.reserve.now());
        self.limits.recount(&self.state, &self.site);
        self.sched.changed();
    }

    /// Changes the state by one event and has it logged.
    pub(crate) fn emit(&mut self, cx: &mut StepContext, event: Event) {
        let rec = Record { time: cx.now.secs(), event };
        match self.state.apply(&rec) {
            Applied::Job(change) => {
                self.follow(&change);
                if let Some(why) = self.limits.take_fault() {
                    cx.say(log::Level::Error, why);
                }
            }
            Applied::Nothing => {}
            Applied::Rejected(why) => {
                cx.say(log::Level::Error, format!("an event does not fit: {why}"));
                return;
            }
        }
        self.keep.wrote();
        cx.out.push(Effect::Append(Box::new(rec)));
    }

    /// Has all that is derived from the state follow a change of a job. The only place that does.
    fn follow(&mut self, change: &Change) {
        let at = change.at;
        self.works.note_changed(at.job);
        if change.regrouped {
            self.works.note_parted(at.job);
        }
        self.deps.touched(&self.state, at);
        self.look_left_of(at);
        self.refresh_at(at);
        self.reserve.refresh(&self.state, &self.site, at);
        self.limits.follow(&self.state, &self.site, change);
        self.perfmon.follow(change);
        match &change.kind {
            // a submission makes room for nobody
            ChangeKind::Submitted { .. } => self.sched.needed = true,
            ChangeKind::Modified { .. } => self.sched.changed(),
            ChangeKind::Element { held: Some(held), .. } => {
                self.sched.slots_released(held.user);
                held.hosts.iter().for_each(|host| self.sched.host_changed(host.0));
            }
            _ => self.sched.note_change(),
        }
    }

    /// Where exact bytes will lie; asks for them to be spooled.
    pub(crate) fn spool(&mut self, cx: &mut StepContext, data: ByteStr) -> SpoolRef {
        let len = data.len() as u32;
        let at = SpoolRef { spool: self.spool.spool, at: self.spool.at, len };
        self.spool.at += u64::from(len);
        cx.out.push(Effect::Spool { at, data });
        at
    }

    /// The place of an environment: stored once for a user as long as the spool file lasts.
    pub(crate) fn spool_env(&mut self, cx: &mut StepContext, uid: u32, env: ByteStr) -> SpoolRef {
        let key = (uid, env_hash(&env));
        if let Some(at) = self.envs.get(&key) {
            return *at;
        }
        if self.envs.len() >= MAX_ENVS {
            self.envs.clear();
        }
        let at = self.spool(cx, env);
        self.envs.insert(key, at);
        at
    }

    /// The place of an environment that this user stored before.
    pub(crate) fn env_kept(&self, uid: u32, hash: &str) -> Option<SpoolRef> {
        self.envs.get(&(uid, hash.to_string())).copied()
    }

    fn start(&mut self, cx: &mut StepContext) {
        self.started = true;
        self.status.started = cx.now.secs();
        self.perf_by_params(cx);
        let names = crate::proto::lim::INDEX_NAMES.iter().map(|s| s.to_string()).collect();
        self.emit(cx, Event::LoadIndex { names });
        // that forgets the hosts that jobs were not to go to
        let tried: Vec<JobRef> = self.state.tries.keys().copied().collect();
        self.emit(cx, self.start_event());
        tried.into_iter().for_each(|at| self.refresh_at(at));
        self.hold_damaged(cx);
        self.end_all_orphans(cx);
        self.net_start(cx);
    }

    pub(crate) fn start_event(&self) -> Event {
        let (hosts, queues) = (self.site.hosts.len() as u32, self.site.queues.len() as u32);
        let (master, cluster) = (self.me.clone(), self.site.conf.base.name.clone());
        Event::MbdStart { master, cluster, hosts, queues }
    }

    /// Marks the jobs whose history is incomplete. After a reload they are those that the log
    /// does not mark yet: the marks of the start may be among what could not be written.
    fn hold_damaged(&mut self, cx: &mut StepContext) {
        self.close_lost(cx);
        for (at, why) in std::mem::take(&mut self.damaged) {
            if self.state.jobs.contains_key(&at.job) {
                cx.say(log::Level::Error, format!("job <{at}> is held: {why}"));
                self.emit(cx, Event::Hold { at, why });
            } else {
                cx.say(log::Level::Error, format!("job <{at}> is lost from the log: {why}"));
                self.state.reserved.insert(at.job);
            }
        }
    }

    fn message(&mut self, cx: &mut StepContext, conn: ConnId, msg: Msg) {
        let Some(peer) = self.peers.get(&conn).cloned() else { return };
        match (msg, peer) {
            (Msg::Client(m), Peer::User { uid, gid, user, host }) => {
                self.client(cx, conn, admin::permissions::Caller { uid, gid, user, host }, m);
            }
            (Msg::Sbd(m), Peer::Daemon { daemon: Daemon::Sbatchd, host }) => {
                if let Some(why) = caps::check_sbd(&m) {
                    cx.say(log::Level::Warn, format!("sbatchd of <{host}>: {why}; closed"));
                    cx.out.push(Effect::Close { conn });
                    return self.net_closed(cx, conn);
                }
                self.take_sbatchd_message(cx, conn, m)
            }
            (Msg::Lim(m), Peer::Daemon { daemon: Daemon::Lim, .. }) => {
                self.take_lim_message(cx, conn, m)
            }
            (Msg::Ping { n }, _) => cx.send(conn, Msg::Pong { n }),
            (Msg::Pong { .. } | Msg::Refused(_), _) => self.heard(cx, conn),
            (_, peer) => {
                cx.say(log::Level::Warn, format!("{peer} sent what it may not; closed"));
                cx.out.push(Effect::Close { conn });
            }
        }
    }

    fn client(
        &mut self,
        cx: &mut StepContext,
        conn: ConnId,
        who: admin::permissions::Caller,
        msg: ClientMsg,
    ) {
        self.perfmon.asked(&msg);
        self.note_query(cx, &who, &msg);
        if let Err(r) = caps::check(&msg) {
            return cx.refuse(conn, r);
        }
        match msg {
            ClientMsg::Submit(s) => self.submit(cx, conn, &who, *s),
            ClientMsg::Control(c) => self.control(cx, conn, &who, *c),
            ClientMsg::Modify(m) => self.modify(cx, conn, &who, *m),
            ClientMsg::Peek(s) => self.peek(cx, conn, &who, &s),
            ClientMsg::Stored { id, script } => self.stored(cx, conn, &who, &id, script),
            ClientMsg::Jobs(q) => self.list_jobs(cx, conn, &who, *q),
            ClientMsg::Queues { names, user, host } => {
                self.list_queues(cx, conn, &names, &user, &host)
            }
            ClientMsg::Hosts { names, res_req } => self.list_hosts(cx, conn, &names, &res_req),
            ClientMsg::Wait(w) => self.wait(cx, conn, &who, w),
            ClientMsg::Admin(op) => self.admin(cx, conn, &who, op),
            ClientMsg::Users { names } => self.list_users(cx, conn, &names),
            ClientMsg::Groups { hosts, names, expand, units } => {
                self.list_groups(cx, conn, (hosts, units), &names, expand)
            }
            ClientMsg::Params => self.list_params(cx, conn),
            _ => {
                cx.say(log::Level::Warn, format!("connection {conn}: a command sent an answer"));
                cx.out.push(Effect::Close { conn });
            }
        }
    }

    fn closed(&mut self, cx: &mut StepContext, conn: ConnId) {
        self.peers.remove(&conn);
        self.broken.remove(&conn);
        self.listings.close(conn);
        self.works.close(conn);
        self.waits.close(conn);
        self.watches.close(conn);
        self.reconfig.retain(|c| *c != conn);
        self.net_closed(cx, conn);
    }

    fn config(&mut self, cx: &mut StepContext, conf: Option<ClusterConf>, diags: Vec<Diag>) {
        if let Some(mut conf) = conf {
            conf.unix.keep_answers(&self.site.conf.unix);
            let sampling = admin::perfmon::differ(self.site.params(), &conf.batch.params);
            self.take_policy(cx, conf);
            if sampling {
                self.perf_by_params(cx);
            }
            self.status.reconfigured = cx.now.secs();
            cx.say(log::Level::Info, "reconfigured");
        } else {
            cx.say(log::Level::Error, "reconfiguration refused: the old policy stays");
        }
        self.reconfig_diags = diags;
        // one that is taken is whole once all jobs were looked at
        if self.works.refill.is_none() {
            self.answer_reconfig(cx);
        }
    }

    /// The policy that holds, with the hosts that have joined by themselves; None: it has them.
    pub fn with_members(&self, all: &[Member]) -> Option<ClusterConf> {
        let mut conf = self.site.conf.clone();
        conf.base.set_members(all, &self.me).then_some(conf)
    }

    fn answer_reconfig(&mut self, cx: &mut StepContext) {
        use crate::proto::client::AdminLine;
        let diags = std::mem::take(&mut self.reconfig_diags);
        let failed = crate::conf::has_errors(&diags);
        let lines: Vec<AdminLine> = diags
            .iter()
            .map(|d| AdminLine {
                about: String::new(),
                code: i32::from(d.severity == crate::conf::Severity::Error),
                text: d.to_string(),
            })
            .collect();
        for conn in std::mem::take(&mut self.reconfig) {
            if failed {
                let code = crate::model::reason::err::BAD_ARG;
                let mut lines = lines.clone();
                let text = "Reconfiguration aborted.".to_string();
                lines.push(AdminLine { about: String::new(), code, text });
                cx.reply(conn, ClientMsg::AdminDone { lines });
            } else {
                cx.reply_durable(conn, ClientMsg::AdminDone { lines: lines.clone() });
            }
        }
    }

    fn failed(&mut self, cx: &mut StepContext, why: String) {
        cx.say(log::Level::Error, format!("the event log cannot be written: {why}"));
        self.log_failed = Some(why);
        for conn in self.works.give_up() {
            cx.refuse(conn, Refusal::new(crate::model::reason::err::LOG_FULL));
        }
        // What hosts were told or asked since the last durable record is void: start afresh.
        self.net_drop_all(cx);
    }
}

impl Machine for Mbatchd {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        let mut cx = StepContext { now, out };
        let cx = &mut cx;
        self.sched.now = now;
        self.reserve.set_now(now.secs());
        let tick = matches!(input, Input::Tick);
        match input {
            Input::Start => self.start(cx),
            Input::Tick => {}
            Input::Opened { conn, peer } => {
                self.peers.insert(conn, peer);
                self.net_opened(cx, conn);
            }
            Input::ConnectFailed { conn, why, .. } => self.net_failed(cx, conn, &why),
            Input::Closed { conn } => self.closed(cx, conn),
            Input::Drained { conn } => {
                self.works.drained(conn);
                self.next_slice(cx, conn);
            }
            Input::Msg { conn, msg } => self.message(cx, conn, msg),
            Input::Config { conf, diags } => self.config(cx, conf.map(|c| *c), diags),
            Input::Groups { asked, found } => {
                // Nobody else holds the policy between two steps.
                if let Some(site) = Rc::get_mut(&mut self.site) {
                    site.conf.unix.answered(&asked, found);
                    // another row of lsb.users may apply to a user
                    self.sched.users_changed();
                    self.limits.recount(&self.state, &self.site);
                }
            }
            Input::LogFailed { why } => self.failed(cx, why),
            Input::LogBack => {
                self.log_failed = None;
                cx.say(log::Level::Info, "the event log can be written again");
                self.hold_damaged(cx);
                self.end_all_orphans(cx);
                // jobs may not be as run windows want them: that work was given up
                self.windows.renew();
                self.sched.changed();
                self.net_start(cx);
            }
            Input::Switched { ok } => self.switched(cx, ok),
            Input::Datagram { .. }
            | Input::Sample(_)
            | Input::External(_)
            | Input::Kept { .. }
            | Input::Members(_)
            | Input::Os(_)
            | Input::Task { .. } => {}
        }
        self.settle(cx);
        self.net_tick(cx);
        self.wait_tick(cx);
        if self.log_failed.is_none() && self.started {
            self.housekeep(cx);
            self.unreached_due(cx);
            self.orphans_due(cx);
            self.windows_due(cx);
            self.overload_due(cx);
            self.perf_due(cx);
            self.eligible_due(cx);
            for host in self.reserve.take_freed() {
                self.sched.host_changed(host);
            }
            // one pass for all that a turn brings: the tick comes behind the other inputs
            if tick {
                self.schedule_due(cx);
            }
            self.tell_exclusive(cx);
        }
    }

    fn work(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.work_left() {
            self.reserve.set_now(now.secs());
            self.work_unit(&mut StepContext { now, out });
        }
    }

    fn has_work(&self) -> bool {
        self.work_left()
    }

    fn deadline(&self) -> Option<u64> {
        // While nothing may be decided, nothing is due.
        let on = self.started && self.log_failed.is_none();
        let work = on.then(|| {
            let (keep, windows) = (self.keep.deadline(), self.windows.deadline());
            let left = (self.deps.left() && !self.conditions_left()) || self.eligible.left();
            let deps = left.then_some(0).or_else(|| self.orphan_deadline());
            let perf = self.perfmon.deadline();
            let unreached = self.unreached.deadline();
            [keep, self.sched.deadline(), windows, self.overload.deadline(), deps, perf, unreached]
        });
        let d = [self.links.deadline(), self.waits.deadline()];
        d.into_iter().chain(work.into_iter().flatten()).flatten().min()
    }
}

#[cfg(test)]
mod tests;
