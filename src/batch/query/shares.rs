//! The accounts of a share tree with the priorities by which the scheduler goes: bqueues -l and -r,
//! bhpart.

use crate::batch::site::Queue;
use crate::batch::site::shares::TreeId;
use crate::batch::state::{Job, Run};
use crate::batch::usage::fairshare::account::AccountId;
use crate::batch::{Mbatchd, StepContext};
use crate::conf::types::HostPartition;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{ClientMsg, PartitionInfo, ShareRow, ShareTable};
use crate::proto::machine::ConnId;
use std::collections::BTreeSet;

impl Mbatchd {
    /// The accounts of FAIRSHARE of a queue.
    pub(crate) fn shares_of_queue(&self, queue: &Queue) -> Vec<ShareTable> {
        let own = queue.tree.filter(|tree| !self.site.shares.get(*tree).is_partition());
        own.map_or(Vec::new(), |tree| self.share_tables(tree))
    }

    pub(crate) fn list_partitions(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        names: &[String],
    ) {
        let all = &self.site.conf.batch.hosts.partitions;
        let known = |name: &&String| all.iter().any(|partition| partition.name == **name);
        if let Some(bad) = names.iter().find(|name| !known(name)) {
            return context.refuse(conn, Refusal::about(err::BAD_HPART, bad));
        }
        let asked: BTreeSet<&String> = names.iter().collect();
        let meant = |p: &&HostPartition| names.is_empty() || asked.contains(&p.name);
        let row = |p: &HostPartition| PartitionInfo {
            name: p.name.clone(),
            hosts: p.hosts.iter().map(|word| self.partition_word(word)).collect(),
            shares: self
                .site
                .shares
                .of_partition(&p.name)
                .map_or(Vec::new(), |tree| self.share_tables(tree)),
        };
        let rows = all.iter().filter(meant).map(row).collect();
        context.reply(conn, ClientMsg::PartitionRows { rows });
    }

    /// The path of the share account that a started element is charged to; empty none.
    pub(crate) fn charged(&self, job: &Job, idx: u32, run: &Run) -> String {
        let account = self.fairshare.charged(&self.site, job, idx, run);
        account.map_or(String::new(), |account| self.fairshare.path(account))
    }

    /// A word of HOSTS; that of a group ends in a slash.
    fn partition_word(&self, word: &str) -> String {
        let is_group = self.site.conf.batch.hosts.groups.iter().any(|group| group.name == word);
        if is_group { format!("{word}/") } else { word.to_string() }
    }

    /// The tables of a tree, the root first, then each group with accounts below it.
    pub(crate) fn share_tables(&self, tree: TreeId) -> Vec<ShareTable> {
        let mut tables = Vec::new();
        let path = format!("{}/", self.site.shares.get(tree).name);
        self.share_table(tree, None, path, &mut tables);
        tables
    }

    fn share_table(
        &self,
        tree: TreeId,
        account: Option<AccountId>,
        path: String,
        tables: &mut Vec<ShareTable>,
    ) {
        let below: Vec<AccountId> = self.fairshare.below(tree, account).collect();
        if below.is_empty() && account.is_some() {
            return;
        }
        let rows = below.iter().map(|account| self.share_row(*account)).collect();
        let position = tables.len();
        tables.push(ShareTable { path: path.clone(), rows });
        for (at, account) in below.into_iter().enumerate() {
            let name = &tables[position].rows[at].name;
            let path = format!("{path}{name}/");
            self.share_table(tree, Some(account), path, tables);
        }
    }

    fn share_row(&self, account: AccountId) -> ShareRow {
        let now = self.fairshare.shown(account, self.sched.now().secs());
        ShareRow {
            name: now.name.to_string(),
            shares: now.shares,
            priority: now.priority,
            started: now.started,
            reserved: now.reserved,
            cpu_secs: now.cpu_secs,
            run_secs: now.run_secs,
            adjust: 0.0,
        }
    }
}
