//! The nouns of the NQE load balancer's database: kinds, attribute identities, values.
//!
//! Invariant: an attribute is (kind, number) within its object type; its name is a view through the
//! name map. See name_map(5).

use std::fmt;
use std::sync::Arc;

/// A server of NLB_SERVER.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NlbAddress {
    /// The host, as it is written.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

/// The kind of an attribute's value; a part of the attribute's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A finite 64-bit float.
    Float,
    /// A 64-bit integer.
    Integer,
    /// Up to [`MAX_STRING`] bytes without control characters.
    Str,
    /// Seconds since 1970; set by the server alone.
    Time,
}

impl Kind {
    /// All kinds with their words in files.
    pub const WORDS: [(&'static str, Kind); 4] = [
        ("float", Kind::Float),
        ("integer", Kind::Integer),
        ("string", Kind::Str),
        ("time", Kind::Time),
    ];

    /// The word in a name map.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Float => "float",
            Kind::Integer => "integer",
            Kind::Str => "string",
            Kind::Time => "time",
        }
    }

    /// The kind of that word, in any case of letters.
    pub fn of_word(word: &str) -> Option<Kind> {
        let found = Kind::WORDS.iter().find(|(w, _)| w.eq_ignore_ascii_case(word));
        found.map(|(_, kind)| *kind)
    }
}

/// The identity of an attribute within its object type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttrId {
    /// The kind of its values.
    pub kind: Kind,
    /// Number within the kind, from 0.
    pub number: u32,
}

impl AttrId {
    /// The attribute of that kind and number.
    pub const fn new(kind: Kind, number: u32) -> Self {
        AttrId { kind, number }
    }

    /// The attribute of that number whose values are floats.
    pub const fn float(number: u32) -> Self {
        AttrId::new(Kind::Float, number)
    }

    /// The attribute of that number whose values are integers.
    pub const fn integer(number: u32) -> Self {
        AttrId::new(Kind::Integer, number)
    }

    /// The attribute of that number whose values are strings.
    pub const fn string(number: u32) -> Self {
        AttrId::new(Kind::Str, number)
    }
}

impl fmt::Display for AttrId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.kind.word(), self.number)
    }
}

/// Longest string value, bytes.
pub const MAX_STRING: usize = 4_096;

/// Longest name of a type, an attribute or a policy, characters.
pub const MAX_NAME: usize = 59;

/// The number of the object type of hosts.
pub const NLB: u16 = 1024;
/// The number of the object type of request attributes.
pub const NLB_JOB: u16 = 1025;
/// The number of the object type of requests.
pub const NJS: u16 = 500;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Finite.
    Float(f64),
    Integer(i64),
    Str(Arc<str>),
    /// Seconds since 1970.
    Time(i64),
}

impl Value {
    /// The kind of this value.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Float(_) => Kind::Float,
            Value::Integer(_) => Kind::Integer,
            Value::Str(_) => Kind::Str,
            Value::Time(_) => Kind::Time,
        }
    }

    /// The number that policies compute with; `None` for a string.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Float(x) => Some(*x),
            Value::Integer(n) | Value::Time(n) => Some(*n as f64),
            Value::Str(_) => None,
        }
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }
}
