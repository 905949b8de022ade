//! lslogin: a login shell on the best host. See lslogin(1). Through RES; with options of rlogin, or
//! where LSF_LSLOGIN_SSH says so, by the site's own program.

use crate::lsrun::{self, Call};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::remote::{How, LSF_ERROR};
use lsf::cli::{front, site};
use lsf::errln;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The default requirement: few logins, little load.
const ORDER: &str = "select[type==local] order[ls:r1m]";

/// Log in on the best host, or on the one named.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// print the name of the selected host
    #[argh(switch, short = 'v')]
    verbose: bool,
    /// accepted; the load always counts
    #[argh(switch, short = 'L')]
    _load: bool,
    /// the host, or the best of these hosts
    #[argh(option, short = 'm', arg_name = "host_name ...")]
    hosts: Option<String>,
    /// the resource requirement of the host
    #[argh(option, short = 'R', arg_name = "res_req")]
    res_req: Option<String>,
    /// options of rlogin, which is then called (of ssh with LSF_LSLOGIN_SSH=Y)
    #[argh(positional, greedy, arg_name = "rlogin_options")]
    _rlogin: Vec<String>,
}

/// Our own words, and from the first that is none of ours those of rlogin.
fn divided(args: &[OsString]) -> (&[OsString], &[OsString]) {
    let mut at = 0;
    while let Some(word) = args.get(at).map(|w| w.to_string_lossy()) {
        at += match &*word {
            "-m" | "-R" => 2,
            "-v" | "-L" | "-h" | "-V" => 1,
            _ => break,
        };
    }
    args.split_at(at.min(args.len()))
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let args = ctx.args.clone();
    let (own, theirs) = divided(&args);
    let parsed = match front::parse::<Options>(ctx.name, own) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    let o = parsed.options;
    let site = match site::find() {
        Ok(site) => site,
        Err(e) => {
            errln!(ctx, "lslogin: {e}");
            return LSF_ERROR;
        }
    };
    let req = o.res_req.as_deref().or(o.hosts.is_none().then_some(ORDER));
    let found = lsrun::chosen(&site, o.hosts.as_deref(), req, None);
    let ssh = site.lsf.yes("LSF_LSLOGIN_SSH");
    if (ssh || !theirs.is_empty())
        && let Ok(Some(host)) = found.as_ref().map(lsrun::TaskHosts::best)
    {
        return other_program(ctx, if ssh { "ssh" } else { "rlogin" }, theirs, host, o.verbose);
    }
    let how = How { pty: true, shell: true, home: true, name: ctx.name };
    let shell = "exec \"${SHELL:-/bin/sh}\" -l";
    let argv = ["/bin/sh", "-c", shell].map(Into::into);
    Call { site, argv: &argv, how: &how, verbose: o.verbose }.at(ctx, found, false)
}

/// The site's own program, which this process becomes.
fn other_program(ctx: &mut Ctx, name: &str, words: &[OsString], host: &str, say: bool) -> i32 {
    if say {
        errln!(ctx, "<<Login to {host}>>");
    }
    ctx.flush();
    let e = Command::new(name).args(words).arg(host).exec();
    let package = if name == "ssh" { "openssh-client" } else { "rsh-redone-client" };
    match e.kind() {
        std::io::ErrorKind::NotFound => {
            errln!(ctx, "lslogin: {name} is not installed (Debian: package {package})");
        }
        _ => errln!(ctx, "lslogin: {name}: {}", lsf::sys::words(&e)),
    }
    FAIL
}
