//! Groups of the operating system that the system's own files do not know, asked of the name
//! service through `getent`: on a thread of its own, so that no slow directory stops the loop. Hits
//! and misses hold until the next reconfiguration.

use super::driver::Remote;
use crate::conf::UnixGroup;
use crate::conf::unix::parse_group;
use crate::proto::Input;
use crate::sys::users::{GETENT_WAIT, getent};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Longest wait for all groups before mbatchd answers requests: until the groups are known, users
/// may be refused by mistake.
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

/// The pending queries, and whether a thread works on them.
#[derive(Default)]
struct Orders {
    words: Vec<String>,
    busy: bool,
}

/// Asks on a thread that is there as long as there is something to ask.
pub struct Asker {
    orders: Arc<Mutex<Orders>>,
    remote: Remote,
}

fn lock(orders: &Mutex<Orders>) -> MutexGuard<'_, Orders> {
    orders.lock().unwrap_or_else(|held| held.into_inner())
}

impl Asker {
    pub fn new(remote: Remote) -> Asker {
        Asker { orders: Arc::default(), remote }
    }

    /// The answer comes as [`Input::Groups`]. Of several orders the last one counts.
    pub fn ask(&self, words: Vec<String>) -> std::io::Result<()> {
        let mut orders = lock(&self.orders);
        orders.words = words;
        if orders.busy || orders.words.is_empty() {
            return Ok(());
        }
        let (work, remote) = (self.orders.clone(), self.remote.clone());
        std::thread::Builder::new().name("groups".into()).spawn(move || serve(&work, &remote))?;
        orders.busy = true;
        Ok(())
    }
}

fn serve(orders: &Mutex<Orders>, remote: &Remote) {
    loop {
        let mut now = lock(orders);
        let words = std::mem::take(&mut now.words);
        now.busy = !words.is_empty();
        drop(now);
        if words.is_empty() {
            return;
        }
        let (asked, found) = ask(&words, LATER_WAIT);
        remote.input(Input::Groups { asked, found });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::users;

    #[test]
    fn the_name_service_is_asked_word_by_word() {
        if !users::getent_for("the_name_service_is_asked_word_by_word") {
            return;
        }
        let words = ["root".to_owned(), "no-such-group-here".to_owned()];
        let (asked, found) = ask(&words, Duration::from_secs(20));
        assert_eq!(asked, words);
        assert_eq!(
            found.iter().map(|g| (g.name.as_str(), g.gid)).collect::<Vec<_>>(),
            [("root", 0)]
        );
        assert_eq!(ask(&words, Duration::ZERO), (vec![], vec![]));
    }
}
