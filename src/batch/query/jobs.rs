//! bjobs: which jobs, in which order, and their rows in bounded slices, so that a storm of listings
//! delays nobody. The jobs are found step by step, each step sorted by itself; rows are taken from
//! the sorted steps in order, so that nothing is ever sorted as a whole.

use crate::batch::query::job_columns::RowForm;
use crate::batch::query::selection::wanted;
use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::cursor::Cursor;
use crate::batch::soft_state::listings::{Finding, Listing, RowOrder};
use crate::batch::state::names::Id;
use crate::batch::state::{ElemState, ElementView, Job};
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::JobRights;
use crate::model::JobRef;
use crate::model::event::QueuePosition;
use crate::model::job_state::JobState;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{ClientMsg, IdSel, JobQuery};
use crate::proto::machine::ConnId;
use serde_json::value::RawValue;

/// Rows' bytes after which a slice ends.
pub const SLICE_BYTES: usize = 64 << 10;
/// Looks at hosts for the pending reasons of one slice.
const SLICE_LOOKS: usize = 16_384;
/// Elements examined in one step of the search.
pub const FIND_STEP: usize = 8192;

impl Mbatchd {
    pub(crate) fn list_jobs(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        q: JobQuery,
    ) {
        if let Err(r) = self.check_select(&q.select) {
            return context.refuse(conn, r);
        }
        if !self.listings.has_room() {
            return context.refuse(conn, Refusal::new(err::BUSY));
        }
        self.listings.close(conn);
        let listing = self.new_listing(who, q);
        self.listings.put(conn, listing);
        self.next_slice(context, conn);
    }

    pub(crate) fn new_listing(&self, who: &Caller, q: JobQuery) -> Listing {
        let s = &q.select;
        let held = s.ids.iter().map(|id| 1 + id.elems.len()).sum();
        let named = crate::batch::query::selection::name_elements(&s.name);
        let hosts = (!s.host.is_empty()).then(|| self.site.expand_host_words(&s.host));
        let who = (who.clone(), self.viewer(who));
        Listing::new(Finding::new(who, q, named, hosts), held)
    }

    /// Finds on; whether all is found.
    pub(crate) fn find_on(&self, l: &mut Listing) -> bool {
        let Some(f) = l.finding() else { return true };
        let mut looks = FIND_STEP;
        let mut found = Vec::new();
        let mut over = false;
        while looks > 0 && !over {
            match f.take_job() {
                Some((sel, cursor)) => {
                    if let Some(job) = self.state.job(sel.job) {
                        let left = self.find_in(f, job, sel, cursor, &mut looks, &mut found);
                        f.put_job(left);
                    }
                }
                None if f.is_by_id() => over = !self.next_named(f, &mut looks, &mut found),
                None => over = !self.next_of_all(f, &mut looks, &mut found),
            }
        }
        if !found.is_empty() {
            found.sort_unstable();
            l.add(found);
        }
        if over {
            l.end_finding();
        }
        over
    }

    /// Takes the next job that is named; false: there is none.
    fn next_named(
        &self,
        f: &mut Finding,
        looks: &mut usize,
        found: &mut Vec<(RowOrder, JobRef)>,
    ) -> bool {
        *looks -= 1;
        let Some((id, sel)) = f.next_named() else { return false };
        if let Some(job) = self.state.job(id) {
            self.look_at(f, job, sel, looks, found);
        }
        true
    }

    /// Takes jobs in the order of their IDs, up to one that is not examined as a whole; false:
    /// there are no more.
    fn next_of_all(
        &self,
        f: &mut Finding,
        looks: &mut usize,
        found: &mut Vec<(RowOrder, JobRef)>,
    ) -> bool {
        // one walk for many jobs: a look into the tree for each would cost as much as its row
        for job in self.state.jobs_from(f.from()) {
            if *looks == 0 || f.has_job() {
                return true;
            }
            *looks -= 1;
            f.passed(job.id);
            self.look_at(f, job, IdSel { job: job.id, elems: Vec::new() }, looks, found);
        }
        f.has_job()
    }

    /// Takes one job, or as much of it as there are looks left.
    fn look_at(
        &self,
        f: &mut Finding,
        job: &Job,
        sel: IdSel,
        looks: &mut usize,
        found: &mut Vec<(RowOrder, JobRef)>,
    ) {
        if !self.selects(f.who(), &f.query().select, job) {
            return;
        }
        let needed = if f.query().detail { JobRights::Detail } else { JobRights::Summary };
        if f.viewer().is_some_and(|viewer| self.job_rights(viewer, job) < needed) {
            return;
        }
        if f.query().arrays {
            if job.is_array() {
                let own = QueuePosition { base: job.order, between: 0 };
                found.push(((0, 0, 0, own, 0), JobRef { job: job.id, idx: 0 }));
            }
            return;
        }
        let which = f.query().which;
        let exits = which.exiting && self.state.posts().of_job(job.id).next().is_some();
        if f.is_by_id() || job.tally().unfinished() > 0 || which.all || which.done || exits {
            let left = self.find_in(f, job, sel, Cursor::default(), looks, found);
            f.put_job(left);
        }
    }

    /// The requested elements of a job; returns those that were not examined yet.
    fn find_in(
        &self,
        f: &mut Finding,
        job: &Job,
        sel: IdSel,
        mut cursor: Cursor,
        looks: &mut usize,
        found: &mut Vec<(RowOrder, JobRef)>,
    ) -> Option<(IdSel, Cursor)> {
        let (by_id, which) = (f.is_by_id(), f.query().which);
        // where elements do not differ, the job as a whole was looked at before
        let parted = !job.parts().is_empty();
        let some = if parted { self.selected_parts(&f.query().select, job) } else { None };
        while *looks > 0
            && let Some(idx) = cursor.next(job, &sel, looks)
        {
            *looks = looks.saturating_sub(1 + f.looks_for_name());
            let waits = self.state.job_chunks().waits(JobRef { job: job.id, idx });
            let shown = |v: &ElementView| if waits { JobState::Wait } else { v.stat() };
            let posts = || self.state.posts().of_job(job.id).any(|key| key.idx == idx);
            let exits = || which.exiting && posts();
            let fits = |v: &ElementView| wanted(which, shown(v), by_id) || exits();
            let Some(view) = job.view(idx).filter(fits) else {
                continue;
            };
            if !f.names(idx) || some.as_ref().is_some_and(|p| !p.contains(&job.part_no(idx))) {
                continue;
            }
            if f.hosts().is_some_and(|hosts| !self.on_host(job, idx, hosts)) {
                continue;
            }
            let order = self.list_order(job, &view, f, idx);
            found.push((order, JobRef { job: job.id, idx }));
        }
        (!cursor.over(job, &sel)).then_some((sel, cursor))
    }

    fn list_order(&self, job: &Job, element: &ElementView, f: &mut Finding, idx: u32) -> RowOrder {
        let unmoved = |order| QueuePosition { base: order, between: 0 };
        let part = match element {
            ElementView::Untouched(_) => 0,
            ElementView::Own(e) => e.part,
        };
        let queue = job.queue_of(part);
        let position = || self.site.dispatch_group_of(queue).map_or(i64::MAX, |i| i as i64);
        let rank = f.rank(queue, position);
        let (view, spot) = (self.view(), self.state.spot_of(job, part));
        let absolute = self.sched.absolute_rank(&view, job, part);
        let priority = absolute.unwrap_or_else(|| view.dispatch_priority(job, job.spec_of(part)));
        let pending = (1, rank, u32::MAX - priority, spot, idx);
        match element {
            ElementView::Untouched(_) => pending,
            ElementView::Own(e) => match &e.state {
                ElemState::Pend(_) => pending,
                ElemState::Run(r) => {
                    let host = self.first_host(r).map_or(i64::MAX, |i| i.index() as i64);
                    (0, host, 0, unmoved(job.order), idx)
                }
                ElemState::End(end) => (2, end.end_time, 0, unmoved(job.order), idx),
            },
        }
    }

    /// May the caller of a listing see all of a job, and not a summary alone?
    fn shows_whole(&self, l: &mut Listing, at: JobRef) -> bool {
        let viewer = l.viewer().zip(self.state.job(at.job));
        viewer.is_none_or(|(viewer, job)| self.job_rights(viewer, job) == JobRights::Detail)
    }

    /// The next slice of a listing, once there is room for it.
    pub(crate) fn next_slice(&mut self, context: &mut StepContext, conn: ConnId) {
        let Some(mut l) = self.listings.take(conn) else { return };
        let now = context.now.secs();
        let found = self.find_on(&mut l);
        if !self.listings.has_room_for(&l) {
            return context.refuse(conn, Refusal::new(err::BUSY));
        }
        let room = if found { SLICE_BYTES + 4096 } else { 2 };
        let mut out = Vec::with_capacity(room);
        out.push(b'[');
        let looks = self.sched.explain_looks();
        while found && out.len() < SLICE_BYTES {
            if self.sched.explain_looks() - looks > SLICE_LOOKS {
                break;
            }
            let Some(at) = l.next() else { break };
            let before = out.len();
            if before > 1 {
                out.push(b',');
            }
            // A job that left memory since the listing began is left out.
            let whole = self.shows_whole(&mut l, at);
            let (arrays, reason_counts) = (l.of_arrays(), l.counts_reasons());
            let form = RowForm { cols: l.cols(), whole, arrays, reason_counts };
            if !self.write_row(&mut out, at, &form, now) {
                out.truncate(before);
            }
        }
        out.push(b']');
        let more = !found || !l.is_empty();
        let text = String::from_utf8(out).unwrap_or_else(|_| "[]".to_string());
        match RawValue::from_string(text) {
            Ok(rows) => context.reply(conn, ClientMsg::Rows { rows, more }),
            Err(_) => {
                context.say(log::Level::Error, "a listing's row is not JSON");
                return context.refuse(conn, Refusal::new(err::MBATCHD));
            }
        }
        if more {
            self.listings.put(conn, l);
        }
    }
}
