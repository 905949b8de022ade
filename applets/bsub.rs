//! bsub: submits a job (bsub(1)).
//!
//! Invariants: the answer is the first text on stdout; a refusal goes to stderr with `Job not
//! submitted.` and exit code 255, and nothing was submitted; everything that can be checked
//! without the master is checked before it is asked; one submission has one request id, which
//! every retry repeats, so that it is never made twice.

mod again;
mod command;
mod env;
pub mod esub;
pub mod hostfile;
pub mod opts;
mod pack;
pub mod resreq;
mod script;
pub mod source;
pub mod spec;
pub mod spool;
mod wait;
mod when;

pub use script::words;

use again::Again;
use env::{EnvAsk, Var};
use jiff::tz::TimeZone;
use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::site::{self, Site};
use lsf::conf::LsfConf;
use lsf::daemon::mail;
use lsf::errln;
use lsf::exec::sbatchd::KEEP_SECS;
use lsf::model::ByteStr;
use lsf::model::job::{JobSpec, extra, opt, opt2};
use lsf::model::reason::err;
use lsf::proto::Msg;
use lsf::proto::client::{ClientMsg, Submit};
use opts::BsubOpts;
use source::Source;
use spec::{Facts, Rejection};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use wait::Voice;

/// Bytes of a request id.
const REQUEST_BYTES: usize = 16;

pub fn run(ctx: &mut Ctx) -> i32 {
    match submit(ctx) {
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

/// Why bsub ends without a job.
pub enum Stop {
    /// A usage error, help.
    Exit(Exit),
    Rejected(Rejection),
    Client(ClientError),
}

impl Stop {
    /// The same, of what was refused before the master heard of it.
    pub fn rejection(self) -> Result<Rejection, Exit> {
        match self {
            Stop::Exit(exit) => Err(exit),
            Stop::Rejected(why) => Ok(why),
            Stop::Client(e) => Ok(Rejection::new(e.to_string())),
        }
    }
}

impl From<Exit> for Stop {
    fn from(e: Exit) -> Self {
        Stop::Exit(e)
    }
}
impl From<Rejection> for Stop {
    fn from(r: Rejection) -> Self {
        Stop::Rejected(r)
    }
}
impl From<ClientError> for Stop {
    fn from(e: ClientError) -> Self {
        Stop::Client(e)
    }
}

fn submit(ctx: &mut Ctx) -> Result<i32, Stop> {
    let own = front::parse_of::<BsubOpts>(ctx)?;
    let site = site::find().map_err(|e| Rejection::new(e.to_string()))?;
    if let Some(file) = &own.options.pack {
        if !own.operands.is_empty() {
            return Err(Rejection::new("option -pack takes no command").into());
        }
        return pack::run(ctx, &site, file);
    }
    let parse = site::yes(Some(&site), "LSB_BSUB_PARSE_SCRIPT");
    let spool = own.options.spool_command;
    let source = source::read(ctx, &own.operands, parse || spool)?;
    if spool && !own.operands.is_empty() && source.script.is_none() {
        let words = "the command of option -Zs is no script that can be read here";
        return Err(Rejection::new(words).into());
    }
    let opts = match parse || own.operands.is_empty() {
        true => options(ctx, own.options, &source)?,
        false => own.options,
    };
    let facts = facts(&site.lsf, opts.begin.is_some() || opts.term.is_some())?;
    if is_set("BSUB_CHK_RESREQ") {
        spec::build(&opts, &facts)?;
        errln!(ctx, "Resource requirement string is valid.");
        return Ok(0);
    }
    let submit = compose(ctx, &site, &opts, &facts, source)?;
    let copy = submit.spec.given(extra::SPOOLED_INPUT).to_string();
    let named = submit.spec.options & opt::QUEUE != 0;
    let fileless = submit.spec.out_file.is_empty();
    let asked = opts.esub.as_deref().unwrap_or("");
    let sent = send(ctx, &site, submit);
    match &sent {
        Ok((job, queue)) => esub::told(&site, "bsub", asked, Some((*job, queue)), 0),
        Err(stop) => {
            spool::forget(&copy);
            if let Stop::Client(e) = stop {
                esub::told(&site, "bsub", asked, None, e.code().unwrap_or(FAIL));
            }
        }
    }
    let (job, queue) = sent?;
    answer(ctx, job, &queue, named);
    if fileless && !is_set("BSUB_QUIET") && !mail::possible(site.lsf.mail_program().as_bytes()) {
        errln!(ctx, "{}", kept_words());
    }
    if !opts.wait {
        return Ok(0);
    }
    Ok(wait::until_end(ctx, job, &Voice::of(&site)))
}

/// The whole submission, as the site's esubs leave it.
fn compose(
    ctx: &mut Ctx,
    site: &Site,
    opts: &BsubOpts,
    facts: &Facts,
    source: Source,
) -> Result<Submit, Stop> {
    let mut spec = spec::build(opts, facts)?;
    for word in opts.ignored() {
        errln!(ctx, "bsub: option {word} is accepted but not acted on yet");
    }
    for what in resreq::not_acted_on(&spec.res_req) {
        errln!(ctx, "bsub: {what} of -R is accepted but not acted on yet");
    }
    if opts.user_limits {
        spool::user_limits(&mut spec);
    }
    if let Some(file) = &opts.host_file {
        hostfile::put(file, &mut spec)?;
    }
    if let Some(file) = &opts.spool_in {
        spool::input(ctx, file, &mut spec)?;
    }
    let mut command = source.command;
    if source.script.is_some() {
        spec.options2 |= opt2::SCRIPT;
    }
    let asked = opts.esub.as_deref().unwrap_or("");
    let changed = match facts.mesub {
        true => esub::run(site, "bsub", asked, &mut spec, &mut command)?,
        false => esub::Changed::default(),
    };
    // a file of ten thousand submissions has it made once
    let env = if opts.env.is_empty() && changed.env.is_empty() {
        facts.env.clone()
    } else {
        let ask = EnvAsk::parse(&opts.env).map_err(|e| Rejection::new(e.to_string()))?;
        ByteStr(env::packed(&esub::with(ask.apply(&own_environment()), changed)))
    };
    if !asked.is_empty() {
        spec.extra.push((extra::ESUB.to_string(), asked.to_string()));
    }
    spec.command = ByteStr(command);
    let script = source.script.map(ByteStr).unwrap_or_default();
    say_times(ctx, &spec, &facts.zone);
    Ok(Submit { request: request_id()?, spec, env, script, ..Submit::default() })
}

/// The options of the command line over those of the script.
fn options(ctx: &mut Ctx, own: BsubOpts, source: &Source) -> Result<BsubOpts, Stop> {
    let Some(script) = &source.script else { return Ok(own) };
    let lines = script::directives(script).map_err(|e| Rejection::new(e.to_string()))?;
    let mut embedded = Vec::new();
    for line in lines {
        if !line.words[0].as_bytes().starts_with(b"-") {
            let word = line.words[0].to_string_lossy();
            errln!(ctx, "bsub: line {} of the script: {word} is no option, ignored", line.line);
            continue;
        }
        embedded.push(line.words);
    }
    let mut all = front::parse_over::<BsubOpts>(ctx.name, &embedded, &ctx.args)?.options;
    all.settle_files(&own);
    Ok(all)
}

/// `times`: the zone is wanted; reading it costs every submission two files.
pub fn facts(conf: &LsfConf, times: bool) -> Result<Facts, Rejection> {
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    Ok(Facts {
        now: lsf::sys::now().secs(),
        zone: if times { TimeZone::system() } else { TimeZone::UTC },
        unit: conf.unit(),
        requirement_unit_mb: conf.requirement_unit_mb(),
        default_queue: var("LSB_DEFAULTQUEUE"),
        default_project: var("LSB_DEFAULTPROJECT"),
        cwd: working_directory()?,
        home: home(),
        umask: umask(),
        env: ByteStr(env::packed(&env::EnvAsk::everything().apply(&own_environment()))),
        mesub: true,
    })
}

/// PWD where it names the working directory, as the user knows it by; else the real path.
fn working_directory() -> Result<Vec<u8>, Rejection> {
    use std::os::unix::fs::MetadataExt;
    if let Some(pwd) = std::env::var_os("PWD")
        && pwd.as_bytes().starts_with(b"/")
        && let (Ok(a), Ok(b)) = (std::fs::metadata(&pwd), std::fs::metadata("."))
        && (a.dev(), a.ino()) == (b.dev(), b.ino())
    {
        return Ok(pwd.into_vec());
    }
    match std::env::current_dir() {
        Ok(dir) => Ok(dir.into_os_string().into_vec()),
        Err(e) => Err(Rejection::new(format!(
            "the working directory cannot be found: {}",
            lsf::sys::words(&e)
        ))),
    }
}

/// The home directory that passwd knows, else HOME.
fn home() -> Vec<u8> {
    let uid = lsf::sys::euid();
    match lsf::sys::users::Users::default().by_uid(uid) {
        Some(user) if user.home.starts_with('/') => user.home.into_bytes(),
        _ => std::env::var_os("HOME").map(OsStringExt::into_vec).unwrap_or_default(),
    }
}

/// The umask can only be read by setting it; nothing else runs in this process meanwhile.
fn umask() -> u32 {
    let old = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(old);
    old.bits()
}

/// The environment that `-env` asks for; `None`: it was not given.
pub fn asked_env(asks: &[String]) -> Result<Option<ByteStr>, Rejection> {
    if asks.is_empty() {
        return Ok(None);
    }
    let ask = EnvAsk::parse(asks).map_err(|e| Rejection::new(e.to_string()))?;
    Ok(Some(ByteStr(env::packed(&ask.apply(&own_environment())))))
}

fn own_environment() -> Vec<Var> {
    std::env::vars_os().map(|(n, v)| (n.into_vec(), v.into_vec())).collect()
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

fn request_id() -> Result<String, Rejection> {
    let bytes = lsf::sys::random::<REQUEST_BYTES>()
        .map_err(|e| Rejection::new(format!("no random numbers: {}", lsf::sys::words(&e))))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// What `-b` and `-t` came to, on stderr.
pub fn say_times(ctx: &mut Ctx, spec: &JobSpec, zone: &TimeZone) {
    for (secs, what) in [(spec.begin_time, "scheduled after"), (spec.term_time, "terminated by")] {
        if secs != 0 {
            let mut text = String::new();
            lsf::cli::clock::Clock::of(zone.clone()).full(&mut text, secs);
            errln!(ctx, "Job will be {what} {text}");
        }
    }
}

/// Sends the submission, again where it is beyond what may be pending now. A priority that the
/// cluster has no use for is left out and said.
fn send(ctx: &mut Ctx, site: &Site, submit: Submit) -> Result<(u32, String), Stop> {
    let mut msg = Msg::Client(ClientMsg::Submit(Box::new(submit)));
    let mut again = Again::of(site);
    loop {
        match client::ask_at(site, &msg, ctx.err) {
            Ok((_, Msg::Client(ClientMsg::Submitted { job, queue, .. }))) => {
                return Ok((job, queue));
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

/// Where output goes without -o and without a mail program.
fn kept_words() -> String {
    let days = KEEP_SECS / (24 * 3600);
    format!(
        "No -o, and no mail program here: the output will be kept in ~/.lsbatch on the execution \
         host, for {days} days."
    )
}

fn answer(ctx: &mut Ctx, job: u32, queue: &str, named: bool) {
    if is_set("BSUB_QUIET") {
        return;
    }
    let default = if named { "" } else { "default " };
    let text = format!("Job <{job}> is submitted to {default}queue <{queue}>.");
    if is_set("BSUB_STDERR") {
        errln!(ctx, "{text}");
    } else {
        lsf::outln!(ctx, "{text}");
        ctx.flush();
    }
}
