//! The servers of the load balancer that mbatchd asks: about requests of pipe queues, and for the
//! hosts of a policy. `lifecycle::nlb_links` carries out what they need.
//!
//! Invariants: a query is with one server at a time; a server has one query under way.

use crate::batch::site::nlb_request::NlbKey;
use crate::batch::soft_state::routing::Group;
use crate::model::nlb::NlbAddress;
use crate::model::time::US;
use crate::proto::machine::ConnId;
use crate::proto::nlb::{NlbQuery, NlbRow};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Time for the answer of a server, microseconds.
pub const ANSWER_TIME: u64 = 5 * US;
/// Pause before a server is called again, microseconds.
pub const REDIAL: u64 = 2 * US;
/// Hosts of an answer that are taken.
pub const MAX_CHOICES: usize = 10_000;
/// The first number of connections to servers, among those that mbatchd chooses.
pub const FIRST_CONN: ConnId = 1 << 60;

/// The reason for which a server is asked.
#[derive(Clone, Debug)]
pub enum Purpose {
    /// Requests of a pipe queue that are asked about together.
    Requests(Group),
    /// The hosts of a policy, in its order, for jobs that the scheduler places.
    Hosts(Rc<NlbKey>),
}

/// A query with its purpose.
#[derive(Clone, Debug)]
pub struct Query {
    pub purpose: Purpose,
    pub query: NlbQuery,
    /// The servers that were not asked yet, in order.
    pub servers: VecDeque<NlbAddress>,
    /// The servers that have not answered, and why.
    pub failed: Vec<(NlbAddress, String)>,
}

impl Query {
    /// A query that no server was asked yet.
    pub fn new(purpose: Purpose, query: NlbQuery, servers: &[NlbAddress]) -> Query {
        let servers = servers.iter().cloned().collect();
        Query { purpose, query, servers, failed: Vec::new() }
    }

    /// The servers that have not answered, with the reasons, as words.
    pub fn failures(&self) -> String {
        let why = self.failed.iter().map(|(to, why)| format!("{}:{} ({why})", to.host, to.port));
        let why: Vec<String> = why.collect();
        match why.is_empty() {
            true => "no NLB server is known: NLB_SERVER is not set in nqeinfo".to_owned(),
            false => format!("no NLB server answers at {}", why.join(", ")),
        }
    }
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

/// All servers.
#[derive(Debug, Default)]
pub struct NlbServers {
    all: BTreeMap<(String, u16), Server>,
    last_conn: u64,
    /// Queries that no server has answered.
    unanswered: VecDeque<Query>,
}

impl NlbServers {
    /// Is there no server that was ever asked, nor a query?
    pub(crate) fn is_idle(&self) -> bool {
        self.all.is_empty() && self.unanswered.is_empty()
    }

    /// Asks the first of its servers.
    pub(crate) fn ask(&mut self, query: Query) {
        self.pass_on(query);
    }

    /// Gives a query to the next of its servers.
    fn pass_on(&mut self, mut query: Query) {
        match query.servers.pop_front() {
            Some(to) => {
                let key = (to.host.clone(), to.port);
                query.failed.push((to, String::new()));
                self.all.entry(key).or_default().waiting.push_back(query);
            }
            None => self.unanswered.push_back(query),
        }
    }

    /// A query that no server has answered.
    pub(crate) fn next_unanswered(&mut self) -> Option<Query> {
        self.unanswered.pop_front()
    }

    /// The next steps for all servers. `waits`: somebody waits for one, so that a server that has
    /// not answered is called again.
    pub(crate) fn work(&mut self, now: u64, waits: bool) -> Vec<ServerWork> {
        let mut work = Vec::new();
        let mut failed = Vec::new();
        for ((host, port), server) in &mut self.all {
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
        self.all.values_mut().find(|s| s.line.conn() == Some(conn))
    }

    /// Is it a connection to a server?
    pub(crate) fn has(&self, conn: ConnId) -> bool {
        self.all.values().any(|s| s.line.conn() == Some(conn))
    }

    /// Is there a connection to a server?
    pub(crate) fn any_up(&self) -> bool {
        self.all.values().any(|s| matches!(s.line, Line::Up(_)))
    }

    /// A server has answered the call.
    pub(crate) fn opened(&mut self, conn: ConnId) {
        if let Some(server) = self.server_mut(conn) {
            server.line = Line::Up(conn);
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
        Some((query, rows))
    }

    /// A server has refused the query under way.
    pub(crate) fn refused(&mut self, conn: ConnId, why: &str) {
        let asked = self.server_mut(conn).and_then(|server| server.asked.take());
        if let Some((query, ..)) = asked {
            self.not_answered(query, why.to_owned());
        }
    }

    /// When there is something to do, microseconds of the monotonic clock; `waits` as in
    /// [`NlbServers::work`].
    pub fn deadline(&self, waits: bool) -> Option<u64> {
        if !self.unanswered.is_empty() {
            return Some(0);
        }
        self.all.values().filter_map(|s| s.deadline(waits)).min()
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
