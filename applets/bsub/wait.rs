//! `bsub -K`: follows a job until its end and takes its exit code.
//!
//! A second thread waits for mbatchd and sends what happens; this one prints it, and listens for
//! ^C, which ends bsub and leaves the job alone.

use super::teller::Teller;
use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::job_rows::{Cols, each_row};
use lsf::cli::site::{self, LocalSite};
use lsf::cli::wait_connection;
use lsf::model::reason::{err, err_text};
use lsf::proto::Msg;
use lsf::proto::client::{ClientMsg, Col, IdSel, JobQuery, JobSelect, Wait, Waited, Which};
use lsf::sys::raw::SignalFd;
use lsf::{errln, outln};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};

/// Exit code of a job that was ended while it was pending.
const ENDED_PENDING: i32 = 126;
/// Exit code of a bsub that was interrupted: 128 + SIGINT.
const INTERRUPTED: i32 = 130;
const SIGINT: i32 = 2;

/// The messages of the waiting thread.
#[derive(Debug, PartialEq, Eq)]
enum News {
    /// Words for stderr.
    Words(Vec<u8>),
    Started(Vec<String>),
    Ended(JobEnd),
    Failed(String),
}

/// How a job, or all elements of an array, ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct JobEnd {
    started: bool,
    /// The exit code; `None`: unknown.
    code: Option<i32>,
}

/// The messages that bsub shows.
pub struct Voice {
    /// BSUB_QUIET is not set.
    pub dispatch: bool,
    /// LSB_SUBK_SHOW_EXEC_HOST is not N: where it starts.
    pub host: bool,
    /// BSUB_QUIET2 is not set.
    pub end: bool,
    /// LSB_SUBK_SHOW_JOBID: which job is finished.
    pub id: bool,
}

impl Voice {
    /// The settings of the environment and lsf.conf.
    pub fn of(site: &LocalSite) -> Voice {
        let set = |name: &str| std::env::var_os(name).is_some();
        let no = |v: String| matches!(v.trim(), "N" | "n" | "0" | "no" | "No" | "NO");
        Voice {
            dispatch: !set("BSUB_QUIET"),
            host: !site::param(Some(site), "LSB_SUBK_SHOW_EXEC_HOST").is_some_and(no),
            end: !set("BSUB_QUIET2"),
            id: site::yes(Some(site), "LSB_SUBK_SHOW_JOBID"),
        }
    }
}

/// Follows the job; the exit code for bsub.
pub fn until_end(ctx: &mut Ctx, job: u32, voice: &Voice) -> i32 {
    if voice.dispatch {
        outln!(ctx, "<<Waiting for dispatch ...>>");
    }
    ctx.flush();
    // Before the thread starts, so that it too leaves SIGINT to the descriptor.
    let signals = match SignalFd::new(&[SIGINT]) {
        Ok(s) => s,
        Err(e) => return failed(ctx, job, &lsf::sys::words(&e)),
    };
    let (mut ours, theirs) = match UnixStream::pair() {
        Ok(pair) => pair,
        Err(e) => return failed(ctx, job, &lsf::sys::words(&e)),
    };
    let (tx, rx) = channel();
    std::thread::spawn(move || follow(job, Teller { tx, wake: theirs }));
    loop {
        let ready = {
            let mut fds = [PollFd::new(&signals, PollFlags::IN), PollFd::new(&ours, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return failed(ctx, job, &lsf::sys::words(&e.into())),
            }
            !fds[1].revents().is_empty()
        };
        if let Ok(Some(_)) = signals.take() {
            errln!(ctx, "\nbsub: interrupted; job <{job}> continues");
            return INTERRUPTED;
        }
        if ready {
            let mut one = [0u8; 1];
            let gone = !matches!(ours.read(&mut one), Ok(1));
            if let Some(code) = hear(ctx, job, voice, &rx) {
                return code;
            }
            if gone {
                return failed(ctx, job, err_text(49));
            }
        }
        ctx.flush();
    }
}

fn failed(ctx: &mut Ctx, job: u32, why: &str) -> i32 {
    errln!(ctx, "{why}. Job <{job}> continues; its end is not known");
    FAIL
}

/// Prints what has come in; the exit code once it is known.
fn hear(ctx: &mut Ctx, job: u32, voice: &Voice, rx: &Receiver<News>) -> Option<i32> {
    while let Ok(news) = rx.try_recv() {
        match news {
            News::Words(words) => {
                let _ = ctx.out.flush();
                let _ = ctx.err.write_all(&words);
            }
            News::Started(hosts) if voice.dispatch && voice.host => {
                outln!(ctx, "<<Starting on {}>>", hosts.join(" "));
            }
            News::Started(_) => {}
            News::Ended(end) => return Some(ended(ctx, job, voice, end)),
            News::Failed(why) => return Some(failed(ctx, job, &why)),
        }
    }
    None
}

fn ended(ctx: &mut Ctx, job: u32, voice: &Voice, end: JobEnd) -> i32 {
    if voice.end {
        match end.started {
            true if voice.id => outln!(ctx, "<<Job <{job}> is finished>>"),
            true => outln!(ctx, "<<Job is finished>>"),
            false => outln!(ctx, "<<Terminated while pending>>"),
        }
    }
    match end {
        JobEnd { started: false, .. } => ENDED_PENDING,
        JobEnd { code: Some(code), .. } => code,
        JobEnd { code: None, .. } => {
            errln!(ctx, "bsub: the exit code of job <{job}> is not known");
            FAIL
        }
    }
}

impl From<Vec<u8>> for News {
    fn from(words: Vec<u8>) -> News {
        News::Words(words)
    }
}

fn follow(job: u32, mut tell: Teller<News>) {
    let news = match stages(job, &mut tell) {
        Ok(end) => News::Ended(end),
        Err(e) => News::Failed(e.to_string()),
    };
    tell.tell(news);
}

/// Waits for the start, tells of it, waits for the end.
fn stages(job: u32, tell: &mut Teller<News>) -> Result<JobEnd, ClientError> {
    let site = site::find().map_err(|e| ClientError::Conf(e.to_string()))?;
    let wait = |what: &str| Wait { expr: format!("{what}({job})"), ..Wait::default() };
    if wait_connection::until(&site, &wait("started"), tell)? == Waited::True {
        let (hosts, _) = look(&site, job, tell)?;
        if !hosts.is_empty() {
            tell.tell(News::Started(hosts));
        }
    }
    match wait_connection::until(&site, &wait("ended"), tell)? {
        Waited::Ended { exit_code, started, .. } => Ok(JobEnd { started, code: exit_code }),
        // An array, or a job that is being forgotten: its elements tell.
        _ => Ok(look(&site, job, tell)?.1),
    }
}

/// The first execution hosts of a job or of its elements, and how they ended all together: with
/// the first exit code that is not 0.
fn look(
    site: &LocalSite,
    job: u32,
    err: &mut dyn Write,
) -> Result<(Vec<String>, JobEnd), ClientError> {
    let cols = Cols::new(&[Col::ExecHosts, Col::ExitCode, Col::StartTime]);
    let select = JobSelect {
        ids: vec![IdSel { job, elems: Vec::new() }],
        user: "all".to_string(),
        ..JobSelect::default()
    };
    let which = Which { all: true, ..Which::default() };
    let query = JobQuery::of(select, which, cols.list());
    let ask = Msg::Client(ClientMsg::Jobs(Box::new(query)));
    let (mut client, mut answer) = client::ask_at(site, &ask, err)?;
    let mut seen = Seen::default();
    loop {
        let Msg::Client(ClientMsg::Rows { rows, more }) = answer else {
            return Err(ClientError::Unexpected);
        };
        seen.take(rows.get(), &cols).map_err(|_| ClientError::Unexpected)?;
        if !more {
            return seen.done();
        }
        answer = client.answer(err)?;
    }
}

/// The combined state of the rows of a job.
#[derive(Debug, Default)]
struct Seen {
    rows: usize,
    hosts: Vec<String>,
    started: bool,
    unknown: bool,
    code: i32,
}

impl Seen {
    fn take(&mut self, rows: &str, cols: &Cols) -> Result<(), serde_json::Error> {
        each_row(rows, cols, |row| {
            self.rows += 1;
            // the first execution host alone
            for (host, _) in row.hosts(Col::ExecHosts).take(1) {
                if !self.hosts.iter().any(|h| *h == host) {
                    self.hosts.push(host.into_owned());
                }
            }
            self.started |= row.int(Col::StartTime) != 0;
            match row.cell(Col::ExitCode).int() {
                Some(code) if self.code == 0 => self.code = code as i32,
                Some(_) => {}
                None => self.unknown = true,
            }
        })
    }

    fn done(self) -> Result<(Vec<String>, JobEnd), ClientError> {
        if self.rows == 0 {
            return Err(ClientError::Refused(lsf::proto::Refusal::new(err::NO_JOB)));
        }
        let known = self.code != 0 || !self.unknown;
        let code = known.then_some(self.code);
        Ok((self.hosts, JobEnd { started: self.started, code }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(end: JobEnd, voice: &Voice) -> (i32, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut ctx = Ctx::new("bsub", vec![], &mut out, &mut err);
        let (tx, rx) = channel();
        tx.send(News::Started(vec!["h1".into(), "h2".into()])).unwrap();
        tx.send(News::Ended(end)).unwrap();
        let code = hear(&mut ctx, 7, voice, &rx).unwrap();
        (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    #[test]
    fn the_end_is_told_and_its_code_taken() {
        let loud = Voice { dispatch: true, host: true, end: true, id: false };
        let (code, out, err) = said(JobEnd { started: true, code: Some(7) }, &loud);
        assert_eq!((code, err.as_str()), (7, ""));
        assert_eq!(out, "<<Starting on h1 h2>>\n<<Job is finished>>\n");
        let (code, out, _) = said(JobEnd { started: false, code: Some(130) }, &loud);
        assert_eq!(code, ENDED_PENDING);
        assert!(out.ends_with("<<Terminated while pending>>\n"), "{out}");
        let (code, _, err) = said(JobEnd { started: true, code: None }, &loud);
        assert_eq!((code, err.contains("not known")), (FAIL, true));
        let marked = Voice { host: false, id: true, ..loud };
        let (_, out, _) = said(JobEnd { started: true, code: Some(7) }, &marked);
        assert_eq!(out, "<<Job <7> is finished>>\n");
        let quiet = Voice { dispatch: false, end: false, ..marked };
        assert_eq!(said(JobEnd { started: true, code: Some(0) }, &quiet).1, "");
    }

    #[test]
    fn rows_of_the_elements_add_up_to_the_end() {
        let cols = Cols::new(&[Col::ExecHosts, Col::ExitCode, Col::StartTime]);
        let end = |rows: &str| {
            let mut seen = Seen::default();
            seen.take(rows, &cols).unwrap();
            seen.done().map(|(hosts, end)| (hosts.join(" "), end.started, end.code)).ok()
        };
        let all = end(r#"[[[["h1",1],["h3",1]],0,5],[[["h2",1],["h1",2]],3,5],[[],130,0]]"#);
        assert_eq!(all, Some(("h1 h2".into(), true, Some(3))));
        assert_eq!(end(r#"[[[],null,0]]"#), Some((String::new(), false, None)));
        assert_eq!(end("[]"), None);
    }
}
