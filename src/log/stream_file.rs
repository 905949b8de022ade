//! lsb.stream: the records of lsb.events and lsb.acct once more, for programs that follow the
//! cluster (ENABLE_EVENT_STREAM of lsb.params(5)).
//!
//! A file that has reached its size ends with EVENT_END_OF_STREAM and gets the time as the ending
//! of its name; of these files the newest are kept. The stream is derived and nothing reads it
//! back: it is not synced, and a crash may cut its end off, which the next start takes away.

use super::codec::VERSION;
use super::disk::{PUBLIC, open_regular};
use crate::sys::euid;
use crate::sys::files::own;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The name of the record that ends a file.
const END: &str = "EVENT_END_OF_STREAM";
/// The end of a file that is searched for its last whole record, bytes.
const TAIL: u64 = 64 << 10;

const NO_RECORDS: &str = "it does not consist of records";

/// The settings of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    pub path: PathBuf,
    /// Bytes of one file; a longer record has a file of its own.
    pub max_bytes: u64,
    /// Former files that are kept.
    pub files: u32,
    /// Names of the records that are written; empty: all.
    pub types: Vec<String>,
}

/// The open file of a stream.
#[derive(Debug)]
pub struct StreamFile {
    settings: StreamSettings,
    file: File,
    len: u64,
    /// The record that ends the file is written, and it could not be renamed.
    ended: bool,
}

impl StreamFile {
    /// Opens the file behind its last whole record, and makes it where it is missing.
    pub fn open(settings: &StreamSettings) -> io::Result<StreamFile> {
        let Opened { file, len, ended } = open(&settings.path)?;
        Ok(StreamFile { settings: settings.clone(), file, len, ended })
    }

    pub fn settings(&self) -> &StreamSettings {
        &self.settings
    }

    /// Writes those of these lines that are wanted. `now`: seconds since the epoch.
    ///
    /// # Errors
    /// The number of lines that are missing in the stream, and why.
    pub fn put(&mut self, lines: &[u8], now: i64) -> Result<(), (u64, io::Error)> {
        let wanted: Vec<&[u8]> = lines.split_inclusive(|b| *b == b'\n').collect();
        let mut wanted: &[&[u8]] =
            &wanted.into_iter().filter(|line| self.wants(line)).collect::<Vec<_>>();
        while !wanted.is_empty() {
            let missing = |e| (wanted.len() as u64, e);
            self.stay().map_err(missing)?;
            let mut room = self.settings.max_bytes.saturating_sub(self.len);
            let mut fits = |line: &&&[u8]| {
                let len = line.len() as u64;
                let fits = !self.ended && len <= room;
                room = room.saturating_sub(len);
                fits
            };
            let mut count = wanted.iter().take_while(|line| fits(line)).count();
            if count == 0 && self.len > 0 {
                self.switch(now).map_err(missing)?;
                continue;
            }
            count = count.max(1);
            let (first, rest) = wanted.split_at(count);
            self.write(&first.concat()).map_err(missing)?;
            wanted = rest;
        }
        Ok(())
    }

    /// Is a record of this name to be written?
    fn wants(&self, line: &[u8]) -> bool {
        let name = line.strip_prefix(b"\"").and_then(|rest| rest.split(|b| *b == b'"').next());
        let Some(name) = name else { return false };
        let types = &self.settings.types;
        types.is_empty() || types.iter().any(|known| known.as_bytes() == name)
    }

    /// Begins the file anew where somebody has removed it or moved it away.
    fn stay(&mut self) -> io::Result<()> {
        let here = self.file.metadata()?;
        let same =
            |there: &std::fs::Metadata| (there.dev(), there.ino()) == (here.dev(), here.ino());
        if !std::fs::symlink_metadata(&self.settings.path).is_ok_and(|there| same(&there)) {
            self.begin()?;
        }
        Ok(())
    }

    fn begin(&mut self) -> io::Result<()> {
        let Opened { file, len, ended } = open(&self.settings.path)?;
        (self.file, self.len, self.ended) = (file, len, ended);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let done = self.file.write_all(bytes);
        match done {
            Ok(()) => self.len += bytes.len() as u64,
            // the part that was written is no record
            Err(_) => self.file.set_len(self.len)?,
        }
        done
    }

    /// Ends the file and begins the next one.
    fn switch(&mut self, now: i64) -> io::Result<()> {
        let path = self.settings.path.clone();
        let former = former_files(&path)?;
        let newest = former.last().copied();
        let number = newest.map_or(now, |newest| now.max(newest.saturating_add(1)));
        if !self.ended {
            self.write(format!("\"{END}\" \"{VERSION}\" {now} {number}\n").as_bytes())?;
            self.ended = true;
        }
        std::fs::rename(&path, numbered(&path, number))?;
        self.begin()?;
        let many = (former.len() + 1).saturating_sub(self.settings.files as usize);
        for number in former.into_iter().take(many) {
            let old = numbered(&path, number);
            if let Err(e) = std::fs::remove_file(&old).or_else(gone) {
                log::error!("{} is not removed: {e}", old.display());
            }
        }
        Ok(())
    }
}

fn gone(e: io::Error) -> io::Result<()> {
    if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(e) }
}

/// `lsb.stream.NUMBER`
fn numbered(path: &Path, number: i64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// The numbers of the former files, the oldest first.
fn former_files(path: &Path) -> io::Result<Vec<i64>> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let dir = path.parent().unwrap_or(Path::new("/"));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let other = entry?.file_name();
        let number = other.to_str().and_then(|other| other.strip_prefix(name)?.strip_prefix('.'));
        found.extend(number.and_then(|digits| digits.parse::<i64>().ok()).filter(|n| *n >= 0));
    }
    found.sort_unstable();
    Ok(found)
}

/// A file that is open at the end of its last whole record.
struct Opened {
    file: File,
    /// The place of that end.
    len: u64,
    /// That record is the one that ends a file.
    ended: bool,
}

fn open(path: &Path) -> io::Result<Opened> {
    let mut how = OpenOptions::new();
    how.read(true).append(true).create(true).mode(PUBLIC);
    let mut file = match open_regular(&mut how, path) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            std::fs::create_dir(path.parent().unwrap_or(Path::new("/")))?;
            open_regular(&mut how, path)?
        }
        other => other?,
    };
    let found = file.metadata()?;
    own(&found, euid())?;
    // an administrator may have named another file, which must stay as it is
    let mut first = [0];
    if file.read(&mut first)? == 1 && first != *b"\"" {
        return Err(io::Error::other(NO_RECORDS));
    }
    if found.len() == 0 {
        // whatever the umask
        file.set_permissions(Permissions::from_mode(PUBLIC))?;
    }
    let from = found.len().saturating_sub(TAIL);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    Read::by_ref(&mut file).take(TAIL).read_to_end(&mut tail)?;
    let whole = tail.iter().rposition(|b| *b == b'\n').map_or(0, |at| at as u64 + 1);
    let len = match (whole, from) {
        // no record is as long as that: what is there is none of ours
        (0, 1..) => return Err(io::Error::other(NO_RECORDS)),
        (whole, from) => from + whole,
    };
    if len < found.len() {
        file.set_len(len)?;
    }
    tail.truncate(whole as usize);
    let last = tail.split_inclusive(|b| *b == b'\n').next_back().unwrap_or_default();
    let ended = last.starts_with(format!("\"{END}\"").as_bytes());
    Ok(Opened { file, len, ended })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of the test's own, removed at its end.
    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Dir {
            let dir =
                std::env::temp_dir().join(format!("lsf-stream-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir(&dir).unwrap();
            Dir(dir)
        }

        fn settings(&self) -> StreamSettings {
            let path = self.0.join("stream/lsb.stream");
            StreamSettings { path, max_bytes: 100, files: 2, types: Vec::new() }
        }

        fn text(&self, name: &str) -> String {
            std::fs::read_to_string(self.0.join("stream").join(name)).unwrap_or_default()
        }

        fn names(&self) -> Vec<String> {
            let all = std::fs::read_dir(self.0.join("stream")).unwrap();
            let mut names: Vec<String> =
                all.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn line(name: &str, n: u32) -> String {
        format!("\"{name}\" \"10.1\" {n} \"twenty bytes of text\"\n")
    }

    #[test]
    fn stream_is_switched_by_size_and_keeps_the_newest_files() {
        let dir = Dir::new("switch");
        let mut stream = StreamFile::open(&dir.settings()).unwrap();
        let all: Vec<String> = (1..=7).map(|n| line("JOB_NEW", n)).collect();
        // two of them fit into a file
        stream.put(all[..3].concat().as_bytes(), 1000).unwrap();
        assert_eq!(dir.names(), ["lsb.stream", "lsb.stream.1000"]);
        let end = "\"EVENT_END_OF_STREAM\" \"10.1\" 1000 1000\n";
        assert_eq!(dir.text("lsb.stream.1000"), all[..2].concat() + end);
        assert_eq!(dir.text("lsb.stream"), all[2]);
        // twice in a second
        stream.put(all[3..].concat().as_bytes(), 1000).unwrap();
        assert_eq!(dir.names(), ["lsb.stream", "lsb.stream.1001", "lsb.stream.1002"]);
        let end = "\"EVENT_END_OF_STREAM\" \"10.1\" 1000 1002\n";
        assert_eq!(dir.text("lsb.stream.1002"), all[4..6].concat() + end);
        assert_eq!(dir.text("lsb.stream"), all[6]);
    }

    #[test]
    fn record_longer_than_a_file_has_one_of_its_own() {
        let dir = Dir::new("long");
        let mut stream = StreamFile::open(&dir.settings()).unwrap();
        let long = format!("\"JOB_NEW\" {}\n", "x".repeat(300));
        let (before, after) = (line("MBD_START", 1), line("MBD_DIE", 2));
        stream.put([&before[..], &long, &after].concat().as_bytes(), 5).unwrap();
        assert!(dir.text("lsb.stream.5").starts_with(&before));
        assert!(dir.text("lsb.stream.6").starts_with(&long));
        assert_eq!(dir.text("lsb.stream"), after);
    }

    #[test]
    fn only_records_of_the_allowed_types_are_written() {
        let dir = Dir::new("types");
        let types = vec!["JOB_START".to_owned(), "JOB_FINISH".to_owned()];
        let settings = StreamSettings { types, max_bytes: 10_000, ..dir.settings() };
        let mut stream = StreamFile::open(&settings).unwrap();
        let names = ["JOB_NEW", "JOB_START", "JOB_STARTX", "JOB_FINISH", "JOB_STATUS"];
        let all = names.map(|name| line(name, 1)).concat();
        stream.put(all.as_bytes(), 1).unwrap();
        assert_eq!(dir.text("lsb.stream"), line("JOB_START", 1) + &line("JOB_FINISH", 1));
    }

    #[test]
    fn record_that_a_crash_cut_off_is_taken_away_by_the_next_start() {
        let dir = Dir::new("torn");
        let settings = StreamSettings { max_bytes: 10_000, ..dir.settings() };
        StreamFile::open(&settings).unwrap().put(line("JOB_NEW", 1).as_bytes(), 1).unwrap();
        let torn = line("JOB_NEW", 1) + "\"JOB_ST";
        std::fs::write(&settings.path, torn).unwrap();
        StreamFile::open(&settings).unwrap().put(line("JOB_NEW", 2).as_bytes(), 1).unwrap();
        assert_eq!(dir.text("lsb.stream"), line("JOB_NEW", 1) + &line("JOB_NEW", 2));
    }

    /// A file that could not be renamed when it had ended; `crash`: it is opened again then.
    fn refused(dir: &Dir, crash: bool) {
        // with a number of ten digits its name is too long
        let name = "s".repeat(250);
        let path = dir.0.join("stream").join(&name);
        let settings = StreamSettings { path, ..dir.settings() };
        let mut stream = StreamFile::open(&settings).unwrap();
        let all: Vec<String> = (1..=5).map(|n| line("JOB_NEW", n)).collect();
        let now = 1_700_000_000;
        assert_eq!(stream.put(all[..3].concat().as_bytes(), now).unwrap_err().0, 1);
        let end = format!("\"EVENT_END_OF_STREAM\" \"10.1\" {now} {now}\n");
        let ended = all[..2].concat() + &end;
        assert_eq!(dir.text(&name), ended);
        if crash {
            stream = StreamFile::open(&StreamSettings { max_bytes: 500, ..settings }).unwrap();
        }
        assert_eq!(stream.put(all[3].as_bytes(), now + 1).unwrap_err().0, 1);
        assert_eq!(dir.text(&name), ended);
        stream.put(all[4].as_bytes(), 9).unwrap();
        assert_eq!(dir.names(), [name.clone(), format!("{name}.9")]);
        assert_eq!(dir.text(&format!("{name}.9")), ended);
        assert_eq!(dir.text(&name), all[4]);
    }

    #[test]
    fn file_that_has_ended_and_is_not_renamed_takes_no_record_and_is_renamed_later() {
        refused(&Dir::new("refused"), false);
    }

    #[test]
    fn file_that_a_crash_kept_from_its_new_name_takes_no_record_behind_its_end() {
        refused(&Dir::new("crash"), true);
    }

    #[test]
    fn file_that_was_moved_away_is_begun_anew_and_links_are_not_followed() {
        let dir = Dir::new("moved");
        let settings = StreamSettings { max_bytes: 10_000, ..dir.settings() };
        let mut stream = StreamFile::open(&settings).unwrap();
        stream.put(line("JOB_NEW", 1).as_bytes(), 1).unwrap();
        std::fs::rename(&settings.path, dir.0.join("away")).unwrap();
        stream.put(line("JOB_NEW", 2).as_bytes(), 1).unwrap();
        assert_eq!(dir.text("lsb.stream"), line("JOB_NEW", 2));
        std::fs::remove_file(&settings.path).unwrap();
        std::os::unix::fs::symlink(dir.0.join("away"), &settings.path).unwrap();
        let (missing, _) = stream.put(line("JOB_NEW", 3).repeat(2).as_bytes(), 1).unwrap_err();
        assert_eq!(missing, 2);
        assert_eq!(std::fs::read_to_string(dir.0.join("away")).unwrap(), line("JOB_NEW", 1));
        assert!(StreamFile::open(&settings).is_err());
        std::fs::remove_file(&settings.path).unwrap();
        std::fs::create_dir(&settings.path).unwrap();
        assert!(StreamFile::open(&settings).is_err());
    }

    #[test]
    fn file_of_other_contents_or_with_another_name_stays_as_it_is() {
        let dir = Dir::new("foreign");
        let settings = StreamSettings { max_bytes: 10_000, ..dir.settings() };
        drop(StreamFile::open(&settings).unwrap());
        for text in ["#80 0 1\n", "my notes", "Begin Queue\nEnd Queue\n"] {
            std::fs::write(&settings.path, text).unwrap();
            assert!(StreamFile::open(&settings).is_err(), "{text}");
            assert_eq!(dir.text("lsb.stream"), text);
        }
        std::fs::write(&settings.path, line("JOB_NEW", 1)).unwrap();
        std::fs::hard_link(&settings.path, dir.0.join("lsb.acct")).unwrap();
        let why = StreamFile::open(&settings).unwrap_err().to_string();
        assert!(why.contains("hard links"), "{why}");
    }
}
