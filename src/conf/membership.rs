//! The users in each user group of lsb.users, worked out once: a submission asks for every group
//! that shares a queue, and a listing for every job. Groups with exclusions, in a circle, or with
//! more members than are worked out are not known here; their members are walked
//! ([`super::check`]).

use std::collections::{HashMap, HashSet};

/// Levels of groups nested in each other that are followed.
pub const MAX_GROUP_DEPTH: usize = 32;
/// Words of member lists that are followed for all groups together, nested groups each time.
const MAX_WORDS: usize = 1 << 20;

/// The words of a member list, `true` beside one that is left out, `~name`.
pub type MemberList<'a> = Vec<(&'a str, bool)>;

/// The members of all groups by name, nested groups followed.
#[derive(Debug, Default)]
pub struct Membership {
    /// The number of groups.
    count: usize,
    /// Numbers of the words of member lists.
    words: HashMap<Box<str>, u32>,
    /// The members of each group; `None`: the group is to be walked.
    groups: HashMap<Box<str>, Option<Members>>,
}

/// The members of one group.
#[derive(Debug)]
struct Members {
    /// `all` is a member.
    all: bool,
    /// The numbers of its words, in order.
    words: Box<[u32]>,
}

impl Membership {
    /// The members of groups by their names; of several groups of one name the first counts.
    pub fn of<'a>(groups: impl Iterator<Item = (&'a str, MemberList<'a>)>) -> Membership {
        let mut by_name: HashMap<&str, MemberList> = HashMap::new();
        let mut found = Membership::default();
        for (name, members) in groups {
            by_name.entry(name).or_insert(members);
            found.count += 1;
        }
        let mut left = MAX_WORDS;
        for (name, group) in &by_name {
            let mut words = HashSet::new();
            let whole = gather(&by_name, group, 0, &mut words, &mut left);
            let members = whole.then(|| found.members(&words));
            found.groups.insert((*name).into(), members);
        }
        found
    }

    fn members(&mut self, words: &HashSet<&str>) -> Members {
        let mut number = |word: &str| match self.words.get(word) {
            Some(number) => *number,
            None => {
                let next = self.words.len() as u32;
                *self.words.entry(word.into()).or_insert(next)
            }
        };
        let mut numbers: Vec<u32> = words.iter().map(|word| number(word)).collect();
        numbers.sort_unstable();
        Members { all: words.contains("all"), words: numbers.into() }
    }

    /// The number of groups that there were.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Is a user in a group, by name or by a group of the operating system? `None`: the members of
    /// the group are to be walked.
    pub fn holds(&self, group: &str, user: &str, unix_groups: &[String]) -> Option<bool> {
        let members = self.groups.get(group)?.as_ref()?;
        let has = |word: &str| {
            let number = self.words.get(word);
            number.is_some_and(|number| members.words.binary_search(number).is_ok())
        };
        // a group of lsb.users hides one of the operating system with its name
        let unix =
            |name: &String| name != "none" && has(name) && !self.groups.contains_key(name.as_str());
        Some(members.all || has(user) || unix_groups.iter().any(unix))
    }
}

/// Adds the words of a member list and of the groups nested in it; false: they are to be walked.
fn gather<'a>(
    groups: &HashMap<&str, MemberList<'a>>,
    members: &[(&'a str, bool)],
    depth: usize,
    words: &mut HashSet<&'a str>,
    left: &mut usize,
) -> bool {
    if depth >= MAX_GROUP_DEPTH {
        return false;
    }
    members.iter().all(|&(word, left_out)| {
        if left_out || *left == 0 {
            return false;
        }
        *left -= 1;
        words.insert(word);
        match groups.get(word) {
            Some(nested) if !matches!(word, "all" | "none") => {
                gather(groups, nested, depth + 1, words, left)
            }
            _ => true,
        }
    })
}
