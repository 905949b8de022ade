//! lsgrun: one command on several hosts, one after the other or at the same time. See lsgrun(1).
//!
//! Each host gets a process of its own, so that one that hangs or fails is nobody else's matter.

use crate::lsrun::{self, Call};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::lim::Cluster;
use lsf::cli::remote::{How, LSF_ERROR, host_file};
use lsf::cli::{front, place, site};
use lsf::errln;
use std::ffi::OsString;
use std::io::{BufRead, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// The word by which this program calls itself for one host: `lsgrun --at HOST [-v] [-P] [-S]
/// COMMAND ...`.
const AT: &str = "--at";
/// Pieces of input that wait for a host which does not read; the others wait with them.
const AHEAD: usize = 16;
/// Bytes of such a piece.
const PIECE: usize = 64 << 10;

/// Run a command on several hosts: those of -f, -m, or the best -n of the cluster.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// ask for confirmation for all hosts, or for each host
    #[argh(switch, short = 'i')]
    ask: bool,
    /// print the name of each host
    #[argh(switch, short = 'v')]
    verbose: bool,
    /// on all hosts at the same time, each with the whole input
    #[argh(switch, short = 'p')]
    parallel: bool,
    /// on a pseudo-terminal; not with -p
    #[argh(switch, short = 'P')]
    pty: bool,
    /// on a pseudo-terminal in shell mode; not with -p
    #[argh(switch, short = 'S')]
    shell: bool,
    /// accepted; the load always counts
    #[argh(switch, short = 'L')]
    _load: bool,
    /// a file of host names, one on a line
    #[argh(option, short = 'f', arg_name = "host_file")]
    file: Option<String>,
    /// the named hosts
    #[argh(option, short = 'm', arg_name = "host_name ...")]
    hosts: Option<String>,
    /// this number of the best hosts; 0: all eligible hosts
    #[argh(option, short = 'n', arg_name = "num_hosts")]
    number: Option<usize>,
    /// the resource requirement of the hosts; alone: all hosts that meet it
    #[argh(option, short = 'R', arg_name = "res_req")]
    res_req: Option<String>,
    /// the command; default: the lines of the input
    #[argh(positional, greedy, arg_name = "command")]
    _command: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    if ctx.args.first().is_some_and(|w| w == AT) {
        return one(ctx);
    }
    let parsed = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    let (o, mut words) = (parsed.options, parsed.operands);
    let wrong = |why: &str| front::usage_error::<Options>("lsgrun", why);
    if o.file.is_none() && o.hosts.is_none() && o.number.is_none() && o.res_req.is_none() {
        return wrong("one of -f, -m, -n and -R is needed").show(ctx);
    }
    if words.is_empty() {
        words = prompted(ctx);
    }
    if words.is_empty() {
        return wrong("no command").show(ctx);
    }
    let (envdir, mut hosts) = match chosen(&o) {
        Ok(found) => found,
        Err(why) => {
            errln!(ctx, "lsgrun: {why}");
            return LSF_ERROR;
        }
    };
    if hosts.is_empty() {
        errln!(ctx, "lsgrun: {}", place::TOO_FEW);
        return 1;
    }
    if o.ask && !yes(ctx, "Execute on all hosts") {
        hosts.retain(|h| yes(ctx, &format!("Execute on <{h}>")));
    }
    let begin = |host: &str| begin(&o, &envdir, host, &words);
    match o.parallel {
        true => all(ctx, &hosts, &begin),
        false => each(ctx, &hosts, &begin),
    }
}

/// The input up to its end, typed or redirected: for /bin/sh.
fn prompted(ctx: &mut Ctx) -> Vec<OsString> {
    use std::os::unix::ffi::OsStringExt;
    let _ = write!(ctx.out, "Command> ");
    ctx.flush();
    let mut lines = Vec::new();
    let read = std::io::stdin().lock().take(PIECE as u64).read_to_end(&mut lines);
    match read {
        Ok(_) if !lines.trim_ascii().is_empty() => {
            vec!["/bin/sh".into(), "-c".into(), OsString::from_vec(lines)]
        }
        _ => Vec::new(),
    }
}

/// The command at one host, in a process of its own.
fn one(ctx: &mut Ctx) -> i32 {
    let words = ctx.args.get(1..).unwrap_or_default();
    let Some((host, mut words)) = words.split_first() else { return LSF_ERROR };
    let mut how = How { name: "lsgrun", ..How::default() };
    let mut verbose = false;
    while let Some((word, rest)) = words.split_first() {
        words = rest;
        match word.to_str() {
            Some("-v") => verbose = true,
            Some("-P") => how.pty = true,
            Some("-S") => (how.pty, how.shell) = (true, true),
            _ => break,
        }
    }
    let argv = words.to_vec();
    let host = host.to_string_lossy().into_owned();
    let found = site::find().map_err(|e| e.to_string()).and_then(|site| {
        let found = lsrun::chosen(&site, Some(&host), None, None)?;
        Ok((site, found))
    });
    match found {
        Ok((site, found)) => {
            Call { site, argv: &argv, how: &how, verbose }.at(ctx, Ok(found), false)
        }
        Err(why) => {
            errln!(ctx, "lsgrun: {why}");
            LSF_ERROR
        }
    }
}

/// The path of lsf.conf, and the hosts.
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
    c.arg0("lsgrun").env("LSF_ENVDIR", envdir).args([AT, host]);
    for (on, word) in [(o.verbose, "-v"), (o.pty, "-P"), (o.shell, "-S")] {
        if on && (word == "-v" || !o.parallel) {
            c.arg(word);
        }
    }
    if o.parallel {
        c.stdin(Stdio::piped());
    }
    c.arg("--").args(words).spawn().map_err(|e| format!("{host}: {}", lsf::sys::words(&e)))
}

/// One after the other; stopped by an interrupt.
fn each(ctx: &mut Ctx, hosts: &[String], begin: &dyn Fn(&str) -> Result<Child, String>) -> i32 {
    let mut code = 0;
    for host in hosts {
        ctx.flush();
        let status = begin(host).and_then(|mut c| c.wait().map_err(|e| lsf::sys::words(&e)));
        let one = told(ctx, status);
        code = if code == 0 { one } else { code };
        if one == 128 + 2 {
            break;
        }
    }
    code
}

fn yes(ctx: &mut Ctx, what: &str) -> bool {
    let _ = write!(ctx.err, "{what}? [y/n] ");
    ctx.flush();
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.is_ok() && line.trim_start().starts_with(['y', 'Y'])
}

/// Runs on all hosts at the same time; returns the first exit code that is not 0, in the order of
/// the hosts.
fn all(ctx: &mut Ctx, hosts: &[String], begin: &dyn Fn(&str) -> Result<Child, String>) -> i32 {
    let mut begun: Vec<_> = hosts.iter().map(|h| begin(h)).collect();
    let inputs = begun.iter_mut().flatten().filter_map(|c| c.stdin.take()).collect();
    std::thread::spawn(move || copy_to_all(inputs));
    let mut code = 0;
    for child in begun {
        let status = child.and_then(|mut c| c.wait().map_err(|e| lsf::sys::words(&e)));
        let one = told(ctx, status);
        code = if code == 0 { one } else { code };
    }
    code
}

/// Gives each of these all of our input, as fast as the slowest reads that still does.
fn copy_to_all(inputs: Vec<ChildStdin>) {
    let mut to: Vec<_> = inputs
        .into_iter()
        .map(|mut input| {
            let (tx, rx) = sync_channel::<Arc<Vec<u8>>>(AHEAD);
            std::thread::spawn(move || {
                // it ends with the reader, or with the input
                while rx.recv().is_ok_and(|piece| input.write_all(&piece).is_ok()) {}
            });
            tx
        })
        .collect();
    let mut from = std::io::stdin();
    let mut piece = vec![0; PIECE];
    while let Ok(n) = from.read(&mut piece) {
        if n == 0 || to.is_empty() {
            return;
        }
        let some = Arc::new(piece[..n].to_vec());
        to.retain(|tx| tx.send(some.clone()).is_ok());
    }
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
