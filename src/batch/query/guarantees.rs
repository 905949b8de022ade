//! bresources -g and bsla: guaranteed pools and service classes as of now.

use crate::batch::Mbatchd;
use crate::batch::site::guarantees::{Pool, PoolId};
use crate::batch::site::service_classes::ServiceClassId;
use crate::batch::usage::service_goals::GoalNow;
use crate::conf::types::{GoalConf, GoalKind, ServiceClassConf};
use crate::proto::limit_rows::{GoalInfo, PoolInfo, PoolMember, ServiceClassInfo};

impl Mbatchd {
    /// Every pool, in the order of the file.
    pub(crate) fn pool_rows(&self) -> Vec<PoolInfo> {
        self.site.pools.iter().map(|(id, pool)| self.pool_row(id, pool)).collect()
    }

    fn pool_row(&self, id: PoolId, pool: &Pool) -> PoolInfo {
        let now = self.guarantees.now(id);
        // of a resource, a unit that is used in part is used
        let parts = pool.parts();
        let member = |(at, of): (usize, &(_, _))| PoolMember {
            class: self.site.service_classes.name(of.0).to_owned(),
            guaranteed: now.guaranteed[at] / parts,
            used: now.used[at].div_ceil(parts),
        };
        let hosts = self.guarantees.hosts_of(&self.site, id);
        let hosts = hosts.iter().map(|host| self.site.hosts[*host].def.name.clone());
        let queues = pool.conf.loans.iter().flat_map(|loans| &loans.queues);
        PoolInfo {
            name: pool.conf.name.clone(),
            kind: pool.conf.raw.get("TYPE").map_or(String::new(), |value| value.text.clone()),
            description: pool.conf.description.clone(),
            distribution: pool.conf.distribution_text.clone(),
            loans: pool.conf.loans.as_ref().map_or(String::new(), |loans| loans.text.clone()),
            borrowers: queues.map(|queue| queue.name.clone()).collect(),
            hosts_text: pool.conf.hosts_text.clone(),
            hosts: hosts.collect(),
            total: now.total / parts,
            free: now.free / parts,
            members: pool.members.iter().enumerate().map(member).collect(),
            others: self.guarantees.used_by_others(id).div_ceil(parts),
            package: self.guarantees.package_use(&self.site, &self.reserve, id),
        }
    }

    /// Every service class, in the order of the file.
    pub(crate) fn service_class_rows(&self) -> Vec<ServiceClassInfo> {
        self.site.service_classes.iter().map(|(id, class)| self.class_row(id, class)).collect()
    }

    fn class_row(&self, id: ServiceClassId, class: &ServiceClassConf) -> ServiceClassInfo {
        let tally = self.goals.jobs().tally(id);
        let slots = tally.slots;
        let goals = class.goals.iter().zip(self.goals.goals(id));
        ServiceClassInfo {
            name: class.name.clone(),
            description: class.description.clone(),
            priority: class.priority,
            users: class.raw.get("USER_GROUP").map_or(String::new(), |value| value.text.clone()),
            access: class.access.text.clone(),
            auto_attach: class.auto_attach,
            guarantee: class.guarantee,
            goals: goals.map(|(conf, now)| goal_row(conf, now)).collect(),
            jobs: tally.jobs,
            slots: [slots.all(), slots.pend, slots.run, slots.ssusp, slots.ususp],
        }
    }
}

fn goal_row(conf: &GoalConf, now: &GoalNow) -> GoalInfo {
    let words = match conf.kind {
        GoalKind::Deadline => "DEADLINE".to_owned(),
        GoalKind::Velocity(n) => format!("VELOCITY {n}"),
        GoalKind::Throughput(n) => format!("THROUGHPUT {n}"),
    };
    let velocity = matches!(conf.kind, GoalKind::Velocity(_));
    GoalInfo {
        words,
        window: conf.window.clone(),
        active: now.active,
        on_time: now.on_time,
        finish: now.finish,
        optimum: (now.active && !velocity).then_some(now.optimum),
    }
}
