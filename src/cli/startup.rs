//! Daemons of this host and of others: who may start them, and LSF_RSH to where they are
//! (`lsf_daemons`, `lsfstartup` and its kin, `badmin hstartup`, `lsadmin limstartup` ...).
//!
//! Every host is asked the same thing in the same way: `lsf_daemons VERB [DAEMON]`, here without a
//! shell between. See lsadmin(8), badmin(8), lsfstartup(8) and lsf.sudoers(5).

use super::ctx::{Ctx, FAIL};
use super::daemons::{self, LauncherLink};
use super::links::own_binary;
use super::site::{self, Around, LocalSite};
use crate::conf::BaseConf;
use crate::conf::load::load_base_lenient;
use crate::daemon::delegate::conf_files;
use crate::daemon::guard;
use crate::errln;
use crate::proto::Daemon;
use crate::sys::{sudoers, words};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Other hosts that are asked at the same time; those that are this machine are asked in turn.
const AT_ONCE: usize = 32;
/// The command of root when other users can write lsf.conf.
const ROOTS_RSH: &str = "ssh -o BatchMode=yes";
/// The daemons that can be named, in the order of `status`.
const NAMED: [Daemon; 7] = [
    Daemon::Authd,
    Daemon::Lim,
    Daemon::Res,
    Daemon::Sbatchd,
    Daemon::Mbatchd,
    Daemon::NlbServer,
    Daemon::Ccollect,
];

/// The action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonAction {
    Start,
    Stop,
    Restart,
    /// Everything becomes the file it was started from, as it is now.
    Reload,
}

impl DaemonAction {
    pub const ALL: [(&'static str, DaemonAction); 4] = [
        ("start", DaemonAction::Start),
        ("stop", DaemonAction::Stop),
        ("restart", DaemonAction::Restart),
        ("reload", DaemonAction::Reload),
    ];

    fn word(self) -> &'static str {
        DaemonAction::ALL.iter().find(|v| v.1 == self).map_or("", |v| v.0)
    }
}

/// The daemon of this name.
pub fn named(name: &str) -> Option<Daemon> {
    NAMED.into_iter().find(|d| d.name() == name)
}

/// Does it on this host: with one daemon, or with the launcher and all.
pub fn here(site: &LocalSite, verb: DaemonAction, daemon: Option<Daemon>) -> Result<(), String> {
    may(site)?;
    match (verb, daemon) {
        (DaemonAction::Start, None) => daemons::start(site).map(|_| ()),
        (DaemonAction::Stop, None) => daemons::stop(site).map(|_| ()),
        (DaemonAction::Restart, None) => {
            daemons::stop(site).and_then(|_| daemons::start(site)).map(|_| ())
        }
        (DaemonAction::Reload, _) => reload(site),
        // a launcher that starts, starts them all
        (DaemonAction::Start, Some(_)) if daemons::start(site)? => Ok(()),
        (DaemonAction::Start, Some(d)) => LauncherLink::open(site)?.set(d, true),
        (DaemonAction::Stop, Some(d)) => LauncherLink::open(site)?.set(d, false),
        (DaemonAction::Restart, Some(d)) => LauncherLink::open(site)?.restart(d),
    }
}

/// The launcher replaces itself, then its daemons are started anew; nothing is forgotten.
fn reload(site: &LocalSite) -> Result<(), String> {
    daemons::upgrade(site)?;
    let mut link = LauncherLink::open(site)?;
    for (daemon, _) in link.daemons()? {
        link.restart(daemon)?;
    }
    Ok(())
}

/// Whether the caller may. Root may; whom sudo made root, if root's own lsf.sudoers names them;
/// of others the launcher's socket takes the primary administrator.
fn may(site: &LocalSite) -> Result<(), String> {
    let caller = std::env::var("SUDO_USER").unwrap_or_default();
    if crate::sys::euid() != 0 || caller.is_empty() || caller == "root" {
        return Ok(());
    }
    let conf = base(site)?;
    let known = sudoers::load(sudoers::PATH, 0)?;
    let refuse = |why: &str| Err(format!("{caller} may not: {why} of {}", sudoers::PATH));
    let Some((known, _)) = known else { return refuse("LSF_STARTUP_USERS is not set") };
    if !known.may_start(&caller, conf.cluster.admins.contains(&caller)) {
        return refuse("not among the LSF_STARTUP_USERS");
    }
    let exe = own_binary()?;
    let (path, dir) = (known.get("LSF_STARTUP_PATH"), exe.parent());
    if path.is_some_and(|p| std::fs::canonicalize(p).ok().as_deref() != dir) {
        return refuse("this program is not in the LSF_STARTUP_PATH");
    }
    Ok(())
}

fn base(site: &LocalSite) -> Result<BaseConf, String> {
    // sudo shows an administrator what root's process has read
    let (conf, diags) = load_base_lenient(&*conf_files(), &site.envdir, Some(&site.host));
    conf.ok_or_else(|| diags.first().map_or(String::new(), |d| d.to_string()))
}

/// Does it on these hosts (`all`, or the servers, clients too with `clients`; none named: here)
/// and says `WORDS <host> ...... done` of each. The exit code.
pub fn there(
    ctx: &mut Ctx,
    words: &str,
    (verb, daemon): (DaemonAction, Option<Daemon>),
    hosts: &[String],
) -> i32 {
    let found = site::find_with(&*conf_files(), &Around::process());
    let done = found.map_err(|e| e.to_string()).and_then(|site| {
        let conf = base(&site)?;
        let own = conf.hosts.canonical(&site.host).unwrap_or(&site.host).to_owned();
        let mut asked: Vec<String> = Vec::new();
        for name in hosts {
            match conf.hosts.canonical(name) {
                Some(host) => asked.push(host.to_owned()),
                None if name == "all" => {
                    let servers = conf.cluster.hosts.iter().filter(|h| h.server);
                    asked.extend(servers.map(|h| h.name.clone()));
                }
                None => return Err(format!("{name}: No such host")),
            }
        }
        if hosts.is_empty() {
            asked.push(own.clone());
        }
        Ok(each(ctx, words, (verb, daemon), &site, (&own, &asked)))
    });
    done.unwrap_or_else(|why| {
        errln!(ctx, "{}: {why}", ctx.name);
        FAIL
    })
}

fn each(
    ctx: &mut Ctx,
    words: &str,
    (verb, daemon): (DaemonAction, Option<Daemon>),
    site: &LocalSite,
    (own, hosts): (&str, &[String]),
) -> i32 {
    let mut code = 0;
    for some in hosts.chunks(AT_ONCE) {
        let begun: Vec<_> = some
            .iter()
            .map(|h| (h != own && !site.shared_machine).then(|| begin(site, h, verb, daemon)))
            .collect();
        for (host, child) in some.iter().zip(begun) {
            let done = match child {
                None => here(&LocalSite { host: host.clone(), ..site.clone() }, verb, daemon),
                Some(child) => child.and_then(end),
            };
            match done {
                Ok(()) => errln!(ctx, "{words} <{host}> ...... done"),
                Err(why) => {
                    errln!(ctx, "{words} <{host}> ...... failed: {why}");
                    code = FAIL;
                }
            }
        }
    }
    code
}

/// Begins it on another host, by LSF_RSH.
fn begin(
    site: &LocalSite,
    host: &str,
    verb: DaemonAction,
    daemon: Option<Daemon>,
) -> Result<Child, String> {
    // root does not do as a file says that others can write
    let conf = Path::new(&site.lsf.path);
    let believed = crate::sys::euid() != 0 || guard::safe(conf).is_ok();
    let own = site.lsf.get("LSF_RSH").filter(|_| believed);
    let rsh = own.unwrap_or(if believed { "rsh" } else { ROOTS_RSH });
    let program = match site.lsf.serverdir().filter(|_| believed) {
        Some(dir) => Path::new(dir).join("lsf_daemons"),
        None => own_binary()?.with_file_name("lsf_daemons"),
    };
    let quoted = |text: &str| crate::conf::generate::shell_quoted(text);
    let mut line = format!(
        "{} -d {} {}",
        quoted(&program.to_string_lossy()),
        quoted(&site.envdir),
        verb.word()
    );
    if let Some(d) = daemon {
        line.push(' ');
        line.push_str(d.name());
    }
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("exec {rsh} \"$@\"")).args(["sh", host, &line]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(|e| format!("{rsh}: {}", words(&e)))
}

/// The result: the last line of its error output.
fn end(child: Child) -> Result<(), String> {
    let out = child.wait_with_output().map_err(|e| words(&e))?;
    if out.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&out.stderr);
    let last = text.lines().rev().find(|l| !l.trim().is_empty());
    let last = last.map(|l| l.strip_prefix("lsf_daemons: ").unwrap_or(l).to_owned());
    Err(last.unwrap_or_else(|| "no word from there".to_owned()))
}

/// The daemons that this host's launcher has, and their pids; those that do not run have none.
pub fn status(site: &LocalSite) -> Result<Vec<(&'static str, Option<u32>)>, String> {
    let up = match daemons::running(site) {
        true => LauncherLink::open(site)?.daemons()?,
        false => Vec::new(),
    };
    let conf = base(site)?;
    let own = conf.hosts.canonical(&site.host).unwrap_or(&site.host);
    let server = conf.cluster.hosts.iter().any(|h| h.name == own && h.server);
    let pid = |d: Daemon| daemons::pid_of(&up, d);
    let here = |d: &Daemon| match d {
        Daemon::Authd => true,
        Daemon::Mbatchd | Daemon::NlbServer | Daemon::Ccollect => pid(*d).is_some(),
        _ => server,
    };
    Ok(NAMED.into_iter().filter(here).map(|d| (d.name(), pid(d))).collect())
}
