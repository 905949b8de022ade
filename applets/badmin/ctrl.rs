//! qopen, qclose, qact, qinact, hopen, hclose.

use super::ask::{ask, interactive};
use crate::control;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::client;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::site;
use lsf::cli::startup::{self, DaemonAction};
use lsf::model::reason::{err, err_text};
use lsf::proto::Daemon;
use lsf::proto::client::{AdminLine, AdminOp, ClientMsg, QueueOp};
use lsf::{errln, outln};

/// Options of the commands that open and close.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// a comment for the log
    #[argh(option, short = 'C', arg_name = "comment")]
    comment: Option<String>,
    /// the lock ID that hclose adds to hosts and hopen removes
    #[argh(option, short = 'i', arg_name = "lock_id")]
    lock_id: Option<String>,
    /// queues, hosts or host groups; `all`
    #[argh(positional, greedy, arg_name = "name")]
    names: Vec<String>,
}

pub fn qopen(ctx: &mut Ctx) -> Result<i32, Exit> {
    queues(ctx, QueueOp::Open, "qopen", "opened")
}

pub fn qclose(ctx: &mut Ctx) -> Result<i32, Exit> {
    queues(ctx, QueueOp::Close, "qclose", "closed")
}

pub fn qact(ctx: &mut Ctx) -> Result<i32, Exit> {
    queues(ctx, QueueOp::Activate, "qact", "activated")
}

pub fn qinact(ctx: &mut Ctx) -> Result<i32, Exit> {
    queues(ctx, QueueOp::Inactivate, "qinact", "inactivated")
}

pub fn hopen(ctx: &mut Ctx) -> Result<i32, Exit> {
    hosts(ctx, true, "hopen", "Open")
}

pub fn hclose(ctx: &mut Ctx) -> Result<i32, Exit> {
    hosts(ctx, false, "hclose", "Close")
}

pub fn hghostadd(ctx: &mut Ctx) -> Result<i32, Exit> {
    group_hosts(ctx, true)
}

pub fn hghostdel(ctx: &mut Ctx) -> Result<i32, Exit> {
    group_hosts(ctx, false)
}

pub fn hrestart(ctx: &mut Ctx) -> Result<i32, Exit> {
    Ok(daemon(ctx, "Restart slave batch daemon on", DaemonAction::Restart, Daemon::Sbatchd))
}

pub fn hshutdown(ctx: &mut Ctx) -> Result<i32, Exit> {
    Ok(daemon(ctx, "Shut down slave batch daemon on", DaemonAction::Stop, Daemon::Sbatchd))
}

pub fn hstartup(ctx: &mut Ctx) -> Result<i32, Exit> {
    Ok(daemon(ctx, "Starting up slave batch daemon on", DaemonAction::Start, Daemon::Sbatchd))
}

/// Does it with a daemon of the hosts named; without -f somebody who is there is asked.
pub fn daemon(ctx: &mut Ctx, words: &str, verb: DaemonAction, daemon: Daemon) -> i32 {
    let mut hosts = ctx.words();
    let options = hosts.iter().take_while(|w| ["-f", "-v"].contains(&w.as_str())).count();
    let sure = hosts.drain(..options).any(|w| w == "-f");
    if let Some(option) = hosts.iter().find(|w| w.starts_with('-')) {
        errln!(ctx, "{}: illegal option -- {}", ctx.name, option.trim_start_matches('-'));
        return FAIL;
    }
    if !sure && interactive() {
        if hosts.is_empty() {
            match site::find() {
                Ok(site) => hosts.push(site.host),
                Err(e) => return Exit::fail(e).show(ctx),
            }
        }
        hosts.retain(|host| ask(ctx, &question(verb, daemon, host)));
        if hosts.is_empty() {
            return FAIL;
        }
    }
    startup::there(ctx, words, (verb, Some(daemon)), &hosts)
}

/// The question on a terminal about one host, or about all hosts.
fn question(verb: DaemonAction, daemon: Daemon, host: &str) -> String {
    let verb = match verb {
        DaemonAction::Start => "Start up",
        DaemonAction::Stop => "Shut down",
        _ => "Restart",
    };
    let (one, several) = match daemon {
        Daemon::Lim => ("LIM", "LIMs"),
        Daemon::Res => ("RES", "RES"),
        _ => ("slave batch daemon", "slave batch daemons"),
    };
    match host {
        "all" => format!("Do you really want to {} {several} on all hosts?", verb.to_lowercase()),
        host => format!("{verb} {one} on <{host}> ?"),
    }
}

/// The names, the comment and the lock ID of one of these commands.
fn read(ctx: &Ctx, verb: &str) -> Result<(Vec<String>, String, String), Exit> {
    let name = format!("badmin {verb}");
    let opts = front::parse::<Opts>(&name, &ctx.args)?.options;
    if opts.lock_id.as_ref().is_some_and(|id| id.is_empty() || !verb.starts_with('h')) {
        return Err(Exit::fail(format_args!("{name}: illegal option -- i")));
    }
    Ok((opts.names, opts.comment.unwrap_or_default(), opts.lock_id.unwrap_or_default()))
}

fn queues(ctx: &mut Ctx, op: QueueOp, verb: &str, done: &str) -> Result<i32, Exit> {
    let (mut queues, comment, _) = read(ctx, verb)?;
    if queues.is_empty() {
        queues.push(default_queue(ctx)?);
    }
    let op = AdminOp::QueueCtrl { op, queues, comment };
    let lines = match client::ask(ctx, ClientMsg::Admin(op)) {
        Ok(ClientMsg::AdminDone { lines }) => lines,
        Ok(_) => return Ok(control::unexpected(ctx)),
        Err(e) => return Err(Exit::fail(e)),
    };
    Ok(queue_lines(ctx, &lines, done))
}

/// The queue that is meant where none is named: the first of DEFAULT_QUEUE.
fn default_queue(ctx: &mut Ctx) -> Result<String, Exit> {
    let values = match client::ask(ctx, ClientMsg::Params) {
        Ok(ClientMsg::ParamRows { values }) => values,
        Ok(_) => Vec::new(),
        Err(e) => return Err(Exit::fail(e)),
    };
    let list = values.into_iter().find(|(name, _)| name == "DEFAULT_QUEUE").map(|(_, list)| list);
    let first = list.as_deref().and_then(|list| list.split_whitespace().next());
    first.map(str::to_owned).ok_or_else(|| Exit::fail(err_text(err::QUEUE_NAME)))
}

fn queue_lines(ctx: &mut Ctx, lines: &[AdminLine], done: &str) -> i32 {
    for l in lines {
        match l.code {
            0 => outln!(ctx, "Queue <{}> is {done}", l.about),
            _ => errln!(ctx, "{}: {}", l.about, words(l)),
        }
    }
    exit_code(lines)
}

fn hosts(ctx: &mut Ctx, open: bool, verb: &str, word: &str) -> Result<i32, Exit> {
    let (mut hosts, comment, lock) = read(ctx, verb)?;
    if hosts.is_empty() {
        hosts.push(site::find().map_err(Exit::fail)?.host);
    }
    let op = AdminOp::HostCtrl { open, hosts: hosts.clone(), comment, lock };
    let lines = match client::ask(ctx, ClientMsg::Admin(op)) {
        Ok(ClientMsg::AdminDone { lines }) => lines,
        Ok(_) => return Ok(control::unexpected(ctx)),
        // The refusal of the whole is that of each host named.
        Err(e) => match e.code() {
            Some(code) => {
                let text = if code == err::BAD_ARG { e.to_string() } else { String::new() };
                let line = |about| AdminLine { about, code, text: text.clone() };
                hosts.into_iter().map(line).collect()
            }
            None => return Err(Exit::fail(e)),
        },
    };
    Ok(host_lines(ctx, &lines, word))
}

/// Options of hghostadd and hghostdel.
#[derive(FromArgs, ArgsInfo)]
struct GroupOpts {
    /// a comment for the log
    #[argh(option, short = 'C', arg_name = "comment")]
    comment: Option<String>,
    /// hghostdel: ask no questions
    #[argh(switch, short = 'f')]
    sure: bool,
    /// a host group or compute unit, then hosts
    #[argh(positional, greedy, arg_name = "host_group host_name ...")]
    names: Vec<String>,
}

/// Dynamic members of a group. The words of success are of no source.
fn group_hosts(ctx: &mut Ctx, add: bool) -> Result<i32, Exit> {
    let verb = if add { "hghostadd" } else { "hghostdel" };
    let opts = front::parse::<GroupOpts>(&format!("badmin {verb}"), &ctx.args)?.options;
    let usage = || {
        let force = if add { "" } else { "[-f] " };
        Exit::fail(format_args!(
            "Usage: badmin {verb} {force}[-C comment] host_group | compute_unit host_name ..."
        ))
    };
    let mut names = opts.names.into_iter();
    let group = names.next().ok_or_else(usage)?;
    let hosts: Vec<String> = names.collect();
    if hosts.is_empty() || (add && opts.sure) {
        return Err(usage());
    }
    if !add && !opts.sure && interactive() {
        let question = format!("Delete {} from host group <{group}> ?", hosts.join(" "));
        if !ask(ctx, &question) {
            return Ok(FAIL);
        }
    }
    let comment = opts.comment.unwrap_or_default();
    let op = AdminOp::GroupHosts { add, group: group.clone(), hosts, comment };
    let lines = match client::ask(ctx, ClientMsg::Admin(op)) {
        Ok(ClientMsg::AdminDone { lines }) => lines,
        Ok(_) => return Ok(control::unexpected(ctx)),
        Err(e) => return Err(Exit::fail(e)),
    };
    let did = if add { "Add" } else { "Delete" };
    let place = if add { "to" } else { "from" };
    for l in &lines {
        match l.code {
            0 => errln!(ctx, "{did} <{}> {place} host group <{group}> ...... done", l.about),
            _ => errln!(ctx, "{}: {}", l.about, words(l)),
        }
    }
    Ok(exit_code(&lines))
}

fn host_lines(ctx: &mut Ctx, lines: &[AdminLine], word: &str) -> i32 {
    for l in lines {
        match l.code {
            0 => errln!(ctx, "{word} <{}> ...... done", l.about),
            err::BAD_HOST => errln!(ctx, "{}: {}", l.about, words(l)),
            _ => {
                errln!(ctx, "{word} <{}> ...... Host control failed.: {}", l.about, words(l));
            }
        }
    }
    exit_code(lines)
}

fn words(l: &AdminLine) -> &str {
    if l.text.is_empty() { err_text(l.code) } else { &l.text }
}

fn exit_code(lines: &[AdminLine]) -> i32 {
    if lines.iter().any(|l| l.code != 0) { FAIL } else { 0 }
}

#[cfg(test)]
mod tests {
    #[test]
    fn questions_name_the_action_the_daemon_and_the_host() {
        for (verb, daemon, host, want) in [
            (DaemonAction::Start, Daemon::Lim, "hosta", "Start up LIM on <hosta> ?"),
            (DaemonAction::Stop, Daemon::Res, "hosta", "Shut down RES on <hosta> ?"),
            (DaemonAction::Restart, Daemon::Sbatchd, "h", "Restart slave batch daemon on <h> ?"),
            (
                DaemonAction::Restart,
                Daemon::Lim,
                "all",
                "Do you really want to restart LIMs on all hosts?",
            ),
        ] {
            assert_eq!(question(verb, daemon, host), want);
        }
    }

    use super::*;

    fn line(about: &str, code: i32) -> AdminLine {
        AdminLine { about: about.into(), code, text: String::new() }
    }

    fn said(f: impl FnOnce(&mut Ctx) -> i32) -> (i32, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = f(&mut Ctx::new("badmin", vec![], &mut out, &mut err));
        (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    /// The texts that LSF prints.
    #[test]
    fn queues_and_hosts_are_named_one_by_one() {
        let lines = [line("normal", 0), line("nosuch", err::BAD_QUEUE)];
        let (code, out, err) = said(|c| queue_lines(c, &lines, "closed"));
        assert_eq!((code, out.as_str()), (FAIL, "Queue <normal> is closed\n"));
        assert_eq!(err, "nosuch: No such queue\n");
        let lines = [line("vm2", 0), line("vm", err::PERMISSION)];
        let (code, out, err) = said(|c| host_lines(c, &lines, "Close"));
        assert_eq!((code, out.as_str()), (FAIL, ""));
        let failed = "Close <vm> ...... Host control failed.: User permission denied\n";
        assert_eq!(err, format!("Close <vm2> ...... done\n{failed}"));
        let (code, _, err) = said(|c| host_lines(c, &[line("vm2", 0)], "Open"));
        assert_eq!((code, err.as_str()), (0, "Open <vm2> ...... done\n"));
    }
}
