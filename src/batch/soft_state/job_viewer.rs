//! The caller of a listing, with what was found out about the user groups that it shares with the
//! owners of jobs: a listing may be about a million jobs of a few users.

use crate::batch::site::permissions::Caller;
use crate::batch::state::names::UserId;
use crate::model::idmap::IdMap;
use std::collections::HashMap;

/// A caller that asks about jobs.
#[derive(Debug)]
pub(crate) struct JobViewer {
    who: Caller,
    /// Whether a user is in a group of the caller's.
    owners: IdMap<UserId, bool>,
    /// Whether the caller is in a group.
    groups: HashMap<String, bool>,
}

impl JobViewer {
    pub(crate) fn new(who: &Caller) -> JobViewer {
        let (owners, groups) = (IdMap::default(), HashMap::new());
        JobViewer { who: who.clone(), owners, groups }
    }

    pub(crate) fn who(&self) -> &Caller {
        &self.who
    }

    /// Is a user in a group of the caller's? Asks `shares` once about each user.
    pub(crate) fn shares_group(
        &mut self,
        owner: UserId,
        shares: impl FnOnce(&Caller) -> bool,
    ) -> bool {
        *self.owners.entry(owner).or_insert_with(|| shares(&self.who))
    }

    /// Is the caller in a group? Asks `is` once about each group.
    pub(crate) fn is_in(&mut self, group: &str, is: impl FnOnce(&Caller) -> bool) -> bool {
        if let Some(known) = self.groups.get(group) {
            return *known;
        }
        let found = is(&self.who);
        self.groups.insert(group.to_owned(), found);
        found
    }
}
