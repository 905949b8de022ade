//! blimits and bresources: the limits of lsb.resources, and what is used under them.

use crate::batch::site::rules::{Counter, LimitedQuantity, Member, RESOURCE_PARTS, Rule};
use crate::batch::state::names::{
    ApplicationId, HostId, LicenseProjectId, ProjectId, QueueId, UserId,
};
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::{LimitConf, LimitMembers, LimitNumber, Limited, UserTerm};
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::ClientMsg;
use crate::proto::limit_rows::{LimitInfo, LimitListing, LimitQuery, LimitUsage, LimitedUse};
use crate::proto::machine::ConnId;
use std::collections::BTreeMap;

/// Keywords in the order of a listing.
const ORDER: [&str; 26] = [
    "NAME",
    "USERS",
    "PER_USER",
    "QUEUES",
    "PER_QUEUE",
    "HOSTS",
    "PER_HOST",
    "PROJECTS",
    "PER_PROJECT",
    "APPS",
    "PER_APP",
    "LIC_PROJECTS",
    "PER_LIC_PROJECT",
    "CLUSTERS",
    "PER_CLUSTER",
    "SLOTS",
    "SLOTS_PER_PROCESSOR",
    "MEM",
    "TMP",
    "SWP",
    "JOBS",
    "RESOURCE",
    "ELIGIBLE_PEND_JOBS",
    "FWD_SLOTS",
    "JOBS_PER_SCHED_CYCLE",
    "INELIGIBLE",
];

/// The amounts of a limit that one member has for itself, by their rules.
type Amounts<'a> = BTreeMap<u32, (&'a Rule, Counter, u64)>;

impl Mbatchd {
    pub(crate) fn list_limits(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        query: &LimitQuery,
    ) {
        if let Some(refusal) = self.unknown_in(query) {
            return context.refuse(conn, refusal);
        }
        let mut listing = LimitListing::default();
        let resources = &self.site.conf.batch.resources;
        let used = self.limits.counters(&self.site);
        for (position, limit) in resources.limits.iter().enumerate() {
            if !query.names.is_empty() && !query.names.contains(&limit.name) {
                continue;
            }
            let mut rows = self.uses(position as u32, limit, &used, query.all);
            rows.retain(|row| self.is_asked_for(limit, row, query));
            let configured = self.unused(limit);
            if self.is_asked_for(limit, &configured, query) {
                listing.limits.push(info(limit));
            }
            listing.rows.append(&mut rows);
        }
        listing.reservation_usage = resources
            .reservation_usage
            .iter()
            .map(|row| (row.resource.clone(), row.method.clone(), row.reserve.clone()))
            .collect();
        listing.pools = self.pool_rows();
        listing.service_classes = self.service_class_rows();
        context.reply(conn, ClientMsg::LimitRows(Box::new(listing)));
    }

    /// A name of the query that stands for nothing.
    fn unknown_in(&self, query: &LimitQuery) -> Option<Refusal> {
        let limits = &self.site.conf.batch.resources.limits;
        let limit = |name: &&String| !limits.iter().any(|limit| limit.name == **name);
        if let Some(bad) = query.names.iter().find(limit) {
            return Some(Refusal::about(err::NO_LIMIT, bad));
        }
        if let Some(bad) = query.queues.iter().find(|name| self.site.find_queue(name).is_none()) {
            return Some(Refusal::about(err::BAD_QUEUE, bad));
        }
        let host = |name: &&String| self.site.expand_servers(name).is_empty();
        if let Some(bad) = query.hosts.iter().find(host) {
            return Some(Refusal::about(err::BAD_HOST, bad));
        }
        let app = |name: &&String| self.site.applications.get(name).is_none();
        query.apps.iter().find(app).map(|bad| Refusal::about(err::NO_APP, bad))
    }

    /// The rows of a limit: one for all who have its amount together.
    fn uses(
        &self,
        position: u32,
        limit: &LimitConf,
        used: &BTreeMap<Counter, u64>,
        all: bool,
    ) -> Vec<LimitUsage> {
        let mut by_member: BTreeMap<Member, Amounts> = BTreeMap::new();
        for (number, (id, rule)) in self.site.rules.iter().enumerate() {
            if rule.limit != Some(position) {
                continue;
            }
            for (counter, n) in used.iter().filter(|(counter, _)| counter.rule == id) {
                let amounts = by_member.entry(counter.member).or_default();
                amounts.insert(number as u32, (rule, *counter, *n));
            }
        }
        let row = |(member, amounts): (&Member, &Amounts)| {
            let mut row = self.members_shown(limit, member);
            row.amounts = limit
                .amounts
                .iter()
                .filter_map(|amount| {
                    let own = amounts.values().find(|(rule, ..)| rule.pos == amount.pos);
                    let (rule, counter, n) = own.copied().or_else(|| {
                        // of another amount of this member nothing is used
                        let (id, rule) = self.site.rules.iter().find(|(_, rule)| {
                            rule.limit == Some(position) && rule.pos == amount.pos
                        })?;
                        Some((rule, Counter { rule: id, member: *member }, 0))
                    })?;
                    Some(self.amount_shown(rule, counter, n))
                })
                .collect();
            row
        };
        let mut rows: Vec<LimitUsage> = by_member.iter().map(row).collect();
        if rows.is_empty() && all {
            rows.push(self.unused(limit));
        }
        rows
    }

    /// The row of a limit under which nothing is used.
    fn unused(&self, limit: &LimitConf) -> LimitUsage {
        let unit = self.site.conf.base.lsf.requirement_unit_mb();
        let mut row = configured(limit);
        for amount in &limit.amounts {
            let of_size = matches!(amount.what, Limited::Mem | Limited::Tmp | Limited::Swp);
            let limit = match amount.number {
                LimitNumber::Fixed(n) if of_size => n / unit,
                LimitNumber::Fixed(n) | LimitNumber::PerProcessor(n) => n,
                LimitNumber::Percent(n) => n,
            };
            let (what, external) = name_of(&amount.what);
            let percent = matches!(amount.number, LimitNumber::Percent(_));
            let what = if percent { format!("{what}%") } else { what };
            row.amounts.push(LimitedUse { what, external, used: 0.0, limit });
        }
        row
    }

    /// A limit with the member that has its amount for itself.
    fn members_shown(&self, limit: &LimitConf, member: &Member) -> LimitUsage {
        let (names, others) = (self.state.names(), self.site.rules.consumer_names());
        let mut row = configured(limit);
        if member.user != UserId::MAX {
            row.users = names.user(member.user).to_string();
        }
        if member.queue != QueueId::MAX {
            row.queues = names.queue(member.queue).to_string();
        }
        if member.host != HostId::MAX {
            row.hosts = names.host(member.host).to_string();
        }
        if member.project != ProjectId::MAX {
            row.projects = others.project(member.project).to_string();
        }
        if member.application != ApplicationId::MAX {
            row.apps = others.application(member.application).to_string();
        }
        if member.license_project != LicenseProjectId::MAX {
            row.lic_projects = others.license_project(member.license_project).to_string();
        }
        row
    }

    fn amount_shown(&self, rule: &Rule, counter: Counter, n: u64) -> LimitedUse {
        let allowed = self.view().allowed(rule, counter.member.host);
        let unit = self.site.conf.base.lsf.requirement_unit_mb();
        let (what, external) = match rule.what {
            LimitedQuantity::Slots | LimitedQuantity::Jobs => (rule.name.to_owned(), false),
            LimitedQuantity::Resource(id) => match id.load_index() {
                Some(_) => (rule.name.to_owned(), false),
                None => (self.site.resource_told(rule.reason).to_owned(), true),
            },
        };
        let of_size = matches!(rule.what, LimitedQuantity::Resource(_)) && !external;
        let percent = matches!(rule.amount, crate::batch::site::rules::Amount::Percent(_));
        let shown = |n: u64| match rule.what {
            LimitedQuantity::Slots | LimitedQuantity::Jobs => n as f64,
            // percentages are shown in MB
            _ if of_size && !percent => n as f64 / RESOURCE_PARTS / unit,
            _ => n as f64 / RESOURCE_PARTS,
        };
        LimitedUse { what, external, used: shown(n), limit: shown(allowed) }
    }

    /// Does a row concern all that a query names?
    fn is_asked_for(&self, limit: &LimitConf, row: &LimitUsage, query: &LimitQuery) -> bool {
        let user = |name: &String| {
            let member = row.users == *name;
            member || each_or(&limit.users, &row.users, |words| self.means_user(words, name))
        };
        let queue = |name: &String| listed(&limit.queues, &row.queues, name);
        let host = |name: &String| {
            let asked = self.site.expand_servers(name);
            let of_row = each_or(&limit.hosts, &row.hosts, |words| {
                words.iter().filter(|word| !word.exclude).any(|word| {
                    word.name == *name
                        || self.site.expand_servers(&word.name).intersection(&asked).count() > 0
                })
            });
            let own = self.site.host_id(&row.hosts);
            of_row || own.is_some_and(|host| asked.contains(&host))
        };
        let project = |name: &String| listed(&limit.projects, &row.projects, name);
        let app = |name: &String| listed(&limit.apps, &row.apps, name);
        let lic_project = |name: &String| listed(&limit.lic_projects, &row.lic_projects, name);
        let any = |names: &[String], hit: &dyn Fn(&String) -> bool| {
            names.is_empty() || names.iter().any(hit)
        };
        any(&query.users, &user)
            && any(&query.queues, &queue)
            && any(&query.hosts, &host)
            && any(&query.projects, &project)
            && any(&query.apps, &app)
            && any(&query.lic_projects, &lic_project)
    }

    /// Do these words mean a user, or name a group?
    fn means_user(&self, words: &[UserTerm], name: &str) -> bool {
        words.iter().any(|word| !word.exclude && word.name == name)
            || self.site.user_in(words, name, None)
    }
}

/// Is a row about what these words mean, not about one member alone?
fn each_or(
    members: &Option<LimitMembers>,
    shown: &str,
    means: impl FnOnce(&[UserTerm]) -> bool,
) -> bool {
    members.as_ref().is_some_and(|members| members.text == shown && means(&members.words))
}

/// Is a row about a name of a list that is no group?
fn listed(members: &Option<LimitMembers>, shown: &str, name: &str) -> bool {
    let means = |words: &[UserTerm]| {
        let of = |exclude: bool| {
            words
                .iter()
                .any(|word| word.exclude == exclude && (word.name == name || word.name == "all"))
        };
        of(false) && !of(true)
    };
    shown == name || each_or(members, shown, means)
}

fn configured(limit: &LimitConf) -> LimitUsage {
    let text = |members: &Option<LimitMembers>| {
        members.as_ref().map_or(String::new(), |members| members.text.clone())
    };
    LimitUsage {
        name: limit.name.clone(),
        users: text(&limit.users),
        queues: text(&limit.queues),
        hosts: text(&limit.hosts),
        projects: text(&limit.projects),
        apps: text(&limit.apps),
        lic_projects: text(&limit.lic_projects),
        amounts: Vec::new(),
        ineligible: limit.ineligible,
    }
}

fn name_of(what: &Limited) -> (String, bool) {
    match what {
        Limited::Slots => ("SLOTS".to_owned(), false),
        Limited::Mem => ("MEM".to_owned(), false),
        Limited::Tmp => ("TMP".to_owned(), false),
        Limited::Swp => ("SWP".to_owned(), false),
        Limited::Jobs => ("JOBS".to_owned(), false),
        Limited::Resource(name) => (name.clone(), true),
    }
}

fn info(limit: &LimitConf) -> LimitInfo {
    let pair = |name: &&str| match *name {
        "NAME" => Some(("NAME".to_owned(), limit.name.clone())),
        _ => limit.raw.get(*name).map(|value| ((*name).to_owned(), value.text.clone())),
    };
    LimitInfo { name: limit.name.clone(), params: ORDER.iter().filter_map(pair).collect() }
}
