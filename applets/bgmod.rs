//! bgmod: changes a job group (bgmod(1)).

use super::job_groups;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::proto::job_group::{JobGroupRequest, NewLimit};

/// Changes a job group.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// most started jobs of the group and all groups below it
    #[argh(option, short = 'L', arg_name = "limit")]
    limit: Option<String>,
    /// no limit
    #[argh(switch, long = "-ln")]
    no_limit: bool,
    /// the new owner
    #[argh(option, short = 'u', arg_name = "user_name")]
    owner: Option<String>,
    /// the path of the group, from the root
    #[argh(positional, greedy, arg_name = "job_group_name")]
    _groups: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let path = job_groups::one(&parsed.operands)
        .ok_or_else(|| front::usage_error::<Opts>(ctx.name, job_groups::ONE_GROUP))?;
    let Opts { limit, no_limit, owner, .. } = parsed.options;
    let limit = match (limit, no_limit) {
        (Some(text), false) => Some(NewLimit::Most(job_groups::limit(&text)?)),
        (None, true) => Some(NewLimit::None),
        (None, false) => None,
        (Some(_), true) => {
            let words = "Options -L and -Ln cannot be combined.";
            return Err(front::usage_error::<Opts>(ctx.name, words));
        }
    };
    if limit.is_none() && owner.is_none() {
        let words = "One of -L, -Ln and -u must be specified.";
        return Err(front::usage_error::<Opts>(ctx.name, words));
    }
    let owner = owner.unwrap_or_default();
    let request = JobGroupRequest::Modify { path: path.clone(), limit, owner };
    job_groups::change(ctx, &path, request, "modified")
}
