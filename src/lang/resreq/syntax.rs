//! The vocabulary of requirement strings: the names of resources and their kinds, the limits of a
//! string, and the errors of a malformed one.

use std::fmt;

/// Longest resource requirement string accepted, in bytes.
pub const MAX_RESREQ_TEXT: usize = 8192;

/// Most operators in one select expression: bounds the depth of its tree.
pub const MAX_OPERATORS: usize = 500;

/// Deepest nesting of parentheses and signs.
pub const MAX_NESTING: usize = 64;

/// Most alternatives of one rusage section, after merging too.
pub const MAX_RUSAGE_ALTERNATIVES: usize = 64;

/// The kind of values of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResKind {
    /// A number; `increasing` when a larger value means a more loaded host.
    Numeric {
        /// The INCREASING flag.
        increasing: bool,
    },
    /// Present or not.
    Boolean,
    /// A text.
    String,
}

/// The table of resource names that a string may use.
pub trait ResNames {
    /// The kind of a resource; None for an unknown name.
    fn kind(&self, name: &str) -> Option<ResKind>;
    /// The number of a resource in a table that numbers them.
    fn number(&self, _name: &str) -> Option<u32> {
        None
    }
}

/// Numeric resources of every host that are no load indices.
pub const HOST_NUMBERS: [&str; 14] = [
    "ncpus",
    "ndisks",
    "maxmem",
    "maxswp",
    "maxtmp",
    "cpuf",
    "rexpri",
    "slots",
    "maxslots",
    "nprocs",
    "ncores",
    "nthreads",
    "ngpus",
    "ngpus_physical",
];

/// The resources every cluster has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Builtins;

impl ResNames for Builtins {
    fn kind(&self, name: &str) -> Option<ResKind> {
        Some(match name {
            "r15s" | "r1m" | "r15m" | "ut" | "pg" | "io" | "ls" => {
                ResKind::Numeric { increasing: true }
            }
            "it" | "tmp" | "swp" | "mem" => ResKind::Numeric { increasing: false },
            "server" => ResKind::Boolean,
            "type" | "model" | "hname" | "status" => ResKind::String,
            _ if HOST_NUMBERS.contains(&name) => ResKind::Numeric { increasing: false },
            _ => return None,
        })
    }
}

/// The resource that an old spelling stands for.
pub fn alias(name: &str) -> Option<&'static str> {
    Some(match name {
        "cpu" => "r1m",
        "idle" => "it",
        "login" => "ls",
        "swap" => "swp",
        _ => return None,
    })
}

/// True for resources counted in MB, whose numbers may carry a unit.
pub fn is_size(name: &str) -> bool {
    matches!(name, "mem" | "swp" | "tmp" | "maxmem" | "maxswp" | "maxtmp")
}

/// The vocabulary of requirement strings: the names of resources and their kinds, the limits of a
/// string, and the errors of a malformed one.
#[derive(Clone, Copy)]
pub struct Syntax<'a> {
    /// The names known.
    pub names: &'a dyn ResNames,
    /// How many MB a size without a unit counts: 1, or LSF_UNIT_FOR_LIMITS.
    pub size_unit_mb: f64,
}

impl<'a> Syntax<'a> {
    /// Sizes in MB.
    pub fn new(names: &'a dyn ResNames) -> Self {
        Syntax { names, size_unit_mb: 1.0 }
    }

    /// The real name and kind behind `name`: itself first, then as an alias.
    pub(super) fn lookup(&self, name: &str) -> Option<(String, ResKind)> {
        if let Some(kind) = self.names.kind(name) {
            return Some((name.to_string(), kind));
        }
        let real = alias(name)?;
        Some((real.to_string(), self.names.kind(real)?))
    }
}

/// The real name of a resource, and its number where the table of names has numbers: a host finds
/// a number without comparing names.
#[derive(Clone, Debug)]
pub struct ResName {
    pub text: String,
    pub number: Option<u32>,
}

impl ResName {
    /// A name of which the number is not known.
    pub(super) fn unnumbered(text: &str) -> ResName {
        ResName { text: text.to_owned(), number: None }
    }
}

impl PartialEq for ResName {
    fn eq(&self, other: &ResName) -> bool {
        self.text == other.text
    }
}

impl Syntax<'_> {
    /// A real name with its number.
    pub(super) fn numbered(&self, name: String) -> ResName {
        ResName { number: self.names.number(&name), text: name }
    }
}

/// A host as select and order see it. Values of load indices are those for scheduling: measured,
/// less what is reserved. Sizes are in MB.
pub trait HostView {
    /// The value of a numeric resource; None where the host has none.
    fn num(&self, name: &str) -> Option<f64>;
    /// The value of a numeric resource whose number is known ([`ResNames::number`]).
    fn numbered(&self, _number: u32, name: &str) -> Option<f64> {
        self.num(name)
    }
    /// The value of a string resource.
    fn text(&self, name: &str) -> Option<&str>;
    /// Whether the host has a Boolean resource; None counts as false.
    fn boolean(&self, name: &str) -> Option<bool>;
}

/// A malformed resource requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResReqError {
    /// Byte offset of the trouble in the text given.
    pub offset: usize,
    /// The mistake at this place (the text may contain a word of the input).
    pub reason: String,
}

impl ResReqError {
    pub(super) fn at<T>(offset: usize, reason: impl Into<String>) -> Result<T, ResReqError> {
        Err(ResReqError { offset, reason: reason.into() })
    }

    /// The mistake, and its place in the text: `foo: unknown resource at column 8 of
    /// <select[foo]>`.
    pub fn place(&self, text: &str) -> String {
        // a name was read when it was found to be wrong: its place is where it begins
        let name = self.reason.split_once(": ").map_or("", |(name, _)| name);
        let read = text.get(..self.offset.saturating_add(name.len()).min(text.len()));
        let begin = read.filter(|_| !name.is_empty()).and_then(|read| read.rfind(name));
        let before = text.get(..begin.unwrap_or(self.offset)).unwrap_or(text);
        let before = before.chars().count();
        format!("{} at column {} of <{text}>", self.reason, before + 1)
    }
}

impl fmt::Display for ResReqError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bad resource requirement syntax")
    }
}

impl std::error::Error for ResReqError {}

pub(super) type Parsed<T> = Result<T, ResReqError>;
