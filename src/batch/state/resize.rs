//! Changes of the slots of a started element: what its users have asked for, and the change that
//! its first execution host is to hear of or has heard of.
//!
//! Invariants: one change is under way at a time; slots that come are the element's as soon as
//! their change begins, and slots that go are until it has ended well; an element keeps a slot of
//! its first execution host.

use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::names::HostId;

/// The changes of the slots of a started element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resize {
    /// The number of the last change.
    pub number: u32,
    pub under_way: Option<ResizeUnderWay>,
    /// The element asks for no further slots by itself any more.
    pub cancelled: bool,
    pub asked: Option<AskedSlots>,
    /// When the last change failed for which further slots were given, seconds since the epoch;
    /// 0: none did.
    pub failed_at: i64,
    /// When the last change ended well, seconds since the epoch; 0: there was none.
    pub changed_at: i64,
}

/// A change that the first execution host has not told the end of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResizeUnderWay {
    pub number: u32,
    pub grows: bool,
    pub hosts: Vec<(HostId, u32)>,
    /// The notification command; empty: none.
    pub command: String,
    /// The host has begun with it.
    pub accepted: bool,
}

/// The further slots that bresize request asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AskedSlots {
    /// The slots of the element when it has them all.
    pub total: u32,
    /// Fewer are not given at once.
    pub least: u32,
    /// The notification command, where it is not that of the job; empty: none.
    pub command: Option<String>,
}

/// The hosts with these slots more: those that are new come last.
pub(super) fn with(hosts: &[(HostId, u32)], more: &[(HostId, u32)]) -> JobHosts {
    let mut all = hosts.to_vec();
    for (host, n) in more {
        match all.iter_mut().find(|known| known.0 == *host) {
            Some(known) => known.1 = known.1.saturating_add(*n),
            None => all.push((*host, *n)),
        }
    }
    all.into()
}

/// The hosts without these slots. The first one stays with a slot.
pub fn without(hosts: &[(HostId, u32)], fewer: &[(HostId, u32)]) -> JobHosts {
    let mut all = hosts.to_vec();
    for (host, n) in fewer {
        let mut left = *n;
        for (at, known) in all.iter_mut().enumerate().rev().filter(|known| known.1.0 == *host) {
            let keeps = u32::from(at == 0);
            let taken = left.min(known.1.saturating_sub(keeps));
            (known.1, left) = (known.1 - taken, left - taken);
        }
    }
    all.retain(|known| known.1 > 0);
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::state::names::Id;

    fn on(hosts: &[(usize, u32)]) -> Vec<(HostId, u32)> {
        hosts.iter().map(|(host, n)| (HostId::from_index(*host), *n)).collect()
    }

    #[test]
    fn slots_come_behind_those_that_are_there_and_go_but_for_one_of_the_first_host() {
        let hosts = on(&[(3, 2), (1, 4)]);
        assert_eq!(with(&hosts, &on(&[(1, 1), (2, 2)]))[..], on(&[(3, 2), (1, 5), (2, 2)]));
        assert_eq!(without(&hosts, &on(&[(1, 3)]))[..], on(&[(3, 2), (1, 1)]));
        assert_eq!(without(&hosts, &on(&[(1, 4), (3, 9)]))[..], on(&[(3, 1)]));
        assert_eq!(without(&hosts, &on(&[(7, 1)]))[..], hosts);
    }
}
