//! Requirements as the pass holds them: compiled once for all classes that share one.

use crate::batch::sched::class_key::ClassKey;
use crate::batch::sched::fixed_match::{FixedMatch, FixedParts};
use crate::batch::sched::view::View;
use crate::batch::site::requirements::{LONGEST_PARSED, Variant};
use crate::batch::state::names::QueueId;
use crate::lang::resreq::{CompoundTerm, ResReq, Simple};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// A requirement, compiled.
#[derive(Debug)]
pub(crate) struct Requirement {
    /// The whole of it as text: what the levels say together; `None`: they contradict each other.
    pub(crate) combined: Option<Arc<str>>,
    /// The requirement, one entry per alternative, of its rusage too; never empty.
    pub(crate) alternatives: Vec<Option<Rc<Alternative>>>,
}

/// The key of a compiled requirement: everything in the class that it is made of.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RequirementKey {
    /// The queue, where it has a requirement of its own.
    queue: Option<QueueId>,
    /// The application profile, where it has a requirement of its own; else empty.
    application: Box<str>,
    res_req: String,
    hosts_asked: bool,
}

/// Compiled requirements that classes have: classes of several users and queues share one. A
/// requirement is forgotten with the last class that has it, and all are with the configuration
/// that they were compiled by ([`crate::batch::sched::Sched::anew`]).
#[derive(Debug, Default)]
pub(crate) struct Requirements {
    known: HashMap<RequirementKey, Weak<Requirement>>,
    /// Number of requirements at which forgotten ones are dropped next.
    crowded: usize,
    /// The parts of their select[] that are about facts.
    fixed_parts: FixedParts,
}

/// Number of keys up to which even those of forgotten requirements are kept.
const KEYS_KEPT: usize = 1024;

impl Requirements {
    /// The requirement of a class.
    pub fn of(&mut self, view: &View, class: &ClassKey) -> Rc<Requirement> {
        let of_queue = view.site.queue(class.queue).is_some_and(|queue| queue.req.is_some());
        let application = view.site.applications.get(&class.application);
        let of_application = application.is_some_and(|a| a.req.is_some());
        let key = RequirementKey {
            queue: of_queue.then_some(class.queue),
            application: if of_application { class.application.clone() } else { "".into() },
            res_req: class.res_req.clone(),
            hosts_asked: !class.hosts.is_empty() || !class.reservation.is_empty(),
        };
        if let Some(known) = self.known.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        let new = Rc::new(Requirement::of(view, class, &mut self.fixed_parts));
        if self.known.len() >= self.crowded.max(KEYS_KEPT) {
            self.known.retain(|_, requirement| requirement.strong_count() > 0);
            self.crowded = 2 * self.known.len();
        }
        self.known.insert(key, Rc::downgrade(&new));
        new
    }

    /// Requirements that are known, forgotten ones too.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.known.len()
    }
}

/// A requirement without alternatives, and its text for the log.
#[derive(Debug)]
pub(crate) struct Alternative {
    pub text: Arc<str>,
    /// Seconds that a job must have been pending before it may be started by this one.
    delay: u32,
    /// span[] is the queue's.
    pub(super) span_of_queue: bool,
    /// order[] is the job's own.
    pub(super) order_of_job: bool,
    /// The parts of a compound requirement in the order written; of a simple one itself.
    pub(super) parts: Vec<Part>,
}

/// A simple requirement: of a whole job, or of some of its tasks.
#[derive(Debug)]
pub(crate) struct Part {
    /// The number of tasks that it is for; `None`: those that the other parts leave.
    pub(super) tasks: Option<u32>,
    pub(super) simple: Simple,
    /// The fixed part of its select[].
    pub(super) fixed: Option<FixedMatch>,
}

impl Part {
    fn new(tasks: Option<u32>, simple: Simple, fixed_parts: &mut FixedParts) -> Part {
        Part { tasks, fixed: FixedMatch::of(&simple, fixed_parts), simple }
    }
}

impl Alternative {
    /// `anew`: hosts are ordered for each job, as `!` in order[] has it.
    fn new(
        variant: Variant,
        (span_of_queue, order_of_job): (bool, bool),
        anew: bool,
        fixed_parts: &mut FixedParts,
    ) -> Alternative {
        let text = variant.req.to_string().into();
        let mut parts = match variant.req {
            ResReq::Simple(simple) => vec![Part::new(None, *simple, fixed_parts)],
            ResReq::Compound(terms) => {
                let part = |CompoundTerm { tasks, req }| Part::new(tasks, req, fixed_parts);
                terms.into_iter().map(part).collect()
            }
            // there are none within one
            ResReq::Alternatives(_) => Vec::new(),
        };
        for order in parts.iter_mut().filter_map(|part| part.simple.order.as_mut()) {
            order.keys.iter_mut().for_each(|key| key.fresh |= anew);
        }
        Alternative { text, delay: variant.delay, span_of_queue, order_of_job, parts }
    }

    /// The instant before which this one starts no job, microseconds of the monotonic clock;
    /// `None`: it may.
    pub(crate) fn starts_later(&self, view: &View, job: u32) -> Option<u64> {
        if self.delay == 0 {
            return None;
        }
        let from = view.state.job(job)?.submit_time.saturating_add(self.delay.into());
        (view.now.secs() < from).then(|| view.now.mono_of_wall(from))
    }

    /// Do jobs wait for a time before they are held against hosts by this alternative?
    pub(crate) fn delays(&self) -> bool {
        self.delay > 0
    }

    /// Do tasks differ in what they need?
    pub(crate) fn is_compound(&self) -> bool {
        !matches!(&self.parts[..], [Part { tasks: None, .. }])
    }
}

impl Requirement {
    /// Has the ledgers find resolved what a started job reserves, where that is not the work of
    /// many alternatives or of a long text.
    pub fn resolve_ahead(&self, view: &View) {
        if let [Some(only)] = &self.alternatives[..]
            && only.text.len() <= LONGEST_PARSED
        {
            view.reserve.resolve_ahead(view.site, &only.text);
        }
    }

    /// The requirement of a class that shares nothing with others.
    pub fn new(view: &View, kind: &ClassKey) -> Requirement {
        Requirement::of(view, kind, &mut FixedParts::default())
    }

    fn of(view: &View, kind: &ClassKey, fixed_parts: &mut FixedParts) -> Requirement {
        let levels = (kind.queue, &*kind.application);
        let hosts_asked = !kind.hosts.is_empty() || !kind.reservation.is_empty();
        let req = view.combined_req(levels, &kind.res_req, hosts_asked);
        let whose = (span_of_queue(view, kind), order_of_job(view, kind));
        let anew = view.site.params().scheduler.per_job_sort;
        let compiled = |variant| Some(Rc::new(Alternative::new(variant, whose, anew, fixed_parts)));
        let alternatives: Vec<Option<Rc<Alternative>>> = match &req {
            Ok(req) => req.alternatives().into_iter().map(compiled).collect(),
            Err(_) => vec![None],
        };
        let combined = req.ok().map(|req| {
            let text = req.0.to_string();
            let of_one = alternatives.iter().flatten().find(|of| *of.text == *text);
            of_one.map_or_else(|| text.as_str().into(), |of| of.text.clone())
        });
        Requirement { combined, alternatives }
    }
}

/// Has the job an order[] of its own?
fn order_of_job(view: &View, kind: &ClassKey) -> bool {
    let own = view.site.names.parse_shared(&kind.res_req).ok();
    own.is_some_and(|req| req.simples().iter().any(|simple| simple.order.is_some()))
}

/// Does span[] come from the queue, job and application profile being silent?
fn span_of_queue(view: &View, kind: &ClassKey) -> bool {
    let span = |req: &ResReq| req.simples().iter().any(|simple| simple.span.is_some());
    let own = view.site.names.parse_shared(&kind.res_req).ok();
    let application = view.site.applications.get(&kind.application);
    let of_application = application.and_then(|a| a.req.as_deref()).map(|req| &req.0);
    let of_queue = view.site.queue(kind.queue).and_then(|queue| queue.req.as_deref());
    own.as_deref().into_iter().chain(of_application).all(|req| !span(req))
        && of_queue.is_some_and(|req| span(&req.0))
}
