//! LSF_BIND_JOB and BIND_JOB: the processors that a job on this host alone is bound to. See
//! lsf.conf(5).
//!
//! The list is kept in the start order of the attempt, which lies with the launcher: an sbatchd
//! that starts again knows how many jobs are bound to each processor.

use crate::exec::plan::{HostEnvironment, value};
use crate::model::bind_job::BindPolicy;
use crate::model::topology::{CpuSet, Topology, Unit};
use crate::proto::sbd::StartJob;

/// Longest LSB_USER_BIND_CPU_LIST, bytes.
const MAX_LIST: usize = 4096;

/// The processors of a job of so many slots, where jobs are bound to these sets of them already.
fn chosen(policy: BindPolicy, host: &Topology, taken: &[CpuSet], slots: usize) -> CpuSet {
    let cpus = host.cpus();
    let place = |unit, position: usize| host.unit_of(unit, position as u32) as usize;
    let mut own = vec![0_u32; cpus.len()];
    let [mut cores, mut sockets] =
        [Unit::Core, Unit::Socket].map(|unit| vec![0_u32; host.count(unit) as usize]);
    let add = |own: &mut [u32], cores: &mut [u32], sockets: &mut [u32], at: usize| {
        own[at] += 1;
        cores[place(Unit::Core, at)] += 1;
        sockets[place(Unit::Socket, at)] += 1;
    };
    for (position, cpu) in cpus.iter().enumerate() {
        for _ in taken.iter().filter(|set| set.contains(cpu.number)) {
            add(&mut own, &mut cores, &mut sockets, position);
        }
    }
    let mut all = CpuSet::default();
    for _ in 0..slots.min(cpus.len()) {
        let left = (0..cpus.len()).filter(|at| !all.contains(cpus[*at].number));
        let next = left.min_by_key(|at| {
            let [core, socket] = [cores[place(Unit::Core, *at)], sockets[place(Unit::Socket, *at)]];
            match policy {
                BindPolicy::Pack => (own[*at], u32::MAX - core, u32::MAX - socket, *at as u32),
                BindPolicy::Any => (own[*at], 0, 0, cpus[*at].number),
                _ => (own[*at], core, socket, *at as u32),
            }
        });
        let Some(next) = next else { break };
        add(&mut own, &mut cores, &mut sockets, next);
        all.insert(cpus[next].number);
    }
    all
}

/// The processors of a user's list that the host has, each once: the start of every further job
/// reads the lists of all that run. A list without any, and a text that is no list, stays as it is,
/// for the starter to tell.
fn on_host(list: &str, host: &Topology) -> String {
    let named = CpuSet::parse(list).unwrap_or_default();
    let numbers = host.cpus().iter().map(|cpu| cpu.number);
    let known: CpuSet = numbers.filter(|number| named.contains(*number)).collect();
    if known.is_empty() { list.to_owned() } else { known.to_string() }
}

/// The policy of a job and the list of its processors, both empty where it is not bound; `taken`:
/// the lists of the other jobs of this host.
pub(super) fn bound<'a>(
    site: &HostEnvironment,
    order: &StartJob,
    user_env: &[u8],
    taken: impl Iterator<Item = &'a str>,
) -> (String, String) {
    let none = (String::new(), String::new());
    let policy = BindPolicy::of_word(&order.bind_job).unwrap_or(site.bind_job);
    // affinity[] binds by itself, and a job on several hosts is not bound
    if policy == BindPolicy::None || order.hosts.len() > 1 || !order.affinity.is_empty() {
        return none;
    }
    let of_user = |name: &str| {
        value(user_env, name).map(|text| String::from_utf8_lossy(text).trim().to_owned())
    };
    let policy = match policy {
        BindPolicy::UserCpuList => {
            let list = of_user("LSB_USER_BIND_CPU_LIST").filter(|list| !list.is_empty());
            let list = list.map(|list| on_host(crate::model::cut(&list, MAX_LIST), &site.topology));
            return list.map_or(none, |list| (policy.word().to_owned(), list));
        }
        BindPolicy::User => of_user("LSB_USER_BIND_JOB")
            .and_then(|word| BindPolicy::of_user(&word))
            .unwrap_or_default(),
        policy => policy,
    };
    if policy == BindPolicy::None || site.topology.is_empty() {
        return none;
    }
    let taken: Vec<CpuSet> =
        taken.filter(|list| !list.is_empty()).filter_map(|list| CpuSet::parse(list).ok()).collect();
    let slots = order.hosts.first().map_or(1, |host| host.1.max(1)) as usize;
    let cpus = chosen(policy, &site.topology, &taken, slots);
    (policy.word().to_owned(), cpus.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of two cores with two threads each.
    const TWO: &str = "N0=64000 S0 0,4 1,5 N1=64000 S1 2,6 3,7";

    #[test]
    fn processors_are_chosen_by_the_policy_and_by_what_is_bound_already() {
        let host = Topology::parse(TWO).unwrap();
        let fill = |policy, slots: &[usize]| {
            let mut taken: Vec<CpuSet> = Vec::new();
            for slots in slots {
                let next = chosen(policy, &host, &taken, *slots);
                taken.push(next);
            }
            taken.iter().map(CpuSet::to_string).collect::<Vec<_>>().join(" ")
        };
        let ones = [1; 9];
        assert_eq!(fill(BindPolicy::Balance, &ones), "0 2 1 3 4 6 5 7 0");
        assert_eq!(fill(BindPolicy::Pack, &ones), "0 4 1 5 2 6 3 7 0");
        assert_eq!(fill(BindPolicy::Any, &ones), "0 1 2 3 4 5 6 7 0");
        assert_eq!(fill(BindPolicy::Balance, &[2, 4]), "0,2 1,3-4,6");
        assert_eq!(fill(BindPolicy::Pack, &[2, 3]), "0,4 1-2,5");
        // no more than there are
        assert_eq!(fill(BindPolicy::Any, &[99]), "0-7");
    }

    #[test]
    fn policy_of_the_profile_stands_above_that_of_the_host_and_the_user_chooses_where_it_says_so() {
        let list = "LSB_USER_BIND_CPU_LIST=3,5-6\0";
        let again = "LSB_USER_BIND_CPU_LIST=4-65535,0-4,0-7,2\0";
        for (host, profile, env, want) in [
            (BindPolicy::None, "", "", ("", "")),
            (BindPolicy::Any, "", "", ("ANY", "0")),
            (BindPolicy::Any, "NONE", "", ("", "")),
            (BindPolicy::None, "PACK", "LSB_USER_BIND_JOB=ANY\0", ("PACK", "0")),
            (BindPolicy::User, "", "LSB_USER_BIND_JOB=y\0", ("BALANCE", "0")),
            (BindPolicy::User, "", "LSB_USER_BIND_JOB=USER_CPU_LIST\0", ("", "")),
            (BindPolicy::User, "", "", ("", "")),
            (BindPolicy::None, "USER_CPU_LIST", list, ("USER_CPU_LIST", "3,5-6")),
            (BindPolicy::UserCpuList, "", again, ("USER_CPU_LIST", "0-7")),
            (BindPolicy::UserCpuList, "", "LSB_USER_BIND_CPU_LIST=x\0", ("USER_CPU_LIST", "x")),
            (BindPolicy::UserCpuList, "", "", ("", "")),
        ] {
            let topology = Topology::parse(TWO).unwrap();
            let site = HostEnvironment { bind_job: host, topology, ..HostEnvironment::default() };
            let hosts = [("h1".into(), 1)].into();
            let order = StartJob { bind_job: profile.into(), hosts, ..StartJob::default() };
            let (word, cpus) = bound(&site, &order, env.as_bytes(), std::iter::empty());
            assert_eq!((&*word, &*cpus), want, "{host:?} {profile} {env}");
            let hosts = [("h1".into(), 1), ("h2".into(), 1)].into();
            let several = StartJob { hosts, ..order };
            let (_, cpus) = bound(&site, &several, env.as_bytes(), std::iter::empty());
            assert_eq!(cpus, "");
        }
    }
}
