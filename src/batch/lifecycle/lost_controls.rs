//! Control records that damage took from the log: their queues and hosts are closed at the start
//! rather than open, and it is said. An administrator opens them (badmin hopen, qopen, qact).

use crate::batch::soft_state::lost_controls::LostControl;
use crate::batch::{Mbatchd, StepContext};
use crate::model::event::{Ctrl, Event};

impl Mbatchd {
    /// Closes what lost control records may have closed.
    pub(crate) fn close_lost(&mut self, context: &mut StepContext) {
        let lost = std::mem::take(&mut self.lost_controls);
        if lost.is_empty() {
            return;
        }
        let why = |queue, active, name: &str| lost.iter().find(|l| l.hits(queue, active, name));
        let mut events = Vec::new();
        let user = self.site.conf.base.cluster.admins.first().cloned().unwrap_or_default();
        let queues: Vec<String> = self.site.queues.iter().map(|q| q.conf.name.clone()).collect();
        for (queue, active) in queues.iter().flat_map(|queue| [(queue, false), (queue, true)]) {
            let control = self.state.queue_control_of(queue).cloned().unwrap_or_default();
            let shut = if active { control.inactive } else { control.closed };
            let Some(lost) = why(true, active, queue).filter(|_| !shut) else { continue };
            let op = if active { Ctrl::Inactivate } else { Ctrl::Close };
            let did = if active { "inactivated" } else { "closed" };
            context.say(log::Level::Error, format!("queue <{queue}> is {did}: {}", words(lost)));
            let (queue, user, message) = (queue.clone(), user.clone(), words(lost));
            events.push(Event::QueueCtrl { op, queue, uid: 0, user, message });
        }
        let hosts: Vec<String> = self.site.hosts.values().map(|h| h.def.name.clone()).collect();
        for host in hosts {
            let shut = self.state.host_control_of(&host).is_some_and(|control| control.closed);
            let Some(lost) = why(false, false, &host).filter(|_| !shut) else { continue };
            context.say(log::Level::Error, format!("host <{host}> is closed: {}", words(lost)));
            let (op, lock) = (Ctrl::Close, String::new());
            let (user, message) = (user.clone(), words(lost));
            events.push(Event::HostCtrl { op, host, uid: 0, user, message, lock });
        }
        events.into_iter().for_each(|event| self.emit(context, event));
    }
}

fn words(lost: &LostControl) -> String {
    format!("a control record was lost: {}", lost.why)
}
