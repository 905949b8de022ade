//! The small files of duplicate logging: lines `name value` between a title and `end`. Each is
//! replaced as a whole.

use crate::log::disk::{Disk, PUBLIC, read_small, remove, write_small};
use crate::log::fence::COPY;
use std::io;

/// In the shared directory: the log there is a copy.
pub const COPY_NOTE: &str = "lsb.events.copy";
/// In the shared directory: a copy was taken over.
pub const TAKEN: &str = "lsb.events.taken";
/// In the primary directory: the runs under which the copy was claimed.
pub const SHARE_MARK: &str = "lsb.events.share";

/// Longest note, bytes.
const CAP: usize = 4096;

type Lines = Vec<(String, String)>;

fn read(disk: &mut dyn Disk, name: &str) -> io::Result<Option<Lines>> {
    let Some(bytes) = read_small(disk, name, CAP)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    let Some(text) =
        text.strip_prefix(&format!("{name} 1\n")).and_then(|t| t.strip_suffix("end\n"))
    else {
        return Err(io::Error::other(format!("{name} is damaged")));
    };
    let pairs = text.lines().map(|line| line.split_once(' ').unwrap_or((line, "")));
    Ok(Some(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()))
}

fn write(disk: &mut dyn Disk, name: &str, lines: &[(&str, String)]) -> io::Result<()> {
    let mut text = format!("{name} 1\n");
    for (key, value) in lines {
        text.push_str(&format!("{key} {value}\n"));
    }
    text.push_str("end\n");
    let temp = format!("{COPY}note.{name}");
    write_small(disk, &temp, PUBLIC, text.as_bytes())?;
    disk.rename(&temp, name)?;
    disk.sync_dir("")
}

fn of<'a>(lines: &'a Lines, key: &str) -> &'a str {
    lines.iter().find(|(k, _)| k == key).map_or("", |(_, value)| value)
}

fn number<T: std::str::FromStr + Default>(lines: &Lines, key: &str) -> T {
    of(lines, key).parse().unwrap_or_default()
}

/// The log in this directory is a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyNote {
    /// The host that has the primary log.
    pub host: String,
    /// That host ended in order, and the copy has everything.
    pub complete: bool,
}

impl CopyNote {
    pub fn read(disk: &mut dyn Disk) -> io::Result<Option<CopyNote>> {
        let lines = read(disk, COPY_NOTE)?;
        Ok(lines.map(|l| CopyNote {
            host: of(&l, "host").to_owned(),
            complete: of(&l, "complete") == "yes",
        }))
    }

    pub(super) fn write(&self, disk: &mut dyn Disk) -> io::Result<()> {
        let complete = yes_no(self.complete);
        write(disk, COPY_NOTE, &[("host", self.host.clone()), ("complete", complete)])
    }

    /// The log there is no copy any more.
    pub(super) fn discard(disk: &mut dyn Disk) -> io::Result<()> {
        if remove(disk, COPY_NOTE)? { disk.sync_dir("") } else { Ok(()) }
    }
}

fn yes_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// The runs of this host that may own the copy, if nobody else has claimed it since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareMark {
    pub runs: Vec<String>,
    /// The last run ended in order, and the copy had everything.
    pub complete: bool,
}

impl ShareMark {
    /// Without the file: no run.
    pub fn read(disk: &mut dyn Disk) -> io::Result<ShareMark> {
        let lines = read(disk, SHARE_MARK)?.unwrap_or_default();
        let runs = lines.iter().filter(|(key, _)| key == "run").map(|(_, run)| run.clone());
        Ok(ShareMark { runs: runs.collect(), complete: of(&lines, "complete") == "yes" })
    }

    pub(super) fn write(&self, disk: &mut dyn Disk) -> io::Result<()> {
        let mut lines = vec![("complete", yes_no(self.complete))];
        lines.extend(self.runs.iter().map(|run| ("run", run.clone())));
        write(disk, SHARE_MARK, &lines)
    }
}

/// The end of a copy when another master took it over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The host that has the primary log.
    pub host: String,
    /// The host that took over.
    pub by: String,
    /// Seconds since the epoch.
    pub time: i64,
    /// The largest job ID of the copy.
    pub last: u32,
    /// The first job ID after those that were left out.
    pub next: u32,
    /// The spool file that was begun with the lsb.events of the copy.
    pub spool: u32,
}

impl Taken {
    pub fn read(disk: &mut dyn Disk) -> io::Result<Option<Taken>> {
        let lines = read(disk, TAKEN)?;
        Ok(lines.map(|l| Taken {
            host: of(&l, "host").to_owned(),
            by: of(&l, "by").to_owned(),
            time: number(&l, "time"),
            last: number(&l, "last"),
            next: number(&l, "next"),
            spool: number(&l, "spool"),
        }))
    }

    pub(super) fn write(&self, disk: &mut dyn Disk) -> io::Result<()> {
        let lines = [
            ("host", self.host.clone()),
            ("by", self.by.clone()),
            ("time", self.time.to_string()),
            ("last", self.last.to_string()),
            ("next", self.next.to_string()),
            ("spool", self.spool.to_string()),
        ];
        write(disk, TAKEN, &lines)
    }

    /// The first master is back, and has taken its jobs from its disk.
    pub(super) fn discard(disk: &mut dyn Disk) -> io::Result<()> {
        if remove(disk, TAKEN)? { disk.sync_dir("") } else { Ok(()) }
    }
}
