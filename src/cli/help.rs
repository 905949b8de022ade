//! Help in LSF's layout, from the same `ArgsInfo` that recognises the options: usage lines, then
//! one line per option.

use super::option_words::{classic_word, typed};
use argh::{CommandInfoWithArgs, FlagInfo, FlagInfoKind, Optionality, PositionalInfo};

/// Column where usage lines are broken.
const WIDTH: usize = 80;
/// Column where the options' descriptions begin.
const DESCRIPTION: usize = 22;

/// The usage lines, each ended by a newline.
pub fn usage(name: &str, info: &CommandInfoWithArgs) -> String {
    let mut items: Vec<String> = Vec::new();
    for own in ["h", "V"] {
        if !flags(info).any(|f| classic_word(f.short, f.long) == own) {
            items.push(format!("[-{own}]"));
        }
    }
    items.extend(flags(info).map(bracketed));
    items.extend(info.positionals.iter().filter(|p| !p.hidden).map(operand));
    let start = format!("Usage: {name}");
    let indent = start.len() + 1;
    let (mut text, mut column) = (start.clone(), start.len());
    for item in items {
        if column > indent && column + 1 + item.len() >= WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(indent - 1));
            column = indent - 1;
        }
        text.push(' ');
        text.push_str(&item);
        column += 1 + item.chars().count();
    }
    text.push('\n');
    text
}

/// The help of these options or, when none is named, the usage and the help of all options.
pub fn help_of(name: &str, info: &CommandInfoWithArgs, words: &[String]) -> String {
    let word = |f: &FlagInfo<'_>| classic_word(f.short, f.long);
    let mut text = String::new();
    for flag in flags(info).filter(|f| words.contains(&word(f))) {
        line(&mut text, &spelled(flag), flag.description);
    }
    if text.is_empty() { help(name, info) } else { text }
}

/// The purpose of the command, and its usage.
pub fn description(name: &str, info: &CommandInfoWithArgs) -> String {
    let mut text = format!("{name}: ");
    let mut column = text.len();
    for (i, word) in info.description.split_whitespace().enumerate() {
        let wide = word.chars().count();
        let sep = match (i, column + 1 + wide > WIDTH - 1) {
            (0, _) => "",
            (_, false) => " ",
            (_, true) => "\n",
        };
        column = if sep == "\n" { wide } else { column + sep.len() + wide };
        text.push_str(sep);
        text.push_str(word);
    }
    text.push_str("\n\n");
    text + &usage(name, info)
}

/// Usage and options.
fn help(name: &str, info: &CommandInfoWithArgs) -> String {
    let mut text = usage(name, info);
    text.push('\n');
    for flag in flags(info) {
        line(&mut text, &spelled(flag), flag.description);
    }
    for p in info.positionals.iter().filter(|p| !p.hidden && !p.description.is_empty()) {
        line(&mut text, p.name, p.description);
    }
    for (word, what) in [("h", "print this help"), ("V", "print the version")] {
        if !flags(info).any(|f| classic_word(f.short, f.long) == word) {
            line(&mut text, &format!("-{word}"), what);
        }
    }
    text
}

fn flags(info: &CommandInfoWithArgs) -> impl Iterator<Item = &FlagInfo<'static>> {
    info.flags.iter().filter(|f| !f.hidden && f.long != "--help")
}

/// `-u user_name`
fn spelled(flag: &FlagInfo<'_>) -> String {
    let word = typed(flag.short, flag.long);
    match flag.kind {
        FlagInfoKind::Switch => word,
        FlagInfoKind::Option { arg_name } => format!("{word} {arg_name}"),
    }
}

fn bracketed(flag: &FlagInfo<'_>) -> String {
    let repeats = flag.optionality == Optionality::Repeating
        && matches!(flag.kind, FlagInfoKind::Option { .. });
    match (&flag.optionality, flag.kind == FlagInfoKind::Switch) {
        (Optionality::Required, false) => spelled(flag),
        _ => format!("[{}]{}", spelled(flag), if repeats { "..." } else { "" }),
    }
}

fn operand(p: &PositionalInfo<'_>) -> String {
    match p.optionality {
        Optionality::Required => p.name.to_string(),
        Optionality::Optional => format!("[{}]", p.name),
        Optionality::Repeating | Optionality::Greedy => format!("[{} ...]", p.name),
    }
}

pub(super) fn line(text: &mut String, left: &str, right: &str) {
    let gap = DESCRIPTION.saturating_sub(left.chars().count() + 2).max(2);
    text.push_str(&format!("  {left}{}", " ".repeat(gap)));
    let mut column = 2 + left.chars().count() + gap;
    for (i, word) in right.split_whitespace().enumerate() {
        let wide = word.chars().count();
        if i > 0 && column + 1 + wide > WIDTH - 1 {
            text.push_str(&format!("\n{}", " ".repeat(DESCRIPTION)));
            column = DESCRIPTION;
        } else if i > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += wide;
    }
    text.push('\n');
}
