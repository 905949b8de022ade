//! The users in user groups: the groups that are worked out once, beside a walk through their
//! members.

use crate::conf::types::{ClusterConf, UserGroup, UserTerm};
use proptest::prelude::*;
use std::collections::BTreeSet;

const WORDS: [&str; 9] = ["g0", "g1", "g2", "g3", "ann", "bob", "staff", "all", "none"];

/// Groups g0 to g3 of these members, `~` before one that is left out; a group may hold groups
/// behind it, and g3 holds g3 where `circle` says so.
fn conf(lists: &[Vec<(usize, bool)>], circle: bool) -> ClusterConf {
    let mut conf = ClusterConf::default();
    for (at, list) in lists.iter().enumerate() {
        let term = |&(word, exclude): &(usize, bool)| UserTerm {
            name: WORDS[word].into(),
            exclude,
            ..UserTerm::default()
        };
        let ahead = |of: &&(usize, bool)| of.0 >= 4 || of.0 > at || (circle && of.0 == 3);
        let mut members: Vec<UserTerm> = list.iter().filter(ahead).map(term).collect();
        // a walk comes to a group as often as it is named
        let mut seen = BTreeSet::new();
        members.retain(|term| seen.insert(term.name.clone()));
        let name = WORDS[at].to_owned();
        conf.batch.users.groups.push(UserGroup { name, members, ..UserGroup::default() });
    }
    conf
}

proptest! {
    #[test]
    fn group_that_is_worked_out_has_the_members_that_a_walk_finds(
        lists in proptest::collection::vec(
            proptest::collection::vec((0usize..9, proptest::bool::weighted(0.1)), 0..4), 4),
        circle in proptest::bool::weighted(0.1),
    ) {
        let conf = conf(&lists, circle);
        let known = conf.batch.users.membership().expect("nothing was added");
        for user in ["ann", "bob", "zoe", "none", "all", "g2"] {
            for unix in [vec![], vec!["staff".to_owned()], vec!["g1".into(), "none".into()]] {
                for group in &WORDS[..4] {
                    let walked = conf.walks_to_user(user, group, &unix);
                    let told = known.holds(group, user, &unix);
                    prop_assert!(told.is_none_or(|told| told == walked),
                        "{user} {unix:?} in {group} of {lists:?}: {told:?}");
                }
            }
        }
    }
}

#[test]
fn only_groups_with_exclusions_or_in_a_circle_are_walked() {
    let ann = || vec![(4, false)];
    let lists = [vec![(1, false)], ann(), vec![(4, true)], vec![(3, false)]];
    let mut conf = conf(&lists, true);
    let known = conf.batch.users.membership().expect("nothing was added");
    let told = |group: &str, user: &str| known.holds(group, user, &[]);
    assert_eq!(
        ["g0", "g1", "g2", "g3"].map(|group| told(group, "ann")),
        [Some(true), Some(true), None, None]
    );
    assert_eq!((told("g0", "bob"), told("g9", "ann")), (Some(false), None));
    conf.batch.users.groups.push(UserGroup::default());
    assert!(conf.batch.users.membership().is_none());
}
