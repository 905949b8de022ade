//! Preemption, compiled: whose jobs a queue preempts, in what order, and which jobs are protected
//! (lsb.queues(5), lsb.params(5), lsb.applications(5)).

use crate::batch::state::names::QueueId;
use crate::conf::preemption::{RunShare, run_share};
use crate::conf::types::{BatchParams, PreemptedQueue, QueueConf, RawParams};
use std::cmp::Reverse;

/// Parameters that protect jobs.
pub(super) const PROTECTION: [&str; 6] = [
    "MAX_JOB_PREEMPT",
    "MAX_TOTAL_TIME_PREEMPT",
    "NO_PREEMPT_RUN_TIME",
    "NO_PREEMPT_FINISH_TIME",
    "NO_PREEMPT_INTERVAL",
    "PREEMPT_DELAY",
];

/// The jobs that are not preempted, and how long jobs wait before they preempt others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptionLimits {
    /// Most preemptions of a job.
    pub most: u32,
    /// Seconds of preemption in all, after which a job is not preempted again.
    pub total_secs: Option<u64>,
    /// Jobs that have run longer are not preempted.
    pub ran: RunShare,
    /// Jobs that reach their run limit sooner are not preempted.
    pub left: RunShare,
    /// Seconds that a job runs without interruption.
    pub interval_secs: u64,
    /// Seconds from its submission before a job preempts others.
    pub delay_secs: u64,
}

impl PreemptionLimits {
    /// The parameters of an application profile and a queue; each `None`: jobs have none.
    pub(super) fn compile(
        levels: [Option<&RawParams>; 2],
        params: &BatchParams,
    ) -> PreemptionLimits {
        let text = |name: &str| {
            let own = levels.into_iter().flatten().find_map(|raw| raw.get(name));
            own.or_else(|| params.raw.get(name)).map(|value| value.text.trim())
        };
        let number = |name: &str| text(name).and_then(|text| text.parse::<u64>().ok());
        let share = |name: &str| text(name).and_then(run_share).unwrap_or(RunShare::Never);
        PreemptionLimits {
            most: number("MAX_JOB_PREEMPT").map_or(u32::MAX, |n| n as u32),
            total_secs: number("MAX_TOTAL_TIME_PREEMPT").map(|minutes| minutes * 60),
            ran: share("NO_PREEMPT_RUN_TIME"),
            left: share("NO_PREEMPT_FINISH_TIME"),
            interval_secs: number("NO_PREEMPT_INTERVAL").unwrap_or(0) * 60,
            delay_secs: number("PREEMPT_DELAY").unwrap_or(0),
        }
    }
}

/// The queues whose jobs a queue preempts, the first to be preempted first; `all`: all queues, in
/// the order of their priorities. A queue preempts jobs of queues of lower priority alone, so that
/// preemption never goes in a circle.
pub(super) fn victims<'a>(
    high: &QueueConf,
    all: impl Iterator<Item = (QueueId, &'a QueueConf)>,
) -> Vec<QueueId> {
    let named = |list: &Option<Vec<PreemptedQueue>>, name: &str| -> Option<u32> {
        let list = list.as_ref()?;
        if list.is_empty() {
            return Some(0);
        }
        list.iter().find(|named| named.name == name).map(|named| named.preference)
    };
    let mut victims: Vec<(Reverse<u32>, u32, Reverse<usize>, QueueId)> = Vec::new();
    for (position, (id, low)) in all.enumerate().filter(|of| of.1.1.priority < high.priority) {
        let preempts = named(&high.preemption.preemptive, &low.name);
        let preempted = named(&low.preemption.preemptable, &high.name);
        if let Some(preference) = preempts.or(preempted) {
            victims.push((Reverse(preference), low.priority, Reverse(position), id));
        }
    }
    victims.sort_unstable();
    victims.into_iter().map(|victim| victim.3).collect()
}
