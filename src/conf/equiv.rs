//! hosts.equiv: who may come in from which host, as ruserok(3) reads that file.
//!
//! The first line that matches host and user decides; a line with `-` before the host or the
//! user that matches refuses. A line without a user lets a user of the same name in, `+` is any
//! host or any user. Netgroups are not looked up: `+@group` matches nobody and `-@group`
//! everybody, so that a doubt never lets anyone in.

/// The lines of such a file that mean something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Equiv {
    lines: Vec<(String, String)>,
}

/// Most lines of a file that are read.
pub const MAX_LINES: usize = 10_000;

impl Equiv {
    /// Reads the text; what follows a second word does not count.
    pub fn parse(bytes: &[u8]) -> Equiv {
        let text = String::from_utf8_lossy(bytes);
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            let host = words.next().filter(|h| !h.starts_with('#'))?;
            let user = words.next().filter(|u| !u.starts_with('#'));
            Some((host.to_owned(), user.unwrap_or_default().to_owned()))
        };
        Equiv { lines: text.lines().take(MAX_LINES).filter_map(line).collect() }
    }

    /// Whether `theirs`, a user of a host, may come in as `ours`. `host` tells whether a name or
    /// address of the file is that host. `None`: no line says anything.
    pub fn allows(&self, host: &dyn Fn(&str) -> bool, theirs: &str, ours: &str) -> Option<bool> {
        for (at, user) in &self.lines {
            match word(at, host) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => continue,
            }
            let who = if user.is_empty() { ours } else { user };
            match word(who, &|name| name == theirs) {
                None => {}
                said => return said,
            }
        }
        None
    }
}

/// The verdict of one field: yes, no, or none.
fn word(field: &str, is: &dyn Fn(&str) -> bool) -> Option<bool> {
    match field.split_at_checked(1) {
        _ if field == "+" => Some(true),
        Some(("+", group)) if group.starts_with('@') => None,
        Some(("-", group)) if group.starts_with('@') => Some(false),
        Some(("-", name)) => is(name).then_some(false),
        _ => is(field).then_some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_matches_decides() {
        let text = "# comment\n\nhosta\nhostb ann extra\nhostb +\n-hostc\nhostc ann\n\
                    hostd -eve\nhostd +\n+@net ann\nhoste -@bad\nhoste ann\n+ zoe # all of her\n";
        let equiv = Equiv::parse(text.as_bytes());
        let ask = |host: &str, theirs: &str, ours: &str| {
            let same = |h: &str| h.eq_ignore_ascii_case(host);
            equiv.allows(&same, theirs, ours)
        };
        assert_eq!(ask("HostA", "ann", "ann"), Some(true));
        assert_eq!(ask("hosta", "ann", "bob"), None, "only under her own name");
        assert_eq!(ask("hostb", "ann", "bob"), Some(true), "she may be anybody");
        assert_eq!(ask("hostb", "eve", "bob"), Some(true));
        assert_eq!(ask("hostc", "ann", "ann"), Some(false));
        assert_eq!(ask("hostd", "eve", "eve"), Some(false));
        assert_eq!(ask("hostd", "ann", "ann"), Some(true));
        assert_eq!(ask("hoste", "ann", "ann"), Some(false), "an unknown group may hold her");
        assert_eq!(ask("hostx", "ann", "ann"), None);
        assert_eq!(ask("hostx", "zoe", "bob"), Some(true));
        assert_eq!(Equiv::parse(b"").allows(&|_| true, "ann", "ann"), None);
        assert_eq!(Equiv::parse(b"+").allows(&|_| true, "ann", "ann"), Some(true));
        assert_eq!(Equiv::parse(b"+").allows(&|_| true, "ann", "bob"), None);
        assert_eq!(Equiv::parse(b"\xff +\n- -\n+ +").allows(&|_| false, "a", "b"), Some(true));
    }
}
