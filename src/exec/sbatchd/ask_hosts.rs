//! HOST_PRE_EXEC and HOST_POST_EXEC (lsb.queues(5)) on the first host of a job. There they are part
//! of the job's starters; the other hosts have run HOST_PRE_EXEC before, and run HOST_POST_EXEC
//! behind. The first host asks mbatchd for that again and again, until each host has ended or says
//! nothing any more (`host_commands`).

use super::agent::*;
use super::*;
use crate::exec::host_commands::HostsAsked;
use crate::proto::host_command::HostWork;

/// Interval between two requests to the other hosts, microseconds.
const HOSTS_AGAIN: u64 = 5 * US;

impl Sbatchd {
    /// Whether the job has to wait for HOST_PRE_EXEC on its other hosts; asks for it first.
    pub(super) fn waits_for_hosts(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) -> bool {
        let Some(job) = self.jobs.get_mut(&key) else { return false };
        if job.hosts_ready || job.note.order.host_pre_exec.is_empty() {
            return false;
        }
        if job.hosts.is_none() {
            job.hosts = HostsAsked::new(&job.note.order, HostWork::Before, true, now).map(Box::new);
            self.ask_hosts(now, key, out);
        }
        self.jobs.get(&key).is_some_and(|job| job.hosts.is_some())
    }

    /// Has HOST_POST_EXEC run on the other hosts, once; whether there is any to wait for. `well`:
    /// what ran here has succeeded.
    pub(super) fn ask_hosts_after(
        &mut self,
        now: Now,
        key: JobKey,
        well: bool,
        out: &mut Vec<Effect>,
    ) -> bool {
        let Some(job) = self.jobs.get_mut(&key) else { return false };
        let o = &job.note.order;
        if o.host_post_exec.is_empty() || job.hosts.is_some() {
            return job.hosts.is_some();
        }
        let status = match job.end() {
            Some((End::Status(status), ..)) => status,
            _ => 0,
        };
        job.hosts = HostsAsked::new(o, HostWork::After { status }, well, now).map(Box::new);
        let asks = job.hosts.is_some();
        if asks {
            self.ask_hosts(now, key, out);
        }
        asks
    }

    /// Whether mbatchd hears this host.
    pub(super) fn heard(&self) -> bool {
        self.mbd.is_some_and(|(_, told)| told)
    }

    /// Asks for the command on the other hosts.
    pub(super) fn ask_hosts(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(asked) = self.jobs.get_mut(&key).and_then(|job| job.hosts.as_mut()) else {
            return;
        };
        asked.again_at = now.mono_us + HOSTS_AGAIN;
        let work = asked.work;
        self.tell(SbdMsg::AskHosts { key, work }, out);
    }

    /// The job is killed while it waits for other hosts.
    pub(super) fn stop_hosts(&mut self, key: JobKey, out: &mut Vec<Effect>) {
        let asked = self.jobs.get_mut(&key).and_then(|job| job.hosts.take());
        if asked.is_some_and(|asked| asked.work == HostWork::Before) {
            self.tell(SbdMsg::AskHosts { key, work: HostWork::Stop }, out);
        }
    }
}
