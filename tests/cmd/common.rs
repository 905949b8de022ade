//! The cluster the tests of this program share, and what they do with it.

use crate::rig::{Rig, binary};
use std::cell::Cell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};

pub use crate::rig::{job_id, wait_for};

/// Hosts of the cluster started for the tests.
const HOSTS: usize = 2;

/// The installation whose commands are tested.
pub enum Installation {
    /// A personal cluster of our own.
    Own(Rig),
    /// The commands on PATH.
    Path,
}

/// The output and the exit code of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Said {
    fn from(o: Output) -> Said {
        use std::os::unix::process::ExitStatusExt;
        let code = o.status.code().unwrap_or_else(|| 128 + o.status.signal().unwrap_or(0));
        let text = |b: Vec<u8>| String::from_utf8_lossy(&b).into_owned();
        Said { code, out: text(o.stdout), err: text(o.stderr) }
    }
}

thread_local! {
    /// Do the commands of this thread go to the quiet cluster (tests/cmd/quiet.rs)?
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

pub fn use_quiet_cluster(yes: bool) {
    QUIET.set(yes);
}

/// The site, started by the first test that asks.
pub fn installation() -> &'static Installation {
    static SITE: OnceLock<Installation> = OnceLock::new();
    static QUIET_SITE: OnceLock<Installation> = OnceLock::new();
    let (site, name) = match QUIET.get() {
        false => (&SITE, "cmd"),
        true => (&QUIET_SITE, "quiet"),
    };
    site.get_or_init(|| {
        if std::env::var_os("LSF_TEST_SITE").is_some() {
            return Installation::Path;
        }
        let rig = Rig::up(name, HOSTS);
        rig.application("sim");
        stop_after(&rig);
        rig.ready();
        Installation::Own(rig)
    })
}

/// A static is never dropped: a child stops the cluster when this process is gone, and removes
/// its directory unless a test failed.
fn stop_after(rig: &Rig) {
    let keep = rig.path("keep");
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let _ = std::fs::write(&keep, "");
        hook(info);
    }));
    let script = "while kill -0 $0 2>/dev/null; do sleep 0.2; done; \"$1\" down --dir \"$2\"; \
                  test -e \"$2/keep\" || rm -rf \"$2\"";
    Command::new("/bin/sh")
        .args(["-c", script, &std::process::id().to_string()])
        .arg(binary())
        .arg(&rig.dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
}

/// The cluster of this program. `None`, reported as skipped, where another one is tested.
pub fn own_cluster() -> Option<&'static Rig> {
    match installation() {
        Installation::Own(rig) => Some(rig),
        Installation::Path => {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("cmd");
            crate::rig::skipped(&format!("{test}: it changes the files of its cluster"));
            None
        }
    }
}

/// A command of the site.
pub fn cmd(applet: &str) -> Command {
    match installation() {
        Installation::Own(rig) => rig.cmd(applet),
        Installation::Path => {
            let mut c = Command::new(applet);
            c.stdin(Stdio::null());
            c
        }
    }
}

/// Runs a program with the site's commands on its path, ended after a minute.
pub fn program(words: &[&str]) -> Command {
    let mut c = Command::new("timeout");
    c.args(["-s", "KILL", "60"]).args(words).stdin(Stdio::null());
    if let Installation::Own(rig) = installation() {
        rig.dress(&mut c);
    }
    c
}

pub fn run(applet: &str, args: &[&str]) -> Said {
    cmd(applet).args(args).output().unwrap().into()
}

/// Runs a command that must succeed; its stdout. bhist reads the log, which may be behind what
/// bjobs has shown: what badmin answers comes when all before it is written.
pub fn ok(applet: &str, args: &[&str]) -> String {
    if applet == "bhist" {
        run("badmin", &["showstatus"]);
    }
    let said = run(applet, args);
    assert_eq!(said.code, 0, "{applet} {args:?}: {}{}", said.out, said.err);
    said.out
}

/// Runs a command with something on its standard input.
pub fn feed(mut c: Command, input: &[u8]) -> Said {
    c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = c.spawn().unwrap();
    // A command that refuses its options does not read.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap().into()
}

/// The lines of a table below its heading. There must be some: a loop over none tests nothing.
pub fn rows(table: &str) -> Vec<&str> {
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert!(!rows.is_empty(), "a table without rows: {table:?}");
    rows
}

/// The first words of the rows of a table.
pub fn first_words(table: &str) -> Vec<&str> {
    rows(table).iter().map(|row| row.split_whitespace().next().unwrap_or_default()).collect()
}

/// Submits a job and returns its ID.
pub fn bsub(args: &[&str]) -> String {
    let out = ok("bsub", args);
    job_id(&out).unwrap_or_else(|| panic!("bsub {args:?} said {out:?}")).to_string()
}

/// One -o field of a job; one line an element.
pub fn field(job: &str, name: &str) -> String {
    run("bjobs", &["-noheader", "-o", name, job]).out.trim().to_string()
}

/// Waits until the job, or every element, is in this state.
pub fn until(job: &str, stat: &str) {
    wait_for(&format!("job {job} to be {stat}"), || {
        let now = field(job, "stat");
        !now.is_empty() && now.lines().all(|l| l.trim() == stat)
    });
}

/// Waits until the job has ended; its state.
pub fn end_of(job: &str) -> String {
    let mut last = String::new();
    wait_for(&format!("the end of job {job}"), || {
        last = field(job, "stat");
        !last.is_empty() && last.lines().all(|l| matches!(l.trim(), "DONE" | "EXIT"))
    });
    last
}

/// A directory for one test's files.
pub fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("lsf-cmd-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A directory with the site's lsf.conf and more lines in it, for LSF_ENVDIR. `None`, reported as
/// skipped, where the site is not ours.
pub fn other_envdir(dir: &Path, lines: &str) -> Option<PathBuf> {
    let rig = own_cluster()?;
    let text = rig.read("conf/lsf.conf");
    std::fs::write(dir.join("lsf.conf"), format!("{text}\n{lines}")).unwrap();
    Some(dir.to_path_buf())
}

/// The text of the event log; empty where it is not ours to read.
pub fn event_log() -> String {
    match installation() {
        Installation::Own(rig) => {
            let bytes = std::fs::read(rig.logdir().join("lsb.events")).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        Installation::Path => String::new(),
    }
}

/// Reads the lines of a command as they come.
pub fn lines_of(mut c: Command) -> (Child, Receiver<String>) {
    use std::io::BufRead;
    let mut child = c.stdout(Stdio::piped()).spawn().unwrap();
    let out = child.stdout.take().unwrap();
    let (tx, rx) = channel();
    std::thread::spawn(move || {
        let lines = std::io::BufReader::new(out).lines().map_while(Result::ok);
        lines.for_each(|l| drop(tx.send(l)));
    });
    (child, rx)
}
