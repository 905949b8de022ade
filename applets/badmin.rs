//! badmin: administers the batch system (badmin(8)).
//!
//! Invariants: a configuration with errors never reaches the master: `reconfig` and
//! `mbdrestart` check the files first, and the master checks them again before it swaps
//! anything. Nothing is asked unless both standard input and standard output are terminals.

mod acceptlog;
pub mod ask;
mod check;
pub mod ctrl;
pub mod debug;
mod diagnose;
mod hist;
mod perfmon;
pub mod show;

use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::Exit;
use lsf::cli::version;
use lsf::errln;
use std::ffi::OsString;
use std::io::IsTerminal;

/// A command of badmin.
struct Command {
    name: &'static str,
    run: fn(&mut Ctx) -> Result<i32, Exit>,
    /// One line for the usage.
    line: &'static str,
    /// The usage of the command alone.
    usage: &'static str,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "reconfig",
        run: check::reconfig,
        line: "Reconfigure the system",
        usage: "reconfig [-v] [-f] [-C comment]",
    },
    Command {
        name: "ckconfig",
        run: check::ckconfig,
        line: "Check configuration files",
        usage: "ckconfig [-v]",
    },
    Command {
        name: "qopen",
        run: ctrl::qopen,
        line: "Open queues",
        usage: "qopen [-C comment] [queue_name ... | all]",
    },
    Command {
        name: "qclose",
        run: ctrl::qclose,
        line: "Close queues",
        usage: "qclose [-C comment] [queue_name ... | all]",
    },
    Command {
        name: "qact",
        run: ctrl::qact,
        line: "Activate queues",
        usage: "qact [-C comment] [queue_name ... | all]",
    },
    Command {
        name: "qinact",
        run: ctrl::qinact,
        line: "Inactivate queues",
        usage: "qinact [-C comment] [queue_name ... | all]",
    },
    Command {
        name: "qhist",
        run: hist::qhist,
        line: "Display the history of queues",
        usage: "qhist [-t time0,time1] [-f logfile] [queue_name ...]",
    },
    Command {
        name: "hopen",
        run: ctrl::hopen,
        line: "Open hosts",
        usage: "hopen [-C comment] [-i lock_id] [host_name ... | host_group ... | all]",
    },
    Command {
        name: "hclose",
        run: ctrl::hclose,
        line: "Close hosts",
        usage: "hclose [-C comment] [-i lock_id] [host_name ... | host_group ... | all]",
    },
    Command {
        name: "hghostadd",
        run: ctrl::hghostadd,
        line: "Add dynamic hosts to a host group",
        usage: "hghostadd [-C comment] host_group | compute_unit host_name ...",
    },
    Command {
        name: "hghostdel",
        run: ctrl::hghostdel,
        line: "Delete dynamic hosts from a host group",
        usage: "hghostdel [-f] [-C comment] host_group | compute_unit host_name ...",
    },
    Command {
        name: "hrestart",
        run: ctrl::hrestart,
        line: "Restart slave batch daemon on hosts",
        usage: "hrestart [-f] [host_name ... | all]",
    },
    Command {
        name: "hshutdown",
        run: ctrl::hshutdown,
        line: "Shut down slave batch daemon on hosts",
        usage: "hshutdown [-f] [host_name ... | all]",
    },
    Command {
        name: "hstartup",
        run: ctrl::hstartup,
        line: "Start up slave batch daemon on hosts",
        usage: "hstartup [-f] [host_name ... | all]",
    },
    Command {
        name: "hhist",
        run: hist::hhist,
        line: "Display the history of hosts",
        usage: "hhist [-t time0,time1] [-f logfile] [host_name ...]",
    },
    Command {
        name: "mbdhist",
        run: hist::mbdhist,
        line: "Display the history of the master batch daemon",
        usage: "mbdhist [-t time0,time1] [-f logfile]",
    },
    Command {
        name: "hist",
        run: hist::hist,
        line: "Display the history of queues, hosts and mbatchd",
        usage: "hist [-t time0,time1] [-f logfile]",
    },
    Command {
        name: "mbdrestart",
        run: check::mbdrestart,
        line: "Restart the master batch daemon",
        usage: "mbdrestart [-v] [-f] [-C comment]",
    },
    Command {
        name: "acceptlog",
        run: acceptlog::acceptlog,
        line: "Continue from an event log that is not the latest one",
        usage: "acceptlog [-f]",
    },
    Command {
        name: "mbddebug",
        run: debug::mbddebug,
        line: "Debug the master batch daemon",
        usage: "mbddebug [-c class_name] [-l debug_level] [-f logfile_name] [-o]",
    },
    Command {
        name: "mbdtime",
        run: debug::mbdtime,
        line: "Timing of the master batch daemon",
        usage: "mbdtime [-l timing_level] [-f logfile_name] [-o]",
    },
    Command {
        name: "schddebug",
        run: debug::schddebug,
        line: "Debug the scheduler",
        usage: "schddebug [-c class_name] [-l debug_level] [-f logfile_name] [-o]",
    },
    Command {
        name: "schdtime",
        run: debug::schdtime,
        line: "Timing of the scheduler",
        usage: "schdtime [-l timing_level] [-f logfile_name] [-o]",
    },
    Command {
        name: "sbddebug",
        run: debug::sbddebug,
        line: "Debug slave batch daemons",
        usage: "sbddebug [-c class_name] [-l debug_level] [-f logfile_name] \
                [-o] [host_name ...]",
    },
    Command {
        name: "sbdtime",
        run: debug::sbdtime,
        line: "Timing of slave batch daemons",
        usage: "sbdtime [-l timing_level] [-f logfile_name] [-o] [host_name ...]",
    },
    Command {
        name: "showconf",
        run: show::showconf,
        line: "Show the settings of daemons",
        usage: "showconf mbd | [sbd] [host_name ... | all]",
    },
    Command {
        name: "showstatus",
        run: show::showstatus,
        line: "Show what the master batch daemon is doing",
        usage: "showstatus [-json]",
    },
    Command {
        name: "perfmon",
        run: perfmon::perfmon,
        line: "Count queries and jobs by sample periods",
        usage: "perfmon start [sample_period] | stop | view | setperiod sample_period",
    },
    Command {
        name: "diagnose",
        run: diagnose::diagnose,
        line: "Show pending reasons, or record queries",
        usage: "diagnose pending_jobID ... | -c query [[-f logfile_name] [-d duration] | [-o]]",
    },
];

/// Commands that LSF has and this badmin has not yet.
const LATER: &[&str] =
    &["gpdckconfig", "gpdrestart", "lsproxyd", "security", "gpddebug", "gpdtime", "rc", "forward"];

pub fn run(ctx: &mut Ctx) -> i32 {
    let words = std::mem::take(&mut ctx.args);
    match words.first().and_then(|w| w.to_str()) {
        None if words.is_empty() => {
            prompt(ctx, |ctx, words| command(ctx, words.into_iter().map(OsString::from).collect()))
        }
        Some("-h" | "--help") => {
            usage(ctx);
            0
        }
        Some("-V" | "--version") => {
            errln!(ctx, "{}", version::line());
            0
        }
        _ => command(ctx, words),
    }
}

/// Runs one command: its name, then its own words.
fn command(ctx: &mut Ctx, mut words: Vec<OsString>) -> i32 {
    let name = words.remove(0).to_string_lossy().into_owned();
    ctx.args = words;
    match name.as_str() {
        "help" | "?" => return help(ctx),
        "quit" => return 0,
        _ => {}
    }
    let Some(found) = COMMANDS.iter().find(|c| c.name == name) else {
        if LATER.contains(&name.as_str()) {
            errln!(ctx, "badmin: {name} is not supported yet");
        } else {
            errln!(ctx, "Invalid command <{name}>\n");
            usage(ctx);
        }
        return FAIL;
    };
    match (found.run)(ctx) {
        Ok(code) => code,
        Err(exit) => exit.show(ctx),
    }
}

fn usage(ctx: &mut Ctx) {
    errln!(ctx, "Usage: badmin [-h] [-V] [command] [command_options] [command_args]\n");
    errln!(ctx, "    where 'command' is:\n");
    for c in COMMANDS {
        errln!(ctx, "    {:<11} {}", c.name, c.line);
    }
    errln!(ctx, "    {:<11} Get help on commands", "help");
    errln!(ctx, "    {:<11} Get help on commands", "?");
    errln!(ctx, "    {:<11} Quit", "quit");
}

/// `help [command ...]`
fn help(ctx: &mut Ctx) -> i32 {
    if ctx.args.is_empty() {
        usage(ctx);
        return 0;
    }
    let mut code = 0;
    for word in ctx.words() {
        match COMMANDS.iter().find(|c| c.name == word) {
            Some(c) => errln!(ctx, "{}\n    Usage: badmin {}", c.line, c.usage),
            None => {
                errln!(ctx, "Invalid command <{word}>");
                code = FAIL;
            }
        }
    }
    code
}

/// Reads commands of badmin or lsadmin until `quit` or the end of the input, with a prompt where
/// somebody types them; the exit code is that of the last one.
pub fn prompt(ctx: &mut Ctx, command: impl Fn(&mut Ctx, Vec<String>) -> i32) -> i32 {
    let mut code = 0;
    loop {
        if std::io::stdin().is_terminal() {
            let _ = write!(ctx.out, "{}>", ctx.name);
            ctx.flush();
        }
        let Some(line) = ask::read_line() else { return code };
        let words = match super::bsub::words(&line) {
            Some(words) => words,
            None => {
                errln!(ctx, "{}: a quote is not closed", ctx.name);
                code = FAIL;
                continue;
            }
        };
        if words.is_empty() {
            continue;
        }
        if words[0] == "quit" {
            return code;
        }
        code = command(ctx, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[&str]) -> (i32, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let args = words.iter().map(OsString::from).collect();
        let mut ctx = Ctx::new("badmin", args, &mut out, &mut err);
        let code = run(&mut ctx);
        (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    #[test]
    fn unknown_and_later_commands() {
        let (code, out, err) = said(&["nosuch"]);
        assert_eq!((code, out.as_str()), (FAIL, ""));
        assert!(err.starts_with("Invalid command <nosuch>\n\nUsage: badmin [-h] [-V] [command]"));
        let (code, _, err) = said(&["gpdrestart"]);
        assert_eq!((code, err.as_str()), (FAIL, "badmin: gpdrestart is not supported yet\n"));
    }

    #[test]
    fn help_names_every_command() {
        let (code, _, err) = said(&["help"]);
        assert_eq!(code, 0);
        assert!(COMMANDS.iter().all(|c| err.contains(c.name)), "{err}");
        let (code, _, err) = said(&["help", "qopen"]);
        assert_eq!(code, 0);
        assert!(err.contains("Usage: badmin qopen [-C comment]"), "{err}");
        assert_eq!(said(&["help", "nosuch"]).0, FAIL);
        assert_eq!(said(&["-h"]).0, 0);
        assert_eq!(said(&["-V"]).0, 0);
    }

    #[test]
    fn no_command_is_both_there_and_later() {
        assert!(COMMANDS.iter().all(|c| !LATER.contains(&c.name)));
    }
}
