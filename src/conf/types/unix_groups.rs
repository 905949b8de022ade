//! Groups of the operating system that USERS, ADMINISTRATORS and lsb.users speak of. See
//! lsb.users(5).

/// A group of the operating system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnixGroup {
    pub name: String,
    pub gid: u32,
    /// The users that the group lists, and the users of /etc/passwd with this primary group.
    pub members: Vec<String>,
}

/// The groups of the operating system that the configuration speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnixGroups {
    pub known: Vec<UnixGroup>,
    /// Words that the system's own files do not know: the name service may.
    pub unknown: Vec<String>,
}

impl UnixGroups {
    /// Takes the name service's answer about the words `asked`: a word that it did not find is no
    /// group.
    pub fn answered(&mut self, asked: &[String], found: Vec<UnixGroup>) {
        let ours = |name: &String| asked.contains(name) && self.unknown.contains(name);
        self.known.retain(|g| !ours(&g.name));
        let found: Vec<_> = found.into_iter().filter(|g| ours(&g.name)).collect();
        self.known.extend(found);
    }

    /// After a reconfiguration: until the name service has answered again its old answers hold.
    pub fn keep_answers(&mut self, old: &UnixGroups) {
        let held = old.known.iter().filter(|g| self.unknown.contains(&g.name));
        self.known.extend(held.cloned());
    }

    /// The names of the groups of a user; `gid` is the primary group where it is known.
    pub fn of(&self, user: &str, gid: Option<u32>) -> Vec<String> {
        let in_it = |g: &&UnixGroup| gid == Some(g.gid) || g.members.iter().any(|m| m == user);
        self.known.iter().filter(in_it).map(|g| g.name.clone()).collect()
    }
}
