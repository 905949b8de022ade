//! The part of select[] about the properties of a host: its type, its model, its name, its boolean
//! and text resources. Load and reservations do not change these, so the answer for a host is kept
//! until the facts of some host change ([`Links::facts_changes`]), for all requirements that have
//! the same part: very many requirements differ in amounts alone. Numbers and the status of the
//! host are evaluated each time.
//!
//! [`Links::facts_changes`]: crate::batch::cluster::hosts::Links::facts_changes

use crate::batch::state::names::{HostId, Id};
use crate::lang::resreq::{Expr, HostView, ResKind, SelectContext, Simple};
use crate::model::kept_answers::KeptAnswers;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// Submission hosts of other types or models for which a part keeps its answers.
const LOCALS_KEPT: usize = 4;
/// Number of parts up to which even those are known that no requirement has any more.
const PARTS_KEPT: usize = 1024;

/// A select[] section in two parts, both of which must hold.
#[derive(Debug)]
pub(super) struct FixedMatch {
    /// The part about facts.
    fixed: Option<Rc<FixedPart>>,
    /// The other one.
    moving: Option<Expr>,
}

/// Conditions about facts, and what is known of the hosts that fulfil them.
#[derive(Debug)]
pub(super) struct FixedPart {
    conditions: Expr,
    /// The answers by type and model of the submission host; the last ones were asked for last.
    kept: RefCell<Vec<Kept>>,
}

/// The conditions about facts that requirements have, by their text.
#[derive(Debug, Default)]
pub(super) struct FixedParts {
    known: HashMap<String, Weak<FixedPart>>,
    /// Number of parts at which forgotten ones are dropped next.
    crowded: usize,
}

impl FixedParts {
    /// The part of these conditions: that of another requirement, where one has the same.
    fn of(&mut self, conditions: Expr) -> Rc<FixedPart> {
        let text = conditions.to_string();
        let known = self.known.get(&text).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.conditions == conditions) {
            return known;
        }
        if self.known.len() >= self.crowded.max(PARTS_KEPT) {
            self.known.retain(|_, part| part.strong_count() > 0);
            self.crowded = 2 * self.known.len();
        }
        let new = Rc::new(FixedPart { conditions, kept: RefCell::default() });
        self.known.insert(text, Rc::downgrade(&new));
        new
    }
}

/// The answers about the fixed part.
#[derive(Debug, Default)]
struct Kept {
    /// The count of changed facts that they hold for.
    at: u64,
    /// Type and model of the submission host.
    local: (String, String),
    hosts: KeptAnswers,
}

impl FixedMatch {
    /// The parts of a requirement's select[]; none: it has no such section.
    pub fn of(simple: &Simple, parts: &mut FixedParts) -> Option<FixedMatch> {
        let (mut fixed, mut moving) = (None, None);
        let select = simple.select.as_ref()?;
        for term in select.expr.conjuncts() {
            let side = if is_fixed(term) { &mut fixed } else { &mut moving };
            *side = Some(match side.take() {
                Some(before) => Expr::and(before, term.clone()),
                None => term.clone(),
            });
        }
        Some(FixedMatch { fixed: fixed.map(|conditions| parts.of(conditions)), moving })
    }

    /// The conditions about what load and reservations change, all of which must hold.
    pub fn moving_terms(&self) -> Vec<&Expr> {
        self.moving.as_ref().map_or(Vec::new(), Expr::conjuncts)
    }

    /// Does a host match the part about facts? `view`: the host, which is asked only if the answer
    /// is not known. `changes`: how often the facts of hosts have changed.
    pub fn fixed_holds<V: HostView>(
        &self,
        (host, view): (HostId, impl FnOnce() -> V),
        local: &SelectContext<'_>,
        changes: u64,
    ) -> bool {
        self.fixed.as_ref().is_none_or(|fixed| fixed.holds((host, view), local, changes))
    }

    /// The part about facts.
    pub fn fixed_part(&self) -> Option<Rc<FixedPart>> {
        self.fixed.clone()
    }

    /// Does a host match the other part?
    pub fn moving_holds(&self, view: &dyn HostView, local: &SelectContext<'_>) -> bool {
        self.moving.as_ref().is_none_or(|moving| moving.holds(view, local))
    }
}

impl FixedPart {
    /// Does a host match? As [`FixedMatch::fixed_holds`].
    pub fn holds<V: HostView>(
        &self,
        (host, view): (HostId, impl FnOnce() -> V),
        local: &SelectContext<'_>,
        changes: u64,
    ) -> bool {
        let holds = || self.conditions.holds(&view(), local);
        answers_of(&mut self.kept.borrow_mut(), local).answer(host, changes, holds)
    }
}

/// The answers for a submission host of this type and model.
fn answers_of<'a>(kept: &'a mut Vec<Kept>, local: &SelectContext<'_>) -> &'a mut Kept {
    let is_of = |kept: &Kept| kept.local.0 == local.local_type && kept.local.1 == local.local_model;
    let last = kept.len().wrapping_sub(1);
    match kept.iter().rposition(is_of) {
        Some(at) => kept.swap(at, last),
        None => {
            if kept.len() == LOCALS_KEPT {
                kept.remove(0);
            }
            let local = (local.local_type.to_owned(), local.local_model.to_owned());
            kept.push(Kept { local, ..Kept::default() });
        }
    }
    let last = kept.len() - 1;
    &mut kept[last]
}

impl Kept {
    /// The answer about a host: the one that is kept, where there is one.
    fn answer(&mut self, host: HostId, changes: u64, ask: impl FnOnce() -> bool) -> bool {
        if self.at != changes {
            self.hosts.forget();
            self.at = changes;
        }
        self.hosts.answer(host.index(), ask)
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
        let (mut kept, mut asked) = (Vec::new(), Vec::new());
        let here = SelectContext { local_type: "A", local_model: "" };
        let there = SelectContext { local_type: "B", local_model: "" };
        let looks = [(0, here, 1), (0, here, 1), (40, here, 1), (0, here, 2), (40, there, 2)];
        let looks = looks.into_iter().chain([(0, here, 2)]);
        for (host, local, changes) in looks {
            let holds = host == 40;
            let ask = || {
                asked.push((host, local.local_type, changes));
                holds
            };
            let of_local = answers_of(&mut kept, &local);
            assert_eq!(of_local.answer(HostId::from_index(host), changes, ask), holds);
        }
        assert_eq!(asked, [(0, "A", 1), (40, "A", 1), (0, "A", 2), (40, "B", 2)]);
    }

    #[test]
    fn requirements_with_the_same_conditions_about_facts_share_the_answers() {
        let mut parts = FixedParts::default();
        let mut of = |text: &str| {
            let syntax = Syntax { names: &Builtins, size_unit_mb: 1.0 };
            let req = ResReq::parse(text, &syntax).unwrap();
            FixedMatch::of(req.first().unwrap(), &mut parts).unwrap().fixed.unwrap()
        };
        let one = of("select[type==X86_64 && mem>5]");
        assert!(Rc::ptr_eq(&one, &of("select[mem>7 && type==X86_64]")));
        assert!(!Rc::ptr_eq(&one, &of("select[type==AARCH64 && mem>5]")));
    }

    #[test]
    fn select_is_divided_into_what_load_changes_and_what_it_does_not() {
        let parts = |text: &str| {
            let syntax = Syntax { names: &Builtins, size_unit_mb: 1.0 };
            let req = ResReq::parse(text, &syntax).unwrap();
            let parts = FixedMatch::of(req.first().unwrap(), &mut FixedParts::default()).unwrap();
            let shown = |part: Option<&Expr>| part.map(Expr::to_string).unwrap_or_default();
            let fixed = parts.fixed.as_ref().map(|fixed| &fixed.conditions);
            (shown(fixed), shown(parts.moving.as_ref()))
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
