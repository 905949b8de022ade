//! bgdel: deletes job groups (bgdel(1)).

use super::job_groups;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::proto::job_group::{DeleteGroups, JobGroupRequest};

/// Deletes job groups.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// with 0: the empty groups of this user; `all`: of all users
    #[argh(option, short = 'u', arg_name = "user_name | all")]
    user: Option<String>,
    /// of the group and all groups below it those that are empty
    #[argh(switch, short = 'c')]
    empty: bool,
    /// the path of the group, which goes with all below it; `0`: all empty groups
    #[argh(positional, greedy, arg_name = "job_group_name | 0")]
    _groups: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let path = job_groups::one(&parsed.operands)
        .ok_or_else(|| front::usage_error::<Opts>(ctx.name, job_groups::ONE_GROUP))?;
    let Opts { user, empty, .. } = parsed.options;
    if path == "0" && empty {
        let words = "Option -c needs the path of a job group.";
        return Err(front::usage_error::<Opts>(ctx.name, words));
    }
    let all = path == "0";
    let request = JobGroupRequest::Delete(DeleteGroups {
        path: if all { String::new() } else { path.clone() },
        empty_only: empty,
        user: user.filter(|_| all).unwrap_or_default(),
    });
    job_groups::change(ctx, &path, request, "deleted")
}
