//! The names in the limits and reservation methods of lsb.resources: queues, hosts, application
//! profiles and resources that other files define. Users and projects need no definition.

use super::check::unknown_host;
use super::diag::{Diags, Severity};
use super::lexer::shown;
use super::names::{LOAD_INDICES, nearest};
use super::types::{ClusterConf, LimitConf, LimitMembers, Limited, ResourceKind, UserTerm};

/// Looks up every name of every limit.
pub(super) fn known(conf: &ClusterConf, diags: &mut Diags) {
    for limit in &conf.batch.resources.limits {
        let queues = conf.batch.queues.iter().map(|queue| queue.name.as_str());
        listed(&limit.queues, "a queue", &queues.collect::<Vec<_>>(), diags);
        let apps = conf.batch.applications.iter().map(|app| app.name.as_str());
        listed(&limit.apps, "an application profile", &apps.collect::<Vec<_>>(), diags);
        hosts(conf, limit, diags);
        resources(conf, limit, diags);
    }
    let all = &conf.base.shared.resources;
    for row in &conf.batch.resources.reservation_usage {
        let name = row.resource.as_str();
        if !LOAD_INDICES.contains(&name) && !all.iter().any(|resource| resource.name == name) {
            let near = nearest(name, all.iter().map(|r| r.name.as_str()));
            // the rest of the file is of use without the row
            let text = format!("<{}> is not a resource of lsf.shared; ignored", shown(name));
            diags.add_near(Severity::Warning, &row.pos, text, near);
        }
    }
}

fn named(members: &Option<LimitMembers>) -> impl Iterator<Item = &UserTerm> {
    members.iter().flat_map(|members| &members.words).filter(|word| word.name != "all")
}

fn listed(members: &Option<LimitMembers>, kind: &str, all: &[&str], diags: &mut Diags) {
    for word in named(members).filter(|word| !all.contains(&word.name.as_str())) {
        let near = nearest(&word.name, all.iter().copied());
        let text = format!("<{}> is not {kind}", shown(&word.name));
        diags.add_near(Severity::Error, &word.pos, text, near);
    }
}

fn hosts(conf: &ClusterConf, limit: &LimitConf, diags: &mut Diags) {
    for word in named(&limit.hosts).filter(|word| !conf.host_known(&word.name)) {
        unknown_host(conf, &word.name, &word.pos, diags);
    }
}

fn resources(conf: &ClusterConf, limit: &LimitConf, diags: &mut Diags) {
    let all = &conf.base.shared.resources;
    for amount in &limit.amounts {
        let Limited::Resource(name) = &amount.what else { continue };
        match all.iter().find(|resource| resource.name == *name) {
            Some(resource) if resource.kind == ResourceKind::Numeric => {}
            Some(_) => {
                let text =
                    format!("resource <{}> is not numeric: nothing of it is used", shown(name));
                diags.error(&amount.pos, text);
            }
            None => {
                let near = nearest(name, all.iter().map(|r| r.name.as_str()));
                let text = format!("<{}> is not a resource of lsf.shared", shown(name));
                diags.add_near(Severity::Error, &amount.pos, text, near);
            }
        }
    }
}
