//! Starts and stops the launchers of a personal cluster.
//!
//! A launcher is started by way of `detach` (a hidden applet): the new process waits for one
//! byte, by which it knows that its starter has seen it, then leaves the session and becomes the
//! launcher. Stopping asks with SIGINT, which ends jobs, daemons and the launcher in this order;
//! one that was killed earlier is started again first, because it knows by its journal what it
//! had left behind.

use super::state::GONE;
use super::{PersonalDir, RunningLaunchers, at};
use crate::cli::links::own_binary;
use crate::cli::site::{Around, find_from};
use crate::net::sock::with_unix_path;
use crate::sys::procs::{Proc, below};
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a launcher may take to end its jobs and daemons.
const STOP_WAIT: Duration = Duration::from_secs(30);
/// How often a launcher is asked, or another one started, where one has ended and left daemons.
const STOP_ROUNDS: usize = 3;
/// How long what was killed may take to go.
const KILL_WAIT: Duration = Duration::from_secs(5);
/// How long a launcher may take until it takes requests.
const LISTEN_WAIT: Duration = Duration::from_secs(10);
/// Pause between two looks.
pub const LOOK: Duration = Duration::from_millis(20);

/// The variables of the caller's environment that the daemons inherit.
const KEPT: [&str; 6] = ["HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR"];
/// PATH of the daemons.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Starts the launcher of `host`, which is in `state` then.
pub fn start(place: &PersonalDir, state: &mut RunningLaunchers, host: &str) -> Result<(), String> {
    let exe = own_binary()?;
    let out = place.top.join("log").join(format!("launcher.out.{host}"));
    let open = || fs::OpenOptions::new().create(true).append(true).open(&out);
    let files = (open().map_err(|e| at(&out, &e))?, open().map_err(|e| at(&out, &e))?);
    let mut command = Command::new(&exe);
    command.arg0("detach").current_dir("/").env_clear();
    for name in KEPT {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.env("PATH", PATH).env("LSF_ENVDIR", place.conf()).env("LSF_LOCAL_HOST", host);
    command.stdin(Stdio::piped()).stdout(files.0).stderr(files.1);
    let mut child = command.spawn().map_err(|e| at(&exe, &e))?;
    let gone = || format!("the launcher of {host} ended at once; see {}", out.display());
    let started = Proc::of(child.id()).ok_or_else(gone)?;
    state.set(host, started);
    let told = child.stdin.take().map(|mut pipe| pipe.write_all(b"\n"));
    if !matches!(told, Some(Ok(()))) {
        return Err(gone());
    }
    Ok(())
}

/// Becomes the launcher, once the byte has come. Returns only to say why not.
pub fn detach() -> String {
    let mut byte = [0u8; 1];
    match std::io::Read::read(&mut std::io::stdin(), &mut byte) {
        Ok(1) => {}
        _ => return "who started this process ended at once".to_owned(),
    }
    if let Err(e) = rustix::process::setsid() {
        return format!("setsid: {}", crate::sys::words(&e.into()));
    }
    match own_binary() {
        Ok(exe) => {
            let e = Command::new(&exe).arg0("launcher").stdin(Stdio::null()).exec();
            at(&exe, &e)
        }
        Err(why) => why,
    }
}

/// Stops the launchers of these hosts with all they started; what does not go is killed. Gives
/// what to tell the caller.
pub fn stop(
    place: &PersonalDir,
    state: &mut RunningLaunchers,
    hosts: &[String],
) -> Result<Vec<String>, String> {
    let (mut notes, mut strays) = (Vec::new(), Vec::new());
    for _ in 0..STOP_ROUNDS {
        stop_round(place, state, hosts, &mut notes, &mut strays)?;
        // one that was killed meanwhile, or that ended as it began, has ended nothing
        let found = RunningLaunchers::read(place)?;
        for (host, _) in found.launchers.iter().filter(|(h, _)| hosts.contains(h)) {
            state.set(host, found.alive(host).unwrap_or(GONE));
        }
        if !hosts.iter().any(|host| state.known(host)) {
            break;
        }
    }
    strays.retain(|p: &Proc| p.alive());
    if !strays.is_empty() {
        for p in &strays {
            let _ = p.signal(Signal::KILL);
        }
        notes.push(format!("{} process(es) that had left their jobs were killed", strays.len()));
        wait_gone(strays, KILL_WAIT);
    }
    Ok(notes)
}

/// Asks each launcher of these hosts to end, starts one where there is none, and waits for them.
/// Adds what was below them to `strays`.
fn stop_round(
    place: &PersonalDir,
    state: &mut RunningLaunchers,
    hosts: &[String],
    notes: &mut Vec<String>,
    strays: &mut Vec<Proc>,
) -> Result<(), String> {
    for host in hosts {
        if state.known(host) && state.alive(host).is_none() {
            notes.push(format!("{host}: no launcher: one is started, to end the remains"));
            start(place, state, host)?;
            wait_listening(place, state, host);
        }
    }
    let asked: Vec<(String, Proc)> =
        hosts.iter().filter_map(|h| state.alive(h).map(|p| (h.clone(), p))).collect();
    // A process that left its job's session is below the launcher only while its parents live.
    let below: Vec<Proc> = asked.iter().flat_map(|(_, p)| tree(*p)).collect();
    for (host, p) in &asked {
        p.signal(Signal::INT).map_err(|e| format!("{host}: {}", crate::sys::words(&e)))?;
    }
    let left = wait_gone(asked.iter().map(|(_, p)| *p).collect(), STOP_WAIT);
    for (host, p) in asked.iter().filter(|(_, p)| left.contains(p)) {
        notes.push(format!(
            "{host}: the launcher did not end within {} s; killed with all \
             below it",
            STOP_WAIT.as_secs()
        ));
        kill_tree(*p);
    }
    strays.extend(below);
    for host in hosts {
        if state.alive(host).is_none() {
            state.forget(host);
        }
    }
    Ok(())
}

/// Waits until the launcher takes requests: a signal before that would end it as it is, with
/// what its predecessor left still running.
fn wait_listening(place: &PersonalDir, state: &RunningLaunchers, host: &str) {
    let around = Around {
        envdir: Some(place.conf().into_os_string()),
        local_host: Some(host.to_owned()),
        ..Around::default()
    };
    let Ok(site) = find_from(&around) else { return };
    let until = Instant::now() + LISTEN_WAIT;
    while Instant::now() < until && state.alive(host).is_some() {
        if with_unix_path(&site.launcher_socket(), |p| UnixStream::connect(p)).is_ok() {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// The processes that remain after the wait.
fn wait_gone(mut procs: Vec<Proc>, wait: Duration) -> Vec<Proc> {
    let until = Instant::now() + wait;
    loop {
        procs.retain(|p| p.alive());
        if procs.is_empty() || Instant::now() >= until {
            return procs;
        }
        std::thread::sleep(LOOK);
    }
}

/// All below a process now, sessions included.
fn tree(top: Proc) -> Vec<Proc> {
    walk(top, |_| {})
}

fn walk(top: Proc, seen: impl Fn(Proc)) -> Vec<Proc> {
    let mut all = vec![top];
    let mut next = 0;
    while next < all.len() {
        seen(all[next]);
        for p in below(all[next].pid) {
            if !all.contains(&p) {
                all.push(p);
            }
        }
        next += 1;
    }
    all.remove(0);
    all
}

/// Kills a process and all below it, each seen before its parent goes.
fn kill_tree(top: Proc) {
    // stopped, they start nothing more while their children are looked for
    let mut all = walk(top, |p| {
        let _ = p.signal(Signal::STOP);
    });
    all.push(top);
    for p in &all {
        let _ = p.signal(Signal::KILL);
    }
    wait_gone(all, KILL_WAIT);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::procs::children;

    #[test]
    fn a_tree_is_killed_whole() {
        let script = "sleep 77 & sh -c 'sleep 78 & wait' & wait";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let top = Proc::of(child.id()).unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        let mut below = Vec::new();
        while below.len() < 3 && Instant::now() < until {
            below = children(top.pid);
            below.extend(below.clone().iter().flat_map(|p| children(p.pid)));
            std::thread::sleep(LOOK);
        }
        assert_eq!(below.len(), 3);
        let reaper = std::thread::spawn(move || child.wait().unwrap());
        kill_tree(top);
        reaper.join().unwrap();
        assert!(wait_gone(below, Duration::from_secs(5)).is_empty());
    }
}
