//! The thread of the real mbatchd that writes the log, so that no sync ever stops the loop.
//!
//! The work is done in `writer`; a callback on this thread reports its results ([`WriterNotice`]).
//! After [`WriterNotice::Fatal`] the thread does nothing more.
//!
//! For tests on a personal cluster (`testing`), [`CRASH_AT`] kills the process at the N-th commit
//! at a named point, and [`FAULT_FILE`] makes writes fail while a file exists.

use super::disk::Disk;
use super::extent::Extent;
use super::store::{Point, Store};
use super::writer::{Command, Due, PROBE_SECS, TellCommitted, Writer, WriterNotice};
use rustix::process::Signal;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Environment variable `POINT:N`, POINT one of `before-append`, `before-sync`, `before-reply`,
/// `after-reply`: the process kills itself there at the N-th commit, counted from 1. With `stop-`
/// before POINT it stops itself, until somebody lets it go on.
pub const CRASH_AT: &str = "LSF_CRASH_AT";

/// Environment variable with the path for `RealDisk::with_fault_file`.
pub const FAULT_FILE: &str = "LSF_FAULT_FILE";

/// Longest time without a look at the owner file while nothing is ordered: so long a run that was
/// cut off and overtaken may answer questions from what it knew.
const IDLE_LOOK: Duration = Duration::from_secs(2);

/// The loop's orders; `None` to stop.
type PendingCommand = Option<Command>;

/// The point at which the process is to kill itself. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct CrashPoints {
    at: Option<(Point, u64)>,
    stops: bool,
    commits: Arc<AtomicU64>,
}

impl CrashPoints {
    /// Reads the text of [`CRASH_AT`]; a malformed text has no effect.
    pub fn parse(text: &str) -> CrashPoints {
        let (text, stops) = match text.strip_prefix("stop-") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let at = text.split_once(':').and_then(|(name, n)| {
            let point = match name {
                "before-append" => Point::BeforeAppend,
                "before-sync" => Point::BeforeSync,
                "before-reply" => Point::BeforeReply,
                "after-reply" => Point::AfterReply,
                _ => return None,
            };
            Some((point, n.parse().ok()?))
        });
        CrashPoints { at, stops, ..CrashPoints::default() }
    }

    /// Reads the environment, in a personal cluster's tests only.
    pub fn from_env(testing: bool) -> CrashPoints {
        let text =
            if testing { std::env::var(CRASH_AT).unwrap_or_default() } else { String::new() };
        CrashPoints::parse(&text)
    }

    /// The process is at this point of a commit; it may not come back. The loop calls it before
    /// and after it sends what a durable ticket releases.
    pub fn reach(&self, point: Point) {
        let Some((at, n)) = self.at else { return };
        if point == Point::BeforeAppend {
            self.commits.fetch_add(1, Ordering::SeqCst);
        }
        let done = self.commits.load(Ordering::SeqCst);
        // Replies leave from another thread: by then the next commit may have begun.
        let due = if point == Point::AfterReply { done >= n } else { done == n };
        if at == point && due {
            signal_self(if self.stops { Signal::STOP } else { Signal::KILL });
        }
    }
}

/// Is told after each turn how much of the log is durable.
pub type TellExtent = Box<dyn Fn(Extent) + Send>;

/// The functions that follow the log; they are called on its thread and must not wait.
#[derive(Default)]
pub struct Followers {
    pub extent: Option<TellExtent>,
    pub committed: Option<TellCommitted>,
}

fn signal_self(signal: Signal) {
    let me = rustix::process::getpid();
    // nothing can be done where even that fails
    let _ = rustix::process::kill_process(me, signal);
}

/// The loop's end of the thread.
pub struct LogHandle {
    orders: Sender<PendingCommand>,
    thread: Option<JoinHandle<()>>,
}

impl LogHandle {
    /// Starts the thread. `tell` is called on it.
    pub fn start<D: Disk + 'static>(
        store: Store<D>,
        crash: CrashPoints,
        tell: Box<dyn Fn(WriterNotice) + Send>,
        followers: Followers,
    ) -> io::Result<LogHandle> {
        let (orders, inbox) = channel();
        let Followers { extent, committed } = followers;
        let writer = Writer::new(store).telling(committed);
        let work = move || run(writer, &inbox, &crash, &tell, extent.as_ref());
        let thread = std::thread::Builder::new().name("log".into()).spawn(work)?;
        Ok(LogHandle { orders, thread: Some(thread) })
    }

    /// Starts the thread for a log that cannot be taken over yet: there is no space (`why`). Orders
    /// fail until `open`, which is tried again and again, succeeds ([`WriterNotice::Opened`]).
    pub fn start_waiting<D: Disk + 'static>(
        open: Box<dyn FnMut() -> Result<Store<D>, String> + Send>,
        why: String,
        crash: CrashPoints,
        tell: Box<dyn Fn(WriterNotice) + Send>,
        followers: Followers,
    ) -> io::Result<LogHandle> {
        let (orders, inbox) = channel();
        let Followers { extent, committed } = followers;
        let work = move || {
            if let Some(store) = wait_for_room(open, why, &inbox, &tell) {
                let writer = Writer::opened_late(store, crate::sys::now().mono_us);
                let writer = writer.telling(committed);
                tell(WriterNotice::Opened);
                run(writer, &inbox, &crash, &tell, extent.as_ref());
            }
        };
        let thread = std::thread::Builder::new().name("log".into()).spawn(work)?;
        Ok(LogHandle { orders, thread: Some(thread) })
    }

    /// Has something done, behind what was ordered before.
    pub fn order(&self, command: Command) {
        // a thread that is gone has told why
        let _ = self.orders.send(Some(command));
    }

    /// Commits what was ordered and ends the thread.
    pub fn stop(mut self) {
        let _ = self.orders.send(None);
        if let Some(thread) = self.thread.take() {
            // a panic of the thread has been told by its own words
            let _ = thread.join();
        }
    }
}

/// Tries to open the log until that succeeds; `None` to stop.
fn wait_for_room<D: Disk>(
    mut open: Box<dyn FnMut() -> Result<Store<D>, String> + Send>,
    mut why: String,
    inbox: &Receiver<PendingCommand>,
    tell: &dyn Fn(WriterNotice),
) -> Option<Store<D>> {
    let pause = Duration::from_secs(PROBE_SECS);
    let mut next = std::time::Instant::now() + pause;
    loop {
        match inbox.recv_timeout(next.saturating_duration_since(std::time::Instant::now())) {
            Ok(Some(Command::Batch(batch))) => {
                let (ticket, why) = (batch.ticket, why.clone());
                tell(WriterNotice::WriteFailed { ticket, why, durable_len: u64::MAX });
            }
            Ok(Some(Command::Switch(_))) => {
                tell(WriterNotice::Switched { ok: false, why: why.clone() });
            }
            Ok(Some(Command::Rebuilt | Command::ArchiveAcct(_))) => {}
            Ok(None) | Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                match open() {
                    Ok(store) => return Some(store),
                    Err(now) => why = now,
                }
                next = std::time::Instant::now() + pause;
            }
        }
    }
}

fn run<D: Disk>(
    mut writer: Writer<D>,
    inbox: &Receiver<PendingCommand>,
    crash: &CrashPoints,
    tell: &dyn Fn(WriterNotice),
    extent: Option<&TellExtent>,
) {
    let mut stopping = false;
    loop {
        if let Some(extent) = extent {
            extent(writer.extent());
        }
        stopping |= take_orders(&mut writer, inbox);
        if stopping && !writer.has_orders() {
            return writer.close();
        }
        let now = crate::sys::now().mono_us;
        if let Some(notice) = writer.turn(now, &mut |point| crash.reach(point)) {
            let fatal = matches!(notice, WriterNotice::Fatal(_));
            tell(notice);
            if fatal {
                return;
            }
        }
    }
}

/// Waits for orders as long as there is nothing to do; `true` to stop.
fn take_orders<D: Disk>(writer: &mut Writer<D>, inbox: &Receiver<PendingCommand>) -> bool {
    let first = match writer.due() {
        Due::Now => None,
        Due::Ordered => Some(inbox.recv_timeout(IDLE_LOOK)),
        Due::At(at) => {
            let wait = at.saturating_sub(crate::sys::now().mono_us);
            Some(inbox.recv_timeout(Duration::from_micros(wait)))
        }
    };
    match first {
        None | Some(Err(RecvTimeoutError::Timeout)) => {}
        Some(Ok(Some(command))) => writer.order(command),
        Some(Ok(None) | Err(RecvTimeoutError::Disconnected)) => return true,
    }
    loop {
        match inbox.try_recv() {
            Ok(Some(command)) => writer.order(command),
            Ok(None) | Err(TryRecvError::Disconnected) => return true,
            Err(TryRecvError::Empty) => return false,
        }
    }
}
