//! A panic of a daemon: its message, its place and the functions that led to it go to the daemon's
//! log (lsf.conf(5), LSF_LOGDIR), then to stderr as everywhere. The shipped file aborts after it.
//!
//! The names come from the file's symbol table, the frames from its unwind tables: the Makefile
//! keeps both.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::io::{self, Write};
use std::panic::PanicHookInfo;

/// Frames of a backtrace that are logged.
const MAX_FRAMES: usize = 64;
/// The frames of the panic itself end with this function,
const PANIC_ENTRY: &str = "rust_begin_unwind";
/// and those that start a thread begin with this one.
const THREAD_START: &str = "__rust_begin_short_backtrace";

thread_local! {
    /// This thread is at work in the log's sink.
    static IN_SINK: Cell<bool> = const { Cell::new(false) };
}

/// Has every panic of this process logged.
pub fn install() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // the sink is locked by this very thread: stderr alone is left
        if !IN_SINK.get() {
            log_panic(info);
        }
        before(info);
    }));
}

fn log_panic(info: &PanicHookInfo) {
    let payload = info.payload();
    let message = payload.downcast_ref::<&str>().copied();
    let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let place = info.location().map_or_else(|| "an unknown place".into(), ToString::to_string);
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("without a name");
    log::error!("panic in thread {thread} at {place}: {}", message.unwrap_or("no message"));
    for frame in frames(&Backtrace::force_capture().to_string()) {
        log::error!("{frame}");
    }
}

/// The frames between the start of the thread and the panic, a bounded number; the innermost is
/// the first. Each is one line, with its place where the file has one.
fn frames(trace: &str) -> Vec<String> {
    let mut frames: Vec<String> = Vec::new();
    for line in trace.lines() {
        match frames.last_mut() {
            Some(frame) if line.trim_start().starts_with("at ") => {
                frame.extend([" ", line.trim_start()]);
            }
            _ => frames.push(line.to_owned()),
        }
    }
    let of = |function: &str| frames.iter().position(|frame| frame.contains(function));
    let begin = of(PANIC_ENTRY).map_or(0, |at| at + 1);
    let end = of(THREAD_START).unwrap_or(frames.len()).min(begin + MAX_FRAMES);
    frames.drain(begin.min(end)..end).collect()
}

/// A sink that a panic within it does not enter again.
pub struct Sink(pub Box<dyn Write + Send>);

impl Write for Sink {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        IN_SINK.set(true);
        let wrote = self.0.write(buf);
        IN_SINK.set(false);
        wrote
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::LsfConf;
    use crate::daemon::logging;
    use std::process::{Command, ExitStatus, Stdio};

    /// Names the directory of its log to the process that is to panic.
    const LOGDIR: &str = "LSF_TEST_PANIC_LOGDIR";
    /// Seconds until a process that panics must have ended.
    const PATIENCE: &str = "60";
    /// How `timeout` ends where it had to end its program.
    const TIMED_OUT: i32 = 124;

    #[inline(never)]
    fn function_that_panics() {
        let empty: [u8; 0] = [];
        let index = std::hint::black_box(7);
        std::hint::black_box(empty[index]);
    }

    /// Runs the calling test again in a process of its own, which finds LOGDIR set.
    fn again(dir: &str) -> ExitStatus {
        let name = std::thread::current().name().unwrap().to_owned();
        Command::new("timeout")
            .arg(PATIENCE)
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", &name])
            .env(LOGDIR, dir)
            .env_remove("RUST_BACKTRACE")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap()
    }

    #[test]
    fn panic_of_a_daemon_leaves_message_place_and_trace_in_its_log() {
        if let Ok(dir) = std::env::var(LOGDIR) {
            let mut lsf = LsfConf::default();
            lsf.set("LSF_LOGDIR", &dir);
            logging::start(&lsf, "sbatchd", "hosta", None).unwrap();
            return function_that_panics();
        }
        let dir = std::env::temp_dir().join(format!("lsf-panic-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        assert!(!again(&dir.to_string_lossy()).success());
        let log = std::fs::read_to_string(dir.join("sbatchd.log.hosta")).unwrap();
        let first = log.lines().next().unwrap();
        let message = "the len is 0 but the index is 7";
        for part in ["ERROR panic in thread ", "leaves_message", file!(), message] {
            assert!(first.contains(part), "no {part} in {first}");
        }
        let own = |l: &str| l.contains(" sbatchd[") && l.contains(" ERROR ");
        assert!(log.lines().all(own), "{log}");
        assert!(log.contains("function_that_panics"), "{log}");
        assert!(!log.contains(PANIC_ENTRY), "{log}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn panic_within_the_log_itself_does_not_wait_for_the_log() {
        struct Panics;
        impl Write for Panics {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                panic!("in the sink");
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        if std::env::var_os(LOGDIR).is_some() {
            let pipe = env_logger::Target::Pipe(Box::new(Sink(Box::new(Panics))));
            env_logger::Builder::new().filter_level(log::LevelFilter::Warn).target(pipe).init();
            install();
            return log::error!("a line");
        }
        let status = again("none");
        assert!(!status.success());
        assert_ne!(status.code(), Some(TIMED_OUT));
    }

    #[test]
    fn trace_has_one_bounded_line_for_each_frame_between_thread_and_panic() {
        let trace = "  0: std::backtrace\n  1: __rustc::rust_begin_unwind\n    at ./p.rs:1:2\n  \
                     2: inner\n    at ./a.rs:3:4\n  3: outer\n  \
                     4: std::sys::__rust_begin_short_backtrace\n  5: main\n";
        assert_eq!(frames(trace), ["  2: inner at ./a.rs:3:4", "  3: outer"]);
        assert_eq!(frames("  0: main\n"), ["  0: main"]);
        assert_eq!(frames(&"  1: again\n".repeat(10_000)), vec!["  1: again"; MAX_FRAMES]);
    }
}
