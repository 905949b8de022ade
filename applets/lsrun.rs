//! lsrun: one command on the best host, as if it ran here. Document implemented: commands.md,
//! lsrun.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::lim::Cluster;
use lsf::cli::remote::{self, How, LSF_ERROR};
use lsf::cli::site::{self, Site};
use lsf::cli::{front, place};
use lsf::errln;
use std::ffi::OsString;

/// Run a command on the best host, or on one of those named. Exit as the command does.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// say which host was chosen
    #[argh(switch, short = 'v')]
    verbose: bool,
    /// on a pseudo-terminal
    #[argh(switch, short = 'P')]
    pty: bool,
    /// on a pseudo-terminal, for shells and what reads the keyboard itself
    #[argh(switch, short = 'S')]
    shell: bool,
    /// accepted: load is always looked at
    #[argh(switch, short = 'L')]
    _load: bool,
    /// under a login shell
    #[argh(switch, short = 'l')]
    login: bool,
    /// hosts to choose from
    #[argh(option, short = 'm', arg_name = "host_name ...")]
    hosts: Option<String>,
    /// what the host must be or have
    #[argh(option, short = 'R', arg_name = "res_req")]
    res_req: Option<String>,
    /// the command
    #[argh(positional, greedy, arg_name = "command")]
    _command: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse::<Options>(ctx.name, &ctx.args) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    let o = parsed.options;
    if parsed.operands.is_empty() {
        return front::usage_error::<Options>(ctx.name, "no command").show(ctx);
    }
    let how = How { pty: o.pty || o.shell, ..How::default() };
    let argv = if o.login { login(&parsed.operands) } else { parsed.operands };
    let host = chosen(o.hosts.as_deref(), o.res_req.as_deref());
    at_host(ctx, host, &argv, &how, o.verbose)
}

/// Runs the words at a host found, or says why there is none.
pub fn at_host(
    ctx: &mut Ctx,
    host: Result<(Site, Option<String>), String>,
    argv: &[OsString],
    how: &How,
    verbose: bool,
) -> i32 {
    let (site, host) = match host {
        Ok((site, Some(host))) => (site, host),
        Ok((_, None)) => {
            errln!(ctx, "{}: Not enough host(s) currently eligible", ctx.name);
            return 1;
        }
        Err(why) => {
            errln!(ctx, "{}: {why}", ctx.name);
            return LSF_ERROR;
        }
    };
    if verbose {
        let word = argv[0].to_string_lossy();
        // at once, so that lines of several hosts do not mix
        let line = format!("<<Execute {word} on remote host {host}>>\n");
        let _ = ctx.err.write_all(line.as_bytes());
    }
    ctx.flush();
    match remote::run(&site, &host, remote::task(&site, argv, how)) {
        Ok(ended) => remote::end(ended),
        Err(e) => {
            errln!(ctx, "{}: {host}: {e:#}", ctx.name);
            LSF_ERROR
        }
    }
}

/// The best of these hosts; `None`: none is eligible. A host that is named alone is not asked
/// about.
pub fn chosen(
    hosts: Option<&str>,
    res_req: Option<&str>,
) -> Result<(Site, Option<String>), String> {
    let site = site::find().map_err(|e| e.to_string())?;
    let names = hosts.unwrap_or_default().split_whitespace().map(str::to_owned);
    let names: Vec<String> = names.collect();
    if let ([one], None) = (names.as_slice(), res_req) {
        return Ok((site, Some(one.clone())));
    }
    let found = place::eligible(&mut Cluster::of(site.clone())?, &names, res_req)?;
    Ok((site, found.into_iter().next()))
}

/// Under the user's shell, as at a login.
fn login(words: &[OsString]) -> Vec<OsString> {
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let mut argv = vec![shell, "-l".into(), "-c".into(), "exec \"$0\" \"$@\"".into()];
    argv.extend(words.iter().cloned());
    argv
}
