//! bgadd: makes a job group (bgadd(1)).

use super::job_groups;
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::proto::job_group::JobGroupRequest;

/// Makes a job group.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// most started jobs of the group and all groups below it
    #[argh(option, short = 'L', arg_name = "limit")]
    limit: Option<String>,
    /// the service class of the group; accepted without effect
    #[argh(option, arg_name = "service_class")]
    sla: Option<String>,
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
    let Opts { limit, sla, .. } = parsed.options;
    let limit = limit.map(|text| job_groups::limit(&text)).transpose()?;
    let request = JobGroupRequest::Add { path: path.clone(), limit, sla: sla.unwrap_or_default() };
    job_groups::change(ctx, &path, request, "added")
}
