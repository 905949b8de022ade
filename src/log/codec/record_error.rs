//! Why a line is not a record.

use std::fmt;

/// Why a line is not a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The line does not begin with `"TYPE" "version" time`.
    NotARecord,
    /// A string without its closing quote.
    OpenString { field: u32 },
    /// The line ends before a required field.
    Short { field: u32 },
    /// A field has the wrong form.
    Field { field: u32, want: &'static str },
    /// A record of ours that this version does not know: start-up must stop.
    Newer { name: String },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::NotARecord => f.write_str("not a record"),
            RecordError::OpenString { field } => write!(f, "field {field}: no closing quote"),
            RecordError::Short { field } => write!(f, "ends before field {field}"),
            RecordError::Field { field, want } => write!(f, "field {field}: wanted {want}"),
            RecordError::Newer { name } => {
                write!(f, "record {name} was written by a newer version of this program")
            }
        }
    }
}

impl std::error::Error for RecordError {}
