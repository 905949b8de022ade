//! bresize: changes the slots of a started job, or takes back what it asked for (bresize(1)).

use super::control;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::job_ids;
use lsf::model::reason::{err, err_text};
use lsf::model::resize::{MAX_COMMAND, NotifyCommand, ReleasedHosts, ResizeRequest};
use lsf::proto::client::{JobSelect, Verb};
use std::ffi::OsString;

/// Changes the slots of a started job.
///
/// release [-c] [-rnc command | -rncn] host_specification job_ID gives slots back,
/// request [-c] [-rnc command | -rncn] [min_slots,] slots job_ID asks for further ones,
/// cancel job_ID takes a pending request back.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the work: release, request or cancel
    #[argh(positional, greedy, arg_name = "release | request | cancel")]
    _words: Vec<String>,
}

/// Changes the slots of a started job.
#[derive(FromArgs, ArgsInfo)]
struct ChangeOpts {
    /// first cancel the pending request of the job
    #[argh(switch, short = 'c')]
    cancel: bool,
    /// the resize notification command, in place of that of the job
    #[argh(option, long = "rnc", arg_name = "command")]
    notify: Option<String>,
    /// no resize notification command
    #[argh(switch, long = "rncn")]
    silent: bool,
    /// the change and the job
    #[argh(positional, greedy, arg_name = "host_specification | [min_slots,] slots, job_ID")]
    _words: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let usage = |why: &str| front::usage_error::<Opts>("bresize", why);
    let Some((verb, rest)) = parsed.operands.split_first() else {
        return Err(usage("release, request or cancel must be given."));
    };
    let verb = verb.to_string_lossy();
    let (request, job) = match &*verb {
        "cancel" => {
            let [job] = rest else { return Err(usage("One job must be specified.")) };
            (ResizeRequest::Cancel, job.clone())
        }
        "release" | "request" => change(&verb, rest)?,
        other => return Err(usage(&format!("{other}: release, request or cancel is wanted."))),
    };
    let ids = job_ids::ids(std::slice::from_ref(&job)).map_err(Exit::fail)?;
    let [_] = ids.ids.as_slice() else {
        return Err(Exit::fail(format_args!("{}: Illegal job ID.", job.to_string_lossy())));
    };
    let select = JobSelect { ids: ids.ids, ..JobSelect::default() };
    Ok(control::run(ctx, Verb::Resize(request), select))
}

/// The request of `release` or `request`, and its job.
fn change(verb: &str, words: &[OsString]) -> Result<(ResizeRequest, OsString), Exit> {
    let name = format!("bresize {verb}");
    let parsed = front::parse::<ChangeOpts>(&name, words)?;
    let (cancel, usage) =
        (parsed.options.cancel, |why| front::usage_error::<ChangeOpts>(&name, why));
    let Some((job, rest)) = parsed.operands.split_last().filter(|(_, rest)| !rest.is_empty())
    else {
        return Err(usage("The change and one job must be specified."));
    };
    let notify = match (parsed.options.notify, parsed.options.silent) {
        (Some(_), true) => return Err(usage("-rnc and -rncn exclude each other.")),
        (Some(text), false) if text.len() > MAX_COMMAND => {
            return Err(Exit::fail(err_text(err::RESIZE_COMMAND_LEN)));
        }
        (Some(text), false) => NotifyCommand::Given(text),
        (None, true) => NotifyCommand::None,
        (None, false) => NotifyCommand::OfJob,
    };
    let text: Vec<_> = rest.iter().map(|word| word.to_string_lossy()).collect();
    let text = text.join(" ");
    let bad = |code| Exit::fail(format_args!("{text}: {}", err_text(code)));
    let request = match verb {
        "release" => {
            let hosts = ReleasedHosts::parse(&text).ok_or_else(|| bad(err::RELEASE_HOSTS))?;
            ResizeRequest::Release { hosts, cancel, notify }
        }
        _ => {
            let (least, slots) = slots(&text).ok_or_else(|| bad(err::RESIZE_SLOTS))?;
            ResizeRequest::Grow { least, slots, cancel, notify }
        }
    };
    Ok((request, job.clone()))
}

/// `[min,] slots`.
fn slots(text: &str) -> Option<(u32, u32)> {
    let number = |word: &str| {
        let word = word.trim();
        let digits = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        word.parse::<u32>().ok().filter(|n| digits && *n > 0)
    };
    let (least, slots) = match text.split_once(',') {
        Some((least, slots)) => (number(least)?, number(slots)?),
        None => {
            let slots = number(text)?;
            (slots, slots)
        }
    };
    (least <= slots).then_some((least, slots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_slots_are_one_or_a_minimum_and_a_maximum() {
        assert_eq!(slots("4"), Some((4, 4)));
        assert_eq!(slots("2, 4"), Some((2, 4)));
        for bad in ["", "0", "-1", "x", "4,2", "1,2,3", "1 2", "+3", "99999999999"] {
            assert_eq!(slots(bad), None, "{bad}");
        }
    }
}
