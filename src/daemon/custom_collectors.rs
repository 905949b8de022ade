//! The custom collectors of ccollect: programs of the site, each a process group of its own.
//!
//! Invariants: a program that another user could have exchanged is not started; nothing of them is
//! left when ccollect ends, and a ccollect that follows one that was killed ends what that one
//! left.

use super::boot::Boot;
use super::driver::Remote;
use super::members;
use crate::proto::Input;
use crate::proto::collect::CollectorInput;
use crate::proto::nlb::NlbInput;
use crate::sys::child::{self, Given, Io};
use crate::sys::procs::Proc;
use crate::sys::{files, words};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long programs may take to end: less than the launcher gives ccollect.
const END_WAIT: Duration = Duration::from_secs(4);
/// The pause between two looks at programs that are to end.
const LOOK: Duration = Duration::from_millis(20);
/// Longest line of a program that is logged, bytes.
const LINE_MAX: u64 = 1_024;
/// Most lines of one output of a program that are logged in [`LINES_IN`].
const LINES_MAX: u32 = 20;
const LINES_IN: Duration = Duration::from_secs(10);
/// The pause before more of what is not logged is read: a program that writes without end must not
/// keep a processor busy.
const FLOOD_PAUSE: Duration = Duration::from_millis(10);
/// Read at once of what is not logged, bytes.
const FLOOD_CHUNK: u64 = 64 << 10;
/// Largest record of what runs, bytes.
const RECORD_MAX: usize = 64 << 10;

/// Programs that run, by their numbers.
type Running = Arc<Mutex<BTreeMap<usize, Proc>>>;

/// The custom collectors of this host.
pub struct CustomCollectors {
    list: Vec<Vec<String>>,
    bin: PathBuf,
    spool: PathBuf,
    env: Vec<(&'static str, String)>,
    root: bool,
    /// The record of what runs, for a ccollect that follows.
    record: PathBuf,
    running: Running,
}

impl CustomCollectors {
    /// Programs with their words; relative names start in the first directory, and all run in
    /// the second.
    pub fn new(boot: &Boot, list: Vec<Vec<String>>, (bin, spool): (&str, &str)) -> Self {
        CustomCollectors {
            list,
            bin: PathBuf::from(bin),
            spool: PathBuf::from(spool),
            env: boot.named(),
            root: crate::sys::euid() == 0 && !boot.conf.lsf.personal(),
            record: boot.site.rundir().join("authd/ccollect.programs"),
            running: Arc::default(),
        }
    }

    /// Starts one; what is to be said instead if it does not run.
    pub fn start(&self, program: usize, remote: Remote) -> Option<CollectorInput> {
        let told = |why: String| CollectorInput::NotStarted { program, why };
        let Some(all) = self.list.get(program) else { return Some(told("unknown".to_owned())) };
        let Some((name, args)) = all.split_first() else {
            return Some(told("no program".to_owned()));
        };
        let path = self.bin.join(name);
        let file = match std::fs::metadata(&path) {
            Ok(meta) => meta.is_file() && meta.permissions().mode() & 0o111 == 0,
            Err(e) => return Some(told(words(&e))),
        };
        if file {
            return Some(CollectorInput::File { program, path: path.display().to_string() });
        }
        let started = self.checked(&path).and_then(|path| self.spawn(&path, args));
        match started {
            Ok(child) => {
                self.keep(program, child.pid());
                let (name, running) = (name.clone(), self.running.clone());
                let record = self.record.clone();
                std::thread::spawn(move || {
                    watch(child, program, &name, &running, &record, &remote)
                });
                None
            }
            Err(e) => Some(told(words(&e))),
        }
    }

    /// The program's file, which no other user can exchange.
    fn checked(&self, path: &Path) -> io::Result<PathBuf> {
        if self.root {
            return Err(io::Error::other("custom collectors are not run as root"));
        }
        let path = path.canonicalize()?;
        files::only(&path, &[0, crate::sys::euid()])?;
        Ok(path)
    }

    fn spawn(&self, path: &Path, args: &[String]) -> io::Result<child::Child> {
        std::fs::create_dir_all(&self.spool)?;
        let mut command = Command::new(path);
        command.args(args).current_dir(&self.spool).envs(self.env.iter().cloned());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        child::start(
            &command,
            Given { env: false, group: true, stdio: [Io::Null, Io::Pipe, Io::Pipe] },
        )
    }

    fn keep(&self, program: usize, pid: Pid) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(program, Proc::child(pid.as_raw_nonzero().get() as u32));
        write_record(&self.record, &running);
    }

    /// Ends what a ccollect that was killed has left running.
    pub fn end_those_before(&self) {
        let own = crate::sys::euid();
        let text = match files::read_own(&self.record, own, RECORD_MAX) {
            Ok(text) => text.unwrap_or_default(),
            Err(why) => return log::warn!("{}: {why}", self.record.display()),
        };
        for line in text.lines() {
            let mut numbers = line.split(' ').map(str::parse::<u64>);
            let (Some(Ok(pid)), Some(Ok(ticks))) = (numbers.next(), numbers.next()) else {
                continue;
            };
            let Ok(pid) = u32::try_from(pid) else { continue };
            if (Proc { pid, ticks }).alive() {
                log::warn!("custom collector {pid} of an earlier ccollect is ended");
                end_group(pid, Signal::KILL);
            }
        }
    }

    /// Ends all of them, group and all.
    pub fn stop(&self) {
        let left = || {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.values().map(|p| p.pid).collect::<Vec<u32>>()
        };
        let pids = left();
        pids.iter().for_each(|pid| end_group(*pid, Signal::TERM));
        let until = Instant::now() + END_WAIT;
        while !left().is_empty() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        left().into_iter().for_each(|pid| end_group(pid, Signal::KILL));
    }
}

/// A group that is empty by now needs no signal.
fn end_group(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, signal);
    }
}

fn write_record(path: &Path, running: &BTreeMap<usize, Proc>) {
    let lines = running.values().map(|p| format!("{} {}\n", p.pid, p.ticks));
    if let Err(e) = members::replace(path, &lines.collect::<String>()) {
        log::warn!("{e}");
    }
}

/// Logs the output of a program and waits for its end.
fn watch(
    mut child: child::Child,
    program: usize,
    name: &str,
    running: &Running,
    record: &Path,
    remote: &Remote,
) {
    let outputs = [child.from.take(), child.errors.take()].into_iter().flatten();
    for output in outputs {
        let name = name.to_owned();
        std::thread::spawn(move || log_lines(&output, &name));
    }
    let ended = child.wait();
    {
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = running.remove(&program) {
            // what it has left behind in its group
            end_group(own.pid, Signal::KILL);
        }
        write_record(record, &running);
    }
    let how = ended.map_or_else(|e| words(&e), how_ended);
    remote.input(Input::Nlb(NlbInput::Collector(CollectorInput::Ended { program, how })));
}

fn how_ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Logs the lines of an output, a bounded number in a time.
fn log_lines(output: &File, name: &str) {
    let mut from = BufReader::new(output);
    let (mut began, mut count, mut line) = (Instant::now(), 0, Vec::new());
    loop {
        if began.elapsed() >= LINES_IN {
            (began, count) = (Instant::now(), 0);
        }
        if count > LINES_MAX {
            std::thread::sleep(FLOOD_PAUSE);
            let mut chunk = from.by_ref().take(FLOOD_CHUNK);
            match io::copy(&mut chunk, &mut io::sink()) {
                Ok(1..) => continue,
                _ => return,
            }
        }
        line.clear();
        match from.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => return,
        }
        count += 1;
        match count > LINES_MAX {
            true => log::warn!("{name} says more than {LINES_MAX} lines: not logged"),
            false => log::info!("{name} says: {}", String::from_utf8_lossy(&line).trim_end()),
        }
    }
}
