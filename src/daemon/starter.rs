//! The starter: a hidden applet that sets one task up and becomes it.
//!
//! The zygote is executed once for many tasks and does nothing but copy itself for each, so that
//! every starter begins with the memory of a process that has read nothing, at a fraction of what
//! an exec costs. The copies are the launcher's children, not the zygote's. All starters have the
//! same memory addresses, then; jobs do not.
//!
//! Descriptor 0 is a socket to the launcher, 1 the plan. The starter waits for the launcher's byte
//! (the journal is written then) and ends where that never comes. The environment is empty at the
//! beginning; a set*id call is believed only when read back; everything that concerns a file is
//! done as the user, by [`super::prepare`]. The socket, which exec closes, carries the result of
//! the setup.
//!
//! Invariants: from any step that fails it exits without having run anything of the job's; the plan
//! is closed before any path of the user's is opened.

use super::change_user::{USER_WAIT, become_user};
use super::handover::EEXEC_SOCKET;
use super::prepost_helper::{Helper, OtherUser, own_part};
use super::step::{Failed, SetupResult, at, note};
use super::task::ReadyTask;
use super::{account, bind, hooks, output, prepare};
use crate::net::sock::{recv_fds, with_unix_path};
use crate::proto::launch::{HookOf, JobPlan, Plan, Ready, Setup, SetupStage, TaskPlan};
use crate::sys::users::{User, UserDatabase};
use crate::sys::{raw, words};
use rustix::fs::Mode;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Largest plan, bytes.
pub const PLAN_MAX: u64 = 64 << 20;
/// Exit status of a setup that failed; it is never taken for the job's.
const EXIT_SETUP: i32 = 125;

/// Becomes a daemon of the user; returns only with the reason why not.
pub fn run_daemon(daemon: &OsStr, user: &str) -> String {
    let becomes = || {
        raw::cloexec_from(3).map_err(at(SetupStage::Plan, "descriptors"))?;
        let found = UserDatabase::default().find_name(user, USER_WAIT).filter(|u| u.uid != 0);
        let why = || Failed::new(SetupStage::User, format!("{user} is not known, or is root"));
        become_user(&found.ok_or_else(why)?)
    };
    match becomes() {
        Ok(()) => words(&Command::new("/proc/self/exe").arg0(daemon).exec()),
        Err(failed) => failed.why,
    }
}

/// The zygote: makes a starter of each link and plan that come from the launcher, in the control
/// group that may come with them, and answers with its pid and whether it is in that group; ends
/// with the launcher. Returns in a starter too, where there is no job to become.
pub fn serve() -> i32 {
    zygote().unwrap_or(EXIT_SETUP)
}

fn zygote() -> io::Result<i32> {
    use rustix::stdio::{dup2_stdin, dup2_stdout, stdin};
    begin()?;
    loop {
        let fds = recv_fds(stdin(), &mut [0u8])?.1;
        let [link, plan, group @ ..] = fds.as_slice() else { return Ok(EXIT_SETUP) };
        let inside = group.first().and_then(|group| raw::fork_beside_in(group.as_fd()).ok());
        let made = inside.map_or_else(raw::fork_beside, Ok);
        if matches!(made, Ok(0)) {
            dup2_stdin(link).and(dup2_stdout(plan))?;
            drop(fds);
            return Ok(run());
        }
        let pid = made.map_or_else(|e| -e.raw_os_error().unwrap_or(libc::EIO), |pid| pid as i32);
        let answer = [pid, i32::from(inside.is_some())].map(i32::to_ne_bytes);
        rustix::io::write(stdin(), answer.as_flattened())?;
    }
}

/// Runs the starter of a task; returns only where there is no job to become.
fn run() -> i32 {
    // a session of its own, no descriptor but what is needed; exec closes the link
    let link = rustix::process::setsid()
        .and_then(|_| rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3));
    let Ok(mut link) = link.map(File::from) else { return EXIT_SETUP };
    if raw::cloexec_from(3).is_err() || !matches!(link.read(&mut [0u8; 1]), Ok(1)) {
        return EXIT_SETUP;
    }
    let done =
        read_plan().and_then(|plan| hide_plan().map(|()| plan)).and_then(|plan| match &plan.what {
            TaskPlan::Job(job) => become_job(&plan, job, &mut link),
            TaskPlan::Finish(finish) => {
                let user = match finish.account.as_str() {
                    "" => identify(&plan)?,
                    name => account::found(name)?,
                };
                let eexec = eexec(!finish.eexec.is_none());
                let helper = OtherUser::of_launcher().and_then(|other| other.after(finish));
                become_user(&user)?;
                tell(&mut link, &output::finished(finish, &user));
                // it is whole: what runs now may take long
                let _ = rustix::net::shutdown(&link, rustix::net::Shutdown::Write);
                Ok(hooks::after(finish, &user, eexec, helper))
            }
            TaskPlan::Adopt { .. } => Err(Failed::new(SetupStage::Plan, "nothing to start")),
        });
    match done {
        Ok(code) => code,
        Err(Failed { at, why, exit, .. }) => {
            tell(&mut link, &Setup::Failed { at, why, exit, begun: None });
            at.exit_status()
        }
    }
}

/// The common beginning of every starter: signals as a program expects them.
fn begin() -> io::Result<()> {
    raw::begin_signals(&[])?;
    rustix::process::chdir("/")?;
    // the kernel is to spare the daemons, not their jobs
    let score = "/proc/self/oom_score_adj";
    if std::fs::read(score).is_ok_and(|s| s.starts_with(b"-")) {
        std::fs::write(score, "0")?;
    }
    Ok(())
}

fn read_plan() -> SetupResult<Plan> {
    let fd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3);
    let file = fd.map_err(|e| at(SetupStage::Plan, "plan")(e.into()))?;
    let mut text = Vec::with_capacity(16 << 10);
    let read = File::from(file).take(PLAN_MAX).read_to_end(&mut text);
    read.map_err(at(SetupStage::Plan, "plan"))?;
    serde_json::from_slice(&text).map_err(|e| Failed::new(SetupStage::Plan, format!("plan: {e}")))
}

/// Lets go of the plan and of the other way to the launcher: a path that the user gives may name
/// our descriptors.
fn hide_plan() -> SetupResult<()> {
    let hide = || {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        Ok(())
    };
    hide().map_err(at(SetupStage::Plan, "/dev/null"))
}

/// Tells what came of it; false where the launcher is gone.
fn tell(link: &mut File, setup: &Setup) -> bool {
    serde_json::to_vec(setup).is_ok_and(|text| link.write_all(&text).is_ok())
}

// ---- who ----

/// The user of the plan on this host: the name is authoritative, the uid must agree.
fn identify(plan: &Plan) -> SetupResult<User> {
    let mut users = UserDatabase::default();
    match users.find_name(&plan.user, USER_WAIT) {
        Some(u) if u.uid == plan.uid => Ok(u),
        Some(u) => {
            let why = format!("user {} has uid {} here, not {}", plan.user, u.uid, plan.uid);
            Err(Failed::new(SetupStage::User, why))
        }
        // the owner of a personal cluster need not be known by name
        None if plan.uid == crate::sys::euid() => {
            Ok(User { name: plan.user.clone(), uid: plan.uid, gid: plan.gid, ..User::default() })
        }
        None => Err(Failed::new(SetupStage::User, format!("user {} is not known here", plan.user))),
    }
}

fn become_job(plan: &Plan, job: &JobPlan, link: &mut File) -> SetupResult<i32> {
    let mut user = match &job.account {
        None => identify(plan)?,
        Some(mapped) => account::found(&mapped.user)?,
    };
    if user.home.is_empty() {
        user.home = job.home.lossy().into_owned();
    }
    let mut ready = Ready { user: user.name.clone(), home: user.home.clone(), ..Ready::default() };
    let task = match set_up(job, &user, &mut ready, &mut |ready| _ = tell(link, &cut_short(ready)))
    {
        Ok(task) => task,
        Err(Failed { at, why, exit, begun }) => {
            let begun = begun.then(|| Box::new(account_of(&ready)));
            tell(link, &Setup::Failed { at, why, exit, begun });
            return Ok(at.exit_status());
        }
    };
    // nothing can fail after this but exec, which speaks to the job's own error output
    if !tell(link, &Setup::Ready(Box::new(ready))) {
        return Ok(EXIT_SETUP);
    }
    task.exec()
}

/// The account of a job that has not begun, and where it would have run.
fn account_of(ready: &Ready) -> Ready {
    let Ready { user, home, uid, cwd, .. } = ready.clone();
    Ready { user, home, uid, cwd, ..Ready::default() }
}

/// The report that counts if we are killed before the next one, after PRE_EXEC of the queue:
/// POST_EXEC follows, and the job file goes.
fn cut_short(ready: &Ready) -> Setup {
    let begun = Some(Box::new(Ready { script: ready.script.clone(), ..account_of(ready) }));
    let why = "the setup of the job was cut short".into();
    Setup::Failed { at: SetupStage::Plan, why, exit: 0, begun }
}

/// All steps between the identity of the user and exec.
fn set_up(
    job: &JobPlan,
    user: &User,
    ready: &mut Ready,
    tell_begun: &mut dyn FnMut(&Ready),
) -> SetupResult<ReadyTask> {
    limits(job, ready)?;
    if let Some(binding) = &job.binding {
        bind::bind(binding, ready);
    }
    let eexec = eexec(true)?;
    let other = OtherUser::of_launcher();
    let helper = other.as_ref().and_then(|other| other.before(job));
    become_user(user)?;
    if let Some(mapped) = &job.account {
        account::accepted(mapped, user)?;
        ready.uid = user.uid;
    }
    helper.map_or(Ok(()), Helper::go_before)?;
    rustix::process::umask(Mode::from_raw_mode(job.umask & 0o777));
    let own = own_part(job, other.is_some());
    let begun = own.pre.len() < job.pre.len() && job.pre.iter().any(|h| h.of == HookOf::Queue);
    if begun {
        tell_begun(ready);
    }
    let task = prepare::prepare(&own, user, ready, eexec, tell_begun);
    task.map_err(|failed| if begun { failed.begun() } else { failed })
}

/// The way to an eexec that runs as another user; root alone can have it.
fn eexec(due: bool) -> SetupResult<Option<UnixStream>> {
    let path = std::env::var_os(EEXEC_SOCKET).filter(|_| due);
    let dial = |path: OsString| with_unix_path(path.as_ref(), |p| UnixStream::connect(p));
    path.map(dial).transpose().map_err(at(SetupStage::PreExec, "eexec as LSF_EEXEC_USER"))
}

fn limits(job: &JobPlan, ready: &mut Ready) -> SetupResult<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let kb = |n: Option<u64>| n.map(|n| n.saturating_mul(1024));
    let l = &job.limits;
    let all = [
        (Resource::Cpu, "CPU", l.cpu),
        (Resource::Fsize, "file size", kb(l.fsize)),
        (Resource::Data, "data", kb(l.data)),
        (Resource::Stack, "stack", kb(l.stack)),
        (Resource::Core, "core", kb(l.core)),
        (Resource::Rss, "resident set", kb(l.rss)),
    ];
    for (what, name, limit) in all {
        let Some(limit) = limit else { continue };
        let hard = getrlimit(what).maximum.unwrap_or(u64::MAX);
        let soft = limit.min(hard);
        // beyond its CPU limit a process gets SIGXCPU each second, and may act on it
        let top = if what == Resource::Cpu { hard } else { soft };
        let maximum = (top != u64::MAX).then_some(top);
        setrlimit(what, Rlimit { current: Some(soft), maximum })
            .map_err(|e| at(SetupStage::Limits, format!("{name} limit {limit}"))(e.into()))?;
    }
    if job.nice != 0 && rustix::process::nice(job.nice).is_err() {
        note(ready, format!("nice value {} is not permitted", job.nice));
    }
    Ok(())
}
