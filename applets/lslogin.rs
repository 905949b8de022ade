//! lslogin: a login shell on the best host. Document implemented: commands.md, lslogin.

use crate::lsrun;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front;
use lsf::cli::remote::How;

/// Where nothing else is asked for: few logins, little load.
const ORDER: &str = "select[type==local] order[ls:r1m]";

/// Log in on the best host, or on the one named.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// say which host was chosen
    #[argh(switch, short = 'v')]
    verbose: bool,
    /// accepted: load is always looked at
    #[argh(switch, short = 'L')]
    _load: bool,
    /// this host, or the best of these
    #[argh(option, short = 'm', arg_name = "host_name ...")]
    hosts: Option<String>,
    /// what the host must be or have
    #[argh(option, short = 'R', arg_name = "res_req")]
    res_req: Option<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse::<Options>(ctx.name, &ctx.args) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    let o = parsed.options;
    let req = o.res_req.as_deref().or(o.hosts.is_none().then_some(ORDER));
    let host = lsrun::chosen(o.hosts.as_deref(), req);
    let how = How { pty: true, home: true };
    let shell = "exec \"${SHELL:-/bin/sh}\" -l";
    let argv = ["/bin/sh", "-c", shell].map(Into::into);
    lsrun::at_host(ctx, host, &argv, &how, o.verbose)
}
