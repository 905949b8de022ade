//! bresources -g: guaranteed pools (bresources(1)).

use lsf::cli::load::size;
use lsf::cli::long_format::clean;
use lsf::proto::limit_rows::{PackageUse, PoolInfo, SlotsAndMb};
use std::fmt::Write;

/// `overcommitted`: more is guaranteed than there is.
fn status(pool: &PoolInfo) -> &'static str {
    let guaranteed: u64 = pool.members.iter().map(|of| of.guaranteed).sum();
    if guaranteed > pool.total { "overcommitted" } else { "ok" }
}

/// One line for each pool.
pub fn table(pools: &[&PoolInfo]) -> String {
    let width = pools.iter().map(|pool| pool.kind_word().len()).max().unwrap_or(0).max(6);
    let mut out = format!("{:1$} {2:>7} {2:>7}\n", "", 47 + width, "GUAR");
    let _ = write!(
        out,
        "{:<20} {:<width$} {:<13} {:>5} {:>5}",
        "POOL_NAME", "TYPE", "STATUS", "TOTAL", "FREE"
    );
    let _ = writeln!(out, " {:>7} {:>7}", "CONFIG", "UNUSED");
    for pool in pools {
        let config: u64 = pool.members.iter().map(|of| of.guaranteed).sum();
        let unused = pool.members.iter().map(|of| of.guaranteed.saturating_sub(of.used));
        let (name, unused) = (clean(&pool.name), unused.sum::<u64>());
        let (kind, status) = (clean(pool.kind_word()), status(pool));
        let _ = write!(out, "{name:<20} {kind:<width$} {status:<13} {:>5}", pool.total);
        let _ = writeln!(out, " {:>5} {config:>7} {unused:>7}", pool.free);
    }
    out
}

/// A pool in the long format; `hosts`: with the hosts that are in it now.
pub fn long(pool: &PoolInfo, hosts: bool) -> String {
    let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { clean(text) };
    let mut out = format!("GUARANTEED RESOURCE POOL: {}\n", clean(&pool.name));
    let _ = writeln!(out, "{}\n\nTYPE: {}", clean(&pool.description), clean(&pool.kind));
    let _ = writeln!(out, "DISTRIBUTION: {}", clean(&pool.distribution));
    let _ = writeln!(out, "LOAN_POLICIES: {}", or(&pool.loans, "-"));
    let all = match (pool.kind_word(), hosts) {
        ("resource", _) => String::new(),
        (_, true) => pool.hosts.join(" "),
        (_, false) => or(&pool.hosts_text, "all"),
    };
    let _ = writeln!(out, "HOSTS: {}\nSTATUS: {}\n", or(&all, "-"), status(pool));
    out.push_str("RESOURCE SUMMARY:\n");
    match &pool.package {
        Some(package) => packages(&mut out, pool, package),
        None => units(&mut out, pool),
    }
    out
}

/// The use of a pool of packages, by slots and memory.
fn packages(out: &mut String, pool: &PoolInfo, of: &PackageUse) {
    // a package may be of slots or of memory alone
    let parts = [("slots", of.size.slots > 0), ("mem", of.size.mb > 0)];
    let parts = || parts.iter().filter(|part| part.1).map(|part| part.0);
    let amount = |part: &str, of: SlotsAndMb| match part {
        "slots" => of.slots.to_string(),
        _ => size(of.mb as f64),
    };
    let line = |out: &mut String, what: &str, of: SlotsAndMb, packages: &str| {
        let _ = write!(out, "{what:<30}");
        for part in parts() {
            let _ = write!(out, "{:>11}", amount(part, of));
        }
        let _ = writeln!(out, "{packages:>11}");
    };
    let times = |n: u64| SlotsAndMb { slots: n * of.size.slots, mb: n * of.size.mb };
    let _ = write!(out, "{:30}", "");
    for part in parts() {
        let _ = write!(out, "{part:>11}");
    }
    let _ = writeln!(out, "{:>11}", "packages");
    line(out, "TOTAL", of.total, &pool.total.to_string());
    line(out, "FREE", of.free, &pool.free.to_string());
    let allocated: u64 = pool.members.iter().map(|of| of.guaranteed).sum();
    out.push('\n');
    line(out, "ALLOCATED", times(allocated), &allocated.to_string());
    let owners = of.members.iter().fold(SlotsAndMb::default(), |sum, of| SlotsAndMb {
        slots: sum.slots + of.slots,
        mb: sum.mb + of.mb,
    });
    out.push('\n');
    let rows = [("OWNER USE", owners), ("LOAN USE", of.loans), ("OTHER USE", of.others)];
    rows.iter().for_each(|(what, of)| line(out, what, *of, "-"));
    let _ = writeln!(out, "\n{:52}{:>11}", "", "OWNER");
    let _ = writeln!(out, "{:<30}{:>11}{:>11}{:>11}", "OWNER", "RESOURCE", "ALLOCATED", "USE");
    for (member, own) in pool.members.iter().zip(&of.members) {
        let mut name = clean(&member.class);
        for part in parts() {
            let (all, used) = (amount(part, times(member.guaranteed)), amount(part, *own));
            let _ = writeln!(out, "{name:<30}{part:>11}{all:>11}{used:>11}");
            name.clear();
        }
        let (all, used) = (member.guaranteed, member.used);
        let _ = writeln!(out, "{name:<30}{:>11}{all:>11}{used:>11}", "packages");
    }
}

/// The use of a pool of slots, hosts or units of a resource.
fn units(out: &mut String, pool: &PoolInfo) {
    let config: u64 = pool.members.iter().map(|of| of.guaranteed).sum();
    let used: u64 = pool.members.iter().map(|of| of.used.min(of.guaranteed)).sum();
    for (what, n) in [("TOTAL", pool.total), ("FREE", pool.free)] {
        let _ = writeln!(out, "{what:<25} {n:>8}");
    }
    for (what, n) in [("GUARANTEE CONFIGURED", config), ("GUARANTEE USED", used)] {
        let _ = writeln!(out, "{what:<25} {n:>8}");
    }
    let _ = writeln!(out, "OTHER USE                 {:>8}", pool.others);
    let _ = writeln!(out, "\n{:25} {:>8} {:>8} {:>8}", "", "GUAR", "GUAR", "TOTAL");
    let _ = writeln!(out, "{:25} {:>8} {:>8} {:>8}", "CONSUMERS", "CONFIG", "USED", "USED");
    for of in &pool.members {
        let (name, used) = (clean(&of.class), of.used.min(of.guaranteed));
        let _ = writeln!(out, "{name:25} {:>8} {used:>8} {:>8}", of.guaranteed, of.used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsf::proto::limit_rows::PoolMember;

    fn pool() -> PoolInfo {
        let member =
            |class: &str, guaranteed, used| PoolMember { class: class.into(), guaranteed, used };
        PoolInfo {
            name: "dayPool".into(),
            kind: "slots".into(),
            description: "the day".into(),
            distribution: "[gold, 50%] [silver, 2]".into(),
            loans: "QUEUES[short] DURATION[30]".into(),
            hosts: vec!["hostA".into(), "hostB".into()],
            total: 8,
            free: 2,
            members: vec![member("gold", 4, 5), member("silver", 2, 0)],
            others: 1,
            ..PoolInfo::default()
        }
    }

    #[test]
    fn pools_are_told_in_lines_and_in_the_long_format() {
        let want = "POOL_NAME            TYPE   STATUS        TOTAL  FREE  CONFIG  UNUSED
dayPool              slots  ok                8     2       6       2
";
        let above = format!("{:57}GUAR    GUAR\n", "");
        assert_eq!(table(&[&pool()]), above + want);
        let packages = PoolInfo { kind: "package[slots=2:mem=1000]".into(), ..pool() };
        let want = "POOL_NAME            TYPE    STATUS        TOTAL  FREE  CONFIG  UNUSED
dayPool              slots   ok                8     2       6       2
dayPool              package ok                8     2       6       2
";
        let above = format!("{:58}GUAR    GUAR\n", "");
        assert_eq!(table(&[&pool(), &packages]), above + want);
        assert!(long(&packages, false).contains("\nTYPE: package[slots=2:mem=1000]\n"));
        let want = "GUARANTEED RESOURCE POOL: dayPool
the day

TYPE: slots
DISTRIBUTION: [gold, 50%] [silver, 2]
LOAN_POLICIES: QUEUES[short] DURATION[30]
HOSTS: hostA hostB
STATUS: ok

RESOURCE SUMMARY:
TOTAL                            8
FREE                             2
GUARANTEE CONFIGURED             6
GUARANTEE USED                   4
OTHER USE                        1

                              GUAR     GUAR    TOTAL
CONSUMERS                   CONFIG     USED     USED
gold                             4        4        5
silver                           2        0        0
";
        assert_eq!(long(&pool(), true), want);
        let of_resource = PoolInfo { kind: "resource[lic]".into(), ..pool() };
        assert!(long(&of_resource, true).contains("\nHOSTS: -\n"));
        let more = PoolInfo { total: 5, ..pool() };
        assert!(long(&more, false).contains("HOSTS: all\nSTATUS: overcommitted\n"));
    }

    #[test]
    fn slots_and_memory_of_packages_have_columns_of_their_own() {
        let of = |slots, mb| SlotsAndMb { slots, mb };
        let used = PackageUse {
            size: of(2, 10_000),
            total: of(48, 196_506),
            free: of(22, 172_340),
            members: vec![of(8, 3_994), of(0, 0)],
            loans: of(8, 1_946),
            others: of(10, 5_940),
        };
        let of_packages = PoolInfo {
            kind: "package[slots=2:mem=10000]".into(),
            total: 18,
            free: 10,
            package: Some(used.clone()),
            ..pool()
        };
        let want = "RESOURCE SUMMARY:
                                    slots        mem   packages
TOTAL                                  48       192G         18
FREE                                   22       168G         10

ALLOCATED                              12      58.6G          6

OWNER USE                               8       3.9G          -
LOAN USE                                8       1.9G          -
OTHER USE                              10       5.8G          -

                                                          OWNER
OWNER                            RESOURCE  ALLOCATED        USE
gold                                slots          8          8
                                      mem      39.1G       3.9G
                                 packages          4          5
silver                              slots          4          0
                                      mem      19.5G         0M
                                 packages          2          0
";
        let shown = long(&of_packages, false);
        assert_eq!(shown.split_once("\n\nRESOURCE").map(|of| of.1), want.strip_prefix("RESOURCE"));
        let used = PackageUse { size: of(2, 0), ..used };
        let shown = long(&PoolInfo { package: Some(used), ..of_packages }, false);
        assert!(
            shown.contains("\nFREE                                   22         10\n"),
            "{shown}"
        );
        assert!(!shown.contains(" mem "), "{shown}");
    }
}
