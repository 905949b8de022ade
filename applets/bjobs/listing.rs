//! One run of bjobs over the slices of an answer: rows in, text out.
//!
//! Invariant: only the columns that the form shows are asked for, and a slice is formatted into
//! one buffer which the caller writes before the next one is read.

use super::fields::{self, BjobsFields};
use super::long;
use super::reasons::PendSum;
use super::show::{Show, is_finished};
use super::table::{AbsolutePlace, Sum, TableKind};
use lsf::cli::columns::{Format, Json};
use lsf::cli::ctx::FAIL;
use lsf::cli::job_ids::place_words;
use lsf::cli::job_rows::{Cols, JobRow, each_row};
use lsf::cli::long_format::{RULE, clean};
use lsf::model::JobRef;
use lsf::proto::client::{Col, IdSel, JobQuery, JobSelect, Which};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

/// The form of the listing.
pub enum Form {
    Table(TableKind),
    /// -l, -UF.
    Long,
    /// -A -l.
    LongArrays,
    /// -sum.
    Sum(Sum),
    /// -psum.
    PendSum(PendSum),
    /// -o.
    Custom(Format),
    /// -json.
    Json(Format, Json),
}

impl Form {
    fn cols(&self, expand: bool) -> Vec<Col> {
        let hosts = if expand { Col::ExecHosts } else { Col::CondensedHosts };
        match self {
            Form::Table(t) => t.cols(hosts),
            Form::Long => long::COLS.to_vec(),
            Form::LongArrays => TableKind::Arrays.cols(hosts),
            Form::Sum(_) => Sum::COLS.to_vec(),
            Form::PendSum(_) => PendSum::COLS.to_vec(),
            Form::Custom(f) | Form::Json(f, _) => {
                let mut cols = vec![Col::Job, Col::Idx];
                f.columns.iter().for_each(|c| cols.extend(BjobsFields::cols(c.field)));
                cols
            }
        }
    }
}

/// The conditions that a received row must meet to be shown.
#[derive(Default)]
pub struct RowFilter {
    /// -pe, -pi.
    pub eligible: Option<bool>,
    /// -pei: those that are eligible, then the others.
    pub parted: bool,
    /// -x.
    pub exceptions: bool,
    /// -rusage; empty: whatever they reserve.
    pub rusage: Vec<String>,
    /// -fwd, -plan, -ss, -data: of a kind that no job is of.
    pub none: bool,
}

impl RowFilter {
    fn cols(&self) -> Vec<Col> {
        let mut cols = Vec::new();
        if self.eligible.is_some() || self.parted {
            cols.extend(fields::PENDSTATE_COLS);
        }
        if self.exceptions {
            cols.push(Col::Exceptions);
        }
        if !self.rusage.is_empty() {
            cols.push(Col::CombinedResReq);
        }
        cols
    }

    fn has(&self, r: &JobRow) -> bool {
        !self.none
            && self.eligible.is_none_or(|e| e == fields::eligible(r))
            && (!self.exceptions || !r.text(Col::Exceptions).is_empty())
            && (self.rusage.is_empty() || reserves(&r.text(Col::CombinedResReq), &self.rusage))
    }
}

/// Does a requirement, or one of its alternatives, reserve all of these resources?
fn reserves(req: &str, wanted: &[String]) -> bool {
    let sections = req.split("rusage[").skip(1).filter_map(|s| s.split(']').next());
    let mut alternatives = sections.flat_map(|s| s.split("||"));
    alternatives.any(|text| {
        let names: Vec<&str> = text
            .split([',', ':', ' '])
            .filter_map(|part| part.split_once('='))
            .map(|(name, _)| name.trim())
            // how long something is reserved is no resource
            .filter(|name| !matches!(*name, "duration" | "decay"))
            .collect();
        wanted.iter().all(|w| names.contains(&w.as_str()))
    })
}

/// A listing under way.
pub struct Listing {
    form: Form,
    show: Show,
    keep: RowFilter,
    /// Rows to print after the others.
    later: String,
    /// Rows of -aps and -prio, to be put in their order.
    ranked: Vec<(AbsolutePlace, String)>,
    /// Print the heading (not -noheader).
    head: bool,
    cols: Cols,
    select: JobSelect,
    which: Which,
    /// Whether a row came for each of `select.ids`.
    seen: Vec<bool>,
    /// Places in `select.ids` by job.
    wanted: HashMap<u32, Vec<usize>>,
    shown: usize,
    /// Rows of jobs that have not ended.
    unfinished: usize,
    text: String,
    /// --watch.
    pub watch: bool,
    /// The jobs and elements shown so far with --watch.
    pub members: BTreeSet<JobRef>,
}

/// Most jobs that have left a watched listing and are asked for once more.
const MAX_LEFT: usize = 1000;

impl Listing {
    pub fn new(
        form: Form,
        show: Show,
        head: bool,
        select: JobSelect,
        which: Which,
        keep: RowFilter,
    ) -> Self {
        let mut wanted: HashMap<u32, Vec<usize>> = HashMap::new();
        for (i, sel) in select.ids.iter().enumerate() {
            wanted.entry(sel.job).or_default().push(i);
        }
        let seen = vec![false; select.ids.len()];
        let mut cols = [form.cols(show.expand), keep.cols()].concat();
        if show.factor.is_some() {
            cols.push(Col::HostFactor);
        }
        cols.push(Col::Stat);
        if show.whole_reasons {
            let reasons = cols.iter_mut().filter(|col| **col == Col::PendReasons);
            reasons.for_each(|col| *col = Col::AllPendReasons);
        }
        let cols = Cols::new(&cols);
        Listing {
            form,
            show,
            keep,
            later: String::new(),
            ranked: Vec::new(),
            head,
            cols,
            select,
            which,
            seen,
            wanted,
            shown: 0,
            unfinished: 0,
            text: String::new(),
            watch: false,
            members: BTreeSet::new(),
        }
    }

    /// The place for the cluster's name, if the listing shows one that is not known yet.
    pub fn cluster(&mut self) -> Option<&mut String> {
        match &mut self.form {
            Form::PendSum(sum) => Some(&mut sum.cluster),
            _ => None,
        }
    }

    pub fn query(&self) -> JobQuery {
        let arrays = matches!(self.form, Form::Table(TableKind::Arrays) | Form::LongArrays);
        JobQuery {
            select: self.select.clone(),
            which: self.which,
            cols: self.cols.list().to_vec(),
            arrays,
            detail: matches!(self.form, Form::Long | Form::LongArrays)
                || self.show.factor.is_some(),
            reason_counts: !self.show.host_names,
        }
    }

    /// The query for jobs that were shown before and have left this listing, in any state, so that
    /// each is shown once more. None: there are no such jobs.
    pub fn left(&self, before: &BTreeSet<JobRef>) -> Option<JobQuery> {
        let mut query = self.query();
        if query.arrays || !self.select.ids.is_empty() {
            return None;
        }
        for gone in before.difference(&self.members).take(MAX_LEFT) {
            match query.select.ids.last_mut().filter(|sel| sel.job == gone.job) {
                Some(sel) => sel.elems.push((gone.idx, gone.idx, 1)),
                None => {
                    let elems = if gone.idx == 0 { vec![] } else { vec![(gone.idx, gone.idx, 1)] };
                    query.select.ids.push(IdSel { job: gone.job, elems });
                }
            }
        }
        query.which = Which { all: true, ..Which::default() };
        (!query.select.ids.is_empty()).then_some(query)
    }

    /// Formats a slice and gives the text to print now.
    pub fn slice(&mut self, rows: &str) -> Result<&str, serde_json::Error> {
        self.text.clear();
        let Listing {
            form,
            show,
            keep,
            later,
            ranked,
            head,
            cols,
            select,
            seen,
            wanted,
            shown,
            unfinished,
            text,
            watch,
            members,
            ..
        } = self;
        each_row(rows, cols, |r| {
            mark(&r, select, wanted, seen);
            *unfinished += usize::from(!is_finished(&r));
            if !keep.has(&r) {
                return;
            }
            if *shown == 0 && *head {
                heading(text, form, show);
            }
            *shown += 1;
            if *watch {
                members.insert(job_ref(&r));
            }
            if matches!(form, Form::Table(TableKind::Aps | TableKind::Priorities)) {
                let mut line = String::new();
                row(&mut line, form, show, &r, *shown);
                return ranked.push((AbsolutePlace::of(&r), line));
            }
            let out = if keep.parted && !fields::eligible(&r) { &mut *later } else { &mut *text };
            row(out, form, show, &r, *shown);
        })?;
        Ok(&self.text)
    }

    /// The text after the last row, for stdout.
    pub fn end(&mut self) -> String {
        let missing: Vec<String> = self.missing().collect();
        let mut last = std::mem::take(&mut self.later);
        self.ranked.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
        self.ranked.drain(..).for_each(|ranked| last.push_str(&ranked.1));
        last.push_str(&self.closing(missing));
        last
    }

    fn closing(&mut self, missing: Vec<String>) -> String {
        match &mut self.form {
            Form::Long | Form::LongArrays if self.shown > 0 => "\n".to_string(),
            Form::Sum(sum) if self.shown > 0 => {
                let mut out = String::new();
                sum.lines(&mut out, self.head);
                out
            }
            Form::PendSum(sum) if self.shown > 0 => sum.text(&self.show),
            Form::Json(_, json) => {
                for id in missing {
                    let words = format!("Job <{id}> is not found");
                    json.pairs(&[("JOBID", &id), ("ERROR", &words)]);
                }
                std::mem::replace(json, Json::new("bjobs", "JOBS")).finish()
            }
            _ => String::new(),
        }
    }

    /// Whether a line is a job, so that lines can be compared.
    pub fn by_line(&self) -> bool {
        matches!(self.form, Form::Table(_) | Form::Custom(_))
    }

    /// Whether jobs were named and all of them have ended, or none was found.
    pub fn over(&self) -> bool {
        !self.select.ids.is_empty() && self.unfinished == 0
    }

    /// The jobs named that no row answered; none where finished ones are not asked for.
    pub fn unanswered(&self) -> Vec<IdSel> {
        let w = self.which;
        if !(w.all || w.done) && (w.pend || w.run || w.susp) {
            return Vec::new();
        }
        let pairs = self.select.ids.iter().zip(&self.seen);
        pairs.filter(|(_, seen)| !**seen).map(|(sel, _)| sel.clone()).collect()
    }

    /// The operands that no row answered, as the messages name them.
    fn missing(&self) -> impl Iterator<Item = String> {
        let unseen = |(_, seen): &(&IdSel, &bool)| !**seen;
        self.select.ids.iter().zip(&self.seen).filter(unseen).map(|(sel, _)| operand(sel))
    }

    /// The messages for stderr, and the exit code. `consistent`:
    /// LSB_BJOBS_CONSISTENT_EXIT_CODE=Y.
    pub fn verdict(&self, consistent: bool) -> (String, i32) {
        let json = matches!(self.form, Form::Json(..));
        let arrays = matches!(self.form, Form::Table(TableKind::Arrays) | Form::LongArrays);
        let place = place_words(&self.select.queue, &self.select.host);
        let not_found = |name: &str| match (arrays, name.contains('[')) {
            (true, true) => format!("Job <{name}> is not a job array\n"),
            (true, false) => format!("Job array <{name}> is not found{place}\n"),
            (false, _) => format!("Job <{name}> is not found{place}\n"),
        };
        let mut words: String = self.missing().map(|id| not_found(&id)).collect();
        let mut code = if words.is_empty() { 0 } else { FAIL };
        if self.shown == 0 && words.is_empty() {
            if !self.select.name.is_empty() {
                words = not_found(&clean(&self.select.name));
                code = FAIL;
            } else {
                let none = if arrays { "Job array is not found" } else { none_words(&self.which) };
                words = format!("{none}{place}\n");
                code = if consistent { FAIL } else { 0 };
            }
        }
        (if json { String::new() } else { words }, code)
    }
}

/// `123`, `123[1-4,6]`.
pub fn operand(sel: &IdSel) -> String {
    let mut out = sel.job.to_string();
    for (i, &(first, last, step)) in sel.elems.iter().enumerate() {
        let _ = write!(out, "{}{first}", if i == 0 { "[" } else { "," });
        if last != first {
            let _ = write!(out, "-{last}");
        }
        if step > 1 {
            let _ = write!(out, ":{step}");
        }
    }
    if !sel.elems.is_empty() {
        out.push(']');
    }
    out
}

/// The message for an empty listing: the first of several states decides.
fn none_words(which: &Which) -> &'static str {
    match which {
        Which { all: true, .. } => "No job found",
        Which { done: true, .. } => "No DONE/EXIT job found",
        Which { pend: true, .. } => "No pending job found",
        Which { susp: true, .. } => "No suspended job found",
        Which { run: true, .. } => "No running job found",
        _ => "No unfinished job found",
    }
}

fn mark(r: &JobRow, select: &JobSelect, wanted: &HashMap<u32, Vec<usize>>, seen: &mut [bool]) {
    if wanted.is_empty() {
        return;
    }
    let at = job_ref(r);
    for &i in wanted.get(&at.job).into_iter().flatten() {
        // A row of a whole array (-A) answers for any of its elements.
        if let (Some(sel), Some(s)) = (select.ids.get(i), seen.get_mut(i)) {
            *s |= sel.has(at) || at.idx == 0;
        }
    }
}

fn job_ref(r: &JobRow) -> JobRef {
    let number = |col| u32::try_from(r.int(col)).unwrap_or(0);
    JobRef { job: number(Col::Job), idx: number(Col::Idx) }
}

fn heading(text: &mut String, form: &Form, show: &Show) {
    match form {
        Form::Table(t) => t.head(text, show),
        Form::Custom(f) => f.header(text, &BjobsFields),
        Form::Long | Form::LongArrays | Form::Sum(_) | Form::PendSum(_) | Form::Json(..) => {}
    }
}

fn row(text: &mut String, form: &mut Form, show: &Show, r: &JobRow, number: usize) {
    if number > 1 && matches!(form, Form::Long | Form::LongArrays) {
        text.push_str(RULE);
        text.push('\n');
    }
    match form {
        Form::Table(t) => t.row(text, r, show),
        Form::Long => long::job(text, r, show),
        Form::LongArrays => long::array(text, r, show),
        Form::Sum(sum) => sum.add(r),
        Form::PendSum(sum) => sum.add(r, show),
        Form::Custom(f) => {
            f.row(text, &BjobsFields, |out, c| BjobsFields::value(out, c, r, show));
        }
        Form::Json(f, json) => {
            f.record(json, &BjobsFields, |out, c| BjobsFields::value(out, c, r, show));
        }
    }
}
