//! `bsub -I`, `-Ip`, `-Is`: waits for the job's start, joins it through the res of its host, and
//! ends as it ends (bsub(1)).
//!
//! Invariants: what LSF says goes to stderr, so that stdout is the job's alone; the job's end is
//! what mbatchd says it is; where this process is interrupted before the job runs, or loses the
//! job's host, it has the job killed.

use super::caller::is_set;
use super::follow::{self, Follower, JobNow, News};
use super::nios_debug::NiosDebug;
use lsf::cli::client::{self, Client, ClientError};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::remote::{self, Aside, Heard, LSF_ERROR, Stayed};
use lsf::cli::site::{self, LocalSite};
use lsf::errln;
use lsf::model::job::{End, JobSpec, opt};
use lsf::model::job_state::JobState;
use lsf::model::reason::susp_text;
use lsf::proto::Msg;
use lsf::proto::client::{ClientMsg, Control, IdSel, JobSelect, Verb};
use lsf::proto::res::ResMsg;
use lsf::sys::raw::SignalFd;
use lsf::sys::words;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Exit code of a bsub that was interrupted twice: 128 + SIGINT.
const INTERRUPTED: i32 = 130;
/// Pause before a res that does not answer is called again.
const AGAIN: Duration = Duration::from_secs(1);
/// Exit code where LSF_NIOS_JOBSTATUS_INTERVAL is set and the exit code of the job cannot be had
/// (C's `exit(-11)`).
const CODE_LOST: i32 = 245;
/// Most minutes of LSF_NIOS_PEND_TIMEOUT and LSF_NIOS_JOBSTATUS_INTERVAL.
const MINUTES_MAX: f64 = 1e6;
/// Interval of LSB_INTERACT_MSG_INTVAL where it is not a number of seconds.
const EVERY: u64 = 60;
/// Signals that end the job while it is not joined: INT, QUIT, TERM, HUP.
const ENDING: [i32; 4] = [2, 3, 15, 1];

/// The kind of terminal that a job has.
#[derive(Clone, Copy)]
pub struct Terminal {
    pty: bool,
}

impl Terminal {
    /// The terminal of a job; `None`: the job is not interactive.
    pub fn of(spec: &JobSpec) -> Option<Terminal> {
        let pty = spec.options & opt::PTY != 0;
        (spec.options & opt::INTERACTIVE != 0).then_some(Terminal { pty })
    }
}

/// Follows the job; the exit code for bsub.
pub fn until_end(
    ctx: &mut Ctx,
    site: &LocalSite,
    client: Client,
    job: u32,
    terminal: Terminal,
) -> i32 {
    ctx.flush();
    let enhanced = site::yes(Some(site), "LSB_INTERACT_MSG_ENH");
    let every = site::param(Some(site), "LSB_INTERACT_MSG_INTVAL");
    let every = every.and_then(|v| v.trim().parse().ok()).filter(|s| *s > 0).unwrap_or(EVERY);
    let reasons = enhanced.then(|| Duration::from_secs(every));
    let poll = minutes(site::param(Some(site), "LSF_NIOS_JOBSTATUS_INTERVAL"));
    let every = follow::Every { reasons, state: poll };
    // Before the thread starts, so that it too leaves the signals to the descriptor.
    let signals = SignalFd::new(&ENDING);
    let follower =
        signals.and_then(|signals| Ok((signals, Follower::new(site.clone(), client, job, every)?)));
    let (signals, follower) = match follower {
        Ok(both) => both,
        Err(e) => {
            errln!(ctx, "bsub: {}; job <{job}> is killed", words(&e));
            kill(site, job);
            return FAIL;
        }
    };
    let (at, reasons) = (None, Vec::new());
    let loud = !is_set("BSUB_QUIET");
    let site = site.clone();
    let debug = NiosDebug::of(&site);
    let mut session = Session {
        site,
        debug,
        polls: poll.is_some(),
        pend_time: minutes(std::env::var("LSF_NIOS_PEND_TIMEOUT").ok()),
        pending_since: Some(Instant::now()),
        job,
        terminal,
        loud,
        enhanced,
        signals,
        follower,
        at,
        reasons,
        killed: 0,
        status: None,
        unwritten: false,
        finished: None,
    };
    session.waiting(ctx);
    session.run(ctx).unwrap_or_else(|e| {
        errln!(ctx, "bsub: {}; the end of job <{job}> is not known", words(&e));
        FAIL
    })
}

/// A parameter of minutes, with decimals; none where it is not a number above 0.
fn minutes(value: Option<String>) -> Option<Duration> {
    let minutes = value?.trim().parse::<f64>().ok().filter(|m| *m > 0.0 && *m <= MINUTES_MAX)?;
    Some(Duration::from_secs_f64(60.0 * minutes))
}

/// An event that a session waits for.
enum Happened {
    Signal,
    /// The job has been pending for the time of LSF_NIOS_PEND_TIMEOUT.
    PendTimeout,
    News(News),
    /// The connection to res can be read, or is to be made again.
    Res,
}

struct Session {
    site: LocalSite,
    job: u32,
    terminal: Terminal,
    /// BSUB_QUIET is not set.
    loud: bool,
    /// LSB_INTERACT_MSG_ENH.
    enhanced: bool,
    /// LSF_NIOS_DEBUG.
    debug: NiosDebug,
    /// LSF_NIOS_JOBSTATUS_INTERVAL is set.
    polls: bool,
    /// LSF_NIOS_PEND_TIMEOUT, and since when the job has been pending.
    pend_time: Option<Duration>,
    pending_since: Option<Instant>,
    signals: SignalFd,
    follower: Follower,
    /// The host on which the job has started, and the number of the attempt.
    at: Option<(String, i64)>,
    /// The pending reasons that were shown.
    reasons: Vec<String>,
    /// How often a signal has asked for the end.
    killed: u32,
    /// The wait status that res has told last.
    status: Option<i32>,
    /// Output of the job could not be written.
    unwritten: bool,
    /// The job as it ended.
    finished: Option<JobNow>,
}

impl std::fmt::Display for Happened {
    /// The words of LSF_NIOS_DEBUG.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Happened::Signal => f.write_str("a signal asks for the end of the job"),
            Happened::PendTimeout => f.write_str("the job was pending for too long"),
            Happened::News(News::Words(_)) => f.write_str("mbatchd does not answer"),
            Happened::News(News::Failed(why)) => write!(f, "mbatchd: {why}"),
            Happened::News(News::State(now)) => {
                let host = if now.host.is_empty() { "-" } else { &now.host };
                write!(f, "mbatchd: state {:?}, host {host}, start {}", now.state, now.attempt)
            }
            Happened::Res => f.write_str("RES has something to say, or is asked again"),
        }
    }
}

/// The connection to the res of the job's host.
enum Join {
    /// There is none: the job has not started, or is over.
    None,
    /// To be made again.
    Again,
    Asked(Box<Client>),
}

/// The job has ended. Its output may still be on the way: a res that the job has been with
/// says so before it answers this.
fn last_words(join: Join) -> Join {
    let Join::Asked(mut client) = join else { return join };
    match client.send(&Msg::Ping { n: 0 }) {
        Ok(()) => Join::Asked(client),
        Err(_) => Join::None,
    }
}

impl Session {
    fn say(&self, ctx: &mut Ctx, text: &str) {
        if self.loud {
            errln!(ctx, "{text}");
            ctx.flush();
        }
    }

    fn waiting(&self, ctx: &mut Ctx) {
        self.say(ctx, "<<Waiting for dispatch ...>>");
    }

    fn run(&mut self, ctx: &mut Ctx) -> io::Result<i32> {
        let mut join = Join::None;
        loop {
            for happened in self.wait(&join)? {
                self.debug.say(ctx, &happened);
                match happened {
                    Happened::PendTimeout => self.give_up_pending(ctx),
                    Happened::Signal => {
                        self.killed += 1;
                        if self.killed > 1 {
                            errln!(ctx, "bsub: interrupted; job <{}> is being killed", self.job);
                            return Ok(INTERRUPTED);
                        }
                        self.kill();
                    }
                    Happened::News(News::Words(words)) => {
                        let _ = ctx.err.write_all(&words);
                    }
                    Happened::News(News::Failed(why)) => {
                        // res has told how it ended
                        if let Some(code) = self.status.and_then(exit_code) {
                            return Ok(code);
                        }
                        errln!(ctx, "{why}. The end of job <{}> is not known", self.job);
                        return Ok(self.code_lost());
                    }
                    Happened::News(News::State(now)) if now.state.is_finished() => {
                        join = last_words(join);
                        self.finished = Some(now);
                    }
                    Happened::News(News::State(now)) => join = self.changed(ctx, &now, join),
                    Happened::Res => join = self.res(ctx, join),
                }
                if let Some(now) = &self.finished
                    && !matches!(join, Join::Asked(_))
                {
                    return Ok(self.ended(ctx, now));
                }
            }
        }
    }

    /// Waits until something has happened.
    fn wait(&mut self, join: &Join) -> io::Result<Vec<Happened>> {
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        fds.push(PollFd::new(&self.follower, PollFlags::IN));
        if let Join::Asked(client) = join {
            fds.push(PollFd::new(&**client, PollFlags::IN));
        }
        let again = matches!(join, Join::Again).then_some(AGAIN);
        let left = self.pend_left();
        let pause = again.into_iter().chain(left).min();
        let pause = pause.and_then(|pause| Timespec::try_from(pause).ok());
        let none = match poll(&mut fds, pause.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            got => got? == 0,
        };
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let mut all = Vec::new();
        while let Ok(Some(_)) = self.signals.take() {
            all.push(Happened::Signal);
        }
        if ready[1] {
            all.extend(self.follower.news().into_iter().map(Happened::News));
        }
        if none && again.is_some() || ready.get(2) == Some(&true) {
            all.push(Happened::Res);
        }
        if self.pend_left().is_some_and(|left| left.is_zero()) {
            all.push(Happened::PendTimeout);
        }
        Ok(all)
    }

    /// The time that is left to a pending job.
    fn pend_left(&self) -> Option<Duration> {
        Some(self.pend_time?.saturating_sub(self.pending_since?.elapsed()))
    }

    /// Has a job killed that is pending for too long.
    fn give_up_pending(&mut self, ctx: &mut Ctx) {
        self.pending_since = None;
        let time = self.pend_time.unwrap_or_default().as_secs();
        let why = "LSF_NIOS_PEND_TIMEOUT";
        errln!(ctx, "bsub: job <{}> is killed: pending for {time} seconds ({why})", self.job);
        ctx.flush();
        self.kill();
    }

    /// The exit code where that of the job cannot be had.
    fn code_lost(&self) -> i32 {
        if self.polls { CODE_LOST } else { FAIL }
    }

    /// The job has another state, or is asked about again.
    fn changed(&mut self, ctx: &mut Ctx, now: &JobNow, join: Join) -> Join {
        if now.state.is_pending() {
            if self.at.take().is_some() {
                self.pending_since = Some(Instant::now());
                self.waiting(ctx);
            }
            if self.enhanced && now.reasons != self.reasons {
                now.reasons.iter().for_each(|text| self.say(ctx, &format!("<< {text} >>")));
            }
            self.reasons.clone_from(&now.reasons);
            return Join::None;
        }
        self.pending_since = None;
        let at = Some((now.host.clone(), now.attempt));
        if self.at != at {
            if self.at.is_some() {
                // the time between the two was too short to be heard of
                self.waiting(ctx);
            }
            self.say(ctx, &format!("<<Starting on {}>>", now.host));
            self.at = at;
            return self.ask(ctx);
        }
        match join {
            Join::None => self.ask(ctx),
            join => join,
        }
    }

    /// Asks the res of the job's host for its terminal.
    fn ask(&mut self, ctx: &mut Ctx) -> Join {
        let Some((host, _)) = &self.at else { return Join::None };
        let asked = client::res_of(&self.site, host).and_then(|mut client| {
            remote::ask_to_join(&mut client, self.job, self.terminal.pty).map(|()| client)
        });
        match asked {
            Ok(client) => Join::Asked(Box::new(client)),
            Err(e) => self.again(ctx, &e),
        }
    }

    /// The res of the job's host does not let bsub in: it is asked later.
    fn again(&self, ctx: &mut Ctx, why: &ClientError) -> Join {
        let host = self.at.as_ref().map_or("", |at| &at.0);
        errln!(ctx, "bsub: {host}: {why:#}; it is asked again");
        ctx.flush();
        Join::Again
    }

    /// Hears what res has to say.
    fn res(&mut self, ctx: &mut Ctx, join: Join) -> Join {
        let Join::Asked(mut client) = join else { return self.ask(ctx) };
        let said = client.fill().and_then(|()| client.take(&mut |_, _| {}));
        match said {
            Ok(Some(Msg::Res(ResMsg::Joined))) => {
                self.debug.say(ctx, &"joined the job; its input and output follow");
                self.stay(ctx, *client)
            }
            // the job has ended without it
            Ok(Some(Msg::Pong { .. })) => Join::None,
            Ok(_) => Join::Asked(client),
            Err(ClientError::Refused(why)) => {
                errln!(ctx, "bsub: {}", why.words());
                self.kill();
                Join::None
            }
            // what was asked for was sent before res has proved itself
            Err(e @ ClientError::Auth(_)) => self.again(ctx, &e),
            Err(_) => Join::Again,
        }
    }

    /// Carries input and output until the job is over.
    fn stay(&mut self, ctx: &mut Ctx, client: Client) -> Join {
        ctx.flush();
        let mut kept = Vec::new();
        let done = {
            let Session { follower, at, enhanced, .. } = self;
            let wake = follower.as_fd().try_clone_to_owned();
            let mut suspended = false;
            let mut hear = || {
                let news = follower.news();
                let over = news.iter().any(|n| !runs(n, at.as_ref()));
                let words = news.iter().filter_map(|n| suspension(n, &mut suspended)).next_back();
                kept.extend(news);
                match words {
                    _ if over => Heard::Over,
                    Some(text) if *enhanced => Heard::Words(text),
                    _ => Heard::Nothing,
                }
            };
            let merged = !site::yes(Some(&self.site), "LSF_INTERACTIVE_STDERR");
            wake.map_err(|e| ClientError::Lost(words(&e))).and_then(|wake| {
                let aside = Aside { fd: wake.as_fd(), hear: &mut hear };
                remote::stay(&self.site, client, self.terminal.pty, merged, aside)
            })
        };
        match done {
            Ok(Stayed { status, unwritten }) => {
                self.unwritten |= unwritten;
                self.debug.say(ctx, &format_args!("RES reports the end, wait status {status:?}"));
                self.status = status;
            }
            Err(e) => {
                errln!(ctx, "bsub: {e:#}; job <{}> is killed", self.job);
                self.kill();
            }
        }
        // that it ran, and that mbatchd was away meanwhile, is no news any more
        kept.retain(|n| match n {
            News::Words(_) => false,
            News::Failed(_) => true,
            News::State(_) => !runs(n, self.at.as_ref()),
        });
        self.follower.put_back(kept);
        Join::None
    }

    fn ended(&self, ctx: &mut Ctx, now: &JobNow) -> i32 {
        if !now.started {
            if self.enhanced {
                let text = "has been terminated by user or administrator";
                self.say(ctx, &format!("<< Job <{}> {text} >>", self.job));
            }
            if !is_set("BSUB_QUIET2") {
                errln!(ctx, "<<Terminated while pending>>");
            }
            return LSF_ERROR;
        }
        if self.unwritten {
            return LSF_ERROR;
        }
        now.code.unwrap_or_else(|| {
            errln!(ctx, "bsub: the exit code of job <{}> is not known", self.job);
            self.code_lost()
        })
    }

    /// Has the job killed; it does not hold up what else is to be heard.
    fn kill(&self) {
        let (site, job) = (self.site.clone(), self.job);
        std::thread::spawn(move || {
            let _deaf = follow::deaf();
            kill(&site, job);
        });
    }
}

fn kill(site: &LocalSite, job: u32) {
    let ids = vec![IdSel { job, elems: Vec::new() }];
    let control = Control::of(Verb::Kill, JobSelect { ids, ..JobSelect::default() });
    let ask = Msg::Client(ClientMsg::Control(Box::new(control)));
    // the job may be over by now
    let _ = client::ask_at(site, &ask, &mut io::sink());
}

fn exit_code(status: i32) -> Option<i32> {
    End::Status(status).code()
}

/// Whether the job still runs where it has started.
fn runs(news: &News, at: Option<&(String, i64)>) -> bool {
    let News::State(now) = news else { return true };
    let here = at.is_some_and(|(host, attempt)| (host, *attempt) == (&now.host, now.attempt));
    !now.state.is_finished() && !now.state.is_pending() && here
}

/// Words about a job that is suspended, or goes on.
fn suspension(news: &News, suspended: &mut bool) -> Option<String> {
    let News::State(now) = news else { return None };
    let stands = matches!(now.state, JobState::Ususp | JobState::Ssusp);
    let before = std::mem::replace(suspended, stands);
    match (before, stands) {
        (false, true) => Some(format!("<< {} >>", susp_text(now.suspended))),
        (true, false) => Some("<< The job was resumed >>".to_string()),
        _ => None,
    }
}
