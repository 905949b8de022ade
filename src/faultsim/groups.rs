//! Job groups in the simulator: those that submissions name, and bgadd, bgmod and bgdel of the
//! submitters. A limit leaves room for one job at least, so that all jobs end.

use super::rng::Rng;
use crate::proto::Msg;
use crate::proto::client::ClientMsg;
use crate::proto::job_group::{DeleteGroups, JobGroupRequest, NewLimit};

/// The groups.
const GROUPS: [&str; 4] = ["/a", "/a/b", "/a/b/c", "/d"];
/// Share of the submissions that name a group.
const GROUPED: f64 = 0.3;
/// Largest limit of the groups of few jobs.
const MOST: u64 = 4;
/// Jobs of a submitter for which a limit leaves so much room once more, also those that it has yet
/// to submit: with less the jobs of a large simulation would take hours.
const JOBS_PER_LIMIT: usize = 50;

fn one(rng: &mut Rng) -> String {
    GROUPS[rng.below(GROUPS.len() as u64) as usize].to_string()
}

/// The group of a submission or of bmod -g; empty: none.
pub(super) fn any_group(rng: &mut Rng) -> String {
    if rng.chance(GROUPED) { one(rng) } else { String::new() }
}

/// bgadd, bgmod or bgdel by a submitter of so many jobs in all.
pub(super) fn random_request(jobs: usize, rng: &mut Rng) -> Msg {
    let path = one(rng);
    let room = 1 + jobs / JOBS_PER_LIMIT;
    let limit = (1 + rng.below(MOST) as u32).saturating_mul(room as u32);
    let request = match rng.below(4) {
        0 => {
            let limit = rng.chance(0.5).then_some(limit);
            JobGroupRequest::Add { path, limit, sla: String::new() }
        }
        1 => {
            let limit = if rng.chance(0.5) { NewLimit::None } else { NewLimit::Most(limit) };
            JobGroupRequest::Modify { path, limit: Some(limit), owner: String::new() }
        }
        n => {
            let (path, empty_only) = if n == 2 { (path, true) } else { <_>::default() };
            JobGroupRequest::Delete(DeleteGroups { path, empty_only, ..DeleteGroups::default() })
        }
    };
    Msg::Client(ClientMsg::JobGroup(Box::new(request)))
}
