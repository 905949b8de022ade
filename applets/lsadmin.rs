//! lsadmin: administration of the base system. See lsadmin(8).

use lsf::cli::client;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::Exit;
use lsf::cli::lim::Cluster;
use lsf::cli::startup::DaemonAction;
use lsf::cli::version;
use lsf::conf::load::check_lsf;
use lsf::conf::{Diag, Severity, summary_not_acted_on};
use lsf::proto::lim::{HostLoad, LimMsg};
use lsf::proto::res::ResMsg;
use lsf::proto::{Daemon, Msg};
use lsf::sys::files::RealFiles;
use lsf::sys::site::{self, LocalSite};
use lsf::{errln, outln};

/// The commands there are, with what `help` says.
const COMMANDS: [(&str, &str); 22] = [
    ("ckconfig", "Check configuration files"),
    ("reconfig", "Check the configuration, then restart LIM on all hosts"),
    ("limrestart", "Restart LIM on hosts"),
    ("limstartup", "Start up LIM on hosts"),
    ("limshutdown", "Shut down LIM on hosts"),
    ("limlock", "Lock this host against new tasks"),
    ("limunlock", "Unlock this host"),
    ("limhlock", "Lock hosts against new tasks, by their master"),
    ("limhunlock", "Unlock hosts that the master locked"),
    ("limdebug", "Have LIM log more on hosts"),
    ("limtime", "Have LIM log times on hosts"),
    ("resstartup", "Start up RES on hosts"),
    ("resshutdown", "Shut down RES on hosts"),
    ("resrestart", "Restart RES on hosts"),
    ("reslogon", "Log the tasks of RES on hosts"),
    ("reslogoff", "Stop the records of RES tasks"),
    ("resdebug", "Have RES log more on hosts"),
    ("restime", "Have RES log times on hosts"),
    ("showconf", "Show the settings of LIM on hosts"),
    ("help", "Get help on commands"),
    ("?", "Get help on commands"),
    ("quit", "Quit"),
];

/// Line under the checker's own lines.
const RULE: &str = "---------------------------------------------------------";

pub fn run(ctx: &mut Ctx) -> i32 {
    let words = ctx.words();
    match words.first().map(String::as_str) {
        Some("-h") => {
            usage(ctx);
            0
        }
        Some("-V") => {
            errln!(ctx, "{}", version::line());
            0
        }
        Some(_) => command(ctx, &words),
        None => super::badmin::prompt(ctx, |ctx, words| command(ctx, &words)),
    }
}

fn command(ctx: &mut Ctx, words: &[String]) -> i32 {
    match words[0].as_str() {
        "ckconfig" => ckconfig(ctx, &words[1..]),
        "reconfig" => reconfig(ctx, &words[1..]),
        "limlock" | "limunlock" | "limhlock" | "limhunlock" => lim_order(ctx, words)
            .unwrap_or_else(|why| {
                errln!(ctx, "{}: {why}", words[0]);
                FAIL
            }),
        "limdebug" | "limtime" | "resdebug" | "restime" => {
            logging(ctx, words).unwrap_or_else(|exit| exit.show(ctx))
        }
        "showconf" if words.get(1).is_some_and(|w| w == "lim") => {
            super::badmin::show::hosts(ctx, "LIM", &words[2..])
                .unwrap_or_else(|exit| exit.show(ctx))
        }
        "showconf" => {
            errln!(ctx, "Usage: showconf lim [host_name ... | all]");
            FAIL
        }
        "limrestart" => daemon(ctx, words, DaemonAction::Restart, Daemon::Lim),
        "limstartup" => daemon(ctx, words, DaemonAction::Start, Daemon::Lim),
        "limshutdown" => daemon(ctx, words, DaemonAction::Stop, Daemon::Lim),
        "resrestart" => daemon(ctx, words, DaemonAction::Restart, Daemon::Res),
        "resstartup" => daemon(ctx, words, DaemonAction::Start, Daemon::Res),
        "resshutdown" => daemon(ctx, words, DaemonAction::Stop, Daemon::Res),
        "reslogon" | "reslogoff" => res_log(ctx, words).unwrap_or_else(|why| {
            errln!(ctx, "{}: {why}", words[0]);
            FAIL
        }),
        "help" | "?" => help(ctx, &words[1..]),
        "quit" => 0,
        other => {
            errln!(ctx, "Invalid command <{other}>\n");
            usage(ctx);
            FAIL
        }
    }
}

fn daemon(ctx: &mut Ctx, words: &[String], verb: DaemonAction, daemon: Daemon) -> i32 {
    ctx.args = words[1..].iter().map(Into::into).collect();
    let text = match verb {
        DaemonAction::Start => "Starting up",
        DaemonAction::Stop => "Shut down",
        _ => "Restart",
    };
    let text = format!("{text} {} on", daemon.name().to_uppercase());
    super::badmin::ctrl::daemon(ctx, &text, verb, daemon)
}

/// `reslogon [-c cpu_ms] [host ...]`, `reslogoff [host ...]`; this host where none is named.
fn res_log(ctx: &mut Ctx, words: &[String]) -> Result<i32, String> {
    let (on, mut hosts) = (words[0] == "reslogon", words[1..].to_vec());
    let mut cpu_ms = on.then_some(0);
    if on && hosts.first().is_some_and(|w| w == "-c") {
        let number = hosts.get(1).and_then(|n| n.parse().ok());
        cpu_ms = Some(number.ok_or("-c wants milliseconds")?);
        hosts.drain(..2);
    }
    let site = site::find().map_err(|e| e.to_string())?;
    if hosts.is_empty() {
        hosts.push(site.host.clone());
    }
    let mut code = 0;
    for host in &hosts {
        let msg = Msg::Res(ResMsg::Log { cpu_ms });
        let done = client::res_of(&site, host).and_then(|mut res| res.call(&msg, ctx.err));
        match done {
            Ok(_) => errln!(ctx, "{} on <{host}> ...... done", words[0]),
            Err(e) => {
                errln!(ctx, "{} on <{host}> ...... failed: {e:#}", words[0]);
                code = FAIL;
            }
        }
    }
    Ok(code)
}

/// Checks the files; where nothing fatal is found, restarts every LIM.
fn reconfig(ctx: &mut Ctx, options: &[String]) -> i32 {
    let bad = options.iter().find(|o| !["-f", "-v"].contains(&o.as_str()));
    if bad.is_some() {
        errln!(ctx, "Usage: reconfig [-f] [-v]");
        return FAIL;
    }
    let verbose: Vec<String> = options.iter().filter(|o| *o == "-v").cloned().collect();
    let code = ckconfig(ctx, &verbose);
    if code != 0 {
        return code;
    }
    let mut words = vec!["limrestart".to_owned()];
    words.extend(options.iter().filter(|o| *o == "-f").cloned());
    words.push("all".to_owned());
    daemon(ctx, &words, DaemonAction::Restart, Daemon::Lim)
}

/// Locks of this host or, through the master, of others.
fn lim_order(ctx: &mut Ctx, words: &[String]) -> Result<i32, String> {
    let (verb, mut rest) = (words[0].as_str(), words[1..].to_vec());
    let site = site::find().map_err(|e| e.to_string())?;
    let number = |flag: &str, rest: &mut Vec<String>| -> Result<Option<u64>, String> {
        let Some(at) = rest.iter().position(|w| w == flag) else { return Ok(None) };
        let value = rest.get(at + 1).and_then(|w| w.parse().ok());
        let value = value.ok_or(format!("{flag} requires a number"))?;
        rest.drain(at..at + 2);
        Ok(Some(value))
    };
    let secs = number("-l", &mut rest)?.unwrap_or(0);
    if let Some(word) = rest.iter().find(|w| w.starts_with('-')) {
        return Err(format!("illegal option -- {}", word.trim_start_matches('-')));
    }
    let on = !verb.contains("unlock");
    if verb.starts_with("limh") {
        if rest.is_empty() {
            return Err("a host is wanted".to_owned());
        }
        let mut cluster = Cluster::of(site)?;
        for host in &rest {
            cluster.lock(host, on)?;
            outln!(ctx, "Host <{host}> is {}", if on { "locked" } else { "unlocked" });
        }
        return Ok(0);
    }
    if let Some(host) = rest.first() {
        return Err(format!("<{host}>: only the local host can be locked"));
    }
    let msg = Msg::Lim(LimMsg::Lock { host: String::new(), on, secs });
    let done = client::lim_of(&site, &site.host).and_then(|mut l| l.call(&msg, ctx.err));
    done.map_err(|e| format!("{}: {e:#}", site.host))?;
    outln!(ctx, "Host is {}", if on { "locked" } else { "unlocked" });
    Ok(0)
}

/// limdebug, limtime, resdebug, restime: what LIM or RES log on hosts, here where none is named.
fn logging(ctx: &mut Ctx, words: &[String]) -> Result<i32, Exit> {
    let verb = &words[0];
    ctx.args = words[1..].iter().map(Into::into).collect();
    let (set, mut hosts) = super::badmin::debug::read(ctx, &format!("lsadmin {verb}"))?;
    let site = site::find().map_err(Exit::fail)?;
    if hosts.is_empty() {
        hosts.push(site.host.clone());
    }
    let mut code = 0;
    for host in &hosts {
        let done = match verb.starts_with("lim") {
            true => client::lim_of(&site, host)
                .and_then(|mut l| l.call(&Msg::Lim(LimMsg::Logging(set.clone())), ctx.err)),
            false => client::res_of(&site, host)
                .and_then(|mut r| r.call(&Msg::Res(ResMsg::Logging(set.clone())), ctx.err)),
        };
        match done {
            Ok(_) => errln!(ctx, "{verb} on <{host}> ...... done"),
            Err(e) => {
                errln!(ctx, "{verb} on <{host}> ...... failed: {e:#}");
                code = FAIL;
            }
        }
    }
    Ok(code)
}

fn usage(ctx: &mut Ctx) {
    errln!(
        ctx,
        "Usage: lsadmin [-h] [-V] [command] [command_options] [command_args]\n\n    where \
         'command' is:\n"
    );
    for (name, what) in COMMANDS {
        errln!(ctx, "    {name:<11} {what}");
    }
}

fn help(ctx: &mut Ctx, names: &[String]) -> i32 {
    let known = |n: &String| COMMANDS.iter().find(|(name, _)| name == n);
    let Some(name) = names.first() else {
        usage(ctx);
        return 0;
    };
    match known(name) {
        Some((name, what)) => {
            let options = match *name {
                "ckconfig" => " [-v]",
                "reconfig" => " [-f] [-v]",
                "limlock" => " [-l seconds]",
                "limunlock" => "",
                "limhlock" | "limhunlock" => " host_name ...",
                "limdebug" | "resdebug" => {
                    " [-c class_name] [-l debug_level] [-f logfile_name] [-o] [host_name ...]"
                }
                "limtime" | "restime" => {
                    " [-l timing_level] [-f logfile_name] [-o] [host_name ...]"
                }
                "showconf" => " lim [host_name ... | all]",
                "reslogon" => " [-c cpu_ms] [host_name ...]",
                "reslogoff" => " [host_name ...]",
                name if name.starts_with("lim") || name.starts_with("res") => {
                    " [-f] [host_name ... | all]"
                }
                _ => "",
            };
            errln!(ctx, "{what}\nUsage: {name}{options}");
            0
        }
        None => {
            errln!(ctx, "Invalid command <{name}>");
            FAIL
        }
    }
}

fn ckconfig(ctx: &mut Ctx, options: &[String]) -> i32 {
    let verbose = match options {
        [] => false,
        [v] if v == "-v" => true,
        _ => {
            errln!(ctx, "Usage: ckconfig [-v]");
            return FAIL;
        }
    };
    let site = match site::find() {
        Ok(site) => site,
        Err(e) => {
            errln!(ctx, "\nChecking configuration files ...\n\n{e}\nThere are fatal errors.\n");
            return FAIL;
        }
    };
    let mut diags = check_lsf(&RealFiles, &site.envdir);
    if verbose {
        diags.extend(copies(&site));
    }
    report(ctx, &site.lsf.path, &diags, verbose)
}

/// Copies of the configuration that differ, as the master LIM knows; none where it does not
/// run, which does not keep anybody from checking files.
fn copies(site: &LocalSite) -> Vec<Diag> {
    let cluster = Cluster::of(site.clone());
    let Ok(hosts) = cluster.and_then(|mut c| c.hosts(&[])) else { return Vec::new() };
    let of = |load: HostLoad| {
        let host = load.host.escape_debug().to_string();
        load.copies.into_iter().map(move |(name, _)| Diag {
            severity: Severity::Warning,
            file: format!("{host}: {}", name.escape_debug()),
            line: 0,
            col: 0,
            text: "differs from that of the master host".into(),
            near: None,
        })
    };
    hosts.into_iter().flat_map(of).collect()
}

/// The diagnostics, then the verdict: on stdout when short, under the rule when long.
fn report(ctx: &mut Ctx, lsf_conf: &str, diags: &[Diag], verbose: bool) -> i32 {
    errln!(ctx, "\nChecking configuration files ...\n");
    if verbose {
        errln!(ctx, "{}", version::line());
        errln!(ctx, "Reading configuration from {lsf_conf}");
    }
    for d in diags.iter().filter(|d| verbose || d.severity != Severity::Notice) {
        errln!(ctx, "{}: {d}", d.severity.word());
    }
    let command = if verbose { "" } else { "lsadmin ckconfig -v" };
    if let Some(summary) = summary_not_acted_on(diags, command) {
        errln!(ctx, "{summary}");
    }
    let worst = diags.iter().map(|d| d.severity).max();
    let verdict = match worst {
        Some(Severity::Error) => "There are fatal errors.",
        Some(Severity::Warning) => "No fatal errors found.",
        _ => "No errors found.",
    };
    if verbose {
        errln!(ctx, "Checking Done.\n{RULE}\n{verdict}\n");
    } else {
        outln!(ctx, "{verdict}\n");
    }
    if worst == Some(Severity::Error) { FAIL } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(f: impl FnOnce(&mut Ctx) -> T) -> (T, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut ctx = Ctx::new("lsadmin", vec![], &mut out, &mut err);
        let got = f(&mut ctx);
        (got, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    fn diag(severity: Severity) -> Diag {
        Diag {
            severity,
            file: "/c/lsf.shared".into(),
            line: 3,
            col: 7,
            text: "<x> is not right".into(),
            near: None,
        }
    }

    #[test]
    fn the_verdict_by_the_worst() {
        let (code, out, err) = with(|ctx| report(ctx, "/c/lsf.conf", &[], false));
        assert_eq!((code, out.as_str()), (0, "No errors found.\n\n"));
        assert_eq!(err, "\nChecking configuration files ...\n\n");
        let (code, out, err) = with(|c| report(c, "/c", &[diag(Severity::Warning)], false));
        assert_eq!((code, out.as_str()), (0, "No fatal errors found.\n\n"));
        assert!(err.contains("warning: /c/lsf.shared:3:7: <x> is not right\n"), "{err}");
        let both = [diag(Severity::Notice), diag(Severity::Error)];
        let (code, out, err) = with(|ctx| report(ctx, "/c", &both, false));
        assert_eq!((code, out.as_str()), (FAIL, "There are fatal errors.\n\n"));
        assert!(!err.contains("notice"), "{err}");
    }

    #[test]
    fn the_long_form_is_all_on_stderr() {
        let notice = [diag(Severity::Notice)];
        let (code, out, err) = with(|ctx| report(ctx, "/c/lsf.conf", &notice, true));
        assert_eq!((code, out.as_str()), (0, ""));
        let tail = format!("Checking Done.\n{RULE}\nNo errors found.\n\n");
        assert!(err.starts_with("\nChecking configuration files ...\n\nlsf "), "{err}");
        assert!(err.contains("\nReading configuration from /c/lsf.conf\nnotice: "), "{err}");
        assert!(err.ends_with(&tail), "{err}");
        assert_eq!(RULE.len(), 57);
    }

    #[test]
    fn unknown_command_is_refused_with_the_usage() {
        let (code, out, err) = with(|ctx| command(ctx, &["limreconfig".to_owned()]));
        assert_eq!((code, out.as_str()), (FAIL, ""));
        assert!(err.starts_with("Invalid command <limreconfig>\n\nUsage: lsadmin ["), "{err}");
    }
}
