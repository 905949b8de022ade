//! bgdel: deletes job groups (bgdel(1)).

use super::job_groups;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::proto::job_group::{DeleteGroups, JobGroupRequest};

/// Deletes job groups.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// with 0 or -d: the empty groups of this user; `all`: of all users
    #[argh(option, short = 'u', arg_name = "user_name | all")]
    user: Option<String>,
    /// of the group and all groups below it those that are empty
    #[argh(switch, short = 'c')]
    empty: bool,
    /// your groups that have been empty for so long, [hours:]minutes
    #[argh(option, short = 'd', arg_name = "idle_time")]
    idle: Option<String>,
    /// the path of the group, which goes with all below it; `0`: all empty groups
    #[argh(positional, greedy, arg_name = "job_group_name | 0")]
    _groups: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let Opts { user, empty, idle, .. } = parsed.options;
    let wrong = |words| Err(front::usage_error::<Opts>(ctx.name, words));
    let path = match (job_groups::one(&parsed.operands), &idle) {
        (None, Some(_)) if parsed.operands.is_empty() => "0".to_string(),
        (Some(path), None) => path,
        (_, None) => return wrong(job_groups::ONE_GROUP),
        (_, Some(_)) => return wrong("Option -d takes no job group."),
    };
    if path == "0" && empty {
        return wrong("Option -c needs the path of a job group.");
    }
    let idle_secs = idle.map_or(Ok(0), |text| job_groups::idle(&text))?;
    let all = path == "0";
    let request = JobGroupRequest::Delete(DeleteGroups {
        path: if all { String::new() } else { path.clone() },
        empty_only: empty,
        user: user.filter(|_| all).unwrap_or_default(),
        idle_secs,
    });
    job_groups::change(ctx, &path, request, "deleted")
}
