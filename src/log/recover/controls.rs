//! Control records of queues and hosts that damage took: what they controlled is closed at the
//! start, and stays so until an administrator opens it (`Recovered::controls`). A control record
//! behind the damage says how it stands.

use super::super::checksums::ChecksumEntry;
use crate::batch::soft_state::lost_controls::LostControl;
use crate::model::event::{Ctrl, Event, name_mark};

/// A record that damage took.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lost {
    Known(ChecksumEntry),
    /// `control`: it may have been a control record.
    Unknown {
        control: bool,
    },
}

const QUEUE: &str = "QUEUE_CTRL";
const HOST: &str = "HOST_CTRL";

/// May a line that cannot be read have been a control record? Not if it names itself another.
pub(super) fn may_be_control(line: &[u8]) -> bool {
    let name = line.strip_prefix(b"\"").and_then(|rest| {
        let end = memchr::memchr(b'"', rest)?;
        std::str::from_utf8(&rest[..end]).ok()
    });
    name.is_none_or(|name| matches!(name, QUEUE | HOST) || !super::super::checksums::is_kind(name))
}

/// The control records that damage took, so far.
#[derive(Default)]
pub(super) struct LostControls(Vec<LostControl>);

impl LostControls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self) -> Vec<LostControl> {
        std::mem::take(&mut self.0)
    }

    /// Notes damage that took a control record, or may have.
    pub(super) fn lost(&mut self, lost: &Lost, why: &str) {
        let (queues, hosts, mark) = match lost {
            Lost::Known(e) => (e.name() == QUEUE, e.name() == HOST, e.job.idx),
            Lost::Unknown { control } => (*control, *control, 0),
        };
        if queues || hosts {
            let (known, why) = (Default::default(), why.to_string());
            self.0.push(LostControl { queues, hosts, mark, known, why });
        }
    }

    /// A control record behind all that is lost so far.
    pub(super) fn known(&mut self, event: &Event) {
        let (queue, active, name) = match event {
            Event::QueueCtrl { op, queue, .. } => {
                (true, matches!(op, Ctrl::Activate | Ctrl::Inactivate), queue)
            }
            // a lock ID that was lost may still keep it shut
            Event::HostCtrl { host, lock, .. } if lock.is_empty() => (false, false, host),
            _ => return,
        };
        let hit = |lost: &&mut LostControl| {
            (if queue { lost.queues } else { lost.hosts })
                && (lost.mark == 0 || lost.mark == name_mark(name))
        };
        for lost in self.0.iter_mut().filter(hit) {
            lost.known.insert((queue, active, name.clone()));
        }
    }
}
