//! bkill: ends or signals jobs (bkill(1)).

use super::control::{self, Filters};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::model::signals;
use lsf::outln;
use lsf::proto::client::{Control, JobSelect, Verb, Which};

/// Ends jobs, or sends them a signal.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// list the names of signals
    #[argh(switch, short = 'l')]
    list: bool,
    /// jobs on this host or host group
    #[argh(option, short = 'm', arg_name = "host_name")]
    host: Option<String>,
    /// jobs in this queue
    #[argh(option, short = 'q', arg_name = "queue_name")]
    queue: Option<String>,
    /// jobs of this user; `all`: of all users
    #[argh(option, short = 'u', arg_name = "user_name | all")]
    user: Option<String>,
    /// jobs with this name; `*` matches any text
    #[argh(option, short = 'J', arg_name = "job_name")]
    name: Option<String>,
    /// remove the job without waiting for its host
    #[argh(switch, short = 'r')]
    remove: bool,
    /// send this signal instead of ending the job
    #[argh(option, short = 's', arg_name = "signal")]
    signal: Option<String>,
    /// jobs of this job group
    #[argh(option, short = 'g', arg_name = "job_group")]
    group: Option<String>,
    /// jobs submitted with this application profile
    #[argh(option, arg_name = "profile")]
    app: Option<String>,
    /// jobs submitted with this service class
    #[argh(option, arg_name = "class")]
    sla: Option<String>,
    /// kill many jobs in one operation, without a message for each
    #[argh(switch, short = 'b')]
    bulk: bool,
    /// jobs in this state
    #[argh(option, arg_name = "run | pend | susp")]
    stat: Option<String>,
    /// record the jobs as DONE, however they end
    #[argh(switch, short = 'd')]
    done: bool,
    /// the reason, for the history of the jobs
    #[argh(option, short = 'C', arg_name = "kill_reason")]
    reason: Option<String>,
    /// the jobs; `0`: all that the options select
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[list]\"")]
    _jobs: Vec<String>,
}

/// The states of -stat.
fn states(word: &str) -> Option<Which> {
    let none = Which::default();
    Some(match word {
        "run" => Which { run: true, ..none },
        "pend" => Which { pend: true, ..none },
        "susp" => Which { susp: true, ..none },
        _ => return None,
    })
}

/// The action of `-s`; stopping and continuing are those of bstop and bresume.
fn verb(word: &str) -> Option<Verb> {
    let number = signals::number(word)?;
    let name = signals::name(number).map(str::to_string);
    Some(match name.as_deref() {
        Some("STOP" | "TSTP") => Verb::Stop,
        Some("CONT") => Verb::Resume,
        _ => Verb::Signal { number, name: name.unwrap_or_else(|| number.to_string()) },
    })
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let (opts, operands) = (parsed.options, parsed.operands);
    if opts.list {
        let names: Vec<&str> = signals::ALL.iter().map(|s| s.0).collect();
        outln!(ctx, "{}", names.join(" "));
        return Ok(0);
    }
    let verb = match &opts.signal {
        Some(_) if opts.remove => {
            return Err(front::usage_error::<Opts>(
                ctx.name,
                "Options -r and -s exclude each other.",
            ));
        }
        Some(word) => {
            verb(word).ok_or_else(|| Exit::fail(format_args!("{word}: Illegal signal value")))?
        }
        None if opts.remove => Verb::Remove,
        None => Verb::Kill,
    };
    let Opts { host, queue, user, name, group, app, sla, stat, reason, .. } = opts;
    if opts.bulk && stat.is_some() {
        let words = "Options -b and -stat exclude each other.";
        return Err(front::usage_error::<Opts>(ctx.name, words));
    }
    let filters = Filters { name, queue, host, user, group, app, sla };
    let mut select = control::selection(&operands, filters)?;
    if let Some(word) = stat {
        let words = "-stat: one of run, pend and susp must be specified.";
        let states = states(&word).ok_or_else(|| front::usage_error::<Opts>(ctx.name, words))?;
        // by itself: every job of the state
        select.get_or_insert(JobSelect { all: true, ..JobSelect::default() }).states = states;
    }
    let select =
        select.ok_or_else(|| front::usage_error::<Opts>(ctx.name, control::NOTHING_GIVEN))?;
    // -b and -d say how jobs are killed: nothing where it is something else that is asked for
    let kills = verb == Verb::Kill;
    let (done, bulk) = (opts.done && kills, opts.bulk && kills);
    let reason = control::reason(reason)?;
    Ok(control::act(ctx, Control { reason, done, bulk, ..Control::of(verb, select) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_by_name_and_number() {
        let usr1 = || Some(Verb::Signal { number: 10, name: "USR1".into() });
        for word in ["USR1", "SIGUSR1", "usr1", "10"] {
            assert_eq!(verb(word), usr1(), "{word}");
        }
        assert_eq!(verb("ABRT"), Some(Verb::Signal { number: 6, name: "ABRT".into() }));
        assert_eq!(verb("40"), Some(Verb::Signal { number: 40, name: "40".into() }));
        for word in ["STOP", "TSTP", "19", "20"] {
            assert_eq!(verb(word), Some(Verb::Stop), "{word}");
        }
        assert_eq!(verb("CONT"), Some(Verb::Resume));
        for bad in ["", "0", "65", "-9", "+9", "NOSUCH", "SIG", "9x"] {
            assert_eq!(verb(bad), None, "{bad}");
        }
    }
}
