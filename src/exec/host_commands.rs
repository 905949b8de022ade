//! The state of HOST_PRE_EXEC and HOST_POST_EXEC in sbatchd: on the first host of a job, which
//! waits for the others, and on another host, which runs them.

use crate::model::Now;
use crate::model::job::End;
use crate::proto::host_command::{HostCommandState, HostWork};
use crate::proto::launch::{Setup, TaskInfo};
use crate::proto::sbd::StartJob;
use std::collections::{BTreeMap, BTreeSet};

/// A command on one host that failed.
#[derive(Clone, Debug)]
pub struct HostFailure {
    pub host: String,
    /// The exit value; 0: none.
    pub exit: u8,
    pub why: String,
}

/// The other hosts of a job whose command the first host waits for.
#[derive(Clone, Debug)]
pub struct HostsAsked {
    pub work: HostWork,
    /// The hosts that have not ended, each with the time of its last word, monotonic microseconds.
    pub waits: BTreeMap<String, u64>,
    pub failed: Option<HostFailure>,
    /// When they are asked again, monotonic microseconds.
    pub again_at: u64,
    /// After the job: the commands of the first host have succeeded.
    pub well: bool,
}

impl HostsAsked {
    /// Another host is needed: a job on one host gives `None`.
    pub fn new(o: &StartJob, work: HostWork, well: bool, now: Now) -> Option<HostsAsked> {
        let first = o.hosts.first().map(|h| &*h.0);
        let others: BTreeSet<&str> = o.hosts.iter().map(|h| &*h.0).collect();
        let others = others.into_iter().filter(|host| Some(*host) != first);
        let waits: BTreeMap<_, _> = others.map(|host| (host.to_string(), now.mono_us)).collect();
        let some = !waits.is_empty();
        some.then_some(HostsAsked { work, waits, failed: None, again_at: now.mono_us, well })
    }

    /// A host tells of its command.
    pub fn told(&mut self, now: Now, host: &str, state: HostCommandState) {
        let Some(heard) = self.waits.get_mut(host) else { return };
        *heard = now.mono_us;
        match state {
            HostCommandState::Running => return,
            HostCommandState::Done => {}
            HostCommandState::Failed { exit, why } => self.fails(host, exit, why),
        }
        self.waits.remove(host);
    }

    /// Gives up a host that says nothing for so long, microseconds.
    pub fn give_up(&mut self, now: Now, silent: u64) {
        let late = |(host, heard): (&String, &u64)| {
            (now.mono_us >= heard.saturating_add(silent)).then(|| host.clone())
        };
        for host in self.waits.iter().filter_map(late).collect::<Vec<_>>() {
            self.waits.remove(&host);
            self.fails(&host, 0, "the host does not answer".into());
        }
    }

    fn fails(&mut self, host: &str, exit: u8, why: String) {
        let host = host.to_string();
        self.failed.get_or_insert(HostFailure { host, exit, why });
    }
}

/// A command that another host than the first one runs for a job.
#[derive(Clone, Debug)]
pub struct HostTask {
    pub work: HostWork,
    /// The order; a command that the launcher alone knows has `None`.
    pub order: Option<Box<StartJob>>,
    /// The launcher has it.
    pub launched: bool,
    pub state: HostCommandState,
    /// When it was ordered or ended last, monotonic microseconds.
    pub touched: u64,
}

/// The state of a command by the launcher's knowledge of its task.
pub fn state_of(info: &TaskInfo) -> HostCommandState {
    let Some(ended) = &info.ended else { return HostCommandState::Running };
    let said = match &info.setup {
        Some(Setup::Failed { why, .. }) => Some(why.clone()),
        _ => None,
    };
    if ended.end == End::Status(0) {
        return HostCommandState::Done;
    }
    let code = match ended.end {
        End::Status(status) if status & 0x7f == 0 => ended.end.code(),
        _ => None,
    };
    let words = match code {
        Some(code) => format!("the queue's host command: exit status: {code}"),
        None => "the queue's host command was killed".into(),
    };
    let exit = code.filter(|_| said.is_none()).and_then(|code| u8::try_from(code).ok());
    HostCommandState::Failed { exit: exit.unwrap_or(0), why: said.unwrap_or(words) }
}
