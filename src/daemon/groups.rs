//! Groups of the operating system that the system's own files do not know, asked of the name
//! service through `getent`: on a thread of its own, so that no slow directory stops the loop.
//! Hits and misses hold until the next reconfiguration. Document implemented: design §1.

use super::shell::Remote;
use crate::conf::unix::{UnixGroup, parse_group};
use crate::proto::Input;
use crate::sys::users::{GETENT_WAIT, getent};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// Longest wait for all groups before mbatchd answers anybody: until they are known, users may
/// be refused who are not to be.
pub const START_WAIT: Duration = Duration::from_secs(5);
/// Longest time for all groups later, meanwhile the old answers hold.
const LATER_WAIT: Duration = Duration::from_secs(120);

/// Asks for these words, one after another, until `wait` is over; the words that were answered,
/// and the groups among them.
pub fn ask(words: &[String], wait: Duration) -> (Vec<String>, Vec<UnixGroup>) {
    let until = Instant::now() + wait;
    let (mut asked, mut found) = (Vec::new(), Vec::new());
    for word in words {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match getent("group", word, left.min(GETENT_WAIT)) {
            Ok(line) => {
                let group = line.as_deref().and_then(parse_group).filter(|g| g.0 == word);
                found.extend(group.map(|(name, gid, members)| {
                    let members = members.into_iter().map(str::to_owned).collect();
                    UnixGroup { name: name.to_owned(), gid, members }
                }));
                asked.push(word.clone());
            }
            Err(e) => log::warn!("group {word}: getent: {}", crate::sys::words(&e)),
        }
    }
    (asked, found)
}

/// The thread that asks.
pub struct Asker {
    orders: Sender<Vec<String>>,
}

impl Asker {
    pub fn start(remote: Remote) -> std::io::Result<Asker> {
        let (orders, inbox) = channel::<Vec<String>>();
        std::thread::Builder::new().name("groups".into()).spawn(move || {
            while let Ok(mut words) = inbox.recv() {
                // Of several reconfigurations the last one counts.
                while let Ok(newer) = inbox.try_recv() {
                    words = newer;
                }
                let (asked, found) = ask(&words, LATER_WAIT);
                remote.input(Input::Groups { asked, found });
            }
        })?;
        Ok(Asker { orders })
    }

    /// The answer comes as [`Input::Groups`].
    pub fn ask(&self, words: Vec<String>) {
        // A thread that is gone has told why.
        let _ = self.orders.send(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_service_is_asked_word_by_word() {
        let words = ["root".to_owned(), "no-such-group-here".to_owned()];
        let (asked, found) = ask(&words, Duration::from_secs(20));
        if asked.is_empty() {
            return; // no getent here
        }
        assert_eq!(asked, words);
        assert_eq!(
            found.iter().map(|g| (g.name.as_str(), g.gid)).collect::<Vec<_>>(),
            [("root", 0)]
        );
        assert_eq!(ask(&words, Duration::ZERO), (vec![], vec![]));
    }
}
