//! The job groups with their owners and limits (JGRP_ADD, JGRP_MOD, JGRP_CTRL).

use crate::model::event::JobGroupRecord;
use crate::model::job_group::{is_within, lineage};
use std::collections::BTreeMap;

/// A job group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobGroup {
    pub uid: u32,
    pub owner: String,
    /// The group was made by bgadd.
    pub explicit: bool,
    /// Most started jobs of the group and all below it; `None`: no limit of its own.
    pub limit: Option<u32>,
    /// The service class given with bgadd; empty none.
    pub sla: String,
}

impl JobGroup {
    /// The record of the group as it is.
    pub fn record(self, path: &str, time: i64) -> JobGroupRecord {
        let JobGroup { uid, owner, explicit, limit, sla } = self;
        JobGroupRecord { uid, time, owner, path: path.to_string(), sla, limit, explicit }
    }
}

#[derive(Debug, Default)]
pub struct JobGroups {
    /// The groups by path.
    all: BTreeMap<Box<str>, JobGroup>,
    /// How many have a limit.
    limited: usize,
}

impl JobGroups {
    pub fn get(&self, path: &str) -> Option<&JobGroup> {
        self.all.get(path)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All groups, each behind those above it.
    pub fn each(&self) -> impl DoubleEndedIterator<Item = (&str, &JobGroup)> {
        self.all.iter().map(|(path, group)| (&**path, group))
    }

    /// The groups below one, without it.
    pub fn below<'a>(&'a self, path: &str) -> impl Iterator<Item = (&'a str, &'a JobGroup)> {
        let from = format!("{path}/");
        let begin = from.clone();
        let all = self.all.range::<str, _>((
            std::ops::Bound::Included(begin.as_str()),
            std::ops::Bound::Unbounded,
        ));
        all.take_while(move |(path, _)| path.starts_with(&from)).map(|(p, group)| (&**p, group))
    }

    /// Has any group a limit?
    pub fn has_limits(&self) -> bool {
        self.limited > 0
    }

    /// The groups of a lineage that have a limit, with it.
    pub fn limits<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a str, u32)> {
        let of = |path: &'a str| Some((path, self.all.get(path)?.limit?));
        lineage(path).filter_map(of)
    }

    /// Is the user the owner of the group, or of one above it?
    pub fn is_owner(&self, path: &str, user: &str) -> bool {
        lineage(path).any(|path| self.all.get(path).is_some_and(|group| group.owner == user))
    }

    pub(super) fn put(&mut self, r: &JobGroupRecord) {
        let (owner, sla) = (r.owner.clone(), r.sla.clone());
        let group = JobGroup { uid: r.uid, owner, explicit: r.explicit, limit: r.limit, sla };
        self.limited += usize::from(group.limit.is_some());
        let before = self.all.insert(r.path.as_str().into(), group);
        self.limited -= usize::from(before.is_some_and(|group| group.limit.is_some()));
    }

    /// A group is gone, with all below it.
    pub(super) fn remove(&mut self, path: &str) {
        let gone: Vec<Box<str>> = self
            .all
            .range::<str, _>((std::ops::Bound::Included(path), std::ops::Bound::Unbounded))
            .map(|(at, _)| at)
            .take_while(|at| at.starts_with(path))
            .filter(|at| is_within(at, path))
            .cloned()
            .collect();
        for path in gone {
            let group = self.all.remove(&path);
            self.limited -= usize::from(group.is_some_and(|group| group.limit.is_some()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(all: &mut JobGroups, path: &str, limit: Option<u32>) {
        let (path, owner) = (path.to_string(), "ann".to_string());
        all.put(&JobGroupRecord { path, owner, limit, explicit: true, ..Default::default() });
    }

    #[test]
    fn group_goes_with_all_below_it_and_with_no_other() {
        let mut all = JobGroups::default();
        for path in ["/a", "/a/b", "/a/b/c", "/a-b", "/ab"] {
            put(&mut all, path, Some(1));
        }
        let below: Vec<&str> = all.below("/a").map(|of| of.0).collect();
        assert_eq!(below, ["/a/b", "/a/b/c"]);
        assert_eq!(all.limits("/a/b/x").collect::<Vec<_>>(), [("/a/b", 1), ("/a", 1)]);
        all.remove("/a");
        assert_eq!(all.each().map(|of| of.0).collect::<Vec<_>>(), ["/a-b", "/ab"]);
        assert!(all.has_limits());
        put(&mut all, "/ab", None);
        all.remove("/a-b");
        assert!(!all.has_limits());
        put(&mut all, "/x", Some(3));
        all.put(&JobGroupRecord { path: "/x/y".into(), owner: "bob".into(), ..<_>::default() });
        assert!(all.is_owner("/x/y", "ann") && all.is_owner("/x/y", "bob"));
        assert!(!all.is_owner("/x", "bob"));
    }
}
