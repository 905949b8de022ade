//! Basic regular expressions as grep and ed read them, unanchored, ASCII letters without case.
//!
//! An expression is translated to the syntax of the crate `regex-lite`, which matches in time
//! linear in the text; back-references, which no automaton can follow, are refused.
//! See nlbpolicies(5).

use std::fmt::Write;

/// Longest expression, bytes.
pub const MAX_BYTES: usize = 1_024;
/// Largest compiled form, bytes.
pub const MAX_COMPILED: usize = 64 << 10;
/// Longest word that is looked for byte by byte, which takes time with its length.
const MAX_WORD: usize = 64;
/// Deepest nesting of groups and repetitions.
const MAX_NESTING: u32 = 64;
/// Most repetitions of an interval.
const MAX_REPEATS: u32 = 32_767;

/// A basic regular expression, ready to match.
#[derive(Clone, Debug)]
pub struct Bre {
    text: String,
    /// Nothing in it but characters that stand for themselves.
    word: bool,
    compiled: regex_lite::Regex,
}

impl PartialEq for Bre {
    fn eq(&self, other: &Bre) -> bool {
        self.text == other.text
    }
}

impl Bre {
    /// Reads an expression; the error says what is wrong with it.
    pub fn new(text: &str) -> Result<Bre, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("longer than {MAX_BYTES} bytes"));
        }
        let translated = translate(text)?;
        let compiled = regex_lite::RegexBuilder::new(&translated)
            .case_insensitive(true)
            .size_limit(MAX_COMPILED)
            .nest_limit(MAX_NESTING)
            .build();
        match compiled {
            Ok(compiled) => Ok(Bre { text: text.to_owned(), word: is_word(text), compiled }),
            Err(e) => Err(match e.to_string() {
                e if e.contains("nest") => format!("nested deeper than {MAX_NESTING}"),
                e if e.contains("size") => format!("larger than {MAX_COMPILED} bytes compiled"),
                e => e,
            }),
        }
    }

    /// Is there a match anywhere in `text`?
    pub fn matches(&self, text: &str) -> bool {
        match self.word {
            true => contains(text.as_bytes(), self.text.as_bytes()),
            false => self.compiled.is_match(text),
        }
    }

    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Do all characters of the expression stand for themselves?
fn is_word(text: &str) -> bool {
    let special = |c: char| matches!(c, '\\' | '[' | '*' | '^' | '$' | '.');
    (1..=MAX_WORD).contains(&text.len()) && !text.contains(special)
}

/// Does the text contain the word, ASCII letters without case?
fn contains(text: &[u8], word: &[u8]) -> bool {
    let Some((first, rest)) = word.split_first() else { return true };
    let Some(last) = text.len().checked_sub(word.len()) else { return false };
    let at = |(at, byte): (usize, &u8)| {
        let behind = || text.get(at + 1..=at + rest.len());
        byte.eq_ignore_ascii_case(first) && behind().is_some_and(|b| b.eq_ignore_ascii_case(rest))
    };
    text.iter().take(last + 1).enumerate().any(at)
}

/// A translation under way.
struct Translation<'a> {
    rest: std::str::Chars<'a>,
    out: String,
    /// The place of the last atom in `out`, and whether it is repeated already.
    atom: Option<(usize, bool)>,
    /// The place of each open group in `out`.
    groups: Vec<usize>,
    /// Nothing but an anchor has been read of this expression, group or alternative.
    start: bool,
}

fn translate(text: &str) -> Result<String, String> {
    let mut t = Translation {
        rest: text.chars(),
        out: String::new(),
        atom: None,
        groups: Vec::new(),
        start: true,
    };
    let mut first = true;
    while let Some(c) = t.rest.next() {
        let begins = std::mem::replace(&mut first, false);
        match c {
            '\\' => first = t.escape()?,
            '[' => t.bracket()?,
            '*' if !t.start => t.repeat("*"),
            '^' if begins => {
                t.out.push('^');
                first = false;
            }
            '$' if t.at_end() => t.push("$"),
            '.' => t.push("."),
            c => t.literal(c),
        }
    }
    match t.groups.is_empty() {
        true => Ok(t.out),
        false => Err("\\( without \\)".to_owned()),
    }
}

impl Translation<'_> {
    /// Adds an atom, or a place where no character is taken.
    fn push(&mut self, text: &str) {
        self.atom = Some((self.out.len(), false));
        self.start = false;
        self.out.push_str(text);
    }

    fn literal(&mut self, c: char) {
        self.atom = Some((self.out.len(), false));
        self.start = false;
        push_literal(&mut self.out, c);
    }

    /// Repeats the last atom.
    fn repeat(&mut self, how: &str) {
        let Some((at, repeated)) = self.atom else { return };
        if repeated {
            self.out.insert_str(at, "(?:");
            self.out.push(')');
        }
        self.out.push_str(how);
        self.atom = Some((at, true));
    }

    /// Is what comes next the end of the expression, group or alternative?
    fn at_end(&self) -> bool {
        let rest = self.rest.as_str();
        rest.is_empty() || rest.starts_with("\\)") || rest.starts_with("\\|")
    }

    /// A backslash and what follows it; true: an anchor may follow.
    fn escape(&mut self) -> Result<bool, String> {
        let Some(c) = self.rest.next() else { return Err("trailing backslash".to_owned()) };
        match c {
            '(' => {
                self.groups.push(self.out.len());
                self.out.push_str("(?:");
                self.begin();
                return Ok(true);
            }
            ')' => {
                let Some(at) = self.groups.pop() else {
                    return Err("\\) without \\(".to_owned());
                };
                self.out.push(')');
                self.atom = Some((at, false));
                self.start = false;
            }
            '|' => {
                self.out.push('|');
                self.begin();
                return Ok(true);
            }
            '{' => self.interval()?,
            '+' | '?' if !self.start => self.repeat(if c == '+' { "+" } else { "?" }),
            'w' | 'W' | 's' | 'S' => self.push(&format!("\\{c}")),
            'b' | 'B' => self.push(&format!("\\{c}")),
            '<' => self.push("\\b{start}"),
            '>' => self.push("\\b{end}"),
            '1'..='9' => return Err(format!("\\{c}: back-references are not taken")),
            c => self.literal(c),
        }
        Ok(false)
    }

    fn begin(&mut self) {
        self.atom = None;
        self.start = true;
    }

    /// `\{m\}`, `\{m,\}`, `\{,n\}` or `\{m,n\}`.
    fn interval(&mut self) -> Result<(), String> {
        let rest = self.rest.as_str();
        let Some((inside, behind)) = rest.split_once("\\}") else {
            return Err("\\{ without \\}".to_owned());
        };
        if self.start {
            return Err("\\{ with nothing before it".to_owned());
        }
        let number = |s: &str| match s {
            s if s.is_empty() || !s.bytes().all(|b| b.is_ascii_digit()) => None,
            s => s.parse::<u32>().ok().filter(|n| *n <= MAX_REPEATS),
        };
        let how = match inside.split_once(',') {
            None => number(inside).map(|n| format!("{{{n}}}")),
            Some((least, "")) => match least {
                "" => Some("*".to_owned()),
                least => number(least).map(|m| format!("{{{m},}}")),
            },
            Some((least, most)) => {
                let least = if least.is_empty() { Some(0) } else { number(least) };
                let both = least.zip(number(most)).filter(|(m, n)| m <= n);
                both.map(|(m, n)| format!("{{{m},{n}}}"))
            }
        };
        let Some(how) = how else {
            return Err(format!("\\{{{inside}\\}} is no number of repetitions"));
        };
        self.rest = behind.chars();
        self.repeat(&how);
        Ok(())
    }

    /// A bracket expression, behind its `[`.
    fn bracket(&mut self) -> Result<(), String> {
        const OPEN: &str = "[ without ]";
        let mut out = String::from("[");
        let mut c = self.rest.next().ok_or(OPEN)?;
        if c == '^' {
            out.push('^');
            c = self.rest.next().ok_or(OPEN)?;
        }
        loop {
            match self.element(c, OPEN)? {
                Element::Class(ranges) => out.push_str(ranges),
                Element::Character(low) => {
                    let mut ahead = self.rest.clone();
                    let range = ahead.next() == Some('-') && ahead.next() != Some(']');
                    if range {
                        self.rest.next();
                        let end = self.rest.next().ok_or(OPEN)?;
                        let Element::Character(high) = self.element(end, OPEN)? else {
                            return Err("a class ends no range".to_owned());
                        };
                        if low > high {
                            return Err(format!("{low}-{high} is a range that runs backwards"));
                        }
                        push_literal(&mut out, low);
                        out.push('-');
                        push_literal(&mut out, high);
                    } else {
                        push_literal(&mut out, low);
                    }
                }
            }
            c = self.rest.next().ok_or(OPEN)?;
            if c == ']' {
                break;
            }
        }
        out.push(']');
        self.push(&out);
        Ok(())
    }

    /// One element of a bracket expression that begins with `c`.
    fn element(&mut self, c: char, open: &str) -> Result<Element, String> {
        let mark = self.rest.as_str().chars().next().filter(|m| matches!(m, ':' | '.' | '='));
        let Some(mark) = mark.filter(|_| c == '[') else { return Ok(Element::Character(c)) };
        self.rest.next();
        let closing = format!("{mark}]");
        let Some((name, behind)) = self.rest.as_str().split_once(closing.as_str()) else {
            return Err(open.to_owned());
        };
        self.rest = behind.chars();
        let mut letters = name.chars();
        match (mark, letters.next(), letters.next()) {
            (':', ..) => match CLASSES.iter().find(|(n, _)| *n == name) {
                Some((_, ranges)) => Ok(Element::Class(ranges)),
                None => Err(format!("[:{name}:] is no class")),
            },
            (_, Some(only), None) => Ok(Element::Character(only)),
            _ => Err(format!("[{mark}{name}{mark}] is no single character")),
        }
    }
}

/// One element of a bracket expression.
enum Element {
    Character(char),
    /// The ranges of a class, as the crate reads them.
    Class(&'static str),
}

/// The classes of POSIX in the C locale.
const CLASSES: [(&str, &str); 12] = [
    ("alnum", "0-9A-Za-z"),
    ("alpha", "A-Za-z"),
    ("blank", " \\t"),
    ("cntrl", "\\x00-\\x1F\\x7F"),
    ("digit", "0-9"),
    ("graph", "!-~"),
    ("lower", "a-z"),
    ("print", " -~"),
    ("punct", "!-/:-@\\[-`\\{-~"),
    ("space", "\\t\\n\\x0B\\x0C\\r "),
    ("upper", "A-Z"),
    ("xdigit", "0-9A-Fa-f"),
];

/// A character that stands for itself.
fn push_literal(out: &mut String, c: char) {
    match c {
        c if c.is_ascii_punctuation() || c.is_ascii_control() => {
            let _ = write!(out, "\\x{:02X}", u32::from(c));
        }
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    fn matches(expression: &str, text: &str) -> bool {
        Bre::new(expression).unwrap_or_else(|e| panic!("{expression}: {e}")).matches(text)
    }

    const EXPRESSIONS: [&str; 58] = [
        "cray",
        "CRAY J90",
        "^cray",
        "sun4.$",
        "a*b",
        "*a",
        "^*a",
        "a^b",
        "a$b",
        "x86[_-]64",
        "[^a-c]",
        "[]a]",
        "[^]a]",
        "[a-]",
        "[[:digit:]]",
        "[[:upper:]]x",
        "[^[:alpha:][:digit:]]",
        "[[:punct:]]",
        "[[:space:]]b",
        "\\(ab\\)*c",
        "^\\(ab\\)*$",
        "\\(a\\|b\\)c",
        "a\\|b",
        "^a\\|b$",
        "a\\{2\\}",
        "a\\{2,\\}b",
        "a\\{1,2\\}b",
        "^a\\{,2\\}b",
        "a\\+b",
        "a\\?b",
        "^a\\?b$",
        "\\<ab",
        "ab\\>",
        "\\bab\\b",
        "\\Bb",
        "\\w\\W\\w",
        "\\s",
        "\\S\\s\\S",
        "a+b",
        "a?b",
        "a|b",
        "(a)",
        "a{2}",
        "\\.",
        "a.b",
        "[.]",
        "[*]b",
        "[\\]",
        "a**b",
        "\\(a*\\)*b",
        "\\(^a\\)b",
        "\\(a$\\)",
        "a\\*b",
        "\\[",
        "\\$",
        "^$",
        "",
        "[a-c][x-z]",
    ];

    const TEXTS: [&str; 24] = [
        "",
        "a",
        "b",
        "ab",
        "aab",
        "aaab",
        "abc",
        "ABC",
        "ababc",
        "abab",
        "CRAY J90",
        "a CRAY",
        "sun4u",
        "x86_64",
        "x86-64",
        "a*b",
        "a b",
        "a.b",
        "a+b (a) a{2} a?b a|b",
        "]",
        "-",
        "a^b a$b",
        "\\ [ $ *a",
        "az 7",
    ];

    #[test]
    fn expressions_agree_with_grep() {
        let run = |e: &str, text: &str| -> std::io::Result<bool> {
            let mut grep = Command::new("grep")
                .args(["-q", "-i", "-e", e])
                .env("LC_ALL", "C")
                .stdin(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()?;
            // grep may end before it has read the line
            let _ = writeln!(grep.stdin.take().unwrap(), "{text}");
            Ok(grep.wait()?.success())
        };
        if run("a", "a").is_err() {
            return;
        }
        let mut pairs = 0;
        for e in EXPRESSIONS {
            for text in TEXTS {
                assert_eq!(matches(e, text), run(e, text).unwrap(), "{e} on {text}");
                pairs += 1;
            }
        }
        assert!(pairs > 1_000, "{pairs}");
    }

    #[test]
    fn faults_of_an_expression_have_words() {
        let fault = |e: &str| Bre::new(e).unwrap_err();
        assert_eq!(fault("x\\{2"), "\\{ without \\}");
        assert_eq!(fault("x\\{2,1\\}"), "\\{2,1\\} is no number of repetitions");
        assert_eq!(fault("\\{2\\}"), "\\{ with nothing before it");
        assert_eq!(fault("\\(a"), "\\( without \\)");
        assert_eq!(fault("a\\)"), "\\) without \\(");
        assert_eq!(fault("[a"), "[ without ]");
        assert_eq!(fault("[[:a"), "[ without ]");
        assert_eq!(fault("[[:digits:]]"), "[:digits:] is no class");
        assert_eq!(fault("[z-a]"), "z-a is a range that runs backwards");
        assert_eq!(fault("a\\"), "trailing backslash");
        assert_eq!(fault("\\(a\\)\\1"), "\\1: back-references are not taken");
        assert_eq!(fault(&"a".repeat(1_025)), "longer than 1024 bytes");
        assert_eq!(fault("[^a]\\{9999\\}"), "larger than 65536 bytes compiled");
        let deep = "\\(".repeat(80) + &"\\)".repeat(80);
        assert_eq!(fault(&deep), "nested deeper than 64");
    }

    #[test]
    fn letters_have_no_case_and_others_stand_for_themselves() {
        assert!(matches("Cray", "cRAY"));
        assert!(matches("[a-c]X", "Bx"));
        assert!(matches("b\u{fc}ro.", "x b\u{fc}ro7"));
        assert!(!matches("b\u{fc}ro", "b\u{dc}ro"));
    }

    proptest::proptest! {
        #[test]
        fn a_word_is_found_where_its_automaton_finds_it(
            word in "[abAB\u{e9}\u{c9} \\]{}+|()]{1,3}",
            text in "[abAB\u{e9}\u{c9} \\]{}+|()]{0,9}",
        ) {
            let expression = Bre::new(&word).unwrap();
            proptest::prop_assert!(expression.word);
            let found = expression.compiled.is_match(&text);
            proptest::prop_assert_eq!(expression.matches(&text), found, "{} in {}", word, text);
        }
    }

    #[test]
    fn a_long_text_is_matched_in_linear_time() {
        let text = "a".repeat(1 << 18);
        let start = std::time::Instant::now();
        assert!(!matches("\\(a*\\)*b", &text));
        let quarter = start.elapsed();
        let start = std::time::Instant::now();
        assert!(!matches("\\(a*\\)*b", &text.repeat(4)));
        assert!(start.elapsed() < quarter * 16 + std::time::Duration::from_millis(200));
    }
}
