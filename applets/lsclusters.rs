//! lsclusters: the cluster and its master. See lsclusters(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::{front, lim};
use lsf::conf::BaseConf;
use lsf::errln;

/// Show the cluster, its master and how many hosts it has.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// long format: also administrators, resources, types and models
    #[argh(switch, short = 'l')]
    long: bool,
    /// accepted; names are never cut
    #[argh(switch, short = 'w')]
    _wide: bool,
    /// the cluster to show
    #[argh(positional, greedy, arg_name = "cluster_name")]
    names: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let o = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    let mut cluster = match lim::Cluster::open() {
        Ok(cluster) => cluster,
        Err(why) => {
            errln!(ctx, "lsclusters: {why}");
            return FAIL;
        }
    };
    let unknown: Vec<&String> = o.names.iter().filter(|n| *n != cluster.name()).collect();
    for name in &unknown {
        errln!(ctx, "{name}: Unknown cluster name");
    }
    if !o.names.is_empty() && unknown.len() == o.names.len() {
        return FAIL;
    }
    let base = cluster.base();
    let (name, master) = (cluster.name().to_owned(), cluster.master().unwrap_or("-").to_owned());
    // the master's LIM answers, or the cluster cannot be used
    let status = if cluster.hosts(&[]).is_ok() { "ok" } else { "unavail" };
    let _ = ctx.out.write_all(text(&name, status, &master, &base, o.long).as_bytes());
    if unknown.is_empty() { 0 } else { FAIL }
}

fn text(name: &str, status: &str, master: &str, base: &BaseConf, long: bool) -> String {
    let admins = &base.cluster.admins;
    let servers = base.cluster.hosts.iter().filter(|h| h.server).count();
    let mut out = String::new();
    if long {
        out.push_str(&format!("CLUSTER_NAME:  {name}\n"));
    }
    out.push_str("CLUSTER_NAME   STATUS   MASTER_HOST               ADMIN    HOSTS  SERVERS\n");
    out.push_str(&format!(
        "{name:<14} {status:<8} {master:<16} {:>14} {:>8} {servers:>8}\n",
        admins.first().map_or("-", String::as_str),
        base.cluster.hosts.len()
    ));
    if long {
        let join = |names: &mut dyn Iterator<Item = &String>| {
            names.map(String::as_str).collect::<Vec<_>>().join(" ")
        };
        let shared = &base.shared;
        for (what, names) in [
            ("\nLSF administrators", join(&mut admins.iter())),
            ("Available resources", join(&mut shared.resources.iter().map(|r| &r.name))),
            ("Available host types", join(&mut shared.types.iter())),
            ("Available host models", join(&mut shared.models.iter().map(|m| &m.name))),
        ] {
            out.push_str(&format!("{what}: {names}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsf::conf::types::HostDef;

    #[test]
    fn lsclusters_has_the_layout_of_the_manual() {
        let mut base = BaseConf::default();
        base.cluster.admins = vec!["lsfadmin".into()];
        base.cluster.hosts = vec![HostDef { server: true, ..HostDef::default() }; 5];
        let want = include_str!("../tests/cmd/expected/lsclusters.txt");
        assert_eq!(text("cluster1", "ok", "hosta", &base, false), want);
        base.cluster.admins = vec!["an.administrator.of.a.wide.name".into(), "b".into()];
        let master = format!("node-{}", "e".repeat(59));
        let got = text("a_cluster_of_a_long_name", "unavail", &master, &base, true);
        assert_eq!(got, include_str!("../tests/cmd/expected/lsclusters-l.txt"));
    }
}
