//! A physical line of a configuration file: its comment, its continuation, and the directives
//! `#INCLUDE` and `#if`. See lsf.shared(5).

/// A line that begins with `#` and is no comment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Directive<'a> {
    Include(&'a str),
    /// `#if` with its condition.
    If(&'a str),
    /// `#ifdef` and `#ifndef`: nothing is ever defined.
    Defined(&'a str, bool),
    Elif(&'a str),
    Else,
    Endif,
}

/// Takes comment and continuation off a physical line: what is kept, and whether the next line
/// belongs to it. A comment ends a continuation unless it ends in `\` itself.
pub(super) fn cut(text: &str, within: bool) -> (&str, bool) {
    let comment = comment_start(text);
    if let Some(start) = comment {
        let kept = &text[..start];
        let only = kept.trim().is_empty();
        return (kept, within && only && text.trim_end().ends_with('\\'));
    }
    match text.trim_end().strip_suffix('\\') {
        Some(kept) => (kept, true),
        None => (text, false),
    }
}

/// The beginning of a comment: a `#` that does not stand in a pair of double quotes.
fn comment_start(text: &str) -> Option<usize> {
    let first = text.find('#')?;
    if !text[..first].contains('"') {
        return Some(first);
    }
    let mut quoted = false;
    for (offset, c) in text.char_indices() {
        match c {
            '"' if quoted => quoted = false,
            '"' => quoted = text[offset + 1..].contains('"'),
            '#' if !quoted => return Some(offset),
            _ => {}
        }
    }
    None
}

/// Recognises a directive; `open` says whether an `#if` is open, without which `#else` and its
/// kin are comments.
pub(super) fn directive(text: &str, open: bool) -> Option<Directive<'_>> {
    let text = text.trim();
    let body = text.strip_prefix('#')?;
    let split = body.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(body.len());
    let (word, rest) = body.split_at(split);
    let rest = rest.trim();
    let timed = rest.starts_with("time") || rest.starts_with('!') || rest.starts_with('(');
    match word.to_ascii_lowercase().as_str() {
        "include" if word == "INCLUDE" || rest.starts_with('"') => {
            let name = rest.trim_matches('"').trim();
            (!name.is_empty()).then_some(Directive::Include(name))
        }
        "if" if timed && rest.contains("time") => Some(Directive::If(rest)),
        "ifdef" if !rest.is_empty() => Some(Directive::Defined(text, false)),
        "ifndef" if !rest.is_empty() => Some(Directive::Defined(text, true)),
        "elif" if open => Some(Directive::Elif(rest)),
        "else" if open && rest.is_empty() => Some(Directive::Else),
        "endif" if open => Some(Directive::Endif),
        _ => None,
    }
}
