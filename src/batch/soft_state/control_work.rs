//! A control request under way (bkill, bstop, bresume, bswitch, btop, bbot, brequeue): the jobs it
//! means, how far it has come, and the outcomes its client has not been told.

use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::cursor::Cursor;
use crate::batch::soft_state::named_elements::NamedElements;
use crate::batch::soft_state::place_scan::PlaceScan;
use crate::batch::state::Job;
use crate::batch::state::retries::Done;
use crate::model::JobRef;
use crate::model::event::ElementRange;
use crate::model::reason::err;
use crate::model::time::US;
use crate::proto::Refusal;
use crate::proto::caps::{MAX_ACTED, MAX_OUTCOMES, OUTCOMES_PIECE};
use crate::proto::client::{Control, IdSel, Outcome};
use crate::proto::machine::ConnId;
use std::collections::BTreeSet;
use std::rc::Rc;

/// A client that takes pieces hears at least so often that its request is under way, microseconds.
const WORD_US: u64 = 2 * US;

/// The jobs that are meant.
pub(crate) enum MeantJobs {
    /// The operands, from this one on.
    Named(usize),
    /// Every job that the filters let through, from this ID on.
    All { from: u32 },
    /// The newest of them alone: those found so far, by their order.
    Newest { from: u32, found: Vec<(u64, u32)> },
    /// Chosen jobs, the last first.
    Chosen(Vec<u32>),
    /// No further one.
    Over,
}

/// The job under way.
pub(crate) struct OneJob {
    sel: IdSel,
    cursor: Cursor,
    /// The elements that -J names; none: all.
    named: NamedElements,
    /// Filters that concern elements are applied first: the elements they leave so far, and
    /// whether those are all.
    sift: Option<(Vec<ElementRange>, bool)>,
    /// The code that is told for a whole job, which gets one answer.
    best: i32,
    by_admin: bool,
}

impl OneJob {
    /// The job of an operand; `sift`: filters concern elements; `by_admin`: it is another user's.
    pub(crate) fn new(sel: IdSel, sift: bool, by_admin: bool) -> OneJob {
        let sift = sift.then(|| (Vec::new(), true));
        let (cursor, named) = (Cursor::default(), NamedElements::default());
        OneJob { sel, cursor, named, sift, best: err::JOB_FINISH, by_admin }
    }

    /// -J names these elements; none: all.
    pub(crate) fn with_named(self, named: Vec<ElementRange>) -> OneJob {
        OneJob { named: NamedElements::new(named), ..self }
    }

    pub(crate) fn sel(&self) -> &IdSel {
        &self.sel
    }

    /// The job as a whole.
    pub(crate) fn whole(&self) -> JobRef {
        JobRef { job: self.sel.job, idx: 0 }
    }

    /// Is the whole job meant, not some elements?
    pub(crate) fn is_whole(&self) -> bool {
        self.sel.elems.is_empty()
    }

    pub(crate) fn by_admin(&self) -> bool {
        self.by_admin
    }

    /// Was nothing done of it yet?
    pub(crate) fn is_untouched(&self) -> bool {
        self.cursor.is_at_start()
    }

    /// The next element that is meant.
    pub(crate) fn next(&mut self, job: &Job, looks: &mut usize) -> Option<u32> {
        self.cursor.next(job, &self.sel, looks)
    }

    pub(crate) fn is_over(&self, job: &Job) -> bool {
        self.cursor.over(job, &self.sel)
    }

    /// The place of the next element group, where these are gone through instead of elements.
    pub(crate) fn next_group(&mut self) -> &mut u32 {
        self.cursor.place()
    }

    /// Notes an outcome of a job that is told of once: a success is told before others.
    pub(crate) fn note_code(&mut self, code: i32) {
        if code == 0 || self.best == err::JOB_FINISH {
            self.best = code;
        }
    }

    /// The outcome of a job that is told of once.
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome::new(self.whole(), self.best)
    }

    /// Are filters that concern elements still to be applied?
    pub(crate) fn sifts(&self) -> bool {
        self.sift.is_some()
    }

    /// About so many looks it takes to see whether -J names an element.
    pub(crate) fn looks_for_name(&self) -> usize {
        self.named.looks()
    }

    /// Does -J name an element?
    pub(crate) fn names(&self, idx: u32) -> bool {
        self.named.holds(idx)
    }

    /// The filters leave an element, or do not.
    pub(crate) fn sifted(&mut self, idx: u32, leave: bool) {
        let Some((left, all)) = &mut self.sift else { return };
        *all &= leave;
        match left.last_mut() {
            _ if !leave => {}
            Some((_, last, _)) if last.checked_add(1) == Some(idx) => *last = idx,
            _ => left.push((idx, idx, 1)),
        }
    }

    /// All elements were sifted: those that are left are meant. `None`: none is.
    pub(crate) fn end_sift(mut self, job: &Job) -> Option<OneJob> {
        let (left, all) = self.sift.take()?;
        if left.is_empty() {
            return None;
        }
        if job.is_array() && (!all || !self.named.is_every()) {
            self.sel.elems = left;
        }
        self.cursor = Cursor::default();
        Some(self)
    }
}

/// A request and its sender.
pub(crate) struct Request {
    pub who: Caller,
    pub control: Control,
}

/// The request under way.
pub struct ControlWork {
    conn: Option<ConnId>,
    request: Rc<Request>,
    /// The client has to take what it was told.
    waits: bool,
    /// The outcomes of the same request, asked for earlier.
    before: Option<Done>,
    source: MeantJobs,
    /// Jobs submitted from then on are not meant.
    until: u64,
    hosts: Option<BTreeSet<String>>,
    job: Option<OneJob>,
    outcomes: Vec<Outcome>,
    acted: u64,
    /// Bytes that it has written, [`log_bytes`].
    ///
    /// [`log_bytes`]: crate::batch::state::space::log_bytes
    written: u64,
    /// The places among which btop and bbot move jobs.
    scan: Option<PlaceScan>,
    /// When the client was last told something.
    said: u64,
}

impl ControlWork {
    /// `before`: what the same request has done, asked for earlier; `until`: the place in
    /// first-come order from which on jobs are not meant; `hosts`: those that the filter names.
    pub(crate) fn new(
        (conn, request): (ConnId, Request),
        before: Option<Done>,
        until: u64,
        hosts: Option<BTreeSet<String>>,
        now_us: u64,
    ) -> ControlWork {
        let select = &request.control.select;
        let source = match (select.ids.is_empty(), select.all) {
            (false, _) => MeantJobs::Named(0),
            (true, true) => MeantJobs::All { from: 0 },
            // without 0 or an ID only the last job submitted is meant
            (true, false) => MeantJobs::Newest { from: 0, found: Vec::new() },
        };
        ControlWork {
            conn: Some(conn),
            request: Rc::new(request),
            waits: false,
            before,
            source,
            until,
            hosts,
            job: None,
            outcomes: Vec::new(),
            acted: 0,
            written: 0,
            scan: None,
            said: now_us,
        }
    }

    /// Job IDs and ranges that a request holds.
    pub(crate) fn weight_of(control: &Control) -> usize {
        1 + control.select.ids.iter().map(|id| 1 + id.elems.len()).sum::<usize>()
    }

    pub(crate) fn weight(&self) -> usize {
        ControlWork::weight_of(&self.request.control)
    }

    pub(crate) fn conn(&self) -> Option<ConnId> {
        self.conn
    }

    pub(crate) fn who(&self) -> &Caller {
        &self.request.who
    }

    pub(crate) fn request(&self) -> Rc<Request> {
        self.request.clone()
    }

    /// Is it this request of a user?
    pub(crate) fn is_request(&self, uid: u32, request: &str) -> bool {
        self.request.who.uid == uid && self.request.control.request == request
    }

    /// The client is gone: what it asked for is done all the same.
    pub(crate) fn forget_client(&mut self) {
        (self.conn, self.waits) = (None, false);
    }

    /// Has the client still to take what it was told?
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// The client has taken what it was told.
    pub(crate) fn told(&mut self) {
        self.waits = false;
    }

    /// Has the same request, asked for earlier, acted on this element?
    pub(crate) fn acted_before(&self, at: JobRef) -> bool {
        self.before.as_ref().is_some_and(|done| done.has(at))
    }

    /// Has the same request, asked for earlier, acted on this job?
    pub(crate) fn acted_before_on(&self, job: u32) -> bool {
        self.before.as_ref().is_some_and(|done| done.has_job(job))
    }

    /// The jobs to be acted on among those found, by their order, the last first; a retry means the
    /// job that it meant before.
    pub(crate) fn newest_first(&self, mut found: Vec<(u64, u32)>) -> Vec<u32> {
        if let Some(done) = &self.before {
            return done.jobs().take(1).collect();
        }
        found.sort_unstable();
        found.into_iter().map(|f| f.1).collect()
    }

    /// Was a job of this place in first-come order submitted before the request?
    pub(crate) fn means(&self, order: u64) -> bool {
        order < self.until
    }

    /// The hosts that the filter names.
    pub(crate) fn hosts(&self) -> Option<&BTreeSet<String>> {
        self.hosts.as_ref()
    }

    /// Are the jobs operands?
    pub(crate) fn is_named(&self) -> bool {
        matches!(self.source, MeantJobs::Named(_))
    }

    /// The jobs that are meant, to be gone on with.
    pub(crate) fn take_source(&mut self) -> MeantJobs {
        std::mem::replace(&mut self.source, MeantJobs::Over)
    }

    pub(crate) fn put_source(&mut self, source: MeantJobs) {
        self.source = source;
    }

    /// The job under way, to be gone on with.
    pub(crate) fn take_job(&mut self) -> Option<OneJob> {
        self.job.take()
    }

    pub(crate) fn put_job(&mut self, job: Option<OneJob>) {
        self.job = job;
    }

    /// The places of jobs that were looked at for btop and bbot.
    pub(crate) fn take_scan(&mut self) -> Option<PlaceScan> {
        self.scan.take()
    }

    pub(crate) fn put_scan(&mut self, scan: Option<PlaceScan>) {
        self.scan = scan;
    }

    pub(crate) fn scans(&self) -> bool {
        self.scan.is_some()
    }

    /// The client is to be told this.
    pub(crate) fn tell(&mut self, outcome: Outcome) {
        self.outcomes.push(outcome);
    }

    pub(crate) fn tell_all(&mut self, outcomes: Vec<Outcome>) {
        self.outcomes.extend(outcomes);
    }

    /// Counts jobs and elements that were acted on.
    pub(crate) fn count_acted(&mut self, acted: u64) {
        self.acted += acted;
    }

    /// Was nothing done yet, and is nothing to be told?
    pub(crate) fn is_untouched(&self) -> bool {
        self.acted == 0 && self.outcomes.is_empty()
    }

    /// Counts bytes that were written.
    pub(crate) fn wrote(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// A unit is done. Is it time for a piece of the answer? Nothing is kept that is never told.
    pub(crate) fn end_unit(&mut self, now_us: u64) -> bool {
        if self.conn.is_none() {
            self.outcomes.clear();
        }
        let pieces = self.request.control.pieces;
        if !pieces {
            self.outcomes.truncate(MAX_OUTCOMES);
        }
        let full = self.outcomes.len() >= OUTCOMES_PIECE;
        pieces && (full || now_us >= self.said + WORD_US)
    }

    /// The answer to the client, or with `more` a piece of it, where the client takes pieces.
    pub(crate) fn take_answer(
        &mut self,
        now_us: u64,
        more: bool,
    ) -> Option<(ConnId, Vec<Outcome>)> {
        let mut outcomes = std::mem::take(&mut self.outcomes);
        let pieces = self.request.control.pieces;
        if !pieces {
            outcomes.truncate(MAX_OUTCOMES);
        }
        let conn = self.conn.filter(|_| pieces || !more)?;
        (self.said, self.waits) = (now_us, more);
        Some((conn, outcomes))
    }

    /// Whether the request has done as much as one may.
    pub(crate) fn beyond(&self, most: u64) -> Option<Refusal> {
        let what = match () {
            () if self.acted >= MAX_ACTED => format!("at most {MAX_ACTED} are"),
            () if self.written > most => {
                format!("the log takes at most {most} bytes of a request; repeat it for the rest")
            }
            () => return None,
        };
        let done = self.acted;
        let text = format!("the request was carried out for {done} jobs and elements: {what}");
        Some(Refusal::text(err::BAD_ARG, text))
    }
}
