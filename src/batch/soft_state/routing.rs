//! The requests that wait in pipe queues, and the load balancer's servers that are asked about
//! them. `lifecycle::route` fills it, asks and decides.
//!
//! Invariants: a request is in `due` exactly while it waits for its next try; a query is with one
//! server at a time; a server has one query under way. All of it can be rebuilt: after a restart
//! every request is tried at once.

use crate::batch::state::names::{HostId, QueueId};
use crate::model::JobRef;
use crate::model::nlb::NlbAddress;
use crate::model::time::US;
use crate::proto::machine::ConnId;
use crate::proto::nlb::{NlbQuery, NlbRow};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// Time for the answer of a server, microseconds.
pub const ANSWER_TIME: u64 = 5 * US;
/// Pause before a server is called again, microseconds.
pub const REDIAL: u64 = 2 * US;
/// Time between two tries of a request for which something may have changed, microseconds.
pub const WAKE_PAUSE: u64 = US;
/// Requests of one job that are routed at a time.
pub const REQUESTS_OF_JOB: usize = 1_000;
/// Hosts of an answer that are taken.
pub const MAX_CHOICES: usize = 10_000;

/// A request that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub queue: QueueId,
    /// When it entered the pipe queue, seconds since the epoch.
    pub since: i64,
    /// Why the last try has failed; empty: none was made.
    pub why: Rc<str>,
    /// The next try, microseconds of the monotonic clock; `None`: it is being tried.
    pub next: Option<u64>,
}

/// Requests that are asked about together.
#[derive(Clone, Debug)]
pub struct Group {
    pub queue: QueueId,
    pub requests: Vec<JobRef>,
}

/// A query with those it is about.
#[derive(Clone, Debug)]
pub struct Query {
    pub group: Group,
    pub query: NlbQuery,
    /// The servers that were not asked yet, in order.
    pub servers: VecDeque<NlbAddress>,
    /// The servers that have not answered, and why.
    pub failed: Vec<(NlbAddress, String)>,
}

/// Destinations in the order in which they are tried.
#[derive(Clone, Debug)]
pub struct Choice {
    pub queue: String,
    /// The host; `None`: any host of the queue.
    pub host: Option<String>,
    /// The value of the policy's sort; empty without a policy.
    pub value: String,
}

/// An answer that is being carried out.
#[derive(Debug)]
pub struct Deciding {
    pub group: Group,
    /// The policy applied; empty: the destinations are listed.
    pub policy: String,
    pub choices: Rc<[Choice]>,
    /// The requests that were tried.
    pub tried: usize,
}

/// The state of a connection to a server.
#[derive(Debug, Default)]
enum Line {
    /// No call was made.
    #[default]
    Idle,
    /// The last call has failed: why, and the instant of the next one.
    Failed {
        until: u64,
        why: String,
    },
    Dialing(ConnId),
    Up(ConnId),
}

/// A server.
#[derive(Debug, Default)]
struct Server {
    line: Line,
    waiting: VecDeque<Query>,
    /// The query under way, when it was sent, and the rows that have come.
    asked: Option<(Query, u64, Vec<NlbRow>)>,
}

/// The next step for a server.
#[derive(Debug)]
pub enum ServerWork {
    Dial(ConnId, NlbAddress),
    Send(ConnId, NlbQuery),
    Close(ConnId),
}

/// All of it.
#[derive(Debug, Default)]
pub struct Routing {
    /// Jobs that may have requests, or no longer.
    todo: BTreeSet<u32>,
    requests: BTreeMap<JobRef, Waiting>,
    due: BTreeSet<(u64, JobRef)>,
    servers: BTreeMap<(String, u16), Server>,
    last_conn: u64,
    deciding: VecDeque<Deciding>,
    /// Queries that no server has answered.
    unanswered: VecDeque<Query>,
    /// Queries of a queue that are under way.
    under_way: BTreeMap<QueueId, u32>,
    /// The request attributes that a queue's policy looks at, by its last answer.
    looks_at: BTreeMap<QueueId, Rc<[String]>>,
    /// The generation for which it was said that a queue's policy does not exist.
    told_unknown: BTreeMap<QueueId, u64>,
    /// Something has changed for those whose try has failed: they are tried from this instant on.
    wake: Option<u64>,
    last_wake: u64,
    /// Requests that were routed to a queue that is `loadonly`, and have not started.
    bound: BTreeMap<(QueueId, HostId), BTreeSet<JobRef>>,
    bound_at: BTreeMap<JobRef, (QueueId, HostId)>,
}

/// The first number of connections to servers, among those that mbatchd chooses.
pub const FIRST_CONN: ConnId = 1 << 60;

impl Routing {
    /// Something about a job has changed.
    pub(crate) fn touch(&mut self, job: u32) {
        self.todo.insert(job);
    }

    /// The state was read anew: what was known of requests is void.
    pub(crate) fn forget_requests(&mut self) {
        self.requests.clear();
        self.due.clear();
        self.deciding.clear();
        self.unanswered.clear();
        self.bound.clear();
        self.bound_at.clear();
    }

    /// Every job that it knows a request of is looked at again.
    pub(crate) fn touch_all(&mut self) {
        self.todo.extend(self.requests.keys().map(|at| at.job));
    }

    pub(crate) fn next_touched(&mut self) -> Option<u32> {
        self.todo.pop_first()
    }

    /// Is there nothing at all?
    pub(crate) fn is_idle(&self) -> bool {
        self.todo.is_empty() && self.requests.is_empty() && self.servers.is_empty()
    }

    /// A request waits in a pipe queue; one that does already stays as it is.
    pub(crate) fn admit(&mut self, at: JobRef, queue: QueueId, since: i64, now: u64) {
        if let Some(known) = self.requests.get(&at) {
            if known.queue == queue {
                return;
            }
            self.drop_request(at);
        }
        let why = Rc::from("");
        self.requests.insert(at, Waiting { queue, since, why, next: Some(now) });
        self.due.insert((now, at));
    }

    /// The requests of a job.
    pub(crate) fn of_job(&self, job: u32) -> Vec<JobRef> {
        let all = JobRef { job, idx: 0 }..=JobRef { job, idx: u32::MAX };
        self.requests.range(all).map(|(at, _)| *at).collect()
    }

    pub(crate) fn drop_request(&mut self, at: JobRef) {
        if let Some(Waiting { next: Some(next), .. }) = self.requests.remove(&at) {
            self.due.remove(&(next, at));
        }
    }

    pub(crate) fn get(&self, at: JobRef) -> Option<&Waiting> {
        self.requests.get(&at)
    }

    /// The requests whose next try has come, up to so many: they are being tried.
    pub(crate) fn take_due(&mut self, now: u64, most: usize) -> Vec<JobRef> {
        if self.wake.is_some_and(|at| at <= now) {
            self.wake = None;
            self.last_wake = now;
            for (at, waiting) in &mut self.requests {
                if let Some(next) = waiting.next.filter(|next| *next > now) {
                    self.due.remove(&(next, *at));
                    self.due.insert((now, *at));
                    waiting.next = Some(now);
                }
            }
        }
        let some: Vec<_> =
            self.due.iter().take_while(|due| due.0 <= now).take(most).copied().collect();
        for due in &some {
            self.due.remove(due);
            if let Some(waiting) = self.requests.get_mut(&due.1) {
                waiting.next = None;
            }
        }
        some.into_iter().map(|due| due.1).collect()
    }

    /// A try has failed, or was not made: the next one.
    pub(crate) fn put_off(&mut self, at: JobRef, why: Option<&Rc<str>>, next: u64) {
        let Some(waiting) = self.requests.get_mut(&at) else { return };
        if let Some(before) = waiting.next {
            self.due.remove(&(before, at));
        }
        if let Some(why) = why {
            waiting.why = why.clone();
        }
        waiting.next = Some(next);
        self.due.insert((next, at));
    }

    /// Something has changed that may matter to those that wait.
    pub(crate) fn note_room(&mut self, now: u64) {
        if !self.requests.is_empty() && self.wake.is_none() {
            self.wake = Some(now.max(self.last_wake.saturating_add(WAKE_PAUSE)));
        }
    }

    /// All are tried at once: the configuration is another one.
    pub(crate) fn renew(&mut self, now: u64) {
        self.looks_at.clear();
        self.note_room(now);
    }

    /// The policies of a server are others: their answers may be, too.
    pub(crate) fn note_policies(&mut self, now: u64) {
        self.looks_at.clear();
        self.note_room(now);
    }

    /// May a queue have another query under way?
    pub(crate) fn may_ask(&self, queue: QueueId, most: u32) -> bool {
        self.under_way.get(&queue).is_none_or(|n| *n < most)
    }

    /// The request attributes that a queue's policy looks at; `None`: not known yet.
    pub(crate) fn looks_at(&self, queue: QueueId) -> Option<&Rc<[String]>> {
        self.looks_at.get(&queue)
    }

    /// An answer tells what the policy of a queue looks at.
    pub(crate) fn note_looks_at(&mut self, queue: QueueId, used: &[String]) {
        self.looks_at.insert(queue, used.into());
    }

    /// Is it to be said that a queue's policy does not exist? Once a generation.
    pub(crate) fn tells_unknown(&mut self, queue: QueueId, generation: u64) -> bool {
        self.told_unknown.insert(queue, generation) != Some(generation)
    }

    /// Asks the first of its servers.
    pub(crate) fn ask(&mut self, query: Query) {
        *self.under_way.entry(query.group.queue).or_default() += 1;
        self.pass_on(query);
    }

    /// Gives a query to the next of its servers.
    fn pass_on(&mut self, mut query: Query) {
        match query.servers.pop_front() {
            Some(to) => {
                let key = (to.host.clone(), to.port);
                query.failed.push((to, String::new()));
                self.servers.entry(key).or_default().waiting.push_back(query);
            }
            None => {
                self.ended(query.group.queue);
                self.unanswered.push_back(query);
            }
        }
    }

    fn ended(&mut self, queue: QueueId) {
        if let Some(n) = self.under_way.get_mut(&queue) {
            *n = n.saturating_sub(1);
        }
    }

    /// A query that no server has answered.
    pub(crate) fn next_unanswered(&mut self) -> Option<Query> {
        self.unanswered.pop_front()
    }

    pub(crate) fn decide(&mut self, deciding: Deciding) {
        self.deciding.push_back(deciding);
    }

    pub(crate) fn next_decision(&mut self) -> Option<Deciding> {
        self.deciding.pop_front()
    }

    /// Puts back what is not at its end.
    pub(crate) fn decide_further(&mut self, deciding: Deciding) {
        self.deciding.push_front(deciding);
    }

    /// The next steps for all servers.
    pub(crate) fn server_work(&mut self, now: u64) -> Vec<ServerWork> {
        let mut work = Vec::new();
        let mut failed = Vec::new();
        let waits = !self.requests.is_empty();
        for ((host, port), server) in &mut self.servers {
            if let (Some((_, at, _)), Line::Up(conn)) = (&server.asked, &server.line)
                && *at + ANSWER_TIME <= now
            {
                work.push(ServerWork::Close(*conn));
                let why = "no answer in 5 s".to_owned();
                failed.extend(server.fail(now, &why));
            }
            match &server.line {
                Line::Failed { until, why } if *until > now => {
                    let why = why.clone();
                    failed.extend(server.waiting.drain(..).map(|q| (q, why.clone())));
                }
                // a server that has not answered is called while requests wait for one
                Line::Idle | Line::Failed { .. } if !server.waiting.is_empty() || waits => {
                    self.last_conn += 1;
                    let conn = FIRST_CONN + self.last_conn;
                    server.line = Line::Dialing(conn);
                    let to = NlbAddress { host: host.clone(), port: *port };
                    work.push(ServerWork::Dial(conn, to));
                }
                Line::Up(conn) if server.asked.is_none() => {
                    if let Some(query) = server.waiting.pop_front() {
                        work.push(ServerWork::Send(*conn, query.query.clone()));
                        server.asked = Some((query, now, Vec::new()));
                    }
                }
                _ => {}
            }
        }
        for (query, why) in failed {
            self.not_answered(query, why);
        }
        work
    }

    fn not_answered(&mut self, mut query: Query, why: String) {
        if let Some(last) = query.failed.last_mut() {
            last.1 = why;
        }
        self.pass_on(query);
    }

    fn server_mut(&mut self, conn: ConnId) -> Option<&mut Server> {
        self.servers.values_mut().find(|s| s.line.conn() == Some(conn))
    }

    /// Is it a connection to a server?
    pub(crate) fn has(&self, conn: ConnId) -> bool {
        self.servers.values().any(|s| s.line.conn() == Some(conn))
    }

    /// A server has answered the call: requests that waited for one are tried.
    pub(crate) fn opened(&mut self, conn: ConnId, now: u64) {
        if let Some(server) = self.server_mut(conn) {
            server.line = Line::Up(conn);
            self.note_room(now);
        }
    }

    /// A connection is closed or was not made; true: it was one of these.
    pub(crate) fn closed(&mut self, conn: ConnId, why: &str, now: u64) -> bool {
        let Some(server) = self.server_mut(conn) else { return false };
        for (query, why) in server.fail(now, why) {
            self.not_answered(query, why);
        }
        true
    }

    /// Rows of an answer have come; with the last of them the query and all rows.
    pub(crate) fn rows(
        &mut self,
        conn: ConnId,
        rows: Vec<NlbRow>,
        more: bool,
    ) -> Option<(Query, Vec<NlbRow>)> {
        let server = self.server_mut(conn)?;
        let (_, _, known) = server.asked.as_mut()?;
        known.extend(rows);
        known.truncate(MAX_CHOICES);
        if more {
            return None;
        }
        let (query, _, rows) = server.asked.take()?;
        self.ended(query.group.queue);
        Some((query, rows))
    }

    /// A server has refused the query under way.
    pub(crate) fn refused(&mut self, conn: ConnId, why: &str) {
        let asked = self.server_mut(conn).and_then(|server| server.asked.take());
        if let Some((query, ..)) = asked {
            self.not_answered(query, why.to_owned());
        }
    }

    /// A pending request is bound to a host of a `loadonly` queue, or no longer.
    pub(crate) fn set_bound(&mut self, at: JobRef, to: Option<(QueueId, HostId)>) {
        if self.bound_at.get(&at) == to.as_ref() {
            return;
        }
        if let Some(before) = self.bound_at.remove(&at)
            && let Some(all) = self.bound.get_mut(&before)
        {
            all.remove(&at);
            if all.is_empty() {
                self.bound.remove(&before);
            }
        }
        if let Some(to) = to {
            self.bound_at.insert(at, to);
            self.bound.entry(to).or_default().insert(at);
        }
    }

    /// The requests of a job that are known to be bound.
    pub(crate) fn bound_of(&self, job: u32) -> Vec<JobRef> {
        let all = JobRef { job, idx: 0 }..=JobRef { job, idx: u32::MAX };
        self.bound_at.range(all).map(|(at, _)| *at).collect()
    }

    /// Does a request wait there that is bound to it?
    pub(crate) fn is_bound_to(&self, queue: QueueId, host: HostId) -> bool {
        self.bound.contains_key(&(queue, host))
    }

    /// When there is something to do, microseconds of the monotonic clock.
    pub fn deadline(&self) -> Option<u64> {
        if !self.todo.is_empty() || !self.deciding.is_empty() || !self.unanswered.is_empty() {
            return Some(0);
        }
        let waits = !self.requests.is_empty();
        let servers = self.servers.values().filter_map(|s| s.deadline(waits));
        let due = self.due.first().map(|due| due.0);
        servers.chain(due).chain(self.wake).min()
    }
}

impl Line {
    fn conn(&self) -> Option<ConnId> {
        match self {
            Line::Dialing(conn) | Line::Up(conn) => Some(*conn),
            Line::Idle | Line::Failed { .. } => None,
        }
    }
}

impl Server {
    /// The server does not answer: all that it was to be asked, with the reason.
    fn fail(&mut self, now: u64, why: &str) -> Vec<(Query, String)> {
        self.line = Line::Failed { until: now + REDIAL, why: why.to_owned() };
        let asked = self.asked.take().map(|(query, ..)| query);
        let all = asked.into_iter().chain(self.waiting.drain(..));
        all.map(|query| (query, why.to_owned())).collect()
    }

    fn deadline(&self, waits: bool) -> Option<u64> {
        match (&self.line, &self.asked) {
            (Line::Up(_), Some((_, at, _))) => Some(at + ANSWER_TIME),
            (Line::Up(_), None) => (!self.waiting.is_empty()).then_some(0),
            (Line::Failed { until, .. }, _) if waits => Some(*until),
            (Line::Failed { .. } | Line::Idle, _) => (!self.waiting.is_empty()).then_some(0),
            (Line::Dialing(_), _) => None,
        }
    }
}
