//! Temporary log settings of daemons: mbddebug, sbddebug, schddebug, and mbdtime and its like for
//! the duration of turns (badmin(8)); lsadmin has the same options.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::site;
use lsf::errln;
use lsf::model::reason::err_text;
use lsf::proto::Logging;
use lsf::proto::client::{AdminOp, ClientMsg};

/// Highest level of messages, and of times.
const MAX_LEVEL: u8 = 3;
const MAX_TIMING: u8 = 5;

/// Options of the commands that have a daemon log more.
#[derive(FromArgs, ArgsInfo)]
struct DebugOpts {
    /// classes of messages (LC_...); accepted by name and not distinguished
    #[argh(option, short = 'c', arg_name = "class_name ...")]
    classes: Option<String>,
    /// level: 0 debugging messages (the default), 1 to 3 all messages
    #[argh(option, short = 'l', arg_name = "debug_level")]
    level: Option<u8>,
    /// log to FILE.DAEMON.log.HOST, in LSF_LOGDIR unless the name has a directory
    #[argh(option, short = 'f', arg_name = "logfile_name")]
    file: Option<String>,
    /// return to the settings of lsf.conf
    #[argh(switch, short = 'o')]
    off: bool,
    /// accepted
    #[argh(switch, short = 's', hidden_help)]
    _serial: bool,
    /// hosts; default: the local host
    #[argh(positional, greedy, arg_name = "host_name")]
    hosts: Vec<String>,
}

/// Options of the commands that have a daemon tell how long its turns take.
#[derive(FromArgs, ArgsInfo)]
struct TimeOpts {
    /// level: 1 logs turns of 0.1 s and more, each further level turns
    /// ten times shorter, 5 all turns
    #[argh(option, short = 'l', arg_name = "timing_level")]
    level: Option<u8>,
    /// log to FILE.DAEMON.log.HOST, in LSF_LOGDIR unless the name has a directory
    #[argh(option, short = 'f', arg_name = "logfile_name")]
    file: Option<String>,
    /// return to the settings of lsf.conf
    #[argh(switch, short = 'o')]
    off: bool,
    /// accepted
    #[argh(switch, short = 's', hidden_help)]
    _serial: bool,
    /// hosts; default: the local host
    #[argh(positional, greedy, arg_name = "host_name")]
    hosts: Vec<String>,
}

/// Classes of messages that LSF knows; LC2_ ones are all taken.
const CLASSES: [&str; 21] = [
    "LC_SCHED",
    "LC_EXEC",
    "LC_TRACE",
    "LC_COMM",
    "LC_XDR",
    "LC_CHKPNT",
    "LC_FILE",
    "LC_AUTH",
    "LC_HANG",
    "LC_SIGNAL",
    "LC_PIM",
    "LC_SYS",
    "LC_JLIMIT",
    "LC_PEND",
    "LC_LOADINDX",
    "LC_M_LOG",
    "LC_PERFM",
    "LC_MPI",
    "LC_JGRP",
    "LC_ELIM",
    "LC_CONF",
];

/// The request in the words of `NAME`, and the named hosts.
pub fn read(ctx: &mut Ctx, name: &str) -> Result<(Logging, Vec<String>), Exit> {
    if name.ends_with("time") {
        let o = front::parse::<TimeOpts>(name, &ctx.args)?.options;
        let level = o.level.unwrap_or(1);
        if !(1..=MAX_TIMING).contains(&level) {
            return Err(Exit::fail(format_args!("{name}: the level is 1 to {MAX_TIMING}")));
        }
        let timing = Some(if o.off { 0 } else { level });
        let file = o.file.or(o.off.then(String::new));
        return Ok((Logging { timing, file, level: None }, o.hosts));
    }
    let o = front::parse::<DebugOpts>(name, &ctx.args)?.options;
    for class in o.classes.iter().flat_map(|c| c.split_whitespace()) {
        if !CLASSES.contains(&class) && !class.starts_with("LC2_") {
            return Err(Exit::fail(format_args!("{name}: <{class}> is not a class of messages")));
        }
    }
    if o.classes.is_some() {
        errln!(ctx, "{name}: classes are not kept apart: messages of all are logged");
    }
    let level = o.level.unwrap_or(0);
    if level > MAX_LEVEL {
        return Err(Exit::fail(format_args!("{name}: the level is 0 to {MAX_LEVEL}")));
    }
    let level = Some(if o.off { 0 } else { 1 + level.min(1) });
    let file = o.file.or(o.off.then(String::new));
    Ok((Logging { level, file, timing: None }, o.hosts))
}

pub fn mbddebug(ctx: &mut Ctx) -> Result<i32, Exit> {
    master(ctx, "mbddebug")
}

pub fn schddebug(ctx: &mut Ctx) -> Result<i32, Exit> {
    master(ctx, "schddebug")
}

pub fn mbdtime(ctx: &mut Ctx) -> Result<i32, Exit> {
    master(ctx, "mbdtime")
}

pub fn schdtime(ctx: &mut Ctx) -> Result<i32, Exit> {
    master(ctx, "schdtime")
}

pub fn sbddebug(ctx: &mut Ctx) -> Result<i32, Exit> {
    hosts(ctx, "sbddebug")
}

pub fn sbdtime(ctx: &mut Ctx) -> Result<i32, Exit> {
    hosts(ctx, "sbdtime")
}

/// Sends the setting to the master batch daemon, of which the scheduler is a part.
fn master(ctx: &mut Ctx, verb: &str) -> Result<i32, Exit> {
    let (set, hosts) = read(ctx, &format!("badmin {verb}"))?;
    match hosts.first() {
        Some(host) => Err(Exit::fail(format_args!("badmin {verb}: <{host}>: takes no host name"))),
        None => order(ctx, verb, set, hosts),
    }
}

/// Sends the setting to the batch daemons of hosts, through the master.
fn hosts(ctx: &mut Ctx, verb: &str) -> Result<i32, Exit> {
    let (set, mut hosts) = read(ctx, &format!("badmin {verb}"))?;
    if hosts.is_empty() {
        hosts.push(site::find().map_err(Exit::fail)?.host);
    }
    order(ctx, verb, set, hosts)
}

fn order(ctx: &mut Ctx, verb: &str, set: Logging, hosts: Vec<String>) -> Result<i32, Exit> {
    let lines = match client::ask(ctx, ClientMsg::Admin(AdminOp::Logging { hosts, set })) {
        Ok(ClientMsg::AdminDone { lines }) => lines,
        Ok(_) => return Err(Exit::fail(ClientError::Unexpected)),
        Err(e) => return Err(Exit::fail(e)),
    };
    let mut code = 0;
    for l in &lines {
        match l.code {
            0 => errln!(ctx, "{verb} on <{}> ...... done", l.about),
            n => {
                let why = if l.text.is_empty() { err_text(n) } else { &l.text };
                errln!(ctx, "{verb} on <{}> ...... failed: {why}", l.about);
                code = FAIL;
            }
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn asked(name: &str, words: &[&str]) -> Result<Logging, String> {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let args = words.iter().map(OsString::from).collect();
        let mut ctx = Ctx::new("badmin", args, &mut out, &mut err);
        read(&mut ctx, name).map(|(set, _)| set).map_err(|e| e.err)
    }

    #[test]
    fn levels_files_and_classes() {
        let file = |f: &str| Some(f.to_owned());
        let set = |level, timing, file| Ok(Logging { level, timing, file });
        assert_eq!(asked("badmin mbddebug", &[]), set(Some(1), None, None));
        let words = ["-c", "LC_TRACE LC2_X", "-l", "3", "-f", "x"];
        assert_eq!(asked("badmin mbddebug", &words), set(Some(2), None, file("x")));
        assert_eq!(asked("badmin mbddebug", &["-o"]), set(Some(0), None, file("")));
        assert_eq!(asked("badmin mbdtime", &["-l", "5"]), set(None, Some(5), None));
        assert_eq!(asked("badmin mbdtime", &["-o"]), set(None, Some(0), file("")));
        let no = |name: &str, words: &[&str]| asked(name, words).unwrap_err();
        assert!(no("badmin mbddebug", &["-l", "4"]).contains("the level is 0 to 3"));
        assert!(no("badmin mbdtime", &["-l", "0"]).contains("the level is 1 to 5"));
        assert!(no("badmin sbddebug", &["-c", "LC_FOO"]).contains("<LC_FOO> is not a class"));
    }
}
