//! -hostfile: these slots on these hosts.

use crate::batch::sched::place::host_match::{Free, Placed};
use crate::batch::state::names::HostId;
use std::collections::BTreeMap;

/// These slots on these hosts, or nothing.
pub(super) fn exactly(free: Free, want: Free) -> Option<Placed> {
    let free: BTreeMap<HostId, u32> = free.iter().copied().collect();
    let has = |w: &(HostId, u32)| free.get(&w.0).is_some_and(|n| *n >= w.1);
    want.iter().all(has).then(|| want.to_vec())
}
