//! Reads a JSDL job file (bsub -jsdl, -jsdl_strict): the Job Submission Description Language 1.0
//! of the Open Grid Forum (GFD.56) with its POSIX application.
//!
//! An element that no option of bsub stands for is refused by its name: a job without it would not
//! be the one described. Elements of other namespaces are refused with -jsdl_strict; the extension
//! of LSF has no reader here, and is refused with -jsdl, too.

use super::contents::{JobFile, option_line};
use roxmltree::{Document, Node, ParsingOptions};

/// Namespace of JSDL.
const JSDL: &str = "http://schemas.ggf.org/jsdl/2005/11/jsdl";
/// Namespace of its POSIX application.
const POSIX: &str = "http://schemas.ggf.org/jsdl/2005/11/jsdl-posix";
/// Most nodes of a document.
const MAX_NODES: u32 = 100_000;

/// The meaning of the text of an element.
#[derive(Clone, Copy)]
enum Meaning {
    /// Elements in it, no text.
    Container,
    /// The value of an option.
    Text(&'static str),
    /// Seconds, for an option in minutes.
    Minutes(&'static str),
    /// Bytes, for an option in KB.
    Kilobytes(&'static str),
    /// A number, for an option.
    Count(&'static str),
    /// true or false, for a switch.
    Switch(&'static str),
    /// A range whose bounds are an option's minimum and maximum.
    Range(&'static str),
    /// A host among the candidates.
    Host,
    /// A variable of the environment.
    Variable,
    /// The program.
    Program,
    /// An argument of the program.
    Argument,
}

/// The elements of JSDL.
const ELEMENTS: [(&str, Meaning); 13] = [
    ("JobDefinition", Meaning::Container),
    ("JobDescription", Meaning::Container),
    ("JobIdentification", Meaning::Container),
    ("JobName", Meaning::Text("J")),
    ("Description", Meaning::Text("Jd")),
    ("JobProject", Meaning::Text("P")),
    ("Application", Meaning::Container),
    ("ApplicationName", Meaning::Text("app")),
    ("Resources", Meaning::Container),
    ("CandidateHosts", Meaning::Container),
    ("HostName", Meaning::Host),
    ("ExclusiveExecution", Meaning::Switch("x")),
    ("TotalCPUCount", Meaning::Range("n")),
];

/// The elements of the POSIX application.
const POSIX_ELEMENTS: [(&str, Meaning); 18] = [
    ("POSIXApplication", Meaning::Container),
    ("Executable", Meaning::Program),
    ("Argument", Meaning::Argument),
    ("Input", Meaning::Text("i")),
    ("Output", Meaning::Text("o")),
    ("Error", Meaning::Text("e")),
    ("WorkingDirectory", Meaning::Text("cwd")),
    ("Environment", Meaning::Variable),
    ("WallTimeLimit", Meaning::Minutes("W")),
    ("CPUTimeLimit", Meaning::Minutes("c")),
    ("FileSizeLimit", Meaning::Kilobytes("F")),
    ("CoreDumpLimit", Meaning::Kilobytes("C")),
    ("DataSegmentLimit", Meaning::Kilobytes("D")),
    ("MemoryLimit", Meaning::Kilobytes("M")),
    ("StackSizeLimit", Meaning::Kilobytes("S")),
    ("VirtualMemoryLimit", Meaning::Kilobytes("v")),
    ("ProcessCountLimit", Meaning::Count("p")),
    ("ThreadCountLimit", Meaning::Count("T")),
];

/// The submission in the text of a file. `strict`: without elements of other namespaces.
pub fn read(text: &str, strict: bool) -> Result<JobFile, String> {
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..Default::default() };
    let document = Document::parse_with_options(text, options).map_err(|e| e.to_string())?;
    let root = document.root_element();
    let mut read = Reader { strict, ..Reader::default() };
    if root.tag_name().name() != "JobDefinition" || root.tag_name().namespace() != Some(JSDL) {
        return Err(wrong(root, "a JobDefinition of JSDL is expected"));
    }
    read.element(root)?;
    read.finish()
}

#[derive(Default)]
struct Reader {
    strict: bool,
    file: JobFile,
    hosts: Vec<String>,
    environment: Vec<String>,
    program: Option<String>,
    arguments: Vec<String>,
}

impl Reader {
    fn element(&mut self, node: Node) -> Result<(), String> {
        let name = node.tag_name().name();
        let found = |all: &[(&str, Meaning)]| all.iter().find(|(n, _)| *n == name).map(|(_, m)| *m);
        let meaning = match node.tag_name().namespace() {
            Some(JSDL) => found(&ELEMENTS),
            Some(POSIX) => found(&POSIX_ELEMENTS),
            _ if self.strict => {
                return Err(wrong(node, "is no element of JSDL or its POSIX application"));
            }
            _ => None,
        };
        match meaning {
            None => Err(wrong(node, "is not supported")),
            Some(Meaning::Container) => {
                node.children().filter(Node::is_element).try_for_each(|child| self.element(child))
            }
            Some(Meaning::Range(word)) => self.add(node, word, &range(node)?),
            Some(meaning) => {
                if let Some(child) = node.children().find(Node::is_element) {
                    return Err(wrong(child, "is not expected here"));
                }
                self.leaf(node, meaning, node.text().unwrap_or_default())
            }
        }
    }

    /// Takes an element without elements in it.
    fn leaf(&mut self, node: Node, meaning: Meaning, text: &str) -> Result<(), String> {
        let trimmed = text.trim();
        match meaning {
            Meaning::Text(word) => return self.add(node, word, trimmed),
            Meaning::Minutes(word) => {
                let seconds = number(node, trimmed)?;
                return self.add(node, word, &seconds.div_ceil(60).to_string());
            }
            Meaning::Kilobytes(word) => {
                let bytes = number(node, trimmed)?;
                return self.add(node, word, &format!("{}KB", bytes.div_ceil(1024)));
            }
            Meaning::Count(word) => {
                let count = number(node, trimmed)?;
                return self.add(node, word, &count.to_string());
            }
            Meaning::Switch(word) => match trimmed {
                "true" | "1" => self.file.options.push(option_line(word, None)),
                "false" | "0" => {}
                _ => return Err(wrong(node, "true or false is expected")),
            },
            Meaning::Host => self.hosts.push(trimmed.into()),
            Meaning::Variable => {
                let Some(name) = node.attribute("name") else {
                    return Err(wrong(node, "the attribute name is missing"));
                };
                let Some(quote) = ['"', '\''].into_iter().find(|q| !text.contains(*q)) else {
                    return Err(wrong(node, "a value with both kinds of quotes is not supported"));
                };
                self.environment.push(format!("{name}={quote}{text}{quote}"));
            }
            Meaning::Program if self.program.is_some() => {
                return Err(wrong(node, "is there already"));
            }
            Meaning::Program => self.program = Some(trimmed.into()),
            Meaning::Argument => self.arguments.push(text.into()),
            Meaning::Container | Meaning::Range(_) => {}
        }
        Ok(())
    }

    fn add(&mut self, node: Node, word: &str, value: &str) -> Result<(), String> {
        let line = option_line(word, Some(value));
        if self.file.options.iter().any(|there| there[0] == line[0]) {
            return Err(wrong(node, "is there already"));
        }
        self.file.options.push(line);
        Ok(())
    }

    fn finish(mut self) -> Result<JobFile, String> {
        if !self.hosts.is_empty() {
            self.file.options.push(option_line("m", Some(&self.hosts.join(" "))));
        }
        if !self.environment.is_empty() {
            let variables = format!("all, {}", self.environment.join(", "));
            self.file.options.push(option_line("env", Some(&variables)));
        }
        match self.program {
            Some(program) => {
                let words = self.arguments.iter().map(|argument| shell_word(argument));
                let words: Vec<String> = [program].into_iter().chain(words).collect();
                self.file.set_command(words.join(" ").into())?;
            }
            None if self.arguments.is_empty() => {}
            None => return Err("Argument: there is no Executable".into()),
        }
        Ok(self.file)
    }
}

/// A text as one word of a shell.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./-+=:,%@".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// The value of -n for a range: `Exact`, or the bounds of a `LowerBoundedRange` and an
/// `UpperBoundedRange`.
fn range(node: Node) -> Result<String, String> {
    let (mut exact, mut lower, mut upper) = (None, None, None);
    for child in node.children().filter(Node::is_element) {
        let place = match child.tag_name().name() {
            "Exact" => &mut exact,
            "LowerBoundedRange" => &mut lower,
            "UpperBoundedRange" => &mut upper,
            _ => return Err(wrong(child, "is not supported")),
        };
        *place = Some(number(child, child.text().unwrap_or_default().trim())?);
    }
    match (exact, lower, upper) {
        (Some(n), None, None) | (None, Some(n), None) => Ok(n.to_string()),
        (None, lower, Some(upper)) => Ok(format!("{},{upper}", lower.unwrap_or(1))),
        _ => Err(wrong(node, "one exact number, or the bounds of a range, are expected")),
    }
}

/// A number that is not negative; JSDL writes all of them as floating point numbers.
fn number(node: Node, text: &str) -> Result<u64, String> {
    let digits = text.strip_suffix(".0").unwrap_or(text);
    digits.parse().map_err(|_| wrong(node, "a whole number is expected"))
}

/// Words about an element: its name and its place in the file.
fn wrong(node: Node, words: &str) -> String {
    let at = node.document().text_pos_at(node.range().start);
    format!("{}: {words} at line {} column {}", node.tag_name().name(), at.row, at.col)
}
