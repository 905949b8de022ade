//! Placement of one parallel job in random small clusters, against a slow checker that knows
//! nothing of the scheduler: it looks at every way to give out slots. A job gets no slots that its
//! requirement does not allow, and where it gets none there is no way.

use super::JobRef;
use super::cluster::{Cluster, ClusterBuilder, cluster};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Most hosts of a cluster, and most slots of a host.
const HOSTS: usize = 5;
const SLOTS: u32 = 3;
const CASES: u32 = 400;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Fill,
    OneHost,
    Tile(u32),
    Block(u32),
    Stripe(Option<u32>),
}

/// Slots, rack and unit of a host; 0: none.
#[derive(Clone, Copy, Debug)]
struct RandomHost {
    slots: u32,
    rack: u32,
    unit: u32,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    min: u32,
    max: u32,
    form: Form,
    same: bool,
    /// cu[] with at most so many units.
    units: Option<u32>,
    balance: bool,
}

fn form() -> impl Strategy<Value = Form> {
    prop_oneof![
        Just(Form::Fill),
        Just(Form::OneHost),
        (1..4u32).prop_map(Form::Tile),
        (1..4u32).prop_map(Form::Block),
        prop::option::of(1..4u32).prop_map(Form::Stripe),
    ]
}

fn host() -> impl Strategy<Value = RandomHost> {
    (1..=SLOTS, 0..3u32, 0..3u32).prop_map(|(slots, rack, unit)| RandomHost { slots, rack, unit })
}

fn asked() -> impl Strategy<Value = Asked> {
    let units = prop::option::weighted(0.4, 1..4u32);
    let flags = (prop::bool::weighted(0.4), prop::bool::weighted(0.4));
    (1..10u32, 0..4u32, form(), units, flags).prop_map(
        |(min, more, form, units, (same, balance))| {
            let balance = balance && units.is_some();
            Asked { min, max: min + more, form, same, units, balance }
        },
    )
}

fn site(hosts: &[RandomHost]) -> ClusterBuilder {
    let mut site = cluster().resource("rack String () ()").param("COMPUTE_UNIT_TYPES = unit");
    let mut rows = String::new();
    let mut units: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (n, host) in hosts.iter().enumerate() {
        let name = format!("h{}", n + 1);
        site = site.host(&name, host.slots);
        if host.rack > 0 {
            site = site.host_resources(&name, &format!("rack=r{}", host.rack));
        }
        rows += &format!("{name} {}\n", host.slots);
        units.entry(host.unit).or_default().push(name);
    }
    units.remove(&0);
    let units: String =
        units.iter().map(|(n, hosts)| format!("u{n} ({}) unit\n", hosts.join(" "))).collect();
    let text = format!(
        "Begin Host\nHOST_NAME MXJ\n{rows}End Host\n\
         Begin ComputeUnit\nNAME MEMBER TYPE\n{units}End ComputeUnit\n"
    );
    site.lsb_hosts(&text)
}

fn options(asked: &Asked) -> String {
    let mut req = String::from("select[type==any]");
    match asked.form {
        Form::Fill => {}
        Form::OneHost => req += " span[hosts=1]",
        Form::Tile(n) => req += &format!(" span[ptile={n}]"),
        Form::Block(n) => req += &format!(" span[block={n}]"),
        Form::Stripe(None) => req += " span[stripe]",
        Form::Stripe(Some(n)) => req += &format!(" span[stripe={n}]"),
    }
    if asked.same {
        req += " same[rack]";
    }
    if let Some(most) = asked.units {
        let balance = if asked.balance { ":balance" } else { "" };
        req += &format!(" cu[maxcus={most}{balance}]");
    }
    format!("-n {},{} -R '{req}'", asked.min, asked.max)
}

/// Is this a way to give out slots that the requirement allows?
fn allowed(asked: &Asked, hosts: &[RandomHost], slots: &[u32]) -> bool {
    let used: Vec<usize> = (0..hosts.len()).filter(|n| slots[*n] > 0).collect();
    let total: u32 = slots.iter().sum();
    if total < asked.min || total > asked.max || used.iter().any(|n| slots[*n] > hosts[*n].slots) {
        return false;
    }
    let spread = match asked.form {
        Form::Fill => true,
        Form::OneHost => used.len() == 1,
        Form::Tile(n) => {
            used.iter().all(|h| slots[*h] <= n)
                && used.iter().filter(|h| slots[**h] < n).count() <= 1
        }
        Form::Block(n) => used.iter().filter(|h| !slots[**h].is_multiple_of(n)).count() <= 1,
        Form::Stripe(most) => used.iter().all(|h| slots[*h] <= most.unwrap_or(u32::MAX)),
    };
    let racks: BTreeSet<u32> = used.iter().map(|n| hosts[*n].rack).collect();
    let alike = !asked.same || used.len() < 2 || (racks.len() == 1 && !racks.contains(&0));
    let mut units: BTreeMap<u32, u32> = BTreeMap::new();
    used.iter().for_each(|n| *units.entry(hosts[*n].unit).or_default() += slots[*n]);
    let in_units = asked.units.is_none_or(|most| {
        let even = units.values().max().unwrap() - units.values().min().unwrap() <= 1;
        let balanced = !asked.balance || (even && total == asked.min);
        !units.contains_key(&0) && units.len() as u32 <= most && balanced
    });
    spread && alike && in_units
}

/// Are the tasks dealt evenly: does no host have two more than one that could have had another?
fn even(most: Option<u32>, hosts: &[RandomHost], slots: &[u32], among: &[usize]) -> bool {
    let open = |n: usize| slots[n] < hosts[n].slots.min(most.unwrap_or(u32::MAX));
    among.iter().all(|a| among.iter().all(|b| slots[*a] <= slots[*b] + 1 || !open(*b)))
}

/// Every way to give out slots.
fn every_way(hosts: &[RandomHost]) -> Vec<Vec<u32>> {
    hosts.iter().fold(vec![Vec::new()], |all, host| {
        let longer = |way: Vec<u32>| {
            (0..=host.slots).map(move |n| way.iter().copied().chain([n]).collect::<Vec<u32>>())
        };
        all.into_iter().flat_map(longer).collect()
    })
}

fn slots_of(c: &mut Cluster, job: JobRef, hosts: usize) -> Vec<u32> {
    let mut slots = vec![0; hosts];
    for name in c.running_on(job) {
        let n: usize = name[1..].parse().unwrap();
        slots[n - 1] += 1;
    }
    slots
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn job_gets_what_its_requirement_allows_and_waits_where_nothing_is(
        hosts in prop::collection::vec(host(), 1..=HOSTS),
        asked in asked(),
    ) {
        let mut c = site(&hosts).up();
        let job = c.submit("ann", &options(&asked));
        let slots = slots_of(&mut c, job, hosts.len());
        if slots.iter().sum::<u32>() > 0 {
            prop_assert!(allowed(&asked, &hosts, &slots), "{slots:?} by {}", options(&asked));
            if let Form::Stripe(most) = asked.form && !asked.same && asked.units.is_none() {
                let all: Vec<usize> = (0..hosts.len()).collect();
                prop_assert!(even(most, &hosts, &slots, &all), "{slots:?}");
            }
            return Ok(());
        }
        // tiles within units are counted host by host: one short host may be overlooked
        let counted = asked.units.is_none() || matches!(asked.form, Form::Fill | Form::Stripe(_));
        let way = every_way(&hosts).into_iter().find(|way| allowed(&asked, &hosts, way));
        prop_assert!(way.is_none() || !counted, "{way:?} is not found for {}", options(&asked));
        prop_assert!(!c.reasons(job).is_empty());
    }

    #[test]
    fn parts_of_a_compound_requirement_get_hosts_that_each_allows(
        racks in prop::collection::vec((1..=SLOTS, 1..4u32), 1..=HOSTS),
        parts in prop::collection::vec((1..4u32, 1..4u32, 0..3u32), 1..4),
    ) {
        let host = |(slots, rack): &(u32, u32)| RandomHost { slots: *slots, rack: *rack, unit: 0 };
        let hosts: Vec<RandomHost> = racks.iter().map(host).collect();
        let mut c = site(&hosts).up();
        c.loads("mem=1000");
        // each part wants a rack, and memory for each of its tasks
        let part = |(tasks, rack, memory): &(u32, u32, u32)| {
            format!("{tasks}*{{select[rack==r{rack}] rusage[mem={}/task]}}", memory * 300)
        };
        let text = parts.iter().map(part).collect::<Vec<_>>().join(" + ");
        let job = c.submit("ann", &format!("-R '{text}'"));
        let order = c.running_on(job);
        let need = |rack: u32| parts.iter().filter(|p| p.1 == rack).map(|p| p.0).sum::<u32>();
        if order.is_empty() {
            let of_rack = |rack: u32| hosts.iter().filter(move |host| host.rack == rack);
            let have = |rack: u32| of_rack(rack).map(|host| host.slots).sum::<u32>();
            let memory = parts.iter().any(|part| part.2 > 0);
            let missing = (1..4).any(|rack| need(rack) > have(rack));
            prop_assert!(memory || missing, "{text} on {racks:?}");
            return Ok(());
        }
        let slots = slots_of(&mut c, job, hosts.len());
        for rack in 1..4 {
            let got: u32 =
                hosts.iter().zip(&slots).filter(|(h, _)| h.rack == rack).map(|(_, n)| *n).sum();
            prop_assert_eq!(got, need(rack), "rack {} of {} on {:?}", rack, text, racks);
        }
        prop_assert!(hosts.iter().zip(&slots).all(|(host, n)| *n <= host.slots));
        for (n, host) in hosts.iter().enumerate().filter(|(n, _)| slots[*n] > 0) {
            let memory = c.host(&format!("h{}", n + 1)).reserved[10];
            let least = parts.iter().filter(|p| p.1 == host.rack).map(|p| p.2).min().unwrap_or(0);
            prop_assert!(memory <= 1000.0, "{memory} on h{}", n + 1);
            prop_assert!(memory >= f64::from(least * 300 * slots[n]), "{memory} on h{}", n + 1);
        }
    }
}
