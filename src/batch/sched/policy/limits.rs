//! Slot limits: QJOB_LIMIT, UJOB_LIMIT, HJOB_LIMIT and PJOB_LIMIT of lsb.queues, MAX_JOBS of
//! lsb.users, MXJ and JL/U of lsb.hosts.

use crate::batch::sched::place::HostMatch;
use crate::batch::sched::policy::{Consumer, HostNow, Policy, Room};
use crate::batch::sched::view::View;
use crate::batch::site::Queue;
use crate::model::reason::pend;

#[derive(Debug)]
pub(super) struct Limits;

impl Policy for Limits {
    fn queue(&self, view: &View, queue: &Queue) -> Room {
        let used = || view.state.counts.queue.get(&queue.id).map_or(0, |s| s.started());
        Room::left(queue.conf.qjob_limit.map(u64::from), used, pend::QUEUE_JOB_LIMIT)
    }

    fn user(&self, view: &View, queue: &Queue, Consumer { user, max_jobs }: Consumer) -> Room {
        let counts = &view.state.counts;
        let in_queue = || counts.queue_user.get(&(queue.id, user)).copied().unwrap_or(0);
        let in_all = || counts.user.get(&user).map_or(0, |s| s.started());
        let limit = queue.conf.ujob_limit.map(u64::from);
        let of_queue = Room::left(limit, in_queue, pend::QUEUE_USER_JOB_LIMIT);
        of_queue.and(Room::left(max_jobs, in_all, pend::USER_JOB_LIMIT))
    }

    fn host(&self, class: &HostMatch, host: &HostNow) -> Room {
        let (view, queue) = (&class.view, class.queue);
        let counts = &view.state.counts;
        let all = Room::left(view.host_max(host.id), || host.used, pend::HOST_FULL);
        let of_user = || counts.host_user.get(&(host.id, class.kind.user)).copied().unwrap_or(0);
        let limit = view.site.hosts[host.id].jl_u.map(u64::from);
        let mut room = all.and(Room::left(limit, of_user, pend::HOST_USER));
        if queue.conf.hjob_limit.is_some() || queue.conf.pjob_limit.is_some() {
            let of_queue = counts.host_queue.get(&(host.id, queue.id)).copied().unwrap_or(0);
            let limit = queue.conf.hjob_limit.map(u64::from);
            room = room.and(Room::left(limit, || of_queue, pend::QUEUE_PER_HOST));
            let cpus = f64::from(view.hosts[host.id].ncpus());
            let limit = queue.conf.pjob_limit.map(|p| (p * cpus).ceil() as u64);
            room = room.and(Room::left(limit, || of_queue, pend::QUEUE_PER_CPU));
        }
        room
    }
}
