//! lsplace: the best hosts for tasks; lsloadadj: tells that tasks are on their way to hosts. See
//! lsplace(1) and lsloadadj(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::cli::lim::Cluster;
use lsf::cli::place::{self, TOO_FEW};
use lsf::{errln, outln};

/// Exit code for trouble with LSF itself.
const LSF_ERROR: i32 = -10;

/// Show the best hosts for tasks. Their load counts as higher for a while.
#[derive(FromArgs, ArgsInfo)]
struct PlaceOptions {
    /// accepted; among equal hosts the local host always comes first
    #[argh(switch, short = 'L')]
    _local: bool,
    /// the resource requirement of the hosts
    #[argh(option, short = 'R', arg_name = "res_req")]
    res_req: Option<String>,
    /// minimum number of processors (default 1); 0: every eligible host
    #[argh(option, short = 'n', arg_name = "minimum | 0")]
    least: Option<usize>,
    /// maximum number of processors
    #[argh(option, short = 'w', arg_name = "maximum")]
    most: Option<usize>,
    /// hosts to choose from
    #[argh(positional, greedy, arg_name = "host_name")]
    hosts: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let o = match front::parse_of::<PlaceOptions>(ctx) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    let found = Cluster::open().and_then(|mut cluster| {
        let found = place::eligible(&mut cluster, &o.hosts, o.res_req.as_deref())?;
        let least = o.least.unwrap_or(1);
        let places = match least {
            0 => found,
            _ => {
                let hosts = place::processors(&mut cluster, found)?;
                place::places(&hosts, least, o.most.unwrap_or(least))
            }
        };
        let count = |h: &String| (h.clone(), 1);
        // the advice holds without it
        let _ = cluster.adjust(places.iter().map(count).collect());
        Ok(places)
    });
    match found {
        Ok(places) if places.is_empty() => {
            errln!(ctx, "{}: {TOO_FEW}", ctx.name);
            1
        }
        Ok(places) => {
            outln!(ctx, "{}", places.join(" "));
            0
        }
        Err(why) => {
            errln!(ctx, "{}: {why}", ctx.name);
            LSF_ERROR
        }
    }
}

/// Tell LIM that tasks are on their way: the load of their hosts counts as higher for a while.
#[derive(FromArgs, ArgsInfo)]
struct AdjustOptions {
    /// accepted; each task always counts as one process
    #[argh(option, short = 'R', arg_name = "res_req")]
    _res_req: Option<String>,
    /// hosts and numbers of tasks; default: one task on the local host
    #[argh(positional, greedy, arg_name = "host_name[:num_task]")]
    hosts: Vec<String>,
}

pub fn lsloadadj(ctx: &mut Ctx) -> i32 {
    let o = match front::parse_of::<AdjustOptions>(ctx) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    let mut hosts = Vec::new();
    for word in &o.hosts {
        let (host, tasks) = word.split_once(':').unwrap_or((word, "1"));
        match tasks.parse::<u32>() {
            Ok(n) if n > 0 => hosts.push((host.to_owned(), n)),
            _ => {
                errln!(ctx, "lsloadadj: <{word}>: the number of tasks is not a positive number");
                return FAIL;
            }
        }
    }
    let done = Cluster::open().and_then(|mut cluster| {
        if hosts.is_empty() {
            hosts.push((cluster.local_host().to_owned(), 1));
        }
        cluster.adjust(hosts)
    });
    match done {
        Ok(()) => 0,
        Err(why) => {
            errln!(ctx, "lsloadadj: {why}");
            FAIL
        }
    }
}
