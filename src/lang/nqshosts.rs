//! ~/.nqshosts and ~/.rhosts, as the file validation of NQS reads them (qmgr(8)): lines `host
//! [user]`, each for requests of that user from that host.
//!
//! Only names are compared: `+`, which means everybody elsewhere, and netgroups match nothing.

/// The files in the home directory, in the order in which they are read.
pub const NAMES: [&str; 2] = [".nqshosts", ".rhosts"];
/// Longest file, bytes.
pub const MAX_BYTES: usize = 64 << 10;

/// Whether a line is for requests of `user`, the owner of the file, from a host with these names.
/// Without a user it is for the owner.
pub fn accepts(text: &str, hosts: &[String], user: &str) -> bool {
    text.lines().any(|line| {
        let line = line.split_once('#').map_or(line, |(line, _)| line);
        let mut words = line.split_whitespace();
        let (host, named, more) = (words.next(), words.next(), words.next());
        let from = host.is_some_and(|host| hosts.iter().any(|h| h.eq_ignore_ascii_case(host)));
        from && named.is_none_or(|named| named == user) && more.is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_accepts_its_host_and_the_owner_or_the_user_named() {
        let hosts = ["cool".to_owned(), "cool.example.com".to_owned()];
        for (text, want) in [
            ("cool", true),
            ("  COOL  ann # mine", true),
            ("other\ncool.example.com ann\n", true),
            ("cool bob", false),
            ("cool Ann", false),
            ("#cool", false),
            ("coo\ncoolx\n", false),
            ("cool ann more", false),
            ("", false),
            ("+", false),
            ("+ +", false),
            ("+ ann", false),
            ("cool +", false),
            ("+@all", false),
            ("+@all ann", false),
            ("-cool\n-cool ann", false),
            ("ann", false),
        ] {
            assert_eq!(accepts(text, &hosts, "ann"), want, "{text}");
        }
    }
}
