//! qmgr: the queue manager of NQS (qmgr(8)).
//!
//! Commands come from the prompt, from a file or from the words of the call. Definitions of queues
//! are changed by mbatchd, which writes lsb.nqs; queues are opened and started, and requests
//! controlled, as badmin and the job commands do that, with their rights.

mod ask;
mod show;

use ask::{Failed, admin, define};
use lsf::cli::client;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::nqs::{self, job_operand};
use lsf::cli::{job_ids, version};
use lsf::lang::qmgr::{Command, MAX_TEXT, QueueVerb, RequestVerb, Spelled, commands, phrases};
use lsf::model::JobRef;
use lsf::model::reason::err_text;
use lsf::proto::client::{
    AdminLine, AdminOp, Control, JobSelect, Outcome, QueueOp, Requeue, Verb, Which,
};
use lsf::{errln, outln};
use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal, Read};
use std::time::Duration;

/// Seconds between TERM and KILL of `abort queue`.
const GRACE: u32 = 60;

/// The state of the session after a command.
enum Next {
    GoOn,
    End,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let words = ctx.words();
    match words.first().map(String::as_str) {
        Some("-h" | "-help" | "--help") => {
            errln!(ctx, "{}\n{}", usage(ctx), phrases_of(&[]).trim_end());
            0
        }
        Some(option) if option.starts_with('-') && option != "-V" => {
            errln!(ctx, "{}: illegal option -- {option}\n{}", ctx.name, usage(ctx));
            FAIL
        }
        Some("-V") => {
            errln!(ctx, "{}", version::line());
            0
        }
        Some(_) => {
            let mut failed = false;
            for spelled in commands(&words.join(" "), 1) {
                if !matches!(one(ctx, &spelled, None, &mut failed), Next::GoOn) {
                    break;
                }
            }
            if failed { FAIL } else { 0 }
        }
        None => session(ctx),
    }
}

fn usage(ctx: &Ctx) -> String {
    format!("Usage: {} [-h] [-V] [command]", ctx.name)
}

/// Reads commands from standard input.
fn session(ctx: &mut Ctx) -> i32 {
    let mut failed = false;
    let mut input = io::stdin().lock();
    let asks = input.is_terminal();
    let (mut number, mut first, mut text) = (0, 1, String::new());
    loop {
        if asks {
            let _ = write!(ctx.out, "Qmgr: ");
            ctx.flush();
        }
        let mut line = Vec::new();
        let most = (MAX_TEXT - text.len().min(MAX_TEXT)) as u64 + 1;
        match (&mut input).take(most).read_until(b'\n', &mut line) {
            Ok(0) if text.is_empty() => break,
            Ok(_) => {}
            Err(e) => {
                errln!(ctx, "qmgr: standard input: {}", lsf::sys::words(&e));
                return FAIL;
            }
        }
        let ended = line.is_empty();
        number += 1;
        text.push_str(&String::from_utf8_lossy(&line));
        if text.len() > MAX_TEXT {
            errln!(ctx, "stdin:{first}:1: a command is larger than {} MB", MAX_TEXT >> 20);
            return FAIL;
        }
        if text.trim_end().ends_with('\\') && !ended {
            continue;
        }
        for spelled in commands(&text, first) {
            if matches!(one(ctx, &spelled, Some("stdin"), &mut failed), Next::End) {
                return if failed { FAIL } else { 0 };
            }
        }
        ctx.flush();
        (first, text) = (number + 1, String::new());
        if ended {
            break;
        }
    }
    if asks {
        outln!(ctx, "");
    }
    if failed { FAIL } else { 0 }
}

/// Does one command; faults are told with their places in `file`.
fn one(ctx: &mut Ctx, spelled: &Spelled, file: Option<&str>, failed: &mut bool) -> Next {
    let done = match &spelled.command {
        Ok(Command::Quit) => return Next::End,
        Ok(command) => act(ctx, command, &spelled.text),
        Err(fault) => {
            *failed = true;
            match file {
                Some(file) => {
                    errln!(ctx, "{file}:{}:{}: {}", fault.line, fault.col, fault.text);
                }
                None => errln!(ctx, "qmgr: {}", fault.text),
            }
            return Next::GoOn;
        }
    };
    if let Err(Failed(why)) = done {
        *failed = true;
        ctx.flush();
        match file {
            Some(file) => errln!(ctx, "{file}:{}:{}: {why}", spelled.line, spelled.col),
            None => errln!(ctx, "qmgr: {why}"),
        }
    }
    Next::GoOn
}

fn act(ctx: &mut Ctx, command: &Command, text: &str) -> Result<(), Failed> {
    match command {
        Command::Define(_) => {
            let lines = define(ctx, text)?;
            said(ctx, &lines)
        }
        Command::Queue { verb, queue } => control_queue(ctx, *verb, queue.as_deref()),
        Command::Purge { queue } => {
            let n = kill(ctx, queue, Verb::Kill, Which { pend: true, ..Which::default() })?;
            outln!(ctx, "Queue <{queue}> is purged: {n} deleted.");
            Ok(())
        }
        Command::Abort { queue, seconds } => abort(ctx, queue, seconds.unwrap_or(GRACE)),
        Command::Requests { verb, ids } => ids.iter().try_for_each(|id| requests(ctx, *verb, id)),
        Command::Move { id, queue } => {
            let to = Verb::Switch { queue: queue.clone() };
            on_request(ctx, id, to, &format!("moved to queue <{queue}>"))
        }
        Command::First { id } => {
            let top = Verb::Move { top: true, position: 1 };
            on_request(ctx, id, top, "moved to the front of its queue")
        }
        Command::Show(what) => show::show(ctx, what),
        Command::Snap { file } => snap(ctx, file.as_deref()),
        Command::Help(words) => {
            outln!(ctx, "{}", phrases_of(words).trim_end());
            Ok(())
        }
        Command::Refused(why) => Err(Failed((*why).to_owned())),
        Command::Quit => Ok(()),
    }
}

/// Prints what was done; the last line of what was not is its reason.
fn said(ctx: &mut Ctx, lines: &[AdminLine]) -> Result<(), Failed> {
    let faults: Vec<&str> = lines.iter().filter(|l| l.code != 0).map(|l| l.text.as_str()).collect();
    if !faults.is_empty() {
        return Err(Failed(faults.join("\n")));
    }
    for line in lines {
        outln!(ctx, "{}", line.text);
    }
    Ok(())
}

fn control_queue(ctx: &mut Ctx, verb: QueueVerb, queue: Option<&str>) -> Result<(), Failed> {
    let (op, done) = match verb {
        QueueVerb::Enable => (QueueOp::Open, "enabled"),
        QueueVerb::Disable => (QueueOp::Close, "disabled"),
        QueueVerb::Start => (QueueOp::Activate, "started"),
        QueueVerb::Stop => (QueueOp::Inactivate, "stopped"),
    };
    let (queues, comment) = (vec![queue.unwrap_or("all").to_owned()], String::new());
    let lines = admin(ctx, AdminOp::QueueCtrl { op, queues, comment })?;
    let mut failed = Vec::new();
    for line in lines {
        match line.code {
            0 => outln!(ctx, "Queue <{}> is {done}.", line.about),
            code => failed.push(format!("queue <{}>: {}", line.about, err_text(code))),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failed(failed.join("\n"))) }
}

/// Acts on the requests of a queue in these states; how many were.
fn kill(ctx: &mut Ctx, queue: &str, verb: Verb, states: Which) -> Result<usize, Failed> {
    // a queue that is not there has words of its own
    nqs::queues(ctx, vec![queue.to_owned()])?;
    let (user, queue) = ("all".to_owned(), queue.to_owned());
    let select = JobSelect { all: true, user, queue, states, ..JobSelect::default() };
    match client::control(ctx, Control::of(verb, select)) {
        Ok((outcomes, None)) => {
            let refused: Vec<String> = outcomes
                .iter()
                .filter(|o| o.code != 0)
                .map(|o| format!("request <{}>: {}", o.id, err_text(o.code)))
                .collect();
            match refused.is_empty() {
                true => Ok(outcomes.len()),
                false => Err(Failed(refused.join("\n"))),
            }
        }
        Ok((_, Some(e))) => Err(e.into()),
        Err(e) if e.code() == Some(lsf::model::reason::err::NO_JOB) => Ok(0),
        Err(e) => Err(e.into()),
    }
}

fn abort(ctx: &mut Ctx, queue: &str, seconds: u32) -> Result<(), Failed> {
    let started = Which { run: true, susp: true, ..Which::default() };
    let term = Verb::Signal { number: 15, name: "TERM".to_owned() };
    let n = kill(ctx, queue, term, started)?;
    if n > 0 {
        outln!(ctx, "Queue <{queue}>: TERM is sent to {n}, KILL follows in {seconds} seconds.");
        ctx.flush();
        std::thread::sleep(Duration::from_secs(seconds.into()));
        kill(ctx, queue, Verb::Kill, started)?;
    }
    outln!(ctx, "Queue <{queue}> is aborted.");
    Ok(())
}

fn requests(ctx: &mut Ctx, verb: RequestVerb, id: &str) -> Result<(), Failed> {
    let (verb, done) = match verb {
        RequestVerb::Hold => (Verb::Stop, "held"),
        RequestVerb::Release => (Verb::Resume, "released"),
        RequestVerb::Delete => (Verb::Kill, "deleted"),
        RequestVerb::Suspend => (Verb::Stop, "suspended"),
        RequestVerb::Resume => (Verb::Resume, "resumed"),
        RequestVerb::Rerun => {
            (Verb::Requeue(Requeue { run: true, ..Requeue::default() }), "queued again")
        }
    };
    on_request(ctx, id, verb, done)
}

fn on_request(ctx: &mut Ctx, id: &str, verb: Verb, done: &str) -> Result<(), Failed> {
    let ids = job_ids::ids(&[job_operand(id)]).map_err(|e| Failed(e.to_string()))?.ids;
    let select = JobSelect { ids, user: "all".into(), ..JobSelect::default() };
    let (outcomes, failed) = client::control(ctx, Control::of(verb, select))?;
    if let Some(e) = failed {
        return Err(e.into());
    }
    let refused = |o: &Outcome| (o.code != 0).then(|| err_text(o.code).to_owned());
    match outcomes.iter().find_map(refused) {
        Some(why) => Err(Failed(format!("request <{id}>: {why}"))),
        None => {
            let shown = outcomes.first().map_or(JobRef { job: 0, idx: 0 }, |o| o.id);
            outln!(ctx, "Request <{shown}> is {done}.");
            Ok(())
        }
    }
}

/// The definitions, and the queues that are disabled or stopped, as commands.
fn snap_text(ctx: &mut Ctx) -> Result<String, Failed> {
    let lines = admin(ctx, AdminOp::Show { what: "nqs".to_owned() })?;
    let mut text: String = lines.into_iter().map(|l| l.text).collect();
    for queue in nqs::queues(ctx, Vec::new())? {
        for (on, word) in [(queue.open, "disable"), (queue.active, "stop")] {
            if !on {
                text.push_str(&format!("{word} queue {}\n", queue.name));
            }
        }
    }
    Ok(text)
}

fn snap(ctx: &mut Ctx, file: Option<&str>) -> Result<(), Failed> {
    let text = snap_text(ctx)?;
    match file {
        None => {
            let _ = write!(ctx.out, "{text}");
            Ok(())
        }
        Some(path) => std::fs::write(path, text)
            .map_err(|e| Failed(format!("{path}: {}", lsf::sys::words(&e)))),
    }
}

/// The phrases of the grammar that begin with these words, a line each.
fn phrases_of(words: &[String]) -> String {
    let about = words.join(" ").to_ascii_lowercase();
    let wanted = phrases().filter(|(phrase, _)| phrase.starts_with(&about));
    wanted.fold(String::new(), |mut all, (phrase, behind)| {
        let _ = writeln!(all, "{}", format!("{phrase} {behind}").trim_end());
        all
    })
}
