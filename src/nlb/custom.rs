//! The files of custom objects of a collector: read once each interval, turned into attributes by
//! the name map of each server. See ccollect(8).

use crate::conf::diag::{Diags, Severity};
use crate::conf::nlb_map::NameMaps;
use crate::conf::nlb_objects::{ObjectData, read_objects};
use crate::model::nlb::{NLB, NLB_JOB, Value};
use crate::proto::collect::CustomContent;
use crate::proto::nlb::{MAX_REPORT, ReportedObject, ReportedValue, ReportedValues};
use std::sync::Arc;

/// Most files.
pub const MAX_FILES: usize = 32;
/// Intervals in which the last good content of a faulty file goes on being sent.
const GOOD_FOR: u32 = 3;
/// Most faults of one file that are logged.
const MAX_LOGGED: usize = 10;

/// One file.
struct CustomFile {
    path: String,
    content: Arc<Result<Vec<u8>, String>>,
    /// Counts the contents.
    version: u64,
    /// The version and the lines that were logged.
    logged: (u64, Vec<String>),
}

/// The files of a collector.
#[derive(Default)]
pub(super) struct CustomFiles {
    list: Vec<CustomFile>,
}

impl CustomFiles {
    pub(super) fn new(paths: &[String]) -> CustomFiles {
        let mut files = CustomFiles::default();
        paths.iter().for_each(|path| files.add(path));
        files
    }

    /// One more file. More than [`MAX_FILES`] are not read.
    pub(super) fn add(&mut self, path: &str) {
        if self.list.len() < MAX_FILES && self.list.iter().all(|f| f.path != path) {
            let content = Arc::new(Err("not read yet".to_owned()));
            let path = path.to_owned();
            self.list.push(CustomFile { path, content, version: 0, logged: (0, Vec::new()) });
        }
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.list.iter().map(|f| f.path.clone()).collect()
    }

    /// The files were read.
    pub(super) fn take(&mut self, read: Vec<CustomContent>) {
        for (path, content) in read {
            let own = self.list.iter_mut().find(|f| f.path == path);
            if let Some(file) = own.filter(|f| f.version == 0 || *f.content != content) {
                file.content = Arc::new(content);
                file.version += 1;
            }
        }
    }
}

impl CustomFile {
    /// The lines about this content that were not logged yet.
    fn news(&mut self, lines: Vec<String>) -> Vec<String> {
        if self.logged == (self.version, lines.clone()) {
            return Vec::new();
        }
        self.logged = (self.version, lines.clone());
        lines
    }
}

/// The meaning of one file by a server's map.
#[derive(Default)]
struct Meaning {
    /// The version of the file and the number of the map.
    of: (u64, u64),
    objects: Vec<ObjectData>,
    /// Intervals since the file was good.
    bad: u32,
    faulty: bool,
}

/// The meanings of all files by one server's map.
#[derive(Default)]
pub(super) struct Meanings {
    list: Vec<Meaning>,
    /// Counts the maps.
    map: u64,
}

impl Meanings {
    /// The server has another map: everything is read anew.
    pub(super) fn other_map(&mut self) {
        self.map += 1;
    }

    /// Reads what has changed; `own` knows the names of the host, `next` says that an interval has
    /// passed. The lines for the log.
    pub(super) fn read(
        &mut self,
        files: &mut CustomFiles,
        maps: &NameMaps,
        own: impl Fn(&str) -> bool,
        next: bool,
    ) -> Vec<String> {
        let mut log = Vec::new();
        self.list.resize_with(files.list.len(), Meaning::default);
        for (file, meaning) in files.list.iter_mut().zip(&mut self.list) {
            let of = (file.version, self.map);
            if meaning.of != of && file.version > 0 {
                meaning.of = of;
                let (objects, lines) = read_one(file, maps, &own);
                meaning.faulty = objects.is_none();
                if let Some(objects) = objects {
                    meaning.objects = objects;
                    meaning.bad = 0;
                }
                log.extend(file.news(lines));
            }
            if meaning.faulty && next {
                meaning.bad = meaning.bad.saturating_add(1);
            }
        }
        log
    }

    /// The objects that count, those of later files last.
    pub(super) fn data(&self) -> impl Iterator<Item = &ObjectData> {
        self.list.iter().filter(|m| m.bad <= GOOD_FOR).flat_map(|m| &m.objects)
    }

    /// The objects to report, all under the name `host`; where they are too large, none, and the
    /// words.
    pub(super) fn objects(&self, host: &str) -> Result<Vec<ReportedObject>, String> {
        let mut all = Vec::new();
        let mut size = 0;
        for object in self.data() {
            let (object_type, name) = (object.object_type, host.to_owned());
            let values = reported(&object.values);
            size += values.iter().map(|(_, v)| bytes(v)).sum::<usize>();
            all.push(ReportedObject { object_type, name, values });
        }
        match size > MAX_REPORT {
            true => Err(format!("custom objects of more than {} MB: not sent", MAX_REPORT >> 20)),
            false => Ok(all),
        }
    }
}

/// About what a value takes in a message, bytes.
fn bytes(value: &ReportedValue) -> usize {
    let own = match value {
        ReportedValue::Text(text) => text.len(),
        _ => 0,
    };
    own + 32
}

/// Values as a report has them.
pub(super) fn reported(values: &super::store::Values) -> ReportedValues {
    let one = |value: &Value| match value {
        Value::Float(x) => Some(ReportedValue::Float(*x)),
        Value::Integer(n) => Some(ReportedValue::Integer(*n)),
        Value::Str(text) => Some(ReportedValue::Text(text.to_string())),
        // the server alone sets times
        Value::Time(_) => None,
    };
    values.iter().filter_map(|(id, value)| Some((id.number, one(value)?))).collect()
}

/// The objects of one file about this host, and lines for the log; `None`: it has a fault.
fn read_one(
    file: &CustomFile,
    maps: &NameMaps,
    own: impl Fn(&str) -> bool,
) -> (Option<Vec<ObjectData>>, Vec<String>) {
    let path = &file.path;
    let bytes = match &*file.content {
        Ok(bytes) if bytes.len() > MAX_REPORT => {
            return (None, vec![format!("{path}: larger than {} MB", MAX_REPORT >> 20)]);
        }
        Ok(bytes) => bytes,
        Err(why) => return (None, vec![format!("{path}: {why}")]),
    };
    let mut diags = Diags::new();
    let objects = read_objects(&Arc::from(path.as_str()), bytes, maps, None, &mut diags);
    let told = diags.list().iter().filter(|d| d.severity >= Severity::Warning);
    let mut lines: Vec<String> = told.map(ToString::to_string).take(MAX_LOGGED).collect();
    let Some(objects) = objects else { return (None, lines) };
    if let Some(other) = objects.iter().find(|o| !matches!(o.object_type, NLB | NLB_JOB)) {
        let map = maps.numbered(other.object_type).map_or("", |m| m.name());
        let words = "a collector reports objects of NLB and NLB_JOB alone";
        lines.push(format!("{path}: object {map} ({}): {words}", other.name));
        return (None, lines);
    }
    let (ours, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(|o| own(&o.name));
    if let Some(other) = others.first() {
        let count = match others.len() {
            1 => "1 object is".to_owned(),
            n => format!("{n} objects are"),
        };
        let words = "not sent: a collector reports its own host alone";
        lines.push(format!("{path}: <{}>: {count} {words}", other.name));
    }
    (Some(ours), lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps() -> NameMaps {
        let map =
            b"map NLB = 1024 { SITE_INODES \"\" integer(9000); SITE_NAME \"\" string(9000); }";
        let mut diags = Diags::new();
        NameMaps::shipped().put(&Arc::from("m"), map, &mut diags).unwrap()
    }

    struct Rig {
        files: CustomFiles,
        meanings: Meanings,
    }

    impl Rig {
        fn new() -> Rig {
            let files = CustomFiles::new(&["/c".to_owned()]);
            let mut meanings = Meanings::default();
            meanings.other_map();
            Rig { files, meanings }
        }

        /// The file is read in the next interval: the log, and the values reported.
        fn read(&mut self, content: Result<&[u8], &str>) -> (Vec<String>, String) {
            let content = content.map(<[u8]>::to_vec).map_err(str::to_owned);
            self.files.take(vec![("/c".to_owned(), content)]);
            let own = |name: &str| name == "hosta" || name == "hosta.site";
            let log = self.meanings.read(&mut self.files, &maps(), own, true);
            let objects = self.meanings.objects("hosta").unwrap();
            let shown = |o: &ReportedObject| format!("{} {} {:?}", o.object_type, o.name, o.values);
            (log, objects.iter().map(shown).collect::<Vec<_>>().join("\n"))
        }
    }

    const GOOD: &[u8] = b"object NLB (hosta.site) { SITE_INODES = 7; }";
    const SEVEN: &str = "1024 hosta [(9000, Integer(7))]";

    #[test]
    fn a_faulty_file_is_told_of_once_and_its_last_good_content_sent_for_three_intervals() {
        let mut rig = Rig::new();
        assert_eq!(rig.read(Ok(GOOD)), (vec![], SEVEN.to_owned()));
        let bad = b"object NLB (hosta) {\n SITE_INODS = 8; }";
        let line =
            "/c:2:2: no attribute <SITE_INODS> in the map of NLB; did you mean <SITE_INODES>?";
        assert_eq!(rig.read(Ok(bad)), (vec![line.to_owned()], SEVEN.to_owned()));
        assert_eq!(rig.read(Ok(bad)), (vec![], SEVEN.to_owned()));
        assert_eq!(rig.read(Ok(bad)), (vec![], SEVEN.to_owned()));
        assert_eq!(rig.read(Ok(bad)), (vec![], String::new()));
        assert_eq!(rig.read(Ok(GOOD)), (vec![], SEVEN.to_owned()));
        // another change, another line
        let gone = Err("No such file or directory");
        let line = "/c: No such file or directory";
        assert_eq!(rig.read(gone), (vec![line.to_owned()], SEVEN.to_owned()));
        assert_eq!(rig.read(gone), (vec![], SEVEN.to_owned()));
    }

    #[test]
    fn rubbish_is_no_object_and_changes_nothing() {
        let cases: [(&[u8], &str); 6] = [
            (b"", ""),
            (b"\xff\xfe", "/c:1:1: not UTF-8"),
            (
                b"object NLB (hosta) { SITE_INODES = ",
                "/c:1:36: a value is wanted before the end of the file",
            ),
            (b"object NLB (hosta) { SITE_INODES = 1e3; }", "/c:1:36: <1e3> is no whole number"),
            (
                b"object NJS (hosta) { NJS_NQSID = a; }",
                "/c: object NJS (hosta): a collector reports objects of NLB and NLB_JOB alone",
            ),
            (
                b"object NLB (hostb) { SITE_INODES = 1; }",
                "/c: <hostb>: 1 object is not sent: a collector reports its own host alone",
            ),
        ];
        for (content, line) in cases {
            let (log, objects) = Rig::new().read(Ok(content));
            assert_eq!((log.join("\n").as_str(), objects.as_str()), (line, ""), "{content:?}");
        }
        let large = vec![b' '; MAX_REPORT + 1];
        assert_eq!(Rig::new().read(Ok(&large)).0, ["/c: larger than 1 MB"]);
    }

    #[test]
    fn values_that_make_a_report_too_large_are_not_sent() {
        let text = "x".repeat(4_000);
        let values = |from: u32| -> String {
            (0..200).map(|n| format!("string({}) = \"{text}\"; ", from + n)).collect()
        };
        let file = |path: &str, from| {
            let text = format!("object NLB (hosta) {{ {} }}", values(from));
            (path.to_owned(), Ok(text.into_bytes()))
        };
        let mut files = CustomFiles::new(&["/a".to_owned(), "/b".to_owned()]);
        let mut meanings = Meanings::default();
        meanings.other_map();
        files.take(vec![file("/a", 9_000)]);
        meanings.read(&mut files, &maps(), |_| true, true);
        assert_eq!(meanings.objects("hosta").unwrap()[0].values.len(), 200);
        files.take(vec![file("/b", 9_500)]);
        meanings.read(&mut files, &maps(), |_| true, true);
        let words = "custom objects of more than 1 MB: not sent";
        assert_eq!(meanings.objects("hosta").unwrap_err(), words);
    }
}
