//! mbatchd's event log: the code that ships (`crate::log`) on a disk in memory. The work of its
//! thread takes virtual time; a crash finds it anywhere in its work, and leaves of the
//! writes that were not synced all (the process died) or a torn part (the host did). A master may
//! be stopped between the look at its lock and its write: another one takes the log over, then the
//! first one goes on.

use super::rng::Rng;
use super::same::Shadow;
use crate::log::commit_queue::CommitQueue;
use crate::log::simdisk::{Crash, Faults, SimDisk};
use crate::log::writer::{Due, Writer, WriterNotice};
use crate::proto::held_replies::Tickets;
use std::collections::BTreeSet;

/// The log's two sides while mbatchd runs.
pub(super) struct Open {
    pub(super) writer: Writer<SimDisk>,
    pub(super) front: CommitQueue<SimDisk>,
    /// The thread has told that the process must end, and does nothing more.
    pub(super) ended: bool,
}

/// The disk, which outlives mbatchd, and the process side, which does not.
#[derive(Default)]
pub(super) struct MbdLog {
    pub(super) disk: SimDisk,
    /// The host whose mbatchd has or had the log.
    pub(super) host: usize,
    pub(super) open: Option<Open>,
    /// A master that was stopped before a write, and whether another one has the log since.
    pub(super) stopped: Option<(Open, bool)>,
    /// The next commit is to be stopped so.
    pub(super) stop_next: bool,
    pub(super) tickets: Tickets,
    /// Connections with messages that wait.
    pub(super) holding: BTreeSet<u64>,
    /// When the thread's next turn is planned, and which plan is good.
    pub(super) due: Option<u64>,
    pub(super) gen_: u64,
    /// Starts so far: each run needs a word of its own.
    pub(super) starts: u64,
    /// The last thing the thread told arrives then.
    pub(super) told_at: u64,
    /// There is no space until told otherwise.
    pub(super) full: bool,
    /// A byte of lsb.events is wrong: the next start may hold jobs.
    pub(super) damaged: bool,
    /// Records examined in one slice of a switch.
    pub(super) slice: usize,
    /// The state that it must give again.
    pub(super) shadow: Shadow,
    /// Lost control records closed queues or hosts: an administrator opens them.
    pub(super) shut: bool,
}

impl MbdLog {
    /// No record waits to become durable, and the thread has no work.
    pub(super) fn quiet(&self) -> bool {
        let idle = self.open.as_ref().is_some_and(|o| o.writer.due() == Due::Ordered);
        idle && self.tickets.due().is_none()
    }

    /// The faults of the disk when nothing special was ordered.
    pub(super) fn usual_faults(&self) -> Faults {
        Faults { bytes_left: self.full.then_some(0), ..Faults::default() }
    }

    /// The loop is gone.
    pub(super) fn drop_loop(&mut self) {
        self.open = None;
        self.tickets = Tickets::default();
        self.holding.clear();
        self.due = None;
        self.gen_ += 1;
    }

    /// mbatchd ends: no loop, no thread, nothing open. All writes are there.
    pub(super) fn drop_process(&mut self) {
        self.drop_loop();
        self.disk.crash(Crash::Process);
        self.disk.set_faults(self.usual_faults());
    }

    /// The master that was stopped goes on with what it was about to write; why that is wrong.
    pub(super) fn wake(&mut self, now: u64) -> Option<String> {
        let (mut open, overtaken) = self.stopped.take()?;
        while open.writer.due() == Due::Now {
            match open.writer.turn(now, &mut |_| {}) {
                Some(WriterNotice::Durable(_)) if overtaken => {
                    return Some("a master that was overtaken acknowledges".into());
                }
                Some(WriterNotice::Durable(_)) | None => {}
                Some(_) => break,
            }
        }
        None
    }

    /// The host loses power; a master that was stopped there ends with it.
    pub(super) fn power_cut(&mut self, rng: &mut Rng) {
        self.stopped = None;
        let seed = rng.draw();
        let how = if rng.chance(0.5) { Crash::PowerTorn(seed) } else { Crash::Power(seed) };
        self.disk.crash(how);
        self.disk.set_faults(self.usual_faults());
    }
}
