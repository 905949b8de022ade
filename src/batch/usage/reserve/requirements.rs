//! Requirements that started elements were given, resolved to what they reserve. Very many elements
//! share one: it is resolved where it was not seen lately.

use crate::batch::site::Site;
use crate::batch::usage::reserve::holder::{Requirement, Term};
use crate::lang::resreq::{ResReq, RusageTerm, Simple};
use crate::model::idmap::IdMap;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Resolved requirements kept beside those that are held, and the bytes of their texts; beyond
/// either they are kept anew. A submission alone has its requirement kept, and a resolved one takes
/// many times as much as its text.
const MAX_REQUIREMENTS: usize = 4096;
const MAX_BYTES: usize = 1 << 20;

/// The resource of which the measured value shows what a job has come to use.
const MEASURED: &str = "mem";

/// The requirements that are kept.
#[derive(Debug, Default)]
pub(super) struct ResolvedRequirements {
    by_text: HashMap<Arc<str>, Rc<Requirement>>,
    /// Requirements by the address of their text, for the elements that share one. An entry holds
    /// its text, so that no other text comes to that address as long as the entry is there.
    by_address: IdMap<usize, (Arc<str>, Rc<Requirement>)>,
    /// Bytes of the texts in `by_text`.
    bytes: usize,
}

impl ResolvedRequirements {
    /// A requirement by its text.
    pub fn get(&mut self, site: &Site, text: &Arc<str>) -> Rc<Requirement> {
        let address = text.as_ptr().addr();
        if let Some((_, known)) = self.by_address.get(&address) {
            return known.clone();
        }
        let known = self.by_text(site, text);
        if self.by_address.len() >= MAX_REQUIREMENTS {
            self.by_address.clear();
        }
        self.by_address.insert(address, (text.clone(), known.clone()));
        known
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_text.len()
    }

    fn by_text(&mut self, site: &Site, text: &Arc<str>) -> Rc<Requirement> {
        if let Some(known) = self.by_text.get(text) {
            return known.clone();
        }
        if self.by_text.len() >= MAX_REQUIREMENTS || self.bytes + text.len() > MAX_BYTES {
            // those by address hold the same ones
            *self = ResolvedRequirements::default();
        }
        self.bytes += text.len();
        let new = Rc::new(resolve(site, text));
        self.by_text.insert(text.clone(), new.clone());
        new
    }
}

/// The parts of a requirement that was started by.
fn parts_of(req: &ResReq) -> Vec<&Simple> {
    match req {
        ResReq::Compound(terms) => terms.iter().map(|term| &term.req).collect(),
        req => req.first().into_iter().collect(),
    }
}

/// The reservations by a requirement.
fn resolve(site: &Site, text: &Arc<str>) -> Requirement {
    let mut of = Requirement { text: text.clone(), terms: Vec::new(), parts: Vec::new() };
    if !text.contains("rusage[") {
        return of;
    }
    let Ok(req) = site.names.parse_shared(text) else { return of };
    let term = |part: usize, rusage: &RusageTerm| {
        let resource = site.names.reserved(rusage)?;
        let steady_parts = Term::steady_parts_of(rusage);
        Some(Term {
            preemptable: steady_parts.is_some() && site.names.preemptable(resource),
            resource,
            part,
            method: site.reservation_method(rusage),
            released: site.names.released(resource),
            measured: rusage.res == MEASURED,
            rusage: rusage.clone(),
            steady_parts,
        })
    };
    for (part, simple) in parts_of(&req).into_iter().enumerate() {
        let rusage = simple.rusage.as_ref().map_or(&[][..], |rusage| rusage.terms());
        of.terms.extend(rusage.iter().filter_map(|rusage| term(part, rusage)));
    }
    if let ResReq::Compound(terms) = &*req {
        of.parts = terms.iter().map(|term| term.tasks).collect();
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::state::names::Names;
    use crate::batch::tests::cluster::cluster;

    #[test]
    fn requirement_whose_text_comes_to_the_address_of_another_is_its_own() {
        let site = Site::new(cluster().hosts(1, 1).read(), &mut Names::default());
        let mut all = ResolvedRequirements::default();
        for n in 0..3 * MAX_REQUIREMENTS {
            // the table by text keeps the first of equal texts; the others are free to be reused
            let text: Arc<str> = format!("rusage[mem={}]", n % 7).into();
            assert_eq!(all.get(&site, &text).text, text);
        }
        assert!(all.by_address.len() <= MAX_REQUIREMENTS);
    }

    #[test]
    fn long_requirements_are_kept_up_to_so_many_bytes_of_text() {
        let site = Site::new(cluster().hosts(1, 1).read(), &mut Names::default());
        let mut all = ResolvedRequirements::default();
        let kept = |all: &ResolvedRequirements| {
            let texts = all.by_text.keys().map(|text| text.len()).sum::<usize>();
            (texts, all.by_address.len() == all.by_text.len())
        };
        let long = MAX_BYTES / 8;
        for n in 0..20 {
            let text: Arc<str> = format!("rusage[mem={n}{}]", " ".repeat(long)).into();
            all.get(&site, &text);
            assert_eq!(kept(&all), (all.bytes, true), "{n}");
            assert!(all.bytes <= MAX_BYTES && all.bytes >= long, "{n}: {}", all.bytes);
        }
    }
}
