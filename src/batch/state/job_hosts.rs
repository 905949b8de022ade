//! The hosts of a started element with the slots that it has there. Most elements have one host,
//! which takes no memory of its own; very many elements are started in one pass.

use crate::batch::state::names::HostId;
use std::collections::HashMap;
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

impl JobHosts {
    /// Hosts with all their slots, each host once, in the order in which they come first; and the
    /// order as given, where one of them comes back after others.
    pub fn merged(all: JobHosts) -> (JobHosts, Option<Box<JobHosts>>) {
        let JobHosts::Several(several) = &all else { return (all, None) };
        let mut places: HashMap<HostId, usize> = HashMap::with_capacity(several.len());
        let mut once: Vec<(HostId, u32)> = Vec::with_capacity(several.len());
        let mut order: Vec<(HostId, u32)> = Vec::with_capacity(several.len());
        for &(host, slots) in several {
            let add = |known: &mut (HostId, u32)| known.1 = known.1.saturating_add(slots);
            match order.last_mut().filter(|last| last.0 == host) {
                Some(last) => add(last),
                None => order.push((host, slots)),
            }
            let place = *places.entry(host).or_insert(once.len());
            match once.get_mut(place) {
                Some(known) => add(known),
                None => once.push((host, slots)),
            }
        }
        let comes_back = once.len() < order.len();
        (once.into(), comes_back.then(|| Box::new(order.into())))
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
    fn hosts_that_come_back_are_merged_and_their_order_is_kept() {
        let on = |all: &[(usize, u32)]| -> JobHosts {
            all.iter().map(|(host, n)| (HostId::from_index(*host), *n)).collect()
        };
        let several = on(&[(1, 2), (2, 1), (1, 1)]);
        let merged = JobHosts::merged(several.clone());
        assert_eq!(merged, (on(&[(1, 3), (2, 1)]), Some(Box::new(several))));
        assert_eq!(JobHosts::merged(on(&[(2, 1), (1, 2)])), (on(&[(2, 1), (1, 2)]), None));
        // the log does not tell two entries of a host that follow each other from one
        assert_eq!(JobHosts::merged(on(&[(2, 1), (2, 2)])), (on(&[(2, 3)]), None));
    }

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
