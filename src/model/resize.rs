//! Changes of the slots that a started job holds (bresize(1)): requests of users, orders to the
//! first execution host, and what that has told of them.

use super::event::NamedHosts;
use serde::{Deserialize, Serialize};

/// Longest resize notification command, bytes.
pub const MAX_COMMAND: usize = 4096;
/// Most hosts that one release names.
pub const MAX_RELEASED: usize = 4096;
/// The exit values of the notification command: the resize is taken, or is not.
pub const NOTIFY_OK: i32 = 0;
pub const NOTIFY_FAIL: i32 = 1;

/// The notification command of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotifyCommand {
    /// That of the job (bsub -rnc), if there is one.
    #[default]
    OfJob,
    /// -rncn.
    None,
    /// -rnc.
    Given(String),
}

/// A word of a release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleasedHost {
    pub name: String,
    /// The number of slots; 0: all there.
    pub slots: u32,
    /// `~host` beside `all`: nothing is released there.
    pub kept: bool,
}

/// The hosts of a release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleasedHosts {
    /// Every slot but one of the first execution host.
    pub all: bool,
    pub hosts: Vec<ReleasedHost>,
}

/// A request of bresize.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResizeRequest {
    /// `cancel`: -c, with the pending request of the job.
    Release {
        hosts: ReleasedHosts,
        cancel: bool,
        notify: NotifyCommand,
    },
    /// This number of further slots, at least the first of them at once.
    Grow {
        least: u32,
        slots: u32,
        cancel: bool,
        notify: NotifyCommand,
    },
    Cancel,
}

/// An order to the first execution host of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResizeOrder {
    /// Counts the changes of the attempt from 1.
    pub number: u32,
    pub grows: bool,
    /// The slots that come or go, and the allocation with this change.
    pub hosts: NamedHosts,
    pub allocation: NamedHosts,
    /// Shell text; empty: nobody is asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
}

/// The last change of an attempt, as its host tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResizeTold {
    /// The number of the change; 0: there was none.
    pub number: u32,
    /// The process of the notification command; 0: none.
    #[serde(skip_serializing_if = "is_zero")]
    pub pid: u32,
    /// The exit value of the command; `None`: it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl ResizeTold {
    pub fn is_none(&self) -> bool {
        *self == ResizeTold::default()
    }
}

/// The hosts with these slots more: those that are new come last.
pub fn with<H: Clone + PartialEq>(hosts: &[(H, u32)], more: &[(H, u32)]) -> Vec<(H, u32)> {
    let mut all = hosts.to_vec();
    for (host, n) in more {
        match all.iter_mut().find(|known| known.0 == *host) {
            Some(known) => known.1 = known.1.saturating_add(*n),
            None => all.push((host.clone(), *n)),
        }
    }
    all
}

/// The hosts without these slots. The first one stays with a slot.
pub fn without<H: Clone + PartialEq>(hosts: &[(H, u32)], fewer: &[(H, u32)]) -> Vec<(H, u32)> {
    let mut all = hosts.to_vec();
    for (host, n) in fewer {
        let mut left = *n;
        for (at, known) in all.iter_mut().enumerate().rev().filter(|known| known.1.0 == *host) {
            let keeps = u32::from(at == 0);
            let taken = left.min(known.1.saturating_sub(keeps));
            (known.1, left) = (known.1 - taken, left - taken);
        }
    }
    all.retain(|known| known.1 > 0);
    all
}

impl ReleasedHosts {
    /// `all ~hostA` or `2*hostA hostB`; `None`: the text is no such list.
    pub fn parse(text: &str) -> Option<ReleasedHosts> {
        let mut all = ReleasedHosts::default();
        for word in text.split_whitespace() {
            if word == "all" && !all.all {
                all.all = true;
                continue;
            }
            let host = match (word.strip_prefix('~'), word.split_once('*')) {
                (Some(name), _) => {
                    ReleasedHost { name: name.into(), kept: true, ..ReleasedHost::default() }
                }
                (None, Some((count, name))) => {
                    let digits = count.bytes().all(|b| b.is_ascii_digit());
                    let slots = count.parse().ok().filter(|n| digits && *n > 0)?;
                    ReleasedHost { name: name.into(), slots, ..ReleasedHost::default() }
                }
                (None, None) => ReleasedHost { name: word.into(), ..ReleasedHost::default() },
            };
            let plain = !host.name.is_empty() && !host.name.contains(['*', '~']);
            let again = all.hosts.iter().any(|known| known.name == host.name);
            if !plain || again || all.hosts.len() >= MAX_RELEASED {
                return None;
            }
            all.hosts.push(host);
        }
        // what is kept is an exception from all
        let fits = all.hosts.iter().all(|host| host.kept == all.all);
        (fits && (all.all || !all.hosts.is_empty())).then_some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_behind_those_that_are_there_and_go_but_for_one_of_the_first_host() {
        let hosts = [(3, 2), (1, 4)];
        assert_eq!(with(&hosts, &[(1, 1), (2, 2)]), [(3, 2), (1, 5), (2, 2)]);
        assert_eq!(without(&hosts, &[(1, 3)]), [(3, 2), (1, 1)]);
        assert_eq!(without(&hosts, &[(1, 4), (3, 9)]), [(3, 1)]);
        assert_eq!(without(&hosts, &[(7, 1)]), hosts);
    }

    #[test]
    fn orders_and_what_is_told_of_them_keep_their_encoding() {
        let hosts: NamedHosts = [("a".into(), 2)].into();
        let order = ResizeOrder {
            number: 1,
            grows: true,
            allocation: hosts.clone(),
            hosts,
            command: "x".into(),
        };
        let text = serde_json::to_string(&order).unwrap();
        let want =
            r#"{"number":1,"grows":true,"hosts":[["a",2]],"allocation":[["a",2]],"command":"x"}"#;
        assert_eq!(text, want);
        assert_eq!(serde_json::from_str::<ResizeOrder>(want).unwrap(), order);
        let told = ResizeTold { number: 1, pid: 9, status: Some(0) };
        let text = serde_json::to_string(&told).unwrap();
        assert_eq!(text, r#"{"number":1,"pid":9,"status":0}"#);
        let (hosts, notify) = (ReleasedHosts::parse("2*a").unwrap(), NotifyCommand::OfJob);
        let release = ResizeRequest::Release { hosts, cancel: false, notify };
        let text = serde_json::to_string(&release).unwrap();
        let host = r#"{"name":"a","slots":2,"kept":false}"#;
        let rest = r#""cancel":false,"notify":"OfJob"}}"#;
        let want = format!(r#"{{"Release":{{"hosts":{{"all":false,"hosts":[{host}]}},{rest}"#);
        assert_eq!(text, want);
    }

    #[test]
    fn a_list_of_hosts_has_numbers_or_exceptions() {
        let host = |name: &str, slots, kept| ReleasedHost { name: name.into(), slots, kept };
        let some = ReleasedHosts::parse(" 2*a  b ").unwrap();
        assert_eq!((some.all, some.hosts), (false, vec![host("a", 2, false), host("b", 0, false)]));
        let rest = ReleasedHosts::parse("all ~a").unwrap();
        assert_eq!((rest.all, rest.hosts), (true, vec![host("a", 0, true)]));
        for bad in ["", "all all", "0*a", "-1*a", "x*a", "2*", "~a", "all a", "a a", "~", "1*2*a"] {
            assert_eq!(ReleasedHosts::parse(bad), None, "{bad}");
        }
    }
}
