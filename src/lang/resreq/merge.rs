//! Merging: several `-R` of one job, then job, application and queue, then the defaults.

use super::expr::{BinOp, Expr};
use super::order::HostOrder;
use super::requirement::{Alternative, CompoundTerm, ResReq, Select, Simple};
use super::syntax::{Parsed, ResKind, ResName, ResReqError, Syntax};

impl Select {
    /// `(self) && (other)`.
    fn and(self, other: Select) -> Select {
        Select {
            text: format!("({}) && ({})", self.text, other.text),
            expr: Expr::Bin(BinOp::And, Box::new(self.expr), Box::new(other.expr)),
        }
    }

    /// `type == word`, as listings show it.
    fn host_type(word: &str) -> Select {
        let name = Expr::Res(ResName::unnumbered("type"), ResKind::String);
        let word_expr = Expr::Text(word.to_string());
        Select {
            text: format!("type == {word}"),
            expr: Expr::Bin(BinOp::Eq, Box::new(name), Box::new(word_expr)),
        }
    }
}

impl Simple {
    /// Joins two requirements; where only one of a kind can be, `self` wins.
    pub fn over(self, under: Simple) -> Simple {
        let mut same = self.same;
        same.extend(under.same.into_iter().filter(|n| !same.contains(n)).collect::<Vec<_>>());
        Simple {
            select: match (self.select, under.select) {
                (Some(a), Some(b)) => Some(a.and(b)),
                (a, b) => a.or(b),
            },
            order: self.order.or(under.order),
            rusage: match (self.rusage, under.rusage) {
                (Some(a), Some(b)) => Some(a.merged_over(&b)),
                (a, b) => a.or(b),
            },
            span: self.span.or(under.span),
            same,
            cu: self.cu.or(under.cu),
            affinity: self.affinity.or(under.affinity),
        }
    }

    fn with_defaults(mut self, hosts_asked: bool) -> Simple {
        let speaks = |wanted: &dyn Fn(&str, ResKind) -> bool| {
            self.select.as_ref().is_some_and(|s| s.expr.mentions(wanted))
        };
        if !speaks(&|name, _| name == "type") {
            let free =
                hosts_asked || speaks(&|name, kind| name == "model" || kind == ResKind::Boolean);
            let default = Select::host_type(if free { "any" } else { "local" });
            self.select = Some(match self.select.take() {
                Some(select) => select.and(default),
                None => default,
            });
        }
        self.order.get_or_insert_with(HostOrder::default);
        self
    }
}

impl ResReq {
    /// Parses the values of all `-R` of one command and joins them: selects and rusages add up,
    /// of everything else the last one counts. Compound and alternative requirements stand
    /// alone. None without any value.
    pub fn parse_many<S: AsRef<str>>(texts: &[S], syntax: &Syntax<'_>) -> Parsed<Option<ResReq>> {
        let mut whole: Option<ResReq> = None;
        for text in texts {
            let next = ResReq::parse(text.as_ref(), syntax)?;
            whole = Some(match (whole, next) {
                (None, next) => next,
                (Some(ResReq::Simple(a)), ResReq::Simple(b)) => {
                    ResReq::Simple(Box::new(a.then(*b)))
                }
                _ => {
                    return ResReqError::at(
                        0,
                        "a compound requirement cannot be combined with another one",
                    );
                }
            });
        }
        Ok(whole)
    }

    /// Joins the requirements of a job, its application and its queue, in this order: the former
    /// wins where only one can. A simple requirement under a compound or alternative one is joined
    /// to each part of that, its same[] apart. A compound or alternative requirement under
    /// another one is ignored.
    pub fn over(self, under: &ResReq) -> ResReq {
        match (self, under) {
            (ResReq::Simple(a), ResReq::Simple(b)) => {
                ResReq::Simple(Box::new(a.over(b.as_ref().clone())))
            }
            (ResReq::Simple(a), b) if *a == Simple::default() => b.clone(),
            (a @ ResReq::Simple(_), _) => a,
            (a, ResReq::Simple(b)) => {
                let under = Simple { same: Vec::new(), ..b.as_ref().clone() };
                a.each(&|s| s.over(under.clone()))
            }
            (a, _) => a,
        }
    }

    /// With this order wherever there is none.
    pub fn ordered_by(self, order: &HostOrder) -> ResReq {
        self.each(&|s| Simple { order: s.order.or_else(|| Some(order.clone())), ..s })
    }

    /// Adds `type == local` where nothing is said of type (`type == any` where hosts, a model or
    /// a Boolean resource are asked for) and the default order: what acts, and what listings
    /// show as Combined.
    pub fn with_defaults(self, hosts_asked: bool) -> ResReq {
        self.each(&|s| s.with_defaults(hosts_asked))
    }

    /// This requirement with each simple requirement in it passed through `f`.
    fn each(self, f: &dyn Fn(Simple) -> Simple) -> ResReq {
        match self {
            ResReq::Simple(s) => ResReq::Simple(Box::new(f(*s))),
            ResReq::Compound(terms) => {
                let term = |t: CompoundTerm| CompoundTerm { tasks: t.tasks, req: f(t.req) };
                ResReq::Compound(terms.into_iter().map(term).collect())
            }
            ResReq::Alternatives(alts) => {
                let alt = |a: Alternative| Alternative { req: a.req.each(f), delay: a.delay };
                ResReq::Alternatives(alts.into_iter().map(alt).collect())
            }
        }
    }
}

impl Simple {
    /// A later `-R` of the same command.
    fn then(self, later: Simple) -> Simple {
        let (mut first, mut last) = (self, later);
        let select = match (first.select.take(), last.select.take()) {
            (Some(a), Some(b)) => Some(a.and(b)),
            (a, b) => a.or(b),
        };
        let rusage = match (first.rusage.take(), last.rusage.take()) {
            (Some(a), Some(b)) => Some(a.then(&b)),
            (a, b) => a.or(b),
        };
        Simple { select, rusage, ..last.over(first) }
    }
}
