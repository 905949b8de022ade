//! The words of blaunch(1), which stands in the place of rsh and ssh: launchers give it options of
//! theirs, before the host or behind it, and what follows is the remote command to its last word.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Letters of rsh and ssh that have a word of their own, which is left out with them.
const WITH_WORD: [&str; 7] = ["-o", "-p", "-i", "-F", "-c", "-m", "-b"];

/// How the command becomes a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandUse {
    /// The words, joined by blanks, are text for /bin/sh.
    #[default]
    Shell,
    /// The words, joined by blanks, are text for the user's login shell.
    LoginShell,
    /// The words are the argument vector.
    Words,
}

/// The options of blaunch, as far as they have been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchOptions {
    /// No input.
    pub no_input: bool,
    pub no_wait: bool,
    pub how: CommandUse,
    /// The word of -z.
    pub list: Option<OsString>,
    /// The file of -u.
    pub file: Option<OsString>,
    /// The user of -l.
    pub user: Option<OsString>,
    pub help: bool,
    pub version: bool,
}

impl LaunchOptions {
    /// Reads the options at the beginning of these words; what is left of the words.
    ///
    /// # Errors
    /// The words that tell the fault.
    pub fn read<'a>(&mut self, words: &'a [OsString]) -> Result<&'a [OsString], String> {
        let mut rest = words;
        while let Some((word, behind)) = rest.split_first() {
            if !word.as_bytes().starts_with(b"-") || word == "-" {
                break;
            }
            rest = behind;
            let Some(text) = word.to_str() else { continue };
            match text {
                "--" => break,
                "-n" => self.no_input = true,
                "-no-wait" => self.no_wait = true,
                "-no-shell" => self.how_once(CommandUse::Words)?,
                "-use-login-shell" => self.how_once(CommandUse::LoginShell)?,
                "-h" | "--help" => self.help = true,
                "-V" | "--version" => self.version = true,
                "-z" => self.list = Some(value(&mut rest, text)?),
                "-u" => self.file = Some(value(&mut rest, text)?),
                "-l" => self.user = Some(value(&mut rest, text)?),
                _ if WITH_WORD.contains(&text) => _ = value(&mut rest, text)?,
                // rsh and ssh have many: what is not known is of no concern
                _ => {
                    if let Some(user) = text.strip_prefix("-l") {
                        self.user = Some(user.into());
                    }
                }
            }
        }
        Ok(rest)
    }

    fn how_once(&mut self, how: CommandUse) -> Result<(), String> {
        if self.how != CommandUse::Shell && self.how != how {
            return Err("-no-shell and -use-login-shell exclude each other".into());
        }
        self.how = how;
        Ok(())
    }

    /// Why these options cannot be given together.
    pub fn conflict(&self) -> Option<&'static str> {
        match (&self.list, &self.file) {
            (Some(_), Some(_)) => Some("-z and -u exclude each other"),
            (Some(list), None) if names(list).is_empty() => Some("-z names no host"),
            _ => None,
        }
    }

    /// Whether the hosts are named by an option.
    pub fn names_hosts(&self) -> bool {
        self.list.is_some() || self.file.is_some()
    }
}

fn value(rest: &mut &[OsString], option: &str) -> Result<OsString, String> {
    let (word, behind) =
        rest.split_first().ok_or_else(|| format!("{option}: a word is missing"))?;
    *rest = behind;
    Ok(word.clone())
}

/// The names in the word of -z: separated by blanks and tabs.
pub fn names(list: &OsStr) -> Vec<String> {
    list.to_string_lossy().split_whitespace().map(str::to_owned).collect()
}

/// The names in the file of -u: the first word of each line that is no comment.
pub fn names_of_lines(text: &str) -> Vec<String> {
    let word = |line: &str| line.split('#').next()?.split_whitespace().next().map(str::to_owned);
    text.lines().filter_map(word).collect()
}

/// The first operand, where no option names hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstOperand {
    /// The word names one of the job's hosts, and a command follows.
    Host,
    /// The word names a host that is none of the job's, or nothing at all.
    BadHost,
    /// The word begins the command, which is run in every slot.
    Command,
}

/// Questions about a word that may be a host.
pub struct WordFacts<'a> {
    /// Does it name a host of the job?
    pub member: &'a dyn Fn(&str) -> bool,
    /// Does it name a host of the cluster?
    pub known: &'a dyn Fn(&str) -> bool,
    /// Does a directory of PATH have such a program?
    pub program: &'a dyn Fn(&str) -> bool,
}

/// Tells a host from a command. `more`: words follow.
pub fn first_operand(word: &OsStr, more: bool, facts: &WordFacts<'_>) -> FirstOperand {
    let Some(text) = word.to_str() else { return FirstOperand::Command };
    let host = text.rsplit('@').next().unwrap_or(text);
    if more && (facts.member)(host) {
        FirstOperand::Host
    } else if text.contains('/') {
        FirstOperand::Command
    } else {
        let other = || !(facts.member)(host) && (facts.known)(host);
        let nothing = || more && !text.contains([' ', ';', '=']) && !(facts.program)(text);
        match text.contains('@') || other() || nothing() {
            true => FirstOperand::BadHost,
            false => FirstOperand::Command,
        }
    }
}

/// The pairs of LSB_MCPU_HOSTS: hosts with their slots.
///
/// # Errors
/// The word that is wrong.
pub fn hosts_with_slots(text: &str) -> Result<Vec<(String, u32)>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = words.chunks(2).map(|pair| match pair {
        [host, slots] => {
            let slots = slots.parse().ok().filter(|n| *n > 0);
            slots.map(|n| ((*host).to_owned(), n)).ok_or_else(|| pair[1].to_owned())
        }
        _ => Err(pair[0].to_owned()),
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn read(words: &[&str]) -> Result<(LaunchOptions, Vec<String>), String> {
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        let mut options = LaunchOptions::default();
        let rest = options.read(&words)?;
        Ok((options, rest.iter().map(|w| w.to_string_lossy().into_owned()).collect()))
    }

    #[test]
    fn options_of_rsh_and_ssh_are_passed_over_with_their_words() {
        let words = ["-x", "-q", "-o", "A=b", "-p", "22", "-T", "-n", "-what", "h", "-z", "a b"];
        let (options, rest) = read(&words).unwrap();
        assert_eq!(options, LaunchOptions { no_input: true, ..LaunchOptions::default() });
        assert_eq!(rest, ["h", "-z", "a b"]);
        assert_eq!(read(&["-l", "ann", "h"]).unwrap().0.user, Some("ann".into()));
        assert_eq!(read(&["-lann", "h"]).unwrap().0.user, Some("ann".into()));
        // what is no text is an option all the same, and ends nothing
        let odd = [OsString::from_vec(vec![b'-', 0xff]), "h".into()];
        assert_eq!(LaunchOptions::default().read(&odd).unwrap(), ["h"]);
        assert_eq!(read(&["--", "-z", "x"]).unwrap().1, ["-z", "x"]);
        assert_eq!(read(&["-", "x"]).unwrap().1, ["-", "x"]);
    }

    #[test]
    fn options_that_exclude_each_other_or_lack_a_word_are_refused() {
        assert!(read(&["-no-shell", "-use-login-shell", "x"]).is_err());
        assert!(read(&["-no-shell", "-no-shell", "x"]).is_ok());
        for option in ["-z", "-u", "-l", "-o"] {
            assert_eq!(read(&[option]).unwrap_err(), format!("{option}: a word is missing"));
        }
        let conflict = |words: &[&str]| read(words).unwrap().0.conflict().is_some();
        assert!(conflict(&["-z", "a", "-u", "f"]) && conflict(&["-z", " \t"]));
        assert!(!conflict(&["-z", " a"]) && !conflict(&["-u", "f"]) && !conflict(&[]));
    }

    #[test]
    fn names_of_a_list_or_file_are_its_words() {
        assert_eq!(names(OsStr::new("  a\tb  b ")), ["a", "b", "b"]);
        assert_eq!(names_of_lines("a x\n\n# no\n  b # c\na\n"), ["a", "b", "a"]);
        let pairs = hosts_with_slots("a 2 b 1").unwrap();
        assert_eq!(pairs, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
        for bad in ["a", "a 0", "a x", "a 1 b"] {
            assert!(hosts_with_slots(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn first_operand_is_a_host_only_where_it_names_one_of_the_job() {
        let facts = WordFacts {
            member: &|word| word == "a" || word == "b",
            known: &|word| ["a", "b", "c"].contains(&word),
            program: &|word| word == "echo",
        };
        let of = |word: &str, more| first_operand(OsStr::new(word), more, &facts);
        use FirstOperand::{BadHost, Command, Host};
        assert_eq!([of("a", true), of("ann@b", true), of("echo", true)], [Host, Host, Command]);
        // a command by itself may have the name of a host
        assert_eq!([of("a", false), of("echo", false), of("what", false)], [Command; 3]);
        assert_eq!([of("c", true), of("c", false), of("ann@c", true)], [BadHost; 3]);
        assert_eq!([of("nosuch", true), of("./nosuch", true)], [BadHost, Command]);
        // text for a shell
        assert_eq!([of("A=b;export A", true), of("\"/x/y\"", true)], [Command; 2]);
    }
}
