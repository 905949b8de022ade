//! lsclusters: the cluster and its master. Document implemented: commands.md, lsclusters.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::{front, lim};
use lsf::{errln, outln};

/// Show the cluster, its master and how many hosts it has.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// administrators, resources, types and models too
    #[argh(switch, short = 'l')]
    long: bool,
    /// accepted: names are not cut
    #[argh(switch, short = 'w')]
    _wide: bool,
    /// the cluster to show
    #[argh(positional, greedy, arg_name = "cluster_name")]
    names: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let o = match front::parse::<Options>(ctx.name, &ctx.args) {
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
    let admins = &base.cluster.admins;
    let servers = base.cluster.hosts.iter().filter(|h| h.server).count();
    if o.long {
        outln!(ctx, "CLUSTER_NAME:  {name}");
    }
    outln!(ctx, "CLUSTER_NAME   STATUS   MASTER_HOST               ADMIN    HOSTS  SERVERS");
    outln!(
        ctx,
        "{name:<14} {status:<8} {master:<16}{:>15}{:>9}{servers:>9}",
        admins.first().map_or("-", String::as_str),
        base.cluster.hosts.len()
    );
    if o.long {
        let join = |names: &mut dyn Iterator<Item = &String>| {
            names.map(String::as_str).collect::<Vec<_>>().join(" ")
        };
        outln!(ctx, "\nLSF administrators: {}", join(&mut admins.iter()));
        let shared = &base.shared;
        let resources = join(&mut shared.resources.iter().map(|r| &r.name));
        outln!(ctx, "Available resources: {resources}");
        outln!(ctx, "Available host types: {}", join(&mut shared.types.iter()));
        outln!(ctx, "Available host models: {}", join(&mut shared.models.iter().map(|m| &m.name)));
    }
    if unknown.is_empty() { 0 } else { FAIL }
}
