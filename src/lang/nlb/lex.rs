//! The tokens of a policies file.

use super::text::{Cursor, Place};

/// An operator between two operands, in the order of how strongly each binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Implies,
    Or,
    And,
    Xor,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Add,
    Sub,
    Mul,
    Div,
}

impl Binary {
    /// How strongly it binds: 0 for `=>`, which binds least.
    pub(super) fn strength(self) -> u8 {
        match self {
            Binary::Implies => 0,
            Binary::Or => 1,
            Binary::And => 2,
            Binary::Xor => 3,
            Binary::Eq | Binary::Ne => 4,
            Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge => RELATION,
            Binary::Add | Binary::Sub => 6,
            Binary::Mul | Binary::Div => 7,
        }
    }

    /// The text in a policy.
    pub(super) fn text(self) -> &'static str {
        let found = OPERATORS.iter().find(|(_, op)| *op == self);
        found.map_or("", |(text, _)| text)
    }
}

/// The strength of `<`, `<=`, `>`, `>=`.
pub(super) const RELATION: u8 = 5;

/// All operators, longer ones before their beginnings.
const OPERATORS: [(&str, Binary); 14] = [
    ("=>", Binary::Implies),
    ("||", Binary::Or),
    ("&&", Binary::And),
    ("==", Binary::Eq),
    ("!=", Binary::Ne),
    ("<=", Binary::Le),
    (">=", Binary::Ge),
    ("^", Binary::Xor),
    ("<", Binary::Lt),
    (">", Binary::Gt),
    ("+", Binary::Add),
    ("-", Binary::Sub),
    ("*", Binary::Mul),
    ("/", Binary::Div),
];

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A word with its colon: the beginning of a clause.
    Label,
    Word,
    Number(f64),
    /// A string in quotes, `\"` read as a quote.
    Str(String),
    Operator(Binary),
    Not,
    Open,
    Close,
    OpenBracket,
    CloseBracket,
    /// No token, with the reason.
    Fault(String),
    End,
}

/// A token with its spelling and place.
#[derive(Clone, Debug)]
pub(super) struct Item<'a> {
    pub(super) token: Token,
    /// The spelling; of a label without the colon.
    pub(super) text: &'a str,
    pub(super) at: Place,
}

/// The tokens of a text, one after the other.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: Cursor<'a>,
    ahead: Option<Item<'a>>,
}

/// Is the character one of a word?
fn of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Is the character one of a policy's name?
pub(super) fn of_policy_name(c: char) -> bool {
    of_word(c) || matches!(c, '-' | '.' | '+')
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Lexer { text: Cursor::new(text), ahead: None }
    }

    /// The next token, left in place.
    pub(super) fn peek(&mut self) -> &Item<'a> {
        let text = &mut self.text;
        self.ahead.get_or_insert_with(|| read(text))
    }

    /// Takes the next token.
    pub(super) fn next(&mut self) -> Item<'a> {
        self.ahead.take().unwrap_or_else(|| read(&mut self.text))
    }

    /// Takes the run of characters behind a label that `wanted` allows, and its place. To be called
    /// before the next token has been looked at.
    pub(super) fn raw(&mut self, wanted: impl Fn(char) -> bool) -> (&'a str, Place) {
        debug_assert!(self.ahead.is_none());
        blanks(&mut self.text);
        let at = self.text.at();
        (self.text.take_while(wanted), at)
    }

    /// Is the next character, behind blanks, the colon of a label?
    pub(super) fn colon_follows(&self) -> bool {
        let mut text = self.text;
        blanks(&mut text);
        text.peek() == Some(':')
    }

    /// Passes over all tokens of the clause.
    pub(super) fn skip_clause(&mut self) {
        while !matches!(self.peek().token, Token::Label | Token::End) {
            self.next();
        }
    }
}

/// Skips blanks, comments and backslashes at the end of a line. The manual prints such a backslash
/// as `\n`: that counts as one too, since a policy copied from there has to be read.
fn blanks(text: &mut Cursor<'_>) {
    loop {
        text.blanks();
        let printed = text.rest().strip_prefix("\\n");
        let printed = printed.is_some_and(|r| r.starts_with(char::is_whitespace));
        let taken = text.eat("\\\n") || text.eat("\\\r\n") || printed && text.eat("\\n");
        if !taken {
            return;
        }
    }
}

fn read<'a>(text: &mut Cursor<'a>) -> Item<'a> {
    blanks(text);
    let at = text.at();
    let from = text.rest();
    let token = token(text);
    let spelling = text.since(from);
    if token == Token::Word {
        let mut behind = *text;
        blanks(&mut behind);
        if behind.eat(":") {
            *text = behind;
            return Item { token: Token::Label, text: spelling, at };
        }
    }
    Item { token, text: spelling, at }
}

fn token(text: &mut Cursor<'_>) -> Token {
    let Some(first) = text.peek() else { return Token::End };
    let decimal = first == '.' && text.rest().chars().nth(1).is_some_and(|c| c.is_ascii_digit());
    if first.is_ascii_digit() || decimal {
        return number(text);
    }
    if of_word(first) {
        text.take_while(of_word);
        return Token::Word;
    }
    if first == '"' {
        return string(text);
    }
    if let Some((_, op)) = OPERATORS.iter().find(|(spelling, _)| text.eat(spelling)) {
        return Token::Operator(*op);
    }
    text.bump();
    match first {
        '!' => Token::Not,
        '(' => Token::Open,
        ')' => Token::Close,
        '[' => Token::OpenBracket,
        ']' => Token::CloseBracket,
        '=' => Token::Fault("<=> is no operator: == compares, => implies".to_owned()),
        '&' => Token::Fault("<&> is no operator: && is".to_owned()),
        '|' => Token::Fault("<|> is no operator: || is".to_owned()),
        '%' => Token::Fault("<%> is no operator: + - * / are".to_owned()),
        c => Token::Fault(format!("<{c}> has no meaning here")),
    }
}

fn number(text: &mut Cursor<'_>) -> Token {
    let from = text.rest();
    text.take_while(|c| c.is_ascii_digit() || c == '.');
    let mut behind = *text;
    if behind.eat("e") || behind.eat("E") {
        let _ = behind.eat("+") || behind.eat("-");
        if !behind.take_while(|c| c.is_ascii_digit()).is_empty() {
            *text = behind;
        }
    }
    text.take_while(of_word);
    let spelling = text.since(from);
    // the letters of `inf` and `nan` cannot stand behind a digit
    match spelling.parse::<f64>() {
        Ok(value) if value.is_finite() => Token::Number(value),
        _ => Token::Fault(format!(
            "<{}> is no number: decimal ones are, as 10, 0.5 or 3.5e4",
            super::text::shown(spelling)
        )),
    }
}

fn string(text: &mut Cursor<'_>) -> Token {
    text.bump();
    let mut value = String::new();
    loop {
        match text.peek() {
            None | Some('\n' | '\r') => {
                return Token::Fault("<\"> is wanted before the end of the line".to_owned());
            }
            Some('"') => {
                text.bump();
                return Token::Str(value);
            }
            Some('\\') => {
                text.bump();
                match text.peek() {
                    Some('"') => {
                        text.bump();
                        value.push('"');
                    }
                    // the pair belongs to the expression, also `\\` before the closing quote
                    Some('\\') => {
                        text.bump();
                        value.push_str("\\\\");
                    }
                    _ => value.push('\\'),
                }
            }
            Some(c) => {
                text.bump();
                value.push(c);
            }
        }
    }
}
