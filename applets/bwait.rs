//! bwait: waits for a dependency condition (commands.md bwait).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::{site, waiting};
use lsf::lang::depend::DepExpr;
use lsf::proto::client::{Wait, Waited};

/// Longest `-t`, minutes: about sixty years, so that its seconds never overflow.
const MAX_MINUTES: u64 = 30_000_000;

/// Waits until a condition of jobs is met.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// the condition, as after bsub -w
    #[argh(option, short = 'w', arg_name = "condition")]
    condition: Option<String>,
    /// longest wait, minutes (default: for ever)
    #[argh(option, short = 't', arg_name = "minutes")]
    timeout: Option<u64>,
    /// accepted; the condition is looked at whenever a job in it changes
    #[argh(option, short = 'r', long = "interval", arg_name = "interval")]
    _interval: Option<u64>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    match plan(ctx) {
        Ok(code) => code,
        Err(exit) => exit.show(ctx),
    }
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let opts = front::parse::<Opts>(ctx.name, &ctx.args)?.options;
    let expr = opts.condition.ok_or_else(|| {
        front::usage_error::<Opts>(ctx.name, "A condition must be given with -w.")
    })?;
    DepExpr::parse(&expr).map_err(|e| Exit::fail(format_args!("{expr}: {e}")))?;
    let timeout = match opts.timeout {
        None => 0,
        Some(minutes) if (1..=MAX_MINUTES).contains(&minutes) => minutes * 60,
        Some(_) => {
            return Err(Exit::fail(format_args!("{}: Bad argument for option -t.", ctx.name)));
        }
    };
    let site = site::find().map_err(Exit::fail)?;
    match waiting::until(&site, &Wait { expr: expr.clone(), timeout, watch: None }, ctx.err) {
        Ok(Waited::True | Waited::Ended { .. }) => Ok(0),
        Ok(Waited::Never) => {
            Err(Exit::fail(format_args!("{expr}: Dependency condition invalid or never satisfied")))
        }
        Ok(Waited::Timeout) => {
            Err(Exit::fail(format_args!("{expr}: the condition was not met within the time given")))
        }
        Err(e) => Err(Exit::fail(e)),
    }
}
