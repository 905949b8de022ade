//! The ranks of classes in queues with APS_PRIORITY: the place of a class is that of its first
//! ready job by its absolute priority.
//!
//! The jobs of such a class differ in nothing that their priority is made of but in when they were
//! submitted, so that the first one comes first whatever time it is, and one rank stands for all of
//! them. A rank is worked out anew when the first job is another one, when time alone may change
//! it (`ApsFormula::next_change`), and when the dynamic priority of the user has changed.
//! Invariant: a class is on the timer at most once, and only while it has a ready job.

use crate::batch::sched::dispatch_key::DispatchKey;
use crate::batch::sched::view::View;
use crate::batch::site::aps::{ApsFormula, ApsInputs, ApsValue, FIRST_RANK};
use crate::batch::state::names::UserId;
use crate::batch::usage::fairshare::account::AccountId;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Seconds after which ranks begin from another instant: what all jobs have risen by since the last
/// one stays small beside their differences.
const ORIGIN_SECS: i64 = 86_400;

/// A class as its ranks are made of.
#[derive(Clone, Debug)]
pub(super) struct ApsClass {
    formula: Rc<ApsFormula>,
    inputs: ApsInputs,
    /// The share account whose priority counts.
    account: Option<AccountId>,
    /// The rank of its first ready job.
    rank: u32,
    /// When time alone may change it, seconds since the epoch.
    due: Option<i64>,
}

/// The instants of ranks.
#[derive(Debug, Default)]
pub(super) struct ApsClock {
    /// Seconds since the epoch.
    now: i64,
    origin: i64,
    /// The second of the dynamic priorities that were taken last.
    fair_at: i64,
    due: BTreeSet<(i64, u32)>,
    /// The accounts are to be found again.
    unknown: bool,
    /// The classes whose ranks depend on an account.
    by_account: BTreeMap<AccountId, BTreeSet<u32>>,
    /// All classes with a rank.
    all: BTreeSet<u32>,
    /// How often a rank was worked out.
    #[cfg(test)]
    ranked: usize,
}

/// When the pending time of a job at this place began, seconds since the epoch; `None`: it migrates
/// and comes before all others.
pub(super) fn pending_since(place: u64) -> Option<i64> {
    let secs = i64::try_from(place >> 32).unwrap_or(i64::MAX);
    (secs > 0).then_some(secs)
}

impl ApsClass {
    pub fn new(formula: Rc<ApsFormula>, inputs: ApsInputs) -> ApsClass {
        ApsClass { formula, inputs, account: None, rank: 0, due: None }
    }

    /// The place of the class while this is its first ready job.
    pub fn head(&self, place: DispatchKey) -> DispatchKey {
        place.with_priority(self.rank)
    }

    /// The priority of a job of the class that is pending since then.
    pub fn value(&self, since: i64, now: i64) -> ApsValue {
        self.formula.value(&self.inputs, since, now)
    }

    /// The rank of a job of the class at this place, among those that are asked for at the same
    /// instant.
    pub fn rank_now(&self, place: u64, now: i64) -> u32 {
        match pending_since(place) {
            None => FIRST_RANK,
            Some(since) => self.formula.rank(&self.inputs, since, (now, now)),
        }
    }

    fn since(place: DispatchKey) -> Option<i64> {
        pending_since(place.base())
    }
}

#[cfg(test)]
impl ApsClock {
    pub fn take_ranked(&mut self) -> usize {
        std::mem::take(&mut self.ranked)
    }
}

impl ApsClock {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn set_now(&mut self, now: i64) {
        self.now = now;
    }

    /// The classes whose ranks depend on an account.
    pub fn of_account(&self, account: AccountId) -> BTreeSet<u32> {
        self.by_account.get(&account).cloned().unwrap_or_default()
    }

    /// Share accounts may be others than before.
    pub fn forget_accounts(&mut self) {
        self.by_account.clear();
        (self.unknown, self.fair_at) = (true, 0);
    }

    /// The classes whose accounts are not known any more.
    pub fn take_unknown(&mut self) -> BTreeSet<u32> {
        match std::mem::take(&mut self.unknown) {
            true => self.all.clone(),
            false => BTreeSet::new(),
        }
    }

    /// A class has ranks from now on.
    pub fn watch(&mut self, class: u32, of: &ApsClass) {
        self.all.insert(class);
        if let Some(account) = of.account {
            self.by_account.entry(account).or_default().insert(class);
        }
    }

    /// A class is forgotten.
    pub fn forget(&mut self, class: u32, of: &ApsClass) {
        self.all.remove(&class);
        let Some(account) = of.account else { return };
        let left = self.by_account.get_mut(&account).map_or(0, |classes| {
            classes.remove(&class);
            classes.len()
        });
        if left == 0 {
            self.by_account.remove(&account);
        }
    }

    /// Works out the rank of a class whose first ready job stands here; `None`: it has none.
    pub fn set_rank(&mut self, class: u32, of: &mut ApsClass, first: Option<DispatchKey>) {
        #[cfg(test)]
        {
            self.ranked += usize::from(first.is_some());
        }
        let due = match first.map(ApsClass::since) {
            None => None,
            Some(None) => {
                of.rank = FIRST_RANK;
                None
            }
            Some(Some(since)) => {
                of.rank = of.formula.rank(&of.inputs, since, (self.origin, self.now));
                of.formula.next_change(&of.inputs, since, self.now)
            }
        };
        if due == of.due {
            return;
        }
        if let Some(due) = of.due {
            self.due.remove(&(due, class));
        }
        self.due.extend(due.map(|due| (due, class)));
        of.due = due;
    }

    /// The classes whose ranks may be others by now.
    pub fn take_due(&mut self) -> BTreeSet<u32> {
        let origin = (self.now - self.origin).abs() >= ORIGIN_SECS;
        if origin {
            self.origin = self.now;
            return self.all.clone();
        }
        let due = self.due.range(..=(self.now, u32::MAX));
        due.map(|due| due.1).collect()
    }

    /// The classes whose dynamic priorities may be others in this second.
    pub fn take_fair(&mut self) -> BTreeSet<u32> {
        match std::mem::replace(&mut self.fair_at, self.now) == self.now {
            true => BTreeSet::new(),
            false => self.by_account.values().flatten().copied().collect(),
        }
    }
}

impl ApsClass {
    /// Share accounts may be others than before.
    pub fn forget_account(&mut self) {
        self.account = None;
    }

    /// Finds the share account of a user, and of a group of bsub -G.
    pub fn find_account(&mut self, view: &View, user: UserId, group: &str) {
        let leaves = |tree| view.fairshare.leaves(tree, user, group);
        self.account = self.formula.tree.and_then(leaves).and_then(|all| all.first().copied());
    }

    /// Takes the dynamic priority of the user as it is now.
    pub fn take_share(&mut self, view: &View) {
        let priority = |account| view.fairshare.priority(account, view.now.secs());
        self.inputs.fairshare = self.account.map_or(0.0, priority);
    }
}
