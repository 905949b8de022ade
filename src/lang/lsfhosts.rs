//! ~/.lsfhosts (lsfhosts(5)): the accounts that a user's jobs run under on other hosts, and the
//! users of other hosts whose jobs may run under the account of the owner of the file.

/// The name of the file in the home directory.
pub const NAME: &str = ".lsfhosts";
/// Longest file, bytes.
pub const MAX_BYTES: usize = 64 << 10;
/// Most lines that are read.
pub const MAX_LINES: usize = 1000;
/// The word for any host, or any user.
const ANY: &str = "+";

/// One line: `host user [send|recv]`.
struct Line<'a> {
    host: &'a str,
    user: &'a str,
    /// A line without the word has `None` and means both.
    sends: Option<bool>,
}

/// The lines of a file; a line of another shape says nothing.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().take(MAX_LINES).filter(|line| !line.trim_start().starts_with('#')).filter_map(
        |line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (host, user, sends) = match words[..] {
                [host, user] => (host, user, None),
                [host, user, "send"] => (host, user, Some(true)),
                [host, user, "recv"] => (host, user, Some(false)),
                _ => return None,
            };
            Some(Line { host, user, sends })
        },
    )
}

/// The accounts that the owner of the file asks for, in the form of `account`: hosts and users in
/// turn. Any user (`+`) is no account.
pub fn proposals(text: &str) -> String {
    let asks = lines(text).filter(|line| line.sends != Some(false) && line.user != ANY);
    let pairs: Vec<String> = asks.map(|line| format!("{} {}", line.host, line.user)).collect();
    pairs.join(" ")
}

/// The account of the first proposal for a host that `is` accepts.
pub fn account(proposals: &str, is: impl Fn(&str) -> bool) -> Option<&str> {
    let mut words = proposals.split(' ').filter(|word| !word.is_empty());
    while let (Some(host), Some(user)) = (words.next(), words.next()) {
        if host == ANY || is(host) {
            return Some(user);
        }
    }
    None
}

/// Whether the owner of the file accepts jobs of `user` that were submitted on `host`.
pub fn accepts(text: &str, host: &str, user: &str) -> bool {
    let same = |name: &str| name == ANY || name.eq_ignore_ascii_case(host);
    let accepting = lines(text).filter(|line| line.sends != Some(true));
    accepting.into_iter().any(|line| same(line.host) && [ANY, user].contains(&line.user))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# mine\n\nhostA  ann\nhostB bob send\nhostC\teve recv\n + zoe\n\
                        hostD + send\nhostE x y\nhostF x both\nword\n";

    #[test]
    fn lines_propose_accounts_in_their_order() {
        let all = proposals(FILE);
        assert_eq!(all, "hostA ann hostB bob + zoe");
        let on = |host: &str| account(&all, |name| name == host);
        assert_eq!(
            (on("hostA"), on("hostB"), on("other")),
            (Some("ann"), Some("bob"), Some("zoe"))
        );
        assert_eq!(account("hostA ann", |name| name == "hostB"), None);
        assert_eq!(account("hostA", |_| true), None);
    }

    #[test]
    fn only_lines_that_do_not_send_accept_users_of_a_host() {
        for (host, user, want) in [
            ("hosta", "ann", true),
            ("hostA", "bob", false),
            ("hostB", "bob", false),
            ("hostC", "eve", true),
            ("hostC", "zoe", true),
            ("hostD", "eve", false),
        ] {
            assert_eq!(accepts(FILE, host, user), want, "{user} at {host}");
        }
        assert!(accepts("+ +", "any", "one") && !accepts("", "any", "one"));
    }
}
