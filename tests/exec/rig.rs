//! A real launcher of its own, spoken to as sbatchd does: no other daemon is there (its host is
//! a client, and its authd has no key).

use lsf::model::JobKey;
use lsf::proto::Msg;
use lsf::proto::frame::{Decoder, MAX_FRAME, Session};
use lsf::proto::launch::{
    JobPlan, LaunchMsg, Plan, Ready, Setup, TaskEnd, TaskId, TaskInfo, TaskPlan, TaskStep,
};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longest a test waits for something.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The ordinary user of tests run by root.
pub const NOBODY: u32 = 65_534;

static COUNT: AtomicU32 = AtomicU32::new(0);

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Notes a test that cannot run here.
pub fn skip(name: &str, why: &str) {
    if let Some(file) = std::env::var_os("LSF_TEST_SKIPS")
        && let Ok(mut f) = std::fs::OpenOptions::new().append(true).create(true).open(file)
    {
        writeln!(f, "{name}: {why}").unwrap();
    }
}

pub struct Rig {
    pub dir: PathBuf,
    /// The owner of the cluster.
    pub uid: u32,
    pub user: String,
    pub home: String,
    child: Child,
    link: Option<LauncherSession>,
    /// The message that told both how a task was set up and how it ended.
    both: Option<TaskInfo>,
}

struct LauncherSession {
    sock: UnixStream,
    dec: Decoder,
    session: Session,
}

impl Rig {
    /// A launcher of the caller.
    pub fn new(name: &str) -> Rig {
        Rig::of(name, rustix::process::geteuid().as_raw())
    }

    /// A launcher of `uid`, which needs root where that is another.
    pub fn of(name: &str, uid: u32) -> Rig {
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("lsf-exec-{name}-{}-{n}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let make = |d: &str| std::fs::create_dir_all(dir.join(d)).unwrap();
        ["conf", "run/h1", "log", "work"].into_iter().for_each(make);
        let put = |f: &str, text: String| std::fs::write(dir.join("conf").join(f), text).unwrap();
        let d = dir.display();
        put(
            "lsf.conf",
            format!(
                "LSF_ENVDIR={d}/conf\nLSF_CONFDIR={d}/conf\nLSF_LOGDIR={d}/log\n\
                 LSF_RUNDIR={d}/run\nLSF_KEY_FILE={d}/conf/lsf.key\nLSF_LOG_MASK=LOG_INFO\n\
                 LSF_PERSONAL=Y\nLSF_ALLOW_LOCAL_HOST=Y\nLSF_LOCAL_HOST=h1\n"
            ),
        );
        let shared = "Begin Cluster\nClusterName\nc\nEnd Cluster\nBegin HostType\nTYPENAME\n\
                      DEFAULT\nEnd HostType\nBegin HostModel\nMODELNAME CPUFACTOR\nDEFAULT 1.0\n\
                      End HostModel\n";
        put("lsf.shared", shared.into());
        let cluster = "Begin Host\nHOSTNAME model type server r1m RESOURCES\n\
                       h1 ! ! 0 - ()\nEnd Host\n";
        put("lsf.cluster.c", cluster.into());
        put("hosts", "127.0.0.1 h1\n".into());
        let bin = dir.join("lsf");
        std::fs::copy(env!("CARGO_BIN_EXE_lsf"), &bin).unwrap();
        if uid != rustix::process::geteuid().as_raw() {
            chown(&dir, uid);
        }
        let found = lsf::sys::users::UserDatabase::default().by_uid(uid);
        let user = found.as_ref().map_or("someone".into(), |u| u.name.clone());
        let home = found.map_or("/".into(), |u| u.home);
        let child = spawn(&dir, uid);
        let mut rig = Rig { dir, uid, user, home, child, link: None, both: None };
        rig.connect();
        rig
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Connects anew; returns the tasks that the launcher knows. A launcher that is replaced
    /// meanwhile hangs up; then its successor is asked.
    pub fn connect(&mut self) -> Vec<lsf::proto::launch::TaskInfo> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.connect_once() {
                Ok(tasks) => return tasks,
                Err(e) if Instant::now() > end => panic!("{e}; {}", self.log()),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn connect_once(&mut self) -> std::io::Result<Vec<lsf::proto::launch::TaskInfo>> {
        let sock = UnixStream::connect(self.dir.join("run/h1/launcher.sock"))?;
        let (dec, session) = (Decoder::new(MAX_FRAME), Session::local());
        self.link = Some(LauncherSession { sock, dec, session });
        self.say(LaunchMsg::Hello)?;
        let mut all = Vec::new();
        loop {
            match self.hear()? {
                LaunchMsg::Tasks { tasks, more, .. } => {
                    all.extend(tasks);
                    if !more {
                        return Ok(all);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn ask(&mut self, msg: LaunchMsg) {
        self.say(msg).unwrap();
    }

    fn say(&mut self, msg: LaunchMsg) -> std::io::Result<()> {
        let link = self.link.as_mut().unwrap();
        let mut out = Vec::new();
        link.session.seal_msg(&Msg::Launch(msg), &mut out).unwrap();
        link.sock.write_all(&out)
    }

    pub fn next(&mut self) -> LaunchMsg {
        self.hear().unwrap()
    }

    fn hear(&mut self) -> std::io::Result<LaunchMsg> {
        let link = self.link.as_mut().unwrap();
        link.sock.set_read_timeout(Some(PATIENCE)).unwrap();
        loop {
            if let Some(raw) = link.dec.take().unwrap() {
                match link.session.open_msg(&raw).unwrap() {
                    Msg::Launch(msg) => return Ok(msg),
                    other => panic!("{other:?}"),
                }
            }
            let mut chunk = [0u8; 65_536];
            match link.sock.read(&mut chunk)? {
                0 => return Err(std::io::Error::other("the launcher hung up")),
                n => link.dec.push(&chunk[..n]),
            }
        }
    }

    /// A plan with the defaults of a test.
    pub fn plan(&self, command: &str) -> JobPlan {
        JobPlan {
            job: 1,
            submit_time: 1_000,
            command: command.into(),
            env: "PATH=/usr/bin:/bin\0".into(),
            cwd: self.work().to_str().unwrap().into(),
            home: self.home.as_str().into(),
            out_file: "out".into(),
            umask: 0o022,
            ..JobPlan::default()
        }
    }

    pub fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    pub fn start(&mut self, n: u32, job: JobPlan) -> TaskId {
        let id = TaskId { key: JobKey { job: n, idx: 0, attempt: 1 }, step: TaskStep::Job };
        self.start_as(id, self.uid, TaskPlan::Job(Box::new(job)));
        id
    }

    /// A start and a signal in one write.
    pub fn start_with_signal(&mut self, n: u32, job: JobPlan, signal: i32) -> TaskId {
        let id = TaskId { key: JobKey { job: n, idx: 0, attempt: 1 }, step: TaskStep::Job };
        let (uid, user, what) = (self.uid, self.user.clone(), TaskPlan::Job(Box::new(job)));
        let plan = Box::new(Plan { uid, gid: uid, user, what });
        let start = LaunchMsg::Start { id, plan, note: "note".into() };
        let link = self.link.as_mut().unwrap();
        let mut out = Vec::new();
        for msg in [start, LaunchMsg::Signal { id, signal }] {
            link.session.seal_msg(&Msg::Launch(msg), &mut out).unwrap();
        }
        link.sock.write_all(&out).unwrap();
        id
    }

    /// Sends these starts while the launcher is stopped, as many as its socket takes, so that it
    /// finds them together.
    pub fn start_together(&mut self, jobs: std::ops::RangeInclusive<u32>, job: JobPlan) {
        let link = self.link.as_mut().unwrap();
        let mut out = Vec::new();
        for n in jobs {
            let id = TaskId { key: JobKey { job: n, idx: 0, attempt: 1 }, step: TaskStep::Job };
            let (uid, user, what) =
                (self.uid, self.user.clone(), TaskPlan::Job(Box::new(job.clone())));
            let plan = Box::new(Plan { uid, gid: uid, user, what });
            let start = LaunchMsg::Start { id, plan, note: "".into() };
            link.session.seal_msg(&Msg::Launch(start), &mut out).unwrap();
        }
        let pid = rustix::process::Pid::from_child(&self.child);
        let signal = |s| rustix::process::kill_process(pid, s).unwrap();
        signal(rustix::process::Signal::STOP);
        link.sock.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut sent = 0;
        while sent < out.len()
            && let Ok(n) = link.sock.write(&out[sent..])
        {
            sent += n;
        }
        signal(rustix::process::Signal::CONT);
        link.sock.set_write_timeout(Some(PATIENCE)).unwrap();
        link.sock.write_all(&out[sent..]).unwrap();
    }

    pub fn start_as(&mut self, id: TaskId, uid: u32, what: TaskPlan) {
        let plan = Box::new(Plan { uid, gid: uid, user: self.user.clone(), what });
        self.ask(LaunchMsg::Start { id, plan, note: "note".into() });
    }

    /// Waits for what the starter of a task reports.
    pub fn setup(&mut self, id: TaskId) -> Setup {
        loop {
            match self.next() {
                LaunchMsg::Task(t) if t.id == id && t.setup.is_some() => {
                    self.both = Some(*t.clone()).filter(|t| t.ended.is_some());
                    return t.setup.unwrap();
                }
                LaunchMsg::Task(t) if t.id == id && t.ended.is_some() => panic!("{t:?}"),
                LaunchMsg::Task(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn ready(&mut self, id: TaskId) -> Ready {
        match self.setup(id) {
            Setup::Ready(r) => *r,
            failed => panic!("{failed:?}"),
        }
    }

    pub fn end(&mut self, id: TaskId) -> TaskEnd {
        if let Some(t) = self.both.take().filter(|t| t.id == id) {
            return t.ended.unwrap();
        }
        loop {
            if let LaunchMsg::Task(t) = self.next()
                && t.id == id
                && let Some(ended) = t.ended
            {
                return ended;
            }
        }
    }

    /// Runs a job; what it reported and how it ended.
    pub fn run(&mut self, n: u32, job: JobPlan) -> (Ready, TaskEnd) {
        let id = self.start(n, job);
        (self.ready(id), self.end(id))
    }

    pub fn read(&self, name: &str) -> String {
        let path = self.work().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log/launcher.log.h1")).unwrap_or_default()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// kill -9 of the launcher, then a new one.
    pub fn crash(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.link = None;
        self.child = spawn(&self.dir, self.uid);
    }

    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.link = None;
        if self.child.try_wait().is_ok_and(|s| s.is_none()) {
            self.signal(rustix::process::Signal::INT);
            let end = Instant::now() + PATIENCE;
            while self.child.try_wait().is_ok_and(|s| s.is_none()) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            eprintln!("kept for inspection: {}\n{}", self.dir.display(), self.log());
        } else {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

fn spawn(dir: &Path, uid: u32) -> Child {
    let mut c = Command::new(dir.join("lsf"));
    c.arg0("launcher").current_dir("/").env_clear();
    c.env("LSF_ENVDIR", dir.join("conf")).env("LSF_LOCAL_HOST", "h1").env("SECRET", "s");
    c.stdin(Stdio::null()).stderr(Stdio::null());
    if uid != rustix::process::geteuid().as_raw() {
        c.uid(uid).gid(uid);
    }
    loop {
        match c.spawn() {
            // another test forked while the copy of the binary was open
            Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(20));
            }
            child => return child.unwrap(),
        }
    }
}

fn chown(dir: &Path, uid: u32) {
    std::os::unix::fs::chown(dir, Some(uid), Some(uid)).unwrap();
    for e in std::fs::read_dir(dir).unwrap().flatten() {
        if e.file_type().unwrap().is_dir() {
            chown(&e.path(), uid);
        } else {
            std::os::unix::fs::chown(e.path(), Some(uid), Some(uid)).unwrap();
        }
    }
}
