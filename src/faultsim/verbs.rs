//! The verbs with which submitters change their jobs: bmod, bswitch, btop, bbot, brequeue, bkill,
//! bstop and bresume, of whole jobs and of elements.

use super::limits::any_queue;
use super::rng::Rng;
use crate::model::job::JobSpec;
use crate::model::specfield::SpecField;
use crate::model::{ByteStr, JobRef};
use crate::proto::Msg;
use crate::proto::client::{ClientMsg, Control, IdSel, JobSelect, Modify, Requeue, Verb};

/// Share of the requests that have an id, by which mbatchd knows those that are made again.
const WITH_ID: f64 = 0.5;

/// A request that changes a submitted job.
#[derive(Clone, Debug)]
pub struct Change {
    pub msg: Msg,
    /// The project that bmod gives to the job or element.
    pub project: Option<(JobRef, String)>,
    /// bresume of the first of the jobs that may be stopped, at the end.
    pub last: bool,
}

impl Change {
    pub(super) fn control(verb: Verb, id: IdSel, request: String) -> Change {
        let select = JobSelect { ids: vec![id], ..JobSelect::default() };
        let control = Control { request, ..Control::of(verb, select) };
        let msg = Msg::Client(ClientMsg::Control(Box::new(control)));
        Change { msg, project: None, last: false }
    }
}

/// The jobs that a request changes.
pub(super) fn changed_jobs(msg: &Msg) -> Vec<u32> {
    match msg {
        Msg::Client(ClientMsg::Control(c)) => c.select.ids.iter().map(|id| id.job).collect(),
        Msg::Client(ClientMsg::Modify(m)) => vec![m.id.job],
        _ => Vec::new(),
    }
}

/// A random change of one of the submitted jobs (each with the number of its elements). `stopped`:
/// jobs that are to be resumed at the end.
pub(super) fn random_change(
    jobs: &[(u32, u32)],
    stopped: &mut Vec<IdSel>,
    rng: &mut Rng,
) -> Option<Change> {
    let recent = rng.chance(0.5).then(|| jobs.last()).flatten();
    let any = jobs.get(rng.below(jobs.len().max(1) as u64) as usize);
    let &(job, size) = recent.or(any)?;
    let mut id = IdSel { job, elems: Vec::new() };
    if size > 1 && rng.chance(0.6) {
        let first = 1 + rng.below(u64::from(size)) as u32;
        let last = if rng.chance(0.5) { first } else { size };
        id.elems.push((first, last, 1));
    }
    let verb = match rng.below(11) {
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
        _ => return Some(modify(job, id, rng)),
    };
    if matches!(verb, Verb::Stop | Verb::Requeue(Requeue { hold: true, .. })) {
        stopped.push(id.clone());
    }
    let request = if rng.chance(WITH_ID) { format!("v{}", rng.below(1 << 40)) } else { "".into() };
    Some(Change::control(verb, id, request))
}

/// bmod, with a project of its own, which lsb.acct shows; some with texts that the spool keeps.
fn modify(job: u32, id: IdSel, rng: &mut Rng) -> Change {
    let project = format!("p{}", rng.below(1 << 40));
    let idx = match id.elems[..] {
        [(first, last, _)] if first == last => first,
        _ => 0,
    };
    let mut fields = vec![SpecField::Project];
    let mut env = None;
    if rng.chance(0.5) {
        fields.push(SpecField::Description);
    }
    if id.elems.is_empty() && rng.chance(0.5) {
        fields.push(SpecField::Env);
        env = Some(ByteStr::from(format!("C={}\0", rng.below(3)).as_str()));
    }
    let description = format!("about {job}");
    let spec = JobSpec { project: project.clone(), description, ..JobSpec::default() };
    let modify = Modify { id, spec, fields, env, ..Modify::default() };
    let msg = Msg::Client(ClientMsg::Modify(Box::new(modify)));
    Change { msg, project: Some((JobRef { job, idx }, project)), last: false }
}
