//! A daemon's log: LSF_LOGDIR/DAEMON.log.HOST by LSF_LOG_MASK, capped in size; syslog where
//! LSF_LOGDIR is undefined. env_logger formats, humantime writes the times.
//!
//! Root's launcher writes to a file that the administrator has opened for it: LSF_LOGDIR and the
//! host's name are the administrator's to choose.
//!
//! Invariant: a line is one line: control characters from outside are shown as escapes.

use super::{delegate, panic_log};
use crate::conf::LsfConf;
use crate::proto::Logging;
use crate::sys::users::User;
use crate::sys::{files, words};
use log::LevelFilter;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

/// Longest line, bytes.
const MAX_LINE: usize = 8192;
/// A turn that the first level of times tells.
const SLOW: Duration = Duration::from_millis(100);
/// The socket on which syslog listens.
const DEV_LOG: &str = "/dev/log";
/// Permission bits of a file beside the log.
const NOTE_MODE: u32 = 0o640;
/// Permission bits of a log.
const LOG_MODE: u32 = 0o644;
/// Syslog's facility `daemon`, shifted.
const FACILITY: u8 = 3 << 3;

/// Asks the log to be opened anew.
#[derive(Clone, Debug, Default)]
pub struct LogHandle(Arc<AtomicBool>);

impl LogHandle {
    /// After SIGHUP.
    pub fn reopen(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The level of lsf.conf.
static USUAL: AtomicUsize = AtomicUsize::new(LevelFilter::Warn as usize);

/// Logs more from now on: 0 as lsf.conf says, 1 debugging, 2 all.
pub fn verbose(level: u8) {
    let usual = USUAL.load(Ordering::Relaxed);
    let mut all = LevelFilter::iter();
    log::set_max_level(match level {
        0 => all.find(|l| *l as usize == usual).unwrap_or(LevelFilter::Warn),
        1 => LevelFilter::Debug,
        _ => LevelFilter::Trace,
    });
}

/// The turns whose time is logged, as a level: see [`Logging`].
static TIMING: AtomicU8 = AtomicU8::new(0);
/// The file to log to instead of the usual one, empty for that; taken by the next line.
static ASIDE: Mutex<Option<String>> = Mutex::new(None);
/// There is one to be taken.
static MOVES: AtomicBool = AtomicBool::new(false);

/// Logs as this says from now on.
pub fn set(set: &Logging) {
    if let Some(level) = set.level {
        verbose(level);
    }
    if let Some(level) = set.timing {
        TIMING.store(level, Ordering::Relaxed);
    }
    if let (Some(file), Ok(mut aside)) = (&set.file, ASIDE.lock()) {
        *aside = Some(file.clone());
        MOVES.store(true, Ordering::Relaxed);
    }
}

/// Appends to a file beside the log; text that cannot be written is lost, and the log says so.
/// Opening never waits: where others may write to the directory, somebody may have put a fifo
/// there.
pub fn note(file: &str, text: &str) {
    let opened = files::append(Path::new(file), NOTE_MODE);
    let wrote = opened.and_then(|mut f| f.write_all(text.as_bytes()));
    if let Err(e) = wrote {
        log::warn!("{file}: {}", words(&e));
    }
}

/// How long a turn must take to be told; `None`: none is.
pub fn timing() -> Option<Duration> {
    match TIMING.load(Ordering::Relaxed) {
        0 => None,
        level @ 1..=4 => Some(SLOW / 10u32.pow(u32::from(level) - 1)),
        _ => Some(Duration::ZERO),
    }
}

/// The level of an LSF_LOG_MASK.
pub fn level(mask: &str) -> LevelFilter {
    match mask.trim().to_ascii_uppercase().as_str() {
        "LOG_EMERG" | "LOG_ALERT" | "LOG_CRIT" | "LOG_ERR" => LevelFilter::Error,
        "LOG_NOTICE" | "LOG_INFO" => LevelFilter::Info,
        "LOG_DEBUG" => LevelFilter::Debug,
        "LOG_DEBUG1" | "LOG_DEBUG2" | "LOG_DEBUG3" => LevelFilter::Trace,
        _ => LevelFilter::Warn,
    }
}

/// Starts the log of this process. Without LSF_LOGDIR and without syslog, to stderr. `owner`: the
/// user who opens the file, where that is not this process's.
pub fn start(
    lsf: &LsfConf,
    name: &'static str,
    host: &str,
    owner: Option<&User>,
) -> io::Result<LogHandle> {
    let handle = LogHandle::default();
    let mut denied = None;
    let (sink, syslog): (Box<dyn Write + Send>, bool) = match lsf.logdir() {
        Some(dir) => {
            let path = PathBuf::from(dir).join(format!("{name}.log.{host}"));
            match LogFile::open(path.clone(), lsf.log_maxsize(), handle.clone(), owner.cloned()) {
                Ok(file) => (Box::new(file), false),
                // shared file systems deny root, and what others can spoil stops no daemon
                Err(e) if spoilt(&e, owner) || of_another(&path) => {
                    denied = Some(e);
                    elsewhere()
                }
                Err(e) => return Err(e),
            }
        }
        None => elsewhere(),
    };
    env_logger::Builder::new()
        .filter_level(LevelFilter::Trace)
        .target(env_logger::Target::Pipe(Box::new(panic_log::Sink(sink))))
        .format(move |buf, record| {
            let text = one_line(&record.args().to_string());
            if syslog {
                let pri = FACILITY | severity(record.level());
                return write!(buf, "<{pri}>{name}[{}]: {text}", std::process::id());
            }
            let time = humantime::format_rfc3339_millis(std::time::SystemTime::now());
            let (pid, level) = (std::process::id(), record.level());
            writeln!(buf, "{time} {name}[{pid}] {level:5} {text}")
        })
        .try_init()
        .map_err(io::Error::other)?;
    panic_log::install();
    USUAL.store(level(lsf.log_mask()) as usize, Ordering::Relaxed);
    verbose(0);
    if let Some(e) = denied {
        log::warn!("LSF_LOGDIR cannot be written, this log is here: {}", words(&e));
    }
    Ok(handle)
}

/// Whether a launcher of root's goes on without its file.
fn spoilt(e: &io::Error, owner: Option<&User>) -> bool {
    let denied = crate::sys::euid() == 0 && e.kind() == ErrorKind::PermissionDenied;
    owner.is_some() || denied
}

/// Another user has put a file in the place of a log, as is possible in a directory that all may
/// write.
fn of_another(path: &Path) -> bool {
    let own = |m: std::fs::Metadata| files::own(&m, crate::sys::euid()).is_ok();
    path.symlink_metadata().is_ok_and(|m| !own(m))
}

/// The sink of a daemon without a log file: syslog, else stderr.
fn elsewhere() -> (Box<dyn Write + Send>, bool) {
    match Syslog::open() {
        Ok(sink) => (Box::new(sink), true),
        Err(_) => (Box::new(io::stderr()), false),
    }
}

fn severity(level: log::Level) -> u8 {
    match level {
        log::Level::Error => 3,
        log::Level::Warn => 4,
        log::Level::Info => 6,
        log::Level::Debug | log::Level::Trace => 7,
    }
}

/// The text without control characters, of a bounded length.
fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if out.len() >= MAX_LINE {
            out.push_str("...");
            break;
        }
        match c {
            '\t' => out.push(' '),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// A file that turns itself over to `.old`.
struct LogFile {
    /// The path that is used without -f of limdebug and its like.
    usual: PathBuf,
    path: PathBuf,
    file: File,
    size: u64,
    max: u64,
    handle: LogHandle,
    /// The process that opens files, where that is not this one.
    owner: Option<User>,
}

impl LogFile {
    fn open(path: PathBuf, max: u64, handle: LogHandle, owner: Option<User>) -> io::Result<Self> {
        let (file, size) = open_log(&path, owner.as_ref(), false)?;
        Ok(LogFile { usual: path.clone(), path, file, size, max, handle, owner })
    }

    /// Goes on in the file that was asked for; where that cannot be, in this one.
    fn turn_aside(&mut self) {
        let Ok(Some(name)) = ASIDE.lock().map(|mut aside| aside.take()) else { return };
        let own = self.usual.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = match name.is_empty() {
            true => self.usual.clone(),
            // joining keeps a name that begins with a directory as it is
            false => self.usual.with_file_name("").join(format!("{name}.{own}")),
        };
        if let Ok((file, size)) = open_log(&path, self.owner.as_ref(), false) {
            (self.path, self.file, self.size) = (path, file, size);
        }
    }

    /// Begins a new file. If that fails, the old file goes on growing for another period: a long
    /// log is better than no words about the failure.
    fn turn_over(&mut self) {
        match open_log(&self.path, self.owner.as_ref(), true) {
            Ok((file, size)) => (self.file, self.size) = (file, size),
            Err(_) => self.size = 0,
        }
    }
}

/// Opens a log and tells its size; `anew`: after the one that is there was renamed to `.old`.
fn open_log(path: &Path, owner: Option<&User>, anew: bool) -> io::Result<(File, u64)> {
    let own = || {
        if anew {
            let mut old = path.as_os_str().to_owned();
            old.push(".old");
            std::fs::rename(path, old)?;
        }
        files::append(path, LOG_MODE)
    };
    let opened = owner.map_or_else(own, |user| delegate::open_log(user, path, anew));
    let named =
        |e: io::Error| io::Error::new(e.kind(), format!("{}: {}", path.display(), words(&e)));
    let file = opened.map_err(named)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

impl Write for LogFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if MOVES.swap(false, Ordering::Relaxed) {
            self.turn_aside();
        }
        if self.handle.0.swap(false, Ordering::Relaxed)
            && let Ok((file, size)) = open_log(&self.path, self.owner.as_ref(), false)
        {
            (self.file, self.size) = (file, size);
        }
        if self.size > 0 && self.size + buf.len() as u64 > self.max {
            self.turn_over();
        }
        self.file.write_all(buf)?;
        self.size += buf.len() as u64;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Datagrams to /dev/log; opened again when syslog was restarted.
struct Syslog(UnixDatagram);

impl Syslog {
    fn open() -> io::Result<Self> {
        let sock = UnixDatagram::unbound()?;
        sock.connect(DEV_LOG)?;
        sock.set_nonblocking(true)?;
        Ok(Syslog(sock))
    }
}

impl Write for Syslog {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.0.send(buf).is_err()
            && let Ok(again) = Syslog::open()
        {
            *self = again;
            // A line that syslog does not take is lost; the daemon goes on.
            let _ = self.0.send(buf);
        }
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_mask_sets_the_level() {
        assert_eq!(level("LOG_ERR"), LevelFilter::Error);
        assert_eq!(level("LOG_WARNING"), LevelFilter::Warn);
        assert_eq!(level("log_info"), LevelFilter::Info);
        assert_eq!(level("LOG_DEBUG"), LevelFilter::Debug);
        assert_eq!(level("LOG_DEBUG2"), LevelFilter::Trace);
        assert_eq!(level("nonsense"), LevelFilter::Warn);
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(one_line("a\nb\x1b[2J\tc"), "a\\nb\\u{1b}[2J c");
        assert!(one_line(&"x".repeat(100_000)).len() < MAX_LINE + 8);
    }

    #[test]
    fn notes_go_to_files_alone_and_never_wait() {
        let dir = std::env::temp_dir().join(format!("lsf-notes-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let at = |name: &str| dir.join(name).to_string_lossy().into_owned();
        note(&at("file"), "a\n");
        note(&at("file"), "b\n");
        assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "a\nb\n");
        let fifo = at("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        // nobody reads; then somebody does, and gets nothing
        note(&fifo, "c\n");
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let mut how = File::options();
        how.read(true);
        let mut reader =
            std::os::unix::fs::OpenOptionsExt::custom_flags(&mut how, flags).open(&fifo).unwrap();
        note(&fifo, "d\n");
        let mut got = Vec::new();
        let _ = std::io::Read::read_to_end(&mut reader, &mut got);
        assert_eq!(got, b"");
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        note(&at("link"), "e\n");
        assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "a\nb\n");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_file_is_capped_and_reopened() {
        let dir = std::env::temp_dir().join(format!("lsf-logging-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("lim.log.h");
        let handle = LogHandle::default();
        let mut log = LogFile::open(path.clone(), 100, handle.clone(), None).unwrap();
        for n in 0..30 {
            writeln!(log, "line {n:03}").unwrap();
        }
        let size = |p: &PathBuf| std::fs::metadata(p).map(|m| m.len()).unwrap();
        assert!(size(&path) <= 100 && size(&dir.join("lim.log.h.old")) <= 100);
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("line 029\n"));
        std::fs::rename(&path, dir.join("moved")).unwrap();
        handle.reopen();
        writeln!(log, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
