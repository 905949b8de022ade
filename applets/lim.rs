//! lim: the load information manager of this host. The applet around `daemon::lim`.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::daemon::{boot::Boot, lim};
use lsf::proto::Daemon;
use lsf::sys::load::Probe;
use lsf::{errln, outln};

/// Measures this host and tells the cluster; started by the launcher.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the directory of lsf.conf
    #[argh(option, short = 'd', arg_name = "env_dir")]
    dir: Option<String>,
    /// print the type and architecture of this host, and end
    #[argh(switch, short = 't')]
    types: bool,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let opts: Opts = match front::parse_of(ctx) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    if opts.types {
        let facts = Probe::new().sample().facts;
        outln!(ctx, "Host Type             : {}", facts.host_type);
        outln!(ctx, "Host Architecture     : {}", facts.model);
        outln!(ctx, "Physical Processors   : {}", facts.nprocs);
        outln!(ctx, "Cores per Processor   : {}", facts.ncores);
        outln!(ctx, "Threads per Core      : {}", facts.nthreads);
        return 0;
    }
    match Boot::from_dir(Daemon::Lim, opts.dir.as_deref()).and_then(lim::run) {
        Ok(code) => code,
        Err(e) => {
            log::error!("{e}");
            errln!(ctx, "{}: {e}", ctx.name);
            FAIL
        }
    }
}
