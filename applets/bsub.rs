//! bsub: submits a job (bsub(1)).
//!
//! Invariants: the answer is the first text on stdout; a refusal goes to stderr with `Job not
//! submitted.` and exit code 255, and nothing was submitted; everything that can be checked
//! without the master is checked before it is asked; one submission has one request id, which
//! every retry repeats, so that it is never made twice.

mod again;
mod answer;
mod binding;
mod caller;
mod command;
mod compose;
pub mod env;
pub mod esub;
mod follow;
pub mod hostfile;
pub mod interactive;
mod job_file;
mod nios_debug;
pub mod opts;
mod pack;
pub mod rejection;
pub mod resreq;
pub mod script;
mod session;
pub mod source;
pub mod spec;
pub mod spool;
mod stop;
mod teller;
mod wait;
mod when;

pub use caller::{asked_env, facts, own_environment};
pub use compose::say_times;
pub use script::words;
pub use stop::Stop;

use again::Again;
use answer::{answer, kept_words};
use caller::{is_set, request_id};
use compose::compose;
use job_file::JobFile;
use lsf::cli::client::{self, Client, ClientError};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::cli::site::{self, LocalSite};
use lsf::daemon::mail;
use lsf::errln;
use lsf::model::ByteStr;
use lsf::model::job::{JobSpec, opt};
use lsf::model::reason::err;
use lsf::proto::Msg;
use lsf::proto::client::{ClientMsg, Submit};
use opts::BsubOpts;
use rejection::Rejection;
use session::Terminal;
use source::JobSource;
use spec::SubmissionInputs;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use wait::Voice;

pub fn run(ctx: &mut Ctx) -> i32 {
    let submitted = submit(ctx);
    shown(ctx, submitted)
}

/// The exit code of a submission, whose words are shown where it was not made.
pub fn shown(ctx: &mut Ctx, submitted: Result<i32, Stop>) -> i32 {
    match submitted {
        Ok(code) => code,
        Err(Stop::Exit(exit)) => exit.show(ctx),
        Err(Stop::Rejected(why)) => {
            errln!(ctx, "{why}");
            FAIL
        }
        Err(Stop::Client(e)) => {
            errln!(ctx, "{}", Rejection::new(e.to_string()));
            FAIL
        }
    }
}

fn submit(ctx: &mut Ctx) -> Result<i32, Stop> {
    let mut own = front::parse_of::<BsubOpts>(ctx)?;
    let site = site::find().map_err(|e| Rejection::new(e.to_string()))?;
    if let Some(file) = &own.options.pack {
        if !own.operands.is_empty() {
            return Err(Rejection::new("option -pack takes no command").into());
        }
        return pack::run(ctx, &site, file);
    }
    let file = job_file::read(&own.options)?;
    if let Some(file) = &file {
        own.options = options(ctx, &own.options, &[&file.options])?;
        if own.operands.is_empty() {
            own.operands = file.command.iter().cloned().collect();
        }
    }
    let parse = site::yes(Some(&site), "LSB_BSUB_PARSE_SCRIPT");
    let spool = own.options.spool_command;
    if own.operands.is_empty() {
        // a wrong option is reported before a script is awaited: its value may be the command
        let timed = own.options.begin.is_some() || own.options.term.is_some();
        spec::build(&own.options, &facts(&site.lsf, timed)?)?;
    }
    let source = source::read(ctx, &own.operands, parse || spool)?;
    if spool && !own.operands.is_empty() && source.script.is_none() {
        let words = "-Zs: the command is not a readable script";
        return Err(Rejection::new(words).into());
    }
    let opts = match parse || own.operands.is_empty() {
        true => scripted(ctx, own.options, file.as_ref(), &source)?,
        false => own.options,
    };
    let facts = facts(&site.lsf, opts.begin.is_some() || opts.term.is_some())?;
    if is_set("BSUB_CHK_RESREQ") {
        spec::build(&opts, &facts)?;
        errln!(ctx, "Resource requirement string is valid.");
        return Ok(0);
    }
    let submit = compose(ctx, &site, &opts, &facts, source)?;
    let copy = submit.spec.further.spooled_input.clone();
    let named = submit.spec.options & opt::QUEUE != 0;
    let fileless = submit.spec.out_file.is_empty();
    let asked = opts.esub.as_deref().unwrap_or("");
    let terminal = Terminal::of(&submit.spec);
    let sent = send(ctx, &site, submit);
    match &sent {
        Ok((job, queue, _)) => esub::told(&site, "bsub", asked, Some((*job, queue)), 0),
        Err(stop) => {
            spool::forget(&copy);
            if let Stop::Client(e) = stop {
                esub::told(&site, "bsub", asked, None, e.code().unwrap_or(FAIL));
            }
        }
    }
    let (job, queue, client) = sent?;
    answer(ctx, job, &queue, named);
    if let Some(terminal) = terminal {
        return Ok(session::until_end(ctx, &site, client, job, terminal));
    }
    if fileless && !is_set("BSUB_QUIET") && !mail::possible(site.lsf.mail_program().as_bytes()) {
        errln!(ctx, "{}", kept_words());
    }
    if !opts.wait {
        return Ok(0);
    }
    Ok(wait::until_end(ctx, job, &Voice::of(&site)))
}

/// Submits what was made without the options of bsub, as the site's esubs leave it; `asked` are
/// those of -a.
pub fn submit_made(
    ctx: &mut Ctx,
    site: &LocalSite,
    asked: &str,
    mut spec: JobSpec,
    facts: &SubmissionInputs,
) -> Result<i32, Stop> {
    if facts.mesub {
        let mut command = spec.command.0.clone();
        esub::run(site, ctx.name, asked, &mut spec, &mut command)?;
    }
    let (named, env) = (spec.options & opt::QUEUE != 0, facts.env.clone());
    let submit = Submit { request: request_id()?, spec, env, ..Submit::default() };
    let (job, queue, _) = send(ctx, site, submit)?;
    esub::told(site, ctx.name, asked, Some((job, &queue)), 0);
    answer(ctx, job, &queue, named);
    Ok(0)
}

/// The command by which esubs know a request of NQS, under whichever name it was called.
const COMMAND: &str = "cqsub";

/// Submits a script with a submission that was made without the options of bsub, as the site's
/// esubs leave it. The job and its queue.
pub fn submit_script(
    ctx: &mut Ctx,
    site: &LocalSite,
    mut spec: JobSpec,
    env: Vec<env::Var>,
    script: Vec<u8>,
) -> Result<(u32, String), Stop> {
    let mut command = spec.command.0.clone();
    let changed = esub::run(site, COMMAND, "", &mut spec, &mut command)?;
    let env = ByteStr(env::packed(&esub::with(env, changed)));
    let script = ByteStr(script);
    let submit = Submit { request: request_id()?, spec, env, script, ..Submit::default() };
    let sent = send(ctx, site, submit);
    match &sent {
        Ok((job, queue, _)) => esub::told(site, COMMAND, "", Some((*job, queue)), 0),
        Err(Stop::Client(e)) => {
            esub::told(site, COMMAND, "", None, e.code().unwrap_or(FAIL));
        }
        Err(_) => {}
    }
    sent.map(|(job, queue, _)| (job, queue))
}

/// The options of the command line over those of a job file, if there is one, and these over those
/// of the script.
fn scripted(
    ctx: &mut Ctx,
    above: BsubOpts,
    file: Option<&JobFile>,
    source: &JobSource,
) -> Result<BsubOpts, Stop> {
    let Some(script) = &source.script else { return Ok(above) };
    let lines = script::directives(script).map_err(|e| Rejection::new(e.to_string()))?;
    let mut embedded = Vec::new();
    for line in lines {
        if !line.words[0].as_bytes().starts_with(b"-") {
            let word = line.words[0].to_string_lossy();
            errln!(ctx, "bsub: line {} of the script: {word} is not an option; ignored", line.line);
            continue;
        }
        embedded.push(line.words);
    }
    match file {
        Some(file) => options(ctx, &above, &[&embedded, &file.options]),
        None => options(ctx, &above, &[&embedded]),
    }
}

/// The options of the command line over those of the layers, the lowest first. `above`: the files
/// of the command line, or of the command line and the layer below.
fn options(ctx: &Ctx, above: &BsubOpts, layers: &[&[Vec<OsString>]]) -> Result<BsubOpts, Stop> {
    let mut all = front::parse_over::<BsubOpts>(ctx.name, layers, &ctx.args)?.options;
    all.settle_files(above);
    job_file::forget(&mut all);
    Ok(all)
}

/// Sends the submission, again where it is beyond what may be pending now. A priority that the
/// cluster has no use for is left out and said.
fn send(ctx: &mut Ctx, site: &LocalSite, submit: Submit) -> Result<(u32, String, Client), Stop> {
    let mut msg = Msg::Client(ClientMsg::Submit(Box::new(submit)));
    let mut again = Again::of(site);
    loop {
        match client::ask_at(site, &msg, ctx.err) {
            Ok((
                client,
                Msg::Client(ClientMsg::Submitted {
                    job, queue, class_ignored, nlb_unchecked, ..
                }),
            )) => {
                answer::say_notices(ctx, class_ignored, nlb_unchecked);
                return Ok((job, queue, client));
            }
            Ok(_) => return Err(ClientError::Unexpected.into()),
            Err(e) if again.waits(ctx, &e) => {}
            Err(e) => match &mut msg {
                Msg::Client(ClientMsg::Submit(s))
                    if e.code() == Some(err::PRIORITY_UNDEF) && s.spec.priority != 0 =>
                {
                    errln!(ctx, "bsub: option -sp is ignored: MAX_USER_PRIORITY is not defined");
                    s.spec.priority = 0;
                    s.request = request_id()?;
                }
                _ => return Err(e.into()),
            },
        }
    }
}
