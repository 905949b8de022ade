//! lsmake: the site's GNU make, whose recipes run on other hosts. Document implemented:
//! commands.md, lsmake.
//!
//! make is given a shell of ours ([`shell`], a link in a directory of this run), which takes a free
//! slot (a locked file) and runs its line at the slot's host through res. What calls make again
//! runs here, so that it shares the job server.

use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::lim::Cluster;
use lsf::cli::links::own_binary;
use lsf::cli::remote::{self, How, LSF_ERROR};
use lsf::cli::{place, site, version};
use lsf::errln;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str = "Usage: lsmake [-v] [-m \"host_name ...\"] [-R res_req] [-j max] \
                     [-x num_retries] [make options] [target ...]";
/// The directory of this run; its hosts; whether to say them; tries at other hosts.
const VARS: [&str; 4] = ["LSF_MAKE_DIR", "LSF_MAKE_HOSTS", "LSF_MAKE_VERBOSE", "LSF_MAKE_RETRIES"];
/// Most slots.
const SLOTS_MAX: usize = 1024;
/// Tries at other hosts where -x says nothing.
const RETRIES: &str = "2";

#[derive(Default)]
struct Options {
    verbose: bool,
    hosts: Vec<String>,
    res_req: Option<String>,
    slots: Option<usize>,
    retries: Option<String>,
    make: Vec<OsString>,
}

fn read(args: &[OsString]) -> Result<Options, String> {
    let mut o = Options::default();
    let mut args = args.iter();
    while let Some(word) = args.next() {
        let text = word.to_string_lossy();
        let mut value = || {
            let next = args.next().map(|w| w.to_string_lossy().into_owned());
            next.ok_or_else(|| format!("{text}: a value is needed"))
        };
        match &*text {
            "-v" => o.verbose = true,
            "-m" => o.hosts = value()?.split_whitespace().map(str::to_owned).collect(),
            "-R" => o.res_req = Some(value()?),
            "-x" => o.retries = Some(value()?),
            "-j" => {
                let n = value()?.parse().ok().filter(|n| (1..=SLOTS_MAX).contains(n));
                o.slots = Some(n.ok_or("-j wants a number")?);
            }
            "-a" | "-c" | "-E" | "-F" | "-A" | "-M" | "-P" | "-T" | "-u" => {
                return Err(format!("option {text} is not supported"));
            }
            _ => o.make.push(word.clone()),
        }
    }
    Ok(o)
}

pub fn run(ctx: &mut Ctx) -> i32 {
    match ctx.words().first().map(String::as_str) {
        Some("-h") => {
            errln!(ctx, "{USAGE}");
            return 0;
        }
        Some("-V") => {
            errln!(ctx, "{}", version::line());
            return 0;
        }
        _ => {}
    }
    let done = read(&ctx.args).and_then(|o| {
        ctx.flush();
        make(&o)
    });
    done.unwrap_or_else(|why| {
        errln!(ctx, "lsmake: {why}");
        FAIL
    })
}

fn make(o: &Options) -> Result<i32, String> {
    let hosts = match (&o.hosts[..], &o.res_req) {
        ([_, ..], None) => o.hosts.clone(),
        (hosts, req) => place::eligible(&mut Cluster::open()?, hosts, req.as_deref())?,
    };
    let slots = o.slots.unwrap_or(if o.hosts.is_empty() { 1 } else { hosts.len() });
    if hosts.is_empty() {
        return Err("Not enough host(s) currently eligible".into());
    }
    let dir = own_directory("lsmake")?;
    let shell = dir.join("lsmakesh");
    let mut status = symlink(own_binary()?, &shell).map_err(|e| (e.kind(), lsf::sys::words(&e)));
    for name in ["gmake", "make"] {
        let mut c = Command::new(name);
        c.arg(format!("-j{slots}")).args(&o.make).arg(format!("SHELL={}", shell.display()));
        let retries = o.retries.as_deref().unwrap_or(RETRIES);
        let values = [&dir.to_string_lossy(), &*hosts.join(" "), "", retries].map(str::to_owned);
        c.envs(VARS.iter().zip(values)).env(VARS[2], if o.verbose { "y" } else { "" });
        if status.is_ok() {
            let ended = c.status().map_err(|e| (e.kind(), lsf::sys::words(&e)));
            if let Ok(s) = &ended {
                let code = s.code().unwrap_or_else(|| 128 + s.signal().unwrap_or(0));
                let _ = std::fs::remove_dir_all(&dir);
                return Ok(code);
            }
            status = match ended {
                Err((ErrorKind::NotFound, _)) => Ok(()),
                other => other.map(|_| ()),
            };
        }
    }
    let _ = std::fs::remove_dir_all(&dir);
    match status {
        Ok(()) => Err("GNU make is not installed (Debian: package make)".into()),
        Err((_, why)) => Err(why),
    }
}

/// A new directory that is the caller's alone.
pub fn own_directory(name: &str) -> Result<PathBuf, String> {
    let n = lsf::sys::random::<8>().map_err(|e| lsf::sys::words(&e))?;
    let dir = std::env::temp_dir().join(format!("{name}.{:016x}", u64::from_ne_bytes(n)));
    let made = DirBuilder::new().mode(0o700).create(&dir);
    made.map_err(|e| format!("{}: {}", dir.display(), lsf::sys::words(&e)))?;
    Ok(dir)
}

/// The shell that make calls, as `lsmakesh -c LINE`.
pub fn shell(ctx: &mut Ctx) -> i32 {
    let [dir, hosts, verbose, retries] = VARS.map(|v| std::env::var(v).unwrap_or_default());
    let hosts: Vec<&str> = hosts.split(' ').collect();
    let words = ctx.words();
    let calls_make = |line: &String| {
        let mut words = line.split_whitespace().map(|w| w.rsplit('/').next().unwrap_or(w));
        words.any(|w| w == "make" || w == "gmake")
    };
    let argv: Vec<OsString> =
        [OsString::from("/bin/sh")].into_iter().chain(ctx.args.clone()).collect();
    let tries = if words.iter().any(calls_make) { 0 } else { 1 + retries.parse().unwrap_or(0) };
    let (slot, _held) = slot(Path::new(&dir));
    let how = How { name: "lsmake", ..How::default() };
    let site = site::find();
    for n in 0..tries {
        let Ok(site) = &site else { break };
        let host = hosts[(slot + n) % hosts.len()];
        if verbose == "y" {
            errln!(ctx, "[{host}] {}", words.last().map_or("", String::as_str));
        }
        let task = match remote::task(site, &argv, &how) {
            Ok(task) => task,
            Err(why) => {
                errln!(ctx, "lsmake: {why}");
                return LSF_ERROR;
            }
        };
        match remote::run(site, host, task) {
            Ok(ended) => return remote::end(ended),
            Err(e) if n + 1 == tries => {
                errln!(ctx, "lsmake: {host}: {e:#}");
                return LSF_ERROR;
            }
            Err(_) => {}
        }
    }
    let e = Command::new(&argv[0]).args(&argv[1..]).exec();
    errln!(ctx, "lsmake: /bin/sh: {}", lsf::sys::words(&e));
    FAIL
}

/// The first slot that nobody has; kept while the file is open.
fn slot(dir: &Path) -> (usize, Option<File>) {
    for n in 0..SLOTS_MAX {
        let Ok(file) = File::create(dir.join(format!("slot.{n}"))) else { break };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return (n, Some(file));
        }
    }
    (0, None)
}
