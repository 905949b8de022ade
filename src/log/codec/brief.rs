//! The fields of a line of lsb.acct that summaries need, without allocating: a million lines are
//! read in the time that [`super::read_finish`] takes for a few. Reading a line ends as soon as its
//! first fields show that it is not wanted.

use super::record_error::RecordError;
use super::text::{Field, Fields, split_slots};
use crate::model::job_state::LoggedStatus;
use memchr::memchr;
use std::borrow::Cow;

/// The fields of JOB_FINISH that selections and sums go by.
#[derive(Clone, Debug, Default)]
pub struct Brief<'a> {
    pub end_time: i64,
    pub job: u32,
    pub submit_time: i64,
    /// 0: never started.
    pub start_time: i64,
    pub user: Cow<'a, [u8]>,
    pub queue: Cow<'a, [u8]>,
    /// The index of the element. This and the fields below are not known when a line is first asked
    /// about.
    pub idx: u32,
    pub project: Cow<'a, [u8]>,
    pub name: Cow<'a, [u8]>,
    pub done: bool,
    /// Seconds of user and system time; 0 unknown.
    pub cpu: f64,
    /// CPU factor of the first execution host.
    pub host_factor: f64,
    hosts: Fields<'a>,
    slots: u32,
    rest: Fields<'a>,
}

/// Fields behind those of [`Brief`], where the record's version has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Late<'a> {
    pub reservation: Cow<'a, [u8]>,
    pub service_class: Cow<'a, [u8]>,
    /// Exceptions that the job had, a bit each.
    pub exceptions: u32,
    pub license_project: Cow<'a, [u8]>,
    pub app: Cow<'a, [u8]>,
}

impl<'a> Brief<'a> {
    /// Names of the execution hosts, one a slot or once for several.
    pub fn hosts(&self) -> impl Iterator<Item = Cow<'a, [u8]>> + use<'a> {
        let mut fields = self.hosts.clone();
        (0..self.slots).map_while(move |_| match fields.bytes().ok()? {
            Cow::Borrowed(word) => Some(Cow::Borrowed(split_slots(word).1)),
            Cow::Owned(word) => Some(Cow::Owned(split_slots(&word).1.to_vec())),
        })
    }

    /// Reads on; what an older version lacks is empty.
    pub fn late(&self) -> Late<'a> {
        let mut late = Late::default();
        let _ = late.read(&mut self.rest.clone());
        late
    }
}

impl<'a> Late<'a> {
    fn read(&mut self, f: &mut Fields<'a>) -> Result<(), RecordError> {
        // maxRMem maxRSwap inFileSpool commandSpool
        f.skip(4)?;
        self.reservation = f.bytes()?;
        self.service_class = f.bytes()?;
        self.exceptions = f.num()?;
        // additionalInfo exitInfo warningAction warningTimePeriod chargedSAAP
        f.skip(5)?;
        self.license_project = f.bytes()?;
        self.app = f.bytes()?;
        Ok(())
    }
}

/// Reads a line with or without its newline. `None`: a record of another type, or one whose
/// first fields `early` does not want.
pub fn read_brief<'a>(
    line: &'a [u8],
    early: &dyn Fn(&Brief<'_>) -> bool,
) -> Result<Option<Brief<'a>>, RecordError> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    if memchr(0, line).is_some() {
        return Err(RecordError::NotARecord);
    }
    let mut f = Fields::new(line);
    match (f.field(), f.field()) {
        (Ok(Some(Field::Quoted(b"JOB_FINISH", _))), Ok(Some(Field::Quoted(..)))) => {}
        (Ok(Some(Field::Quoted(..))), Ok(Some(Field::Quoted(..)))) => return Ok(None),
        _ => return Err(RecordError::NotARecord),
    }
    let mut b = Brief { end_time: f.int()?, job: f.small()?, ..Brief::default() };
    // userId options numProcessors
    f.skip(3)?;
    b.submit_time = f.int()?;
    // beginTime termTime
    f.skip(2)?;
    b.start_time = f.int()?;
    b.user = f.bytes()?;
    b.queue = f.bytes()?;
    if !early(&b) {
        return Ok(None);
    }
    // resReq dependCond preExecCmd fromHost cwd inFile outFile errFile jobFile
    f.skip(9)?;
    let asked = f.small()?;
    f.skip(asked as usize)?;
    b.slots = f.small()?;
    b.hosts = f.clone();
    f.skip(b.slots as usize)?;
    b.done = LoggedStatus::of_bits(f.small()?).is_done();
    b.host_factor = f.num()?;
    b.name = f.bytes()?;
    // command
    f.skip(1)?;
    let (user, system): (f64, f64) = (f.num()?, f.num()?);
    b.cpu = user.max(0.0) + system.max(0.0);
    // the other usage fields, mailUser
    f.skip(17 + 1)?;
    b.project = f.bytes()?;
    // exitStatus maxNumProcessors loginShell, then timeEvent where the version has it
    f.skip(3)?;
    if f.next_is_string() {
        f.skip(1)?;
    }
    b.idx = f.small()?;
    b.rest = f;
    Ok(Some(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::codec::write_finish;
    use crate::model::JobRef;
    use crate::model::event::Finish;
    use crate::model::job::{JobSpec, Usage};
    use crate::model::job_state::JobState;

    #[test]
    fn brief_record_equals_the_whole_one() {
        let spec = JobSpec {
            name: "a\"b[1-3]".into(),
            queue: "night".into(),
            project: "p".into(),
            hosts: vec!["h1+2".into(), "others".into()],
            ..JobSpec::default()
        };
        let fin = Finish {
            event_time: 1_795_167_200,
            at: JobRef { job: 12, idx: 3 },
            user: "ann".into(),
            submit_time: 1_795_167_000,
            start_time: 1_795_167_100,
            spec,
            exec_hosts: vec![("h1".into(), 2), ("h2".into(), 1)],
            status: JobState::Done.into(),
            usage: Some(Usage { utime_us: 1_500_000, stime_us: 500_000, ..Usage::default() }),
            ..Finish::default()
        };
        let mut line = Vec::new();
        write_finish(&fin, &mut line);
        let b = read_brief(&line, &|_| true).unwrap().unwrap();
        assert_eq!((b.job, b.idx, b.end_time), (12, 3, 1_795_167_200));
        assert_eq!((&*b.user, &*b.queue, &*b.project), (&b"ann"[..], &b"night"[..], &b"p"[..]));
        assert_eq!((&*b.name, b.done, b.cpu), (&b"a\"b[1-3]"[..], true, 2.0));
        let hosts: Vec<_> = b.hosts().collect();
        assert_eq!(hosts, [&b"h1"[..], b"h1", b"h2"]);
        assert_eq!((b.host_factor, b.late()), (0.0, Late::default()));
        // A record of an older system: no timeEvent.
        let old = [
            r#""JOB_FINISH" "22" 1795167013 12 1002 33554435 1 1795167013 0 0 1795167013 "user1""#,
            r#""normal" "" "" "" "vm" "" "" "" "" "1795167013.12" 0 1 "vm" 32 100.0 "x[1-2000]""#,
            r#""sleep 1" 0.013021 0.000672 5976 0 -1 0 0 809 0 0 0 32 -1 0 0 0 18 6 -1 """#,
            r#""default" 33280 1 "" 7 -1 -1 "" """#,
        ]
        .join(" ");
        let b = read_brief(old.as_bytes(), &|_| true).unwrap().unwrap();
        assert_eq!((b.job, b.idx, b.done, &*b.project), (12, 7, false, &b"default"[..]));
        assert_eq!(b.late(), Late::default());
        let other = b"\"EVENT_ADRSV_FINISH\" \"10.1\" 17 1";
        assert!(read_brief(other, &|_| true).unwrap().is_none());
        for bad in [&b"# junk"[..], &line[..200]] {
            assert!(read_brief(bad, &|_| true).is_err());
        }
    }

    /// A record of LSF 10.1 with those fields filled, its host as `n*host`.
    #[test]
    fn later_fields_are_read_when_they_are_asked_for() {
        let line = [
            r#""JOB_FINISH" "10.1" 1700000150 101 1501 33554450 1 1700000005 0 0 1700000006"#,
            r#""alice" "normal" "rusage[mem=1000]" "" "" "login1" "/home/alice/w" "" "o.%J" """#,
            r#""1700000005.101" 0 1 "4*hosta" 64 12.5 "b_sim" "./b_sim.sh" 60.100000 2.000000"#,
            r#"122880 0 -1 0 0 436 4 0 928 0 -1 0 0 0 19 2 -1 "" "default" 0 1 "" "" 0 122880 0"#,
            r#""" "" "alice#1" "gold" 6 "" 0 "" -1 "" "lp" "big" "" -1 "" "" 5136 "" 1700000006"#,
        ]
        .join(" ");
        let b = read_brief(line.as_bytes(), &|b| b.job == 101).unwrap().unwrap();
        assert_eq!((b.host_factor, b.cpu), (12.5, 62.1));
        assert_eq!(b.hosts().collect::<Vec<_>>(), [&b"hosta"[..]]);
        let late = b.late();
        assert_eq!((&*late.reservation, &*late.service_class), (&b"alice#1"[..], &b"gold"[..]));
        assert_eq!((&*late.license_project, &*late.app), (&b"lp"[..], &b"big"[..]));
        assert_eq!(late.exceptions, 6);
        // An unwanted record is not read to its end.
        let cut = &line.as_bytes()[..200];
        assert!(read_brief(cut, &|b| b.end_time == 0).unwrap().is_none());
    }
}
