//! The thread of the real mbatchd that writes the log, so that no sync ever stops the loop
//! (design §3, "off the loop's thread").
//!
//! Batches are taken in order; those that wait are joined into one commit. What happened is told
//! through a callback on this thread ([`Notice`]). After [`Notice::WriteFailed`] everything
//! submitted is void until [`LogHandle::rebuilt`] says that the machine is back to what the log
//! holds; meanwhile it is tried every [`PROBE_SECS`] whether writing works again, and told by
//! [`Notice::Back`]. After [`Notice::Fatal`] the process must end; the thread does nothing more.
//!
//! For tests on a personal cluster (`testing`), [`CRASH_AT`] kills the process at the N-th commit
//! at a named point, and [`FAULT_FILE`] makes writes fail while a file exists.

use super::disk::Disk;
use super::store::{Batch, Fail, Point, Store};
use super::switch::Order;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Environment variable `POINT:N`, POINT one of `before-append`, `before-sync`, `before-reply`,
/// `after-reply`: the process kills itself there at the N-th commit, counted from 1.
pub const CRASH_AT: &str = "LSF_CRASH_AT";

/// Environment variable with the path for `RealDisk::with_fault_file`.
pub const FAULT_FILE: &str = "LSF_FAULT_FILE";

/// Seconds between tries to write again.
pub const PROBE_SECS: u64 = 2;

/// Batches joined into one commit hold at most about so many bytes.
const MAX_JOINED: usize = 8 << 20;

/// What the thread tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Everything up to this ticket is durable.
    Durable(u64),
    /// This ticket and all later ones are void; lsb.events is good up to `durable_len`.
    WriteFailed { ticket: u64, why: String, durable_len: u64 },
    /// The log can be written again.
    Back,
    /// The process must end at once.
    Fatal(String),
    /// The switch asked for is complete, or was given up.
    Switched { ok: bool, why: String },
}

enum Command {
    Batch(Box<Batch>),
    Switch(Box<Order>),
    Rebuilt,
    Stop,
}

/// Where the process is to kill itself. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct CrashPoints {
    at: Option<(Point, u64)>,
    commits: Arc<AtomicU64>,
}

impl CrashPoints {
    /// From the text of [`CRASH_AT`]; nothing that is malformed acts.
    pub fn parse(text: &str) -> CrashPoints {
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
        CrashPoints { at, ..CrashPoints::default() }
    }

    /// From the environment, for a personal cluster's tests only.
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
            kill_self();
        }
    }
}

fn kill_self() {
    let me = rustix::process::getpid();
    // nothing can be done where even that fails
    let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
}

/// The loop's end of the thread.
pub struct LogHandle {
    orders: Sender<Command>,
    thread: Option<JoinHandle<()>>,
}

impl LogHandle {
    /// Starts the thread. `tell` is called on it.
    pub fn start<D: Disk + 'static>(
        store: Store<D>,
        crash: CrashPoints,
        tell: Box<dyn Fn(Notice) + Send>,
    ) -> io::Result<LogHandle> {
        let (orders, inbox) = channel();
        let writer = Writer { store, inbox, tell, crash, failed: None, held: None };
        let thread = std::thread::Builder::new().name("log".into()).spawn(|| writer.run())?;
        Ok(LogHandle { orders, thread: Some(thread) })
    }

    /// Hands a batch over. Its ticket must be larger than any before.
    pub fn submit(&self, batch: Batch) {
        self.order(Command::Batch(Box::new(batch)));
    }

    /// Asks for a switch, behind what was submitted before.
    pub fn switch(&self, order: Order) {
        self.order(Command::Switch(Box::new(order)));
    }

    /// The machine is back to what the log holds after [`Notice::WriteFailed`].
    pub fn rebuilt(&self) {
        self.order(Command::Rebuilt);
    }

    /// Commits what was submitted and ends the thread.
    pub fn stop(mut self) {
        self.order(Command::Stop);
        if let Some(thread) = self.thread.take() {
            // a panic of the thread has been told by its own words
            let _ = thread.join();
        }
    }

    fn order(&self, order: Command) {
        // a thread that is gone has told why
        let _ = self.orders.send(order);
    }
}

/// Writing does not work.
struct Failed {
    next_probe: Instant,
    /// The machine is back to what the log holds: what is submitted now is not void but fails.
    rebuilt: bool,
}

struct Writer<D: Disk> {
    store: Store<D>,
    inbox: Receiver<Command>,
    tell: Box<dyn Fn(Notice) + Send>,
    crash: CrashPoints,
    failed: Option<Failed>,
    /// Taken from the inbox but not carried out yet.
    held: Option<Command>,
}

/// Whether the thread goes on.
type Goes = bool;

impl<D: Disk> Writer<D> {
    fn run(mut self) {
        loop {
            let order = match self.next() {
                Ok(order) => order,
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Command::Stop),
            };
            let goes = match order {
                None => self.idle(),
                Some(Command::Stop) => {
                    self.store.close();
                    return;
                }
                Some(Command::Rebuilt) => {
                    if let Some(failed) = &mut self.failed {
                        failed.rebuilt = true;
                    }
                    true
                }
                Some(Command::Switch(order)) => self.begin_switch(*order),
                Some(Command::Batch(batch)) => self.commit(*batch),
            };
            if !goes {
                return;
            }
        }
    }

    /// The next order, `None` when there is something to do without one.
    fn next(&mut self) -> Result<Option<Command>, RecvTimeoutError> {
        if let Some(order) = self.held.take() {
            return Ok(Some(order));
        }
        if let Some(failed) = &self.failed {
            let wait = failed.next_probe.saturating_duration_since(Instant::now());
            return self.inbox.recv_timeout(wait).map(Some);
        }
        if self.store.is_switching() {
            return self.inbox.recv_timeout(Duration::ZERO).map(Some);
        }
        self.inbox.recv().map(Some).map_err(|_| RecvTimeoutError::Disconnected)
    }

    /// No order is waiting: a slice of a switch, or a try to write again.
    fn idle(&mut self) -> Goes {
        if self.failed.is_some() {
            return self.probe();
        }
        match self.store.switch_slice() {
            Ok(false) => true,
            Ok(true) => self.switched(true, String::new()),
            Err(Fail::Write(why)) => self.switched(false, why),
            Err(Fail::Fatal(why)) => self.fatal(why),
        }
    }

    fn switched(&self, ok: bool, why: String) -> Goes {
        (self.tell)(Notice::Switched { ok, why });
        true
    }

    fn fatal(&self, why: String) -> Goes {
        (self.tell)(Notice::Fatal(why));
        false
    }

    fn begin_switch(&mut self, order: Order) -> Goes {
        if self.failed.is_some() {
            return self.switched(false, "the log cannot be written".into());
        }
        match self.store.begin_switch(order) {
            Ok(()) => true,
            Err(Fail::Write(why)) => self.switched(false, why),
            Err(Fail::Fatal(why)) => self.fatal(why),
        }
    }

    fn probe(&mut self) -> Goes {
        let Some(failed) = &mut self.failed else { return true };
        failed.next_probe = Instant::now() + Duration::from_secs(PROBE_SECS);
        // not before the machine is back: what it submitted until then is void
        if !failed.rebuilt {
            return true;
        }
        match self.store.probe() {
            Ok(()) => {
                self.failed = None;
                (self.tell)(Notice::Back);
                true
            }
            Err(Fail::Write(_)) => true,
            Err(Fail::Fatal(why)) => self.fatal(why),
        }
    }

    /// Commits a batch with all that wait behind it.
    fn commit(&mut self, mut batch: Batch) -> Goes {
        if let Some(failed) = &self.failed {
            if failed.rebuilt {
                return self.write_failed(batch.ticket, "the log cannot be written".into());
            }
            return true;
        }
        let first = batch.ticket;
        while batch.bytes() < MAX_JOINED {
            match self.inbox.try_recv() {
                Ok(Command::Batch(next)) => batch.join(*next),
                Ok(other) => {
                    self.held = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        let crash = self.crash.clone();
        match self.store.commit(&batch, &mut |point| crash.reach(point)) {
            Ok(()) => {
                (self.tell)(Notice::Durable(batch.ticket));
                // a storm of batches must not starve a switch
                if self.store.is_switching() { self.idle() } else { true }
            }
            Err(Fail::Write(why)) => self.write_failed(first, why),
            Err(Fail::Fatal(why)) => self.fatal(why),
        }
    }

    fn write_failed(&mut self, ticket: u64, why: String) -> Goes {
        let next_probe = Instant::now() + Duration::from_secs(PROBE_SECS);
        self.failed = Some(Failed { next_probe, rebuilt: false });
        let durable_len = self.store.durable_len();
        (self.tell)(Notice::WriteFailed { ticket, why, durable_len });
        true
    }
}
