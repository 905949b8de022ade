//! bmod of the submitters: a project of its own, which lsb.acct shows; and in some requests texts
//! that the spool keeps, other slots, hosts, priority, begin time, condition, limit of an array,
//! rerun, run limit, reservation.

use super::change::{JobChangeRequest, SimulatedSite, Submitted};
use super::groups::any_group;
use super::limits::{MAX_PRIORITY, shape};
use super::rng::Rng;
use crate::model::job::{JobSpec, opt, opt2};
use crate::model::specfield::SpecField;
use crate::model::{ByteStr, JobRef};
use crate::proto::Msg;
use crate::proto::client::{ClientMsg, IdSel, Modify};

/// Share of the requests that contain a given one of the other fields.
const FIELD: f64 = 0.15;
/// Seconds from now to the latest begin time.
const BEGIN_WITHIN: u64 = 20;
/// A run limit that no job reaches, seconds.
const NO_RUN_LIMIT: u64 = 1_000_000;
/// Reservations of bmod -R: a host always has enough of these indices.
const RESERVE: [&str; 3] = ["rusage[ut=0.2]", "rusage[pg=1:duration=1]", "rusage[r1m=0.25]"];

/// bmod of a job or of elements. `jobs`: the submitter's jobs, of which a condition names one.
pub(super) fn modify(
    of: Submitted,
    id: IdSel,
    jobs: &[Submitted],
    site: SimulatedSite,
    rng: &mut Rng,
) -> JobChangeRequest {
    let project = format!("p{}", rng.below(1 << 40));
    let idx = match id.elems[..] {
        [(first, last, _)] if first == last => first,
        _ => 0,
    };
    let spec = JobSpec { project: project.clone(), ..JobSpec::default() };
    let mut modify = Modify { id, spec, fields: vec![SpecField::Project], ..Modify::default() };
    let whole = modify.id.elems.is_empty();
    if rng.chance(0.5) {
        modify.fields.push(SpecField::Description);
        modify.spec.description = format!("about {}", of.job);
    }
    if whole && rng.chance(0.5) {
        modify.fields.push(SpecField::Env);
        modify.env = Some(ByteStr::from(format!("C={}\0", rng.below(3)).as_str()));
    }
    placement(&mut modify, of, site, rng);
    order(&mut modify, site, rng);
    if whole {
        of_whole_job(&mut modify, of, jobs, rng);
    }
    // a job that runs may be changed in these alone
    if rng.chance(0.2) {
        modify.fields = vec![SpecField::ResReq];
        modify.spec.res_req = RESERVE[rng.below(RESERVE.len() as u64) as usize].into();
        let msg = Msg::Client(ClientMsg::Modify(Box::new(modify)));
        return JobChangeRequest { msg, project: None, last: false };
    }
    let msg = Msg::Client(ClientMsg::Modify(Box::new(modify)));
    JobChangeRequest { msg, project: Some((JobRef { job: of.job, idx }, project)), last: false }
}

/// -n with the -R that fits it, and -m.
fn placement(modify: &mut Modify, of: Submitted, site: SimulatedSite, rng: &mut Rng) {
    let Modify { spec, fields, .. } = modify;
    // a job that EXCLUDE() keeps off hosts finds one slot alone
    if rng.chance(2.0 * FIELD) && !of.by_exit {
        let (least, most, span) = shape(site.pairs, rng);
        (spec.min_slots, spec.max_slots) = (least, most);
        spec.res_req = format!("rusage[ut=0.1]{span}");
        fields.extend([SpecField::Slots, SpecField::ResReq]);
    }
    if rng.chance(FIELD) {
        fields.push(SpecField::Hosts);
        // -mn where there are none
        if rng.chance(0.7) {
            let first = 1 + rng.below(site.hosts as u64);
            spec.hosts = vec![format!("host{first}+{}", rng.below(3)), "others".into()];
            spec.options |= opt::HOST;
        }
    }
}

/// -sp, -b, -r, -W.
fn order(modify: &mut Modify, site: SimulatedSite, rng: &mut Rng) {
    let Modify { spec, fields, .. } = modify;
    if rng.chance(FIELD) {
        fields.push(SpecField::Priority);
        spec.priority = 1 + rng.below(u64::from(MAX_PRIORITY)) as u32;
    }
    if rng.chance(FIELD) {
        fields.push(SpecField::Begin);
        spec.begin_time = site.now + rng.below(BEGIN_WITHIN) as i64;
    }
    if rng.chance(FIELD) {
        fields.push(SpecField::Rerun);
        match rng.below(3) {
            0 => spec.options |= opt::RERUNNABLE,
            1 => spec.options2 |= opt2::NEVER_RERUN,
            _ => {}
        }
    }
    if rng.chance(FIELD) {
        fields.push(SpecField::RunLimit);
        spec.limits.run = rng.chance(0.5).then_some(NO_RUN_LIMIT);
    }
}

/// -w and -J, which elements do not have.
fn of_whole_job(modify: &mut Modify, of: Submitted, jobs: &[Submitted], rng: &mut Rng) {
    let Modify { spec, fields, .. } = modify;
    if rng.chance(FIELD) {
        fields.push(SpecField::Depend);
        let before: Vec<u32> = jobs.iter().map(|j| j.job).filter(|job| *job < of.job).collect();
        // -wn where there is none
        if let Some(job) = before.get(rng.below(before.len() as u64 + 1) as usize) {
            spec.depend = format!("ended({job})");
            spec.options |= opt::DEPEND_COND;
        }
    }
    if rng.chance(FIELD) {
        fields.push(SpecField::Group);
        spec.further.job_group = any_group(rng).into();
    }
    if rng.chance(FIELD) {
        fields.push(SpecField::Name);
        spec.options |= opt::JOB_NAME;
        spec.name = match of.size {
            1 => format!("name{}", rng.below(3)),
            _ => format!("%{}", 1 + rng.below(3)),
        };
    }
}
