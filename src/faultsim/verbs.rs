//! The verbs with which submitters change their jobs: bmod, bswitch, btop, bbot, brequeue, bkill,
//! bstop, bresume, bchkpnt and bresize, of whole jobs and of elements; and bgadd, bgmod and bgdel.

use super::change::{JobChangeRequest, SimulatedSite, Submitted};
use super::checkpoints::random_order;
use super::groups;
use super::limits::any_queue;
use super::modify::modify;
use super::rng::Rng;
use crate::model::resize::{NotifyCommand, ReleasedHosts, ResizeRequest};
use crate::proto::client::{IdSel, Requeue, Verb};

/// Share of the requests that have an id, by which mbatchd knows those that are made again.
const WITH_ID: f64 = 0.5;

/// Share of the requests that are about job groups.
const OF_GROUPS: f64 = 0.1;

/// A random request of bresize. Most releases name no host that the job has.
fn random_resize(rng: &mut Rng) -> ResizeRequest {
    let (cancel, notify) = (rng.chance(0.7), NotifyCommand::OfJob);
    match rng.below(6) {
        0 => ResizeRequest::Cancel,
        1 => {
            let least = 1 + rng.below(2) as u32;
            let slots = least + rng.below(2) as u32;
            ResizeRequest::Grow { least, slots, cancel, notify }
        }
        2 => {
            let words = format!("all ~h{}", 1 + rng.below(3));
            let hosts = ReleasedHosts::parse(&words).unwrap_or_default();
            ResizeRequest::Release { hosts, cancel, notify }
        }
        _ => {
            let hosts = ReleasedHosts { all: true, ..ReleasedHosts::default() };
            ResizeRequest::Release { hosts, cancel, notify }
        }
    }
}

/// A random change of one of the submitted jobs, which are to be `all` in the end. `stopped`: those
/// that are to be resumed at the end.
pub(super) fn random_change(
    (jobs, all): (&[Submitted], usize),
    stopped: &mut Vec<IdSel>,
    site: SimulatedSite,
    rng: &mut Rng,
) -> Option<JobChangeRequest> {
    if rng.chance(OF_GROUPS) {
        let msg = groups::random_request(all, rng);
        return Some(JobChangeRequest { msg, project: None, last: false });
    }
    let recent = rng.chance(0.5).then(|| jobs.last()).flatten();
    let any = jobs.get(rng.below(jobs.len().max(1) as u64) as usize);
    let &of = recent.or(any)?;
    let Submitted { job, size, .. } = of;
    let mut id = IdSel { job, elems: Vec::new() };
    if size > 1 && rng.chance(0.6) {
        let first = 1 + rng.below(u64::from(size)) as u32;
        let last = if rng.chance(0.5) { first } else { size };
        id.elems.push((first, last, 1));
    }
    let resizes = if site.resizes { 3 } else { 0 };
    let checkpoints = if site.checkpoints { 3 } else { 0 };
    let verb = match rng.below(12 + resizes + checkpoints) {
        n if n >= 12 + resizes => Verb::Checkpoint(random_order(rng)),
        12.. => Verb::Resize(random_resize(rng)),
        11 => Verb::Migrate { force: false },
        6 => Verb::Kill,
        7 => Verb::Stop,
        8 => Verb::Resume,
        // of running, ended and killed jobs
        0 | 9 | 10 => Verb::Requeue(Requeue {
            run: rng.chance(0.5),
            done: rng.chance(0.7),
            exit: rng.chance(0.7),
            hold: rng.chance(0.3),
            ..Requeue::default()
        }),
        1 => Verb::Switch { queue: any_queue(rng) },
        2 => {
            let position = 1 + rng.below(9) as u32;
            Verb::Move { top: rng.chance(0.5), position }
        }
        _ => return Some(modify(of, id, jobs, site, rng)),
    };
    if matches!(verb, Verb::Stop | Verb::Requeue(Requeue { hold: true, .. })) {
        stopped.push(id.clone());
    }
    let request = if rng.chance(WITH_ID) { format!("v{}", rng.below(1 << 40)) } else { "".into() };
    Some(JobChangeRequest::control(verb, id, request))
}
