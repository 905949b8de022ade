//! The classic option front: LSF's single-dash words over an argh struct.
//!
//! argh 0.1.19 knows `--long value` and `-x value` only. This module reads the words as LSF's
//! commands do and hands argh what it understands; argh keeps the types, and its `ArgsInfo` is
//! the one table from which options are recognised and help is printed.
//!
//! # How an applet names its options
//! - One letter: `#[argh(option, short = 'J')] job_name: Option<String>` is `-J` (the long name,
//!   here `--job-name`, is accepted too).
//! - Several letters, small: `#[argh(switch)] noheader: bool` is `-noheader`.
//! - With capitals: argh allows small letters, digits and dashes in long names, so a dash means
//!   that the next letter is a capital: `long = "-u-f"` is `-UF`, `long = "-is"` is `-Is`,
//!   `long = "-jd"` is `-Jd`, `long = "-w-l"` is `-WL`. Two dashes are an underscore:
//!   `long = "cn--mem"` is `-cn_mem`.
//! - The value's name in help: `arg_name = "user_name"`. Options are `Option<T>` or `Vec<T>`;
//!   the last value of a repeated option wins except for `Vec<T>`.
//! - Operands: declare `#[argh(positional, greedy, arg_name = "job_ID")] operands: Vec<String>`
//!   for help; the exact words, UTF-8 or not, are in [`Parsed::operands`].
//!
//! # How words are read
//! A word that is an option's whole name is that option, and its value is the next word whatever
//! it looks like. Else, a word with a blank whose first part names an option that takes a value
//! holds name and value (`"-o exit_code"`). Else, letters are read one by one: switches may be
//! bundled, and what follows a letter that takes a value is its value (`-uUSER`, `-aJ '*x*'`);
//! where that value is a number it begins with a digit, or the word is no option (`-nosuch`).
//! Where the command fails, how each word with a glued value was read is told ([`readings`]):
//! `-rcacct was read as -r -c acct`.
//! The first operand, or `--`, ends the options. `-h` and `-V` are in every command unless the
//! struct has letters of its own for them.

use super::option_words::{as_typed, classic_word};
use super::{categories, help, version};
use crate::conf::names::nearest;
use argh::{ArgsInfo, CommandInfoWithArgs, FlagInfoKind, FromArgs, Optionality};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Exit code of a usage error.
const USAGE: i32 = 255;

/// The result of reading a command line.
#[derive(Debug, PartialEq)]
pub struct Parsed<T> {
    /// The options.
    pub options: T,
    /// The operands exactly as given.
    pub operands: Vec<OsString>,
}

/// The command ends here: what to print and the exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The exit code.
    pub code: i32,
    /// The text for stdout.
    pub out: String,
    /// The text for stderr.
    pub err: String,
}

impl Exit {
    /// A failure with one line of words on stderr, exit 255.
    pub fn fail(words: impl std::fmt::Display) -> Exit {
        Exit { code: USAGE, out: String::new(), err: format!("{words}\n") }
    }

    /// Prints it and gives the exit code.
    pub fn show(&self, ctx: &mut super::ctx::Ctx) -> i32 {
        let _ = ctx.out.write_all(self.out.as_bytes());
        let _ = ctx.out.flush();
        let _ = ctx.err.write_all(self.err.as_bytes());
        self.code
    }
}

/// The subject of the help.
enum Behind {
    All,
    Description,
    Options(Vec<String>),
}

/// Reads the words of a command that was called; where it fails, how they were read is told.
pub fn parse_of<T: FromArgs + ArgsInfo>(ctx: &mut super::ctx::Ctx) -> Result<Parsed<T>, Exit> {
    ctx.readings = Some(readings::<T>);
    parse(ctx.name, &ctx.args)
}

/// How each word with a glued value is read.
pub fn readings<T: ArgsInfo>(args: &[OsString]) -> Vec<String> {
    let info = T::get_args_info();
    OptionTable::new(&info).read("", &info, args).map_or(Vec::new(), |words| words.readings)
}

/// Reads the words of a command.
pub fn parse<T: FromArgs + ArgsInfo>(name: &str, args: &[OsString]) -> Result<Parsed<T>, Exit> {
    parse_over(name, &[], args)
}

/// Reads the words of a command and, below them, layers of lines with options, the lowest first
/// (`#BSUB` lines, a job file): an option of a layer puts aside every one of the same name in the
/// layers below, and the command line those of all layers. Operands in layers are ignored.
pub fn parse_over<T: FromArgs + ArgsInfo>(
    name: &str,
    layers: &[&[Vec<OsString>]],
    args: &[OsString],
) -> Result<Parsed<T>, Exit> {
    let info = T::get_args_info();
    let table = OptionTable::new(&info);
    let own = table.read(name, &info, args)?;
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut over = |upper: Vec<(usize, String)>| {
        found.retain(|(option, _)| upper.iter().all(|(o, _)| o != option));
        found.extend(upper);
    };
    for layer in layers {
        let mut upper = Vec::new();
        for line in *layer {
            upper.extend(table.read(name, &info, line)?.found);
        }
        over(upper);
    }
    over(own.found);
    if info.positionals.is_empty()
        && let Some(word) = own.operands.first()
    {
        return Err(wrong(name, &info, &format!("unexpected word -- {}", word.to_string_lossy())));
    }
    let options = table.build::<T>(name, &info, &found, &own.operands)?;
    Ok(Parsed { options, operands: own.operands })
}

/// Is this the whole name of an option?
pub fn knows<T: ArgsInfo>(word: &str) -> bool {
    OptionTable::new(&T::get_args_info()).entries.iter().any(|e| e.word == word)
}

/// Is this the whole name of an option that takes a value?
pub fn takes_value<T: ArgsInfo>(word: &str) -> bool {
    OptionTable::new(&T::get_args_info())
        .entries
        .iter()
        .any(|e| e.value.is_some() && e.word == word)
}

/// A usage error found by the applet itself: its words, then the usage lines; exit 255.
pub fn usage_error<T: ArgsInfo>(name: &str, words: &str) -> Exit {
    let usage = help::usage(name, &T::get_args_info());
    Exit { code: USAGE, out: String::new(), err: format!("{words}\n{usage}") }
}

fn wrong(name: &str, info: &CommandInfoWithArgs, words: &str) -> Exit {
    let usage = help::usage(name, info);
    Exit { code: USAGE, out: String::new(), err: format!("{name}: {words}\n{usage}") }
}

/// Names that help gives to values which begin with a digit, without what follows the first word.
const NUMBERS: [&str; 9] =
    ["count", "hour", "interval", "min", "minimum", "minutes", "num", "number", "size"];

/// Whether a value of this name begins with a digit.
fn is_number(arg_name: &str) -> bool {
    let name = arg_name.trim_start_matches('[');
    let end = name.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(name.len());
    NUMBERS.contains(&&name[..end])
}

/// One option.
struct OptionEntry {
    word: String,
    long: &'static str,
    /// The name that help gives to its value; `None` for a switch.
    value: Option<&'static str>,
    repeats: bool,
}

/// The options of a command. Options are spoken of by their place in it.
struct OptionTable {
    entries: Vec<OptionEntry>,
}

/// The contents of one list of words.
struct Words {
    found: Vec<(usize, String)>,
    operands: Vec<OsString>,
    readings: Vec<String>,
}

/// The reading of an option word.
enum Step {
    /// An option with its value, empty for a switch.
    Set(usize, String),
    /// An option whose value is the next word.
    Wants(usize),
    Help,
    Version,
    /// No option: the letters to complain of.
    Unknown(String),
    /// The value of this option is not UTF-8.
    NotText(usize),
}

impl OptionTable {
    fn new(info: &CommandInfoWithArgs) -> Self {
        let flags = info.flags.iter().filter(|f| f.long != "--help");
        let entry = |f: &argh::FlagInfo<'static>| OptionEntry {
            word: classic_word(f.short, f.long),
            long: f.long,
            value: match f.kind {
                FlagInfoKind::Option { arg_name } => Some(arg_name),
                FlagInfoKind::Switch => None,
            },
            repeats: !matches!(f.optionality, Optionality::Optional | Optionality::Required),
        };
        OptionTable { entries: flags.map(entry).collect() }
    }

    fn find(&self, word: &str) -> Option<usize> {
        self.entries.iter().position(|e| e.word == word)
    }

    fn takes_value(&self, option: usize) -> bool {
        self.entries.get(option).is_some_and(|e| e.value.is_some())
    }

    /// Is what is glued to it no value of it?
    fn wants_digit(&self, option: usize, glued: &str) -> bool {
        let number = self.entries.get(option).and_then(|e| e.value).is_some_and(is_number);
        number && !glued.starts_with(|c: char| c.is_ascii_digit() || "+-.:".contains(c))
    }

    fn word(&self, option: usize) -> &str {
        self.entries.get(option).map_or("", |e| &e.word)
    }

    fn read(
        &self,
        name: &str,
        info: &CommandInfoWithArgs,
        args: &[OsString],
    ) -> Result<Words, Exit> {
        let (mut found, mut readings) = (Vec::new(), Vec::new());
        let mut left = args.iter();
        while let Some(arg) = left.next() {
            let word = match arg.as_bytes() {
                b"--" => break,
                [b'-', rest @ ..] if !rest.is_empty() => rest,
                _ => {
                    let operands = std::iter::once(arg).chain(left).cloned().collect();
                    return Ok(Words { found, operands, readings });
                }
            };
            let steps = self.steps(word);
            readings.extend(self.reading(&arg.to_string_lossy(), &steps));
            for step in steps {
                match step {
                    Step::Set(option, value) => found.push((option, value)),
                    Step::Wants(option) => {
                        let letters = self.word(option);
                        let words = format!("option requires an argument -- {letters}");
                        let value = left.next().ok_or_else(|| wrong(name, info, &words))?;
                        let value = value.to_str().map(str::to_string);
                        found.push((option, value.ok_or_else(|| self.not_text(name, option))?));
                    }
                    Step::Help => {
                        return Err(match self.named_after(name, left.as_slice()) {
                            Ok(Behind::All) => shown(help::help_of(name, info, &[])),
                            Ok(Behind::Description) => shown(help::description(name, info)),
                            Ok(Behind::Options(of)) => shown(help::help_of(name, info, &of)),
                            Err(word) => Exit::fail(format_args!(
                                "{name}: {word}: No such option or category of options"
                            )),
                        });
                    }
                    Step::Version => return Err(shown(format!("{}\n", version::line()))),
                    Step::Unknown(letters) => {
                        let near = self.nearest(&letters);
                        let words = format!("illegal option -- {letters}{near}");
                        return Err(wrong(name, info, &words));
                    }
                    Step::NotText(option) => return Err(self.not_text(name, option)),
                }
            }
        }
        Ok(Words { found, operands: left.cloned().collect(), readings })
    }

    /// How a word was read that ends in a glued value.
    fn reading(&self, typed: &str, steps: &[Step]) -> Option<String> {
        if typed.starts_with("--")
            || !matches!(steps.last(), Some(Step::Set(_, v)) if !v.is_empty())
        {
            return None;
        }
        let mut read = String::new();
        for step in steps {
            let Step::Set(option, value) = step else { continue };
            let blank = if value.is_empty() { "" } else { " " };
            read.push_str(&format!(" -{}{blank}{value}", self.word(*option)));
        }
        // a value after a blank in the same word is as it was typed
        let same = read.split_whitespace().eq(typed.split_whitespace());
        (!same).then(|| format!("{typed} was read as{read}"))
    }

    /// The option that a word which is none may have meant.
    fn nearest(&self, letters: &str) -> String {
        let word = letters.trim_start_matches('-');
        let long = self.entries.iter().filter(|e| e.word.len() > 2 && word.len() > 2);
        match nearest(word, long.map(|e| e.word.as_str())).and_then(|near| self.find(near)) {
            Some(option) => format!("; did you mean {}?", self.typed(option)),
            None => String::new(),
        }
    }

    fn typed(&self, option: usize) -> String {
        self.entries.get(option).map_or_else(String::new, |e| as_typed(&e.word, e.long))
    }

    /// The words after -h; else the first word that is nothing of the kind. A command
    /// without categories takes whatever is there.
    fn named_after(&self, name: &str, words: &[OsString]) -> Result<Behind, String> {
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        let mut all = Vec::new();
        for word in words.iter().map(text) {
            let option = word.strip_prefix('-').filter(|o| self.find(o).is_some());
            match (option, categories::options(name, &word), word.as_str()) {
                (Some(option), ..) => all.push(option.to_owned()),
                (_, Some(of), _) => all.extend(of.into_iter().map(str::to_owned)),
                (.., "all") => return Ok(Behind::All),
                (.., "description") if categories::some(name) => return Ok(Behind::Description),
                _ if categories::some(name) => return Err(word),
                _ => return Ok(Behind::All),
            }
        }
        Ok(if all.is_empty() { Behind::All } else { Behind::Options(all) })
    }

    fn not_text(&self, name: &str, option: usize) -> Exit {
        let letters = self.word(option);
        Exit::fail(format_args!("{name}: the value of option -{letters} is not valid UTF-8"))
    }

    /// Takes apart one word, given without its first dash.
    fn steps(&self, bytes: &[u8]) -> Vec<Step> {
        let text = OsStr::from_bytes(bytes).to_string_lossy();
        if let Some(long) = text.strip_prefix('-') {
            return vec![self.long(&text, long)];
        }
        if let Some(option) = self.find(&text) {
            return vec![self.alone(option)];
        }
        match text.as_ref() {
            "help" => return vec![Step::Help],
            "version" => return vec![Step::Version],
            _ => {}
        }
        if let Some((head, value)) = text.split_once([' ', '\t'])
            && let Some(option) = self.find(head)
            && self.takes_value(option)
        {
            return vec![match std::str::from_utf8(bytes) {
                Ok(_) => Step::Set(option, value.trim_start().to_string()),
                Err(_) => Step::NotText(option),
            }];
        }
        self.letters(&text, std::str::from_utf8(bytes).is_ok())
    }

    fn alone(&self, option: usize) -> Step {
        match self.takes_value(option) {
            true => Step::Wants(option),
            false => Step::Set(option, String::new()),
        }
    }

    /// `--name`, `--name=value`.
    fn long(&self, text: &str, long: &str) -> Step {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let option = self.entries.iter().position(|e| e.long.strip_prefix('-') == Some(name));
        match (option, value) {
            (Some(o), Some(v)) if self.takes_value(o) => Step::Set(o, v.to_string()),
            (Some(o), None) => self.alone(o),
            (None, None) if long == "help" => Step::Help,
            (None, None) if long == "version" => Step::Version,
            _ => Step::Unknown(text.to_string()),
        }
    }

    /// Bundled letters, the last of which may have its value glued to it.
    fn letters(&self, text: &str, valid: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        // a letter that asks for help stands beside switches alone: `-lhost1` is no `-l -h -o st1`
        let mut asks = false;
        for (at, letter) in text.char_indices() {
            let rest = text.get(at + letter.len_utf8()..).unwrap_or("");
            match self.find(letter.encode_utf8(&mut [0; 4])) {
                Some(option) if self.takes_value(option) => {
                    steps.push(match (rest.is_empty(), valid) {
                        (true, _) => Step::Wants(option),
                        (false, _) if asks || self.wants_digit(option, rest) => {
                            return vec![Step::Unknown(text.to_string())];
                        }
                        (false, true) => Step::Set(option, rest.to_string()),
                        (false, false) => Step::NotText(option),
                    });
                    return steps;
                }
                Some(option) => steps.push(Step::Set(option, String::new())),
                None if letter == 'h' || letter == 'V' => {
                    asks = true;
                    steps.push(if letter == 'h' { Step::Help } else { Step::Version });
                }
                None => {
                    // of two letters the wrong one is named, of a longer word the whole of it
                    let bundle = !steps.is_empty() && text.chars().count() == 2;
                    let letters = if bundle { letter.to_string() } else { text.to_string() };
                    // A word with a wrong letter has no effect at all; above all, a -h in it prints
                    // no help.
                    return vec![Step::Unknown(letters)];
                }
            }
        }
        steps
    }

    /// Hands argh what was found.
    fn build<T: FromArgs>(
        &self,
        name: &str,
        info: &CommandInfoWithArgs,
        found: &[(usize, String)],
        operands: &[OsString],
    ) -> Result<T, Exit> {
        let mut words: Vec<&str> = Vec::new();
        for (at, (option, value)) in found.iter().enumerate() {
            let Some(entry) = self.entries.get(*option) else { continue };
            let later = found.get(at + 1..).unwrap_or_default().iter().any(|(o, _)| o == option);
            if entry.value.is_some() && !entry.repeats && later {
                continue;
            }
            words.push(entry.long);
            if entry.value.is_some() {
                words.push(value);
            }
        }
        let lossy: Vec<_> = operands.iter().map(|o| o.to_string_lossy()).collect();
        words.push("--");
        words.extend(lossy.iter().map(AsRef::as_ref));
        T::from_args(&[name], &words).map_err(|early| self.refused(name, info, &early.output))
    }

    /// argh's complaint in LSF's words.
    fn refused(&self, name: &str, info: &CommandInfoWithArgs, words: &str) -> Exit {
        let option = words
            .strip_prefix("Error parsing option '")
            .and_then(|rest| rest.split_once('\''))
            .and_then(|(long, _)| self.entries.iter().find(|e| e.long == long));
        match option {
            Some(e) => {
                let option = as_typed(&e.word, e.long);
                Exit::fail(format_args!("{name}: Bad argument for option {option}."))
            }
            None => wrong(name, info, &words.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }
}

fn shown(err: String) -> Exit {
    Exit { code: 0, out: String::new(), err }
}

#[cfg(test)]
mod tests;
