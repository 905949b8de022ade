//! Jobs by their names, as dependency conditions mean them (the own jobs of that name that are
//! known when the condition is made). A name that stands for few jobs is recorded as these; one
//! that stands for many stays a name in the log, and what it stands for follows from the state at
//! that place in it. Conditions made while it stands for the same jobs share them.

use crate::batch::state::names::UserId;
use crate::lang::depend::{DepExpr, Group, Resolved};
use crate::model::idmap::IdMap;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::{Rc, Weak};

/// A name that stands for more jobs than these is recorded as a name.
pub const NAMED_LISTED: usize = 16;
/// Jobs that the names in the conditions of one user's jobs may stand for, all such names together.
pub const MAX_NAMED: usize = 1_000_000;
/// Ranges of job IDs that are examined for the names of one condition: different names, and gaps in
/// the IDs of one name.
pub const MAX_NAME_RUNS: usize = 100_000;
/// Jobs that the names in a condition of bwait, or with an index, may stand for.
pub const MAX_WAIT_NAMED: usize = 10_000;

/// The jobs that names stand for in the conditions of jobs in memory.
#[derive(Debug, Default)]
struct Groups {
    next: u32,
    all: Vec<(UserId, Weak<Group>)>,
}

impl Groups {
    fn like(&self, user: UserId, name: &str, prefix: bool, members: &[u32]) -> Option<Rc<Group>> {
        let same = |g: &Rc<Group>| g.prefix == prefix && g.name == name && *g.members == *members;
        self.all.iter().filter(|(of, _)| *of == user).filter_map(|(_, g)| g.upgrade()).find(same)
    }

    /// Jobs that the groups of a user hold.
    fn held(&self, user: UserId) -> usize {
        let of = self.all.iter().filter(|(of, _)| *of == user).filter_map(|(_, g)| g.upgrade());
        of.map(|g| g.members.len()).sum()
    }
}

/// Job IDs as runs, first to last: those of one user mostly follow each other.
#[derive(Debug, Default, PartialEq, Eq)]
struct Runs(BTreeMap<u32, u32>);

impl Runs {
    fn insert(&mut self, id: u32) {
        let before = self.0.range_mut(..=id).next_back();
        let joined = match before {
            Some((_, last)) if *last >= id => return,
            Some((first, last)) if *last + 1 == id => {
                *last = id;
                Some(*first)
            }
            _ => None,
        };
        let last = id.checked_add(1).and_then(|next| self.0.remove(&next)).unwrap_or(id);
        self.0.insert(joined.unwrap_or(id), last);
    }

    fn remove(&mut self, id: u32) {
        let Some((&first, &last)) = self.0.range(..=id).next_back() else { return };
        if last < id {
            return;
        }
        self.0.remove(&first);
        if first < id {
            self.0.insert(first, id - 1);
        }
        if id < last {
            self.0.insert(id + 1, last);
        }
    }

    #[cfg(test)]
    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }
}

/// The last look for a name, and the jobs it found.
#[derive(Debug)]
struct Looked {
    user: UserId,
    name: String,
    prefix: bool,
    members: Rc<Vec<u32>>,
}

/// The jobs in memory by user and name.
#[derive(Debug, Default)]
struct ByName {
    users: IdMap<UserId, BTreeMap<Box<str>, Runs>>,
    /// A submission asks for the same name several times, and often so does the next.
    looked: RefCell<Option<Looked>>,
}

impl ByName {
    /// A job that has come, or has got its name.
    pub(super) fn insert(&mut self, user: UserId, name: &str, id: u32) {
        self.changed(user, name);
        let names = self.users.entry(user).or_default();
        match names.get_mut(name) {
            Some(runs) => runs.insert(id),
            None => names.entry(name.into()).or_default().insert(id),
        }
    }

    /// A job that leaves, or is about to get another name.
    pub(super) fn remove(&mut self, user: UserId, name: &str, id: u32) {
        self.changed(user, name);
        let Some(names) = self.users.get_mut(&user) else { return };
        let Some(runs) = names.get_mut(name) else { return };
        runs.remove(id);
        if runs.0.is_empty() {
            names.remove(name);
        }
        if names.is_empty() {
            self.users.remove(&user);
        }
    }

    fn changed(&mut self, user: UserId, name: &str) {
        let looked = self.looked.get_mut();
        if looked.as_ref().is_some_and(|l| l.user == user && fits(name, &l.name, l.prefix)) {
            *looked = None;
        }
    }

    /// The runs of IDs of a user's jobs of a name, of one name after the other.
    fn runs<'a>(
        &'a self,
        user: UserId,
        name: &'a str,
        prefix: bool,
    ) -> impl Iterator<Item = (u32, u32)> + 'a {
        let from = (Bound::Included(name), Bound::Unbounded);
        let names = self.users.get(&user).into_iter();
        let some = names.flat_map(move |all| all.range::<str, _>(from));
        let some = some.take_while(move |(n, _)| fits(n, name, prefix));
        some.flat_map(|(_, runs)| runs.0.iter().map(|(first, last)| (*first, *last)))
    }
}

fn length((first, last): (u32, u32)) -> usize {
    (last - first) as usize + 1
}

fn fits(name: &str, asked: &str, prefix: bool) -> bool {
    if prefix { name.starts_with(asked) } else { name == asked }
}

/// The jobs in memory by their names, and the jobs that names stand for in conditions.
#[derive(Debug, Default)]
pub struct JobNames {
    by_name: ByName,
    groups: Groups,
}

impl JobNames {
    /// A job has come, or has got its name.
    pub(super) fn insert(&mut self, user: UserId, name: &str, id: u32) {
        self.by_name.insert(user, name, id);
    }

    /// A job leaves, or is about to get another name.
    pub(super) fn remove(&mut self, user: UserId, name: &str, id: u32) {
        self.by_name.remove(user, name, id);
    }

    /// The IDs of a user's jobs of this name (with `prefix`, whose names begin so), `most` of them.
    pub(super) fn ids<'a>(
        &'a self,
        user: UserId,
        name: &'a str,
        prefix: bool,
        most: usize,
    ) -> impl Iterator<Item = u32> + 'a {
        let runs = self.by_name.runs(user, name, prefix);
        runs.flat_map(|(first, last)| first..=last).take(most)
    }

    /// The last submitted of the user's jobs of this name. IDs ascend up to `next`; larger ones are
    /// from before the IDs began again at 1.
    pub(super) fn last(&self, user: UserId, name: &str, prefix: bool, next: u32) -> Option<u32> {
        let last = |(first, last): (u32, u32)| match next.checked_sub(1) {
            Some(newest) if (first..last).contains(&newest) => newest,
            _ => last,
        };
        let lasts = self.by_name.runs(user, name, prefix).map(last);
        lasts.max_by_key(|id| (*id < next, *id))
    }

    /// Are there more of these jobs than that?
    pub fn more_than(&self, user: UserId, name: &str, prefix: bool, most: usize) -> bool {
        let mut sum = 0;
        self.by_name.runs(user, name, prefix).map(length).any(|n| {
            sum += n;
            sum > most
        })
    }

    /// The IDs of these jobs, ascending.
    fn members(&self, user: UserId, name: &str, prefix: bool) -> Rc<Vec<u32>> {
        let like = |l: &&Looked| (l.user, &*l.name, l.prefix) == (user, name, prefix);
        if let Some(looked) = self.by_name.looked.borrow().as_ref().filter(like) {
            return looked.members.clone();
        }
        let mut runs: Vec<(u32, u32)> = self.by_name.runs(user, name, prefix).collect();
        runs.sort_unstable();
        let mut members = Vec::with_capacity(runs.iter().copied().map(length).sum());
        runs.into_iter().for_each(|(first, last)| members.extend(first..=last));
        let members = Rc::new(members);
        if members.len() > NAMED_LISTED {
            let (name, members) = (name.to_string(), members.clone());
            *self.by_name.looked.borrow_mut() = Some(Looked { user, name, prefix, members });
        }
        members
    }

    /// Has the names of a condition stand for the jobs that bear them now.
    pub(super) fn bind(&mut self, user: UserId, resolved: Resolved) -> Resolved {
        if resolved.names().is_empty() {
            return resolved;
        }
        self.groups.all.retain(|(_, group)| group.strong_count() > 0);
        // what was found for one name may be needed before the condition holds it
        let mut found: Vec<Rc<Group>> = Vec::new();
        resolved.bind(&mut |name, prefix| {
            let members = self.members(user, name, prefix);
            let group = self.groups.like(user, name, prefix, &members).unwrap_or_else(|| {
                let number = self.groups.next;
                self.groups.next += 1;
                let name = name.to_string();
                let group = Rc::new(Group { number, name, prefix, members });
                self.groups.all.push((user, Rc::downgrade(&group)));
                group
            });
            found.push(group.clone());
            group
        })
    }

    /// Do the names of a new condition stand for more jobs than a user may have so?
    pub fn too_many(&self, user: UserId, resolved: &Resolved) -> bool {
        let mut held = None;
        for (name, prefix) in resolved.names() {
            let members = self.members(user, &name, prefix);
            if self.groups.like(user, &name, prefix, &members).is_none() {
                *held.get_or_insert_with(|| self.groups.held(user)) += members.len();
            }
        }
        held.is_some_and(|n| n > MAX_NAMED)
    }

    /// Can the names in a condition be looked up in one turn? All of it counts, whether a name is
    /// there before or not.
    /// `last`: a name stands for the job submitted last alone (JOB_DEP_LAST_SUB=1).
    pub fn within(&self, user: UserId, condition: &DepExpr, recorded: bool, last: bool) -> bool {
        let (mut runs, mut kept, mut listed) = (0, 0, 0);
        let mut within = true;
        condition.names(&mut |name, prefix, whole| {
            let jobs = if last || (recorded && whole) { &mut kept } else { &mut listed };
            let mut all = self.by_name.runs(user, name, prefix);
            while within && let Some(run) = all.next() {
                (runs, *jobs) = (runs + 1, *jobs + length(run));
                within =
                    runs <= MAX_NAME_RUNS && *jobs <= if last { usize::MAX } else { MAX_NAMED };
            }
        });
        within && listed <= MAX_WAIT_NAMED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_hold_the_ids_put_in_and_no_others() {
        let mut runs = Runs::default();
        let mut all = std::collections::BTreeSet::new();
        let mut n = 7u32;
        for step in 0..4000 {
            n = n.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            let id = 1 + (n >> 16) % 200;
            match step % 3 {
                0 => {
                    all.remove(&id);
                    runs.remove(id);
                }
                _ => {
                    all.insert(id);
                    runs.insert(id);
                }
            }
            assert!(runs.iter().eq(all.iter().copied()), "{step}");
            let ends = |(a, b): (&(u32, u32), &(u32, u32))| a.1 + 1 < b.0;
            let list: Vec<(u32, u32)> = runs.0.iter().map(|(a, b)| (*a, *b)).collect();
            assert!(list.iter().zip(list.iter().skip(1)).all(ends), "{list:?}");
        }
        runs = Runs::default();
        (1..=1000).for_each(|id| runs.insert(id));
        runs.insert(u32::MAX);
        assert_eq!(runs.0, BTreeMap::from([(1, 1000), (u32::MAX, u32::MAX)]));
    }

    #[test]
    fn names_that_stand_for_too_many_jobs_are_counted_over_all_of_a_user() {
        let mut all = crate::batch::state::names::Names::default();
        let (ann, bob) = (all.user_id("ann"), all.user_id("bob"));
        let mut names = JobNames::default();
        names.insert(ann, "s1", 1);
        let condition = || Resolved::parse("done(\"s*\")").unwrap();
        let hold = |names: &mut JobNames, user, number, n: usize| {
            let (name, members) = (format!("t{number}"), Rc::new(vec![7; n]));
            let group = Rc::new(Group { number, name, prefix: true, members });
            names.groups.all.push((user, Rc::downgrade(&group)));
            group
        };
        let half = hold(&mut names, ann, 0, MAX_NAMED / 2);
        let other = hold(&mut names, bob, 1, MAX_NAMED);
        let rest = hold(&mut names, ann, 2, MAX_NAMED / 2 - 1);
        assert!(!names.too_many(ann, &condition()));
        // one that is shared costs nothing
        let shared = names.bind(ann, condition());
        assert!(!names.too_many(ann, &condition()));
        drop(shared);
        drop(rest);
        let rest = names.bind(ann, Resolved::parse("done(\"s1\")").unwrap());
        assert!(!names.too_many(ann, &condition()));
        let full = hold(&mut names, ann, 9, MAX_NAMED / 2 - 1);
        assert!(names.too_many(ann, &condition()));
        assert!(!names.too_many(bob, &Resolved::parse("done(1)").unwrap()));
        drop((half, other, rest, full));
    }
}
