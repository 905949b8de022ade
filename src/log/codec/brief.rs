//! What summaries want of a line of lsb.acct, without allocating: a million lines are read in the
//! time that [`super::read_finish`] takes for a few.

use super::RecordError;
use super::text::{Field, Fields};
use std::borrow::Cow;

/// The fields of JOB_FINISH that selections and sums go by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Brief<'a> {
    pub end_time: i64,
    pub job: u32,
    pub idx: u32,
    pub submit_time: i64,
    /// 0: never started.
    pub start_time: i64,
    pub user: Cow<'a, [u8]>,
    pub queue: Cow<'a, [u8]>,
    pub project: Cow<'a, [u8]>,
    pub name: Cow<'a, [u8]>,
    /// Execution hosts, one a slot or `n*host`.
    pub hosts: Vec<Cow<'a, [u8]>>,
    pub done: bool,
    /// Seconds of user and system time; 0 unknown.
    pub cpu: f64,
}

/// Reads a line with or without its newline. `None`: a record of another type.
pub fn read_brief(line: &[u8]) -> Result<Option<Brief<'_>>, RecordError> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    if line.contains(&0) {
        return Err(RecordError::NotARecord);
    }
    let mut f = Fields::new(line);
    match (f.field(), f.field()) {
        (Ok(Some(Field::Quoted(b"JOB_FINISH", _))), Ok(Some(Field::Quoted(..)))) => {}
        (Ok(Some(Field::Quoted(..))), Ok(Some(Field::Quoted(..)))) => return Ok(None),
        _ => return Err(RecordError::NotARecord),
    }
    let mut b = Brief { end_time: f.num()?, job: f.num()?, ..Brief::default() };
    // userId options numProcessors
    f.skip(3)?;
    b.submit_time = f.num()?;
    // beginTime termTime
    f.skip(2)?;
    b.start_time = f.num()?;
    b.user = f.bytes()?;
    b.queue = f.bytes()?;
    // resReq dependCond preExecCmd fromHost cwd inFile outFile errFile jobFile
    f.skip(9)?;
    let asked: usize = f.num()?;
    f.skip(asked)?;
    let hosts: u32 = f.num()?;
    for _ in 0..hosts {
        b.hosts.push(f.bytes()?);
    }
    let status: u32 = f.num()?;
    b.done = status & crate::model::job::stat::DONE != 0;
    // hostFactor
    f.skip(1)?;
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
    b.idx = f.num()?;
    Ok(Some(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::codec::write_finish;
    use crate::model::JobRef;
    use crate::model::event::Finish;
    use crate::model::job::{JobSpec, Usage, stat};

    #[test]
    fn it_is_what_the_whole_record_says() {
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
            status: stat::DONE,
            usage: Some(Usage { utime_us: 1_500_000, stime_us: 500_000, ..Usage::default() }),
            ..Finish::default()
        };
        let mut line = Vec::new();
        write_finish(&fin, &mut line);
        let b = read_brief(&line).unwrap().unwrap();
        assert_eq!((b.job, b.idx, b.end_time), (12, 3, 1_795_167_200));
        assert_eq!((&*b.user, &*b.queue, &*b.project), (&b"ann"[..], &b"night"[..], &b"p"[..]));
        assert_eq!((&*b.name, b.done, b.cpu), (&b"a\"b[1-3]"[..], true, 2.0));
        assert_eq!(b.hosts, [&b"h1"[..], b"h1", b"h2"]);
        // An older system's (samples/lsb.acct.txt): no timeEvent.
        let old = [
            r#""JOB_FINISH" "22" 1795167013 12 1002 33554435 1 1795167013 0 0 1795167013 "user1""#,
            r#""normal" "" "" "" "vm" "" "" "" "" "1795167013.12" 0 1 "vm" 32 100.0 "x[1-2000]""#,
            r#""sleep 1" 0.013021 0.000672 5976 0 -1 0 0 809 0 0 0 32 -1 0 0 0 18 6 -1 """#,
            r#""default" 33280 1 "" 7 -1 -1 "" """#,
        ]
        .join(" ");
        let b = read_brief(old.as_bytes()).unwrap().unwrap();
        assert_eq!((b.job, b.idx, b.done, &*b.project), (12, 7, false, &b"default"[..]));
        assert_eq!(read_brief(b"\"EVENT_ADRSV_FINISH\" \"10.1\" 17 1"), Ok(None));
        assert!(read_brief(b"# junk").is_err() && read_brief(&line[..200]).is_err());
    }
}
