//! A policy of the tests: a job of queue `urgent` that finds no host is started on the first host,
//! whatever runs there.

use crate::batch::sched::decision::{Allocation, Decision};
use crate::batch::sched::policy::{BlockedJob, Policy, Question};
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::batch::state::names::{HostId, Id};

#[derive(Debug)]
struct Overbook;

impl Policy for Overbook {
    fn answers(&self) -> &'static [Question] {
        &[Question::Blocked]
    }

    fn acts_on_blocked(&self, _view: &View, queue: &Queue) -> bool {
        queue.conf.name == "urgent"
    }

    fn blocked(&self, job: &BlockedJob) -> Option<Decision> {
        assert!(job.free.is_empty() && job.changed.is_none());
        let at = job.at;
        // the room that limits of queue and user leave
        let hosts = vec![(HostId::from_index(0), 1)].into();
        let start = Allocation::new(at, hosts, None, None);
        (job.class.room > 0).then_some(Decision::Start(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::cluster::cluster;

    #[test]
    fn a_class_that_finds_no_host_is_put_before_the_policies_of_its_queue() {
        let site = cluster().hosts(1, 1).queue("urgent", "PRIORITY = 50\nUJOB_LIMIT = 2");
        let mut c = site.up().with_policy(Box::new(Overbook));
        let [first, second] = [c.submit("ann", ""), c.submit("ann", "")];
        let urgent = [(); 3].map(|()| c.submit("ann", "-q urgent"));
        assert_eq!(c.started(), [first, urgent[0], urgent[1]]);
        c.end(first, 0);
        assert_eq!(c.state(second), "PEND");
    }
}
