//! bjobs: which jobs, in which order, and their rows in bounded slices, so that a storm of listings
//! delays nobody. The jobs are found step by step, each step sorted by itself; rows are taken from
//! the sorted steps in order, so that nothing is ever sorted as a whole.

use crate::batch::query::selection::wanted;
use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::cursor::Cursor;
use crate::batch::soft_state::listings::{Finding, Listing, RowOrder};
use crate::batch::state::names::{Id, QueueId};
use crate::batch::state::{ElemState, ElementView, Job};
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::event::QueuePosition;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{ClientMsg, IdSel, JobQuery};
use crate::proto::machine::ConnId;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BinaryHeap};

/// Rows' bytes after which a slice ends.
pub const SLICE_BYTES: usize = 64 << 10;
/// Looks at hosts for the pending reasons of one slice.
const SLICE_LOOKS: usize = 16_384;
/// Elements looked at in one step of finding what is listed.
pub const FIND_STEP: usize = 8192;
/// Listings under way at a time.
pub const MAX_LISTINGS: usize = 4096;
/// Rows, job IDs and ranges that all listings under way hold together.
pub const MAX_HELD: usize = 8_000_000;

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
        if self.listings.open.len() >= MAX_LISTINGS {
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
        let ids = (!s.ids.is_empty()).then(|| {
            let mut all: BTreeMap<u32, IdSel> = BTreeMap::new();
            for id in &s.ids {
                let whole = id.elems.is_empty();
                let sel = all.entry(id.job).or_insert_with(|| id.clone());
                // the job as a whole means each element that is named beside it
                if whole || sel.elems.is_empty() {
                    sel.elems.clear();
                } else if *sel != *id {
                    sel.elems.extend(&id.elems);
                }
            }
            all
        });
        let (cols, arrays) = (q.cols.clone(), q.arrays);
        let named = crate::batch::query::selection::name_elements(&s.name);
        let hosts = (!s.host.is_empty()).then(|| self.site.expand_host(&s.host));
        let (who, from, job, ranked) = (who.clone(), 0, None, None);
        let mut q = q;
        q.select.ids.clear();
        // Named jobs are shown whoever owns them.
        if ids.is_some() && q.select.user.is_empty() {
            q.select.user = "all".to_string();
        }
        let finding = Some(Finding { q, who, ids, from, job, named, hosts, ranked });
        let (runs, heads) = (Vec::new(), BinaryHeap::new());
        Listing { finding, runs, heads, last: None, cols, arrays, held }
    }

    /// Finds on; whether all is found.
    pub(crate) fn find_on(&self, l: &mut Listing) -> bool {
        let Some(f) = &mut l.finding else { return true };
        let mut looks = FIND_STEP;
        let mut found = Vec::new();
        let mut over = false;
        while looks > 0 && !over {
            match f.job.take() {
                Some((sel, cursor)) => {
                    if let Some(job) = self.state.job(sel.job) {
                        f.job = self.find_in(f, job, sel, cursor, &mut looks, &mut found);
                    }
                }
                None if f.ids.is_some() => over = !self.next_named(f, &mut looks, &mut found),
                None => over = !self.next_of_all(f, &mut looks, &mut found),
            }
        }
        if !found.is_empty() {
            found.sort_unstable();
            l.add(found);
        }
        if over {
            l.finding = None;
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
        let Some((id, sel)) = f.ids.as_mut().and_then(BTreeMap::pop_first) else { return false };
        if let Some(job) = self.state.job(id) {
            self.look_at(f, job, sel, looks, found);
        }
        true
    }

    /// Takes jobs in the order of their IDs, up to one that is not looked at as a whole; false:
    /// there are no more.
    fn next_of_all(
        &self,
        f: &mut Finding,
        looks: &mut usize,
        found: &mut Vec<(RowOrder, JobRef)>,
    ) -> bool {
        // one walk for many jobs: a look into the tree for each would cost as much as its row
        for job in self.state.jobs_from(f.from) {
            if *looks == 0 || f.job.is_some() {
                return true;
            }
            *looks -= 1;
            f.from = job.id.saturating_add(1);
            self.look_at(f, job, IdSel { job: job.id, elems: Vec::new() }, looks, found);
        }
        f.job.is_some()
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
        if !self.selects(&f.who, &f.q.select, job) {
            return;
        }
        if f.q.arrays {
            if job.is_array() {
                let own = QueuePosition { base: job.order, between: 0 };
                found.push(((0, 0, 0, own, 0), JobRef { job: job.id, idx: 0 }));
            }
            return;
        }
        let by_id = f.ids.is_some();
        if by_id || job.tally.unfinished() > 0 || f.q.which.all || f.q.which.done {
            f.job = self.find_in(f, job, sel, Cursor::default(), looks, found);
        }
    }

    /// The elements of a job that are asked for; gives back what was not looked at.
    fn find_in(
        &self,
        f: &mut Finding,
        job: &Job,
        sel: IdSel,
        mut cursor: Cursor,
        looks: &mut usize,
        found: &mut Vec<(RowOrder, JobRef)>,
    ) -> Option<(IdSel, Cursor)> {
        let by_id = f.ids.is_some();
        let named = |idx: u32| {
            let fits = |&(a, b, s): &(u32, u32, u32)| {
                idx >= a && idx <= b && (idx - a).is_multiple_of(s.max(1))
            };
            f.named.is_empty() || f.named.iter().any(fits)
        };
        // where elements do not differ, the job as a whole was looked at before
        let parted = !job.parts().is_empty();
        let some = if parted { self.selected_parts(&f.q.select, job) } else { None };
        while *looks > 0
            && let Some(idx) = cursor.next(job, &sel, looks)
        {
            *looks = looks.saturating_sub(1 + f.named.len() / 16);
            let Some(view) = job.view(idx).filter(|v| wanted(f.q.which, v.stat(), by_id)) else {
                continue;
            };
            if !named(idx) || some.as_ref().is_some_and(|p| !p.contains(&job.part_no(idx))) {
                continue;
            }
            if f.hosts.as_ref().is_some_and(|hosts| !self.on_host(job, idx, hosts)) {
                continue;
            }
            let order = self.list_order(job, &view, &mut f.ranked, idx);
            found.push((order, JobRef { job: job.id, idx }));
        }
        (!cursor.over(job, &sel)).then_some((sel, cursor))
    }

    /// `ranked` is the queue of the job before, and its rank.
    fn list_order(
        &self,
        job: &Job,
        view: &ElementView,
        ranked: &mut Option<(QueueId, i64)>,
        idx: u32,
    ) -> RowOrder {
        let unmoved = |order| QueuePosition { base: order, between: 0 };
        let part = match view {
            ElementView::Untouched(_) => 0,
            ElementView::Own(e) => e.part,
        };
        let queue = job.queue_of(part);
        let rank = match *ranked {
            Some((before, rank)) if before == queue => rank,
            _ => self.site.queue_position(queue).map_or(i64::MAX, |i| i as i64),
        };
        *ranked = Some((queue, rank));
        let (priority, spot) =
            (self.view().priority(job.spec_of(part)), self.state.spot_of(job, part));
        let pending = (1, rank, u32::MAX - priority, spot, idx);
        match view {
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

    /// The next slice of a listing, once there is room for it.
    pub(crate) fn next_slice(&mut self, context: &mut StepContext, conn: ConnId) {
        let Some(mut l) = self.listings.take(conn) else { return };
        let now = context.now.secs();
        let found = self.find_on(&mut l);
        if self.listings.held + l.held > MAX_HELD {
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
            if !self.write_row(&mut out, at, &l.cols, l.arrays, now) {
                out.truncate(before);
            }
        }
        out.push(b']');
        let more = !found || !l.heads.is_empty();
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
