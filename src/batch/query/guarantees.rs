//! bresources -g and bsla: guaranteed pools and service classes as of now.

use crate::batch::Mbatchd;
use crate::batch::site::guarantees::{Pool, PoolId};
use crate::conf::types::{GoalKind, ServiceClassConf};
use crate::proto::limit_rows::{PoolInfo, PoolMember, ServiceClassInfo};

impl Mbatchd {
    /// Every pool, in the order of the file.
    pub(crate) fn pool_rows(&self) -> Vec<PoolInfo> {
        self.site.pools.iter().map(|(id, pool)| self.pool_row(id, pool)).collect()
    }

    fn pool_row(&self, id: PoolId, pool: &Pool) -> PoolInfo {
        let now = self.guarantees.now(id);
        let member = |(at, of): (usize, &(_, _))| PoolMember {
            class: self.site.service_classes.name(of.0).to_owned(),
            guaranteed: now.guaranteed[at],
            used: now.used[at],
        };
        let hosts = self.guarantees.hosts_of(&self.site, id);
        let hosts = hosts.iter().map(|host| self.site.hosts[*host].def.name.clone());
        let queues = pool.conf.loans.iter().flat_map(|loans| &loans.queues);
        PoolInfo {
            name: pool.conf.name.clone(),
            kind: if pool.of_hosts() { "hosts" } else { "slots" }.to_owned(),
            description: pool.conf.description.clone(),
            distribution: pool.conf.distribution_text.clone(),
            loans: pool.conf.loans.as_ref().map_or(String::new(), |loans| loans.text.clone()),
            borrowers: queues.map(|queue| queue.name.clone()).collect(),
            hosts_text: pool.conf.hosts_text.clone(),
            hosts: hosts.collect(),
            total: now.total,
            free: now.free,
            members: pool.members.iter().enumerate().map(member).collect(),
            others: self.guarantees.used_by_others(id),
        }
    }

    /// Every service class, in the order of the file; looks at every job where there are classes.
    pub(crate) fn service_class_rows(&self) -> Vec<ServiceClassInfo> {
        let classes = self.site.service_classes.iter();
        let mut rows: Vec<ServiceClassInfo> = classes.map(|(_, class)| row(class)).collect();
        if rows.is_empty() {
            return rows;
        }
        for job in self.state.each_job() {
            for part in 0..=job.parts().len() as u32 {
                let name = &*job.spec_of(part).further.service_class;
                let Some(row) = rows.iter_mut().find(|row| *row.name == *name) else { continue };
                let slots = job.slots_of(part);
                let own = [slots.all(), slots.pend, slots.run, slots.ssusp, slots.ususp];
                row.slots.iter_mut().zip(own).for_each(|(sum, n)| *sum += n);
                // elements of one array that were put into classes of their own count with it
                if part > 0 {
                    continue;
                }
                let t = &job.tally;
                let pend = t.pend + t.psusp;
                let (all, done) = (t.total - t.cleaned, t.done + t.exit);
                let own = [all, pend, t.run, t.ssusp, t.ususp, done];
                row.jobs.iter_mut().zip(own).for_each(|(sum, n)| *sum += u64::from(n));
            }
        }
        rows
    }
}

fn row(class: &ServiceClassConf) -> ServiceClassInfo {
    let goal = |kind| match kind {
        GoalKind::Deadline => "DEADLINE".to_owned(),
        GoalKind::Velocity(n) => format!("VELOCITY {n}"),
        GoalKind::Throughput(n) => format!("THROUGHPUT {n}"),
    };
    ServiceClassInfo {
        name: class.name.clone(),
        description: class.description.clone(),
        priority: class.priority,
        users: class.raw.get("USER_GROUP").map_or(String::new(), |value| value.text.clone()),
        access: class.access.text.clone(),
        auto_attach: class.auto_attach,
        guarantee: class.guarantee,
        goals: class.goals.iter().map(|of| (goal(of.kind), of.window.clone())).collect(),
        ..ServiceClassInfo::default()
    }
}
