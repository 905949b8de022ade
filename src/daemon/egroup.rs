//! Calls egroup(8) for mbatchd: the members of the groups of lsb.users(5) and lsb.hosts(5) that
//! the site keeps elsewhere. The program is called when the configuration is read, and by a thread
//! of its own each EGROUP_UPDATE_INTERVAL, so that a slow directory stops no loop.
//!
//! Invariants: a call and all calls together have a time limit, an answer a length; an answer that
//! is not a list of names, and one of a program that failed, changes nothing.

use super::driver::Remote;
use super::handover::DEFAULT_PATH;
use crate::conf::ClusterConf;
use crate::conf::external_groups::{ExternalGroup, GroupKind};
use crate::proto::Input;
use crate::sys::child::{Given, Io};
use crate::sys::users::{is_name, run_bounded};
use crate::sys::words;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest time for one group.
const CALL_WAIT: Duration = Duration::from_secs(10);
/// Longest time for all groups before mbatchd answers requests.
pub const START_WAIT: Duration = Duration::from_secs(20);
/// Longest time for all groups later; meanwhile the old answers hold.
pub const LATER_WAIT: Duration = Duration::from_secs(300);
/// The time after which groups without an answer at the start are asked for again.
const SOON: Duration = Duration::from_secs(30);
/// Most members of a group.
const MEMBERS_MAX: usize = 20_000;

/// The members of each external group as egroup named them last.
pub type KnownMembers = Arc<Mutex<BTreeMap<ExternalGroup, Vec<String>>>>;

/// The data of the calls: the program, its groups and the time between two rounds.
#[derive(Clone, Debug, PartialEq)]
struct Calls {
    program: PathBuf,
    envdir: String,
    groups: Vec<ExternalGroup>,
    interval: Option<Duration>,
    /// Groups have no answer yet.
    late: bool,
}

impl Calls {
    fn of(conf: &ClusterConf, late: bool) -> Calls {
        let dir = conf.base.lsf.serverdir().unwrap_or_default();
        Calls {
            program: PathBuf::from(dir).join("egroup"),
            envdir: conf.base.lsf.envdir.clone(),
            groups: conf.external_groups(),
            interval: conf.batch.params.egroup_interval.map(Duration::from_secs),
            late,
        }
    }

    /// The members of one group.
    fn ask(&self, group: &ExternalGroup, wait: Duration) -> Result<Vec<String>, String> {
        let mut command = Command::new(&self.program);
        command.args([option(group), group.name.as_str()]).current_dir("/");
        command.env("PATH", DEFAULT_PATH).env("LSF_ENVDIR", &self.envdir);
        let given =
            Given { stdio: [Io::Null, Io::Pipe, Io::Null], group: true, ..Given::default() };
        let (text, good) = run_bounded(&command, given, wait).map_err(|e| words(&e))?;
        if !good {
            return Err("it failed".to_owned());
        }
        let members: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        if members.len() > MEMBERS_MAX {
            return Err(format!("more than {MEMBERS_MAX} members"));
        }
        let sound = |name: &&String| !is_name(name) || name.contains('\u{fffd}');
        match members.iter().find(sound) {
            Some(word) => Err(format!("<{}> is no name", crate::conf::lexer::shown(word))),
            None => Ok(members),
        }
    }

    /// Asks for all groups; those whose members have changed. The groups without an answer keep
    /// their members; whether there are such.
    fn ask_all(&self, known: &KnownMembers, wait: Duration) -> (Vec<ExternalGroup>, bool) {
        let until = Instant::now() + wait;
        let (mut changed, mut failed) = (Vec::new(), false);
        for group in &self.groups {
            let left = until.saturating_duration_since(Instant::now()).min(CALL_WAIT);
            let answer = match left.is_zero() {
                true => Err("no time is left".to_owned()),
                false => self.ask(group, left),
            };
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            match answer {
                Ok(members) => {
                    let old = known.insert(group.clone(), members.clone());
                    changed.extend((old.as_ref() != Some(&members)).then(|| group.clone()));
                }
                Err(why) => {
                    failed = true;
                    let (option, name) = (option(group), &group.name);
                    let kept = match known.contains_key(group) {
                        true => "its members stay as they were",
                        false => "it has no members",
                    };
                    log::error!("{} {option} {name}: {why}; {kept}", self.program.display());
                }
            }
        }
        (changed, failed)
    }
}

fn option(group: &ExternalGroup) -> &'static str {
    match group.kind {
        GroupKind::Users => "-u",
        GroupKind::Hosts => "-m",
    }
}

/// The calls of one mbatchd.
pub struct GroupMembers {
    known: KnownMembers,
    orders: Sender<Calls>,
    /// The receiver of `orders`, until the thread has it.
    waiting: Option<Receiver<Calls>>,
}

/// The part of [`GroupMembers`] that the thread which reads a configuration has.
#[derive(Clone)]
pub struct GroupCaller {
    known: KnownMembers,
    orders: Sender<Calls>,
}

impl GroupMembers {
    pub fn new() -> GroupMembers {
        let (orders, waiting) = channel();
        GroupMembers { known: KnownMembers::default(), orders, waiting: Some(waiting) }
    }

    pub fn caller(&self) -> GroupCaller {
        GroupCaller { known: self.known.clone(), orders: self.orders.clone() }
    }

    /// Starts the thread that asks again; the answers come as [`Input::ExternalGroups`].
    pub fn start(&mut self, remote: Remote) -> std::io::Result<()> {
        let Some(orders) = self.waiting.take() else { return Ok(()) };
        let known = self.known.clone();
        let tell = move |groups| remote.input(Input::ExternalGroups { groups });
        let run = move || ask_again(&orders, &known, SOON, tell);
        std::thread::Builder::new().name("egroup".into()).spawn(run).map(|_| ())
    }
}

impl GroupCaller {
    /// Puts the members of all external groups in, as egroup names them now. Blocks up to `wait`.
    pub fn fill(&self, conf: &mut ClusterConf, wait: Duration) {
        let calls = Calls::of(conf, false);
        let (_, late) = calls.ask_all(&self.known, wait);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|group, _| calls.groups.contains(group));
        for (group, members) in known.iter() {
            conf.set_external_members(group, members);
        }
        // the thread is there as long as the process
        let _ = self.orders.send(Calls { late, ..calls });
    }
}

/// Groups with their members.
type Members = Vec<(ExternalGroup, Vec<String>)>;

/// Asks again after each interval, and after `soon` while a group has no answer; ends with its
/// orders.
fn ask_again(
    orders: &Receiver<Calls>,
    known: &KnownMembers,
    soon: Duration,
    tell: impl Fn(Members),
) {
    let mut calls: Option<Calls> = None;
    loop {
        let pause = calls
            .as_ref()
            .filter(|calls| !calls.groups.is_empty())
            .and_then(|calls| calls.late.then_some(soon).into_iter().chain(calls.interval).min());
        let order = match pause {
            Some(pause) => orders.recv_timeout(pause),
            None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match (order, &mut calls) {
            (Ok(order), _) => calls = Some(order),
            (Err(RecvTimeoutError::Timeout), Some(calls)) => {
                let (changed, late) = calls.ask_all(known, LATER_WAIT);
                calls.late = late;
                let known = known.lock().unwrap_or_else(PoisonError::into_inner);
                let members =
                    |group: ExternalGroup| Some((group.clone(), known.get(&group)?.clone()));
                let groups: Members = changed.into_iter().filter_map(members).collect();
                if !groups.is_empty() {
                    tell(groups);
                }
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::testing::program;

    fn calls(name: &str, script: &str) -> (Calls, PathBuf) {
        let dir = std::env::temp_dir().join(format!("lsf-egroup-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("egroup");
        program(&path, &format!("#!/bin/sh\n{script}\n"), 0o755);
        let group = |kind, name: &str| ExternalGroup { kind, name: name.to_owned() };
        let groups = vec![group(GroupKind::Users, "g"), group(GroupKind::Hosts, "h")];
        let (envdir, interval) = ("/conf".to_owned(), None);
        (Calls { program: path, envdir, groups, interval, late: false }, dir)
    }

    #[test]
    fn program_names_the_members_of_groups_of_users_and_hosts() {
        let script = "case $1$2 in -ug) echo ann bob; echo cid;; -mh) echo h1 $LSF_ENVDIR;; esac";
        let (calls, dir) = calls("names", &script.replace("$LSF_ENVDIR", "h2"));
        let known = KnownMembers::default();
        let (changed, failed) = calls.ask_all(&known, CALL_WAIT);
        assert_eq!((changed.len(), failed), (2, false));
        let all: Vec<Vec<String>> = known.lock().unwrap().values().cloned().collect();
        assert_eq!(all, [vec!["ann", "bob", "cid"], vec!["h1", "h2"]]);
        assert_eq!(calls.ask_all(&known, CALL_WAIT), (vec![], false), "nothing has changed");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn thread_tells_members_that_change_between_two_rounds() {
        let (mut calls, dir) = calls("again", "cd ${0%/*}; cat members 2>/dev/null");
        calls.interval = Some(Duration::from_millis(20));
        calls.groups.truncate(1);
        let group = calls.groups[0].clone();
        let known = KnownMembers::default();
        let ((sender, orders), (told, news)) = (channel(), channel());
        let thread = std::thread::spawn(move || {
            ask_again(&orders, &known, SOON, |members| told.send(members).unwrap());
        });
        // the program fails as long as there is no file
        sender.send(calls.clone()).unwrap();
        let write = |text: &str| {
            std::fs::write(dir.join("new"), text).unwrap();
            std::fs::rename(dir.join("new"), dir.join("members")).unwrap();
        };
        let next = || news.recv_timeout(Duration::from_secs(20)).unwrap();
        write("ann\n");
        assert_eq!(next(), [(group.clone(), vec!["ann".to_owned()])]);
        write("ann bob\n");
        assert_eq!(next(), [(group, vec!["ann".to_owned(), "bob".to_owned()])]);
        // without an interval nothing more is asked for
        sender.send(Calls { interval: None, ..calls }).unwrap();
        write("eve\n");
        assert!(news.recv_timeout(Duration::from_millis(200)).is_err());
        drop(sender);
        thread.join().unwrap();
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn program_that_fails_hangs_or_prints_rubbish_changes_no_group() {
        let wait = Duration::from_millis(500);
        for (name, script, why) in [
            ("fails", "echo eve; exit 1", "it failed"),
            ("rubbish", "echo 'eve a:b'", "<a:b> is no name"),
            ("binary", "printf 'eve \\377\\n'", "is no name"),
            ("number", "echo eve 17", "<17> is no name"),
            ("hangs", "echo eve; sleep 64017 & wait", "timed out"),
            ("long", "head -c 300000 /dev/zero | tr '\\0' 'e'", "it says too much"),
        ] {
            let (calls, dir) = calls(name, script);
            let answer = calls.ask(&calls.groups[0], wait).unwrap_err();
            assert!(answer.contains(why), "{name}: {answer}");
            let known = KnownMembers::default();
            known.lock().unwrap().insert(calls.groups[0].clone(), vec!["ann".to_owned()]);
            let from = Instant::now();
            assert_eq!(calls.ask_all(&known, wait), (vec![], true), "{name}");
            assert!(from.elapsed() < Duration::from_secs(20), "{name}");
            let known = known.lock().unwrap();
            assert_eq!(known.values().collect::<Vec<_>>(), [&["ann"]], "{name}");
            std::fs::remove_dir_all(dir).unwrap();
        }
        // what a program that hangs has started ends with it
        let left = |p: crate::sys::process_table::Seen| {
            let line = std::fs::read(format!("/proc/{}/cmdline", p.pid)).unwrap_or_default();
            line == b"sleep\x0064017\0" && !p.zombie
        };
        let until = Instant::now() + Duration::from_secs(20);
        while crate::sys::process_table::scan().into_iter().any(left) {
            assert!(Instant::now() < until, "the program's children are still there");
            std::thread::sleep(Duration::from_millis(10));
        }
        let (calls, dir) = calls("missing", "");
        std::fs::remove_dir_all(dir).unwrap();
        assert!(calls.ask(&calls.groups[0], wait).unwrap_err().contains("No such file"));
    }
}
