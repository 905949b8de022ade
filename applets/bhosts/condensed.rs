//! Host groups and compute units with CONDENSE of lsb.hosts(5), in place of their hosts.

use lsf::proto::client::HostInfo;
use std::borrow::Cow;
use std::collections::HashMap;

/// How many hosts of a group have which status.
#[derive(Clone, Copy, Debug, Default)]
struct Statuses {
    ok: usize,
    unavail: usize,
    unreach: usize,
    busy: usize,
    /// Hosts that accept no jobs, busy ones among them.
    closed: usize,
}

impl Statuses {
    fn add(&mut self, status: &str) {
        let of = match status {
            "ok" => &mut self.ok,
            "unavail" => &mut self.unavail,
            "unreach" => &mut self.unreach,
            _ => &mut self.closed,
        };
        *of += 1;
        self.busy += usize::from(status == "closed_Busy");
    }

    /// `ok` where a host accepts jobs, else `closed` where one is closed; -w: with the numbers of
    /// hosts that are ok, unavail, unreach and busy.
    fn words(self, wide: bool) -> String {
        let word = match self {
            Statuses { ok: 1.., .. } => "ok",
            Statuses { closed: 1.., .. } => return "closed".to_owned(),
            Statuses { unreach: 1.., .. } => "unreach",
            _ => "unavail",
        };
        match wide {
            true => {
                let Statuses { ok, unavail, unreach, busy, .. } = self;
                format!("{word} {ok}/{unavail}/{unreach}/{busy}")
            }
            false => word.to_owned(),
        }
    }
}

/// The rows with each condensed group in the place of the first of its hosts. Hosts that were
/// `named` themselves stay.
pub fn rows<'a>(hosts: &'a [HostInfo], named: &[String], wide: bool) -> Cow<'a, [HostInfo]> {
    if hosts.iter().all(|host| host.condensed.is_empty()) {
        return Cow::Borrowed(hosts);
    }
    let mut shown: Vec<HostInfo> = Vec::new();
    let mut groups: HashMap<&str, (usize, Statuses)> = HashMap::new();
    for host in hosts {
        if host.condensed.is_empty() || named.contains(&host.name) {
            shown.push(host.clone());
            continue;
        }
        for name in &host.condensed {
            let (at, statuses) = groups.entry(name).or_insert_with(|| {
                let none = HostInfo { jl_u: Some(0), max: Some(0), ..HostInfo::default() };
                shown.push(HostInfo { name: name.clone(), ..none });
                (shown.len() - 1, Statuses::default())
            });
            statuses.add(&host.status);
            if let Some(row) = shown.get_mut(*at) {
                add(row, host);
            }
        }
    }
    for (at, statuses) in groups.into_values() {
        shown[at].status = statuses.words(wide);
    }
    Cow::Owned(shown)
}

/// Adds the slots of a host; one without a limit leaves the group without.
fn add(row: &mut HostInfo, host: &HostInfo) {
    let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    (row.jl_u, row.max) = (sum(row.jl_u, host.jl_u), sum(row.max, host.max));
    let HostInfo { njobs, run, ssusp, ususp, rsv, .. } = row;
    let more = [host.njobs, host.run, host.ssusp, host.ususp, host.rsv];
    for (sum, n) in [njobs, run, ssusp, ususp, rsv].into_iter().zip(more) {
        *sum = sum.saturating_add(n);
    }
}
