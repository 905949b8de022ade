//! cqdel and qdel: delete or signal requests. See cqdel(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::job_ids;
use lsf::cli::job_rows::{Cols, JobRow};
use lsf::cli::nqs::{self, RequestState, job_operand};
use lsf::cli::site;
use lsf::model::reason::{err, err_text};
use lsf::model::signals;
use lsf::proto::client::{Col, Control, JobSelect, Verb};
use lsf::{errln, outln};
use std::ffi::OsString;

/// Delete requests that wait, or end or signal those that run.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// end a request that runs
    #[argh(switch, short = 'k')]
    kill: bool,
    /// send this signal to a request that runs
    #[argh(option, short = 's', arg_name = "signal")]
    signal: Option<String>,
    /// requests of this user alone
    #[argh(option, short = 'u', arg_name = "user")]
    user: Option<String>,
    /// requests on this host alone
    #[argh(option, short = 'h', arg_name = "host")]
    host: Option<String>,
    /// where requests are looked for: nqs
    #[argh(option, short = 'd', arg_name = "nqs")]
    destination: Option<String>,
    /// the requests
    #[argh(positional, greedy, arg_name = "request")]
    _requests: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    ctx.readings = Some(front::readings::<Options>);
    delete(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

/// `-9` is `-s 9`.
fn words(args: &[OsString]) -> Vec<OsString> {
    let mut out = Vec::new();
    for word in args {
        let text = word.to_string_lossy();
        let digits = |t: &str| !t.is_empty() && t.chars().all(|c| c.is_ascii_digit());
        match text.strip_prefix('-').filter(|t| digits(t)) {
            Some(number) => out.extend([OsString::from("-s"), OsString::from(number)]),
            None => out.push(word.clone()),
        }
    }
    out
}

fn delete(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse::<Options>(ctx.name, &words(&ctx.args))?;
    let (opts, operands) = (parsed.options, parsed.operands);
    if operands.is_empty() {
        return Err(front::usage_error::<Options>(ctx.name, "No request is named."));
    }
    if let Some(other) = opts.destination.as_deref().filter(|d| *d != "nqs") {
        let words = "there is no NQE database here";
        return Err(Exit::fail(format_args!("{}: -d <{other}>: {words}", ctx.name)));
    }
    let verb = match &opts.signal {
        Some(_) if opts.kill => {
            let words = "Options -k and -s exclude each other.";
            return Err(front::usage_error::<Options>(ctx.name, words));
        }
        Some(word) => Some(signal(word)?),
        None => opts.kill.then_some(Verb::Kill),
    };
    let site = site::find().map_err(|e| Exit::fail(e.to_string()))?;
    let host = nqs::request_host(&site);
    let mut code = 0;
    for operand in &operands {
        let word = operand.to_string_lossy();
        let shown = if word.contains('.') { word.to_string() } else { format!("{word}.{host}") };
        if let Err(why) = one(ctx, &opts, &word, &shown, verb.clone()) {
            errln!(ctx, "{why}");
            code = FAIL;
        }
    }
    Ok(code)
}

fn signal(word: &str) -> Result<Verb, Exit> {
    let number = signals::number(word)
        .ok_or_else(|| Exit::fail(format_args!("{word}: Illegal signal value")))?;
    let name = signals::name(number).map_or_else(|| number.to_string(), str::to_owned);
    Ok(match name.as_str() {
        "STOP" | "TSTP" => Verb::Stop,
        "CONT" => Verb::Resume,
        _ => Verb::Signal { number, name },
    })
}

/// Deletes or signals one request; else why not.
fn one(
    ctx: &mut Ctx,
    opts: &Options,
    word: &str,
    shown: &str,
    verb: Option<Verb>,
) -> Result<(), String> {
    let none = || format!("Request <{shown}> does not exist.");
    let ids = job_ids::ids(&[job_operand(word)]).map_err(|e| e.to_string())?.ids;
    let user = opts.user.clone().unwrap_or_else(|| "all".to_owned());
    let host = opts.host.clone().unwrap_or_default();
    let select = JobSelect { ids, user, host, ..JobSelect::default() };
    let cols = Cols::new(&[Col::Stat, Col::PendReasons, Col::Post]);
    let mut states = Vec::new();
    let look = |row: &JobRow| states.push(nqs::state(row));
    match nqs::each_job(ctx, select.clone(), &cols, look) {
        Ok(()) => {}
        Err(e) if e.code() == Some(err::NO_JOB) => return Err(none()),
        Err(e) => return Err(e.words()),
    }
    states.retain(|state| *state != RequestState::Ended);
    if states.is_empty() {
        return Err(none());
    }
    if states.iter().all(|state| *state == RequestState::Exiting) {
        let words = "has ended; the commands after it are left to run.";
        return Err(format!("Request <{shown}> {words}"));
    }
    let started = |s: &RequestState| {
        matches!(s, RequestState::Running | RequestState::Suspended | RequestState::Unknown)
    };
    let runs = states.iter().any(started);
    let signals = matches!(&verb, Some(Verb::Signal { .. } | Verb::Stop | Verb::Resume));
    let verb = match (verb, runs) {
        (None, true) => {
            return Err(format!("Request <{shown}> is running: use -k, or -s to signal it."));
        }
        (Some(verb), true) => verb,
        // what waits is deleted, whatever the signal
        (_, false) => Verb::Kill,
    };
    let did = if signals && runs { "signalled" } else { "deleted" };
    match client::control(ctx, Control::of(verb, select)) {
        Ok((outcomes, None)) => match outcomes.iter().find(|o| o.code != 0).map(|o| o.code) {
            None => {
                outln!(ctx, "Request <{shown}> has been {did}.");
                Ok(())
            }
            Some(err::PERMISSION) => Err(format!("Not owner of request <{shown}>.")),
            Some(err::NO_JOB | err::JOB_FINISH) => Err(none()),
            Some(code) => Err(format!("Request <{shown}>: {}", err_text(code))),
        },
        Ok((_, Some(e))) => Err(e.words()),
        Err(e) if e.code() == Some(err::NO_JOB) => Err(none()),
        Err(e) => Err(e.words()),
    }
}
