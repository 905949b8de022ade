//! up: makes and starts a personal cluster. Also `detach`, hidden: a launcher before it is one. See
//! lsf(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{Client, ClientError, Patience};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::personal::{PersonalDir, RunningLaunchers, create, make_dir, nlb, run};
use lsf::cli::{front, site};
use lsf::conf::{BaseConf, Severity, generate::MAX_PERSONAL_HOSTS};
use lsf::proto::client::{ClientMsg, HostInfo, QueueInfo};
use lsf::proto::{Daemon, Msg};
use lsf::sys::files::RealFiles;
use lsf::{errln, outln};
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Start a personal cluster, made first where there is none: every daemon and job is you. The
/// configuration consists of ordinary LSF files; change them as you like.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// directory of the cluster; ~/.lsf by default
    #[argh(option, arg_name = "DIR")]
    dir: Option<String>,
    /// number of hosts of a new cluster, all on this machine; 1 by default
    #[argh(option, arg_name = "N")]
    hosts: Option<u32>,
    /// select a free block of ports and write it to lsf.conf
    #[argh(switch)]
    new_ports: bool,
    /// have the first host run the server of the NQE load balancer
    #[argh(switch)]
    nlb: bool,
}

/// How long the cluster may take until it takes jobs.
const READY_WAIT: Duration = Duration::from_secs(30);
/// How long its other hosts may take after that.
const HOSTS_WAIT: Duration = Duration::from_secs(15);
/// How much of the end of each log is looked through for an error, bytes.
const LOG_END: u64 = 64 << 10;
const UNEXPECTED: &str = "mbatchd gave an unexpected answer";

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse::<Options>("lsf up", &ctx.args) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    match up(ctx, &parsed.options) {
        Ok(()) => 0,
        Err(why) => {
            errln!(ctx, "lsf up: {why}");
            FAIL
        }
    }
}

/// The hidden applet: waits, leaves the session, becomes the launcher.
pub fn detach(ctx: &mut Ctx) -> i32 {
    errln!(ctx, "detach: {}", run::detach());
    FAIL
}

fn up(ctx: &mut Ctx, o: &Options) -> Result<(), String> {
    if o.hosts.is_some_and(|n| n == 0 || n > MAX_PERSONAL_HOSTS) {
        return Err(format!("--hosts takes 1 to {MAX_PERSONAL_HOSTS}"));
    }
    let place = PersonalDir::find(o.dir.as_deref())?;
    let known = place.exists()?;
    let missing = create::Missing::of(&place);
    let none = |why| {
        format!(
            "cannot create the cluster directory {why}; name a directory that you may write to \
             with --dir"
        )
    };
    make_dir(&place.top).map_err(none)?;
    make_dir(&place.conf())?;
    // made by now, it has no links left in its name
    let place = PersonalDir::find(place.top.to_str())?;
    let _lock = place.lock()?;
    if !known {
        create::create(&place, o.hosts.unwrap_or(1), &(ctx.linked)(o.nlb))
            .inspect_err(|_| missing.remove())?;
    }
    let conf = with_nlb(&place, o.nlb)?;
    let mut state = RunningLaunchers::read(&place)?;
    let hosts: Vec<String> = conf.named_hosts().map(|h| h.name.clone()).collect();
    if known && o.hosts.is_some_and(|n| n as usize != hosts.len()) {
        errln!(
            ctx,
            "lsf up: the cluster in {} has {} host(s); --hosts counts for a new one only",
            place.top.display(),
            hosts.len()
        );
    }
    if lsf::sys::euid() == 0 {
        errln!(
            ctx,
            "lsf up: a personal cluster of root: every daemon and job runs as root, on loopback \
             only, and every other user is refused"
        );
    }
    let before = logs(&place);
    let missing: Vec<&String> = hosts.iter().filter(|h| state.alive(h).is_none()).collect();
    if missing.is_empty() {
        errln!(ctx, "{}: already running", place.top.display());
        if o.nlb {
            errln!(ctx, "lsf up: nlbserver runs from the next start of the cluster on");
        }
    } else {
        create::link(&place, &(ctx.linked)(o.nlb))?;
        ports(ctx, &place, &conf, &state, o.new_ports)?;
        for host in missing {
            run::start(&place, &mut state, host)?;
        }
    }
    wait_ready(ctx, &place, &state).map_err(|why| match telling_line(&place, &before) {
        Some(line) => format!("{why}\n{line}"),
        None => why,
    })?;
    told_up(ctx, &place)
}

/// The configuration, with a server of the load balancer where it is asked for.
fn with_nlb(place: &PersonalDir, asked: bool) -> Result<BaseConf, String> {
    let conf = place.read()?;
    if !asked {
        return Ok(conf);
    }
    nlb::add(place, &conf)?;
    place.read()
}

/// Says what is up, and what to type next.
fn told_up(ctx: &mut Ctx, place: &PersonalDir) -> Result<(), String> {
    let envdir = place.conf().to_string_lossy().into_owned();
    let errors = lsf::conf::check_batch(&RealFiles, &envdir);
    let errors: Vec<_> = errors.iter().filter(|d| d.severity == Severity::Error).collect();
    if !errors.is_empty() {
        errln!(ctx, "lsf up: configuration errors; these lines are ignored:");
        errors.iter().for_each(|error| errln!(ctx, "    {error}"));
    }
    let (hosts, queues) = (hosts(place)?, queues(place)?);
    let slots: u64 = hosts.iter().filter_map(|h| h.max).sum();
    let queues: Vec<String> = queues
        .iter()
        .map(|q| format!("{}{}", q.name, if q.is_default { " (default)" } else { "" }))
        .collect();
    errln!(
        ctx,
        "lsf up: the cluster is up: {} host(s), {slots} slot(s); queues: {}",
        hosts.len(),
        queues.join(", ")
    );
    errln!(ctx, "Type this line to set your shell up for the cluster, then the commands below:");
    outln!(ctx, ". {}", shell_word(&place.profile().to_string_lossy()));
    errln!(ctx, "bsub -o out.%J 'hostname; date'\nbjobs -a");
    Ok(())
}

/// The logs of a cluster with their lengths.
fn logs(place: &PersonalDir) -> BTreeMap<PathBuf, u64> {
    let all = std::fs::read_dir(place.top.join("log")).into_iter().flatten().flatten();
    all.filter_map(|log| Some((log.path(), log.metadata().ok()?.len()))).collect()
}

/// The last error that a daemon has logged since the logs were as long as `before`, or the last
/// line of a launcher.
fn telling_line(place: &PersonalDir, before: &BTreeMap<PathBuf, u64>) -> Option<String> {
    let mut errors = Vec::new();
    let mut said = None;
    for (path, now) in logs(place) {
        // a log that is shorter now was turned over
        let from = before.get(&path).copied().filter(|old| *old <= now).unwrap_or(0);
        let Ok(text) = end_of(&path, from) else { continue };
        let name = path.file_name().unwrap_or_default();
        if name.to_string_lossy().starts_with("launcher.out.") {
            let last = text.lines().rfind(|l| !l.trim().is_empty());
            said = last.map(|l| format!("{}: {l}", path.display())).or(said);
        }
        // each line begins with its time, so that the greatest is the last
        let error = text.lines().rfind(|l| l.contains(" ERROR "));
        errors.extend(error.map(|line| (line.to_owned(), path.clone())));
    }
    errors.sort();
    errors.pop().map(|(line, path)| format!("{}: {line}", path.display())).or(said)
}

/// The end of a log, at most [`LOG_END`] bytes, none of them before `from`.
fn end_of(path: &Path, from: u64) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(LOG_END).max(from);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(LOG_END).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A path as one word of a shell.
fn shell_word(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if path.chars().all(plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}

/// Sees that the ports are free, unless a part of this cluster has them.
fn ports(
    ctx: &mut Ctx,
    place: &PersonalDir,
    conf: &BaseConf,
    state: &RunningLaunchers,
    fresh: bool,
) -> Result<(), String> {
    if !state.launchers.is_empty() {
        // Some of it runs, or was killed and left daemons that its successor takes over.
        if fresh {
            return Err("parts of the cluster run: `lsf down` first, then --new-ports".to_owned());
        }
        return Ok(());
    }
    let addrs: Vec<IpAddr> = conf
        .cluster
        .hosts
        .iter()
        .filter_map(|h| conf.hosts.addrs(&h.name).first().copied())
        .collect();
    if fresh {
        let base = create::new_ports(place, &addrs)?;
        errln!(ctx, "lsf up: ports {base} to {} from now on", base + create::PORTS - 1);
        return Ok(());
    }
    let l = &conf.lsf;
    let all = [l.lim_port(), l.res_port(), l.mbd_port(), l.sbd_port()];
    for (name, port) in create::PORT_NAMES.iter().zip(all) {
        if let Some(addr) = addrs.iter().find(|a| !create::port_free(**a, port)) {
            return Err(format!(
                "port {port} on {addr} ({name} in {}) is taken: end the program that has it, or \
                 take other ports with `lsf up --dir {} --new-ports`",
                conf.lsf.path,
                place.top.display()
            ));
        }
    }
    Ok(())
}

/// Waits until bsub would be accepted, and then a while for the other hosts.
fn wait_ready(ctx: &mut Ctx, place: &PersonalDir, state: &RunningLaunchers) -> Result<(), String> {
    let began = Instant::now();
    loop {
        if let Some((host, _)) = state.launchers.iter().find(|(h, _)| state.alive(h).is_none()) {
            return Err(format!(
                "the launcher of {host} ended; why is in {}; `lsf down --dir {}` clears up",
                place.top.join("log").display(),
                place.top.display()
            ));
        }
        let waited = began.elapsed();
        match hosts_ready(place) {
            Ok(0) => return Ok(()),
            Ok(_) if waited < HOSTS_WAIT => {}
            Ok(n) => {
                errln!(ctx, "lsf up: {n} host(s) are not ready yet; `bhosts` shows them");
                return Ok(());
            }
            Err(_) if waited < READY_WAIT => {}
            Err(why) => {
                let secs = READY_WAIT.as_secs();
                let logs = place.top.join("log");
                return Err(format!(
                    "the cluster takes no jobs after {secs} s ({why}); its logs are in {}; `lsf \
                     down --dir {}` stops it",
                    logs.display(),
                    place.top.display()
                ));
            }
        }
        std::thread::sleep(run::LOOK);
    }
}

/// How many hosts cannot take jobs yet, or why mbatchd does not answer.
fn hosts_ready(place: &PersonalDir) -> Result<usize, String> {
    let away = |s: &str| s.starts_with("unavail") || s.starts_with("unreach");
    Ok(hosts(place)?.iter().filter(|h| away(&h.status)).count())
}

fn hosts(place: &PersonalDir) -> Result<Vec<HostInfo>, String> {
    match asked(place, ClientMsg::Hosts { names: Vec::new(), res_req: String::new() })? {
        ClientMsg::HostRows { rows } => Ok(rows),
        _ => Err(UNEXPECTED.to_owned()),
    }
}

fn queues(place: &PersonalDir) -> Result<Vec<QueueInfo>, String> {
    let (user, host) = (String::new(), String::new());
    match asked(place, ClientMsg::Queues { names: Vec::new(), user, host })? {
        ClientMsg::QueueRows { rows } => Ok(rows),
        _ => Err(UNEXPECTED.to_owned()),
    }
}

/// Asks mbatchd one question and returns its answer.
fn asked(place: &PersonalDir, question: ClientMsg) -> Result<ClientMsg, String> {
    let envdir = Some(place.conf().into_os_string());
    let site = site::find_from(&site::Around { envdir, ..site::Around::default() });
    let site = site.map_err(|e| e.to_string())?;
    let patience = Patience::of(&site).once();
    let words = |e: ClientError| format!("{e:#}");
    let mut mbatchd = Client::dial(&site, Daemon::Mbatchd, patience).map_err(words)?;
    match mbatchd.call(&Msg::Client(question), &mut std::io::sink()).map_err(words)? {
        Msg::Client(answer) => Ok(answer),
        _ => Err(UNEXPECTED.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word() {
        assert_eq!(shell_word("/home/u/.lsf/conf/profile.lsf"), "/home/u/.lsf/conf/profile.lsf");
        assert_eq!(shell_word("/a b/it's"), r"'/a b/it'\''s'");
    }
}
