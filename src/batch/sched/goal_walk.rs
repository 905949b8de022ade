//! Jobs of service classes of which fewer run than their goals want: they go before those of all
//! queues, one service class after the other by PRIORITY (lsb.serviceclasses(5)). Limits hold for
//! them as for all jobs. A class that finds no host here waits for another one like any class.

use crate::batch::sched::Sched;
use crate::batch::sched::decision::{Decision, Fuel};
use crate::batch::sched::view::View;
use crate::batch::sched::walk_state::Walk;
use crate::batch::site::service_classes::ServiceClassId;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Classes of jobs of one service class that a walk holds against hosts for its goals; further
/// ones come with their queues.
const LOOKS_PER_SERVICE_CLASS: usize = 1024;

impl Sched {
    /// Fewer jobs of a service class run than did, or its goals want more: the classes that were
    /// kept back are looked at again.
    pub(crate) fn goal_room(&mut self) {
        let classes = std::mem::take(&mut self.full_goals);
        self.look_again(classes);
        self.note_change();
    }

    /// The next job that starts, or is done something for, because of a goal.
    pub(super) fn next_for_goals(
        &mut self,
        view: &View,
        walk: &mut Walk,
        fuel: &mut Fuel,
    ) -> Option<Decision> {
        let mut heads = match walk.for_goals.take() {
            Some(heads) => heads,
            None => self.heads_for_goals(view, walk, fuel),
        };
        let mut decision = None;
        while let Some(&(service, class)) = heads.front().filter(|_| !fuel.is_empty()) {
            decision = match view.goals.room(Some(service)) {
                Some(1..) => self.hold_for_goal(view, class, walk, fuel),
                _ => None,
            };
            // a class of which a job has started may have another
            match decision {
                Some(Decision::Start(_)) => break,
                Some(_) => {
                    heads.pop_front();
                    break;
                }
                None => drop(heads.pop_front()),
            }
        }
        walk.for_goals = Some(heads);
        decision
    }

    /// The classes to be held against hosts, in the order in which they are.
    fn heads_for_goals(
        &mut self,
        view: &View,
        walk: &Walk,
        fuel: &mut Fuel,
    ) -> VecDeque<(ServiceClassId, u32)> {
        let mut all = VecDeque::new();
        let hosts_changed = !walk.changed.is_empty() || !walk.touched.is_empty();
        for service in view.goals.behind(view.site) {
            let of_service = self.classes.ready_of(service).take(LOOKS_PER_SERVICE_CLASS);
            let mut heads = Vec::new();
            for class in of_service {
                fuel.spend(1);
                let of = self.classes.get(class);
                let Some((place, _)) = self.classes.head(class) else { continue };
                if of.unseen || hosts_changed {
                    let priority =
                        view.site.queue(of.kind.queue).map_or(0, |queue| queue.conf.priority);
                    heads.push((Reverse(priority), place, class));
                }
            }
            heads.sort_unstable();
            all.extend(heads.into_iter().map(|(_, _, class)| (service, class)));
        }
        all
    }

    fn hold_for_goal(
        &mut self,
        view: &View,
        class: u32,
        walk: &mut Walk,
        fuel: &mut Fuel,
    ) -> Option<Decision> {
        fuel.spend(1);
        let (place, _) = self.classes.head(class)?;
        let of = self.classes.get(class);
        let (id, bidder, unseen) = (of.kind.queue, of.bidder, of.unseen);
        let queue = view.site.queue(id)?;
        let changed = self.changed_for(view, queue, (&walk.changed, &walk.touched));
        if !self.may_find(view, queue) || (!unseen && changed.is_empty()) {
            return None;
        }
        let only = (!unseen).then_some(changed);
        self.hold_next(view, queue, ((place, class), bidder), &mut walk.goal_looks, only, fuel)
    }
}
