//! bsub -pack: a file of submissions, one line each, options and command (bsub(1)).
//!
//! All go over one connection, LSB_MAX_PACK_JOBS of them on the way at once. A connection that is
//! lost is made again, and what was not answered is sent again: its request id keeps it from being
//! made twice. Nothing behind the first mistake is submitted, unless lsf.conf says
//! LSB_PACK_SKIP_ERROR=Y: what is on the way already is of one chain, of which mbatchd takes
//! nothing behind the first that it refuses. A submission that mbatchd refuses for now is sent
//! again, and so are those behind it.

use super::again::{self, Again};
use super::answer::{answer, say_notices};
use super::caller::{facts, request_id};
use super::compose::compose;
use super::opts::BsubOpts;
use super::rejection::Rejection;
use super::source::JobSource;
use super::spec::SubmissionInputs;
use super::stop::Stop;
use super::{command, interactive, script};
use lsf::cli::client::{self, Client, ClientError};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::cli::site::LocalSite;
use lsf::model::ByteStr;
use lsf::model::job::opt;
use lsf::model::reason::err;
use lsf::proto::client::{ClientMsg, Submit, env_hash};
use lsf::proto::{Msg, Refusal};
use lsf::{errln, outln};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Read;
use std::rc::Rc;
use std::time::Duration;

/// Longest file, bytes.
const PACK_MAX: u64 = 256 << 20;
/// Default of LSB_MAX_PACK_JOBS.
const WINDOW: u64 = 300;
/// Most on the way at once, whatever LSB_MAX_PACK_JOBS says.
const WINDOW_MAX: u64 = 4096;

/// A submission on its way.
struct Sent {
    /// The line of the file, counted from 1.
    line: usize,
    msg: Msg,
    /// A queue was asked for.
    named: bool,
    /// The environment, where `msg` has its hash.
    env: Option<Rc<ByteStr>>,
    tries: Again,
}

impl Sent {
    /// The submission with its environment.
    fn whole(self) -> Option<Submit> {
        let Msg::Client(ClientMsg::Submit(mut submit)) = self.msg else { return None };
        if let Some(env) = self.env {
            submit.env_hash.clear();
            submit.env = ByteStr::clone(&env);
        }
        Some(*submit)
    }

    /// Whether the submission carries this environment.
    fn carries(&self, (env, hash): &(Rc<ByteStr>, String)) -> bool {
        match &self.msg {
            Msg::Client(ClientMsg::Submit(s)) if s.env_hash.is_empty() => s.env == **env,
            Msg::Client(ClientMsg::Submit(s)) => s.env_hash == *hash,
            _ => false,
        }
    }
}

#[derive(Default)]
struct Tally {
    parsed: usize,
    submitted: usize,
    errors: usize,
}

struct Pack<'a> {
    site: &'a LocalSite,
    facts: SubmissionInputs,
    tally: Tally,
    waiting: VecDeque<Sent>,
    /// The submissions to be sent again when no answer is awaited any more, and the pause before
    /// that.
    again: Vec<(usize, Submit, Again)>,
    pause: Option<Duration>,
    /// The chain of the submissions that are sent now; 0: each is taken by itself.
    chain: u32,
    client: Option<Client>,
    /// The environment that was sent last, with its hash, and whether the daemon keeps it.
    env: (Rc<ByteStr>, String),
    kept: bool,
    /// LSB_PACK_SKIP_ERROR=Y.
    skip: bool,
}

pub fn run(ctx: &mut Ctx, site: &LocalSite, file: &str) -> Result<i32, Stop> {
    let fail = |e: std::io::Error| Rejection::new(format!("{file}: {}", lsf::sys::words(&e)));
    let mut text = String::new();
    let input = std::fs::File::open(file).map_err(fail)?;
    input.take(PACK_MAX).read_to_string(&mut text).map_err(fail)?;
    let mesub = site.lsf.get("LSB_PACK_MESUB").is_none_or(lsf::cli::site::means_yes);
    let skip = site.lsf.yes("LSB_PACK_SKIP_ERROR");
    let mut pack = Pack {
        site,
        facts: SubmissionInputs { mesub, ..facts(&site.lsf, true)? },
        tally: Tally::default(),
        waiting: VecDeque::new(),
        again: Vec::new(),
        pause: None,
        chain: u32::from(!skip),
        client: None,
        env: <_>::default(),
        kept: false,
        skip,
    };
    let window = site.lsf.int("LSB_MAX_PACK_JOBS", WINDOW).clamp(1, WINDOW_MAX) as usize;
    for (i, line) in text.lines().enumerate() {
        let words = line.trim();
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        if pack.stopped() {
            break;
        }
        match pack.read(ctx, words) {
            Ok(submit) => pack.send(ctx, i + 1, submit, Again::of(site))?,
            // one before it may be the first that is wrong
            Err(_) if !skip && pack.settle(ctx)? => break,
            Err(why) => pack.wrong(ctx, i + 1, &why),
        }
        pack.tally.parsed += 1;
        if !pack.again.is_empty() {
            pack.settle(ctx)?;
        } else if pack.waiting.len() >= window {
            pack.hear(ctx)?;
        }
    }
    pack.settle(ctx)?;
    let Tally { parsed, submitted, errors } = pack.tally;
    outln!(ctx, "{parsed} lines parsed, {submitted} jobs submitted, {errors} errors found.");
    Ok(if errors == 0 { 0 } else { FAIL })
}

impl Pack<'_> {
    fn read(&self, ctx: &mut Ctx, line: &str) -> Result<Submit, String> {
        let words = script::words(line).ok_or("a quote is not closed")?;
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let parsed = front::parse::<BsubOpts>("bsub", &words)
            .map_err(|e| e.err.lines().next().unwrap_or_default().to_string())?;
        let (opts, operands) = (parsed.options, parsed.operands);
        if opts.wait || opts.pack.is_some() || opts.spool_command {
            return Err("options -K, -Zs and -pack cannot be used in a file of submissions".into());
        }
        if interactive::asked(&opts) {
            return Err("an interactive job cannot be in a file of submissions".into());
        }
        if operands.is_empty() {
            return Err("No command is specified".into());
        }
        use std::os::unix::ffi::OsStrExt;
        let operands: Vec<&[u8]> = operands.iter().map(|w| w.as_bytes()).collect();
        let source = JobSource { command: command::text(&operands), script: None };
        compose(ctx, self.site, &opts, &self.facts, source).map_err(|stop| match stop {
            Stop::Rejected(why) => why.words,
            Stop::Exit(exit) => exit.err,
            Stop::Client(e) => e.to_string(),
        })
    }

    /// Whether nothing more is to be sent.
    fn stopped(&self) -> bool {
        self.tally.errors > 0 && !self.skip
    }

    /// Hears of all that is on the way, and sends again what has to be; whether nothing more is to
    /// be sent then.
    fn settle(&mut self, ctx: &mut Ctx) -> Result<bool, Stop> {
        loop {
            while !self.waiting.is_empty() {
                self.hear(ctx)?;
            }
            if self.again.is_empty() {
                return Ok(self.stopped());
            }
            if let Some(pause) = self.pause.take() {
                std::thread::sleep(pause);
            }
            // what was refused broke its chain
            self.chain += u32::from(!self.skip);
            for (line, submit, tries) in std::mem::take(&mut self.again) {
                self.send(ctx, line, submit, tries)?;
            }
        }
    }

    fn wrong(&mut self, ctx: &mut Ctx, line: usize, why: &str) {
        self.tally.errors += 1;
        errln!(ctx, "line {line}: {}", Rejection::new(why));
    }

    /// An environment that the daemon has from a submission before is named by its hash.
    fn send(
        &mut self,
        ctx: &mut Ctx,
        line: usize,
        mut submit: Submit,
        tries: Again,
    ) -> Result<(), ClientError> {
        submit.chain = self.chain;
        let mut env = None;
        if *self.env.0 != submit.env {
            self.env = (Rc::new(submit.env.clone()), env_hash(&submit.env));
            self.kept = false;
        } else if self.kept {
            submit.env = ByteStr::default();
            submit.env_hash.clone_from(&self.env.1);
            env = Some(self.env.0.clone());
        }
        let named = submit.spec.options & opt::QUEUE != 0;
        let msg = Msg::Client(ClientMsg::Submit(Box::new(submit)));
        self.waiting.push_back(Sent { line, msg, named, env, tries });
        let sent = match (&mut self.client, self.waiting.back()) {
            (Some(client), Some(last)) => client.send(&last.msg),
            _ => return self.connect(ctx),
        };
        match sent {
            // its answer tells what became of it
            Err(ClientError::Refused(why)) => {
                self.waiting.pop_back();
                self.wrong(ctx, line, &why.words());
                Ok(())
            }
            Err(_) => self.connect(ctx),
            Ok(()) => Ok(()),
        }
    }

    /// Connects anew and sends what waits for an answer.
    fn connect(&mut self, ctx: &mut Ctx) -> Result<(), ClientError> {
        loop {
            let mut client = client::mbatchd(self.site, ctx.err)?;
            if self.waiting.iter().all(|sent| client.send(&sent.msg).is_ok()) {
                self.client = Some(client);
                return Ok(());
            }
        }
    }

    /// The oldest answer that is still to come.
    fn hear(&mut self, ctx: &mut Ctx) -> Result<(), Stop> {
        loop {
            let Some(client) = &mut self.client else { return Ok(self.connect(ctx)?) };
            match client.answer(ctx.err) {
                Ok(Msg::Client(ClientMsg::Submitted {
                    job,
                    queue,
                    env_kept,
                    class_ignored,
                    nlb_unchecked,
                    ..
                })) => {
                    say_notices(ctx, class_ignored, nlb_unchecked);
                    let sent = self.waiting.pop_front();
                    if !self.kept && env_kept {
                        self.kept = sent.as_ref().is_some_and(|s| s.carries(&self.env));
                    }
                    let named = sent.is_some_and(|sent| sent.named);
                    self.tally.submitted += 1;
                    answer(ctx, job, &queue, named);
                    return Ok(());
                }
                Err(ClientError::Refused(why)) => return self.refused(ctx, &why),
                Err(ClientError::Lost(_) | ClientError::Timeout(_)) => self.connect(ctx)?,
                Err(e) => return Err(e.into()),
                Ok(_) => return Err(ClientError::Unexpected.into()),
            }
        }
    }

    /// The oldest of those that wait for an answer was refused: for good, or for now.
    fn refused(&mut self, ctx: &mut Ctx, why: &Refusal) -> Result<(), Stop> {
        let Some(sent) = self.waiting.pop_front() else { return Ok(()) };
        let (line, mut tries) = (sent.line, sent.tries);
        let Some(mut again) = sent.whole() else { return Ok(()) };
        match why.code {
            err::ENV_GONE => self.kept = false,
            // the cluster has no use for one
            err::PRIORITY_UNDEF => again.spec.priority = 0,
            err::CHAIN if self.stopped() => {
                self.tally.parsed -= 1;
                return Ok(());
            }
            err::CHAIN => {}
            _ => match tries.after(why) {
                Some(pause) => {
                    if self.pause.replace(pause).is_none() {
                        again::say(ctx, why);
                    }
                }
                None => {
                    self.wrong(ctx, line, &why.words());
                    return Ok(());
                }
            },
        }
        again.request = request_id()?;
        self.again.push((line, again, tries));
        Ok(())
    }
}
