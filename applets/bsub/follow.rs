//! The state of a job as it changes, told by mbatchd to a thread of its own: who waits for the job
//! listens to more than one thing. Where the connection is lost, another is made and everything
//! asked again.

use super::teller::Teller;
use lsf::cli::client::{self, Client, ClientError};
use lsf::cli::job_rows::{Cols, JobRow, each_row};
use lsf::cli::site::LocalSite;
use lsf::cli::wait_connection::{self, Losses};
use lsf::model::job_state::JobState;
use lsf::model::reason::err;
use lsf::proto::client::{ClientMsg, Col, IdSel, JobQuery, JobSelect, Wait, Which};
use lsf::proto::{Msg, Refusal};
use lsf::sys::raw::SignalFd;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Keeps all signals from this thread: they are the main thread's, which may block them later than
/// this thread begins.
pub fn deaf() -> io::Result<SignalFd> {
    let synchronous = [4, 5, 7, 8, 11];
    let all: Vec<i32> = (1..=31).filter(|s| !synchronous.contains(s)).collect();
    SignalFd::new(&all)
}

/// The messages of the thread.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// Words for stderr.
    Words(Vec<u8>),
    State(JobNow),
    Failed(String),
}

/// A job as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobNow {
    pub state: JobState,
    /// The first execution host; empty: not started.
    pub host: String,
    /// Whether the job runs, or ran until its end.
    pub started: bool,
    /// How often the job has been started.
    pub attempt: i64,
    /// The exit code; `None`: not ended, or unknown.
    pub code: Option<i32>,
    /// Why it waits; empty: it does not, or nobody asked.
    pub reasons: Vec<String>,
    /// Why it is suspended.
    pub suspended: u32,
}

/// How often a job that does not change is asked about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Every {
    /// The pending reasons of a job that waits, which are shown (LSB_INTERACT_MSG_INTVAL).
    pub reasons: Option<Duration>,
    /// The state of every job (LSF_NIOS_JOBSTATUS_INTERVAL).
    pub state: Option<Duration>,
}

impl Every {
    /// The time until the job is asked about again. `waits`: reasons for its waiting are known.
    fn next(self, waits: bool) -> Option<Duration> {
        self.reasons.filter(|_| waits).into_iter().chain(self.state).min()
    }
}

/// The receiving end.
pub struct Follower {
    rx: Receiver<News>,
    wake: UnixStream,
    /// Makes it readable.
    own: UnixStream,
    /// News that was put back.
    back: Vec<News>,
}

impl AsFd for Follower {
    /// Readable when there is news.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Follower {
    /// Follows a job over the connection by which it was submitted.
    pub fn new(
        site: LocalSite,
        mut client: Client,
        job: u32,
        every: Every,
    ) -> io::Result<Follower> {
        let asked = Asked { site, job, every };
        // a job that is started at once is told of before there is a thread
        let first = asked.ask(&mut client).ok().and_then(|()| asked.first_look(client));
        let back: Vec<News> =
            first.iter().filter_map(|first| first.now.clone()).map(News::State).collect();
        let (wake, theirs) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let (tx, rx) = channel();
        let own = theirs.try_clone()?;
        let mut teller = Teller { tx, wake: theirs };
        std::thread::spawn(move || {
            // fails only where there are no descriptors, which the connection needs too
            let _deaf = deaf();
            if let Err(e) = asked.follow(first, &mut teller) {
                teller.tell(News::Failed(e.to_string()));
            }
        });
        let mut follower = Follower { rx, wake, own, back: Vec::new() };
        if !back.is_empty() {
            follower.put_back(back);
        }
        Ok(follower)
    }

    /// The news that has come in.
    pub fn news(&mut self) -> Vec<News> {
        while matches!(self.wake.read(&mut [0; 64]), Ok(n) if n > 0) {}
        let mut all = std::mem::take(&mut self.back);
        all.extend(self.rx.try_iter());
        all
    }

    /// Gives back news, which is heard once more.
    pub fn put_back(&mut self, news: Vec<News>) {
        self.back = news;
        // a socket that is full is readable
        let _ = self.own.write_all(&[0]);
    }
}

impl From<Vec<u8>> for News {
    fn from(words: Vec<u8>) -> News {
        News::Words(words)
    }
}

struct Asked {
    site: LocalSite,
    job: u32,
    every: Every,
}

/// A connection over which the job was asked about, and what it has told.
struct FirstLook {
    client: Client,
    /// mbatchd has told of a change.
    changed: bool,
    /// The job, where it was told of in time.
    now: Option<JobNow>,
}

/// The longest wait for the first look at the job before signals are listened to.
const FIRST: Duration = Duration::from_millis(100);

impl Asked {
    /// Looks at the job over the connection over which it was asked about; `None`: the connection
    /// is of no use any more.
    fn first_look(&self, client: Client) -> Option<FirstLook> {
        let mut first = FirstLook { client, changed: false, now: None };
        let mut hear = |client: &mut Client| match client.next(Some(FIRST))? {
            Msg::Client(said) => Ok(said),
            _ => Err(ClientError::Unexpected),
        };
        match self.look(&mut first.client, &mut first.changed, &mut hear) {
            Ok(now) => first.now = Some(now),
            Err(ClientError::Timeout(_)) => {}
            Err(_) => return None,
        }
        Some(first)
    }

    fn follow(
        &self,
        mut first: Option<FirstLook>,
        tell: &mut Teller<News>,
    ) -> Result<(), ClientError> {
        let mut losses = Losses::default();
        loop {
            let first = match first.take() {
                Some(first) => first,
                None => {
                    let mut client = client::mbatchd(&self.site, tell)?;
                    if self.ask(&mut client).is_err() && losses.again(Instant::now()) {
                        continue;
                    }
                    FirstLook { client, changed: false, now: None }
                }
            };
            let since = Instant::now();
            match self.connected(first, tell) {
                Err(e) if wait_connection::passing(&e) && losses.again(since) => {}
                done => return done,
            }
        }
    }

    /// The columns asked for; pending reasons cost mbatchd something.
    fn columns(&self) -> Cols {
        let all = [
            Col::Stat,
            Col::ExecHosts,
            Col::StartTime,
            Col::Attempt,
            Col::ExitCode,
            Col::SuspReason,
            Col::PendReasons,
        ];
        Cols::new(if self.every.reasons.is_some() { &all } else { &all[..6] })
    }

    /// Asks for the next change, then for the job, so that no change is missed between the two.
    fn ask(&self, client: &mut Client) -> Result<(), ClientError> {
        let select = JobSelect {
            ids: vec![IdSel { job: self.job, elems: Vec::new() }],
            user: "all".to_string(),
            ..JobSelect::default()
        };
        let watch = Some(Box::new(select.clone()));
        client.send(&Msg::Client(ClientMsg::Wait(Wait { watch, ..Wait::default() })))?;
        let which = Which { all: true, ..Which::default() };
        let query = JobQuery::of(select, which, self.columns().list());
        client.send(&Msg::Client(ClientMsg::Jobs(Box::new(query))))
    }

    /// Tells of the job over one connection, over which it was asked about, until it has ended.
    fn connected(&self, first: FirstLook, tell: &mut Teller<News>) -> Result<(), ClientError> {
        let FirstLook { mut client, mut changed, now: mut known } = first;
        let client = &mut client;
        loop {
            let (now, told) = match known.take() {
                Some(now) => (now, true),
                None => (self.look(client, &mut changed, &mut wait_connection::hear)?, false),
            };
            let (ended, waits) = (now.state.is_finished(), !now.reasons.is_empty());
            if !told {
                tell.tell(News::State(now));
            }
            if ended {
                return Ok(());
            }
            while !changed {
                changed = match self.every.next(waits) {
                    None => matches!(wait_connection::hear(client)?, ClientMsg::Waited(_)),
                    Some(every) => match client.next(Some(every)) {
                        Err(ClientError::Timeout(_)) => true,
                        Ok(Msg::Client(said)) => matches!(said, ClientMsg::Waited(_)),
                        Ok(_) => false,
                        Err(e) => return Err(e),
                    },
                };
            }
            changed = false;
            self.ask(client)?;
        }
    }

    /// `changed`: mbatchd has told of a change meanwhile.
    fn look(
        &self,
        client: &mut Client,
        changed: &mut bool,
        hear: &mut dyn FnMut(&mut Client) -> Result<ClientMsg, ClientError>,
    ) -> Result<JobNow, ClientError> {
        let cols = self.columns();
        let mut now = None;
        loop {
            match hear(client)? {
                ClientMsg::Waited(_) => *changed = true,
                ClientMsg::Rows { rows, more } => {
                    each_row(rows.get(), &cols, |row| now = job_now(row))
                        .map_err(|_| ClientError::Unexpected)?;
                    if !more {
                        let gone = || ClientError::Refused(Refusal::new(err::NO_JOB));
                        return now.ok_or_else(gone);
                    }
                }
                _ => return Err(ClientError::Unexpected),
            }
        }
    }
}

fn job_now(row: JobRow) -> Option<JobNow> {
    Some(JobNow {
        state: row.state()?,
        host: row.hosts(Col::ExecHosts).next().map_or(String::new(), |h| h.0.into_owned()),
        started: row.int(Col::StartTime) != 0,
        attempt: row.int(Col::Attempt),
        code: row.cell(Col::ExitCode).int().map(|code| code as i32),
        reasons: crate::bjobs::reasons::lines(&row),
        suspended: row.int(Col::SuspReason) as u32,
    })
}
