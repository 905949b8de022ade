//! The options of a submission that few jobs have, and the notes that mbatchd keeps with it.
//!
//! Lsb.events, the wire and listings have them as pairs of a key and a text (the table at
//! `options!`); elsewhere they are fields.

use super::aps::ApsSetting;
use super::checkpoint::Checkpoint;
use super::limits::{LimitKind, LimitSet};
use super::nqs::Route;
use super::signals;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::{self, Write};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

/// The key of -g.
pub const GROUP: &str = "g";
/// The key of -app.
pub const APP: &str = "app";
/// The key of -sla.
pub const SLA: &str = "sla";
/// The key of -Lp.
pub const LICENSE: &str = "Lp";
/// The key of -wa.
pub const WARN_ACTION: &str = "wa";
/// The key of -We.
pub const ESTIMATE: &str = "We";
/// The key of -f: `lfile op rfile`, one after the other between blanks.
pub const FILE: &str = "f";
/// The key of the lines of -hostfile: `host slots host slots`.
pub const HOST_LINES: &str = "hostslots";
/// The key of the directory of submission, where -cwd names another one.
pub const SUBMISSION_DIRECTORY: &str = "subcwd";
/// The key of -k.
pub const CHECKPOINT: &str = "k";
/// The key of -ar.
pub const AUTORESIZE: &str = "ar";
/// The key of -rnc.
pub const RESIZE_COMMAND: &str = "rnc";
/// The key of the further slots that a started job waits for: `least,most`. No option: mbatchd adds
/// it to a listing.
pub const WANTED_SLOTS: &str = "wanted";
/// The key of bmod -aps.
pub const APS: &str = "aps";
/// The key of -a.
pub const ESUB: &str = "a";

/// The key of the dependency condition as mbatchd resolved it.
pub const RESOLVED_CONDITION: &str = "dep";

/// The hosts of -hostfile with their slots, line by line; shared with the scheduler.
pub type HostLines = Arc<[(Box<str>, u32)]>;

/// The command of -wa that stands for a checkpoint.
pub const CHKPNT: &str = "CHKPNT";

/// The warning that -wa asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WarnAction {
    Signal(SignalNumber),
    Command(Box<str>),
}

/// The number of a signal: its name in texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalNumber(pub i32);

/// The time of the warning before the limit or deadline (-wt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarnTime {
    Seconds(u64),
    /// Percent of the run limit, or of the time from the start to the deadline.
    Percent(u64),
}

/// The limits and options that a job has of its queue, so that another queue can take them back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilledByQueue {
    pub limits: LimitSet,
    /// The numbers of slots.
    pub slots: bool,
    pub rerunnable: bool,
    pub checkpoint: bool,
    /// -We.
    pub estimate: bool,
}

/// A mark that is set or not: `Y` in texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(pub bool);

/// Each row: key of the text, name of the field, its type.
macro_rules! options {
    ($($(#[$doc:meta])* $key:literal $field:ident: $type:ty;)*) => {
        /// The values of the options; an option that was not given has the default of its type.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct FurtherOptions {
            $($(#[$doc])* pub $field: $type,)*
            /// Keys that this version does not know, and values that it cannot read, in the order
            /// in which they came: log, listings and hosts get them as they are.
            pub unread: Vec<(String, String)>,
        }

        impl FurtherOptions {
            fn option_text(&self, key: &str) -> Option<Cow<'_, str>> {
                match key {
                    $($key => self.$field.text(),)*
                    _ => None,
                }
            }

            fn option_texts(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
                let all = [$(($key, self.$field.text()),)*];
                all.into_iter().filter_map(|(key, text)| Some((key, text?)))
            }

            /// False: the key is not known, its value is set already or the text is not one.
            fn read(&mut self, key: &str, text: &str) -> bool {
                match key {
                    $($key if text.is_empty() => true,
                    $key => match OptionText::read(text) {
                        Some(value) if self.$field.text().is_none() => {
                            self.$field = value;
                            true
                        }
                        _ => false,
                    },)*
                    _ => false,
                }
            }
        }
    };
}

options! {
    /// -g: the path of the job group.
    "g" job_group: Box<str>;
    /// -app.
    "app" application: Box<str>;
    /// -sla.
    "sla" service_class: Box<str>;
    /// -Lp.
    "Lp" license_project: Box<str>;
    /// -U.
    "U" reservation: Box<str>;
    /// -We: `[hour:]minute[/host]`.
    "We" estimate: Box<str>;
    /// -f.
    "f" copies: Box<[CopyFile]>;
    /// -Q: exit values in the words of REQUEUE_EXIT_VALUES.
    "Q" requeue: Box<str>;
    /// -k: checkpoints of the job.
    "k" checkpoint: Option<Box<Checkpoint>>;
    /// brestart: the directory that the job goes on from, in its checkpoint directory.
    "restart" restart: Box<str>;
    /// -ti.
    "ti" terminate_orphan: Mark;
    /// -wa.
    "wa" warn_action: Option<WarnAction>;
    /// -wt.
    "wt" warn_time: Option<WarnTime>;
    /// -s.
    "s" window_signal: Option<SignalNumber>;
    /// -outdir.
    "outdir" out_dir: Box<str>;
    /// -hl.
    "hl" per_host: Mark;
    /// -ptl, seconds.
    "ptl" pend_limit: Option<u64>;
    /// -eptl, seconds.
    "eptl" eligible_limit: Option<u64>;
    /// -mig, minutes.
    "mig" migration: Option<u64>;
    /// -ar: the job asks for further slots up to its maximum while it runs.
    "ar" autoresize: Mark;
    /// -rnc: run on the first execution host when the slots of the job change.
    "rnc" resize_command: Box<str>;
    /// -is: the copy of the input file, which is removed after the job.
    "is" spooled_input: Box<str>;
    /// -hostfile: its path.
    "hostfile" host_file: Box<str>;
    /// -hostfile: its lines.
    "hostslots" host_lines: HostLines;
    /// ~/.lsfhosts: hosts and the accounts there, in turn.
    "lsfhosts" accounts: Box<str>;
    /// -ul: the limits that it set.
    "ul" user_limits: LimitSet;
    /// -M with `!`.
    "hardM" hard_memory: Mark;
    /// The directory of submission, where -cwd names another one.
    "subcwd" submission_directory: Box<str>;
    /// -a.
    "a" esub: Box<str>;
    /// bmod -aps.
    "aps" aps: Option<ApsSetting>;
    /// -nlb: the policy of the load balancer.
    "nlb" nlb_policy: Box<str>;
    /// -nlb, cqsub -la and its limits: attributes of the request, as `model::nqs` has them.
    "nlbattr" nlb_attributes: Box<str>;
    /// A request of NQS: submitted by cqsub.
    "nqs" nqs: Mark;
    /// mbatchd's own: where a pipe queue has routed it.
    "route" route: Option<Box<Route>>;
    /// mbatchd's own: when it entered the pipe queue, where that was not its submission, seconds
    /// since the epoch.
    "piped" piped_at: Option<u64>;
    /// mbatchd's own: the dependency condition with the IDs that its names stand for.
    "dep" resolved_condition: Box<str>;
    /// mbatchd's own.
    "filled" filled_by_queue: FilledByQueue;
}

/// The keys that no listing has: of mbatchd's own notes and of -ul.
pub const UNLISTED: [&str; 4] = ["dep", "filled", "piped", "ul"];

/// The further options of a submission. One without any has no more than a pointer.
#[derive(Clone, Default)]
pub struct Further(Option<Box<FurtherOptions>>);

static NONE: LazyLock<FurtherOptions> = LazyLock::new(FurtherOptions::default);

/// Bytes of an item of a list beside its text.
const LIST_ITEM: usize = 64;

impl Further {
    /// Takes over an option from a record or a message. The first of several is the one that acts.
    pub fn put_text(&mut self, key: &str, text: &str) {
        if !self.read(key, text) {
            self.unread.push((key.to_string(), text.to_string()));
        }
    }

    /// The text of an option; `None`: it was not given.
    pub fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        let options = self.0.as_deref()?;
        options.option_text(key).or_else(|| self.unreadable(key).map(Cow::Borrowed))
    }

    /// Every option with its key.
    pub fn texts(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        self.0.as_deref().into_iter().flat_map(|options| {
            let unread = options.unread.iter();
            let unread = unread.map(|(key, text)| (key.as_str(), Cow::Borrowed(text.as_str())));
            options.option_texts().chain(unread)
        })
    }

    /// The text that an option came with, where this version cannot read it.
    pub fn unreadable(&self, key: &str) -> Option<&str> {
        let unread = self.unread.iter().find(|(k, _)| k == key);
        unread.map(|(_, text)| text.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.0.as_deref().is_none_or(|options| *options == *NONE)
    }

    /// Gives the memory back where no option is left.
    pub fn trim(&mut self) {
        if self.is_empty() {
            self.0 = None;
        }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        let Some(options) = self.0.as_deref() else { return 0 };
        let texts = self.texts().map(|(_, text)| text.len()).sum::<usize>();
        let items = options.host_lines.len() + options.copies.len() + options.unread.len();
        size_of::<FurtherOptions>() + texts + items * LIST_ITEM
    }
}

/// Pairs of keys and texts.
impl<K: AsRef<str>, T: AsRef<str>> FromIterator<(K, T)> for Further {
    fn from_iter<I: IntoIterator<Item = (K, T)>>(pairs: I) -> Further {
        let mut further = Further::default();
        pairs.into_iter().for_each(|(key, text)| further.put_text(key.as_ref(), text.as_ref()));
        further
    }
}

impl Deref for Further {
    type Target = FurtherOptions;
    fn deref(&self) -> &FurtherOptions {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Further {
    fn deref_mut(&mut self) -> &mut FurtherOptions {
        self.0.get_or_insert_default()
    }
}

impl PartialEq for Further {
    fn eq(&self, other: &Further) -> bool {
        (self.0.is_none() && other.0.is_none()) || **self == **other
    }
}

impl Eq for Further {}

impl fmt::Debug for Further {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.texts()).finish()
    }
}

impl Serialize for Further {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.texts())
    }
}

impl<'de> Deserialize<'de> for Further {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Vec::<(String, String)>::deserialize(d)?.into_iter().collect())
    }
}

/// A value as a text of records and messages.
trait OptionText: Sized {
    /// The text; `None`: the option was not given.
    fn text(&self) -> Option<Cow<'_, str>>;
    /// The value of a text that is not empty.
    fn read(text: &str) -> Option<Self>;
}

impl OptionText for Box<str> {
    fn text(&self) -> Option<Cow<'_, str>> {
        (!self.is_empty()).then_some(Cow::Borrowed(self))
    }
    fn read(text: &str) -> Option<Self> {
        Some(text.into())
    }
}

impl OptionText for Option<Box<Checkpoint>> {
    fn text(&self) -> Option<Cow<'_, str>> {
        self.as_ref().map(|checkpoint| Cow::Owned(checkpoint.to_string()))
    }
    fn read(text: &str) -> Option<Self> {
        Checkpoint::parse(text).ok().map(|checkpoint| Some(Box::new(checkpoint)))
    }
}

impl OptionText for Option<Box<Route>> {
    fn text(&self) -> Option<Cow<'_, str>> {
        self.as_ref().map(|route| Cow::Owned(route.text()))
    }
    fn read(text: &str) -> Option<Self> {
        Route::parse(text).map(|route| Some(Box::new(route)))
    }
}

impl OptionText for Mark {
    fn text(&self) -> Option<Cow<'_, str>> {
        self.0.then_some(Cow::Borrowed("Y"))
    }
    fn read(_: &str) -> Option<Self> {
        Some(Mark(true))
    }
}

impl OptionText for Option<ApsSetting> {
    fn text(&self) -> Option<Cow<'_, str>> {
        self.map(|setting| Cow::Owned(setting.to_string()))
    }
    fn read(text: &str) -> Option<Self> {
        ApsSetting::parse(text).ok().map(Some)
    }
}

impl OptionText for Option<u64> {
    fn text(&self) -> Option<Cow<'_, str>> {
        self.map(|n| Cow::Owned(n.to_string()))
    }
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Some)
    }
}

impl OptionText for Option<SignalNumber> {
    fn text(&self) -> Option<Cow<'_, str>> {
        self.map(|SignalNumber(number)| signals::text(number))
    }
    fn read(text: &str) -> Option<Self> {
        signals::number(text).map(|number| Some(SignalNumber(number)))
    }
}

impl OptionText for Option<WarnAction> {
    fn text(&self) -> Option<Cow<'_, str>> {
        Some(match self.as_ref()? {
            WarnAction::Signal(SignalNumber(number)) => signals::text(*number),
            WarnAction::Command(command) => Cow::Borrowed(command),
        })
    }
    fn read(text: &str) -> Option<Self> {
        Some(Some(match signals::number(text) {
            Some(number) => WarnAction::Signal(SignalNumber(number)),
            None => WarnAction::Command(text.into()),
        }))
    }
}

impl OptionText for Option<WarnTime> {
    fn text(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Owned(match self.as_ref()? {
            WarnTime::Seconds(n) => n.to_string(),
            WarnTime::Percent(n) => format!("{n}%"),
        }))
    }
    fn read(text: &str) -> Option<Self> {
        let time = match text.strip_suffix('%') {
            Some(share) => WarnTime::Percent(share.parse().ok()?),
            None => WarnTime::Seconds(text.parse().ok()?),
        };
        Some(Some(time))
    }
}

impl OptionText for LimitSet {
    fn text(&self) -> Option<Cow<'_, str>> {
        let words: Vec<&str> = self.iter().map(LimitKind::word).collect();
        (!words.is_empty()).then(|| Cow::Owned(words.join(" ")))
    }
    fn read(text: &str) -> Option<Self> {
        text.split_whitespace().map(LimitKind::of_word).collect()
    }
}

impl OptionText for FilledByQueue {
    fn text(&self) -> Option<Cow<'_, str>> {
        let mut words: Vec<&str> = self.limits.iter().map(LimitKind::word).collect();
        words.extend(self.slots.then_some("slots"));
        words.extend(self.rerunnable.then_some("rerun"));
        words.extend(self.checkpoint.then_some("chkpnt"));
        words.extend(self.estimate.then_some("estimate"));
        (!words.is_empty()).then(|| Cow::Owned(words.join(" ")))
    }
    fn read(text: &str) -> Option<Self> {
        let mut filled = FilledByQueue::default();
        for word in text.split_whitespace() {
            match word {
                "slots" => filled.slots = true,
                "rerun" => filled.rerunnable = true,
                "chkpnt" => filled.checkpoint = true,
                "estimate" => filled.estimate = true,
                word => filled.limits.insert(LimitKind::of_word(word)?),
            }
        }
        Some(filled)
    }
}

impl OptionText for HostLines {
    fn text(&self) -> Option<Cow<'_, str>> {
        if self.is_empty() {
            return None;
        }
        let mut text = String::new();
        for (host, slots) in self.iter() {
            let blank = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{blank}{host} {slots}");
        }
        Some(Cow::Owned(text))
    }
    fn read(text: &str) -> Option<Self> {
        host_lines(text)
    }
}

/// The hosts and slots of a text of pairs.
pub fn host_lines(text: &str) -> Option<HostLines> {
    let mut words = text.split_whitespace();
    let mut lines = Vec::new();
    while let Some(host) = words.next() {
        let slots = words.next()?.parse().ok().filter(|n| *n > 0)?;
        lines.push((host.into(), slots));
    }
    Some(lines.into())
}

impl OptionText for Box<[CopyFile]> {
    fn text(&self) -> Option<Cow<'_, str>> {
        let all: Vec<String> = self.iter().map(CopyFile::to_string).collect();
        (!all.is_empty()).then(|| Cow::Owned(all.join(" ")))
    }
    fn read(text: &str) -> Option<Self> {
        copies(text)
    }
}

/// The file transfers of a text.
pub fn copies(text: &str) -> Option<Box<[CopyFile]>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.chunks(3).map(|three| CopyFile::parse(&three.join(" "))).collect()
}

/// The operator of -f.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyOp {
    /// `>`
    To,
    /// `<`
    Back,
    /// `<<`
    BackAppend,
    /// `><`, `<>`
    Both,
}

impl CopyOp {
    pub fn parse(word: &str) -> Option<CopyOp> {
        Some(match word {
            ">" => CopyOp::To,
            "<" => CopyOp::Back,
            "<<" => CopyOp::BackAppend,
            "><" | "<>" => CopyOp::Both,
            _ => return None,
        })
    }
    pub fn word(self) -> &'static str {
        match self {
            CopyOp::To => ">",
            CopyOp::Back => "<",
            CopyOp::BackAppend => "<<",
            CopyOp::Both => "><",
        }
    }
    /// The file is copied to the execution host before the job.
    pub fn to_exec(self) -> bool {
        matches!(self, CopyOp::To | CopyOp::Both)
    }
    /// Back from it after the job.
    pub fn from_exec(self) -> bool {
        self != CopyOp::To
    }
    pub fn appends(self) -> bool {
        self == CopyOp::BackAppend
    }
    /// lsbatch.h XF_OP_*.
    pub fn bits(self) -> u32 {
        match self {
            CopyOp::To => 0x1,
            CopyOp::Back => 0x2,
            CopyOp::BackAppend => 0x8,
            CopyOp::Both => 0x3,
        }
    }
}

/// A file transfer of -f.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyFile {
    /// The path on the submission host.
    pub local: String,
    pub op: CopyOp,
    /// The path on the execution host.
    pub remote: String,
}

impl CopyFile {
    /// `lfile op [rfile]`: the operator stands between blanks.
    pub fn parse(text: &str) -> Option<CopyFile> {
        let mut words = text.split_whitespace();
        let local = words.next()?.to_string();
        let op = CopyOp::parse(words.next()?)?;
        let remote = words.next().map_or_else(|| local.clone(), str::to_string);
        words.next().is_none().then_some(CopyFile { local, op, remote })
    }
}

impl fmt::Display for CopyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.local, self.op.word(), self.remote)
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::JobSpec;
    use super::*;

    /// The pairs of every option as earlier versions wrote them.
    const WRITTEN: [(&str, &str); 27] = [
        ("g", "/a/b"),
        ("app", "sim"),
        ("sla", "gold"),
        ("Lp", "chip"),
        ("U", "user#1"),
        ("We", "1:30/hosta"),
        ("f", "a > b c << d"),
        ("Q", "all ~3 EXCLUDE(20)"),
        ("k", "/c init=5 30 method=app"),
        ("restart", "12[3]"),
        ("ti", "Y"),
        ("wa", "USR1"),
        ("wt", "40%"),
        ("s", "USR2"),
        ("outdir", "/o/%J"),
        ("hl", "Y"),
        ("ptl", "600"),
        ("eptl", "60"),
        ("is", "/h/1.in"),
        ("hostfile", "/h/hosts"),
        ("hostslots", "h1 2 h2 1 h1 1"),
        ("ul", "cpu core"),
        ("subcwd", "/h"),
        ("a", "x y"),
        ("aps", "admin=-2.5"),
        ("dep", "done(7)"),
        ("filled", "rss run slots rerun chkpnt"),
    ];

    fn pairs(further: &Further) -> Vec<(String, String)> {
        further.texts().map(|(key, text)| (key.to_string(), text.into_owned())).collect()
    }

    fn sorted(mut pairs: Vec<(String, String)>) -> Vec<(String, String)> {
        // the words of limits are a set
        for (_, text) in pairs.iter_mut().filter(|(key, _)| matches!(&**key, "ul" | "filled")) {
            let mut words: Vec<&str> = text.split(' ').collect();
            words.sort_unstable();
            *text = words.join(" ");
        }
        pairs.sort();
        pairs
    }

    #[test]
    fn every_option_of_an_earlier_version_is_read_into_its_field_and_written_alike() {
        let json = serde_json::json!({ "name": "n", "extra": WRITTEN }).to_string();
        let spec: JobSpec = serde_json::from_str(&json).unwrap();
        let o = &spec.further;
        assert_eq!(o.unread, []);
        assert_eq!((&*o.job_group, &*o.application, &*o.service_class), ("/a/b", "sim", "gold"));
        assert_eq!((&*o.license_project, &*o.reservation), ("chip", "user#1"));
        assert_eq!((o.copies.len(), o.copies[1].op), (2, CopyOp::BackAppend));
        assert_eq!((o.terminate_orphan, o.per_host), (Mark(true), Mark(true)));
        assert_eq!(o.warn_action, Some(WarnAction::Signal(SignalNumber(10))));
        assert_eq!(o.warn_time, Some(WarnTime::Percent(40)));
        assert_eq!(o.window_signal, Some(SignalNumber(12)));
        assert_eq!((o.pend_limit, o.eligible_limit), (Some(600), Some(60)));
        assert_eq!(o.host_lines.iter().map(|line| line.1).collect::<Vec<u32>>(), [2, 1, 1]);
        assert_eq!(o.user_limits.iter().collect::<Vec<_>>(), [LimitKind::Cpu, LimitKind::Core]);
        let filled = o.filled_by_queue;
        assert!(filled.slots && filled.rerunnable && filled.limits.contains(LimitKind::Run));
        let written = WRITTEN.map(|(key, text)| (key.to_string(), text.to_string())).to_vec();
        assert_eq!(sorted(pairs(o)), sorted(written));
        let again: JobSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
        assert_eq!(again, spec);
        assert!(WRITTEN.iter().all(|(key, _)| o.text(key).is_some()));
    }

    #[test]
    fn an_option_that_cannot_be_read_is_kept_as_it_came() {
        let came = [("new", "1"), ("ptl", "soon"), ("hostslots", "h1 0"), ("wt", "9 %")];
        let further = Further::from_iter(came);
        assert_eq!(further.pend_limit, None);
        assert_eq!(further.unreadable("hostslots"), Some("h1 0"));
        assert_eq!(further.text("ptl").as_deref(), Some("soon"));
        let kept: Vec<(String, String)> =
            came.map(|(key, text)| (key.to_string(), text.to_string())).to_vec();
        assert_eq!(pairs(&further), kept);
        let json = serde_json::to_string(&further).unwrap();
        assert_eq!(serde_json::from_str::<Further>(&json).unwrap(), further);
    }

    #[test]
    fn the_first_of_several_values_of_an_option_acts() {
        let further = Further::from_iter([("g", "/a"), ("g", "/b"), ("app", "")]);
        assert_eq!((&*further.job_group, further.unread.len()), ("/a", 1));
        let json = serde_json::to_string(&further).unwrap();
        assert_eq!(serde_json::from_str::<Further>(&json).unwrap(), further);
        assert_eq!(further.text("app"), None);
    }

    #[test]
    fn a_submission_without_further_options_equals_one_whose_options_were_taken_back() {
        let mut spec = JobSpec::default();
        spec.further.job_group = "/a".into();
        spec.further.job_group = "".into();
        assert_eq!((&spec, spec.further.bytes() > 0), (&JobSpec::default(), true));
        assert_eq!(format!("{spec:?}"), format!("{:?}", JobSpec::default()));
        assert_eq!(serde_json::to_string(&spec).unwrap(), "{}");
        spec.further.trim();
        assert_eq!(spec.further.bytes(), 0);
    }

    #[test]
    fn a_submission_without_further_options_takes_no_more_room_than_a_pointer_for_them() {
        assert_eq!(size_of::<Further>(), size_of::<usize>());
        assert!(size_of::<FurtherOptions>() <= 512, "{}", size_of::<FurtherOptions>());
    }
}
