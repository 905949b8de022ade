//! lsf_daemons: the daemons of this host. Also lsfstartup, lsfshutdown and lsfrestart: those of all
//! hosts. See lsf_daemons(8), lsfstartup(8) and lsf.sudoers(5).

use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::site::{self, Around, LocalSite};
use lsf::cli::startup::{self, DaemonAction};
use lsf::cli::{daemons, links, version};
use lsf::daemon::delegate::conf_files;
use lsf::{errln, outln};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Exit code of `status` where something does not run, as of every service.
const NOT_RUNNING: i32 = 3;

pub fn run(ctx: &mut Ctx) -> i32 {
    let mut words = ctx.words();
    let mut around = Around::process();
    if words.first().is_some_and(|w| w == "-d") && words.len() > 1 {
        around.envdir = Some(words.remove(1).into());
        words.remove(0);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let verb = |w: &str| DaemonAction::ALL.iter().find(|v| v.0 == w).map(|v| v.1);
    let done = match words.as_slice() {
        ["-V"] => {
            errln!(ctx, "{}", version::line());
            return 0;
        }
        ["status"] => find(&around).and_then(|site| status(ctx, &site)),
        [word] if verb(word).is_some() => act(&around, verb(word), None),
        [word, d] if verb(word).is_some() && startup::named(d).is_some() => {
            act(&around, verb(word), Some(d))
        }
        other => {
            let known = match other {
                [word, d, ..] if verb(word).is_some() && startup::named(d).is_some() => 2,
                [word, ..] if verb(word).is_some() || *word == "status" => 1,
                _ => 0,
            };
            wrong(ctx, &other[known..]);
            errln!(
                ctx,
                "Usage: lsf_daemons [-d env_dir] start | stop | restart | reload [daemon]\n       \
                 lsf_daemons [-d env_dir] status"
            );
            return if other == ["-h"] { 0 } else { FAIL };
        }
    };
    done.unwrap_or_else(|why| {
        errln!(ctx, "lsf_daemons: {why}");
        FAIL
    })
}

/// Names the word that makes no sense: the first of these.
fn wrong(ctx: &mut Ctx, words: &[&str]) {
    match words {
        [] | ["-h"] => {}
        ["-d"] => errln!(ctx, "{}: option -d requires a directory", ctx.name),
        [word, ..] => errln!(ctx, "{}: {}: not understood", ctx.name, word.escape_debug()),
    }
}

fn find(around: &Around) -> Result<LocalSite, String> {
    site::find_with(&*conf_files(), around).map_err(|e| e.to_string())
}

fn act(around: &Around, verb: Option<DaemonAction>, daemon: Option<&&str>) -> Result<i32, String> {
    let site = find(around)?;
    let Some(verb) = verb else { return Ok(FAIL) };
    if needs_root(&site, verb, daemon.is_none()) {
        let mut sudo = Command::new("sudo");
        sudo.arg("-n").arg(links::own_binary()?.with_file_name("lsf_daemons"));
        let words = DaemonAction::ALL.iter().find(|v| v.1 == verb).map(|v| v.0);
        let e = sudo.arg("-d").arg(&site.envdir).args(words).args(daemon).exec();
        return Err(format!("only root can do this, and sudo failed: {}", lsf::sys::words(&e)));
    }
    startup::here(&site, verb, daemon.and_then(|d| startup::named(d)))?;
    Ok(0)
}

/// Whether only root can: the launcher's directory is not the caller's, and its socket not for
/// the caller, or not enough.
fn needs_root(site: &LocalSite, verb: DaemonAction, all: bool) -> bool {
    let (me, dir) = (lsf::sys::euid(), site.rundir());
    if me == 0 {
        return false;
    }
    let _ = std::fs::create_dir_all(&dir);
    let own = std::fs::metadata(&dir).is_ok_and(|m| m.uid() == me);
    let anew = all && matches!(verb, DaemonAction::Restart | DaemonAction::Reload);
    !own && (anew || daemons::LauncherLink::open(site).is_err())
}

fn status(ctx: &mut Ctx, site: &LocalSite) -> Result<i32, String> {
    let all = startup::status(site)?;
    outln!(ctx, "Show status of the LSF subsystem");
    for (name, pid) in &all {
        match pid {
            Some(pid) => outln!(ctx, "{name} (pid {pid}) is running..."),
            None => outln!(ctx, "{name} is stopped..."),
        }
    }
    Ok(if all.iter().all(|(_, pid)| pid.is_some()) { 0 } else { NOT_RUNNING })
}

pub fn lsfstartup(ctx: &mut Ctx) -> i32 {
    all(ctx, "Starting up the daemons on", DaemonAction::Start)
}

pub fn lsfshutdown(ctx: &mut Ctx) -> i32 {
    all(ctx, "Shut down the daemons on", DaemonAction::Stop)
}

pub fn lsfrestart(ctx: &mut Ctx) -> i32 {
    all(ctx, "Restart the daemons on", DaemonAction::Restart)
}

/// Applies the verb on every server host; without -f a user at a terminal is asked first.
fn all(ctx: &mut Ctx, words: &str, verb: DaemonAction) -> i32 {
    let options = ctx.words();
    match options.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["-V"] => {
            errln!(ctx, "{}", version::line());
            0
        }
        ["-f"] | [] => {
            let sure = !options.is_empty()
                || !super::badmin::ask::interactive()
                || super::badmin::ask::ask(ctx, &format!("{words} all hosts?"));
            let hosts = ["all".to_owned()];
            if sure { startup::there(ctx, words, (verb, None), &hosts) } else { FAIL }
        }
        other => {
            wrong(ctx, if other[0] == "-f" { &other[1..] } else { other });
            errln!(ctx, "Usage: {} [-f]", ctx.name);
            if other == ["-h"] { 0 } else { FAIL }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn said(name: &'static str, how: fn(&mut Ctx) -> i32, words: &[&str]) -> (i32, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let args = words.iter().map(OsString::from).collect();
        let code = how(&mut Ctx::new(name, args, &mut out, &mut err));
        let err = String::from_utf8(err).unwrap();
        (code, err.lines().next().unwrap_or_default().to_owned())
    }

    #[test]
    fn a_wrong_word_is_named() {
        let usage = "Usage: lsf_daemons [-d env_dir] start | stop | restart | reload [daemon]";
        for (words, want) in [
            (&["begin"][..], "lsf_daemons: begin: not understood"),
            (&["start", "cron"], "lsf_daemons: cron: not understood"),
            (&["start", "lim", "more"], "lsf_daemons: more: not understood"),
            (&["status", "lim"], "lsf_daemons: lim: not understood"),
            (&["-d", "/etc", "x\u{1b}"], "lsf_daemons: x\\u{1b}: not understood"),
            (&["-d"], "lsf_daemons: option -d requires a directory"),
            (&[], usage),
        ] {
            assert_eq!(said("lsf_daemons", run, words), (FAIL, want.to_owned()), "{words:?}");
        }
        assert_eq!(said("lsf_daemons", run, &["-h"]), (0, usage.to_owned()));
        for (name, how) in [
            ("lsfstartup", lsfstartup as fn(&mut Ctx) -> i32),
            ("lsfshutdown", lsfshutdown),
            ("lsfrestart", lsfrestart),
        ] {
            let want = format!("{name}: -g: not understood");
            assert_eq!(said(name, how, &["-g"]), (FAIL, want.clone()));
            assert_eq!(said(name, how, &["-f", "-g"]), (FAIL, want));
            assert_eq!(said(name, how, &["-h"]), (0, format!("Usage: {name} [-f]")));
        }
    }
}
