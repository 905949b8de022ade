//! Policies as they were read.

use super::lex::Binary;
use super::text::Place;
use crate::lang::bre::Bre;
use crate::model::nlb::AttrId;

/// The policy that is the default where a file has it.
const DEFAULT_NAME: &str = "nqs";

/// The object whose attribute an expression looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The host that is looked at: type NLB.
    Host,
    /// The request of the query: type NLB_JOB.
    Request,
}

/// An attribute that a policy looks at, and where it does so first.
#[derive(Clone, Debug)]
pub struct AttributeUse {
    /// The object that has it.
    pub owner: Owner,
    /// The identity.
    pub id: AttrId,
    /// The name, as the policy spells it.
    pub name: String,
    /// The first place in the policies file.
    pub at: Place,
}

impl PartialEq for AttributeUse {
    /// Places do not count: the same policy may be written on one line or on many.
    fn eq(&self, other: &Self) -> bool {
        (self.owner, self.id) == (other.owner, other.id)
            && self.name.eq_ignore_ascii_case(&other.name)
    }
}

/// One step of an expression in postfix order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Number(f64),
    /// An attribute, by its position in `Policy::attributes`.
    Attribute(usize),
    Age,
    Exists(usize),
    /// A string attribute against an expression of `Policy::expressions`.
    Match(usize, usize),
    Not,
    Negative,
    Binary(Binary),
}

/// A policy.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(super) name: String,
    pub(super) at: Place,
    pub(super) constraints: Vec<Vec<Step>>,
    pub(super) sort: Option<Vec<Step>>,
    pub(super) count: Option<u32>,
    pub(super) attributes: Vec<AttributeUse>,
    pub(super) expressions: Vec<Bre>,
}

impl PartialEq for Policy {
    /// The order in which the clauses of a file came, which numbers the attributes, does not count.
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &Vec<Step>, b: &Vec<Step>| self.means(a, other, b);
        let constraints = self.constraints.iter().zip(&other.constraints);
        let sorts = match (&self.sort, &other.sort) {
            (Some(a), Some(b)) => same(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        self.name.eq_ignore_ascii_case(&other.name)
            && self.count == other.count
            && self.constraints.len() == other.constraints.len()
            && constraints.into_iter().all(|(a, b)| same(a, b))
            && sorts
    }
}

impl Policy {
    /// Is this expression the same as one of another policy?
    fn means(&self, own: &[Step], other: &Policy, theirs: &[Step]) -> bool {
        let attribute = |a: &usize, b: &usize| {
            let both = self.attributes.get(*a).zip(other.attributes.get(*b));
            both.is_some_and(|(a, b)| a == b)
        };
        let expression = |a: &usize, b: &usize| {
            let both = self.expressions.get(*a).zip(other.expressions.get(*b));
            both.is_some_and(|(a, b)| a == b)
        };
        let same = |(a, b): (&Step, &Step)| match (a, b) {
            (Step::Attribute(a), Step::Attribute(b)) => attribute(a, b),
            (Step::Exists(a), Step::Exists(b)) => attribute(a, b),
            (Step::Match(a, x), Step::Match(b, y)) => attribute(a, b) && expression(x, y),
            (a, b) => a == b,
        };
        own.len() == theirs.len() && own.iter().zip(theirs).all(same)
    }
}

impl Policy {
    /// The name, as the file spells it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Most hosts that it returns.
    pub fn count(&self) -> Option<u32> {
        self.count
    }

    /// The attributes that it looks at, each once.
    pub fn attributes(&self) -> &[AttributeUse] {
        &self.attributes
    }
}

/// The policies of one file; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Policies {
    pub(super) list: Vec<Policy>,
}

/// The policy for a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice<'a> {
    /// The policy to apply.
    pub policy: &'a Policy,
    /// A name was given and no policy has it: the default is applied.
    pub unknown: bool,
}

impl Policies {
    /// All policies in the order of the file.
    pub fn list(&self) -> &[Policy] {
        &self.list
    }

    /// The policy of that name, in any case of letters.
    pub fn named(&self, name: &str) -> Option<&Policy> {
        self.list.iter().find(|p| p.name.eq_ignore_ascii_case(name))
    }

    /// The policy named `nqs`; where there is none, the first.
    pub fn default_policy(&self) -> Option<&Policy> {
        self.named(DEFAULT_NAME).or(self.list.first())
    }

    /// The policy for a query that names `name`. `None` arises with no policy at all alone, which
    /// no file that was read leaves.
    pub fn choose(&self, name: Option<&str>) -> Option<Choice<'_>> {
        match name.map(|name| self.named(name)) {
            Some(Some(policy)) => Some(Choice { policy, unknown: false }),
            found => {
                let policy = self.default_policy()?;
                Some(Choice { policy, unknown: found.is_some() })
            }
        }
    }

    /// The default, where it is not the first of the file.
    pub(super) fn default_behind_another(&self) -> Option<(&Policy, &Policy)> {
        let (first, default) = (self.list.first()?, self.default_policy()?);
        (!first.name.eq_ignore_ascii_case(&default.name)).then_some((default, first))
    }
}
