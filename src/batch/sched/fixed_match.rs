//! The part of select[] about the properties of a host: its type, its model, its name, its boolean
//! and text resources. Load and reservations do not change these, so the answer for a host is kept
//! with the requirement until the facts of some host change ([`Links::facts_changes`]). Numbers and
//! the status of the host are evaluated each time.
//!
//! [`Links::facts_changes`]: crate::batch::cluster::hosts::Links::facts_changes

use crate::batch::state::names::{HostId, Id};
use crate::lang::resreq::{Expr, HostView, ResKind, SelectContext, Simple};
use std::cell::RefCell;

/// Hosts whose answers are in one word.
const HOSTS_PER_WORD: usize = 32;

/// A select[] section in two parts, both of which must hold.
#[derive(Debug)]
pub(super) struct FixedMatch {
    /// The part about facts.
    fixed: Option<Expr>,
    /// The other one.
    moving: Option<Expr>,
    kept: RefCell<Kept>,
}

/// The answers about the fixed part.
#[derive(Debug, Default)]
struct Kept {
    /// The count of changed facts that they hold for, and the type and model of the submission
    /// host.
    at: u64,
    local: (String, String),
    /// Two bits for each host: whether it was asked, and whether the part holds.
    hosts: Vec<u64>,
}

impl FixedMatch {
    /// The parts of a requirement's select[]; none: it has no such section.
    pub fn of(simple: &Simple) -> Option<FixedMatch> {
        let (mut fixed, mut moving) = (None, None);
        let select = simple.select.as_ref()?;
        for term in select.expr.conjuncts() {
            let side = if is_fixed(term) { &mut fixed } else { &mut moving };
            *side = Some(match side.take() {
                Some(before) => Expr::and(before, term.clone()),
                None => term.clone(),
            });
        }
        Some(FixedMatch { fixed, moving, kept: RefCell::default() })
    }

    /// The conditions about what load and reservations change, all of which must hold.
    pub fn moving_terms(&self) -> Vec<&Expr> {
        self.moving.as_ref().map_or(Vec::new(), Expr::conjuncts)
    }

    /// Is it known already that a host fails the part about facts?
    pub fn is_known_to_fail(&self, host: HostId, local: &SelectContext<'_>, changes: u64) -> bool {
        self.fixed.is_some() && self.kept.borrow().known(host, local, changes) == Some(false)
    }

    /// Does a host match the part about facts?
    pub fn fixed_holds(
        &self,
        (host, view): (HostId, &dyn HostView),
        local: &SelectContext<'_>,
        changes: u64,
    ) -> bool {
        self.fixed.as_ref().is_none_or(|fixed| {
            self.kept.borrow_mut().answer(host, local, changes, || fixed.holds(view, local))
        })
    }

    /// Does a host match the section? `changes`: how often the facts of hosts have changed.
    pub fn selects(
        &self,
        (host, view): (HostId, &dyn HostView),
        local: &SelectContext<'_>,
        changes: u64,
    ) -> bool {
        self.fixed_holds((host, view), local, changes)
            && self.moving.as_ref().is_none_or(|moving| moving.holds(view, local))
    }
}

impl Kept {
    /// The answer about a host, where it is kept.
    fn known(&self, host: HostId, local: &SelectContext<'_>, changes: u64) -> Option<bool> {
        let same_local = self.local.0 == local.local_type && self.local.1 == local.local_model;
        if self.at != changes || !same_local {
            return None;
        }
        let (word, bit) = (host.index() / HOSTS_PER_WORD, host.index() % HOSTS_PER_WORD * 2);
        match self.hosts.get(word)? >> bit & 3 {
            0 => None,
            known => Some(known == 2),
        }
    }

    fn answer(
        &mut self,
        host: HostId,
        local: &SelectContext<'_>,
        changes: u64,
        ask: impl FnOnce() -> bool,
    ) -> bool {
        if let Some(known) = self.known(host, local, changes) {
            return known;
        }
        let same_local = self.local.0 == local.local_type && self.local.1 == local.local_model;
        if self.at != changes || !same_local {
            self.hosts.fill(0);
            self.at = changes;
            self.local = (local.local_type.to_owned(), local.local_model.to_owned());
        }
        let (word, bit) = (host.index() / HOSTS_PER_WORD, host.index() % HOSTS_PER_WORD * 2);
        if word >= self.hosts.len() {
            self.hosts.resize(word + 1, 0);
        }
        let holds = ask();
        self.hosts[word] |= (1 + u64::from(holds)) << bit;
        holds
    }
}

/// Is an expression about nothing but facts?
fn is_fixed(expr: &Expr) -> bool {
    let moves = |name: &str, kind: ResKind| match kind {
        ResKind::Boolean => false,
        ResKind::String => name == "status",
        ResKind::Numeric { .. } => true,
    };
    !expr.mentions(&moves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::resreq::{Builtins, ResReq, Syntax};

    #[test]
    fn answer_about_a_host_is_asked_again_only_for_other_facts_or_another_submission_host() {
        let (mut kept, mut asked) = (Kept::default(), Vec::new());
        let here = SelectContext { local_type: "A", local_model: "" };
        let there = SelectContext { local_type: "B", local_model: "" };
        let looks = [(0, here, 1), (0, here, 1), (40, here, 1), (0, here, 2), (40, there, 2)];
        for (host, local, changes) in looks {
            let holds = host == 40;
            let ask = || {
                asked.push((host, local.local_type, changes));
                holds
            };
            assert_eq!(kept.answer(HostId::from_index(host), &local, changes, ask), holds);
        }
        assert_eq!(asked, [(0, "A", 1), (40, "A", 1), (0, "A", 2), (40, "B", 2)]);
    }

    #[test]
    fn select_is_divided_into_what_load_changes_and_what_it_does_not() {
        let parts = |text: &str| {
            let syntax = Syntax { names: &Builtins, size_unit_mb: 1.0 };
            let req = ResReq::parse(text, &syntax).unwrap();
            let parts = FixedMatch::of(req.first().unwrap()).unwrap();
            let shown = |part: Option<Expr>| part.map(|part| part.to_string()).unwrap_or_default();
            (shown(parts.fixed), shown(parts.moving))
        };
        let of = |fixed: &str, moving: &str| (fixed.to_owned(), moving.to_owned());
        assert_eq!(
            parts("select[type==any && mem>5 && server]"),
            of("type == \"any\" && server", "mem>5M")
        );
        assert_eq!(parts("select[type==any || mem>5]"), of("", "type == \"any\" || mem>5M"));
        assert_eq!(parts("select[status==ok]"), of("", "status == \"ok\""));
        assert_eq!(parts("select[ncpus>4 && hname==h1]"), of("hname == \"h1\"", "ncpus>4"));
    }
}
