//! lsgrun: one command on several hosts, one after the other or at the same time. Document
//! implemented: commands.md, lsgrun.
//!
//! Each host gets an lsrun of its own, so that one that hangs or fails is nobody else's matter.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::lim::Cluster;
use lsf::cli::remote::{LSF_ERROR, host_file};
use lsf::cli::{front, place, site};
use lsf::errln;
use std::ffi::OsString;
use std::io::BufRead;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

/// Most hosts at the same time.
const AT_ONCE: usize = 64;

/// Run a command on several hosts: those of -f, -m, or the best -n of the cluster.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// ask before each host
    #[argh(switch, short = 'i')]
    ask: bool,
    /// say each host's name first
    #[argh(switch, short = 'v')]
    verbose: bool,
    /// on all hosts at the same time, without input
    #[argh(switch, short = 'p')]
    parallel: bool,
    /// on a pseudo-terminal
    #[argh(switch, short = 'P')]
    pty: bool,
    /// on a pseudo-terminal, for shells
    #[argh(switch, short = 'S')]
    shell: bool,
    /// accepted: load is always looked at
    #[argh(switch, short = 'L')]
    _load: bool,
    /// a file of host names, one a line
    #[argh(option, short = 'f', arg_name = "host_file")]
    file: Option<String>,
    /// these hosts
    #[argh(option, short = 'm', arg_name = "host_name ...")]
    hosts: Option<String>,
    /// so many hosts, the best; 0 all eligible
    #[argh(option, short = 'n', arg_name = "num_hosts")]
    number: Option<usize>,
    /// what the hosts must be or have
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
    let (o, words) = (parsed.options, parsed.operands);
    let wrong = |why: &str| front::usage_error::<Options>("lsgrun", why);
    if words.is_empty() {
        return wrong("no command").show(ctx);
    }
    if o.file.is_none() && o.hosts.is_none() && o.number.is_none() {
        return wrong("one of -f, -m and -n is needed").show(ctx);
    }
    let (envdir, hosts) = match chosen(&o) {
        Ok(found) => found,
        Err(why) => {
            errln!(ctx, "lsgrun: {why}");
            return LSF_ERROR;
        }
    };
    if hosts.is_empty() {
        errln!(ctx, "lsgrun: Not enough host(s) currently eligible");
        return 1;
    }
    let begin = |host: &str| begin(&o, &envdir, host, &words);
    match o.parallel {
        true => all(ctx, &hosts, &begin),
        false => each(ctx, &hosts, o.ask, &begin),
    }
}

/// Where lsf.conf is, and the hosts.
fn chosen(o: &Options) -> Result<(String, Vec<String>), String> {
    let site = site::find().map_err(|e| e.to_string())?;
    let mut names: Vec<String> =
        o.hosts.iter().flat_map(|h| h.split_whitespace()).map(str::to_owned).collect();
    if let Some(file) = &o.file {
        names.extend(host_file(file)?);
    }
    let envdir = site.envdir.clone();
    if !names.is_empty() && o.number.is_none() && o.res_req.is_none() {
        return Ok((envdir, names));
    }
    let req = o.res_req.as_deref();
    let mut found = place::eligible(&mut Cluster::of(site)?, &names, req)?;
    match o.number {
        Some(n) if n > found.len() => found.clear(),
        Some(n) if n > 0 => found.truncate(n),
        _ => {}
    }
    Ok((envdir, found))
}

fn begin(o: &Options, envdir: &str, host: &str, words: &[OsString]) -> Result<Child, String> {
    let mut c = Command::new("/proc/self/exe");
    c.arg0("lsrun").env("LSF_ENVDIR", envdir).args(["-m", host]);
    for (on, word) in [(o.verbose, "-v"), (o.pty, "-P"), (o.shell, "-S")] {
        if on {
            c.arg(word);
        }
    }
    if o.parallel {
        c.stdin(Stdio::null());
    }
    c.arg("--").args(words).spawn().map_err(|e| format!("{host}: {}", lsf::sys::words(&e)))
}

/// One after the other; stopped by an interrupt.
fn each(
    ctx: &mut Ctx,
    hosts: &[String],
    ask: bool,
    begin: &dyn Fn(&str) -> Result<Child, String>,
) -> i32 {
    let mut code = 0;
    for host in hosts {
        if ask && !yes(ctx, host) {
            continue;
        }
        ctx.flush();
        let status = begin(host).and_then(|mut c| c.wait().map_err(|e| lsf::sys::words(&e)));
        code = code.max(told(ctx, status));
        if code == 128 + 2 {
            break;
        }
    }
    code
}

fn yes(ctx: &mut Ctx, host: &str) -> bool {
    let _ = write!(ctx.err, "Execute on <{host}>? [y/n] ");
    ctx.flush();
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.is_ok() && line.trim_start().starts_with(['y', 'Y'])
}

fn all(ctx: &mut Ctx, hosts: &[String], begin: &dyn Fn(&str) -> Result<Child, String>) -> i32 {
    let mut code = 0;
    for some in hosts.chunks(AT_ONCE) {
        let begun: Vec<_> = some.iter().map(|h| begin(h)).collect();
        for child in begun {
            let status = child.and_then(|mut c| c.wait().map_err(|e| lsf::sys::words(&e)));
            code = code.max(told(ctx, status));
        }
    }
    code
}

fn told(ctx: &mut Ctx, status: Result<ExitStatus, String>) -> i32 {
    match status {
        Ok(s) => s.code().unwrap_or_else(|| 128 + s.signal().unwrap_or(0)),
        Err(why) => {
            errln!(ctx, "lsgrun: {why}");
            LSF_ERROR
        }
    }
}
