//! btop and bbot: a pending job goes before, or behind, the others of its queue (btop(1)).
//!
//! Without options they say on stderr what they did, as LSF's do.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::{client, job_ids};
use lsf::errln;
use lsf::model::reason::{err, err_text};
use lsf::proto::client::{ClientMsg, Control, JobSelect, Verb};

/// Moves a pending job in the order of dispatch.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// not acted on
    #[argh(option, short = 'u', hidden_help)]
    user: Option<String>,
    /// the job or elements, and their position, 1 if none is given
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[list]\" [position]")]
    _words: Vec<String>,
}

/// btop.
pub fn top(ctx: &mut Ctx) -> i32 {
    run(ctx, true)
}

/// bbot.
pub fn bottom(ctx: &mut Ctx) -> i32 {
    run(ctx, false)
}

fn run(ctx: &mut Ctx, top: bool) -> i32 {
    match plan(ctx, top) {
        Ok(code) => code,
        Err(exit) => exit.show(ctx),
    }
}

fn plan(ctx: &mut Ctx, top: bool) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    super::control::refuse(ctx.name, parsed.options.user.is_some().then_some("-u"))?;
    let (job, wanted) = match parsed.operands.as_slice() {
        [job] => (job, 1),
        [job, place] => {
            let text = place.to_string_lossy();
            let number = text.parse::<u32>().ok().filter(|n| *n > 0);
            (
                job,
                number
                    .ok_or_else(|| Exit::fail(format_args!("{text}: Illegal position value.")))?,
            )
        }
        words => {
            let why =
                if words.is_empty() { "Job ID must be specified." } else { "Too many words." };
            return Err(front::usage_error::<Opts>(ctx.name, why));
        }
    };
    let ids = job_ids::ids(std::slice::from_ref(job)).map_err(Exit::fail)?.ids;
    let [_] = ids.as_slice() else {
        return Err(Exit::fail(format_args!("{}: Illegal job ID.", job.to_string_lossy())));
    };
    let verb = Verb::Move { top, position: wanted };
    let select = JobSelect { ids, ..JobSelect::default() };
    let control = ClientMsg::Control(Box::new(Control::of(verb, select)));
    let outcomes = match client::ask(ctx, control).map_err(Exit::fail)? {
        ClientMsg::Controlled { outcomes, .. } => outcomes,
        _ => return Ok(super::control::unexpected(ctx)),
    };
    let Some(o) = outcomes.first() else {
        return Err(Exit::fail(err_text(err::NO_JOB)));
    };
    if o.code != 0 {
        errln!(ctx, "{}: {}", job.to_string_lossy(), err_text(o.code));
        return Ok(FAIL);
    }
    if o.place < wanted {
        errln!(ctx, "Warning: position value <{wanted}> is beyond movable range.");
    }
    let end = if top { "top" } else { "bottom" };
    // as it was typed: `29`, `29[1-4]`
    let job = job.to_string_lossy();
    errln!(ctx, "Job <{job}> has been moved to position {} from {end}.", o.place);
    Ok(0)
}
