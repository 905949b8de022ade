//! lsmake: the site's GNU make, whose recipes run on other hosts. See lsmake(1).
//!
//! make is given a shell of ours ([`shell`], a link in a directory of this run), which takes a free
//! slot (a locked file) and runs its line at the slot's host through res. A line that calls make
//! again runs here, so that it shares the job server. Variables that make expands for each line
//! name its target and the prerequisites of that.

use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::lim::Cluster;
use lsf::cli::links::own_binary;
use lsf::cli::load;
use lsf::cli::remote::{self, How, LSF_ERROR, WaitStatus};
use lsf::cli::site::LocalSite;
use lsf::cli::{place, site, version};
use lsf::errln;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

const USAGE: &str = "Usage: lsmake [-m \"host_name [num_cores] ...\" | [-R res_req] \
                     [-j max_cores]] \
                     [-a seconds] [-c num_tasks] [-F res_req] [-P minutes] [-x num_retries] [-A] \
                     [-E] [-G debug_level] [-M] [-T] [-u] [-v] [-V] [-y] [make options] \
                     [target ...]";
/// The directory of this run; whether to say hosts; tries again; seconds for the file system;
/// whether to tag output; the make that is not waited for.
const VARS: [&str; 6] = [
    "LSF_MAKE_DIR",
    "LSF_MAKE_VERBOSE",
    "LSF_MAKE_RETRIES",
    "LSF_MAKE_DELAY",
    "LSF_MAKE_TAG",
    "LSF_MAKE_ALL",
];
/// The target of the current line, and the first of its prerequisites.
const TARGET: [(&str, &str); 2] =
    [("LSF_MAKE_TARGET", "$@"), ("LSF_MAKE_NEEDS", "$(wordlist 1,200,$^)")];
/// Most slots.
const SLOTS_MAX: usize = 1024;
/// Seconds that a shared file system has to tell other hosts of a file.
const DELAY: f64 = 1.0;
/// How often a slot that is not to be had is asked for again, and the load looked at.
const LOOK: Duration = Duration::from_millis(100);
const WATCH: Duration = Duration::from_secs(1);
/// Options of make whose next word is their value.
const VALUES: [&str; 7] = ["-C", "-f", "-I", "-l", "-o", "-W", "-O"];

#[derive(Default)]
struct Options {
    verbose: bool,
    /// A host once for each core.
    hosts: Vec<String>,
    res_req: Option<String>,
    server_req: Option<String>,
    cores: Option<usize>,
    tasks: usize,
    minutes: Option<f64>,
    retries: u32,
    delay: f64,
    tag: bool,
    all: bool,
    data: bool,
    summary: bool,
    make: Vec<OsString>,
}

fn read(args: &[OsString]) -> Result<Options, String> {
    let mut o = Options { tasks: 1, delay: DELAY, ..Options::default() };
    let mut args = args.iter();
    while let Some(word) = args.next() {
        let text = word.to_string_lossy();
        let mut value = || {
            let next = args.next().map(|w| w.to_string_lossy().into_owned());
            next.ok_or_else(|| format!("{text}: a value is needed"))
        };
        let cores = |text: &str| {
            let n = text.parse().ok().filter(|n| (1..=SLOTS_MAX).contains(n));
            n.ok_or_else(|| "-j requires a number".to_owned())
        };
        match &*text {
            "-v" | "-V" => o.verbose = true,
            "-m" => o.hosts = cores_of(&value()?)?,
            "-R" => o.res_req = Some(value()?),
            "-F" => o.server_req = Some(value()?),
            "-x" => o.retries = value()?.parse().map_err(|_| "-x requires a number")?,
            "-a" => o.delay = seconds(&value()?).ok_or("-a wants seconds")?,
            "-P" => o.minutes = Some(seconds(&value()?).ok_or("-P wants minutes")?),
            "-c" => {
                let n = value()?.parse().ok().filter(|n| (1..=SLOTS_MAX).contains(n));
                o.tasks = n.ok_or("-c requires a number")?;
            }
            "-j" => o.cores = Some(cores(&value()?)?),
            "-T" => o.tag = true,
            "-M" => o.all = true,
            "-u" => o.data = true,
            "-y" => o.summary = true,
            // the environment goes with every line; lines are sent whatever they are
            "-E" | "-A" | "--no-block-shell-mode" => {}
            "-G" => drop(value()?),
            _ if text.strip_prefix("-j").is_some_and(|n| n.parse::<usize>().is_ok()) => {
                o.cores = Some(cores(&text[2..])?);
            }
            _ => {
                o.make.push(word.clone());
                if VALUES.contains(&&*text) {
                    o.make.extend(args.next().cloned());
                }
            }
        }
    }
    match o.hosts.is_empty() || o.cores.is_none() && o.res_req.is_none() {
        true => Ok(o),
        false => Err("-m cannot be combined with -R or -j".into()),
    }
}

fn seconds(text: &str) -> Option<f64> {
    text.parse().ok().filter(|s| (0.0..1e6).contains(s))
}

/// `host [cores] ...`: each host as often as it has cores to use.
fn cores_of(text: &str) -> Result<Vec<String>, String> {
    let mut hosts: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match (word.parse::<usize>(), hosts.last().cloned()) {
            (Ok(n), Some(last)) if (1..=SLOTS_MAX).contains(&n) => {
                hosts.extend(std::iter::repeat_n(last, n - 1));
            }
            (Ok(_), _) => return Err(format!("-m: {word}: a number of cores follows a host")),
            _ => hosts.push(word.to_owned()),
        }
    }
    hosts.truncate(SLOTS_MAX);
    Ok(hosts)
}

pub fn run(ctx: &mut Ctx) -> i32 {
    match ctx.words().as_slice() {
        [first, ..] if first == "-h" => {
            errln!(ctx, "{USAGE}");
            return 0;
        }
        // as every command; among others it is verbose
        [only] if only == "-V" => {
            errln!(ctx, "{}", version::line());
            return 0;
        }
        _ => {}
    }
    let done = read(&ctx.args).and_then(|o| {
        ctx.flush();
        let dir = own_directory("lsmake")?;
        let code = make(ctx, &o, &dir);
        let _ = std::fs::remove_dir_all(&dir);
        code
    });
    done.unwrap_or_else(|why| {
        errln!(ctx, "lsmake: {why}");
        FAIL
    })
}

/// The hosts, one for each slot.
fn slots_of(o: &Options) -> Result<Vec<String>, String> {
    let each = |hosts: Vec<String>| {
        let each = |h: String| std::iter::repeat_n(h, o.tasks);
        hosts.into_iter().flat_map(each).take(SLOTS_MAX).collect()
    };
    if !o.hosts.is_empty() {
        return Ok(each(o.hosts.clone()));
    }
    let mut cluster = Cluster::open()?;
    let local = cluster.local_host().to_owned();
    if o.cores.is_none() && o.res_req.is_none() {
        return Ok(each(vec![local]));
    }
    let mut found = place::eligible(&mut cluster, &[], o.res_req.as_deref())?;
    // this host is always one of them where it may be
    if let Some(at) = found.iter().position(|h| *h == local) {
        found[..=at].rotate_right(1);
    }
    if found.is_empty() {
        return Err(place::TOO_FEW.into());
    }
    let found = place::processors(&mut cluster, found)?;
    let some = place::rounds(&found, o.cores.unwrap_or(1));
    Ok(each(some))
}

fn make(ctx: &mut Ctx, o: &Options, dir: &Path) -> Result<i32, String> {
    let hosts = slots_of(o)?;
    let words = |e: std::io::Error| lsf::sys::words(&e);
    let shell = dir.join("lsmakesh");
    symlink(own_binary()?, &shell).map_err(words)?;
    put(dir, "hosts", &hosts.join("\n"))?;
    if o.server_req.as_ref().is_some_and(|req| overloaded(&file_server(), req)) {
        // from the first line on
        put(dir, "limit", "1")?;
    }
    let began = Instant::now();
    let mut child = begin(o, dir, &shell, hosts.len())?;
    let status = match watch(o, dir, &mut child, hosts.len()) {
        Ok(status) => status,
        Err(why) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(why);
        }
    };
    if o.summary {
        let log = std::fs::read_to_string(dir.join("log")).unwrap_or_default();
        let mut names: Vec<&str> = log.lines().collect();
        names.sort_unstable();
        let tasks = names.len();
        let count = |h: &str| format!("{h} {}", names.iter().filter(|n| **n == h).count());
        let mut each: Vec<String> = names.iter().map(|h| count(h)).collect();
        each.dedup();
        let secs = began.elapsed().as_secs_f64();
        errln!(ctx, "lsmake: {tasks} tasks in {secs:.1} s: {}", each.join(", "));
    }
    Ok(status)
}

fn put(dir: &Path, name: &str, text: &str) -> Result<(), String> {
    let new = dir.join(format!("{name}.new"));
    let done = std::fs::write(&new, text).and_then(|()| std::fs::rename(new, dir.join(name)));
    done.map_err(|e| format!("{}: {}", dir.display(), lsf::sys::words(&e)))
}

fn begin(o: &Options, dir: &Path, shell: &Path, slots: usize) -> Result<Child, String> {
    for name in ["gmake", "make"] {
        let mut c = Command::new(name);
        c.arg(format!("-j{slots}")).args(&o.make).arg(format!("SHELL={}", shell.display()));
        c.args(TARGET.map(|(var, value)| format!("{var}={value}")));
        let yes = |on: bool| if on { "y".to_owned() } else { String::new() };
        let values = [
            dir.to_string_lossy().into_owned(),
            yes(o.verbose),
            o.retries.to_string(),
            o.delay.to_string(),
            yes(o.tag),
            yes(o.all),
        ];
        match c.envs(VARS.iter().zip(values)).spawn() {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            done => return done.map_err(|e| format!("{name}: {}", lsf::sys::words(&e))),
        }
    }
    Err("GNU make is not installed (Debian: package make)".into())
}

/// Waits for make; meanwhile it counts tasks (-u), looks at the file server (-F) and chooses the
/// hosts anew (-P).
fn watch(o: &Options, dir: &Path, child: &mut Child, slots: usize) -> Result<i32, String> {
    let code = |s: std::process::ExitStatus| s.code().unwrap_or(128 + s.signal().unwrap_or(0));
    let idle = !o.data && o.server_req.is_none() && o.minutes.is_none();
    if idle {
        return child.wait().map(code).map_err(|e| lsf::sys::words(&e));
    }
    let mut data = match o.data {
        true => Some(File::create("lsmake.dat").map_err(|e| lsf::sys::words(&e))?),
        false => None,
    };
    let server = file_server();
    let mut limit = if dir.join("limit").exists() { 1 } else { slots };
    let mut chosen = Instant::now();
    for second in 0u64.. {
        if let Some(file) = &mut data {
            let running = std::fs::read_dir(dir).map_or(0, |all| {
                let is_run =
                    |e: &std::fs::DirEntry| e.file_name().to_string_lossy().starts_with("run.");
                all.flatten().filter(is_run).count()
            });
            let _ = writeln!(file, "{second} {running}");
        }
        if let Some(req) = &o.server_req {
            let now = if overloaded(&server, req) { limit / 2 } else { limit * 2 };
            limit = now.clamp(1, slots);
            put(dir, "limit", &limit.to_string())?;
        }
        if o.minutes.is_some_and(|m| chosen.elapsed().as_secs_f64() >= 60.0 * m) {
            // what was chosen stays where nothing can be asked
            if let Ok(hosts) = slots_of(o) {
                put(dir, "hosts", &hosts.join("\n"))?;
            }
            chosen = Instant::now();
        }
        let until = Instant::now() + WATCH;
        while Instant::now() < until {
            if let Some(status) = child.try_wait().map_err(|e| lsf::sys::words(&e))? {
                return Ok(code(status));
            }
            std::thread::sleep(LOOK);
        }
    }
    Ok(FAIL)
}

/// The host whose disk this directory is on; empty: this one.
fn file_server() -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let text = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let rows = text.lines().filter_map(|l| {
        let mut words = l.split(' ');
        let (from, at) = (words.next()?, words.next()?);
        here.starts_with(at).then_some((at.len(), from))
    });
    let from = rows.max_by_key(|r| r.0).map_or("", |r| r.1);
    from.split_once(':').map(|(host, _)| host.to_owned()).unwrap_or_default()
}

/// Whether the file server fails the requirement; one that is not of the cluster never does.
fn overloaded(server: &str, req: &str) -> bool {
    let asked = || {
        let mut cluster = Cluster::open()?;
        let name = match server {
            "" => cluster.local_host().to_owned(),
            name => name.to_owned(),
        };
        let mut hosts = cluster.hosts(&[name])?;
        load::choose(&mut hosts, Some(req), &cluster.base(), false)?;
        Ok::<bool, String>(hosts.is_empty())
    };
    asked().unwrap_or(false)
}

/// A new directory that is the caller's alone.
pub fn own_directory(name: &str) -> Result<PathBuf, String> {
    let n = lsf::sys::random::<8>().map_err(|e| lsf::sys::words(&e))?;
    let dir = std::env::temp_dir().join(format!("{name}.{:016x}", u64::from_ne_bytes(n)));
    let made = DirBuilder::new().mode(0o700).create(&dir);
    made.map_err(|e| format!("{}: {}", dir.display(), lsf::sys::words(&e)))?;
    Ok(dir)
}

/// One line of a recipe.
struct Line {
    dir: PathBuf,
    argv: Vec<OsString>,
    verbose: bool,
    tag: bool,
    delay: f64,
    site: LocalSite,
}

/// The shell that make calls, as `lsmakesh -c LINE`.
pub fn shell(ctx: &mut Ctx) -> i32 {
    let [dir, verbose, retries, delay, tag, all] =
        VARS.map(|v| std::env::var(v).unwrap_or_default());
    let words = ctx.words();
    let calls_make = |line: &String| {
        let mut words = line.split_whitespace().map(|w| w.rsplit('/').next().unwrap_or(w));
        words.any(|w| w == "make" || w == "gmake")
    };
    let argv: Vec<OsString> =
        [OsString::from("/bin/sh")].into_iter().chain(ctx.args.clone()).collect();
    let dir = PathBuf::from(dir);
    let site = match site::find() {
        Ok(site) if !words.iter().any(calls_make) => site,
        _ => {
            // makes of one level come one after the other; the lock goes with the process
            let level = std::env::var("MAKELEVEL").unwrap_or_default();
            let held = File::create(dir.join(format!("make.{level}"))).ok();
            if let Some(file) = held.filter(|_| all.is_empty()) {
                let _ = flock(&file, FlockOperation::LockExclusive);
                // over the exec, and so for as long as the other make
                let _ = rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty());
                std::mem::forget(file);
            }
            let e = Command::new(&argv[0]).args(&argv[1..]).exec();
            errln!(ctx, "lsmake: /bin/sh: {}", lsf::sys::words(&e));
            return FAIL;
        }
    };
    let verbose = verbose == "y";
    let line =
        Line { dir, argv, verbose, tag: tag == "y", delay: delay.parse().unwrap_or(0.0), site };
    let run = File::create(line.dir.join(format!("run.{}", std::process::id())));
    let code = line.tries(ctx, retries.parse().unwrap_or(0));
    drop(run);
    let _ = std::fs::remove_file(line.dir.join(format!("run.{}", std::process::id())));
    match code {
        Ok(ended) => remote::end(ended),
        Err(why) => {
            errln!(ctx, "lsmake: {why}");
            LSF_ERROR
        }
    }
}

impl Line {
    /// Runs the line, and again while it fails and may: each pause is twice the one before.
    fn tries(&self, ctx: &mut Ctx, retries: u32) -> Result<WaitStatus, String> {
        let mut pause = if self.delay > 0.0 { self.delay } else { DELAY };
        let mut ended = self.once(ctx)?;
        for _ in 0..retries {
            if ended == Some(0) {
                break;
            }
            std::thread::sleep(Duration::from_secs_f64(pause));
            pause *= 2.0;
            ended = self.once(ctx)?;
        }
        Ok(ended)
    }

    /// Runs the line at a host that answers.
    fn once(&self, ctx: &mut Ctx) -> Result<WaitStatus, String> {
        let hosts = std::fs::read_to_string(self.dir.join("hosts")).unwrap_or_default();
        let hosts: Vec<&str> = hosts.lines().collect();
        let near = self.records().into_iter().max().map(|r| r.1).unwrap_or_default();
        let (slot, _held) = self.slot(&hosts, &near);
        let mut last = String::from("no hosts");
        let mut gone: Vec<&str> = Vec::new();
        for n in 0..hosts.len() {
            let host = hosts[(slot + n) % hosts.len()];
            if gone.contains(&host) {
                continue;
            }
            self.settle(host);
            if self.verbose {
                let line = self.argv.last().map(|w| w.to_string_lossy()).unwrap_or_default();
                errln!(ctx, "[{host}] {line}");
            }
            let how = How { name: "lsmake", ..How::default() };
            let task = remote::task(&self.site, &self.argv, &how)?;
            let tags = self.tag.then(|| Tags::new(&self.dir)).transpose();
            let tags = tags.map_err(|e| lsf::sys::words(&e))?;
            let done = remote::run(&self.site, host, task);
            drop(tags);
            match done {
                Ok(ended) => {
                    self.record(host);
                    return Ok(ended);
                }
                Err(e) => {
                    last = format!("{host}: {e:#}");
                    gone.push(host);
                }
            }
        }
        Err(last)
    }

    /// A slot that nobody has, kept while the file is open: at the host `near` where one is free.
    fn slot(&self, hosts: &[&str], near: &str) -> (usize, Option<File>) {
        loop {
            let limit = std::fs::read_to_string(self.dir.join("limit")).ok();
            let limit = limit.and_then(|l| l.parse().ok()).unwrap_or(usize::MAX);
            let all = (0..hosts.len().min(limit)).filter(|n| hosts[*n] == near);
            let rest = (0..hosts.len().min(limit)).filter(|n| hosts[*n] != near);
            for n in all.chain(rest) {
                let Ok(file) = File::create(self.dir.join(format!("slot.{n}"))) else { continue };
                if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                    return (n, Some(file));
                }
            }
            // $(shell) goes beside make's own count
            if limit == usize::MAX {
                return (0, None);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Time and host of the last work on this target and its prerequisites, in seconds.
    fn records(&self) -> Vec<(u64, String)> {
        let vars = TARGET.map(|(var, _)| std::env::var(var).unwrap_or_default());
        let names = vars.iter().flat_map(|v| v.split_whitespace());
        let read = |name: &str| {
            let path = self.record_of(name);
            let at = std::fs::metadata(&path).and_then(|m| m.modified()).ok()?;
            let at = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            Some((at.as_millis() as u64, std::fs::read_to_string(path).ok()?))
        };
        names.filter_map(read).collect()
    }

    fn record_of(&self, target: &str) -> PathBuf {
        let here = std::env::current_dir().unwrap_or_default().join(target);
        let name: Vec<u8> = here.to_string_lossy().bytes().collect();
        let key = lsf::proto::frame::MacKey::new(b"target").of_fields(&[&name]);
        let key: String = key[..12].iter().map(|b| format!("{b:02x}")).collect();
        self.dir.join(format!("t.{key}"))
    }

    fn record(&self, host: &str) {
        let target = std::env::var(TARGET[0].0).unwrap_or_default();
        // without it the next one waits for nothing
        let _ = std::fs::write(self.record_of(&target), host);
        let log = File::options().append(true).create(true).open(self.dir.join("log"));
        let _ = log.and_then(|mut f| f.write_all(format!("{host}\n").as_bytes()));
    }

    /// Waits until what was made elsewhere is seen at this host.
    fn settle(&self, host: &str) {
        let others = self.records().into_iter().filter(|r| r.1 != host).map(|r| r.0).max();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let Some(at) = others else { return };
        let due = Duration::from_millis(at) + Duration::from_secs_f64(self.delay);
        std::thread::sleep(due.saturating_sub(now));
    }
}

/// Standard output and error by way of threads that put the task's number before each line.
struct Tags {
    own: [std::os::fd::OwnedFd; 2],
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Tags {
    fn new(dir: &Path) -> std::io::Result<Tags> {
        use rustix::stdio::{dup2_stderr, dup2_stdout, stderr, stdout};
        let id = number(dir)?;
        let own = [stdout().try_clone_to_owned()?, stderr().try_clone_to_owned()?];
        let mut threads = Vec::new();
        type Redirect = fn(&std::os::fd::OwnedFd) -> rustix::io::Result<()>;
        let set: [Redirect; 2] = [|fd| dup2_stdout(fd), |fd| dup2_stderr(fd)];
        for (fd, set) in own.iter().zip(set) {
            let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            set(&write)?;
            let mut to = File::from(fd.try_clone()?);
            threads.push(std::thread::spawn(move || {
                let mut from = BufReader::new(File::from(read));
                let mut line = Vec::new();
                while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                    let tagged = [format!("[{id}] ").as_bytes(), &line].concat();
                    let _ = to.write_all(&tagged);
                    line.clear();
                }
            }));
        }
        Ok(Tags { own, threads })
    }
}

impl Drop for Tags {
    fn drop(&mut self) {
        let _ = rustix::stdio::dup2_stdout(&self.own[0]);
        let _ = rustix::stdio::dup2_stderr(&self.own[1]);
        self.threads.drain(..).for_each(|t| drop(t.join()));
    }
}

/// The next task's number.
fn number(dir: &Path) -> std::io::Result<u64> {
    let mut how = File::options();
    let mut file = how.read(true).append(true).create(true).open(dir.join("tasks"))?;
    flock(&file, FlockOperation::LockExclusive)?;
    let mut all = Vec::new();
    file.read_to_end(&mut all)?;
    file.write_all(b".")?;
    Ok(all.len() as u64 + 1)
}
