//! bjobs: which jobs, in which order, and their rows in bounded slices, so that a storm of
//! listings delays nobody.

use super::names::Sym;
use super::perm::Caller;
use super::state::{ElemState, Job, View};
use super::{Cx, Mbd, Recovered};
use crate::conf::ClusterConf;
use crate::model::JobRef;
use crate::model::event::{Record, Spot};
use crate::model::idmap::IdMap;
use crate::model::job::stat;
use crate::model::reason::err;
use crate::model::sort::sort_by_key;
use crate::proto::Refusal;
use crate::proto::client::{ClientMsg, Col, JobQuery, Which};
use crate::proto::machine::ConnId;
use serde_json::value::RawValue;

/// Rows' bytes after which a slice ends.
pub const SLICE_BYTES: usize = 64 << 10;
/// Elements looked at in one step of finding what is listed.
pub const FIND_STEP: usize = 8192;
/// Listings under way at a time.
pub const MAX_LISTINGS: usize = 4096;

/// What is found before it is sorted: all jobs are gone through in steps, by ID.
#[derive(Debug)]
struct Finding {
    q: JobQuery,
    who: Caller,
    from: u32,
    found: Vec<(Order, JobRef)>,
}

#[derive(Debug)]
struct Listing {
    /// Until all is found.
    finding: Option<Finding>,
    rows: Vec<JobRef>,
    next: usize,
    cols: Vec<Col>,
    arrays: bool,
}

#[derive(Debug, Default)]
pub struct Listings {
    open: IdMap<ConnId, Listing>,
}

impl Listings {
    pub fn close(&mut self, conn: ConnId) {
        self.open.remove(&conn);
    }
}

/// Rows of finished jobs that only the log knows any more, as one slice: what mbatchd answered
/// while it still had them. `records` are those of the jobs, without their cleaning.
pub fn past_rows(
    conf: ClusterConf,
    me: &str,
    records: Vec<Record>,
    q: &JobQuery,
    now: i64,
) -> String {
    let mbd = Mbd::new(conf, me, Recovered { records, ..Recovered::default() });
    let nobody = String::new;
    let who = Caller { uid: 0, gid: 0, user: nobody(), host: nobody() };
    let rows = match q.arrays {
        true => mbd.find_arrays(&who, q),
        false => mbd.find_elements(&who, q),
    };
    let mut out = vec![b'['];
    for at in rows {
        if out.len() > 1 {
            out.push(b',');
        }
        mbd.write_row(&mut out, at, &q.cols, q.arrays, now);
    }
    out.push(b']');
    String::from_utf8(out).unwrap_or_else(|_| "[]".to_string())
}

/// Does a state belong to what was asked?
pub(crate) fn wanted(w: Which, st: u32, by_id: bool) -> bool {
    let finished = st & (stat::DONE | stat::EXIT) != 0;
    let none = !(w.all || w.done || w.pend || w.run || w.susp);
    if w.all || (none && by_id) {
        return true;
    }
    if none {
        return !finished;
    }
    (w.done && finished)
        || (w.pend && st & (stat::PEND | stat::PSUSP) != 0)
        || (w.run && st & (stat::RUN | stat::UNKWN) != 0)
        || (w.susp && st & (stat::SSUSP | stat::USUSP | stat::PSUSP) != 0)
}

/// What rows are sorted by: kind, then host, queue or end, priority, place, element.
type Order = (u8, i64, u32, Spot, u32);

fn sorted(mut found: Vec<(Order, JobRef)>) -> Vec<JobRef> {
    found.sort_unstable_by_key(|f| f.0);
    found.into_iter().map(|f| f.1).collect()
}

impl Mbd {
    pub(crate) fn list_jobs(&mut self, cx: &mut Cx, conn: ConnId, who: &Caller, q: JobQuery) {
        if let Err(r) = self.check_select(&q.select) {
            return cx.refuse(conn, r);
        }
        if self.listings.open.len() >= MAX_LISTINGS {
            return cx.refuse(conn, Refusal::new(err::BUSY));
        }
        let (cols, arrays) = (q.cols.clone(), q.arrays);
        let (rows, finding) = match arrays {
            true => (self.find_arrays(who, &q), None),
            false if !q.select.ids.is_empty() => (self.find_elements(who, &q), None),
            false => {
                let (who, found) = (who.clone(), Vec::new());
                (Vec::new(), Some(Finding { q, who, from: 0, found }))
            }
        };
        let listing = Listing { finding, rows, next: 0, cols, arrays };
        self.listings.open.insert(conn, listing);
        self.next_slice(cx, conn);
    }

    /// Finds on; whether all is found, and sorted.
    fn find_on(&self, l: &mut Listing) -> bool {
        let Some(f) = &mut l.finding else { return true };
        let (mut looked, mut last) = (0, None);
        let mut rest = self.st.jobs.range(f.from..);
        let some = std::iter::from_fn(|| {
            let (id, job) = rest.next().filter(|_| looked < FIND_STEP)?;
            looked += job.tally.total as usize;
            last = Some(*id);
            Some(job.as_ref())
        });
        let some = some.filter(|job| self.selects(&f.who, &f.q.select, job));
        self.find_in(some, &f.q, &mut f.found);
        if let Some(from) = last.and_then(|id| id.checked_add(1)).filter(|_| looked >= FIND_STEP) {
            f.from = from;
            return false;
        }
        l.rows = sorted(std::mem::take(&mut f.found));
        l.finding = None;
        true
    }

    fn jobs_asked<'a>(&'a self, who: &Caller, q: &JobQuery) -> Vec<&'a Job> {
        let s = &q.select;
        if s.ids.is_empty() {
            return self.st.each_job().filter(|j| self.selects(who, s, j)).collect();
        }
        // Named jobs are shown whoever owns them.
        let mut ids: Vec<u32> = s.ids.iter().map(|i| i.job).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut s = s.clone();
        if s.user.is_empty() {
            s.user = "all".to_string();
        }
        ids.iter().filter_map(|i| self.st.job(*i)).filter(|j| self.selects(who, &s, j)).collect()
    }

    fn find_arrays(&self, who: &Caller, q: &JobQuery) -> Vec<JobRef> {
        let mut jobs = self.jobs_asked(who, q);
        jobs.retain(|j| j.is_array());
        sort_by_key(&mut jobs, |j| j.order);
        jobs.iter().map(|j| JobRef { job: j.id, idx: 0 }).collect()
    }

    /// Started ones by host, pending ones in dispatch order, finished ones as they finished.
    fn find_elements(&self, who: &Caller, q: &JobQuery) -> Vec<JobRef> {
        let mut found = Vec::new();
        self.find_in(self.jobs_asked(who, q).into_iter(), q, &mut found);
        sorted(found)
    }

    /// The elements of these jobs that are asked for.
    fn find_in<'a>(
        &self,
        jobs: impl Iterator<Item = &'a Job>,
        q: &JobQuery,
        found: &mut Vec<(Order, JobRef)>,
    ) {
        let by_id = !q.select.ids.is_empty();
        let name_elems = super::control::name_elements(&q.select.name);
        let named = |idx: u32| {
            let fits = |&(a, b, s): &(u32, u32, u32)| idx >= a && idx <= b && (idx - a) % s == 0;
            name_elems.is_empty() || name_elems.iter().any(fits)
        };
        let mut ranked = None;
        for job in jobs {
            if !by_id && job.tally.unfinished() == 0 && !(q.which.all || q.which.done) {
                continue;
            }
            // a single job has one, of number 0, and there are very many of them
            let several = if job.is_array() { job.indices() } else { Vec::new() };
            let indices = if job.is_array() { &several[..] } else { &[0] };
            // where elements do not differ, the job as a whole was looked at before
            let parted = !job.parts().is_empty();
            let some = if parted { self.selected_parts(&q.select, job) } else { None };
            for &idx in indices {
                let at = JobRef { job: job.id, idx };
                if some.as_ref().is_some_and(|parts| !parts.contains(&job.part_no(idx))) {
                    continue;
                }
                if by_id && !q.select.ids.iter().any(|s| s.has(at)) || !named(idx) {
                    continue;
                }
                let Some(view) = job.view(idx) else { continue };
                if !wanted(q.which, view.stat(), by_id) {
                    continue;
                }
                if !q.select.host.is_empty() && !self.on_host(job, idx, &q.select.host) {
                    continue;
                }
                found.push((self.list_order(job, &view, &mut ranked, idx), at));
            }
        }
    }

    /// `ranked` is the queue of the job before, and its rank.
    fn list_order(
        &self,
        job: &Job,
        view: &View,
        ranked: &mut Option<(Sym, i64)>,
        idx: u32,
    ) -> Order {
        let unmoved = |order| Spot { base: order, between: 0 };
        let part = match view {
            View::Fresh => 0,
            View::Own(e) => e.part,
        };
        let queue = job.queue_of(part);
        let rank = match *ranked {
            Some((before, rank)) if before == queue => rank,
            _ => {
                let name: &str = self.st.names.text(queue);
                self.pol.queue_ix.get(name).map_or(i64::MAX, |i| *i as i64)
            }
        };
        *ranked = Some((queue, rank));
        let (priority, spot) = (self.priority(job.spec_of(part)), self.st.spot_of(job, part));
        let pending = (1, rank, u32::MAX - priority, spot, idx);
        match view {
            View::Fresh => pending,
            View::Own(e) => match &e.state {
                ElemState::Pend(_) => pending,
                ElemState::Run(r) => {
                    let host = self.first_host(r).map_or(i64::MAX, |i| i as i64);
                    (0, host, 0, unmoved(job.order), idx)
                }
                ElemState::End(end) => (2, end.end_time, 0, unmoved(job.order), idx),
            },
        }
    }

    /// The next slice of a listing, once there is room for it.
    pub(crate) fn next_slice(&mut self, cx: &mut Cx, conn: ConnId) {
        let Some(mut l) = self.listings.open.remove(&conn) else { return };
        let now = cx.now.secs();
        let found = self.find_on(&mut l);
        let room = if found { SLICE_BYTES + 4096 } else { 2 };
        let mut out = Vec::with_capacity(room);
        out.push(b'[');
        while l.next < l.rows.len() && out.len() < SLICE_BYTES {
            let at = l.rows[l.next];
            l.next += 1;
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
        let more = !found || l.next < l.rows.len();
        let text = String::from_utf8(out).unwrap_or_else(|_| "[]".to_string());
        match RawValue::from_string(text) {
            Ok(rows) => cx.reply(conn, ClientMsg::Rows { rows, more }),
            Err(_) => {
                cx.say(log::Level::Error, "a listing's row is not JSON");
                return cx.refuse(conn, Refusal::new(err::MBATCHD));
            }
        }
        if more {
            self.listings.open.insert(conn, l);
        }
    }
}
