//! The attributes of requests, type NJS of the name map, from rows of jobs: what `cqstatl -f` and
//! `nlbconfig -odump -t NJS` show.

use super::client::ClientError;
use super::ctx::Ctx;
use super::job_rows::{Cell, Cols, JobRow};
use super::nqs::{self, first_reason, identifier, route, state};
use crate::conf::nlb_map::NameMaps;
use crate::model::JobRef;
use crate::model::job_state::JobState;
use crate::model::nlb::{AttrId, MAX_STRING, NJS, Value};
use crate::model::reason::err;
use crate::proto::client::{Col, JobQuery, JobSelect, Which};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The columns that [`values`] looks at.
pub const COLS: &[Col] = &[
    Col::Job,
    Col::Idx,
    Col::User,
    Col::Queue,
    Col::Priority,
    Col::Stat,
    Col::PendReasons,
    Col::ExecHosts,
    Col::Extra,
    Col::Limits,
    Col::MaxSlots,
    Col::Pids,
    Col::Name,
    Col::FromHost,
    Col::SubmitTime,
    Col::StartTime,
    Col::Post,
    Col::CpuUsed,
    Col::MemKb,
    Col::Project,
    Col::OutFile,
    Col::ErrFile,
    Col::LoginShell,
    Col::ExecUser,
    Col::ExitCode,
    Col::NextTry,
];

/// The places of pending requests in their queues, from 1.
pub type Positions = HashMap<JobRef, i64>;

/// The places of the pending ones of some requests in their queues: only these queues are listed,
/// and each only up to the last one of these requests.
///
/// # Errors
/// The errors of [`nqs::each_job`].
pub fn positions(ctx: &mut Ctx, select: &JobSelect) -> Result<Positions, ClientError> {
    let mut wanted: BTreeMap<String, HashSet<JobRef>> = BTreeMap::new();
    pending(ctx, select.clone(), |queue, at| {
        wanted.entry(queue.to_owned()).or_default().insert(at);
        true
    })?;
    let mut all = Positions::new();
    for (queue, mut here) in wanted {
        let (mut place, everybody) = (0, "all".to_owned());
        let select = JobSelect { user: everybody, queue, ..JobSelect::default() };
        // rows of pending jobs come in the order of their queue
        pending(ctx, select, |_, at| {
            place += 1;
            if here.remove(&at) {
                all.insert(at, place);
            }
            !here.is_empty()
        })?;
    }
    Ok(all)
}

/// Calls `each` for each pending request of a selection, with its queue, as long as it says so.
fn pending(
    ctx: &mut Ctx,
    select: JobSelect,
    mut each: impl FnMut(&str, JobRef) -> bool,
) -> Result<(), ClientError> {
    let cols = Cols::new(&[Col::Job, Col::Idx, Col::Queue, Col::Stat]);
    let which = Which { pend: true, ..Which::default() };
    let query = JobQuery::of(select, which, cols.list());
    let listed = nqs::each_job_while(ctx, query, &cols, |row| {
        let is = row.state().is_some_and(JobState::is_pending);
        !is || each(&row.text(Col::Queue), at(row))
    });
    match listed {
        // there is none
        Err(e) if e.code() == Some(err::NO_JOB) => Ok(()),
        listed => listed,
    }
}

fn at(row: &JobRow) -> JobRef {
    let number = |col| u32::try_from(row.int(col)).unwrap_or(0);
    JobRef { job: number(Col::Job), idx: number(Col::Idx) }
}

/// The values of a request's attributes, of each that it has.
pub fn values(row: &JobRow, host: &str, positions: &Positions) -> BTreeMap<AttrId, Value> {
    let maps = NameMaps::shipped();
    let attributes = maps.numbered(NJS).map(|map| map.attributes()).unwrap_or_default();
    let value = |name: &str| match name {
        "NJS_QUEENT" => positions.get(&at(row)).copied().map(Value::Integer),
        _ => described(row, host, name).or_else(|| amount(row, name)),
    };
    attributes.iter().filter_map(|a| Some((a.id, value(&a.name)?))).collect()
}

/// A text as object data may have it: without control characters, and not too long; none if empty.
fn string(text: &str) -> Option<Value> {
    let mut text: String = text.chars().filter(|c| !c.is_control()).collect();
    let end = (0..=MAX_STRING.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or(0));
    (!text.is_empty()).then(|| Value::Str(Arc::from(text)))
}

/// The attributes that are strings.
fn described(row: &JobRow, host: &str, name: &str) -> Option<Value> {
    let text = |col: Col| string(&row.text(col));
    let routed = || route(row);
    match name {
        "NJS_NQSID" => string(&identifier(row, host)),
        "NJS_JOBSTAT" => string(state(row).word()),
        "NJS_RUNUSER" => text(Col::ExecUser).or_else(|| text(Col::User)),
        "NJS_QUENAM" => text(Col::Queue),
        "NJS_ORGHOST" => text(Col::FromHost),
        "NJS_ORIGUSER" => text(Col::User),
        "NJS_REQNAME" => text(Col::Name),
        "NJS_EXECHOST" => {
            let hosts: Vec<String> = row.hosts(Col::ExecHosts).map(|h| h.0.into_owned()).collect();
            string(&hosts.join(" "))
        }
        "NJS_PIPEQUEUE" => string(&routed()?.from),
        "NJS_POLICY" => string(&routed()?.policy),
        "NJS_REASON" => {
            let why = first_reason(row).1;
            string(why.rsplit_once("; next try at ").map_or(&*why, |(why, _)| why))
        }
        "NJS_ATTRS" => string(&row.cell(Col::Extra).key("nlbattr")?.text()),
        "NJS_PROJECT" => text(Col::Project),
        "NJS_STDOUT" => text(Col::OutFile),
        "NJS_STDERR" => text(Col::ErrFile),
        "NJS_SHELL" => text(Col::LoginShell),
        _ => None,
    }
}

/// The attributes that are numbers and times.
fn amount(row: &JobRow, name: &str) -> Option<Value> {
    let limit = |key: &str| row.cell(Col::Limits).key(key).and_then(Cell::int);
    let some = |n: i64| Some(n).filter(|n| *n != 0);
    let bytes = |kb: i64| Value::Float(kb.saturating_mul(1024) as f64);
    let date = |col: Col| some(row.int(col)).map(Value::Time);
    let asked = |attribute: &str| {
        let all = row.cell(Col::Extra).key("nlbattr")?.text().into_owned();
        let of = |word: &str| word.strip_prefix(attribute)?.strip_prefix('=')?.parse().ok();
        all.split_whitespace().find_map(of).filter(|n: &f64| n.is_finite())
    };
    match name {
        "NJS_NUMPROC" => some(row.list(Col::Pids).len() as i64).map(Value::Integer),
        "NJS_CPUREQLIM" => limit("cpu").map(Value::Integer),
        "NJS_CPUREQUSE" => some(row.num(Col::CpuUsed) as i64).map(Value::Integer),
        "NJS_MEMREQLIM" => limit("rss").map(bytes),
        "NJS_MEMREQUSE" => some(row.int(Col::MemKb)).map(bytes),
        "NJS_PFSREQLIM" => asked("JOB_PRPFILESPACE").map(Value::Float),
        "NJS_JOBID" => some(row.int(Col::Job)).map(Value::Integer),
        "NJS_JOBIDX" => some(row.int(Col::Idx)).map(Value::Integer),
        "NJS_PRIORITY" => some(row.int(Col::Priority)).map(Value::Integer),
        "NJS_CREATED" => date(Col::SubmitTime),
        "NJS_STARTED" => date(Col::StartTime),
        "NJS_NLBVALUE" => {
            let value = route(row)?.value.parse().ok();
            value.filter(|x: &f64| x.is_finite()).map(Value::Float)
        }
        "NJS_RANK" => some(i64::from(route(row)?.rank)).map(Value::Integer),
        "NJS_NEXTTRY" => date(Col::NextTry),
        "NJS_SLOTS" => some(row.int(Col::MaxSlots)).map(Value::Integer),
        "NJS_CPUPROCLIM" => asked("JOB_PPCPUTIME").map(|s| Value::Integer(s as i64)),
        "NJS_MEMPROCLIM" => asked("JOB_PPMEMSIZE").map(Value::Float),
        "NJS_EXITCODE" => row.cell(Col::ExitCode).int().map(Value::Integer),
        _ => None,
    }
}
