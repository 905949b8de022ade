//! status: the daemons, hosts and ports of a personal cluster. See lsf(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::cli::personal::{PersonalDir, RunningLaunchers, create::PORT_NAMES};
use lsf::conf::BaseConf;
use lsf::sys::procs::{self, Proc};
use lsf::{errln, outln};
use std::os::unix::ffi::OsStrExt;

/// Show the daemons, hosts and ports of a personal cluster. Exit 0 where all of it runs.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// directory of the cluster; ~/.lsf by default
    #[argh(option, arg_name = "DIR")]
    dir: Option<String>,
}

/// The daemons below a launcher, in the order shown.
const DAEMONS: [&str; 5] = ["authd", "lim", "sbatchd", "mbatchd", "res"];

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse::<Options>("lsf status", &ctx.args) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    match status(ctx, parsed.options.dir.as_deref()) {
        Ok(true) => 0,
        Ok(false) => FAIL,
        Err(why) => {
            errln!(ctx, "lsf status: {why}");
            FAIL
        }
    }
}

/// True where every host has its launcher.
fn status(ctx: &mut Ctx, dir: Option<&str>) -> Result<bool, String> {
    let place = PersonalDir::find(dir)?;
    if !place.exists()? {
        return Err(format!("{}: no cluster here; `lsf up` makes one", place.top.display()));
    }
    let conf = place.read()?;
    let state = RunningLaunchers::read(&place)?;
    let hosts: Vec<_> = conf.named_hosts().collect();
    let up = hosts.iter().filter(|h| state.alive(&h.name).is_some()).count();
    let word = match up {
        0 => "not running".to_owned(),
        n if n == hosts.len() => "running".to_owned(),
        n => format!("{n} of {} hosts running", hosts.len()),
    };
    outln!(ctx, "Cluster <{}> in {}: {word}", conf.name, place.top.display());
    let ports: Vec<String> = PORT_NAMES
        .iter()
        .filter_map(|name| conf.lsf.get(name).map(|port| format!("{name}={port}")))
        .collect();
    outln!(ctx, "{}", ports.join(" "));
    table(ctx, &place, &conf, &state);
    Ok(up == hosts.len())
}

/// A daemon of this cluster, whoever is its parent by now: host, name, process.
fn daemons(place: &PersonalDir) -> Vec<(Vec<u8>, String, Proc)> {
    let conf = place.conf();
    let ours =
        |p: &Proc| p.variable("LSF_ENVDIR").is_some_and(|dir| dir == conf.as_os_str().as_bytes());
    procs::all()
        .into_iter()
        .map(|p| (p.name(), p))
        .filter(|(name, p)| DAEMONS.contains(&name.as_str()) && ours(p))
        .filter_map(|(name, p)| Some((p.variable("LSF_LOCAL_HOST")?, name, p)))
        .collect()
}

fn table(ctx: &mut Ctx, place: &PersonalDir, conf: &BaseConf, state: &RunningLaunchers) {
    let found = daemons(place);
    let heads: String = DAEMONS.iter().map(|d| format!(" {:>8}", d.to_uppercase())).collect();
    outln!(ctx, "{:<10} {:<15} {:>8}{heads}", "HOST_NAME", "ADDRESS", "LAUNCHER");
    for host in &conf.cluster.hosts {
        let addr = conf.hosts.addrs(&host.name).first();
        let addr = addr.map_or("-".to_owned(), |a| a.to_string());
        let pid = |p: Option<Proc>| p.map_or("-".to_owned(), |p| p.pid.to_string());
        let of = |d: &str| {
            let own = found.iter().find(|(h, n, _)| h == host.name.as_bytes() && n == d);
            pid(own.map(|(_, _, p)| *p))
        };
        let cells: String = DAEMONS.iter().map(|d| format!(" {:>8}", of(d))).collect();
        let launcher = pid(state.alive(&host.name));
        outln!(ctx, "{:<10} {addr:<15} {launcher:>8}{cells}", host.name);
    }
}
