//! Keeps the jobs of queue `night` off hosts whose name begins with `x`.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{HostNow, Policy, Question, Room};
use crate::model::reason::PendReason;

#[derive(Debug)]
pub(super) struct NoXHosts;

impl Policy for NoXHosts {
    fn answers(&self) -> &'static [Question] {
        &[Question::Host]
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        let name = &host.snapshot.def.name;
        match class.queue.conf.name == "night" && name.starts_with('x') {
            true => Room::none(PendReason::NotQueueHost),
            false => Room::ANY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::cluster::cluster;

    #[test]
    fn jobs_of_queue_night_stay_off_hosts_whose_name_begins_with_x() {
        let site = cluster().hosts(1, 1).host("x1", 1).queue("night", "PRIORITY = 40");
        let mut c = site.up().with_policy(Box::new(NoXHosts));
        let [first, second] = [c.submit("ann", "-q night"), c.submit("ann", "-q night")];
        assert_eq!(c.started(), [first]);
        let reasons = [(PendReason::HostFull, "h1"), (PendReason::NotQueueHost, "x1")];
        assert_eq!(c.reasons(second), reasons.map(|(code, host)| (code, vec![host.to_string()])));
        let of_day = c.submit("ann", "");
        assert_eq!(c.running_on(of_day), ["x1"]);
    }
}
