//! down: stops a personal cluster, jobs included. See lsf(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::cli::lim::Cluster;
use lsf::cli::personal::{PersonalDir, RunningLaunchers, run};
use lsf::cli::site;
use lsf::{errln, outln};

/// Stop a personal cluster: its jobs, its daemons, nothing else.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// directory of the cluster; ~/.lsf by default
    #[argh(option, arg_name = "DIR")]
    dir: Option<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse::<Options>("lsf down", &ctx.args) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    match down(ctx, parsed.options.dir.as_deref()) {
        Ok(()) => 0,
        Err(why) => {
            errln!(ctx, "lsf down: {why}");
            FAIL
        }
    }
}

fn down(ctx: &mut Ctx, dir: Option<&str>) -> Result<(), String> {
    let place = PersonalDir::find(dir)?;
    if !place.exists()? {
        return Err(format!("{}: no cluster here", place.top.display()));
    }
    let _lock = place.lock()?;
    let mut state = RunningLaunchers::read(&place)?;
    let mut hosts: Vec<String> = state.launchers.iter().map(|(h, _)| h.clone()).collect();
    if hosts.is_empty() {
        outln!(ctx, "{}: not running", place.top.display());
        return Ok(());
    }
    // The master's host goes last, so that the ends of all jobs are logged.
    let master = master(&place);
    if let Some(at) = hosts.iter().position(|h| Some(h) == master.as_ref()) {
        hosts[..=at].rotate_right(1);
    }
    let (first, others) = hosts.split_at(1);
    for group in [others, first] {
        for note in run::stop(&place, &mut state, group)? {
            errln!(ctx, "lsf down: {note}");
        }
    }
    if !state.launchers.is_empty() {
        let left: Vec<String> =
            state.launchers.iter().map(|(h, p)| format!("{h} (pid {})", p.pid)).collect();
        return Err(format!("still running: {}", left.join(", ")));
    }
    outln!(ctx, "{}: stopped", place.top.display());
    Ok(())
}

/// The master host; `None` where no LIM says.
fn master(place: &PersonalDir) -> Option<String> {
    let envdir = Some(place.conf().into_os_string());
    let site = site::find_from(&site::Around { envdir, ..site::Around::default() }).ok()?;
    Cluster::of(site).ok()?.master().ok().map(str::to_owned)
}
