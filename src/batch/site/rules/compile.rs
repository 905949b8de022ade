//! Compiles the limits of lsb.queues, lsb.users, lsb.hosts and lsb.resources to rules.

pub use super::limits::Lookup;
use super::limits::of_limit;
use super::{
    Amount, ConsumerNames, Hosts, JL_U, LimitedQuantity, MXJ, Members, Rule, Rules, Scope,
};
use super::{Set, Users};
use crate::batch::state::names::{HostId, HostSet, QueueId};
use crate::conf::Pos;
use crate::conf::types::{BatchConf, BatchUsers, HostPolicy, Mxj, QueueConf, UserPolicy, UserTerm};
use crate::model::reason::PendReason;
use std::collections::HashMap;

/// A row of section Host of lsb.hosts, or the defaults of hosts without one, and the hosts to which
/// it applies.
#[derive(Debug)]
struct HostRow {
    mxj: Mxj,
    jl_u: Option<u32>,
    pos: Pos,
    hosts: HostSet,
}

/// The rows of lsb.hosts that apply to some host.
#[derive(Debug, Default)]
pub struct HostRows {
    rows: Vec<HostRow>,
    /// Positions by the name of the row.
    positions: HashMap<String, usize>,
}

impl HostRows {
    /// A row applies to a host.
    pub fn add(&mut self, row: &HostPolicy, host: HostId) {
        let rows = &mut self.rows;
        let position = self.positions.entry(row.name.clone()).or_insert_with(|| {
            let (pos, hosts) = (row.pos.clone(), HostSet::default());
            rows.push(HostRow { mxj: row.mxj, jl_u: row.jl_u, pos, hosts });
            rows.len() - 1
        });
        rows[*position].hosts.insert(host);
    }
}

impl Rules {
    /// The rules of a configuration, in the order in which they name their reasons.
    pub fn compile<'a>(
        queues: impl Iterator<Item = (QueueId, &'a QueueConf)>,
        conf: &BatchConf,
        hosts: &HostRows,
        lookup: &Lookup,
    ) -> Rules {
        let mut all: Vec<Rule> = Vec::new();
        let ignored = IgnoredSuspensions::new(conf);
        hosts.rows.iter().for_each(|row| of_hosts(row, &ignored, &mut all));
        queues.for_each(|(id, conf)| of_queue(id, conf, &mut all));
        let rows = conf.users.users.iter().enumerate();
        rows.for_each(|(position, row)| of_user((position, row), &conf.users, &ignored, &mut all));
        if !conf.params.scheduler.user_groups.default_skips_groups {
            of_other_groups(&conf.users, &ignored, &mut all);
        }
        let mut names = ConsumerNames::default();
        names.looks_at_user_groups = conf.params.scheduler.user_groups.one_group_limits;
        for (position, limit) in conf.resources.limits.iter().enumerate() {
            of_limit(position as u32, limit, (lookup, &names), &mut all);
        }
        Rules::of(all, names)
    }
}

/// The limits under which preempted jobs do not count.
struct IgnoredSuspensions {
    max_jobs: bool,
    max_jobs_of_groups: bool,
    jl_p: bool,
    jl_p_of_groups: bool,
    jl_u: bool,
}

impl IgnoredSuspensions {
    fn new(conf: &BatchConf) -> IgnoredSuspensions {
        let some = |queue: &QueueConf| {
            let of = &queue.preemption;
            of.preemptive.is_some() || of.preemptable.is_some()
        };
        let (preempts, words) = (conf.queues.iter().any(some), &conf.params.preemption);
        IgnoredSuspensions {
            // of users, whether asked or not
            max_jobs: preempts,
            max_jobs_of_groups: preempts && words.group_max,
            jl_p: preempts && words.user_jlp,
            jl_p_of_groups: preempts && words.group_jlp,
            jl_u: preempts && words.host_jlu,
        }
    }
}

fn rule(name: &'static str, scope: Scope, amount: Amount, reason: PendReason, pos: &Pos) -> Rule {
    let (what, with_given_up, pos) = (LimitedQuantity::Slots, false, pos.clone());
    let (limit, ineligible, ignores_preempted) = (None, false, false);
    Rule {
        name,
        scope,
        what,
        amount,
        reason,
        with_given_up,
        ignores_preempted,
        pos,
        limit,
        ineligible,
    }
}

fn fixed(n: u32) -> Amount {
    Amount::Fixed(n.into())
}

/// MXJ and JL/U.
fn of_hosts(row: &HostRow, ignored: &IgnoredSuspensions, all: &mut Vec<Rule>) {
    let hosts = || Members::Each(Hosts::These(row.hosts.clone()));
    let slots = match row.mxj {
        Mxj::Unlimited => None,
        Mxj::Slots(n) => Some(fixed(n)),
        Mxj::Cpus => Some(Amount::PerProcessor(1.0)),
    };
    if let Some(amount) = slots {
        let scope = Scope { hosts: hosts(), ..Scope::default() };
        let rule = rule(MXJ, scope, amount, PendReason::HostFull, &row.pos);
        all.push(Rule { with_given_up: true, ..rule });
    }
    if let Some(n) = row.jl_u {
        let users = Members::Each(Users::Any);
        let scope = Scope { users, hosts: hosts(), ..Scope::default() };
        let rule = rule(JL_U, scope, fixed(n), PendReason::HostUserLimit, &row.pos);
        all.push(Rule { ignores_preempted: ignored.jl_u, ..rule });
    }
}

/// QJOB_LIMIT, UJOB_LIMIT, HJOB_LIMIT and PJOB_LIMIT.
fn of_queue(id: QueueId, conf: &QueueConf, all: &mut Vec<Rule>) {
    let mut add = |name, limit: Option<Amount>, users, hosts, reason| {
        let queues = Members::Shared(Set::These([id].into()));
        let scope = Scope { users, queues, hosts, ..Scope::default() };
        all.extend(limit.map(|amount| rule(name, scope, amount, reason, &conf.pos)));
    };
    let (each_user, each_host) = (Members::Each(Users::Any), || Members::Each(Hosts::Any));
    let all_hosts = || Members::All;
    let in_all = conf.qjob_limit.map(fixed);
    add("QJOB_LIMIT", in_all, Members::All, all_hosts(), PendReason::QueueJobLimit);
    let of_user = conf.ujob_limit.map(fixed);
    add("UJOB_LIMIT", of_user, each_user, all_hosts(), PendReason::QueueUserJobLimit);
    let of_host = conf.hjob_limit.map(fixed);
    add("HJOB_LIMIT", of_host, Members::All, each_host(), PendReason::QueueHostLimit);
    let of_processor = conf.pjob_limit.map(Amount::PerProcessor);
    add("PJOB_LIMIT", of_processor, Members::All, each_host(), PendReason::QueueCpuLimit);
}

/// MAX_JOBS and JL/P of the row default, for each user group that has no row.
fn of_other_groups(users: &BatchUsers, ignored: &IgnoredSuspensions, all: &mut Vec<Rule>) {
    let rows = &users.users;
    let Some(default) = rows.iter().find(|row| row.name == "default" && !row.each_member) else {
        return;
    };
    for group in &users.groups {
        if rows.iter().all(|row| row.name != group.name) {
            let name = group.name.clone();
            let row = UserPolicy { name, ..default.clone() };
            of_user((usize::MAX, &row), users, ignored, all);
        }
    }
}

/// MAX_JOBS and JL/P: of a user, of each member of a group (`group@`), or of a group as a whole.
fn of_user(
    (position, row): (usize, &UserPolicy),
    users: &BatchUsers,
    ignored: &IgnoredSuspensions,
    all: &mut Vec<Rule>,
) {
    let is_group = |name: &str| users.groups.iter().any(|group| group.name == name);
    let whole = !row.each_member && is_group(&row.name);
    let members = || match whole {
        true => {
            let word = UserTerm { name: row.name.clone(), ..UserTerm::default() };
            Members::Shared(Users::Named(vec![word]))
        }
        false => Members::Each(Users::Row(position)),
    };
    let [slots, of_cpu] = match whole {
        true => [PendReason::GroupJobLimit, PendReason::GroupCpuLimit],
        false => [PendReason::UserJobLimit, PendReason::UserCpuLimit],
    };
    let [in_all, on_host] = match whole {
        true => [ignored.max_jobs_of_groups, ignored.jl_p_of_groups],
        false => [ignored.max_jobs, ignored.jl_p],
    };
    if let Some(n) = row.max_jobs {
        let scope = Scope { users: members(), ..Scope::default() };
        let rule = rule("MAX_JOBS", scope, fixed(n), slots, &row.pos);
        all.push(Rule { ignores_preempted: in_all, ..rule });
    }
    if let Some(n) = row.jl_p {
        let hosts = Members::Each(Hosts::Any);
        let scope = Scope { users: members(), hosts, ..Scope::default() };
        let amount = Amount::PerProcessor(n);
        let rule = rule("JL/P", scope, amount, of_cpu, &row.pos);
        all.push(Rule { ignores_preempted: on_host, ..rule });
    }
}
