//! Groups of the operating system that the system's own files do not know, asked of the name
//! service through `getent`: on a thread of its own, so that no slow directory stops the loop. Hits
//! and misses hold until the next reconfiguration.

use super::driver::Remote;
use crate::conf::UnixGroup;
use crate::conf::unix::parse_group;
use crate::proto::Input;
use crate::sys::users::{GETENT_WAIT, getent_each};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Longest wait for all groups before mbatchd answers requests: until the groups are known, users
/// may be refused by mistake.
pub const START_WAIT: Duration = Duration::from_secs(5);
/// Longest time for all groups later, meanwhile the old answers hold.
const LATER_WAIT: Duration = Duration::from_secs(120);

/// Words that one process asks for: lsb.users of a large site names thousands of users, each of
/// whom may be a group.
const AT_ONCE: usize = 64;

/// Asks for these words until `wait` is over; the words that were answered, and the groups among
/// them. Where some get no answer together each half of them is asked for: one group that is too
/// large takes no others with it.
pub fn ask(words: &[String], wait: Duration) -> (Vec<String>, Vec<UnixGroup>) {
    ask_of(words, wait, |some, left| getent_each("group", some, left.min(GETENT_WAIT)))
}

fn ask_of(
    words: &[String],
    wait: Duration,
    mut answer: impl FnMut(&[String], Duration) -> std::io::Result<Vec<String>>,
) -> (Vec<String>, Vec<UnixGroup>) {
    let until = Instant::now() + wait;
    let (mut asked, mut found) = (Vec::new(), Vec::new());
    let mut next: Vec<&[String]> = words.chunks(AT_ONCE).rev().collect();
    let mut failed: Vec<String> = Vec::new();
    while let Some(some) = next.pop() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match answer(some, left) {
            Ok(lines) => {
                let groups = lines.iter().filter_map(|line| parse_group(line));
                let groups = groups.filter(|group| some.iter().any(|word| *word == group.0));
                found.extend(groups.map(|(name, gid, members)| {
                    let members = members.into_iter().map(str::to_owned).collect();
                    UnixGroup { name: name.to_owned(), gid, members }
                }));
                asked.extend_from_slice(some);
            }
            Err(_) if some.len() > 1 => {
                let (first, second) = some.split_at(some.len() / 2);
                next.extend([second, first]);
            }
            Err(e) => {
                let word = some.first().map_or("", String::as_str);
                failed.push(format!("group {word}: getent: {}", crate::sys::words(&e)));
            }
        }
    }
    if let Some((first, more)) = failed.split_first() {
        let more = if more.is_empty() { String::new() } else { format!("; {} more", more.len()) };
        log::warn!("{first}{more}");
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
    fn the_name_service_is_asked_for_many_words() {
        if !users::getent_for("the_name_service_is_asked_for_many_words") {
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
        // the last group comes by a process of its own
        let mut many: Vec<String> = (0..AT_ONCE).map(|n| format!("no-such-group-{n}")).collect();
        many.insert(1, "root".to_owned());
        many.push("daemon".to_owned());
        let (asked, found) = ask(&many, Duration::from_secs(20));
        assert_eq!(asked, many);
        let names: Vec<&str> = found.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["root", "daemon"]);
    }
    #[test]
    fn word_without_an_answer_takes_none_of_the_others_with_it() {
        let words: Vec<String> = (0..10).map(|n| format!("g{n}")).collect();
        let mut calls = 0;
        let (asked, found) = ask_of(&words, Duration::from_secs(20), |some, _| {
            calls += 1;
            match some.iter().any(|word| word == "g3") {
                true => Err(std::io::Error::other("it says too much")),
                false => Ok(some.iter().map(|word| format!("{word}:x:7:zoe")).collect()),
            }
        });
        let rest: Vec<String> = words.into_iter().filter(|word| word != "g3").collect();
        assert_eq!(asked, rest);
        assert_eq!(found.into_iter().map(|group| group.name).collect::<Vec<_>>(), rest);
        // ten, then halves: five, two and three, and so on
        assert!(calls <= 9, "{calls}");
    }
}
