//! lsltasks and lsrtasks show and change the task lists, lseligible asks them. See lsrtasks(1) and
//! lseligible(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::tasks::{self, Tasks};
use lsf::cli::{front, site};
use lsf::{errln, outln};
use std::path::PathBuf;

/// Say whether a task may run on another host, and what that host must be.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// every task that is not in the local list is eligible
    #[argh(switch, short = 'r')]
    remote: bool,
    /// print the requirement only
    #[argh(switch, short = 'q')]
    quiet: bool,
    /// print nothing; the exit status contains the answer
    #[argh(switch, short = 's')]
    silent: bool,
    /// the task
    #[argh(positional, greedy, arg_name = "task")]
    task: Vec<String>,
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}

/// The lists as they are for this user.
pub fn lists() -> Result<Tasks, String> {
    let site = site::find().map_err(|e| e.to_string())?;
    Ok(Tasks::load(&site.lsf, || tasks::cluster_name(&site)))
}

pub fn lseligible(ctx: &mut Ctx) -> i32 {
    let o = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    let Some(task) = o.task.first() else {
        return front::usage_error::<Options>(ctx.name, "no task").show(ctx);
    };
    let lists = match lists() {
        Ok(lists) => lists,
        Err(why) => {
            errln!(ctx, "lseligible: {why}");
            return FAIL;
        }
    };
    // a command is known by its last name
    let name = task.split_whitespace().next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or(name);
    let listed = lists.remote.get(name);
    let may = listed.is_some() || o.remote && !lists.local.contains_key(name);
    let req = listed.map(String::as_str).unwrap_or_default();
    if !o.silent {
        let word = if may { "ELIGIBLE" } else { "NON-ELIGIBLE" };
        let text = if o.quiet { req.to_owned() } else { format!("{word} {req}") };
        if !text.trim().is_empty() {
            outln!(ctx, "{}", text.trim());
        }
    }
    i32::from(!may)
}

/// Show the list of local tasks, or change the caller's own.
#[derive(FromArgs, ArgsInfo)]
struct LocalOptions {
    /// list of tasks: + adds the tasks that follow to it, - removes them
    #[argh(positional, greedy, arg_name = "+ task ... | - task ...")]
    words: Vec<String>,
}

/// Show the list of remote tasks with their requirements, or change the caller's own.
#[derive(FromArgs, ArgsInfo)]
struct RemoteOptions {
    /// list of tasks: + adds the tasks that follow to it, - removes them
    #[argh(positional, greedy, arg_name = "+ task[/res_req] ... | - task ...")]
    words: Vec<String>,
}

pub fn lsltasks(ctx: &mut Ctx) -> i32 {
    match front::parse::<LocalOptions>(ctx.name, &guarded(ctx)) {
        Ok(parsed) => edit(ctx, &parsed.options.words, false),
        Err(exit) => exit.show(ctx),
    }
}

pub fn lsrtasks(ctx: &mut Ctx) -> i32 {
    match front::parse::<RemoteOptions>(ctx.name, &guarded(ctx)) {
        Ok(parsed) => edit(ctx, &parsed.options.words, true),
        Err(exit) => exit.show(ctx),
    }
}

/// A lone `-` is an operand, and `+task` is `+ task`; `-task` would be an option.
fn guarded(ctx: &Ctx) -> Vec<std::ffi::OsString> {
    match ctx.args.first().map(|w| w.to_string_lossy().into_owned()) {
        Some(w) if w == "-" || w.starts_with('+') => {
            let (sign, rest) = w.split_at(1);
            let sign = if sign == "-" { "minus" } else { "plus" };
            let rest = Some(rest).filter(|r| !r.is_empty()).map(Into::into);
            std::iter::once(sign.into()).chain(rest).chain(ctx.args[1..].iter().cloned()).collect()
        }
        _ => ctx.args.clone(),
    }
}

fn edit(ctx: &mut Ctx, words: &[String], remote: bool) -> i32 {
    let done = match words.split_first() {
        None => show(ctx, remote),
        Some((sign, tasks)) if ["plus", "minus"].contains(&sign.as_str()) && !tasks.is_empty() => {
            match home() {
                None => Err("HOME is not set".to_owned()),
                Some(home) => tasks::change(&home, remote, sign == "plus", tasks)
                    .map_err(|e| format!("{}: {}", tasks::user_file(&home).display(), e)),
            }
        }
        Some(_) => Err("+ or - and task names must be specified".to_owned()),
    };
    match done {
        Ok(()) => 0,
        Err(why) => {
            errln!(ctx, "{}: {why}", ctx.name);
            FAIL
        }
    }
}

fn show(ctx: &mut Ctx, remote: bool) -> Result<(), String> {
    let lists = lists()?;
    let list = if remote { lists.remote } else { lists.local };
    for (name, req) in list {
        outln!(ctx, "{name}{}{req}", if req.is_empty() { "" } else { "/" });
    }
    Ok(())
}
