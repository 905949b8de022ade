//! The accounts of a share tree with the priorities by which the scheduler goes: bqueues -l and -r.

use crate::batch::Mbatchd;
use crate::batch::site::shares::TreeId;
use crate::batch::usage::fairshare::account::AccountId;
use crate::proto::client::{ShareRow, ShareTable};

impl Mbatchd {
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
