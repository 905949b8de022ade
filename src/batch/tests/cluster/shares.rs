//! Share accounts as bqueues shows them, and what outlives the log.

use super::*;
use crate::log::codec::job_of;
use crate::proto::client::ShareRow;

impl Cluster {
    /// The account of a user or a group of a queue: `queue/group/user`.
    pub fn share(&mut self, path: &str) -> ShareRow {
        let (group, name) = path.rsplit_once('/').unwrap();
        let queue = self.queue(path.split('/').next().unwrap());
        let table = queue.shares.iter().find(|table| table.path == format!("{group}/"));
        let row = table.and_then(|table| table.rows.iter().find(|row| row.name == name));
        row.unwrap_or_else(|| panic!("no share account {path}: {:?}", queue.shares)).clone()
    }

    /// The priority of an account, as it is listed.
    pub fn priority(&mut self, path: &str) -> String {
        format!("{:.3}", self.share(path).priority)
    }

    /// The log is switched: what jobs in memory have is carried over.
    pub fn switch_log(&mut self) {
        let mut log = self.switch_head();
        let live = |record: &&Record| self.machine.state.has_job(job_of(&record.event).job);
        log.extend(self.log.iter().filter(live).cloned());
        self.log = log;
    }
}
