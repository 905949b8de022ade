//! Checks of service classes and guaranteed pools against the names that other files define.

use super::check::unknown_host;
use super::diag::{Diags, Severity};
use super::lexer::shown;
use super::names::nearest;
use super::types::{ClusterConf, GuaranteedPoolConf, PoolType, ServiceClassConf, UserTerm};

/// Looks up every name.
pub(super) fn check(conf: &ClusterConf, diags: &mut Diags) {
    conf.batch.service_classes.iter().for_each(|class| service_class(conf, class, diags));
    conf.batch.resources.pools.iter().for_each(|pool| guaranteed_pool(conf, pool, diags));
}

fn service_class(conf: &ClusterConf, class: &ServiceClassConf, diags: &mut Diags) {
    let at = class.raw.get("NAME").map_or(&class.pos, |value| &value.pos);
    let is_partition = conf.batch.hosts.partitions.iter().any(|p| p.name == class.name);
    let is_group = conf.batch.users.groups.iter().any(|g| g.name == class.name);
    for (is, what) in [(is_partition, "host partition"), (is_group, "user group")] {
        if is {
            let text = format!("<{}> is also the name of a {what}", shown(&class.name));
            diags.error(at, text);
        }
    }
    queues(conf, &class.access.queues, diags);
    let apps: Vec<&str> = conf.batch.applications.iter().map(|a| a.name.as_str()).collect();
    listed(&class.access.apps, "an application profile", &apps, diags);
    let groups: Vec<&str> = conf.batch.users.groups.iter().map(|g| g.name.as_str()).collect();
    listed(&class.access.fairshare_groups, "a user group", &groups, diags);
}

fn queues(conf: &ClusterConf, words: &[UserTerm], diags: &mut Diags) {
    let queues: Vec<&str> = conf.batch.queues.iter().map(|queue| queue.name.as_str()).collect();
    listed(words, "a queue", &queues, diags);
}

fn listed(words: &[UserTerm], kind: &str, all: &[&str], diags: &mut Diags) {
    for word in words.iter().filter(|word| word.name != "all" && !all.contains(&&*word.name)) {
        let near = nearest(&word.name, all.iter().copied());
        let text = format!("<{}> is not {kind}", shown(&word.name));
        diags.add_near(Severity::Error, &word.pos, text, near);
    }
}

fn guaranteed_pool(conf: &ClusterConf, pool: &GuaranteedPoolConf, diags: &mut Diags) {
    for host in pool.hosts.iter().filter(|host| !conf.host_known(&host.name)) {
        if host.cluster.is_none() && host.name != "allremote" {
            unknown_host(conf, &host.name, &host.pos, diags);
        }
    }
    let classes = &conf.batch.service_classes;
    for guarantee in &pool.distribution {
        let (name, pos) = (&guarantee.class.text, &guarantee.class.pos);
        match classes.iter().find(|class| class.name == *name) {
            Some(class) if class.guarantee => {}
            Some(_) => {
                let text = format!("service class <{}> has not the goal GUARANTEE", shown(name));
                diags.error(pos, text);
            }
            None => {
                let near = nearest(name, classes.iter().map(|class| class.name.as_str()));
                let text = format!("<{}> is not a service class", shown(name));
                diags.add_near(Severity::Error, pos, text, near);
            }
        }
    }
    let borrowers = pool.loans.iter().flat_map(|loans| &loans.queues);
    let named: Vec<UserTerm> = borrowers.filter(|q| q.name != "allnonsla").cloned().collect();
    queues(conf, &named, diags);
    if let Some(value) = pool.raw.get("SLOTS_PER_HOST").filter(|_| pool.kind != PoolType::Slots) {
        diags.warning(&value.pos, "SLOTS_PER_HOST has no effect but in a pool of slots");
    }
    for name in ["HOSTS", "RES_SELECT"] {
        let of_resource = matches!(pool.kind, PoolType::Resource(_));
        if let Some(value) = pool.raw.get(name).filter(|_| of_resource) {
            diags.warning(&value.pos, format!("{name} has no effect in a pool of a resource"));
        }
    }
}
