//! The reader of a policies file: the grammar, the names, and the words for each fault.

use super::lex::{Binary, Item, Lexer, RELATION, Token, of_policy_name};
use super::policy::{AttributeUse, Owner, Policies, Policy, Step};
use super::text::{Place, decode, shown};
use super::{MAX_CONSTRAINTS, MAX_FAULTS, MAX_FILE, MAX_NESTING, MAX_POLICIES, MAX_TERMS};
use crate::conf::diag::{Diags, Pos, Severity};
use crate::conf::names::nearest;
use crate::lang::bre::Bre;
use crate::model::nlb::{AttrId, Kind, MAX_NAME};
use std::sync::Arc;

/// The attribute of requests that every one has: its name.
const REQUEST_NAME: AttrId = AttrId::new(Kind::Str, 1);

const CLAUSES: [&str; 4] = ["policy", "constraint", "sort", "count"];

/// An attribute's name in the name maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known<'a> {
    /// An attribute that policies may look at.
    Of(Owner, AttrId),
    /// One of another object type, whose name is given.
    Other(&'a str),
}

/// The name maps, as the language looks at them.
pub trait Names {
    /// The attribute of that name, in any case of letters.
    fn attribute(&self, name: &str) -> Option<Known<'_>>;

    /// The names of all attributes that policies may look at.
    fn all(&self) -> Vec<&str>;
}

/// Reads a policies file. All of its faults are added to `diags`; with one error there are no
/// policies.
pub fn parse(
    file: &Arc<str>,
    bytes: &[u8],
    names: &dyn Names,
    diags: &mut Diags,
) -> Option<Policies> {
    let mut found = Diags::new();
    let policies = decode(file, bytes, MAX_FILE, &mut found).map(|text| {
        let mut parser = Parser {
            lex: Lexer::new(text),
            file,
            names,
            diags: &mut found,
            policies: Vec::new(),
            ignored: None,
            places: Places::default(),
        };
        parser.file();
        Policies { list: parser.policies }
    });
    if let Some((default, first)) = policies.as_ref().and_then(Policies::default_behind_another) {
        let at = Pos::new(file, default.at.line, default.at.col);
        let words = "is the default though";
        found.warning(
            &at,
            format!("policy <{}> {words} <{}> is the first", default.name, first.name),
        );
    }
    let good = !found.has_errors();
    for d in found.into_list().into_iter().take(MAX_FAULTS) {
        let at = Pos { file: Arc::from(d.file.as_str()), line: d.line, col: d.col };
        diags.add_near(d.severity, &at, d.text, d.near.as_deref());
    }
    policies.filter(|_| good)
}

/// A fault has been told of; the rest of the clause is passed over.
struct Told;

/// The clauses of the present policy that may stand once.
#[derive(Default)]
struct Places {
    sort: Option<Place>,
    count: Option<Place>,
}

struct Parser<'a, 'd> {
    lex: Lexer<'a>,
    file: &'d Arc<str>,
    names: &'d dyn Names,
    diags: &'d mut Diags,
    policies: Vec<Policy>,
    /// A policy whose beginning is wrong: its clauses are read for their faults alone.
    ignored: Option<Policy>,
    places: Places,
}

/// A clause that is being read.
struct Draft {
    steps: Vec<Step>,
    /// Request attributes that an `exists()` has asked for so far.
    asked: Vec<AttrId>,
    constraint: bool,
    begins: Place,
}

impl Draft {
    fn new(constraint: bool, begins: Place) -> Draft {
        Draft { steps: Vec::new(), asked: Vec::new(), constraint, begins }
    }
}

fn new_policy(name: &str, at: Place) -> Policy {
    Policy {
        name: name.to_owned(),
        at,
        constraints: Vec::new(),
        sort: None,
        count: None,
        attributes: Vec::new(),
        expressions: Vec::new(),
    }
}

impl<'a> Parser<'a, '_> {
    fn error(&mut self, at: Place, text: impl Into<String>) -> Told {
        self.error_near(at, text, None)
    }

    fn error_near(&mut self, at: Place, text: impl Into<String>, near: Option<&str>) -> Told {
        let pos = Pos::new(self.file, at.line, at.col);
        self.diags.add_near(Severity::Error, &pos, text, near);
        Told
    }

    fn warning(&mut self, at: Place, text: String) {
        self.diags.warning(&Pos::new(self.file, at.line, at.col), text);
    }

    /// `what` is wanted where `item` stands.
    fn wanted(&mut self, what: &str, item: &Item<'_>) -> Told {
        let words = match &item.token {
            Token::Fault(words) => words.clone(),
            _ => format!("{what} is wanted before {}", named(item)),
        };
        self.error(item.at, words)
    }

    fn file(&mut self) {
        let mut any = false;
        while self.diags.list().len() < MAX_FAULTS {
            let item = self.lex.peek().clone();
            match item.token {
                Token::End => {
                    if !any && !self.diags.has_errors() {
                        self.diags.error(&Pos::whole(self.file), "no policy is defined");
                    }
                    return;
                }
                Token::Label => {
                    any = true;
                    self.lex.next();
                    if self.clause(&item).is_err() {
                        self.lex.skip_clause();
                    }
                }
                _ => {
                    self.unknown(&item);
                    self.lex.skip_clause();
                }
            }
        }
    }

    fn unknown(&mut self, item: &Item<'_>) -> Told {
        if let Token::Fault(words) = &item.token {
            return self.error(item.at, words.clone());
        }
        let text = "is unknown: policy, constraint, sort or count is wanted";
        self.error_near(
            item.at,
            format!("<{}> {text}", shown(item.text)),
            nearest(item.text, CLAUSES),
        )
    }

    fn clause(&mut self, label: &Item<'a>) -> Result<(), Told> {
        let word = CLAUSES.into_iter().find(|w| w.eq_ignore_ascii_case(label.text));
        let Some(word) = word else { return Err(self.unknown(label)) };
        if word == "policy" {
            return self.policy(label);
        }
        if self.policies.is_empty() && self.ignored.is_none() {
            return Err(self.error(label.at, format!("<{word}> stands before the first policy")));
        }
        match word {
            "constraint" => self.constraint(label.at),
            "sort" => self.sort(label.at),
            _ => self.count(label.at),
        }
    }

    /// The policy whose clauses are read.
    fn current(&mut self) -> Option<&mut Policy> {
        self.ignored.as_mut().or(self.policies.last_mut())
    }

    fn policy(&mut self, label: &Item<'a>) -> Result<(), Told> {
        let (name, at) = self.lex.raw(of_policy_name);
        self.places = Places::default();
        let before = self.policies.iter().find(|p| p.name.eq_ignore_ascii_case(name));
        let fault = if name.is_empty() || self.lex.colon_follows() {
            Some((label.at, "policy without a name".to_owned()))
        } else if name.len() > MAX_NAME {
            Some((at, format!("<{}> is longer than {MAX_NAME} characters", shown(name))))
        } else if let Some(before) = before {
            let line = before.at.line;
            Some((at, format!("policy <{name}> is already defined in line {line}")))
        } else if self.policies.len() >= MAX_POLICIES {
            Some((at, format!("more than {MAX_POLICIES} policies")))
        } else {
            None
        };
        let policy = new_policy(name, at);
        let Some((at, words)) = fault else {
            self.ignored = None;
            self.policies.push(policy);
            return Ok(());
        };
        self.ignored = Some(policy);
        self.error(at, words);
        // the word that was read for a name may be the next label
        if self.lex.colon_follows() {
            return self.label_read_as_name(name);
        }
        Err(Told)
    }

    /// The word behind `policy:` is a label, since a colon follows it.
    fn label_read_as_name(&mut self, text: &'a str) -> Result<(), Told> {
        let (_, at) = self.lex.raw(|c| c == ':');
        let col = at.col.saturating_sub(text.len() as u32);
        let label = Item { token: Token::Label, text, at: Place { line: at.line, col } };
        match text.eq_ignore_ascii_case("policy") {
            // one fault is enough for a row of them
            true => Err(Told),
            false => self.clause(&label),
        }
    }

    /// The present policy's name for a message.
    fn name(&mut self) -> String {
        self.current().map(|p| p.name.clone()).unwrap_or_default()
    }

    fn constraint(&mut self, at: Place) -> Result<(), Told> {
        let steps = self.expression(Draft::new(true, at))?;
        let full = self.current().is_some_and(|p| p.constraints.len() >= MAX_CONSTRAINTS);
        if full {
            return Err(self.error(at, format!("more than {MAX_CONSTRAINTS} constraints")));
        }
        if let Some(policy) = self.current() {
            policy.constraints.push(steps);
        }
        Ok(())
    }

    fn sort(&mut self, at: Place) -> Result<(), Told> {
        if let Some(before) = self.places.sort {
            let words =
                format!("policy <{}> has a sort already, in line {}", self.name(), before.line);
            return Err(self.error(at, words));
        }
        self.places.sort = Some(at);
        let steps = self.expression(Draft::new(false, at))?;
        if let Some(policy) = self.current() {
            policy.sort = Some(steps);
        }
        Ok(())
    }

    fn count(&mut self, label: Place) -> Result<(), Told> {
        if let Some(before) = self.places.count {
            let words =
                format!("policy <{}> has a count already, in line {}", self.name(), before.line);
            return Err(self.error(label, words));
        }
        self.places.count = Some(label);
        let (text, at) = self.lex.raw(|c| !c.is_whitespace() && c != '#');
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let value = text.parse::<u32>().ok().filter(|n| digits && *n >= 1);
        let Some(value) = value else {
            let words = format!("count <{}>: a whole number from 1 is wanted", shown(text));
            return Err(self.error(at, words));
        };
        if let Some(policy) = self.current() {
            policy.count = Some(value);
        }
        let next = self.lex.peek().clone();
        match next.token {
            Token::Label | Token::End => Ok(()),
            _ => Err(self.unknown(&next)),
        }
    }

    /// An expression up to the next clause.
    fn expression(&mut self, mut draft: Draft) -> Result<Vec<Step>, Told> {
        self.implications(&mut draft, 0)?;
        let next = self.lex.peek().clone();
        match next.token {
            Token::Label | Token::End => Ok(draft.steps),
            Token::Close | Token::CloseBracket => {
                Err(self.error(next.at, format!("<{}> closes nothing", next.text)))
            }
            _ => Err(self.wanted("an operator", &next)),
        }
    }

    fn push(&mut self, draft: &mut Draft, step: Step) -> Result<(), Told> {
        if draft.steps.len() >= MAX_TERMS {
            return Err(self.too_long(draft));
        }
        draft.steps.push(step);
        Ok(())
    }

    fn too_long(&mut self, draft: &Draft) -> Told {
        let words = format!("more than {MAX_TERMS} operators and operands in one clause");
        self.error(draft.begins, words)
    }

    /// `a => b => c`, which is `a => (b => c)`.
    fn implications(&mut self, draft: &mut Draft, depth: usize) -> Result<(), Told> {
        let mut more = 0;
        loop {
            self.binary(draft, 1, depth)?;
            if self.lex.peek().token != Token::Operator(Binary::Implies) {
                break;
            }
            self.lex.next();
            more += 1;
        }
        for _ in 0..more {
            self.push(draft, Step::Binary(Binary::Implies))?;
        }
        Ok(())
    }

    /// Operands joined by operators that bind at least as strongly as `least`.
    fn binary(&mut self, draft: &mut Draft, least: u8, depth: usize) -> Result<(), Told> {
        self.unary(draft, depth)?;
        let mut compared = false;
        loop {
            let item = self.lex.peek().clone();
            let Token::Operator(op) = item.token else { return Ok(()) };
            if op == Binary::Implies || op.strength() < least {
                return Ok(());
            }
            self.lex.next();
            if op.strength() == RELATION && compared {
                let words =
                    format!("<{}> compares the 1 or 0 of the comparison before it", item.text);
                self.warning(item.at, words);
            }
            compared = op.strength() == RELATION;
            self.binary(draft, op.strength() + 1, depth)?;
            self.push(draft, Step::Binary(op))?;
        }
    }

    fn unary(&mut self, draft: &mut Draft, depth: usize) -> Result<(), Told> {
        let mut before = Vec::new();
        loop {
            match self.lex.peek().token {
                Token::Not => before.push(Step::Not),
                Token::Operator(Binary::Sub) => before.push(Step::Negative),
                Token::Operator(Binary::Add) => {}
                _ => break,
            }
            if before.len() > MAX_TERMS {
                return Err(self.too_long(draft));
            }
            self.lex.next();
        }
        self.primary(draft, depth)?;
        for step in before.into_iter().rev() {
            self.push(draft, step)?;
        }
        Ok(())
    }

    fn primary(&mut self, draft: &mut Draft, depth: usize) -> Result<(), Told> {
        let item = self.lex.peek().clone();
        match item.token {
            Token::Number(value) => {
                self.lex.next();
                self.push(draft, Step::Number(value))
            }
            Token::Word => {
                self.lex.next();
                self.word(draft, &item)
            }
            Token::Open => {
                self.lex.next();
                if depth >= MAX_NESTING {
                    return Err(self.error(item.at, format!("nested deeper than {MAX_NESTING}")));
                }
                self.implications(draft, depth + 1)?;
                self.close(Token::Close, ")", &item)
            }
            Token::OpenBracket => {
                self.lex.next();
                self.comparison(draft, &item)
            }
            Token::Str(_) => {
                let words = "a string stands in [ ] alone: write [NAME == \"...\"]";
                Err(self.error(item.at, words))
            }
            _ => Err(self.wanted("an expression", &item)),
        }
    }

    /// The closing parenthesis or bracket for `open`.
    fn close(&mut self, wanted: Token, text: &str, open: &Item<'a>) -> Result<(), Told> {
        let item = self.lex.peek().clone();
        if item.token == wanted {
            self.lex.next();
            return Ok(());
        }
        if matches!(item.token, Token::Fault(_)) {
            return Err(self.wanted("", &item));
        }
        let (line, col) = (open.at.line, open.at.col);
        let place = format!("for the <{}> in line {line}, column {col}", open.text);
        Err(self.error(item.at, format!("<{text}> is wanted before {}, {place}", named(&item))))
    }

    fn word(&mut self, draft: &mut Draft, item: &Item<'a>) -> Result<(), Told> {
        if item.text.eq_ignore_ascii_case("age") {
            return self.push(draft, Step::Age);
        }
        if item.text.eq_ignore_ascii_case("exists") {
            return self.exists(draft);
        }
        let (owner, id) = self.attribute(item)?;
        if id.kind == Kind::Str {
            let name = item.text;
            let words = format!("<{name}> is a string: write [{name} == \"...\"]");
            return Err(self.error(item.at, words));
        }
        self.warn_unasked(draft, owner, id, item);
        let slot = self.slot(owner, id, item);
        self.push(draft, Step::Attribute(slot))
    }

    fn exists(&mut self, draft: &mut Draft) -> Result<(), Told> {
        let open = self.lex.peek().clone();
        if open.token != Token::Open {
            return Err(self.wanted("<(>", &open));
        }
        self.lex.next();
        let item = self.lex.peek().clone();
        if item.token != Token::Word {
            return Err(self.wanted("an attribute", &item));
        }
        self.lex.next();
        if ["age", "exists"].iter().any(|w| w.eq_ignore_ascii_case(item.text)) {
            let words = format!("<{}> is no attribute", item.text);
            return Err(self.error(item.at, words));
        }
        let (owner, id) = self.attribute(&item)?;
        if owner == Owner::Request {
            draft.asked.push(id);
        }
        self.close(Token::Close, ")", &open)?;
        let slot = self.slot(owner, id, &item);
        self.push(draft, Step::Exists(slot))
    }

    /// `[name == "expression"]`, behind its bracket.
    fn comparison(&mut self, draft: &mut Draft, open: &Item<'a>) -> Result<(), Told> {
        let item = self.lex.next();
        if item.token != Token::Word {
            return Err(self.wanted("a string attribute", &item));
        }
        let (owner, id) = self.attribute(&item)?;
        let operator = self.lex.next();
        match operator.token {
            Token::Operator(Binary::Eq) => {}
            Token::Operator(_) => {
                let words = "only == stands in [ ]: write";
                let right = match self.lex.peek() {
                    Item { token: Token::Str(_), text, .. } => text,
                    _ => "\"...\"",
                };
                let words = format!("{words} ![{} == {right}]", item.text);
                return Err(self.error(operator.at, words));
            }
            _ => return Err(self.wanted("<==>", &operator)),
        }
        let string = self.lex.next();
        if id.kind != Kind::Str {
            let value = string.text.trim_matches('"');
            let words = format!("<{0}> is no string: write {0} == {value}", item.text);
            return Err(self.error(item.at, words));
        }
        let Token::Str(text) = &string.token else {
            return Err(self.wanted("a string in quotes", &string));
        };
        let expression = match Bre::new(text) {
            Ok(expression) => expression,
            Err(why) => {
                let words = format!("regular expression <{}>: {why}", shown(text));
                return Err(self.error(string.at, words));
            }
        };
        self.close(Token::CloseBracket, "]", open)?;
        self.warn_unasked(draft, owner, id, &item);
        let slot = self.slot(owner, id, &item);
        let pattern = match self.current() {
            Some(policy) => {
                policy.expressions.push(expression);
                policy.expressions.len() - 1
            }
            None => 0,
        };
        self.push(draft, Step::Match(slot, pattern))
    }

    /// The attribute that a word names.
    fn attribute(&mut self, item: &Item<'_>) -> Result<(Owner, AttrId), Told> {
        let names = self.names;
        match names.attribute(item.text) {
            Some(Known::Of(owner, id)) => Ok((owner, id)),
            Some(Known::Other(of)) => {
                let name = item.text;
                let words = format!("<{name}> is an attribute of {of}:");
                Err(self.error(item.at, format!("{words} policies see NLB and NLB_JOB alone")))
            }
            None => {
                let name = shown(item.text);
                let near = nearest(item.text, names.all());
                let words = format!("no attribute <{name}> in the maps of NLB and NLB_JOB");
                Err(self.error_near(item.at, words, near))
            }
        }
    }

    /// Warns of a request attribute in a constraint that nothing to its left asks for.
    fn warn_unasked(&mut self, draft: &Draft, owner: Owner, id: AttrId, item: &Item<'_>) {
        let asked = owner == Owner::Host || id == REQUEST_NAME || draft.asked.contains(&id);
        if draft.constraint && !asked {
            let name = item.text;
            let words = "is there only for requests that ask for it: write";
            self.warning(item.at, format!("{name} {words} exists({name}) => ..."));
        }
    }

    /// The position of an attribute among those of the policy.
    fn slot(&mut self, owner: Owner, id: AttrId, item: &Item<'_>) -> usize {
        let Some(policy) = self.current() else { return 0 };
        let all = &mut policy.attributes;
        let found = all.iter().position(|a| (a.owner, a.id) == (owner, id));
        found.unwrap_or_else(|| {
            all.push(AttributeUse { owner, id, name: item.text.to_owned(), at: item.at });
            all.len() - 1
        })
    }
}

/// A token in a message.
fn named(item: &Item<'_>) -> String {
    match item.token {
        Token::End => "the end of the file".to_owned(),
        _ => format!("<{}>", shown(item.text)),
    }
}
