//! The event stream (ENABLE_EVENT_STREAM of lsb.params(5)): a thread that repeats what was
//! committed in lsb.stream (`log::stream_file`).
//!
//! The thread of the log hands the lines over and goes on. A stream that cannot be written, or not
//! in time, lacks records, which is told in the log of mbatchd; nothing else waits for it.

use crate::conf::ClusterConf;
use crate::log::batch::CommittedLines;
use crate::log::stream_file::{StreamFile, StreamSettings};
use crate::log::writer::TellCommitted;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most bytes that wait to be written; what comes beyond is left out.
const MAX_WAITING: usize = 32 << 20;
/// A stream is in order again when no write has failed for so long: a full disk has room for a
/// short record now and then.
const CALM: Duration = Duration::from_secs(5);
/// Longest time that the end of mbatchd waits for the last lines.
const CLOSE: Duration = Duration::from_secs(2);

#[derive(Default)]
struct State {
    /// Without them there is no stream.
    settings: Option<StreamSettings>,
    waiting: VecDeque<CommittedLines>,
    /// Bytes of these.
    bytes: usize,
    /// Records that found no room among them.
    lost: u64,
    running: bool,
    stop: bool,
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

    /// Takes the lines of a commit, or counts them as lost.
    fn put(&self, lines: CommittedLines) {
        let mut state = self.lock();
        if state.settings.is_none() {
            return;
        }
        let bytes = lines.bytes();
        if state.bytes.saturating_add(bytes) > MAX_WAITING && !state.waiting.is_empty() {
            state.lost += lines.records();
            return;
        }
        state.bytes += bytes;
        state.waiting.push_back(lines);
        self.changed.notify_all();
    }
}

/// The settings that a configuration asks for; None: no stream.
pub fn settings(conf: &ClusterConf) -> Option<StreamSettings> {
    let params = conf.batch.params.log.event_stream.clone()?;
    let beside = || {
        let dir = conf.base.lsf.batch_logdir(&conf.base.name)?;
        Some(format!("{dir}/stream/lsb.stream"))
    };
    let path = PathBuf::from(params.path.or_else(beside)?);
    let (max_bytes, files, types) = (params.max_bytes, params.files, params.types);
    Some(StreamSettings { path, max_bytes, files, types })
}

/// The stream, as mbatchd has it. Clones are of the same stream.
#[derive(Clone, Default)]
pub struct EventStream {
    shared: Arc<Shared>,
    done: Arc<Mutex<Option<Receiver<()>>>>,
}

impl EventStream {
    /// The stream that a configuration asks for.
    pub fn of(conf: &ClusterConf) -> EventStream {
        let stream = EventStream::default();
        stream.set(settings(conf));
        stream
    }

    /// Takes the settings of a configuration; the first ones start the thread.
    pub fn set(&self, settings: Option<StreamSettings>) {
        let mut state = self.shared.lock();
        let starts = settings.is_some() && !std::mem::replace(&mut state.running, true);
        state.settings = settings;
        drop(state);
        if !starts {
            return;
        }
        let (finish, done) = channel();
        let mut work = Work { shared: self.shared.clone(), file: None, trouble: None, finish };
        match std::thread::Builder::new().name("stream".into()).spawn(move || work.run()) {
            Ok(_) => *self.done.lock().unwrap_or_else(PoisonError::into_inner) = Some(done),
            Err(e) => {
                log::error!("the thread of the event stream: {e}");
                let mut state = self.shared.lock();
                (state.settings, state.running) = (None, false);
            }
        }
    }

    /// The way of the log's thread to tell what is committed.
    pub fn teller(&self) -> TellCommitted {
        let shared = self.shared.clone();
        Box::new(move |lines| shared.put(lines))
    }

    /// The log is closed: writes the last lines, for which the end waits for a bounded time.
    pub fn stop(&self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).take();
        if done.is_some_and(|done| done.recv_timeout(CLOSE).is_err()) {
            log::error!("the last records are missing in the event stream");
        }
    }
}

/// The thread.
struct Work {
    shared: Arc<Shared>,
    file: Option<StreamFile>,
    /// The records that are missing since writing failed, and when it failed last.
    trouble: Option<(u64, Instant)>,
    finish: Sender<()>,
}

impl Work {
    fn run(&mut self) {
        while let Some((settings, lines, lost)) = self.next() {
            if lost > 0 {
                self.fails(&settings, lost, "the lines that wait to be written are too many");
            }
            self.write(&settings, lines);
        }
        let _ = self.finish.send(());
    }

    /// Waits for lines; `None`: the end.
    fn next(&self) -> Option<(StreamSettings, CommittedLines, u64)> {
        let mut state = self.shared.lock();
        loop {
            let settings = state.settings.clone();
            match (state.waiting.pop_front(), settings) {
                (Some(lines), Some(settings)) => {
                    state.bytes -= lines.bytes();
                    return Some((settings, lines, std::mem::take(&mut state.lost)));
                }
                (Some(lines), None) => state.bytes -= lines.bytes(),
                (None, _) if state.stop => return None,
                (None, _) => {
                    state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn write(&mut self, settings: &StreamSettings, mut lines: CommittedLines) {
        if self.file.as_ref().is_some_and(|file| file.settings() != settings) {
            self.file = None;
        }
        if self.file.is_none() {
            match StreamFile::open(settings) {
                Ok(file) => self.file = Some(file),
                Err(e) => return self.fails(settings, lines.records(), &e.to_string()),
            }
        }
        let now = crate::sys::now().secs();
        loop {
            let piece = lines.next_piece();
            let Some(file) = self.file.as_mut().filter(|_| !piece.is_empty()) else { return };
            match file.put(&piece, now) {
                Ok(()) => self.works(settings),
                Err((missing, e)) => self.fails(settings, missing, &e.to_string()),
            }
        }
    }

    /// Tells once that records are missing, until writing works again.
    fn fails(&mut self, settings: &StreamSettings, missing: u64, why: &str) {
        if self.trouble.is_none() {
            let path = settings.path.display();
            log::error!("the event stream {path}: {why}; records are left out until it is written");
        }
        let before = self.trouble.map_or(0, |trouble| trouble.0);
        self.trouble = Some((before + missing, Instant::now()));
    }

    fn works(&mut self, settings: &StreamSettings) {
        if let Some((missing, _)) = self.trouble.take_if(|trouble| trouble.1.elapsed() >= CALM) {
            let path = settings.path.display();
            log::warn!("the event stream {path} is written again; {missing} records are missing");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: usize = 1 << 10;

    fn lines(bytes: usize) -> CommittedLines {
        let line = [&[b'x'; LINE - 1][..], b"\n"].concat();
        CommittedLines::of_events(line.repeat(bytes / LINE))
    }

    fn work(shared: &Arc<Shared>) -> Work {
        let (shared, finish) = (shared.clone(), channel().0);
        Work { shared, file: None, trouble: None, finish }
    }

    #[test]
    fn lines_that_find_no_room_are_lost_counted_and_told_once_before_the_next_ones() {
        let shared = Arc::new(Shared::default());
        let path = PathBuf::from("/nonexistent/stream/lsb.stream");
        let settings = StreamSettings { path, max_bytes: 1, files: 1, types: Vec::new() };
        // nothing waits where there is no stream
        shared.put(lines(LINE));
        assert_eq!(shared.lock().bytes, 0);
        shared.lock().settings = Some(settings.clone());
        // more than there is room for, but nothing else waits
        shared.put(lines(MAX_WAITING + LINE));
        shared.put(lines(3 * LINE));
        shared.put(lines(2 * LINE));
        assert_eq!(shared.lock().bytes, MAX_WAITING + LINE);
        assert_eq!(shared.lock().lost, 5);
        let mut work = work(&shared);
        let (_, first, lost) = work.next().unwrap();
        assert_eq!((first.bytes(), lost), (MAX_WAITING + LINE, 5));
        shared.put(lines(MAX_WAITING - LINE));
        shared.put(lines(LINE));
        shared.put(lines(LINE));
        assert_eq!(shared.lock().lost, 1);
        let taken = [work.next().unwrap(), work.next().unwrap()];
        assert_eq!(
            taken.map(|next| (next.1.bytes(), next.2)),
            [(MAX_WAITING - LINE, 1), (LINE, 0)]
        );
        assert_eq!(shared.lock().bytes, 0);
        // what cannot be written is missing, too, until writing has worked for some time
        work.fails(&settings, 6, "no room");
        work.write(&settings, lines(4 * LINE));
        assert_eq!(work.trouble.map(|trouble| trouble.0), Some(10));
        work.works(&settings);
        assert!(work.trouble.is_some());
        work.trouble = work.trouble.map(|(n, at)| (n, at.checked_sub(CALM).unwrap_or(at)));
        work.works(&settings);
        assert!(work.trouble.is_none());
        shared.lock().stop = true;
        assert!(work.next().is_none());
    }
}
