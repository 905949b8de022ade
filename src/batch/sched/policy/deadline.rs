//! Deadlines: a job whose run limit ends behind the next close of the run window of its queue, or
//! behind its termination deadline (bsub -t), is not started (IGNORE_DEADLINE of lsb.queues(5)).
//!
//! Time alone makes no room here: a job that does not fit now fits when the window has opened
//! again, which is a change of the windows.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct Deadline;

impl Policy for Deadline {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        let Some(run) = class.run else { return Room::ANY };
        if class.queue.conf.ignores.deadline {
            return Room::ANY;
        }
        let view = &class.view;
        let term = class.kind.time.as_ref().map_or(0, |time| time.term);
        let closes = match class.queue.run_window.is_empty() {
            true => None,
            false => view.windows.run_windows_close(view.site, class.queue.id),
        };
        if term == 0 && closes.is_none() {
            return Room::ANY;
        }
        let end = view.now.secs().saturating_add(run.on(view.hosts[host.id].cpu_factor()));
        if closes.is_some_and(|closes| end > closes) {
            return Room::none(PendReason::WindowCloses);
        }
        match term > 0 && end > term {
            true => Room::none(PendReason::PastDeadline),
            false => Room::ANY,
        }
    }

    fn further(&self, _class: &HostMatch, _host: &HostNow) -> u64 {
        u64::MAX
    }
}
