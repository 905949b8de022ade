//! lsb.acct is derived: recovery appends the JOB_FINISH records of jobs that the events say
//! finished and that it lacks, exactly once. A finish is known by job, element, submit time and
//! attempt. Only events since the log was begun are looked at: a switch waits until lsb.acct holds
//! everything before, and notes in the checksum file how long it was then.

use super::checksums::{ACCT_MARK, ChecksumHead};
use super::codec::read_finish;
use super::disk::{Disk, FileId, read_full};
use super::record_walk::{PlaceContents, RecordWalker};
use super::{ACCT, ACCT_OLD, acct_archive};
use crate::model::JobRef;
use crate::model::event::{
    ArraySignal, ElementRange, Event, Finish, JobNew, JobStart, JobStatus, NamedHosts, Record,
    ResizeStep,
};
use crate::model::job::JobSpec;
use crate::model::resize::{NOTIFY_OK, with, without};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// The identity of a finish.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct EndIdentity {
    at: JobRef,
    submit_time: i64,
    attempt: u32,
}

/// A finish in the events.
struct Ended<'a> {
    time: i64,
    new: &'a JobNew,
    /// The submission as it was at the end.
    spec: JobSpec,
    start: Option<(i64, &'a JobStart)>,
    status: Cow<'a, JobStatus>,
    /// The slots that it had at its end.
    hosts: Vec<(Arc<str>, u32)>,
    /// When these changed last; 0: they never did.
    last_resize: i64,
}

/// The slots of a started job that were changed, and the change that has not ended.
#[derive(Default)]
struct ResizedJob<'a> {
    attempt: u32,
    hosts: Vec<(Arc<str>, u32)>,
    change: Option<(u32, bool, &'a NamedHosts)>,
    /// When a change ended well; 0: none did.
    changed_at: i64,
}

impl<'a> ResizedJob<'a> {
    fn step(&mut self, time: i64, step: &'a ResizeStep) {
        match step {
            ResizeStep::Begun { number, grows, hosts, .. } => {
                if *grows {
                    self.hosts = with(&self.hosts, hosts);
                }
                self.change = Some((*number, *grows, hosts));
            }
            ResizeStep::Done { number, status } => {
                let Some((_, grows, hosts)) = self.change.take_if(|c| c.0 == *number) else {
                    return;
                };
                let well = *status == NOTIFY_OK;
                if well != grows {
                    self.hosts = without(&self.hosts, hosts);
                }
                if well {
                    self.changed_at = time;
                }
            }
            _ => {}
        }
    }
}

impl Ended<'_> {
    fn key(&self) -> EndIdentity {
        let (submit_time, attempt) = (self.new.submit_time, self.status.attempt);
        EndIdentity { at: self.status.at, submit_time, attempt }
    }

    fn ended_at(&self) -> i64 {
        if self.status.end_time > 0 { self.status.end_time } else { self.time }
    }

    /// The requirement that mbatchd computed.
    fn finish(&self) -> Finish {
        let (new, s) = (self.new, &*self.status);
        let start = self.start.map(|(_, start)| start);
        Finish {
            event_time: self.ended_at(),
            at: s.at,
            uid: new.uid,
            user: new.user.clone(),
            submit_time: new.submit_time,
            start_time: self.start.map_or(0, |(time, _)| time),
            last_resize: self.last_resize,
            spec: self.spec.clone(),
            exec_hosts: self.hosts.iter().map(|(h, n)| (h.to_string(), *n)).collect(),
            short_hosts: start.is_some_and(|start| start.short_hosts),
            status: s.status.end(),
            host_factor: start.map_or(0.0, |start| start.host_factor),
            usage: s.usage,
            hosts_used: s.hosts.clone(),
            exit_status: s.exit_status,
            exit_info: s.exit_info,
            eff_res_req: start.map_or(String::new(), |start| start.eff_res_req.to_string()),
            attempt: s.attempt,
            unknown_end: s.unknown_end,
            ..Finish::default()
        }
    }
}

/// The known state of lsb.acct.
pub struct AcctState {
    /// The finishes that it lacks, in the order of the events.
    pub finishes: Vec<Finish>,
    /// Length of its whole lines.
    pub end: u64,
    /// Up to there it was synced when the log was begun.
    pub synced: u64,
}

/// Compares lsb.acct with the events. `ends`: indices of the records that ended a job, ascending.
pub fn missing(
    disk: &mut dyn Disk,
    head: Option<ChecksumHead>,
    records: &[Record],
    ends: &[usize],
) -> io::Result<AcctState> {
    let ended = gather(records, ends);
    let mut wanted = SearchedEnds::default();
    ended.iter().for_each(|e| wanted.add(e.key()));
    let oldest = ended.iter().map(Ended::ended_at).min().unwrap_or(i64::MAX);
    let (synced, end) = remove_accounted(disk, head, &mut wanted, oldest)?;
    // of several that are alike the last ones are lacking
    let mut lacking: Vec<Finish> =
        ended.iter().rev().filter(|e| wanted.take(&e.key())).map(Ended::finish).collect();
    lacking.reverse();
    Ok(AcctState { finishes: lacking, end, synced })
}

/// The ends that are searched for, with their number: the records of attempts that never ran are
/// equal.
#[derive(Default)]
struct SearchedEnds(HashMap<EndIdentity, u32>);

impl SearchedEnds {
    fn add(&mut self, key: EndIdentity) {
        *self.0.entry(key).or_default() += 1;
    }

    /// Takes one finish of this key out; returns whether there was one.
    fn take(&mut self, key: &EndIdentity) -> bool {
        let Some(n) = self.0.get_mut(key) else { return false };
        *n -= 1;
        if *n == 0 {
            self.0.remove(key);
        }
        true
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Bytes at the end of lsb.acct that are held against the events.
const LAST: u64 = 64 << 10;
/// The most that clocks of hosts differ by, seconds: taken into account where it is not known which
/// log the ends in lsb.acct belong to.
const SKEW: i64 = 3600;

/// The last end in lsb.acct that is no older than the events are, and that they do not have.
/// Of a log without records nothing is said.
pub fn ahead(
    disk: &mut dyn Disk,
    head: Option<ChecksumHead>,
    records: &[Record],
    newest: i64,
) -> io::Result<Option<JobRef>> {
    let mut late: Vec<JobRef> = Vec::new();
    if !records.is_empty() {
        let mut newest = newest;
        let from = |disk: &mut dyn Disk, file, len| {
            let begun = begun(disk, file, len, head)?;
            if begun.is_none() {
                newest = newest.saturating_add(SKEW);
            }
            Ok(begun.unwrap_or(0).max(len.saturating_sub(LAST)))
        };
        let mut all = Vec::new();
        ends(disk, ACCT, from, &mut |f| all.push((f.event_time, f.at)))?;
        late.extend(all.iter().filter(|f| f.0 >= newest).map(|f| f.1));
    }
    if late.is_empty() {
        return Ok(None);
    }
    let mut known: HashSet<JobRef> = HashSet::new();
    for record in records {
        match &record.event {
            Event::JobStatus(s) if s.status.is_finished() => drop(known.insert(s.at)),
            Event::ArraySignal(s) if s.status.is_finished() => {
                known.extend(s.indices().take(MAX_ELEMENTS).map(|idx| s.signal_of(idx).at));
            }
            _ => {}
        }
    }
    Ok(late.into_iter().rfind(|end| !known.contains(end)))
}

/// The largest job ID among the ends in lsb.acct and its newest archive.
pub fn last_job(disk: &mut dyn Disk) -> io::Result<u32> {
    let mut last = 0;
    for name in [ACCT, ACCT_OLD] {
        ends(disk, name, |_, _, _| Ok(0), &mut |f| last = last.max(f.at.job))?;
    }
    Ok(last)
}

/// Gives `each` the ends in an accounting file from the place on that `from` has for its length.
fn ends(
    disk: &mut dyn Disk,
    name: &str,
    mut from: impl FnMut(&mut dyn Disk, FileId, u64) -> io::Result<u64>,
    each: &mut dyn FnMut(Finish),
) -> io::Result<()> {
    let file = match disk.open(name, None) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let mut read = || {
        let len = disk.len(file)?;
        let from = from(disk, file, len)?;
        let mut walker = RecordWalker::new(file, from, len, Vec::new());
        let mut line = Vec::new();
        while walker.step(disk, &mut line)?.is_some() {
            read_finish(&line).into_iter().for_each(&mut *each);
        }
        Ok(())
    };
    let done = read();
    disk.close(file);
    done
}

/// The length of lsb.acct when the log was begun; `None`: unknown, or the file is another one.
fn begun(
    disk: &mut dyn Disk,
    file: FileId,
    len: u64,
    head: Option<ChecksumHead>,
) -> io::Result<Option<u64>> {
    let Some(head) = head.filter(|head| head.acct_at <= len) else { return Ok(None) };
    Ok((mark(disk, file, head.acct_at)? == head.acct_crc).then_some(head.acct_at))
}

/// The changed submissions of jobs, and of single elements.
#[derive(Default)]
struct Changed {
    /// idx 0: the job, without the elements that are here too.
    by: BTreeMap<JobRef, Rc<JobSpec>>,
}

impl Changed {
    fn of(&self, at: JobRef) -> Option<&JobSpec> {
        self.by.get(&at).or_else(|| self.by.get(&JobRef { idx: 0, ..at })).map(Rc::as_ref)
    }

    /// `elems` empty: the job.
    fn change(&mut self, job: u32, elems: &[(u32, u32, u32)], to: JobSpec) {
        let (one, to) = ([(0, 0, 1)], Rc::new(to));
        let elems = if elems.is_empty() { &one[..] } else { elems };
        let all = elems.iter().flat_map(|&(a, b, s)| (a..=b).step_by(s.max(1) as usize));
        for idx in all.take(MAX_ELEMENTS) {
            self.by.insert(JobRef { job, idx }, to.clone());
        }
    }

    /// Elements go to another queue; `new`: their submission where nothing changed it.
    fn switch(&mut self, job: u32, elems: &[ElementRange], queue: &str, new: &Rc<JobSpec>) {
        let whole = self.by.get(&JobRef { job, idx: 0 }).unwrap_or(new).clone();
        // what elements share they go on sharing
        let mut known: HashMap<*const JobSpec, (Rc<JobSpec>, Rc<JobSpec>)> = HashMap::new();
        let all = elems.iter().flat_map(|&(a, b, s)| (a..=b).step_by(s.max(1) as usize));
        for idx in all.take(MAX_ELEMENTS) {
            let spec = self.by.entry(JobRef { job, idx }).or_insert_with(|| whole.clone());
            let (_, now) = known.entry(Rc::as_ptr(spec)).or_insert_with(|| {
                let mut now = (**spec).clone();
                now.switch(queue, None);
                (spec.clone(), Rc::new(now))
            });
            *spec = now.clone();
        }
    }

    /// All elements by themselves that are as one of them is.
    fn change_alike(&mut self, at: JobRef, to: &JobSpec) {
        let Some(was) = self.by.get(&at).cloned() else { return };
        let to = Rc::new(to.clone());
        let alike = |spec: &&mut Rc<JobSpec>| Rc::ptr_eq(spec, &was) || **spec == was;
        self.elements(at.job).filter(alike).for_each(|spec| *spec = to.clone());
    }

    fn each_element(&mut self, job: u32, change: impl Fn(&mut JobSpec)) {
        // what elements share they go on sharing
        let mut known: HashMap<*const JobSpec, (Rc<JobSpec>, Rc<JobSpec>)> = HashMap::new();
        for spec in self.elements(job) {
            let (_, now) = known.entry(Rc::as_ptr(spec)).or_insert_with(|| {
                let mut now = (**spec).clone();
                change(&mut now);
                (spec.clone(), Rc::new(now))
            });
            *spec = now.clone();
        }
    }

    fn elements(&mut self, job: u32) -> impl Iterator<Item = &mut Rc<JobSpec>> {
        let range = JobRef { job, idx: 1 }..=JobRef { job, idx: u32::MAX };
        self.by.range_mut(range).map(|(_, spec)| spec)
    }

    fn forget(&mut self, job: u32) {
        let range = JobRef { job, idx: 0 }..=JobRef { job, idx: u32::MAX };
        let known: Vec<JobRef> = self.by.range(range).map(|(at, _)| *at).collect();
        known.iter().for_each(|at| drop(self.by.remove(at)));
    }
}

/// Elements that one record changes, at most.
const MAX_ELEMENTS: usize = 1_000_000;

fn gather<'a>(records: &'a [Record], ends: &[usize]) -> Vec<Ended<'a>> {
    let mut out = Vec::new();
    if ends.is_empty() {
        return out;
    }
    let mut news: HashMap<u32, &JobNew> = HashMap::new();
    let mut specs = Changed::default();
    let mut starts: HashMap<JobRef, (i64, &JobStart)> = HashMap::new();
    let mut resized: HashMap<JobRef, ResizedJob> = HashMap::new();
    let mut ends = ends.iter().peekable();
    for (i, record) in records.iter().enumerate() {
        match &record.event {
            Event::JobNew(new) => {
                news.insert(new.job, new);
                specs.forget(new.job);
            }
            Event::JobModify(m) => match m.elems[..] {
                [(idx, ..)] if m.alike => {
                    specs.change_alike(JobRef { job: m.job, idx }, &m.spec);
                }
                _ => specs.change(m.job, &m.elems, m.spec.clone()),
            },
            Event::JobSwitch { at, queue, route, .. } => {
                let elems = (at.idx != 0).then_some((at.idx, at.idx, 1));
                let Some(new) = news.get(&at.job) else { continue };
                let mut spec = specs.of(*at).unwrap_or(&new.spec).clone();
                spec.switch(queue, route.as_deref());
                specs.change(at.job, elems.as_slice(), spec);
                if at.idx == 0 {
                    specs.each_element(at.job, |spec| spec.switch(queue, route.as_deref()));
                }
            }
            Event::ArraySwitch { job, elems, queue, .. } => {
                let Some(new) = news.get(job) else { continue };
                specs.switch(*job, elems, queue, &Rc::new((*new.spec).clone()));
            }
            Event::JobStart(start) => {
                starts.insert(start.at, (record.time, start));
                resized.remove(&start.at);
            }
            Event::JobResize(r) => {
                let start = starts.get(&r.at).filter(|s| s.1.attempt == r.attempt);
                let Some((_, start)) = start else { continue };
                let (attempt, hosts) = (r.attempt, || start.hosts.to_vec());
                let new = || ResizedJob { attempt, hosts: hosts(), change: None, changed_at: 0 };
                resized.entry(r.at).or_insert_with(new).step(record.time, &r.step);
            }
            Event::JobStatus(status) if ends.next_if_eq(&&i).is_some() => {
                let Some(new) = news.get(&status.at.job) else { continue };
                let start = starts.get(&status.at).copied();
                let start = start.filter(|(_, start)| start.attempt == status.attempt);
                let spec = specs.of(status.at).unwrap_or(&new.spec).clone();
                let changed = resized.remove(&status.at).filter(|r| r.attempt == status.attempt);
                let of_start = || start.map_or(Vec::new(), |(_, start)| start.hosts.to_vec());
                let last_resize = changed.as_ref().map_or(0, |changed| changed.changed_at);
                let hosts = changed.map_or_else(of_start, |changed| changed.hosts);
                let status = Cow::Borrowed(&**status);
                let time = record.time;
                out.push(Ended { time, new, spec, start, status, hosts, last_resize });
            }
            Event::ArraySignal(s) if ends.next_if_eq(&&i).is_some() => {
                let Some(new) = news.get(&s.signal.at.job) else { continue };
                out.extend(ended_together(record.time, new, &specs, s));
            }
            _ => {}
        }
    }
    out
}

/// The ends of elements that were pending and that one record tells of.
fn ended_together<'a>(
    time: i64,
    new: &'a JobNew,
    specs: &Changed,
    s: &ArraySignal,
) -> impl Iterator<Item = Ended<'a>> {
    s.indices().take(MAX_ELEMENTS).map(move |idx| {
        let status = s.status_of(idx);
        let spec = specs.of(status.at).unwrap_or(&new.spec).clone();
        let (status, hosts) = (Cow::Owned(status), Vec::new());
        Ended { time, new, spec, start: None, status, hosts, last_resize: 0 }
    })
}

/// Takes out of `wanted` what the accounting files hold; returns where lsb.acct was read from
/// and the length of its whole lines.
fn remove_accounted(
    disk: &mut dyn Disk,
    head: Option<ChecksumHead>,
    wanted: &mut SearchedEnds,
    oldest: i64,
) -> io::Result<(u64, u64)> {
    let (mut from, mut end) = (0, 0);
    match disk.open(ACCT, None) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
        Ok(file) => {
            let got = remove_accounted_in(disk, file, head, wanted, true);
            disk.close(file);
            (from, end) = got?;
        }
    }
    if from == 0 && !wanted.is_empty() {
        remove_archived(disk, head, wanted, oldest)?;
    }
    Ok((from, end))
}

/// Takes out of `wanted` what the archives hold, which were lsb.acct since the log was begun. An
/// archive is older than the first record of the next newer one: none is read that is older than
/// all ends which are searched for (`oldest`).
fn remove_archived(
    disk: &mut dyn Disk,
    head: Option<ChecksumHead>,
    wanted: &mut SearchedEnds,
    oldest: i64,
) -> io::Result<()> {
    for number in acct_archive::numbers(disk)? {
        let file = match disk.open(&acct_archive::name(number), None) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        let got = remove_accounted_in(disk, file, head, wanted, false);
        let time = acct_archive::begun(disk, file);
        disk.close(file);
        let ((from, _), time) = (got?, time?);
        let older = time.is_some_and(|time| time.saturating_add(SKEW) < oldest);
        if wanted.is_empty() || from > 0 || older {
            break;
        }
    }
    Ok(())
}

/// Returns where the file was read from and the length of the whole lines to keep. `cut`: what a
/// loss of power tore is not kept, as far as it can be derived again.
fn remove_accounted_in(
    disk: &mut dyn Disk,
    file: FileId,
    head: Option<ChecksumHead>,
    wanted: &mut SearchedEnds,
    cut: bool,
) -> io::Result<(u64, u64)> {
    let len = disk.len(file)?;
    let from = begun(disk, file, len, head)?.unwrap_or(0);
    let mut walker = RecordWalker::new(file, from, len, Vec::new());
    let (mut end, mut line) = (from, Vec::new());
    // The place where the torn part begins, and the readable records behind it.
    let mut torn: Option<(u64, Vec<EndIdentity>)> = None;
    while let Some(step) = walker.step(disk, &mut line)? {
        if step.what == PlaceContents::Partial {
            break;
        }
        end = step.end;
        if cut && torn.is_none() && line.contains(&0) {
            torn = Some((step.at, Vec::new()));
        }
        if wanted.is_empty() && torn.is_none() {
            continue;
        }
        if let Ok(fin) = read_finish(&line) {
            let (at, submit_time, attempt) = (fin.at, fin.submit_time, fin.attempt);
            let key = EndIdentity { at, submit_time, attempt };
            let known = wanted.take(&key);
            match &mut torn {
                Some((_, behind)) if known => behind.push(key),
                // there is more here than the log can tell again
                Some(_) => torn = None,
                None => {}
            }
        }
    }
    if let Some((at, behind)) = torn {
        end = at;
        behind.into_iter().for_each(|key| wanted.add(key));
    }
    Ok((from, end))
}

/// CRC-32 of the bytes before a place, by which a file is known again.
pub fn mark(disk: &mut dyn Disk, file: FileId, at: u64) -> io::Result<u32> {
    let from = at.saturating_sub(ACCT_MARK);
    let mut buf = vec![0; (at - from) as usize];
    let got = read_full(disk, file, from, &mut buf)?;
    Ok(crc32fast::hash(&buf[..got]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::{JobModify, JobResize};

    #[test]
    fn a_job_is_accounted_with_the_slots_that_it_had_at_its_end() {
        let record = |event| Record { time: 1, event };
        let at = JobRef { job: 7, idx: 0 };
        let hosts = |all: &[(&str, u32)]| -> NamedHosts {
            all.iter().map(|(host, n)| ((*host).into(), *n)).collect()
        };
        let change = |attempt, step| {
            let r = JobResize { at, attempt, step, ..JobResize::default() };
            record(Event::JobResize(Box::new(r)))
        };
        let begun = |number, grows, on: &[(&str, u32)]| ResizeStep::Begun {
            number,
            grows,
            hosts: hosts(on),
            command: String::new(),
        };
        let start = JobStart { at, attempt: 1, hosts: hosts(&[("a", 2)]), ..JobStart::default() };
        let status = JobStatus { at, attempt: 1, ..JobStatus::default() };
        let records = vec![
            record(Event::JobNew(Box::new(JobNew { job: 7, ..JobNew::default() }))),
            record(Event::JobStart(Box::new(start))),
            change(1, begun(1, true, &[("b", 3)])),
            change(1, ResizeStep::Done { number: 1, status: 0 }),
            change(1, begun(2, false, &[("b", 1), ("a", 1)])),
            Record { time: 9, ..change(1, ResizeStep::Done { number: 2, status: 0 }) },
            change(1, begun(3, true, &[("c", 1)])),
            change(1, ResizeStep::Done { number: 3, status: 1 }),
            change(2, begun(1, true, &[("d", 1)])),
            record(Event::JobStatus(Box::new(status))),
        ];
        let found = gather(&records, &[9]);
        let want = [("a".to_string(), 1), ("b".to_string(), 2)];
        let told = found[0].finish();
        // the change that failed is none
        assert_eq!((&told.exec_hosts[..], told.last_resize), (&want[..], 9));
    }

    #[test]
    fn elements_changed_alike_before_are_accounted_as_they_were_changed_since() {
        let record = |event| Record { time: 1, event };
        let spec = |project: &str, queue: &str| JobSpec {
            name: "a[1-6]".into(),
            project: project.into(),
            queue: queue.into(),
            ..JobSpec::default()
        };
        let modify = |elems: &[u32], alike, project| {
            let elems = elems.iter().map(|i| (*i, *i, 1)).collect();
            let spec = spec(project, "low");
            let m = JobModify { job: 7, elems, alike, spec, ..JobModify::default() };
            record(Event::JobModify(Box::new(m)))
        };
        let new = JobNew { job: 7, spec: Arc::new(spec("p0", "low")), ..JobNew::default() };
        let (at, queue, user) = (JobRef { job: 7, idx: 0 }, "high".to_string(), String::new());
        let mut records = vec![
            record(Event::JobNew(Box::new(new))),
            modify(&[1, 3], false, "p1"),
            modify(&[2], false, "p2"),
            modify(&[4], false, "p1"),
            modify(&[3], true, "p3"),
            record(Event::JobSwitch { at, queue, uid: 1, user, route: None }),
            modify(&[2], true, "p4"),
            record(Event::ArraySwitch {
                job: 7,
                elems: vec![(1, 2, 1), (5, 5, 1)],
                queue: "night".into(),
                uid: 1,
                user: String::new(),
            }),
        ];
        for idx in 1..=5 {
            let status = JobStatus { at: JobRef { job: 7, idx }, ..JobStatus::default() };
            records.push(record(Event::JobStatus(Box::new(status))));
        }
        let found = gather(&records, &[8, 9, 10, 11, 12]);
        let of = |e: &Ended| (e.spec.project.clone(), e.spec.queue.clone());
        let found: Vec<_> = found.iter().map(of).collect();
        let want =
            [("p3", "night"), ("p4", "night"), ("p3", "high"), ("p3", "high"), ("p0", "night")];
        assert_eq!(found, want.map(|(p, q)| (p.to_string(), q.to_string())));
    }
}
