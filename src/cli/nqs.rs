//! Requests of NQS as its users name them, and the rows of queues and requests that the NQS
//! commands show.

use super::client::{self, ClientError};
use super::ctx::Ctx;
use super::job_rows::{Cell, Cols, JobRow, each_row};
use super::site::{self, LocalSite};
use crate::conf::load;
use crate::model::job_state::JobState;
use crate::model::nqs::Route;
use crate::model::reason::{PendReason, err};
use crate::proto::Msg;
use crate::proto::client::{ClientMsg, Col, JobQuery, JobSelect, QueueInfo, Which};
use crate::sys::files::RealFiles;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// The host in identifiers of requests: the first candidate for master.
pub fn request_host(site: &LocalSite) -> String {
    let (base, _) = load::load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    base.and_then(|base| base.request_host().map(str::to_owned)).unwrap_or(site.host.clone())
}

/// The job that an identifier `ID`, `ID.HOST`, `ID[INDEX]` or `ID[INDEX].HOST` names, as an operand
/// of the LSF commands.
pub fn job_operand(identifier: &str) -> OsString {
    let (job, _) = identifier.split_once('.').unwrap_or((identifier, ""));
    OsString::from(job)
}

/// The numbers of a queue's requests by state, as the queue summary has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    pub queued: u64,
    pub routing: u64,
    pub waiting: u64,
    pub held: u64,
    pub running: u64,
    pub exiting: u64,
}

impl QueueCounts {
    /// All requests.
    pub fn total(&self) -> u64 {
        let pending = self.queued + self.routing + self.waiting + self.held;
        pending + self.running + self.exiting
    }

    /// Adds those of another queue.
    pub fn add(&mut self, other: &QueueCounts) {
        self.queued += other.queued;
        self.routing += other.routing;
        self.waiting += other.waiting;
        self.held += other.held;
        self.running += other.running;
        self.exiting += other.exiting;
    }
}

/// The state of a request, as cqstatl has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// In a batch queue.
    Queued,
    /// In a pipe queue, before its first try.
    Routing,
    /// In a pipe queue, before its next try.
    WaitsForTry,
    WaitsForTime,
    WaitsForOthers,
    Held,
    Running,
    Suspended,
    Exiting,
    Unknown,
    Ended,
}

impl RequestState {
    /// The word of NJS_JOBSTAT.
    pub fn word(self) -> &'static str {
        match self {
            RequestState::Queued => "Queued",
            RequestState::Routing => "Routing",
            RequestState::WaitsForTry
            | RequestState::WaitsForTime
            | RequestState::WaitsForOthers => "Waiting",
            RequestState::Held => "Held",
            RequestState::Running => "Running",
            RequestState::Suspended => "Suspended",
            RequestState::Exiting => "Exiting",
            RequestState::Unknown => "Unknown",
            RequestState::Ended => "Ended",
        }
    }
}

/// The first pending reason: its number and what there is to tell besides.
pub fn first_reason(row: &JobRow) -> (i64, String) {
    match row.list(Col::PendReasons).first().map(Cell::list) {
        Some([code, _, _, told, ..]) => (code.int().unwrap_or(0), told.text().into_owned()),
        Some([code, ..]) => (code.int().unwrap_or(0), String::new()),
        _ => (0, String::new()),
    }
}

/// The requests that exist for NQS: what has not ended, and what still runs commands after its end.
pub const EXISTING: Which =
    Which { all: false, done: false, pend: false, run: false, susp: false, exiting: true };

/// The state of a request, by [`Col::Stat`], [`Col::PendReasons`] and [`Col::Post`].
pub fn state(row: &JobRow) -> RequestState {
    let reasons = || row.list(Col::PendReasons).iter().filter_map(|r| r.list().first()?.int());
    match row.state() {
        Some(JobState::Pend) => {
            let has = |why: PendReason| reasons().any(|r| r == i64::from(why.number()));
            if has(PendReason::StartTime) {
                RequestState::WaitsForTime
            } else if has(PendReason::Dependency) || has(PendReason::DependencyNever) {
                RequestState::WaitsForOthers
            } else if has(PendReason::PipeQueue) {
                match first_reason(row).1.is_empty() {
                    true => RequestState::Routing,
                    false => RequestState::WaitsForTry,
                }
            } else {
                RequestState::Queued
            }
        }
        Some(JobState::Psusp) => RequestState::Held,
        Some(JobState::Run) => RequestState::Running,
        Some(JobState::Ssusp | JobState::Ususp) => RequestState::Suspended,
        Some(JobState::Done | JobState::Exit) if row.text(Col::Post) == "run" => {
            RequestState::Exiting
        }
        Some(JobState::Done | JobState::Exit) => RequestState::Ended,
        _ => RequestState::Unknown,
    }
}

/// The destination that a request was routed to.
pub fn route(row: &JobRow) -> Option<Route> {
    Route::parse(&row.cell(Col::Extra).key("route")?.text())
}

/// The identifier of a request: `21.hosta`, `21[3].hosta`.
pub fn identifier(row: &JobRow, host: &str) -> String {
    match row.int(Col::Idx) {
        0 => format!("{}.{host}", row.int(Col::Job)),
        idx => format!("{}[{idx}].{host}", row.int(Col::Job)),
    }
}

/// Calls `each` for each request that the query selects, by identifier for an ended one as well.
///
/// # Errors
/// The errors of [`client::ask_at`].
pub fn each_job(
    ctx: &mut Ctx,
    select: JobSelect,
    cols: &Cols,
    mut each: impl FnMut(&JobRow),
) -> Result<(), ClientError> {
    let query = JobQuery::of(select, EXISTING, cols.list());
    each_job_while(ctx, query, cols, |row| {
        each(row);
        true
    })
}

/// Calls `each` for each row of a query until it returns false: what follows is not read.
///
/// # Errors
/// The errors of [`client::ask_at`].
pub fn each_job_while(
    ctx: &mut Ctx,
    query: JobQuery,
    cols: &Cols,
    mut each: impl FnMut(&JobRow) -> bool,
) -> Result<(), ClientError> {
    let site = site::find().map_err(|e| ClientError::Conf(e.to_string()))?;
    let ask = Msg::Client(ClientMsg::Jobs(Box::new(query)));
    let mut goes_on = true;
    let (mut client, mut answer) = client::ask_at(&site, &ask, ctx.err)?;
    loop {
        let Msg::Client(ClientMsg::Rows { rows, more }) = answer else {
            return Err(ClientError::Unexpected);
        };
        each_row(rows.get(), cols, |row| goes_on = goes_on && each(&row))
            .map_err(|_| ClientError::Unexpected)?;
        if !more || !goes_on {
            return Ok(());
        }
        answer = client.answer(ctx.err)?;
    }
}

/// The queues of the cluster.
///
/// # Errors
/// The errors of [`client::ask`].
pub fn queues(ctx: &mut Ctx, names: Vec<String>) -> Result<Vec<QueueInfo>, ClientError> {
    let (user, host) = (String::new(), String::new());
    match client::ask(ctx, ClientMsg::Queues { names, user, host })? {
        ClientMsg::QueueRows { rows } => Ok(rows),
        _ => Err(ClientError::Unexpected),
    }
}

/// The numbers of each queue's unfinished requests.
///
/// # Errors
/// The errors of [`each_job`].
pub fn counts(ctx: &mut Ctx) -> Result<BTreeMap<String, QueueCounts>, ClientError> {
    let cols = Cols::new(&[Col::Queue, Col::Stat, Col::PendReasons, Col::Post]);
    let select = JobSelect { user: "all".into(), ..JobSelect::default() };
    let mut all: BTreeMap<String, QueueCounts> = BTreeMap::new();
    let count = |row: &JobRow| {
        let of = all.entry(row.text(Col::Queue).into_owned()).or_default();
        let n = match state(row) {
            RequestState::Queued => &mut of.queued,
            RequestState::Routing => &mut of.routing,
            RequestState::WaitsForTry
            | RequestState::WaitsForTime
            | RequestState::WaitsForOthers => &mut of.waiting,
            RequestState::Held => &mut of.held,
            RequestState::Exiting => &mut of.exiting,
            RequestState::Running | RequestState::Suspended | RequestState::Unknown => {
                &mut of.running
            }
            RequestState::Ended => return,
        };
        *n += 1;
    };
    match each_job(ctx, select, &cols, count) {
        Ok(()) => Ok(all),
        // nobody has a job
        Err(e) if e.code() == Some(err::NO_JOB) => Ok(all),
        Err(e) => Err(e),
    }
}

/// A parameter of a queue as it was written.
pub fn parameter<'a>(queue: &'a QueueInfo, name: &str) -> Option<&'a str> {
    queue.params.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// A text in a column: cut, with `*` in front, where it is too long.
pub fn cut(text: &str, width: usize) -> Cow<'_, str> {
    match text.chars().count() {
        n if n <= width => Cow::Borrowed(text),
        n => {
            let tail: String = text.chars().skip(n - width + 1).collect();
            Cow::Owned(format!("*{tail}"))
        }
    }
}

const BATCH_HEAD: &str = "QUEUE NAME            LIM TOT ENA STS QUE RUN  WAI HLD ARR EXI";
const PIPE_HEAD: &str =
    "QUEUE NAME            LIM TOT ENA STS QUE ROU  WAI HLD ARR DEP DESTINATIONS";
const RULE: &str = "--------------------- --- --- --- --- --- ---  --- --- --- ---";

/// The summary of the batch or of the pipe queues; `host`: of the line with the sums.
pub fn queue_summary(
    queues: &[QueueInfo],
    counts: &BTreeMap<String, QueueCounts>,
    (pipe, host): (bool, &str),
) -> String {
    let (title, head) = match pipe {
        true => ("NQS PIPE QUEUE SUMMARY", PIPE_HEAD),
        false => ("NQS BATCH QUEUE SUMMARY", BATCH_HEAD),
    };
    let bar = "-".repeat(29);
    let rule = if pipe { format!("{RULE} {}", "-".repeat(12)) } else { RULE.to_owned() };
    let mut text = format!("{bar}\n{title}\n{bar}\n{head}\n{rule}\n");
    let (mut sum, mut limit) = (QueueCounts::default(), 0);
    for queue in queues.iter().filter(|q| parameter(q, "NQS_QUEUES").is_some() == pipe) {
        let own = counts.get(&queue.name).copied().unwrap_or_default();
        sum.add(&own);
        limit += queue.max.unwrap_or(0);
        let shown = queue.max.map_or("--".to_owned(), |n| n.to_string());
        let states = (yes(queue.open), if queue.active { "on" } else { "off" });
        let mut line = counted(&cut(&queue.name, 21), &shown, states, &own, pipe);
        if let Some(to) = parameter(queue, "NQS_QUEUES") {
            line.push(' ');
            line.push_str(to);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(&rule);
    text.push('\n');
    let limit = if limit > 0 { limit.to_string() } else { "--".to_owned() };
    text.push_str(counted(&cut(host, 21), &limit, ("", ""), &sum, pipe).trim_end());
    text.push('\n');
    text
}

fn yes(on: bool) -> &'static str {
    if on { "yes" } else { "no" }
}

fn counted(
    name: &str,
    limit: &str,
    (enabled, started): (&str, &str),
    n: &QueueCounts,
    pipe: bool,
) -> String {
    let busy = if pipe { n.routing } else { n.running };
    let queued = if pipe { n.queued } else { n.queued + n.routing };
    let (total, rest) = (n.total(), [n.waiting, n.held, 0, n.exiting]);
    let rest = rest.map(|n| format!(" {n:>3}")).concat();
    let head = format!("{name:<21} {limit:>3} {total:>3} {enabled:<3} {started:>3}");
    format!("{head} {queued:>3} {busy:>3} {rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, max: Option<u64>, to: Option<&str>) -> QueueInfo {
        let params = to.map(|to| ("NQS_QUEUES".to_owned(), to.to_owned()));
        QueueInfo {
            name: name.into(),
            max,
            open: true,
            active: true,
            params: params.into_iter().collect(),
            ..QueueInfo::default()
        }
    }

    #[test]
    fn queue_summary_has_the_layout_of_the_manual() {
        let queues =
            [queue("nqebatch", Some(5), None), queue("nlbqueue", None, Some("CRI_DS CPU"))];
        let batch = QueueCounts { queued: 9, running: 2, exiting: 1, ..QueueCounts::default() };
        let pipe = QueueCounts { routing: 1, waiting: 3, ..QueueCounts::default() };
        let counts = [("nqebatch".to_owned(), batch), ("nlbqueue".to_owned(), pipe)].into();
        assert_eq!(
            queue_summary(&queues, &counts, (false, "hosta")),
            "\
-----------------------------
NQS BATCH QUEUE SUMMARY
-----------------------------
QUEUE NAME            LIM TOT ENA STS QUE RUN  WAI HLD ARR EXI
--------------------- --- --- --- --- --- ---  --- --- --- ---
nqebatch                5  12 yes  on   9   2    0   0   0   1
--------------------- --- --- --- --- --- ---  --- --- --- ---
hosta                   5  12           9   2    0   0   0   1
"
        );
        assert_eq!(
            queue_summary(&queues, &counts, (true, "hosta")),
            "\
-----------------------------
NQS PIPE QUEUE SUMMARY
-----------------------------
QUEUE NAME            LIM TOT ENA STS QUE ROU  WAI HLD ARR DEP DESTINATIONS
--------------------- --- --- --- --- --- ---  --- --- --- --- ------------
nlbqueue               --   4 yes  on   0   1    3   0   0   0 CRI_DS CPU
--------------------- --- --- --- --- --- ---  --- --- --- --- ------------
hosta                  --   4           0   1    3   0   0   0
"
        );
    }

    #[test]
    fn state_of_a_request_follows_its_reasons() {
        let cols = Cols::new(&[Col::Stat, Col::PendReasons, Col::Post]);
        let of = |text: &str| {
            let mut found = RequestState::Ended;
            each_row(text, &cols, |row| found = state(&row)).unwrap();
            found
        };
        assert_eq!(of(r#"[["PEND",[[9006,0,[]]],""]]"#), RequestState::Routing);
        assert_eq!(of(r#"[["PEND",[[9006,0,[],"why"]],""]]"#), RequestState::WaitsForTry);
        assert_eq!(of(r#"[["PEND",[[2,0,[]]],""]]"#), RequestState::WaitsForTime);
        assert_eq!(of(r#"[["PEND",[[1305,1,["h1"]]],""]]"#), RequestState::Queued);
        assert_eq!(of(r#"[["PSUSP",[[607,0,[]]],""]]"#), RequestState::Held);
        assert_eq!(of(r#"[["RUN",[],""]]"#), RequestState::Running);
        // after its end commands run, or have run
        assert_eq!(of(r#"[["DONE",[],"run"]]"#), RequestState::Exiting);
        assert_eq!(of(r#"[["EXIT",[],"run"]]"#), RequestState::Exiting);
        assert_eq!(of(r#"[["DONE",[],"done"]]"#), RequestState::Ended);
    }

    #[test]
    fn identifier_of_a_request_names_its_job() {
        for (identifier, job) in [("21.hosta", "21"), ("21", "21"), ("21[3].h.example", "21[3]")] {
            assert_eq!(job_operand(identifier), job);
        }
    }

    #[test]
    fn long_text_is_cut_in_front() {
        assert_eq!(cut("short", 7), "short");
        assert_eq!(cut("longername", 7), "*ername");
    }
}
