//! Hosts as a policy sees them: where the attributes that it looks at are is found out once for all
//! hosts that have the same attributes from the same sources.

use super::store::{Object, Spot};
use crate::lang::nlb::{Attributes, Candidate, Owner, Policy};
use crate::model::nlb::AttrId;
use std::collections::HashMap;
use std::sync::Arc;

/// The places of a policy's attributes, and of one more that the answer shows, for each set of
/// attributes that a host has.
pub(super) struct Places {
    all: Vec<Vec<Spot>>,
    /// For each host the position in `all`.
    of_hosts: Vec<usize>,
}

impl Places {
    /// Finds the attributes that a policy looks at in these hosts, and the one to be shown.
    pub(super) fn find(policy: &Policy, shown: AttrId, hosts: &[&Object]) -> Places {
        let mut known: HashMap<[usize; 4], usize> = HashMap::new();
        let mut last = None;
        let mut all = Vec::new();
        let mut of_hosts = Vec::with_capacity(hosts.len());
        for host in hosts {
            let lists = host.lists();
            let at = match last {
                Some((before, at)) if before == lists => at,
                _ => *known.entry(lists).or_insert_with(|| {
                    all.push(spots(policy, shown, host));
                    all.len() - 1
                }),
            };
            last = Some((lists, at));
            of_hosts.push(at);
        }
        Places { all, of_hosts }
    }

    /// Each of these hosts, which are those that were looked through.
    pub(super) fn views<'a>(&'a self, hosts: &[&'a Object]) -> Vec<View<'a>> {
        let spots = |at: &usize| self.all.get(*at).map_or(&[][..], Vec::as_slice);
        let both = hosts.iter().zip(&self.of_hosts);
        let view = |(host, at): (&&'a Object, _)| View { host, spots: spots(at) };
        both.map(view).collect()
    }
}

fn spots(policy: &Policy, shown: AttrId, host: &Object) -> Vec<Spot> {
    let spot = |owner: Owner, id: AttrId| match owner {
        Owner::Host => host.spot(id),
        Owner::Request => Spot::Nowhere,
    };
    let of_policy = policy.attributes().iter().map(|a| spot(a.owner, a.id));
    of_policy.chain([host.spot(shown)]).collect()
}

/// A host with the places of the attributes that a policy looks at.
pub(super) struct View<'a> {
    host: &'a Object,
    spots: &'a [Spot],
}

impl View<'_> {
    /// The name, and the text of the attribute that is to be shown: nothing is copied for a row of
    /// an answer.
    pub(super) fn row(&self) -> (Arc<str>, Option<Arc<str>>) {
        let shown = self.spots.last().and_then(|spot| self.host.shared_text_in(*spot));
        (self.host.shared_name(), shown)
    }

    /// The host at a time of the server's monotonic clock, microseconds.
    pub(super) fn candidate(&self, now: u64) -> Candidate<'_, Self> {
        Candidate { name: self.host.name(), age: self.host.age(now), attributes: self }
    }
}

impl Attributes for View<'_> {
    fn number(&self, id: AttrId) -> Option<f64> {
        self.host.number(id)
    }

    fn text(&self, id: AttrId) -> Option<&str> {
        self.host.text(id)
    }

    fn number_at(&self, slot: usize, _id: AttrId) -> Option<f64> {
        self.host.number_in(*self.spots.get(slot)?)
    }

    fn text_at(&self, slot: usize, _id: AttrId) -> Option<&str> {
        self.host.text_in(*self.spots.get(slot)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::diag::Diags;
    use crate::conf::nlb_map::NameMaps;
    use crate::lang::nlb::parse;
    use crate::model::nlb::{NLB, Value};
    use crate::nlb::store::{Collected, Report, Store, Values};

    #[test]
    fn hosts_with_other_attributes_are_seen_with_their_own_places() {
        let text = "policy: p\nsort: NLB_IDLECPU + NLB_NCPUS";
        let found = parse(&"p".into(), text.as_bytes(), &NameMaps::shipped(), &mut Diags::new());
        let policies = found.unwrap();
        let (idle, queue) = ((AttrId::float(1), 1.5), AttrId::string(5));
        let queued = |name: &str| (queue, Value::Str(name.into()));
        let cpus = |n| (AttrId::integer(4), Value::Integer(n));
        let idle = (idle.0, Value::Float(idle.1));
        let other = (AttrId::integer(1), Value::Integer(9));
        let mut store = Store::default();
        let all: [(&str, Vec<(AttrId, Value)>); 4] = [
            ("a", vec![idle.clone(), cpus(2), queued("x")]),
            ("b", vec![idle.clone(), other, cpus(3)]),
            ("c", vec![idle, cpus(4), queued("y")]),
            ("d", vec![]),
        ];
        for (name, values) in all {
            let values: Values = values.into_iter().collect();
            let said = Collected { values, interval: 1, ..Collected::default() };
            store.collected(NLB, name, said, Report { at: 0, wall: 0, from: name.into() });
        }
        let hosts: Vec<&Object> = store.of_type(NLB).collect();
        let places = Places::find(&policies.list()[0], queue, &hosts);
        assert_eq!(places.of_hosts, [0, 1, 0, 2]);
        let views = places.views(&hosts);
        let numbers: Vec<_> = views.iter().map(|v| v.number_at(1, AttrId::integer(4))).collect();
        assert_eq!(numbers, [Some(2.0), Some(3.0), Some(4.0), None]);
        let rows: Vec<_> = views.iter().map(View::row).collect();
        let wanted = [("a", Some("x")), ("b", None), ("c", Some("y")), ("d", None)];
        let wanted = wanted.map(|(name, shown)| (name.into(), shown.map(Arc::from)));
        assert_eq!(rows, wanted);
        // what a row has is that of the object
        assert!(Arc::ptr_eq(&rows[0].0, &views[0].row().0));
    }
}
