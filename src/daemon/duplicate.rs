//! Duplicate logging for real (`log::duplicate`): the thread that keeps the copy of the event log
//! in the shared directory, and the start of mbatchd on the first master host, which waits for it.
//!
//! Every operation on the shared directory is done on this thread: one that hangs holds up neither
//! the log nor the loop. At the start mbatchd waits until the thread has claimed the copy and,
//! where another master had it, has made the shared log the primary one. mbatchd goes on without
//! the shared directory only where [`may_go_alone`] allows that; from then on a copy that is found
//! to be another master's ends the process.

use super::heartbeat::Heartbeat;
use crate::log::disk::RealDisk;
use crate::log::duplicate::attach::{attach, may_go_alone, settle};
use crate::log::duplicate::replica::{CopyError, Replica, Round};
use crate::log::duplicate::resync::{forget_takeover, resync};
use crate::log::extent::Extent;
use crate::log::owner::{LockError, LogLock, Owner};
use crate::log::thread::TellExtent;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pause between two attempts to reach the shared directory.
const RETRY: Duration = Duration::from_secs(2);
/// A start waits so long for a shared directory that does not answer before it goes on alone.
const ALONE: Duration = Duration::from_secs(20);
/// Pause between two looks at the owner of the copy while EVENT_UPDATE_INTERVAL holds it back.
const LOOK: Duration = Duration::from_secs(5);
/// Longest time that the end of mbatchd waits for the last round.
const CLOSE: Duration = Duration::from_secs(5);
/// Pause between two signs of life while the start waits.
const SIGN: Duration = Duration::from_millis(500);

/// The directories, and the run that claims the copy.
#[derive(Clone)]
pub struct Places {
    pub primary: PathBuf,
    pub share: PathBuf,
    /// The file that makes writes to the copy fail, in tests on a personal cluster.
    pub fault: Option<PathBuf>,
    pub me: Owner,
}

/// The messages of the thread to the start.
enum Told {
    /// The primary log is the last one.
    Ready,
    /// Another mbatchd has the shared log.
    Held(String),
    Away(String),
}

/// The data that the threads share.
#[derive(Default)]
struct State {
    extent: Extent,
    /// EVENT_UPDATE_INTERVAL, seconds; 0: at once.
    interval: u64,
    stop: bool,
    /// The primary log is in use: it cannot be replaced any more.
    begun: bool,
    /// The thread is replacing the primary log: the start waits for it.
    settling: bool,
    /// Ends the process, with words.
    end: Option<Box<dyn Fn(String) + Send>>,
    /// The words of an end that came before there was a loop.
    ended: Option<String>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, why: String) {
        let mut state = self.lock();
        match &state.end {
            Some(end) => end(why),
            None => state.ended = Some(why),
        }
    }
}

/// The copy of the event log, as mbatchd has it.
pub struct Duplicate {
    shared: Arc<Shared>,
    told: Receiver<Told>,
    done: Receiver<()>,
}

/// The outcome of waiting for the shared directory.
pub enum Waited {
    /// The log can be opened.
    Ready,
    /// Another mbatchd had it meanwhile: start anew, with the configuration as it is now.
    Anew,
}

impl Duplicate {
    /// Starts the thread.
    pub fn start(places: Places, interval: Option<u64>) -> io::Result<Duplicate> {
        let shared = Arc::new(Shared::default());
        shared.lock().interval = interval.unwrap_or(0);
        let ((tell, told), (finish, done)) = (channel(), channel());
        let mut work = Work { places, shared: shared.clone(), tell, lock: None, away: false };
        let run = move || {
            work.run();
            // nobody may wait any more
            let _ = finish.send(());
        };
        std::thread::Builder::new().name("duplicate".into()).spawn(run)?;
        Ok(Duplicate { shared, told, done })
    }

    /// Waits until the primary log may be opened.
    pub fn wait(
        &self,
        places: &Places,
        mut heartbeat: Option<&mut Heartbeat>,
    ) -> io::Result<Waited> {
        let (began, mut said, mut held) = (Instant::now(), String::new(), false);
        let mut say = |text: String| {
            if text != said {
                log::error!("{text}");
                said = text;
            }
        };
        loop {
            let mut away = began.elapsed() > ALONE;
            match self.told.recv_timeout(SIGN) {
                Ok(Told::Ready) if held => return Ok(Waited::Anew),
                Ok(Told::Ready) => return Ok(Waited::Ready),
                Ok(Told::Held(text)) => {
                    say(format!("{text}; waiting for it"));
                    held = true;
                }
                Ok(Told::Away(text)) => {
                    say(format!("{}: {text}; waiting for it", places.share.display()));
                    (away, held) = (true, false);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the thread of the duplicate log has ended"));
                }
            }
            if away && !held && self.goes_alone(places)? {
                return Ok(Waited::Ready);
            }
            if let Some(heartbeat) = &mut heartbeat {
                heartbeat.turn(crate::sys::now().mono_us, None);
            }
        }
    }

    fn goes_alone(&self, places: &Places) -> io::Result<bool> {
        let mut disk = RealDisk::existing_dir(&places.primary);
        if !may_go_alone(&mut disk, &places.me.boot)? {
            return Ok(false);
        }
        let mut state = self.shared.lock();
        if state.settling {
            return Ok(false);
        }
        state.begun = true;
        let dir = places.share.display();
        log::error!("{dir} cannot be reached: the event log continues on this host alone");
        Ok(true)
    }

    /// The log thread's way to tell what is durable.
    pub fn teller(&self) -> TellExtent {
        let shared = self.shared.clone();
        Box::new(move |extent| {
            shared.lock().extent = extent;
            shared.changed.notify_all();
        })
    }

    /// Takes the function that ends the process when another master has the copy.
    pub fn on_end(&self, end: Box<dyn Fn(String) + Send>) {
        let mut state = self.shared.lock();
        if let Some(why) = state.ended.take() {
            end(why);
        }
        state.end = Some(end);
    }

    /// EVENT_UPDATE_INTERVAL of a new configuration, for threads.
    pub fn interval(&self) -> impl Fn(Option<u64>) + Clone + Send + 'static {
        let shared = self.shared.clone();
        move |interval| {
            shared.lock().interval = interval.unwrap_or(0);
            shared.changed.notify_all();
        }
    }

    /// The log is closed: the last round, for which the end waits for a bounded time.
    pub fn stop(self) {
        let mut state = self.shared.lock();
        state.stop = true;
        // the log thread tells no more
        state.extent.told += 1;
        self.shared.changed.notify_all();
        drop(state);
        if self.done.recv_timeout(CLOSE).is_err() {
            log::error!("the copy of the event log was not brought up to date at the end");
        }
    }
}

/// Why the copying ended.
enum End {
    Stop,
    Error(CopyError),
}

/// The thread.
struct Work {
    places: Places,
    shared: Arc<Shared>,
    tell: Sender<Told>,
    /// Held as long as the copy is written.
    lock: Option<LogLock>,
    /// That the shared directory is away has been told.
    away: bool,
}

impl Work {
    fn run(&mut self) {
        loop {
            let end = match self.attach() {
                Ok(replica) => self.copy(replica),
                Err(e) => End::Error(e),
            };
            self.shared.lock().settling = false;
            match end {
                End::Stop => return,
                End::Error(CopyError::Taken(why)) if self.shared.lock().begun => {
                    return self.shared.end(format!("{}: {why}", self.places.share.display()));
                }
                End::Error(CopyError::Taken(why)) => drop(self.tell.send(Told::Held(why))),
                End::Error(CopyError::Away(why)) => self.is_away(why),
            }
            if self.pauses() {
                return;
            }
        }
    }

    fn is_away(&mut self, why: String) {
        if !self.shared.lock().begun {
            let _ = self.tell.send(Told::Away(why));
        } else if !std::mem::replace(&mut self.away, true) {
            let (share, primary) = (self.places.share.display(), self.places.primary.display());
            log::error!(
                "the copy of the event log in {share} cannot be written: {why}; the log continues \
                 in {primary} alone"
            );
        }
    }

    /// Waits for the next attempt; `true` to stop.
    fn pauses(&self) -> bool {
        let state = self.shared.lock();
        let stops = |state: &mut State| !state.stop;
        let waited = self.shared.changed.wait_timeout_while(state, RETRY, stops);
        waited.unwrap_or_else(PoisonError::into_inner).0.stop
    }

    /// Claims the copy; at the start it makes the shared log the primary one where it is the last.
    fn attach(&mut self) -> Result<Replica, CopyError> {
        let Places { primary, share, fault, me } = &self.places;
        self.lock = None;
        let mut there = RealDisk::open_dir(share)?;
        let lock = LogLock::take(share).map_err(|e| match e {
            LockError::Held { .. } => CopyError::Taken(e.to_string()),
            e => CopyError::Away(e.to_string()),
        })?;
        if let Some(fault) = fault {
            there = there.with_fault_file(fault.clone());
        }
        let mut here = RealDisk::open_dir(primary)?;
        let begun = {
            let mut state = self.shared.lock();
            state.settling = !state.begun;
            state.begun
        };
        let attached = attach(&mut here, &mut there, me)?;
        if !attached.ours {
            if begun {
                let host = attached.before;
                return Err(CopyError::Taken(format!("host {host} has taken the log over")));
            }
            if !attached.before.is_empty() {
                log::warn!("host {} had the event log: its log is taken back", attached.before);
            }
            resync(&mut here, &mut there, &attached.owner)?;
        }
        forget_takeover(&mut there)?;
        settle(&mut here, &mut there, &attached.owner)?;
        self.lock = Some(lock);
        if !std::mem::replace(&mut self.shared.lock().begun, true) {
            let _ = self.tell.send(Told::Ready);
        }
        Ok(Replica::new(Box::new(here), Box::new(there), attached.owner))
    }

    fn copy(&mut self, mut replica: Replica) -> End {
        let (mut told, mut next) = (0, Instant::now());
        loop {
            let (extent, due) = match self.wait(told, next) {
                Some(found) => found,
                None if self.shared.lock().stop => return self.close(replica),
                None => continue,
            };
            let shared = self.shared.clone();
            let done = match due {
                true => replica.round(extent, &move || shared.lock().extent),
                false => replica.look().map(|()| Round::Current),
            };
            if due {
                told = extent.told;
            }
            match done {
                Ok(Round::Again) => {}
                Ok(Round::Current) if due => {
                    next = Instant::now() + Duration::from_secs(self.shared.lock().interval);
                    self.is_current();
                }
                Ok(Round::Current) => {}
                Err(e) => return End::Error(e),
            }
        }
    }

    fn is_current(&mut self) {
        if std::mem::replace(&mut self.away, false) {
            let share = self.places.share.display();
            log::warn!("the copy of the event log in {share} is up to date again");
        }
    }

    /// Waits for something to copy: the extent, and whether the interval is over; `None` to stop or
    /// to wait again.
    fn wait(&self, told: u64, next: Instant) -> Option<(Extent, bool)> {
        let state = self.shared.lock();
        let idle = |state: &mut State| !state.stop && state.extent.told == told;
        let waited = self.shared.changed.wait_timeout_while(state, LOOK, idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.stop || state.extent.told == told {
            return None;
        }
        let pause = next.saturating_duration_since(Instant::now());
        if !pause.is_zero() {
            let held = |state: &mut State| !state.stop;
            let waited = self.shared.changed.wait_timeout_while(state, pause.min(LOOK), held);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let due = Instant::now() >= next;
        (!state.stop).then_some((state.extent, due))
    }

    /// The last rounds, and the note that nothing is missing.
    fn close(&mut self, mut replica: Replica) -> End {
        for _ in 0..3 {
            let extent = {
                let mut state = self.shared.lock();
                state.extent.told += 1;
                state.extent
            };
            match replica.round(extent, &move || extent) {
                Ok(Round::Again) => {}
                Ok(Round::Current) => {
                    if let Err(e) = replica.complete() {
                        log::error!("the copy of the event log: {e}");
                    }
                    return End::Stop;
                }
                Err(CopyError::Taken(why) | CopyError::Away(why)) => {
                    log::error!("the copy of the event log was not brought up to date: {why}");
                    return End::Stop;
                }
            }
        }
        End::Stop
    }
}
