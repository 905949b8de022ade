//! Classes that a guaranteed pool leaves too little: they are looked at again when the pool has
//! more for them.

use crate::batch::sched::Sched;
use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::view::View;
use crate::batch::state::names::HostId;
use crate::batch::usage::guarantees::PoolWait;

impl Sched {
    /// The hosts that the next walk begins with; `None`: all.
    pub(crate) fn changed_hosts(&self) -> Option<impl Iterator<Item = HostId> + '_> {
        self.hosts.changed_so_far()
    }

    /// A class found no host: it waits for the pools that leave it less than it could have had.
    pub(super) fn wait_for_pools(&mut self, view: &View, kind: &ClassKey, class: u32) {
        if view.site.pools.is_empty() || !kind.obeys_pools(view.site) {
            return;
        }
        for (id, pool) in view.site.pools.iter() {
            let left = view.guarantees.left(view.site, id, kind.pool_job());
            // the hosts of a class may be shut to it whatever is left
            let enough = view.guarantees.suffices(view.site, id, left, kind.max.into());
            if pool.of_hosts() || !enough {
                let member = kind.service_class.filter(|of| pool.member(Some(*of)).is_some());
                self.pool_waits.entry((id, member)).or_default().insert(class);
            }
        }
    }

    /// A pool has more for these.
    pub(crate) fn pool_grew(&mut self, wait: PoolWait) {
        if let Some(classes) = self.pool_waits.remove(&wait) {
            self.look_again(classes);
            self.note_change();
        }
    }
}
