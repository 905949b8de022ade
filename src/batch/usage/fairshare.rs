//! Share accounts: what each user and group of a share tree holds and has used. Started jobs are
//! counted as they change, at the account that they are charged to and at all above it; the use
//! of ended ones decays by HIST_HOURS (`fairshare` in lsb.queues(5), lsb.params(5)).
//!
//! Nothing here walks through users or jobs as time passes: decay is worked out where an account is
//! asked for. Invariant: what is held is the sum over the started elements, and what was used is
//! the sum of [`history::History`], which says how both outlive mbatchd.

pub mod account;
pub mod decayed;
pub mod history;

use crate::batch::site::Site;
use crate::batch::site::shares::{Factors, SharePath, ShareStep, TreeId};
use crate::batch::state::change::{Change, ChangeKind};
use crate::batch::state::names::{QueueId, UserId};
use crate::batch::state::{ElemState, Job, Phase, Run, State};
use crate::batch::usage::fairshare::account::{Account, AccountId, Running, ShareNow, Used};
use crate::batch::usage::fairshare::decayed::{Decayed, spread};
use crate::batch::usage::fairshare::history::{ChargeKey, History, UsedTime};
use crate::model::JobRef;
use crate::model::event::{Event, Record};
use crate::model::idmap::IdMap;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// The accounts that jobs of one kind may be charged to.
pub type Leaves = Rc<[AccountId]>;

/// The accounts of a user by the group of bsub -G.
type LeavesByGroup = Vec<(Box<str>, Leaves)>;

/// The part of a started element in its account.
#[derive(Clone, Debug, PartialEq)]
struct Holding {
    account: AccountId,
    key: ChargeKey,
    /// How often it counts: once, or once for each slot.
    count: i64,
    running: Running,
    /// The run limit, seconds, as often as it counts.
    limit: Option<i64>,
    /// Decayed CPU seconds as of a report.
    cpu: f64,
    cpu_at: i64,
}

/// All share accounts.
#[derive(Debug, Default)]
pub struct Fairshare {
    factors: Vec<Factors>,
    /// The key of each tree.
    names: Vec<String>,
    accounts: Vec<Account>,
    /// The accounts at the root of each tree.
    roots: Vec<BTreeMap<Arc<str>, AccountId>>,
    /// The accounts of users, by the group of bsub -G.
    leaves: IdMap<(TreeId, UserId), LeavesByGroup>,
    held: IdMap<JobRef, Holding>,
    past: History,
    /// Accounts whose use has changed since they were taken.
    changed: Vec<AccountId>,
}

impl Fairshare {
    pub fn is_empty(&self) -> bool {
        self.factors.is_empty()
    }

    /// The accounts that the jobs of a user in a tree are charged to, where the user has a share;
    /// `group`: of bsub -G. One of them is known once a job of the kind is.
    pub fn leaves(&self, tree: TreeId, user: UserId, group: &str) -> Option<&Leaves> {
        let known = self.leaves.get(&(tree, user))?;
        known.iter().find(|of| *of.0 == *group).map(|of| &of.1).filter(|of| !of.is_empty())
    }

    /// Has a user a share in a tree, as far as jobs of the user are known?
    pub fn has_share(&self, tree: TreeId, user: UserId) -> bool {
        let known = self.leaves.get(&(tree, user));
        known.is_some_and(|all| all.iter().any(|of| !of.1.is_empty()))
    }

    /// The account that a started element is charged to; none: there is no fairshare for it, or its
    /// user has no share.
    pub fn charged(&self, site: &Site, job: &Job, idx: u32, run: &Run) -> Option<AccountId> {
        let tree = site.charged_tree(job.queue_at(idx), run.hosts.first()?.0)?;
        let leaves = self.leaves(tree, job.user, &job.spec_at(idx).user_group)?;
        self.choose(tree, leaves, run)
    }

    /// The account of an attempt among those that its user has.
    fn choose(&self, tree: TreeId, leaves: &Leaves, run: &Run) -> Option<AccountId> {
        let first = leaves.first().copied()?;
        let named = || self.find(tree, &run.account).filter(|account| leaves.contains(account));
        match leaves.len() {
            1 => Some(first),
            _ => Some(named().unwrap_or(first)),
        }
    }

    /// The dynamic priority of an account at a second.
    pub fn priority(&self, account: AccountId, now: i64) -> f64 {
        let of = &self.accounts[account.0 as usize];
        of.priority(&self.factors[of.tree.0 as usize], now)
    }

    pub fn tree(&self, account: AccountId) -> TreeId {
        self.accounts[account.0 as usize].tree
    }

    pub fn parent(&self, account: AccountId) -> Option<AccountId> {
        self.accounts[account.0 as usize].parent
    }

    /// `/group/user` of an account.
    pub fn path(&self, account: AccountId) -> String {
        let mut names = Vec::new();
        let mut next = Some(account);
        while let Some(id) = next {
            names.push(self.accounts[id.0 as usize].name.clone());
            next = self.parent(id);
        }
        names.iter().rev().map(|name| format!("/{name}")).collect()
    }

    /// The accounts right below one, or at the root, by name.
    pub fn below(
        &self,
        tree: TreeId,
        account: Option<AccountId>,
    ) -> impl Iterator<Item = AccountId> + '_ {
        match account {
            Some(account) => self.accounts[account.0 as usize].below.values().copied(),
            None => self.roots[tree.0 as usize].values().copied(),
        }
    }

    /// An account as commands show it.
    pub fn shown(&self, account: AccountId, now: i64) -> ShareNow {
        let of = &self.accounts[account.0 as usize];
        of.now(&self.factors[of.tree.0 as usize], now)
    }

    pub(crate) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The accounts whose use has changed.
    pub(crate) fn take_changed(&mut self) -> Vec<AccountId> {
        std::mem::take(&mut self.changed)
    }
}

impl Fairshare {
    /// The accounts of a configuration, with what started jobs hold and ended ones have used.
    pub(crate) fn rebuild(&mut self, state: &State, site: &Site) {
        let past = std::mem::take(&mut self.past);
        let known = self.known_leaves();
        let factors: Vec<Factors> =
            site.shares.ids().map(|tree| site.shares.get(tree).factors.clone()).collect();
        let roots = factors.iter().map(|_| BTreeMap::new()).collect();
        let names = site.shares.ids().map(|tree| site.shares.get(tree).key()).collect();
        *self = Fairshare { factors, names, roots, ..Fairshare::default() };
        for tree in site.shares.ids() {
            for path in site.shares.get(tree).named() {
                self.account(tree, &path);
            }
        }
        for (key, used) in past.all() {
            self.count_used(state, site, &key, &used);
        }
        self.past = past;
        for (name, user, group) in known {
            if let Some(tree) = site.shares.of_key(&name) {
                self.ensure(state, site, (tree, user), &group);
            }
        }
        if !self.is_empty() {
            let started: Vec<JobRef> = state.counts().started().collect();
            started.into_iter().for_each(|at| self.element(state, site, at, 0));
        }
        self.changed.clear();
    }

    /// The kinds of job whose accounts are known, by the name of their tree.
    fn known_leaves(&self) -> Vec<(String, UserId, Box<str>)> {
        let of = |(key, groups): (&(TreeId, UserId), &LeavesByGroup)| {
            let (name, user) = (self.names[key.0.0 as usize].clone(), key.1);
            let of = |group: &(Box<str>, Leaves)| (name.clone(), user, group.0.clone());
            groups.iter().map(of).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = self.leaves.iter().flat_map(of).collect();
        all.sort();
        all
    }

    /// The account at the end of a path; it is made where it is not there.
    fn account(&mut self, tree: TreeId, path: &[ShareStep]) -> Option<AccountId> {
        let mut parent = None;
        for step in path {
            let next = AccountId(self.accounts.len() as u32);
            let siblings = match parent {
                None => &mut self.roots[tree.0 as usize],
                Some(AccountId(of)) => &mut self.accounts[of as usize].below,
            };
            let id = *siblings.entry(step.name.clone()).or_insert(next);
            if id == next {
                self.accounts.push(Account {
                    tree,
                    parent,
                    name: step.name.clone(),
                    shares: step.shares,
                    below: BTreeMap::new(),
                    used: Used::default(),
                });
            }
            parent = Some(id);
        }
        parent
    }

    /// The accounts of a user's jobs are known from now on; none: the user has no share.
    pub(crate) fn ensure(
        &mut self,
        state: &State,
        site: &Site,
        (tree, user): (TreeId, UserId),
        group: &str,
    ) -> Leaves {
        let known = self.leaves.get(&(tree, user));
        if let Some(of) = known.and_then(|all| all.iter().find(|of| *of.0 == *group)) {
            return of.1.clone();
        }
        let all = site.share_paths(tree, state.names().user(user));
        let through = |group: &str| -> Vec<SharePath> {
            let meant = |path: &&SharePath| path.iter().any(|step| *step.name == *group);
            all.iter().filter(meant).cloned().collect()
        };
        let default = site.params().default_user_group.as_deref().unwrap_or_default();
        let given = [group, default].into_iter().filter(|group| !group.is_empty()).map(through);
        let paths = given.chain([all.clone()]).find(|paths| !paths.is_empty()).unwrap_or_default();
        let leaves: Leaves = paths.iter().filter_map(|path| self.account(tree, path)).collect();
        let of_user = self.leaves.entry((tree, user)).or_default();
        of_user.push((group.into(), leaves.clone()));
        leaves
    }

    /// The accounts of the pending elements of a job are known from now on.
    pub(crate) fn ensure_job(&mut self, state: &State, site: &Site, job: &Job) {
        if self.is_empty() {
            return;
        }
        for part in 0..=job.parts().len() as u32 {
            for tree in site.trees_of(job.queue_of(part)) {
                self.ensure(state, site, (tree, job.user), &job.spec_of(part).user_group);
            }
        }
    }

    /// Follows an event and the change that it made.
    pub(crate) fn follow(
        &mut self,
        state: &State,
        site: &Site,
        rec: &Record,
        change: Option<&Change>,
    ) {
        match &rec.event {
            Event::ShareUsed(used) => {
                let (key, used) = self.past.put(state, used, rec.time);
                return self.count_used(state, site, &key, &used);
            }
            Event::JobClean { at } if at.idx == 0 => return self.past.forget_job(at.job),
            _ => {}
        }
        if self.is_empty() {
            return;
        }
        let Some(change) = change else { return };
        match &change.kind {
            ChangeKind::Element { .. } => self.element(state, site, change.at, rec.time),
            ChangeKind::Modified { .. } => {
                let Some(job) = state.job(change.at.job) else { return };
                let mut next = job.started_from(0);
                while let Some(idx) = next {
                    self.element(state, site, JobRef { job: job.id, idx }, rec.time);
                    next = idx.checked_add(1).and_then(|from| job.started_from(from));
                }
            }
            _ => {}
        }
    }

    /// The host of a started element has reported its use at a second.
    pub(crate) fn used(&mut self, state: &State, site: &Site, at: JobRef, now: i64) {
        if self.held.contains_key(&at) {
            self.element(state, site, at, now);
        }
    }

    /// Counts an element as it is now.
    fn element(&mut self, state: &State, site: &Site, at: JobRef, now: i64) {
        let job = state.job(at.job);
        let elem = job.and_then(|job| job.elem(at.idx));
        let holding = match (job, elem.map(|e| &e.state)) {
            (Some(job), Some(ElemState::Run(run))) => self.holding(state, site, (job, at), run),
            _ => None,
        };
        let before = match holding.clone() {
            Some(holding) => self.held.insert(at, holding),
            None => self.held.remove(&at),
        };
        if before == holding {
            return;
        }
        if let Some(held) = &before {
            self.change(held, -1);
        }
        if let Some(held) = &holding {
            return self.change(held, 1);
        }
        let (Some(held), Some(elem)) = (before, elem) else { return };
        let rate = self.rate(held.account);
        let used = match &elem.state {
            ElemState::End(end) => {
                let run = elem.ran(end.end_time);
                UsedTime {
                    cpu: Decayed::new(spread(end.cpu.max(0.0), rate, run), end.end_time),
                    run: Decayed::new((run * held.count) as f64, end.end_time),
                }
            }
            // its attempt is over, by no end of its own
            _ => {
                let run = held.running.secs(now);
                UsedTime { cpu: Decayed::new(0.0, now), run: Decayed::new(run as f64, now) }
            }
        };
        self.past.add(at.job, &held.key, &used, rate);
        self.add_used(held.account, &used);
    }

    fn rate(&self, account: AccountId) -> f64 {
        self.factors[self.tree(account).0 as usize].rate
    }

    /// The part of a started element in its account; none: its queue has no fairshare, or its user
    /// no share.
    fn holding(
        &mut self,
        state: &State,
        site: &Site,
        (job, at): (&Job, JobRef),
        run: &Run,
    ) -> Option<Holding> {
        let (queue, spec) = (job.queue_at(at.idx), job.spec_at(at.idx));
        let tree = site.charged_tree(queue, run.hosts.first()?.0)?;
        let group = spec.user_group.as_str();
        let leaves = self.ensure(state, site, (tree, job.user), group);
        let account = self.choose(tree, &leaves, run)?;
        let group: Arc<str> = match leaves.len() {
            1 => group.into(),
            _ => self.accounts[self.parent(account).unwrap_or(account).0 as usize].name.clone(),
        };
        let factors = &self.factors[tree.0 as usize];
        let count = if factors.by_slots { i64::from(run.slots()) } else { 1 };
        let start = run.start_time + run.susp_total;
        let stands = matches!(run.phase, Phase::Ssusp(_) | Phase::Ususp(_));
        let running = match stands && run.susp_since > 0 {
            true => {
                Running { count: 0, starts: 0, stopped: count * (run.susp_since - start).max(0) }
            }
            false => Running { count, starts: count * start, stopped: 0 },
        };
        let (usage, cpu_at) = (&run.soft.usage, run.soft.usage_time);
        let cpu = match cpu_at > 0 {
            true => spread(usage.cpu_secs(), factors.rate, (cpu_at - run.start_time).max(0)),
            false => 0.0,
        };
        let limit = spec.limits.run.and_then(|secs| i64::try_from(secs).ok());
        Some(Holding {
            account,
            key: ChargeKey { tree: self.tree_key(site, tree, queue), user: job.user, group },
            count,
            running,
            limit: limit.map(|secs| secs.saturating_mul(count)),
            cpu,
            cpu_at,
        })
    }

    /// The name by which the log knows a tree: that of the queue itself among several of one tree.
    fn tree_key(&self, site: &Site, tree: TreeId, queue: QueueId) -> Arc<str> {
        let of = site.shares.get(tree);
        match site.queue(queue).filter(|_| !of.is_partition()) {
            Some(queue) => queue.conf.name.as_str().into(),
            None => of.key().into(),
        }
    }

    /// Adds to an account and all above it what an element holds, or takes it away.
    fn change(&mut self, held: &Holding, sign: i64) {
        let mut next = Some(held.account);
        while let Some(id) = next {
            let account = &mut self.accounts[id.0 as usize];
            let (rate, used) = (self.factors[account.tree.0 as usize].rate, &mut account.used);
            used.started += sign * held.count;
            used.elements = used.elements.saturating_add_signed(sign as i32);
            used.running.change(&held.running, sign);
            if let Some(limit) = held.limit {
                used.limited.change(&held.running, sign);
                used.committed += sign * limit;
            }
            used.cpu.add(rate, sign as f64 * held.cpu, held.cpu_at);
            if held.running.count > 0 {
                let start = held.running.starts / held.running.count;
                used.starts.add(rate, (sign * held.running.count) as f64, start);
            }
            // sums of decimal fractions leave a rest
            if used.elements == 0 {
                (used.cpu, used.starts) = (Decayed::default(), Decayed::default());
            }
            next = account.parent;
            self.changed.push(id);
        }
    }

    /// Adds what an ended job has used.
    fn add_used(&mut self, account: AccountId, by: &UsedTime) {
        let mut next = Some(account);
        while let Some(id) = next {
            let account = &mut self.accounts[id.0 as usize];
            let (rate, used) = (self.factors[account.tree.0 as usize].rate, &mut account.used);
            used.past_cpu.add(rate, by.cpu.value(), by.cpu.time());
            used.past_run.add(rate, by.run.value(), by.run.time());
            next = account.parent;
            self.changed.push(id);
        }
    }

    /// Adds what the log tells of jobs that ended before it begins.
    fn count_used(&mut self, state: &State, site: &Site, key: &ChargeKey, used: &UsedTime) {
        let Some(tree) = site.shares.of_key(&key.tree) else { return };
        let leaves = self.ensure(state, site, (tree, key.user), &key.group);
        if let Some(account) = leaves.first() {
            self.add_used(*account, used);
        }
    }

    /// The records that keep the use of jobs which a new log does not have.
    pub(crate) fn records(&self, state: &State, site: &Site, now: i64) -> Vec<Record> {
        let rate = |key: &ChargeKey| {
            site.shares.of_key(&key.tree).map_or(0.0, |tree| site.shares.get(tree).factors.rate)
        };
        self.past.records(state, rate, now)
    }
}

impl Fairshare {
    /// Is what accounts hold what the started elements hold, and what they have used what the
    /// history says? Looks at every started element. For tests and the simulator.
    pub fn audit(&self, state: &State, site: &Site, now: i64) -> Result<(), String> {
        let mut counted = Fairshare { past: self.past.clone(), ..Fairshare::default() };
        counted.rebuild(state, site);
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * (1.0 + a.abs().max(b.abs()));
        for (position, account) in self.accounts.iter().enumerate() {
            let path = self.path(AccountId(position as u32));
            let (f, kept) = (&self.factors[account.tree.0 as usize], &account.used);
            let none = Used::default();
            let is = counted
                .find(account.tree, &path)
                .map_or(&none, |id| &counted.accounts[id.0 as usize].used);
            let whole = |u: &Used| (u.started, u.elements, u.running, u.limited, u.committed);
            let same = whole(kept) == whole(is)
                && near(kept.cpu_secs(f, now), is.cpu_secs(f, now))
                && near(kept.run_secs(f, now), is.run_secs(f, now));
            if !same {
                let tree = &site.shares.get(account.tree).name;
                return Err(format!("share account {tree}{path}: kept {kept:?}, it is {is:?}"));
            }
        }
        Ok(())
    }

    /// The account of a path.
    fn find(&self, tree: TreeId, path: &str) -> Option<AccountId> {
        let mut at = None;
        for name in path.split('/').skip(1) {
            let siblings = match at {
                None => self.roots.get(tree.0 as usize)?,
                Some(AccountId(of)) => &self.accounts[of as usize].below,
            };
            at = Some(*siblings.get(name)?);
        }
        at
    }
}
