//! The consequences for the scheduler when the counter of a limit falls, or a limit is reached.

use crate::batch::sched::Sched;
use crate::batch::sched::limit_waits::Waiting;
use crate::batch::sched::view::View;
use crate::batch::site::Site;
use crate::batch::site::rules::Counter;

impl Sched {
    /// A limit leaves more than before: those who waited for that are looked at again.
    pub(crate) fn limit_fell(&mut self, site: &Site, counter: Counter) {
        if site.rules.get(counter.rule).ignores_preempted {
            for host in self.held_by_limits.take() {
                self.host_changed(host);
            }
        }
        let Some(waiting) = self.limit_waits.fell(site, counter) else { return };
        for (queue, user) in waiting.users {
            self.order.wake_user(queue, user);
        }
        self.look_again(waiting.classes);
        self.note_change();
    }

    /// The ready jobs whose pending time has become eligible by a limit, or is so no longer, since
    /// this was asked last.
    pub(crate) fn take_made_ineligible(&mut self, view: &View) -> Vec<u32> {
        let Waiting { users, mut classes } = self.limit_waits.take_touched();
        let of_users = users.into_iter().flat_map(|of| self.order.classes_of(of));
        classes.extend(of_users);
        let mut jobs = Vec::new();
        for number in classes {
            let kind = self.classes.get(number).kind.clone();
            let now = view.ineligible_by_limit(kind.consumer, kind.min);
            let class = self.classes.get_mut(number);
            if std::mem::replace(&mut class.ineligible, now) != now {
                jobs.extend(class.ready.iter().map(|ready| ready.1));
            }
        }
        jobs
    }
}
