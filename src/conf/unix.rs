//! Groups of the operating system that USERS, ADMINISTRATORS and lsb.users speak of.
//!
//! A word there that is no group of lsb.users may be one of these. /etc/group and, for the primary
//! groups, /etc/passwd are read with the configuration; of the words that neither knows the runner
//! asks the name service ([`UnixGroups::unknown`]), never in here and never through NSS.

use super::files::Files;
use super::lexer::MAX_BYTES;
use super::types::{ClusterConf, UnixGroup, UnixGroups, UserTerm};
use std::collections::BTreeSet;

/// The system's groups.
const ETC_GROUP: &str = "/etc/group";
/// The system's users.
const ETC_PASSWD: &str = "/etc/passwd";
/// Words that are no names of users or groups.
const RESERVED: [&str; 4] = ["all", "none", "others", "default"];

/// Reads a line of group: name, gid, members.
pub fn parse_group(line: &str) -> Option<(&str, u32, Vec<&str>)> {
    let mut f = line.trim_end_matches('\n').split(':');
    let (name, _, gid, members) = (f.next()?, f.next()?, f.next()?, f.next()?);
    let members = members.split(',').map(str::trim).filter(|m| !m.is_empty()).collect();
    Some((name, gid.parse().ok()?, members))
}

/// Finds the groups that `conf` speaks of.
pub fn read(files: &dyn Files, conf: &ClusterConf) -> UnixGroups {
    let mut words = words(conf);
    let mut found = UnixGroups::default();
    if words.is_empty() {
        return found;
    }
    // Half of a file says half the truth: then the name service is asked for all.
    let text = |path| match files.read(path) {
        Ok(bytes) if bytes.len() <= MAX_BYTES => String::from_utf8_lossy(&bytes).into_owned(),
        _ => String::new(),
    };
    for (name, gid, members) in text(ETC_GROUP).lines().filter_map(parse_group) {
        if words.remove(name) {
            let members = members.into_iter().map(str::to_owned).collect();
            found.known.push(UnixGroup { name: name.to_owned(), gid, members });
        }
    }
    for line in text(ETC_PASSWD).lines() {
        let mut f = line.split(':');
        let (Some(name), Some(gid)) = (f.next(), f.nth(2)) else { continue };
        words.remove(name);
        let Ok(gid) = gid.parse::<u32>() else { continue };
        found.known.iter_mut().filter(|g| g.gid == gid).for_each(|g| g.members.push(name.into()));
    }
    found.unknown = words.into_iter().collect();
    found
}

/// The words that may be groups of the operating system.
fn words(conf: &ClusterConf) -> BTreeSet<String> {
    let groups = &conf.batch.users.groups;
    let of_terms = |terms: &[UserTerm], all: &mut Vec<String>| {
        all.extend(terms.iter().map(|t| t.name.clone()));
    };
    let mut all = Vec::new();
    for queue in &conf.batch.queues {
        of_terms(&queue.users, &mut all);
        all.extend(queue.admins.iter().cloned());
    }
    groups.iter().for_each(|g| of_terms(&g.members, &mut all));
    let of_queues = conf.batch.queues.iter().filter_map(|queue| queue.fairshare.as_ref());
    let of_partitions = conf.batch.hosts.partitions.iter().map(|partition| &partition.shares);
    let shares = of_queues.chain(of_partitions).chain(groups.iter().map(|g| &g.share_list));
    all.extend(shares.flatten().map(|assignment| assignment.name.clone()));
    let rows = conf.batch.users.users.iter().filter(|r| r.each_member);
    all.extend(rows.map(|r| r.name.clone()));
    let may_be =
        |w: &String| !RESERVED.contains(&w.as_str()) && !groups.iter().any(|g| g.name == *w);
    all.into_iter().filter(may_be).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::testing::MapFiles;
    use crate::conf::types::{QueueConf, UserGroup};

    fn term(name: &str) -> UserTerm {
        UserTerm { name: name.into(), ..UserTerm::default() }
    }

    fn conf() -> ClusterConf {
        let mut c = ClusterConf::default();
        let users = ["all", "staff", "chip", "ann"].map(term).to_vec();
        let admins = vec!["wheel".to_owned(), "remote".to_owned()];
        c.batch.queues.push(QueueConf { users, admins, ..QueueConf::default() });
        let members = vec![term("hw"), term("bob")];
        c.batch.users.groups.push(UserGroup {
            name: "chip".into(),
            members,
            ..UserGroup::default()
        });
        c
    }

    #[test]
    fn groups_of_the_files_and_what_is_left_to_ask() {
        let mut files = MapFiles::one(
            ETC_GROUP,
            "staff:x:50:zoe,yan\nwheel:x:10:\nhw:x:60:ann\nchip:x:70:eve\nother:x:80:eve\n",
        );
        files.put(ETC_PASSWD, "ann:x:1:50::/:/bin/sh\nbob:x:2:2::/:/bin/sh\nmax:x:3:10:::\n");
        let found = read(&files, &conf());
        assert_eq!(found.unknown, ["remote"]);
        let of = |user: &str, gid| found.of(user, gid);
        assert_eq!(of("zoe", None), ["staff"]);
        assert_eq!(of("ann", None), ["staff", "hw"]);
        assert_eq!((of("max", None), of("eve", None)), (vec!["wheel".into()], vec![]));
        // Known to no file, but the credential says the primary group.
        assert_eq!(of("far", Some(10)), ["wheel"]);
        assert_eq!(read(&files, &ClusterConf::default()), UnixGroups::default());
    }

    #[test]
    fn answers_of_the_name_service() {
        let mut groups = read(&MapFiles::default(), &conf());
        assert_eq!(groups.unknown, ["ann", "bob", "hw", "remote", "staff", "wheel"]);
        let group = |name: &str, member: &str| UnixGroup {
            name: name.into(),
            gid: 7,
            members: vec![member.into()],
        };
        let asked = ["hw".to_owned(), "staff".to_owned()];
        groups.answered(&asked, vec![group("hw", "zoe"), group("foreign", "zoe")]);
        assert_eq!(groups.of("zoe", None), ["hw"]);
        // The answers hold over a reconfiguration until the groups are looked up again.
        let mut next = read(&MapFiles::default(), &conf());
        next.keep_answers(&groups);
        assert_eq!(next.of("zoe", None), ["hw"]);
        next.answered(&asked, vec![group("hw", "max")]);
        assert_eq!((next.of("zoe", None), next.of("max", None)), (vec![], vec!["hw".into()]));
        let none = MapFiles::one(ETC_GROUP, "hw:x:60:ann\n");
        let mut local = read(&none, &conf());
        local.keep_answers(&next);
        assert_eq!((local.of("max", None), local.of("ann", None)), (vec![], vec!["hw".into()]));
    }
}
