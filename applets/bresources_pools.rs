//! bresources -g: guaranteed pools (bresources(1)).

use lsf::cli::long_format::clean;
use lsf::proto::limit_rows::PoolInfo;
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
    let config: u64 = pool.members.iter().map(|of| of.guaranteed).sum();
    let used: u64 = pool.members.iter().map(|of| of.used.min(of.guaranteed)).sum();
    out.push_str("RESOURCE SUMMARY:\n");
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
    out
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
}
