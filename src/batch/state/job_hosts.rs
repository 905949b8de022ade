//! The hosts of a started element with the slots that it has there. Most elements have one host,
//! which takes no memory of its own; very many elements are started in one pass.

use crate::batch::state::names::HostId;
use std::ops::Deref;

/// Hosts with their slots, the first execution host first.
#[derive(Clone, Debug, PartialEq)]
pub enum JobHosts {
    One((HostId, u32)),
    Several(Box<[(HostId, u32)]>),
}

impl Deref for JobHosts {
    type Target = [(HostId, u32)];

    fn deref(&self) -> &[(HostId, u32)] {
        match self {
            JobHosts::One(one) => std::slice::from_ref(one),
            JobHosts::Several(all) => all,
        }
    }
}

impl FromIterator<(HostId, u32)> for JobHosts {
    fn from_iter<I: IntoIterator<Item = (HostId, u32)>>(all: I) -> JobHosts {
        let mut all = all.into_iter();
        match (all.next(), all.next()) {
            (Some(one), None) => JobHosts::One(one),
            (first, second) => {
                JobHosts::Several(first.into_iter().chain(second).chain(all).collect())
            }
        }
    }
}

impl From<Vec<(HostId, u32)>> for JobHosts {
    fn from(all: Vec<(HostId, u32)>) -> JobHosts {
        match *all {
            [one] => JobHosts::One(one),
            _ => JobHosts::Several(all.into()),
        }
    }
}

impl<'a> IntoIterator for &'a JobHosts {
    type Item = &'a (HostId, u32);
    type IntoIter = std::slice::Iter<'a, (HostId, u32)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::state::names::Id;

    #[test]
    fn job_hosts_hold_what_they_were_made_of_in_its_order() {
        for hosts in [vec![], vec![(3, 1)], vec![(5, 2), (1, 4)], vec![(5, 2), (1, 4), (2, 1)]] {
            let all: Vec<(HostId, u32)> =
                hosts.into_iter().map(|(host, n)| (HostId::from_index(host), n)).collect();
            assert_eq!(JobHosts::from_iter(all.iter().copied())[..], all[..]);
            assert_eq!(JobHosts::from(all.clone())[..], all[..]);
        }
    }
}
