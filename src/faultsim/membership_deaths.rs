//! Daemons die at the messages by which the hosts of a parallel job join and leave it: before one
//! is taken, after it, or the one that has sent it. A fault at a random time seldom comes between
//! two of these, which follow each other within milliseconds.
//!
//! Numbers come from a generator of their own, and most seeds have no such deaths: a seed that has
//! found a defect once still goes as it did then.

use super::rng::Rng;
use crate::proto::Msg;
use crate::proto::sbd::SbdMsg;

/// The messages, in the order of a job's life.
pub const MEMBERSHIP_MESSAGES: [&str; 5] = ["Join", "Joined", "Start", "Leave", "Left"];
/// Share of these messages at which a daemon dies.
const SHARE: f64 = 0.05;
/// Most such deaths of a run: large clusters have thousands of the messages.
const MOST: usize = 12;
/// Seeds of which the second and the last have these deaths.
const SEEDS: u64 = 5;

/// The daemon that dies at a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Death {
    /// The message is lost with it.
    ReceiverBefore,
    ReceiverAfter,
    Sender,
}

/// The deaths of a run.
pub(super) struct MembershipDeaths {
    /// The numbers; `None`: the seed has no such deaths.
    rng: Option<Rng>,
    /// Deaths at each of [`MEMBERSHIP_MESSAGES`].
    pub(super) count: [usize; MEMBERSHIP_MESSAGES.len()],
}

impl MembershipDeaths {
    pub(super) fn of_seed(seed: u64) -> MembershipDeaths {
        let has = [1, SEEDS - 1].contains(&(seed % SEEDS));
        MembershipDeaths {
            rng: has.then(|| Rng::new(!seed)),
            count: [0; MEMBERSHIP_MESSAGES.len()],
        }
    }

    /// The daemon that dies at the arrival of this message, if one does.
    pub(super) fn at(&mut self, msg: &Msg) -> Option<Death> {
        let at = position(msg)?;
        let rng = self.rng.as_mut()?;
        if self.count.iter().sum::<usize>() >= MOST || !rng.chance(SHARE) {
            return None;
        }
        self.count[at] += 1;
        Some(match rng.below(3) {
            0 => Death::ReceiverBefore,
            1 => Death::ReceiverAfter,
            _ => Death::Sender,
        })
    }
}

/// The position of a message in [`MEMBERSHIP_MESSAGES`].
fn position(msg: &Msg) -> Option<usize> {
    let Msg::Sbd(msg) = msg else { return None };
    match msg {
        SbdMsg::Join(_) => Some(0),
        SbdMsg::Joined { .. } => Some(1),
        SbdMsg::Start(order) => (order.hosts.len() > 1).then_some(2),
        SbdMsg::Leave { .. } => Some(3),
        SbdMsg::Left { .. } => Some(4),
        _ => None,
    }
}
