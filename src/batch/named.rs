//! Jobs by their names, as dependency conditions mean them (the own jobs of that name that are
//! known when the condition is made). A name that stands for few jobs is recorded as these; one
//! that stands for many stays a name in the log, and what it stands for follows from the state at
//! that place in it. Conditions made while it stands for the same jobs share them.

use super::names::Sym;
use super::state::{Job, State};
use crate::lang::depend::{Group, Resolved};
use crate::model::sort::sort_by_key;
use std::rc::{Rc, Weak};

/// A name that stands for more jobs than these is recorded as a name.
pub const NAMED_LISTED: usize = 16;
/// Jobs that the names in the conditions of one user's jobs may stand for, all such names together.
pub const MAX_NAMED: usize = 1_000_000;
/// Jobs that a name in a condition of bwait may stand for.
pub const MAX_WAIT_NAMED: usize = 10_000;

/// The jobs that names stand for in the conditions of jobs in memory.
#[derive(Debug, Default)]
pub struct Groups {
    next: u32,
    all: Vec<(Sym, Weak<Group>)>,
}

impl Groups {
    fn like(&self, user: Sym, name: &str, prefix: bool, members: &[u32]) -> Option<Rc<Group>> {
        let same = |g: &Rc<Group>| g.prefix == prefix && g.name == name && g.members == members;
        self.all.iter().filter(|(of, _)| *of == user).filter_map(|(_, g)| g.upgrade()).find(same)
    }

    /// Jobs that the groups of a user hold.
    fn held(&self, user: Sym) -> usize {
        let of = self.all.iter().filter(|(of, _)| *of == user).filter_map(|(_, g)| g.upgrade());
        of.map(|g| g.members.len()).sum()
    }
}

impl State {
    /// A user's jobs of this name (with `prefix`, whose names begin so), as they were submitted.
    pub fn named(&self, user: Sym, name: &str, prefix: bool) -> Vec<&Job> {
        let fits = |j: &&Job| {
            j.user == user
                && match prefix {
                    true => j.name.name.starts_with(name),
                    false => j.name.name == name,
                }
        };
        let mut found: Vec<&Job> = self.each_job().filter(fits).collect();
        sort_by_key(&mut found, |j| j.order);
        found
    }

    fn members(&self, user: Sym, name: &str, prefix: bool) -> Vec<u32> {
        self.named(user, name, prefix).iter().map(|j| j.id).collect()
    }

    /// Has the names of a condition stand for the jobs that bear them now.
    pub(super) fn bind(&mut self, user: Sym, resolved: Resolved) -> Resolved {
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
                let group = Rc::new(Group { number, name: name.to_string(), prefix, members });
                self.groups.all.push((user, Rc::downgrade(&group)));
                group
            });
            found.push(group.clone());
            group
        })
    }

    /// Do the names of a new condition stand for more jobs than a user may have so?
    pub(super) fn names_too_many(&self, user: Sym, resolved: &Resolved) -> bool {
        let mut held = None;
        for (name, prefix) in resolved.names() {
            let members = self.members(user, &name, prefix);
            if self.groups.like(user, &name, prefix, &members).is_none() {
                *held.get_or_insert_with(|| self.groups.held(user)) += members.len();
            }
        }
        held.is_some_and(|n| n > MAX_NAMED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::{Event, JobNew, Record};
    use crate::model::job::JobSpec;
    use std::sync::Arc;

    #[test]
    fn names_that_stand_for_too_many_jobs_are_counted_over_all_of_a_user() {
        let mut state = State { next_job: 1, ..State::default() };
        let spec = Arc::new(JobSpec { name: "s1".into(), ..JobSpec::default() });
        let new = JobNew { job: 1, user: "ann".into(), spec, ..JobNew::default() };
        state.apply(&Record { time: 1, event: Event::JobNew(Box::new(new)) });
        let (ann, bob) = (state.names.sym("ann"), state.names.sym("bob"));
        let condition = || Resolved::parse("done(\"s*\")").unwrap();
        let mut hold = |user, number, n: usize| {
            let (name, members) = ("t".to_string(), vec![7; n]);
            let group = Rc::new(Group { number, name, prefix: true, members });
            state.groups.all.push((user, Rc::downgrade(&group)));
            group
        };
        let half = hold(ann, 0, MAX_NAMED / 2);
        let other = hold(bob, 1, MAX_NAMED);
        let rest = hold(ann, 2, MAX_NAMED / 2 - 1);
        assert!(!state.names_too_many(ann, &condition()));
        // one that is shared costs nothing
        let shared = state.bind(ann, condition());
        assert!(!state.names_too_many(ann, &condition()));
        drop(shared);
        drop(rest);
        let rest = state.bind(ann, Resolved::parse("done(\"s1\")").unwrap());
        assert!(!state.names_too_many(ann, &condition()));
        let full = Rc::new(Group {
            number: 9,
            name: "u".into(),
            prefix: false,
            members: vec![7; MAX_NAMED / 2 - 1],
        });
        state.groups.all.push((ann, Rc::downgrade(&full)));
        assert!(state.names_too_many(ann, &condition()));
        assert!(!state.names_too_many(bob, &Resolved::parse("done(1)").unwrap()));
        drop((half, other, rest, full));
    }
}
