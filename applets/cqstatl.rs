//! cqstatl and qstat: queues and requests as NQS shows them. See cqstatl(1).

mod full;

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::job_rows::{Cell, Cols, JobRow};
use lsf::cli::long_format::clean;
use lsf::cli::njs::{self, Positions};
use lsf::cli::nqs::{
    self, RequestState, cut, identifier, job_operand, parameter, queue_summary, route,
};
use lsf::cli::{job_ids, site};
use lsf::model::reason::{err, err_text};
use lsf::proto::client::{ClientMsg, Col, IdSel, JobSelect, QueueInfo};
use lsf::{errln, outln};

/// Show queues, or requests, as NQS does.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// requests of everybody
    #[argh(switch, short = 'a')]
    all: bool,
    /// batch queues
    #[argh(switch, short = 'b')]
    batch: bool,
    /// pipe queues
    #[argh(switch, short = 'p')]
    pipe: bool,
    /// all that is known of each request or queue
    #[argh(switch, short = 'f')]
    full: bool,
    /// the limits of queues
    #[argh(switch, short = 'l')]
    limits: bool,
    /// requests of this user
    #[argh(option, short = 'u', arg_name = "user")]
    user: Option<String>,
    /// requests that are bound to this host, or run there
    #[argh(option, short = 'h', arg_name = "host")]
    host: Option<String>,
    /// where requests are looked for: nqs
    #[argh(option, short = 'd', arg_name = "nqs")]
    destination: Option<String>,
    /// requests, or with -b, -p, -l and -f queues
    #[argh(positional, greedy, arg_name = "request | queue")]
    _operands: Vec<String>,
}

/// The columns of a request's line.
const COLS: [Col; 13] = [
    Col::Job,
    Col::Idx,
    Col::Name,
    Col::User,
    Col::Queue,
    Col::Priority,
    Col::Stat,
    Col::PendReasons,
    Col::ExecHosts,
    Col::Extra,
    Col::Limits,
    Col::Pids,
    Col::Post,
];

pub fn run(ctx: &mut Ctx) -> i32 {
    ctx.readings = Some(front::readings::<Options>);
    show(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn failed(ctx: &Ctx, e: &ClientError) -> Exit {
    Exit::fail(format_args!("{}: {}", ctx.name, e.words()))
}

fn show(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse::<Options>(ctx.name, &ctx.args)?;
    let (opts, operands) = (parsed.options, parsed.operands);
    if let Some(other) = opts.destination.as_deref().filter(|d| *d != "nqs") {
        let words = match other {
            "nqedb" => "there is no NQE database here",
            _ => "nqs is wanted",
        };
        return Err(Exit::fail(format_args!("{}: -d <{other}>: {words}", ctx.name)));
    }
    let words: Vec<String> = operands.iter().map(|o| o.to_string_lossy().into_owned()).collect();
    let number = |w: &String| w.starts_with(|c: char| c.is_ascii_digit());
    let requests =
        opts.all || opts.user.is_some() || opts.host.is_some() || words.iter().any(number);
    match requests {
        true => show_requests(ctx, &opts, &words),
        false => show_queues(ctx, &opts, words),
    }
}

fn show_queues(ctx: &mut Ctx, opts: &Options, names: Vec<String>) -> Result<i32, Exit> {
    let queues = nqs::queues(ctx, names).map_err(|e| failed(ctx, &e))?;
    if opts.limits || opts.full {
        for queue in &queues {
            let text = if opts.limits { queue_limits(queue) } else { full::queue(queue) };
            let _ = write!(ctx.out, "{text}");
        }
        return Ok(0);
    }
    let counts = nqs::counts(ctx).map_err(|e| failed(ctx, &e))?;
    let site = site::find().map_err(|e| Exit::fail(e.to_string()))?;
    let host = nqs::request_host(&site);
    for pipe in [false, true] {
        let asked = if pipe { opts.pipe } else { opts.batch };
        let some = queues.iter().any(|q| parameter(q, "NQS_QUEUES").is_some() == pipe);
        if asked || some && !opts.pipe && !opts.batch {
            let _ = write!(ctx.out, "{}", queue_summary(&queues, &counts, (pipe, &host)));
        }
    }
    Ok(0)
}

/// The limits of a queue, as lsb.queues has them.
fn queue_limits(queue: &QueueInfo) -> String {
    const LIMITS: [&str; 9] = [
        "CORELIMIT",
        "CPULIMIT",
        "DATALIMIT",
        "FILELIMIT",
        "MEMLIMIT",
        "PROCESSLIMIT",
        "RUNLIMIT",
        "STACKLIMIT",
        "SWAPLIMIT",
    ];
    let mut text = format!("{}:\n", queue.name);
    for name in LIMITS {
        let value = parameter(queue, name).unwrap_or("unlimited");
        text.push_str(&format!("  {name:<13}{value}\n"));
    }
    text
}

fn show_requests(ctx: &mut Ctx, opts: &Options, words: &[String]) -> Result<i32, Exit> {
    let site = site::find().map_err(|e| Exit::fail(e.to_string()))?;
    let host = nqs::request_host(&site);
    let cols = Cols::new(if opts.full { njs::COLS } else { &COLS });
    let user = match (&opts.user, opts.all || !words.is_empty()) {
        (Some(user), _) => user.clone(),
        (None, true) => "all".to_owned(),
        (None, false) => String::new(),
    };
    let mut ids: Vec<IdSel> = Vec::new();
    for word in words {
        let one = job_ids::ids(&[job_operand(word)]).map_err(Exit::fail)?.ids;
        ids.extend(one);
    }
    let select = JobSelect { ids: ids.clone(), user, ..JobSelect::default() };
    let positions = match opts.full {
        true => njs::positions(ctx, &select).map_err(|e| failed(ctx, &e))?,
        false => Positions::new(),
    };
    // a request that has ended exists no longer for NQS
    let mut rows: Vec<String> = Vec::new();
    let mut found: Vec<i64> = Vec::new();
    let wanted = hosts_named(ctx, opts.host.as_deref())?;
    let take = |row: &JobRow| {
        let elsewhere = wanted.as_ref().is_some_and(|hosts| !hosts.iter().any(|h| is_on(row, h)));
        if nqs::state(row) == RequestState::Ended || elsewhere {
            return;
        }
        found.push(row.int(Col::Job));
        rows.push(if opts.full { full::request(row, &host, &positions) } else { line(row, &host) });
    };
    match nqs::each_job(ctx, select, &cols, take) {
        Ok(()) => {}
        Err(e) if e.code() == Some(err::NO_JOB) => {}
        Err(e) => return Err(failed(ctx, &e)),
    }
    if !rows.is_empty() && !opts.full {
        let bar = "-".repeat(29);
        outln!(ctx, "{bar}\nNQS BATCH REQUEST SUMMARY\n{bar}\n{}\n{}", head(), rule());
    }
    for row in &rows {
        let _ = write!(ctx.out, "{row}");
    }
    ctx.flush();
    let mut code = 0;
    let stranger = opts.user.as_deref().filter(|user| rows.is_empty() && *user != "all");
    if let Some(user) = stranger.filter(|user| job_ids::nobody(&site, user)) {
        errln!(ctx, "{}: {}: {}", ctx.name, clean(user), err_text(err::UNKNOWN_USER));
        code = FAIL;
    }
    for (word, id) in words.iter().zip(&ids) {
        if !found.contains(&i64::from(id.job)) {
            let shown = if word.contains('.') { word.clone() } else { format!("{word}.{host}") };
            errln!(ctx, "Request <{shown}> does not exist.");
            code = FAIL;
        }
    }
    Ok(code)
}

/// The hosts of -h by the names of the cluster; none: it is not given.
fn hosts_named(ctx: &mut Ctx, name: Option<&str>) -> Result<Option<Vec<String>>, Exit> {
    let Some(name) = name else { return Ok(None) };
    let ask = ClientMsg::Hosts { names: vec![name.to_owned()], res_req: String::new() };
    match client::ask(ctx, ask) {
        Ok(ClientMsg::HostRows { rows }) => Ok(Some(rows.into_iter().map(|h| h.name).collect())),
        other => Err(failed(ctx, &other.err().unwrap_or(ClientError::Unexpected))),
    }
}

/// Is a request bound to a host, or runs there?
fn is_on(row: &JobRow, host: &str) -> bool {
    let runs = row.hosts(Col::ExecHosts).any(|(name, _)| name == host);
    runs || route(row).is_some_and(|route| route.host == host)
}

const WIDTHS: [(&str, usize); 9] = [
    ("IDENTIFIER", 17),
    ("NAME", 7),
    ("USER", 8),
    ("QUEUE", 21),
    ("JID", 7),
    ("PRTY", 4),
    ("REQMEM", 7),
    ("REQTIM", 7),
    ("ST", 3),
];

fn columns(cells: [String; 9]) -> String {
    let mut text = String::new();
    for (cell, (_, width)) in cells.iter().zip(WIDTHS) {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&format!("{:<width$}", cut(cell, width)));
    }
    text.trim_end().to_owned()
}

fn head() -> String {
    columns(WIDTHS.map(|(name, _)| name.to_owned()))
}

fn rule() -> String {
    columns(WIDTHS.map(|(_, width)| "-".repeat(width)))
}

fn line(row: &JobRow, host: &str) -> String {
    let queue = row.text(Col::Queue);
    let queue = match route(row).filter(|route| !route.host.is_empty()) {
        Some(route) => format!("{queue}@{}", route.host),
        None => queue.into_owned(),
    };
    let limit = |key: &str| row.cell(Col::Limits).key(key).and_then(Cell::int);
    let dash = |n: Option<i64>| n.map_or("--".to_owned(), |n| n.to_string());
    let cells = [
        identifier(row, host),
        row.text(Col::Name).into_owned(),
        row.text(Col::User).into_owned(),
        queue,
        row.int(Col::Job).to_string(),
        row.int(Col::Priority).to_string(),
        dash(limit("rss").map(|kb| kb / 1024)),
        dash(limit("cpu")),
        letters(row),
    ];
    format!("{}\n", columns(cells))
}

/// The letters of the state.
fn letters(row: &JobRow) -> String {
    match nqs::state(row) {
        RequestState::Queued => "Q".to_owned(),
        RequestState::Routing => "Qds".to_owned(),
        RequestState::WaitsForTry => "Wds".to_owned(),
        RequestState::WaitsForTime => "Wtm".to_owned(),
        RequestState::WaitsForOthers => "Wdp".to_owned(),
        RequestState::Held => "H".to_owned(),
        RequestState::Running => format!("R{:02}", row.list(Col::Pids).len().clamp(1, 99)),
        RequestState::Suspended => "S".to_owned(),
        RequestState::Exiting => "E".to_owned(),
        RequestState::Unknown | RequestState::Ended => "U".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsf::cli::job_rows::each_row;

    #[test]
    fn request_summary_has_its_columns() {
        let cols = Cols::new(&COLS);
        let row = r#"[[21,0,"a_long_name","ann","nqebatch",33,"RUN",[],[["host2",1]],
            {"route":"host2 CPU 5.000000 1 3 nlbqueue"},{"rss":81920,"cpu":30},[7,8],
            ""]]"#;
        let mut text = String::new();
        each_row(row, &cols, |r| text = line(&r, "host1")).unwrap();
        let want = "21.host1          *g_name ann      nqebatch@host2        21      33   80      \
                    30      R02\n";
        assert_eq!(text, want);
        assert_eq!(
            head(),
            "IDENTIFIER        NAME    USER     QUEUE                 JID     PRTY REQMEM  \
             REQTIM  ST"
        );
    }
}
